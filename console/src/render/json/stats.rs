//! `.dump Stats -json`.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use handlescope_model::tables::{Loss, LossKind, TraceInfo};
use serde::Serialize;
use serde_json::Value;

use super::{Array, Document, Shown};
use crate::query::StatsAnswer;
use crate::render::table::Part;
use crate::render::time::Utc7;
use crate::values::JsonMode;

pub(in crate::render) fn stats(
    answers: &[StatsAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let files = answers.iter().zip(parts);
    let files = || files.clone().map(|(answer, part)| file(answer, part));
    super::write(&Document::default().with("files", Array(files)), mode, out)
}

/// The members about a trace that are one value, with their names.
pub(in crate::render) fn stats_members(
    answer: &StatsAnswer<'_>,
) -> serde_json::Result<Vec<(String, Option<String>)>> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        number => Some(number.to_string()),
    };
    let part = &Part::rows_of(0);
    let file = serde_json::to_value(file(answer, part))?;
    let members = file.as_object().into_iter().flatten();
    let single =
        members.filter(|(name, value)| !value.is_array() && !value.is_object() && *name != "file");
    Ok(single.map(|(name, value)| (name.clone(), text(value))).collect())
}

/// A time in which events may be missing.
#[derive(Serialize)]
struct LossJson {
    what: Option<&'static str>,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
    count: Option<u64>,
}

impl LossJson {
    fn new(loss: &Loss) -> Self {
        let what = LossKind::from_code(loss.what).map(LossKind::name);
        Self { what, from_ns: loss.from_ns, to_ns: loss.to_ns, count: loss.count }
    }
}

/// What is known of a trace.
fn file<'a>(answer: &'a StatsAnswer<'_>, part: &Part) -> Document<'a> {
    let info = &answer.info;
    let events = part.own_rows().filter_map(|row| answer.events.get(row));
    let utc = |time: Option<i64>| time.map(|time| Shown(Utc7(time)));
    let recorded = info.recorded_ns().map(RangeInclusive::into_inner);
    let start = info.has_clock().then_some(info.session_start_filetime);
    let has_frequency = info.perf_freq != 0 || !info.is_converted();
    let (events_lost, buffers_lost) = info.losses().unzip();
    Document::default()
        .with("file", answer.index)
        .with("path", answer.path.to_string_lossy())
        .with("source_etl", &info.source_path)
        .with("source_size", info.source_size)
        .with("computer", &info.computer)
        .with("os_version", &info.os_version)
        .with("os_build", info.os_build)
        .with("os_build_string", &info.os_build_string)
        .with("product", &info.product)
        .with("session_start_utc", utc(start))
        .with("session_end_utc", utc(info.session_end_filetime))
        .with("recorded_from_ns", recorded.map(|own| own.0))
        .with("recorded_to_ns", recorded.map(|own| own.1))
        .with("boot_time_utc", utc(info.boot_filetime))
        .with("tz_bias_minutes", info.tz_bias_minutes)
        .with("utc_offset_minutes", info.utc_offset_minutes)
        .with("cpu_count", info.known(info.cpu_count.into()))
        .with("cpu_mhz", info.cpu_mhz)
        .with("memory_mb", info.memory_mb)
        .with("pointer_size", info.known(info.pointer_size.into()))
        .with("clock", &info.clock)
        .with("perf_freq", has_frequency.then_some(info.perf_freq))
        .with("buffer_size", info.known(info.buffer_size.into()))
        .with("buffers", info.known(info.buffers))
        .with("events_total", info.events_total)
        .with("events_lost", events_lost)
        .with("buffers_lost", buffers_lost)
        .with("warnings", &answer.warnings)
        .with("events", events.collect::<Vec<_>>())
        .with("stack_fragments", info.stack_fragments)
        .with("stacks_total", info.stacks_total)
        .with("stacks_distinct", answer.stacks_distinct)
        .with("frames_distinct", answer.frames_distinct)
        .with("frames_in_modules", info.frames_in_modules)
        .with("objects", answer.objects)
        .with("handle_events", answer.handle_events)
        .with("leaked_handles", answer.leaked_handles)
        .with("leaked_views", answer.leaked_views)
        .with("closed_at_exit", answer.closed_at_exit)
        .with("closed_unseen", answer.closed_unseen)
        .with("losses", answer.losses.iter().map(LossJson::new).collect::<Vec<_>>())
        .with("attribution", Attribution::new(info))
        .with("extractor", &info.extractor)
        .with("schema_version", info.schema_version)
}

#[derive(Serialize)]
struct Attribution {
    header: u64,
    stack: u64,
    before_exit: u64,
    system: u64,
    dropped: u64,
}

impl Attribution {
    fn new(info: &TraceInfo) -> Self {
        Self {
            header: info.attributed_header,
            stack: info.attributed_stack,
            before_exit: info.attributed_before_exit,
            system: info.attributed_system,
            dropped: info.attributed_dropped,
        }
    }
}
