//! Points of a trace: names of snapshots, and times.

use super::options::DiffArgs;
use crate::converttime::recorded_ns;
use crate::{CommandError, DumpContext};
use handlescope_query::{Span, trace_info};
use handlescope_session::trace::LoadedTrace;

/// The points as they are shown.
pub fn names(args: &DiffArgs) -> [&str; 2] {
    [args.from.as_deref().unwrap_or("start"), args.to.as_deref().unwrap_or("end")]
}

/// The points of each trace that is queried.
pub fn spans(args: &DiffArgs, dump: &DumpContext<'_, '_>) -> Result<Vec<Span>, CommandError> {
    let files = dump.sources.iter().filter_map(|source| dump.session.files.get(source.index));
    let spans: Result<Vec<Span>, CommandError> = files.map(|file| span(file, args)).collect();
    // Without points a span needs nothing of the session.
    let mut spans = spans?;
    spans.resize(dump.sources.len(), Span { after_ns: None, until_ns: None });
    Ok(spans)
}

/// The points of a trace that were asked for.
fn span(file: &LoadedTrace, args: &DiffArgs) -> Result<Span, CommandError> {
    let point_of = |text: &Option<String>| text.as_ref().map(|text| point(file, text)).transpose();
    let (after, until) = (point_of(&args.from)?, point_of(&args.to)?);
    // The end of a trace is after all that is in it.
    let ns = |point: Option<i64>| point.unwrap_or(i64::MAX);
    // Between a point and itself nothing is opened.
    if after.is_some_and(|after| ns(after) > ns(until.flatten())) {
        let text =
            |text: &Option<String>, default: &str| text.clone().unwrap_or(default.to_owned());
        let (from, to) = (text(&args.from, "start"), text(&args.to, "end"));
        return Err(CommandError::PointOrder { from, to });
    }
    Ok(Span { after_ns: after.map(ns), until_ns: until.flatten() })
}

/// A snapshot of a trace, or a time in it; `None` for its end.
fn point(file: &LoadedTrace, text: &str) -> Result<Option<i64>, CommandError> {
    if let Some(snapshot) = file.snapshot(text) {
        return Ok(snapshot.ns);
    }
    let info = trace_info(&file.trace)?;
    let time = recorded_ns(text, &info).ok().flatten().filter(|_| info.has_clock());
    let error = || CommandError::NoPoint { point: text.to_owned(), path: file.path.clone() };
    time.map(Some).ok_or_else(error)
}
