//! Answers about a dataset.

mod diff;
mod groups;
mod stack;
mod why;

use std::io;

use serde::Serialize;

pub use self::diff::FLEET_DIFF_MEMBERS;
pub use self::groups::FLEET_GROUPS_MEMBERS;
pub use self::why::{FLEET_WHY_MEMBERS, amount, builds, causes};
pub use self::{
    diff::{fleet_diff, fleet_diff_columns},
    groups::{fleet_group_columns, fleet_groups},
    why::{fleet_why, fleet_why_columns},
};
use crate::json::Document;
use crate::table::{Columns, FileRows, Show, Table};
use handlescope_fleet::FleetCaveat;
use handlescope_fleet::dataset::ListedTrace;

/// A caveat in a document.
#[derive(Serialize)]
struct CaveatJson {
    kind: &'static str,
    text: String,
    traces: usize,
}

/// Adds the caveats of an answer.
fn with_caveats<'a>(document: Document<'a>, caveats: &[FleetCaveat]) -> Document<'a> {
    let caveats = caveats.iter().map(|caveat| {
        let FleetCaveat { kind, text, traces } = caveat.clone();
        CaveatJson { kind, text, traces }
    });
    document.with("caveats", caveats.collect::<Vec<_>>())
}

/// A number of a table of the dataset, none of which is negative.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// `dataset list`: a row for each trace.
///
/// # Errors
/// None that a caller could do anything about.
pub fn dataset_traces(traces: &[ListedTrace]) -> io::Result<Table<'_>> {
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
        .add("leaked", "handles and views that nothing, or only process exit, closed", |listed| {
            listed.leaked
        })
        .title("Leaked")
        .show(Show::Grouped);
    columns
        .add("suspects", "suspects of the trace", |listed| listed.suspects)
        .title("Suspects")
        .show(Show::Grouped);
    let lost = columns
        .add("events_lost", "events that the recording lost", |listed| listed.events_lost)
        .title("Lost");
    lost.show(Show::Grouped).unknown("unknown");
    let unnamed = columns.add(
        "stacks_without_symbols",
        "stacks of which no frame of the program has a name",
        |listed| listed.stacks_without_symbols,
    );
    unnamed.title("Without symbols").show(Show::Grouped);
    let table =
        Table::new("traces", columns, traces.iter().collect(), [FileRows::rows_of(traces.len())])?;
    Ok(table.with_spare(["Without symbols", "Lost", "Source", "Opened"]))
}
