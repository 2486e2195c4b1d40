//! `.dump Stats -json`.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use handlescope_model::tables::{Loss, LossKind, TraceInfo};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{Array, Shown};
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
    let files = || answers.iter().zip(parts).map(|(answer, part)| FileJson { answer, part });
    super::write_list("files", files, mode, out)
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
    let file = serde_json::to_value(FileJson { answer, part })?;
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

struct FileJson<'a> {
    answer: &'a StatsAnswer<'a>,
    part: &'a Part,
}

impl Serialize for FileJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { answer, part } = self;
        let info = &answer.info;
        let events = || part.own_rows().filter_map(|row| answer.events.get(row));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &answer.index)?;
        map.serialize_entry("path", &answer.path.to_string_lossy())?;
        map.serialize_entry("source_etl", &info.source_path)?;
        map.serialize_entry("source_size", &info.source_size)?;
        map.serialize_entry("computer", &info.computer)?;
        map.serialize_entry("os_version", &info.os_version)?;
        map.serialize_entry("os_build", &info.os_build)?;
        map.serialize_entry("os_build_string", &info.os_build_string)?;
        map.serialize_entry("product", &info.product)?;
        let start = info.has_clock().then_some(info.session_start_filetime);
        map.serialize_entry("session_start_utc", &start.map(|start| Shown(Utc7(start))))?;
        map.serialize_entry(
            "session_end_utc",
            &info.session_end_filetime.map(|end| Shown(Utc7(end))),
        )?;
        let recorded = info.recorded_ns().map(RangeInclusive::into_inner);
        map.serialize_entry("recorded_from_ns", &recorded.map(|(from_ns, _)| from_ns))?;
        map.serialize_entry("recorded_to_ns", &recorded.map(|(_, to_ns)| to_ns))?;
        map.serialize_entry("boot_time_utc", &info.boot_filetime.map(|boot| Shown(Utc7(boot))))?;
        map.serialize_entry("tz_bias_minutes", &info.tz_bias_minutes)?;
        map.serialize_entry("utc_offset_minutes", &info.utc_offset_minutes)?;
        map.serialize_entry("cpu_count", &info.known(info.cpu_count.into()))?;
        map.serialize_entry("cpu_mhz", &info.cpu_mhz)?;
        map.serialize_entry("memory_mb", &info.memory_mb)?;
        map.serialize_entry("pointer_size", &info.known(info.pointer_size.into()))?;
        map.serialize_entry("clock", &info.clock)?;
        let is_known = info.perf_freq != 0 || !info.is_converted();
        map.serialize_entry("perf_freq", &is_known.then_some(info.perf_freq))?;
        map.serialize_entry("buffer_size", &info.known(info.buffer_size.into()))?;
        map.serialize_entry("buffers", &info.known(info.buffers))?;
        map.serialize_entry("events_total", &info.events_total)?;
        let (events_lost, buffers_lost) = info.losses().unzip();
        map.serialize_entry("events_lost", &events_lost)?;
        map.serialize_entry("buffers_lost", &buffers_lost)?;
        map.serialize_entry("warnings", &answer.warnings)?;
        map.serialize_entry("events", &Array(events))?;
        map.serialize_entry("stack_fragments", &info.stack_fragments)?;
        map.serialize_entry("stacks_total", &info.stacks_total)?;
        map.serialize_entry("stacks_distinct", &answer.stacks_distinct)?;
        map.serialize_entry("frames_distinct", &answer.frames_distinct)?;
        map.serialize_entry("frames_in_modules", &info.frames_in_modules)?;
        map.serialize_entry("objects", &answer.objects)?;
        map.serialize_entry("handle_events", &answer.handle_events)?;
        map.serialize_entry("leaked_handles", &answer.leaked_handles)?;
        map.serialize_entry("leaked_views", &answer.leaked_views)?;
        map.serialize_entry("closed_at_exit", &answer.closed_at_exit)?;
        map.serialize_entry("closed_unseen", &answer.closed_unseen)?;
        map.serialize_entry("losses", &Array(|| answer.losses.iter().map(LossJson::new)))?;
        map.serialize_entry("attribution", &Attribution::new(info))?;
        map.serialize_entry("extractor", &info.extractor)?;
        map.serialize_entry("schema_version", &info.schema_version)?;
        map.end()
    }
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
