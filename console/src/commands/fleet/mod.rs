//! Commands over a dataset. They go by the names of those over traces, and have the options that make sense there.

pub(crate) mod diff;
pub(crate) mod groups;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod why;

use super::shared::choice::type_option;
use super::{CommandError, DumpContext};
use crate::dataset::Dataset;
use crate::fleet::{Fleet, FleetCaveat, FleetCriteria};
use crate::grammar::{Opt, Take, Texts};
use crate::terminal::Messages;

/// Heading of the options that choose traces and rows.
pub(crate) const CHOICE: &str = "Which traces, processes and types";

pub(crate) const fn machine_option<A: AsMut<FleetCriteria>>() -> Opt<A> {
    Opt {
        names: &["-machine"],
        help: "only traces of these machines",
        details: "Names of computers. Folders of other traces are not opened.",
        example: "-machine WS-0*;!WS-007",
        take: Take::Filter(Texts::Other, |args| &mut args.as_mut().machine),
    }
}

pub(crate) const fn build_option<A: AsMut<FleetCriteria>>() -> Opt<A> {
    Opt {
        names: &["-build"],
        help: "only processes of these builds",
        details: "The build given to dataset add, else the file version of the executable.",
        example: "-build 1.4.*",
        take: Take::Filter(Texts::Other, |args| &mut args.as_mut().build),
    }
}

pub(crate) const fn day_option<A: AsMut<FleetCriteria>>() -> Opt<A> {
    Opt {
        names: &["-day"],
        help: "only traces that were started on these days, UTC",
        details: "FROM..TO, of which one may be missing, or a filter like 2026-11-*. Folders of \
             other traces are not opened.",
        example: "-day 2026-11-16..2026-11-22",
        take: Take::Days(|args| &mut args.as_mut().days),
    }
}

/// `-pn` and `-Type`.
pub(crate) const fn row_options<A: AsMut<FleetCriteria>>() -> [Opt<A>; 2] {
    let process = Opt {
        names: &["-pn", "-ProcessName"],
        help: "what these processes acquired",
        details: "The name may go without .exe; a number is a pid; ! in front excludes.",
        example: "-pn app;!svchost",
        take: Take::Processes(|args: &mut A| &mut args.as_mut().process),
    };
    let help = "objects of these types, allocations of these kinds";
    let details = "As in Event or heap.";
    [process, type_option(help, details, |args| &mut args.as_mut().object_type)]
}

pub(crate) const fn min_leaked_option<A>(field: fn(&mut A) -> &mut Option<u64>) -> Opt<A> {
    Opt {
        names: &["-MinLeaked"],
        help: "only what leaked at least this many in all traces",
        details: "Counts what is leaked or closed only by process exit. Ranks do not change.",
        example: "-MinLeaked 100",
        take: Take::Number(field),
    }
}

/// The traces of the loaded dataset that pass.
///
/// # Errors
/// When none does, or the dataset cannot be read.
pub(super) fn fleet(
    criteria: &FleetCriteria,
    dump: &DumpContext<'_, '_>,
) -> Result<Fleet, CommandError> {
    let folder = dump.session.dataset.as_deref().unwrap_or_else(|| std::path::Path::new("."));
    let dataset = Dataset::open(folder)?;
    Ok(Fleet::new(&dataset, criteria, dump.cancel)?)
}

/// Says what makes an answer incomplete.
pub(super) fn warn_of(caveats: &[FleetCaveat], messages: &mut Messages<'_>) {
    for caveat in caveats {
        messages.warning(&caveat.text);
    }
}
