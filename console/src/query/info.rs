//! The one row about the trace itself.

use handlescope_model::tables::TraceInfo;
use handlescope_model::{ArchiveError, Table, Trace};

use super::columns::{I32s, I64s, Texts, U32s, U64s};

/// Reads the trace table.
pub(crate) fn trace_info(trace: &Trace) -> Result<TraceInfo, ArchiveError> {
    let text = |name| Texts::load(trace, Table::Trace, name).map(|c| c.get(0).map(str::to_owned));
    let u32 = |name| U32s::load(trace, Table::Trace, name).map(|c| c.get(0).unwrap_or_default());
    let u64 = |name| U64s::load(trace, Table::Trace, name).map(|c| c.get(0).unwrap_or_default());
    let i64 = |name| I64s::load(trace, Table::Trace, name).map(|c| c.get(0));
    let i32 = |name| I32s::load(trace, Table::Trace, name).map(|c| c.get(0).unwrap_or_default());
    Ok(TraceInfo {
        schema_version: u32("schema_version")?,
        extractor: text("extractor")?.unwrap_or_default(),
        source_path: text("source_path")?.unwrap_or_default(),
        source_name: text("source_name")?.unwrap_or_default(),
        source_size: u64("source_size")?,
        computer: text("computer")?,
        os_version: text("os_version")?.unwrap_or_default(),
        os_build: u32("os_build")?,
        os_build_string: text("os_build_string")?,
        product: text("product")?,
        clock: text("clock")?.unwrap_or_default(),
        perf_freq: i64("perf_freq")?.unwrap_or_default(),
        cpu_count: u32("cpu_count")?,
        pointer_size: u32("pointer_size")?,
        buffer_size: u32("buffer_size")?,
        log_file_mode: u32("log_file_mode")?,
        session_start_raw: i64("session_start_raw")?.unwrap_or_default(),
        session_start_filetime: i64("session_start_filetime")?.unwrap_or_default(),
        session_end_filetime: i64("session_end_filetime")?,
        boot_filetime: i64("boot_filetime")?,
        tz_bias_minutes: i32("tz_bias_minutes")?,
        utc_offset_minutes: i32("utc_offset_minutes")?,
        buffers: u64("buffers")?,
        events_total: u64("events_total")?,
        events_lost: u64("events_lost")?,
        buffers_lost: u64("buffers_lost")?,
        stack_fragments: u64("stack_fragments")?,
        stacks_total: u64("stacks_total")?,
        frames_in_modules: u64("frames_in_modules")?,
        attributed_header: u64("attributed_header")?,
        attributed_stack: u64("attributed_stack")?,
        attributed_before_exit: u64("attributed_before_exit")?,
        attributed_system: u64("attributed_system")?,
        attributed_dropped: u64("attributed_dropped")?,
    })
}
