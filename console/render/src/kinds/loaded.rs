//! `.list`: the loaded traces.

use std::{io, path::Path};

use handlescope_model::tables::TraceInfo;

use super::index;
use crate::{
    table::{AnswerTable, Columns, FileRows, Show},
    text::shown_path,
    time::TraceClock,
};

/// Text for a fact that is unknown.
const UNKNOWN: &str = "unknown";

/// Returns a row for each trace, with its file number.
///
/// # Errors
/// None that a caller could do anything about.
pub fn loaded<'a>(files: &[(&'a Path, &'a TraceInfo)]) -> io::Result<AnswerTable<'a>> {
    let mut columns = Columns::<(usize, &Path, &TraceInfo)>::default();
    columns.add("index", "number of the trace", |(number, ..)| index(*number)).title("#");
    columns.add("path", "the file as it was loaded", |(_, file, _)| shown_path(file)).title("File");
    columns
        .add("recorded", "start of the recording", |(.., info)| TraceClock::recorded_start(info))
        .title("Recorded");
    let length = columns
        .add("seconds", "length of the time range that the trace covers", |(.., info)| {
            seconds(info)
        })
        .title("Seconds");
    length
        .texts(|(.., info)| seconds(info).map_or_else(String::new, |value| format!("{value:.1}")))
        .unknown(UNKNOWN);
    let machine = columns
        .add("computer", "name of the recording machine", |(.., info)| info.computer.clone());
    machine.title("Machine").unknown(UNKNOWN);
    columns
        .add("windows", "its Windows", |(.., info)| windows(info))
        .title("Windows")
        .unknown(UNKNOWN);
    columns
        .add("events", "events found in the file", |(.., info)| info.events_total)
        .title("Events")
        .show(Show::Grouped);
    let lost = columns.add("lost", "events lost while recording", |(.., info)| {
        info.has_clock().then_some(info.events_lost)
    });
    lost.title("Lost").show(Show::Grouped).unknown(UNKNOWN);
    let rows = files.iter().enumerate().map(|(number, (path, info))| (number, *path, *info));
    let document = Columns::with_rows("files", "the loaded traces");
    let file_rows = [FileRows::rows_of(files.len())];
    Ok(AnswerTable::new(columns, rows.collect(), file_rows)?.within(document, ()))
}

fn windows(info: &TraceInfo) -> Option<String> {
    let version = info.known_os_version()?;
    Some(match info.os_build {
        0 => version.to_owned(),
        build => format!("{version} ({build})"),
    })
}

/// Returns the duration in seconds that the trace covers, if known.
fn seconds(info: &TraceInfo) -> Option<f64> {
    let (from_ns, to_ns) = info.recorded_ns()?.into_inner();
    Some(to_ns.saturating_sub(from_ns) as f64 / 1e9)
}
