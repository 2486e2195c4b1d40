//! Options that choose by process, stack or time, for every kind that does. What is chosen differs, and
//! so does the help.

use crate::{
    filter::{Filter, ProcessFilter},
    grammar::{Choice, Opt, Take, Texts},
    query::{NewProcess, ProcessCriteria},
    values::{SuspectId, TimeRange},
};

pub(crate) const fn process_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<ProcessFilter>,
) -> Opt<A> {
    let (names, example) = (&["-pn", "-ProcessName"], "-pn leaky;!4");
    Opt { names, help, details, example, take: Take::Processes(field) }
}

pub(crate) const fn type_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let (names, example) = (&["-Type"], "-Type Event;Thread");
    Opt { names, help, details, example, take: Take::Filter(Texts::ObjectTypes, field) }
}

/// `-Type` of handles.
pub(crate) const fn type_of_handles_option<A>(field: fn(&mut A) -> &mut Option<Filter>) -> Opt<A> {
    let help = "handles of objects of such a type";
    type_option(help, "As in -Type of .dump ObjectRef.", field)
}

/// `-Kind` of allocations.
pub(crate) const fn kind_option<A>(
    help: &'static str,
    details: &'static str,
    example: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    Opt {
        names: &["-Kind"],
        help,
        details,
        example,
        take: Take::Filter(Texts::AllocationKinds, field),
    }
}

/// `-Kind` where handles are meant unless it is given.
pub(crate) const fn kind_instead_option<A>(
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let help = "allocations of these kinds instead of handles: heap, commit, reserve…";
    kind_option(help, details, "-Kind heap", field)
}

pub(crate) const fn stack_filter_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<Filter>,
) -> Opt<A> {
    let (names, example) = (&["-sf", "-StackFilter"], "-StackFilter *Session::Connect*");
    Opt { names, help, details, example, take: Take::Filter(Texts::Frames, field) }
}

/// `-Suspect`
pub(crate) const fn suspect_option<A>(
    help: &'static str,
    field: fn(&mut A) -> &mut Option<SuspectId>,
) -> Opt<A> {
    Opt {
        names: &["-Suspect"],
        help,
        details: "The id is in the command that .why prints; its first four digits are enough where no other id begins \
                  with them. Ids depend on names of functions: with other symbols \
                  they are others.",
        example: "-Suspect 33434dfa4c",
        take: Take::Suspect(field),
    }
}

/// `-MinMaxTime`
pub(crate) const fn time_option<A>(
    help: &'static str,
    details: &'static str,
    field: fn(&mut A) -> &mut Option<TimeRange>,
) -> Opt<A> {
    let (names, example) = (&["-MinMaxTime"], "-MinMaxTime 0 1.5s");
    Opt { names, help, details, example, take: Take::Seconds(field) }
}

/// Arguments of a query that chooses processes.
pub(crate) trait ChoosesProcesses {
    fn processes(&mut self) -> &mut ProcessCriteria;
}

pub(crate) const fn command_line_option<A: ChoosesProcesses>(
    help: &'static str,
    details: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-CmdLine"],
        help,
        details,
        example: "-CmdLine *--helper*",
        take: Take::Filter(Texts::Other, |args| &mut args.processes().command_line),
    }
}

pub(crate) const fn new_process_option<A: ChoosesProcesses>(
    help: &'static str,
    details: &'static str,
) -> Opt<A> {
    Opt {
        names: &["-NewProcess"],
        help,
        details,
        example: "-NewProcess 1",
        take: Take::Choice(&[
            Choice {
                word: "0",
                help: "processes that neither started nor ended in the trace",
                set: |args| args.processes().new_process = Some(NewProcess::Permanent),
            },
            Choice {
                word: "1",
                help: "processes that started in the trace",
                set: |args| args.processes().new_process = Some(NewProcess::Started),
            },
            Choice {
                word: "2",
                help: "processes that started and did not end in the trace",
                set: |args| args.processes().new_process = Some(NewProcess::StartedOnly),
            },
            Choice {
                word: "-1",
                help: "processes that ended in the trace",
                set: |args| args.processes().new_process = Some(NewProcess::Ended),
            },
            Choice {
                word: "-2",
                help: "processes that ended and did not start in the trace",
                set: |args| args.processes().new_process = Some(NewProcess::EndedOnly),
            },
        ]),
    }
}

/// Adds a column that groups have: each counts once, where it stands first.
pub(crate) fn add_column<C: Copy + PartialEq>(columns: &mut Vec<C>, column: Option<&C>) {
    columns.extend(column.filter(|column| !columns.contains(column)).copied().as_slice());
}
