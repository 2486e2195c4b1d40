//! Commands for a dataset. They have the names of the commands for traces, and those of their options that make sense
//! here.

pub mod diff;
pub mod groups;
pub mod plot;
pub mod report;
pub mod why;

use super::shared::choice::type_option;
use super::{CommandError, DumpContext};
use crate::shared::Has;
use handlescope_fleet::dataset::Dataset;
use handlescope_fleet::{Fleet, FleetCaveat, FleetCriteria};
use handlescope_session::grammar::value::{DAYS, OBJECT_TYPES, PROCESSES, TEXTS};
use handlescope_session::grammar::{Opt, To, to};
use handlescope_session::terminal::Messages;

/// Heading of the options that select traces and rows.
pub const CHOICE: &str = "Which traces, processes and types";

/// `-machine`, `-build`, `-day`, `-pn` and `-Type`.
pub const fn choices<A: Has<FleetCriteria>>() -> [Opt<A>; 5] {
    let machine = Opt {
        names: &["-machine"],
        help: "only traces of these machines",
        details: "Names of computers. Folders of other traces are not opened.",
        example: "-machine WS-0*;!WS-007",
        take: to(&(TEXTS, |args: &mut A, filter| args.part().machine = Some(filter))),
    };
    let build = Opt {
        names: &["-build"],
        help: "only processes of these builds",
        details: "The build given to dataset add, else the file version of the executable.",
        example: "-build 1.4.*",
        take: to(&(TEXTS, |args: &mut A, filter| args.part().build = Some(filter))),
    };
    let day = Opt {
        names: &["-day"],
        help: "only traces started on these days, UTC",
        details: "FROM..TO, where one may be missing, or a filter like 2026-11-*. Folders of other \
             traces are not opened.",
        example: "-day 2026-11-16..2026-11-22",
        take: to(&(DAYS, |args: &mut A, days| args.part().days = Some(days))),
    };
    let process = Opt {
        names: &["-pn", "-ProcessName"],
        help: "what these processes opened or allocated",
        details: "The name may go without .exe; a number is a pid; ! in front excludes.",
        example: "-pn app;!svchost",
        take: to(&(PROCESSES, |args: &mut A, processes| args.part().process = Some(processes))),
    };
    let object_type = type_option(
        "objects of these types, allocations of these kinds",
        "For example Event or heap.",
        &(OBJECT_TYPES, |args: &mut A, filter| args.part().object_type = Some(filter)),
    );
    [machine, build, day, process, object_type]
}

pub const fn min_leaked_option<A>(set: &'static To<A, u64>) -> Opt<A> {
    Opt {
        names: &["-MinLeaked"],
        help: "only what leaked at least this many in all traces",
        details: "Counts what is leaked or closed only by process exit. Ranks do not change.",
        example: "-MinLeaked 100",
        take: to(set),
    }
}

/// Returns the traces of the loaded dataset that pass.
///
/// # Errors
/// If none passes, or the dataset cannot be read.
pub fn fleet(criteria: &FleetCriteria, dump: &DumpContext<'_, '_>) -> Result<Fleet, CommandError> {
    let folder = dump.session.dataset.as_deref().unwrap_or_else(|| std::path::Path::new("."));
    let dataset = Dataset::open(folder)?;
    Ok(Fleet::new(&dataset, criteria, dump.cancel)?)
}

/// Warns about what makes an answer incomplete.
pub fn warn_of(caveats: &[FleetCaveat], messages: &mut Messages<'_>) {
    for caveat in caveats {
        messages.warning(&caveat.text);
    }
}
