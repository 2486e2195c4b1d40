//! Options that choose by process, stack or time, for every kind that does. What is chosen differs, and
//! so does the help.

use crate::{
    filter::{Filter, ProcessFilter},
    grammar::{Opt, Take, Texts},
    values::SecondsRange,
};

/// `-pn`
pub(crate) const fn process_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<ProcessFilter>,
) -> Opt<A> {
    let (names, example) = (&["-pn", "-ProcessName"], "-pn leaky;!4");
    Opt { names, help, details, example, take: Take::Processes(field) }
}

/// `-sf`
pub(crate) const fn stack_filter_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let (names, example) = (&["-sf", "-StackFilter"], "-StackFilter *Session::Connect*");
    Opt { names, help, details, example, take: Take::Filter(Texts::Frames, field) }
}

/// `-MinMaxTime`
pub(crate) const fn time_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<SecondsRange>,
) -> Opt<A> {
    let (names, example) = (&["-MinMaxTime"], "-MinMaxTime 0 1.5s");
    Opt { names, help, details, example, take: Take::Seconds(field) }
}
