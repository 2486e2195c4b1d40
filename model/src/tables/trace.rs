//! The trace itself: where it came from, its clock, its losses.

use super::declare::table;

table! {
    /// Columns of the trace table; always one row.
    TraceInfos => Trace,
    /// What is known of the trace as a whole.
    TraceInfo {
        /// Layout version of the tables.
        schema_version: u32,
        /// Version of the program that made the extract.
        extractor: String,
        /// Path of the source as it was given.
        source_path: String,
        /// File name of the `.etl`, also when it lay in an archive.
        source_name: String,
        /// Size of the source file.
        ["bytes"] source_size: u64,
        /// When the source file was changed last, UTC; null where nobody looked.
        ["100 ns since 1601"] source_modified_filetime: Option<i64>,
        /// Computer that recorded the trace, where the trace says so.
        computer: Option<String>,
        /// Memory of that computer, where the trace says so.
        ["MB"] memory_mb: Option<u32>,
        /// Windows version of the recording system, major.minor.
        os_version: String,
        /// Windows build number.
        os_build: u32,
        /// Build string, as in 7601.17640.amd64fre.win7sp1_gdr.110622-1506.
        os_build_string: Option<String>,
        /// Product name, as in Windows 8 Pro.
        product: Option<String>,
        /// Clock of the raw time stamps: qpc, system_time or cpu_cycles; unknown in an extract of ETWAnalyzer.
        clock: String,
        /// Frequency of the performance counter.
        ["ticks per second"] perf_freq: i64,
        /// Number of processors.
        cpu_count: u32,
        /// Clock frequency of the processors.
        ["MHz"] cpu_mhz: Option<u32>,
        /// Pointer size of the recording system.
        ["bytes"] pointer_size: u32,
        /// Buffer size of the session.
        ["bytes"] buffer_size: u32,
        /// Version of the log file format, behind that of Windows in its header.
        log_file_version: Option<String>,
        /// Interval of the system timer.
        ["100 ns"] timer_resolution: Option<u32>,
        /// Largest size the file was allowed to have; 0 for any.
        ["MB"] maximum_file_size: Option<u32>,
        /// Log file mode of the session, a bit mask.
        log_file_mode: u32,
        /// Raw time stamp of the session start.
        ["ticks"] session_start_raw: i64,
        /// Session start, UTC.
        ["100 ns since 1601"] session_start_filetime: i64,
        /// Session end, UTC; null when the session was never closed.
        ["100 ns since 1601"] session_end_filetime: Option<i64>,
        /// Boot of the recording system, UTC.
        ["100 ns since 1601"] boot_filetime: Option<i64>,
        /// Time zone of the recording system: UTC = local time + bias, without summer time.
        ["minutes"] tz_bias_minutes: i32,
        /// Local time minus UTC at the session start, with summer time where the zone has it.
        ["minutes"] utc_offset_minutes: i32,
        /// Buffers found in the file.
        buffers: u64,
        /// Events found in the file.
        events_total: u64,
        /// Events the session lost, from its header.
        events_lost: u64,
        /// Buffers the session lost, from its header.
        buffers_lost: u64,
        /// Stack events of any kind in the file.
        stack_fragments: u64,
        /// Stacks joined and kept, one per event that has one.
        stacks_total: u64,
        /// Distinct frames of the kept stacks that lie in a module.
        frames_in_modules: u64,
        /// Events whose process came from their own header.
        attributed_header: u64,
        /// Events without process and thread that took them from their stack.
        attributed_stack: u64,
        /// Events given to the process that had ended up to 2 ms before.
        attributed_before_exit: u64,
        /// Events given to System because no process was known.
        attributed_system: u64,
        /// Events dropped because not even System was known, or because their pid was 0.
        attributed_dropped: u64,
    }
}
