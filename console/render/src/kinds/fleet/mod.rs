//! Answers about a dataset.

mod diff;
mod groups;
mod stack;
mod why;

use std::io;

pub use self::{
    diff::{fleet_diff, fleet_diff_columns, fleet_diff_document},
    groups::{fleet_group_columns, fleet_group_document, fleet_groups},
    why::{fleet_why, fleet_why_columns, fleet_why_document},
};
use crate::table::{AnswerTable, Columns, FileRows, Show};
use handlescope_fleet::dataset::ListedTrace;
use handlescope_fleet::{CallSite, FleetCaveat};

/// Declares the caveats of an answer; the arguments give the meanings.
fn add_caveats<'a, H>(
    document: &mut Columns<'a, H>,
    [caveats, kind, text, traces]: [&'static str; 4],
    of: impl Fn(&H) -> &'a [FleetCaveat] + 'a,
) {
    let mut columns = Columns::<&FleetCaveat>::default();
    columns.member("kind", kind, |caveat| caveat.kind);
    columns.member("text", text, |caveat| caveat.text.as_str());
    columns.member("traces", traces, |caveat| caveat.traces);
    document
        .parts("caveats", caveats, columns, move |about| of(about).iter().collect())
        .for_programs();
}

/// Declares the columns of a call site; the arguments give the meanings.
fn add_site<'a, R: 'a>(
    columns: &mut Columns<'a, R>,
    [process, kind, type_name, allocator, stack]: [&'static str; 5],
    site: fn(&R) -> &'a CallSite,
) {
    columns.add("process", process, move |row| site(row).process.as_str()).title("Process");
    columns.add("kind", kind, move |row| site(row).kind.as_str());
    columns.add("type", type_name, move |row| site(row).type_name.as_str()).title("Type");
    columns.add("allocator", allocator, move |row| site(row).allocator.as_deref());
    columns.add("stack_id", stack, move |row| site(row).stack.as_deref()).detail();
}

/// The meaning of members that the document of `.why` also has.
const AS_IN_WHY: &str = "as in `.dump Why` over a dataset";

/// Returns the rows of `dataset list`, one for each trace.
///
/// # Errors
/// None that a caller could do anything about.
pub fn dataset_traces(traces: &[ListedTrace]) -> io::Result<AnswerTable<'_>> {
    let mut columns = Columns::<&ListedTrace>::default();
    let trace = columns
        .add("trace", "id of the trace", |listed| listed.partition.trace.clone())
        .title("Trace");
    trace.texts(|listed| listed.partition.short().to_owned());
    columns
        .add("date", "day of the session start, UTC", |listed| listed.partition.date.to_string())
        .title("Day");
    columns
        .add("machine", "computer that recorded it", |listed| listed.machine.clone())
        .title("Machine")
        .unknown("unknown");
    columns.add("build", "build of its process", |listed| listed.build.clone()).title("Build");
    columns.add("source", "file that was added", |listed| listed.source.clone()).title("Source");
    columns
        .add("opened", "handles and views opened", |listed| listed.opened)
        .title("Opened")
        .show(Show::Grouped);
    columns
        .add("leaked", "handles and views never closed, or closed only by process exit", |listed| {
            listed.leaked
        })
        .title("Leaked")
        .show(Show::Grouped);
    columns
        .add("suspects", "suspects of the trace", |listed| listed.suspects)
        .title("Suspects")
        .show(Show::Grouped);
    let lost = columns
        .add("events_lost", "events lost while recording", |listed| listed.events_lost)
        .title("Lost");
    lost.show(Show::Grouped).unknown("unknown");
    let unnamed = columns.add(
        "stacks_without_symbols",
        "stacks where no frame of the program has a name",
        |listed| listed.stacks_without_symbols,
    );
    unnamed.title("Without symbols").show(Show::Grouped);
    let mut document = Columns::default();
    document.rows("traces", "the traces of the dataset");
    let table =
        AnswerTable::new(columns, traces.iter().collect(), [FileRows::rows_of(traces.len())])?;
    Ok(table.within(document, ()).with_spare(["Without symbols", "Lost", "Source", "Opened"]))
}
