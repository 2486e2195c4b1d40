//! `.list`: the loaded traces.

use std::{io, path::Path};

use handlescope_model::tables::TraceInfo;

use super::index;
use crate::{
    paths::shown,
    render::{
        table::{Columns, Part, Show, Table},
        time::Clock,
    },
};

/// What stands where the trace does not say.
const UNKNOWN: &str = "unknown";

/// A row for each trace, with the number of its file.
///
/// # Errors
/// None that a caller could do anything about.
pub fn loaded<'a>(files: &[(&Path, &TraceInfo)]) -> io::Result<Table<'a>> {
    let rows: Vec<_> = files.iter().enumerate().collect();
    let lengths: Vec<Option<f64>> = files.iter().map(|(_, info)| seconds(info)).collect();
    let mut columns = Columns::of(&rows);
    columns.add("index", |(at, _)| index(*at)).title("#");
    let path = |path: &Path| shown(path).to_string_lossy().into_owned();
    columns.add("path", |(_, (own, _))| path(own)).title("File");
    columns.add("recorded", |(_, (_, info))| Clock::recorded_start(info)).title("Recorded");
    let seconds = columns.add("seconds", |(at, _)| lengths[*at]).title("Seconds");
    let texts = lengths.iter().map(|own| own.map_or_else(String::new, |own| format!("{own:.1}")));
    seconds.texts(texts.collect()).unknown(UNKNOWN);
    let machine = columns.add("computer", |(_, (_, info))| info.computer.clone());
    machine.title("Machine").unknown(UNKNOWN);
    columns.add("windows", |(_, (_, info))| windows(info)).title("Windows").unknown(UNKNOWN);
    columns.add("events", |(_, (_, info))| info.events_total).title("Events").show(Show::Grouped);
    let lost = columns.add("lost", |(_, (_, info))| info.has_clock().then_some(info.events_lost));
    lost.title("Lost").show(Show::Grouped).unknown(UNKNOWN);
    Table::new("files", columns, [Part::rows_of(files.len())])
}

fn windows(info: &TraceInfo) -> Option<String> {
    let is_known = info.has_clock() || !info.os_version.is_empty();
    is_known.then(|| format!("{} ({})", info.os_version, info.os_build))
}

/// The time of which the trace has the events, if that is known.
fn seconds(info: &TraceInfo) -> Option<f64> {
    let (from_ns, to_ns) = info.recorded_ns()?.into_inner();
    Some(to_ns.saturating_sub(from_ns) as f64 / 1e9)
}
