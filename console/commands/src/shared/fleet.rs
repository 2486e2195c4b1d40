//! What commands over a dataset share: the options that choose its traces, and the traces chosen.

use super::Has;
use super::choice::{process_option, type_option};
use crate::{CommandError, DumpContext};
use handlescope_fleet::dataset::Dataset;
use handlescope_fleet::{Fleet, FleetCaveat, FleetChoice};
use handlescope_query::ProcessCriteria;
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{DAYS, TEXTS};
use handlescope_session::grammar::{Opt, To, to};
use handlescope_session::terminal::Messages;

/// Heading of the options that select traces and rows.
pub const CHOICE: &str = "Which traces, processes and types";

/// `-machine`, `-build`, `-day`, `-pn` and `-Type`, which sets `object_type`.
pub const fn choices<A: Has<FleetChoice> + Has<ProcessCriteria>>(
    object_type: &'static To<A, Filter>,
) -> [Opt<A>; 5] {
    let machine = Opt {
        names: &["-machine"],
        help: "only traces of these machines",
        details: "Names of computers. Folders of other traces are not opened.",
        example: "-machine WS-0*;!WS-007",
        take: to(&(TEXTS, |args: &mut A, filter| choice(args).machine = Some(filter))),
    };
    let build = Opt {
        names: &["-build"],
        help: "only processes of these builds",
        details: "The build given to dataset add, else the file version of the executable.",
        example: "-build 1.4.*",
        take: to(&(TEXTS, |args: &mut A, filter| choice(args).build = Some(filter))),
    };
    let day = Opt {
        names: &["-day"],
        help: "only traces started on these days, UTC",
        details: "FROM..TO, where one may be missing, or a filter like 2026-11-*. Folders of other \
             traces are not opened.",
        example: "-day 2026-11-16..2026-11-22",
        take: to(&(DAYS, |args: &mut A, days| choice(args).days = Some(days))),
    };
    let process = process_option(
        "what these processes opened or allocated",
        "The name may go without .exe; a number is a pid; ! in front excludes.",
    );
    let object_type = type_option(
        "objects of these types, allocations of these kinds",
        "For example Event or heap.",
        object_type,
    );
    [machine, build, day, process, object_type]
}

fn choice<A: Has<FleetChoice>>(args: &mut A) -> &mut FleetChoice {
    args.part()
}

/// Returns the traces of the loaded dataset that pass.
///
/// # Errors
/// If none passes, or the dataset cannot be read.
pub fn fleet(choice: &FleetChoice, dump: &DumpContext<'_, '_>) -> Result<Fleet, CommandError> {
    let folder = dump.session.dataset.as_deref().unwrap_or_else(|| std::path::Path::new("."));
    let dataset = Dataset::open(folder)?;
    Ok(Fleet::new(&dataset, choice, dump.cancel)?)
}

/// Warns about what makes an answer incomplete.
pub fn warn_of(caveats: &[FleetCaveat], messages: &mut Messages<'_>) {
    for caveat in caveats {
        messages.warning(&caveat.text);
    }
}
