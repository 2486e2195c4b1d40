//! `dataset list`: the traces of a dataset.

use std::io;

use crate::table::{Columns, FileRows, Show, Table};
use handlescope_fleet::dataset::ListedTrace;

/// A row for each trace.
///
/// # Errors
/// None that a caller could do anything about.
pub fn dataset_traces(traces: &[ListedTrace]) -> io::Result<Table<'_>> {
    let mut columns = Columns::<&ListedTrace>::default();
    let trace = columns.add("trace", |listed| listed.partition.trace.clone()).title("Trace");
    trace.texts(|listed| listed.partition.short().to_owned());
    columns.add("date", |listed| listed.partition.date.to_string()).title("Day");
    columns.add("machine", |listed| listed.machine.clone()).title("Machine").unknown("unknown");
    columns.add("build", |listed| listed.build.clone()).title("Build");
    columns.add("source", |listed| listed.source.clone()).title("Source");
    columns.add("opened", |listed| listed.opened).title("Opened").show(Show::Grouped);
    columns.add("leaked", |listed| listed.leaked).title("Leaked").show(Show::Grouped);
    columns.add("suspects", |listed| listed.suspects).title("Suspects").show(Show::Grouped);
    let lost = columns.add("events_lost", |listed| listed.events_lost).title("Lost");
    lost.show(Show::Grouped).unknown("unknown");
    let unnamed = columns.add("stacks_without_symbols", |listed| listed.stacks_without_symbols);
    unnamed.title("Without symbols").show(Show::Grouped);
    let table =
        Table::new("traces", columns, traces.iter().collect(), [FileRows::rows_of(traces.len())])?;
    Ok(table.with_spare(["Without symbols", "Lost", "Source", "Opened"]))
}
