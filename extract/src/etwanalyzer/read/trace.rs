//! The trace table, and what was counted.

use std::path::Path;

use handlescope_model::tables::{
    self, EventCount, EventCounts, Losses, Threads, TraceInfo, Volumes, Warning, Warnings,
};
use handlescope_model::{EventKind, SCHEMA_VERSION, rules::HANDLE_RUNDOWN_END};

use super::super::records::Main;
use super::super::words::log_file_mode;
use super::objects::Figures;
use super::time::Time;

/// What is in the trace table besides what the main part says.
pub(super) struct TraceFigures {
    pub(super) source_size: u64,
    pub(super) stacks_total: u64,
    pub(super) frames_in_modules: u64,
    pub(super) events: u64,
}

/// The row of the trace table.
pub(super) fn info(input: &Path, main: &Main, figures: &TraceFigures) -> TraceInfo {
    let header = &main.header;
    let version: Vec<&str> = main.version.as_deref().unwrap_or_default().split('.').collect();
    let build = version.get(2).and_then(|build| build.parse().ok()).or(header.build);
    let start = Time::of(&main.start);
    let utc = |time| Time::of(time).zip(start).map(|(time, start)| time.utc(start));
    let offset = start.map_or(0, Time::offset);
    let name = main.source.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    let own_name = || input.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(own) = main.own.trace.as_ref().filter(|_| main.is_own()) {
        return TraceInfo { schema_version: SCHEMA_VERSION, ..own.clone() };
    }
    TraceInfo {
        schema_version: SCHEMA_VERSION,
        extractor: format!("handlescope {}", env!("CARGO_PKG_VERSION")),
        source_path: input.to_string_lossy().into_owned(),
        source_name: name.unwrap_or_else(own_name),
        source_size: figures.source_size,
        computer: main.computer.clone(),
        os_version: version.get(..2).map(|parts| parts.join(".")).unwrap_or_default(),
        os_build: build.unwrap_or_default(),
        os_build_string: main.build.clone(),
        product: main.product.clone(),
        clock: tables::UNKNOWN_CLOCK.to_owned(),
        cpu_count: main.cpus.unwrap_or_default(),
        memory_mb: main.memory_mb.filter(|size| *size > 0),
        cpu_mhz: main.cpu_mhz.filter(|mhz| *mhz > 0),
        log_file_version: header.format(),
        timer_resolution: header.timer_resolution,
        maximum_file_size: header.maximum_file_size,
        buffer_size: header.buffer_size.unwrap_or_default(),
        log_file_mode: header.log_file_mode.as_deref().map_or(0, log_file_mode),
        session_start_filetime: utc(&main.start).unwrap_or_default(),
        session_end_filetime: utc(&main.end),
        boot_filetime: utc(&main.boot),
        tz_bias_minutes: -offset,
        utc_offset_minutes: offset,
        buffers: header.buffers_written.unwrap_or_default(),
        events_total: figures.events,
        events_lost: header.events_lost.unwrap_or_default(),
        buffers_lost: header.buffers_lost.unwrap_or_default(),
        stacks_total: figures.stacks_total,
        frames_in_modules: figures.frames_in_modules,
        ..TraceInfo::default()
    }
}

/// How often each kind of event is in the file.
pub(super) fn event_counts(main: &Main, figures: &Figures, existing: u64) -> EventCounts {
    if main.is_own() {
        return main.own.event_counts.0.iter().cloned().collect();
    }
    let kinds = EventKind::ALL.iter().zip(figures.kinds);
    let kinds = kinds.map(|(kind, count)| (kind.name(), kind.event_name(), count));
    let all = kinds.chain([("existing", HANDLE_RUNDOWN_END, existing)]);
    all.filter(|(.., count)| *count > 0)
        .map(|(kind, name, count)| {
            let (kind, name) = (format!("etwanalyzer:{kind}"), Some(name.to_owned()));
            EventCount { kind, name, count, ..EventCount::default() }
        })
        .collect()
}

/// What was missing or odd, after what our own extract says of the trace.
pub(super) fn warnings(main: &Main, found: &[Warning]) -> Warnings {
    let own = main.own.warnings.0.iter().filter(|_| main.is_own());
    own.chain(found).cloned().collect()
}

/// Drive letters, which only our own extract has.
pub(super) fn volumes(main: &Main) -> Volumes {
    main.own.volumes.0.iter().filter(|_| main.is_own()).cloned().collect()
}

/// When events may be missing, which only our own extract says.
pub(super) fn losses(main: &Main) -> Losses {
    main.own.losses.0.iter().filter(|_| main.is_own()).cloned().collect()
}

/// Threads, which only our own extract has.
pub(super) fn threads(main: &Main) -> Threads {
    main.own.threads.0.iter().filter(|_| main.is_own()).cloned().collect()
}
