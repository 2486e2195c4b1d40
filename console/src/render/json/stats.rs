//! `.dump Stats -json`.

use std::io::{self, Write};

use serde::Serialize;

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
    #[derive(Serialize)]
    struct Document<T> {
        files: T,
    }
    let files = || answers.iter().zip(parts).map(|(answer, part)| FileJson::new(answer, part));
    super::write(&Document { files: Array(files) }, mode, out)
}

#[derive(Serialize)]
struct FileJson<'a> {
    file: usize,
    path: String,
    source_etl: &'a str,
    source_size: u64,
    computer: Option<&'a str>,
    os_version: &'a str,
    os_build: u32,
    os_build_string: Option<&'a str>,
    product: Option<&'a str>,
    session_start_utc: Shown<Utc7>,
    session_end_utc: Option<Shown<Utc7>>,
    boot_time_utc: Option<Shown<Utc7>>,
    tz_bias_minutes: i32,
    utc_offset_minutes: i32,
    cpu_count: u32,
    pointer_size: u32,
    clock: &'a str,
    perf_freq: i64,
    buffer_size: u32,
    buffers: u64,
    events_total: u64,
    events_lost: u64,
    buffers_lost: u64,
    warnings: Vec<WarningJson<'a>>,
    events: Vec<EventJson<'a>>,
    stack_fragments: u64,
    stacks_total: u64,
    stacks_distinct: usize,
    frames_distinct: usize,
    frames_in_modules: u64,
    objects: usize,
    handle_events: usize,
    leaked_handles: usize,
    attribution: Attribution,
    extractor: &'a str,
    schema_version: u32,
}

#[derive(Serialize)]
struct WarningJson<'a> {
    kind: &'a str,
    count: u64,
    first_offset: Option<u64>,
}

#[derive(Serialize)]
struct EventJson<'a> {
    kind: &'a str,
    name: Option<&'a str>,
    count: u64,
}

#[derive(Serialize)]
struct Attribution {
    header: u64,
    stack: u64,
    before_exit: u64,
    system: u64,
    dropped: u64,
}

impl<'a> FileJson<'a> {
    fn new(answer: &'a StatsAnswer<'_>, part: &Part) -> Self {
        let info = &answer.info;
        let warnings = answer.warnings.iter().map(|warning| WarningJson {
            kind: &warning.kind,
            count: warning.count,
            first_offset: warning.first_offset,
        });
        let events = part.own_rows().filter_map(|row| answer.events.get(row));
        let events = events.map(|event| EventJson {
            kind: &event.kind,
            name: event.name.as_deref(),
            count: event.count,
        });
        Self {
            file: answer.index,
            path: answer.path.display().to_string(),
            source_etl: &info.source_path,
            source_size: info.source_size,
            computer: info.computer.as_deref(),
            os_version: &info.os_version,
            os_build: info.os_build,
            os_build_string: info.os_build_string.as_deref(),
            product: info.product.as_deref(),
            session_start_utc: Shown(Utc7(info.session_start_filetime)),
            session_end_utc: info.session_end_filetime.map(|end| Shown(Utc7(end))),
            boot_time_utc: info.boot_filetime.map(|boot| Shown(Utc7(boot))),
            tz_bias_minutes: info.tz_bias_minutes,
            utc_offset_minutes: info.utc_offset_minutes,
            cpu_count: info.cpu_count,
            pointer_size: info.pointer_size,
            clock: &info.clock,
            perf_freq: info.perf_freq,
            buffer_size: info.buffer_size,
            buffers: info.buffers,
            events_total: info.events_total,
            events_lost: info.events_lost,
            buffers_lost: info.buffers_lost,
            warnings: warnings.collect(),
            events: events.collect(),
            stack_fragments: info.stack_fragments,
            stacks_total: info.stacks_total,
            stacks_distinct: answer.stacks_distinct,
            frames_distinct: answer.frames_distinct,
            frames_in_modules: info.frames_in_modules,
            objects: answer.objects,
            handle_events: answer.handle_events,
            leaked_handles: answer.leaked_handles,
            attribution: Attribution {
                header: info.attributed_header,
                stack: info.attributed_stack,
                before_exit: info.attributed_before_exit,
                system: info.attributed_system,
                dropped: info.attributed_dropped,
            },
            extractor: &info.extractor,
            schema_version: info.schema_version,
        }
    }
}
