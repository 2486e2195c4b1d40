//! The trace itself: where it came from, its clock, its losses.

use std::ops::RangeInclusive;

use super::declare::table;

table! {
    /// Columns of the trace table; always one row.
    TraceInfos => Trace,
    /// Properties of the whole trace.
    TraceInfo {
        /// Layout version of the tables.
        schema_version: u32,
        /// Version of the program that made the extract.
        extractor: String,
        /// Path of the source as given.
        source_path: String,
        /// File name of the `.etl` or dump, even if it was in an archive.
        source_name: String,
        /// Size of the source file.
        ["bytes"] source_size: u64,
        /// Time of the source file's last change, UTC; null if unknown.
        ["100 ns since 1601"] source_modified_filetime: Option<i64>,
        /// Time of the source file's last change, as precise as the file system has it.
        ["ns since 1970"] source_modified_ns: Option<i64>,
        /// Hash of parts of the source file, which tells files of the same name, size and time apart.
        source_content: Option<String>,
        /// Format of the source: minidump for a process dump, handle_list for a list of open handles; otherwise null.
        source_format: Option<String>,
        /// Computer that recorded the trace, if the trace names it.
        computer: Option<String>,
        /// Memory of that computer, if the trace has it.
        ["MiB"] memory_mb: Option<u32>,
        /// Windows version of the recording system, major.minor.
        os_version: String,
        /// Windows build number.
        os_build: u32,
        /// Build string, as in 7601.17640.amd64fre.win7sp1_gdr.110622-1506.
        os_build_string: Option<String>,
        /// Product name, as in Windows 8 Pro.
        product: Option<String>,
        /// Clock of the raw time stamps: qpc, system_time or cpu_cycles; unknown in an extract of ETWAnalyzer; none in text of !htrace and in dumps, where times are only an order.
        clock: String,
        /// Snapshots (!htrace -snapshot) in a source without a clock: the number of events before each.
        snapshots: Option<Vec<u32>>,
        /// Frequency of the performance counter.
        ["ticks per second"] perf_freq: i64,
        /// Number of processors.
        cpu_count: u32,
        /// Clock frequency of the processors.
        ["MHz"] cpu_mhz: Option<u32>,
        /// Pointer size of the recording system; for a dump, of its process.
        ["bytes"] pointer_size: u32,
        /// Buffer size of the session.
        ["bytes"] buffer_size: u32,
        /// Version of the log file format, after that of Windows in its header.
        log_file_version: Option<String>,
        /// Interval of the system timer.
        ["100 ns"] timer_resolution: Option<u32>,
        /// Size limit of the file; 0 if there is none.
        ["MiB"] maximum_file_size: Option<u32>,
        /// Log file mode of the session, a bit mask.
        log_file_mode: u32,
        /// Raw time stamp of the session start.
        ["ticks"] session_start_raw: i64,
        /// Session start, UTC; for a dump, when it was written.
        ["100 ns since 1601"] session_start_filetime: i64,
        /// Session end, UTC; null if the session was never stopped.
        ["100 ns since 1601"] session_end_filetime: Option<i64>,
        /// Time from which the file has all events: later than the session start if a ring overwrote older ones; null if unknown.
        ["ns since session start"] recorded_from_ns: Option<i64>,
        /// Time until which the file has events: the session end, or the last event if a ring overwrote older ones or the session was never stopped; null if unknown.
        ["ns since session start"] recorded_to_ns: Option<i64>,
        /// Boot of the recording system, UTC.
        ["100 ns since 1601"] boot_filetime: Option<i64>,
        /// Time zone of the recording system: UTC = local time + bias, without daylight saving time.
        ["minutes"] tz_bias_minutes: i32,
        /// Local time minus UTC at the session start, with daylight saving time if the zone has it.
        ["minutes"] utc_offset_minutes: i32,
        /// Offsets of local time from UTC by the rules of the time zone in the years around the session: moments from which each applies (100 ns since 1601, UTC) and minutes, as in `133431012000000000:60,133563060000000000:120`.
        utc_offsets: Option<String>,
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
        /// Stacks joined and kept, one for each event with a stack.
        stacks_total: u64,
        /// Distinct frames of the kept stacks that are in a module.
        frames_in_modules: u64,
        /// Events attributed to the process in their header.
        attributed_header: u64,
        /// Events without process and thread, attributed to those of their stack.
        attributed_stack: u64,
        /// Events attributed to an ended process with their process id.
        attributed_before_exit: u64,
        /// Events attributed to System because no process was known.
        attributed_system: u64,
        /// Events dropped because even System was unknown, or because their pid was 0.
        attributed_dropped: u64,
    }
}

/// The clock that shows the system time, which only advances at timer interrupts.
pub const SYSTEM_CLOCK: &str = "system_time";

/// Offsets of the recording system's clocks from UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UtcOffsets {
    /// At the session start, minutes.
    at_start: i32,
    /// The offset in minutes from each moment on (100 ns since 1601, UTC), ascending; empty if only the offset at the
    /// start is known.
    changes: Vec<(i64, i32)>,
}

impl UtcOffsets {
    /// Returns the offsets of a trace.
    pub fn new(info: &TraceInfo) -> Self {
        let changes: Vec<(i64, i32)> = info
            .utc_offsets
            .as_deref()
            .unwrap_or_default()
            .split(',')
            .map_while(|text| {
                let (from, minutes) = text.split_once(':')?;
                Some((from.parse().ok()?, minutes.parse().ok()?))
            })
            .collect();
        let changes = if changes.is_sorted() { changes } else { Vec::new() };
        Self { at_start: info.utc_offset_minutes, changes }
    }

    /// Formats the offsets for the column `utc_offsets`.
    pub fn text(changes: &[(i64, i32)]) -> String {
        let changes = changes.iter().map(|(from, minutes)| format!("{from}:{minutes}"));
        changes.collect::<Vec<_>>().join(",")
    }

    /// Returns the offset in minutes at a time (100 ns since 1601, UTC).
    pub fn minutes_at(&self, filetime: i64) -> i32 {
        let later = self.changes.partition_point(|(from, _)| *from <= filetime);
        let change = self.changes.get(later.saturating_sub(1));
        change.map_or(self.at_start, |(_, minutes)| *minutes)
    }

    /// Returns all distinct offsets.
    pub fn minutes(&self) -> Vec<i32> {
        let mut minutes: Vec<i32> = self.changes.iter().map(|(_, minutes)| *minutes).collect();
        minutes.push(self.at_start);
        minutes.sort_unstable();
        minutes.dedup();
        minutes
    }
}

/// The clock of a trace whose clock is unknown, because an extract of another program does not record it.
pub const UNKNOWN_CLOCK: &str = "unknown";

/// The clock of a source without times; the times in its tables are event numbers.
pub const NO_CLOCK: &str = "none";

/// The [format](TraceInfo::source_format) of a minidump.
pub const MINIDUMP: &str = "minidump";

/// The [format](TraceInfo::source_format) of a text that lists open handles but no operations on them.
pub const HANDLE_LIST: &str = "handle_list";

/// `EVENT_TRACE_FILE_MODE_CIRCULAR`, where new buffers of the file overwrite the oldest ones, and
/// `EVENT_TRACE_BUFFERING_MODE`, where the session keeps its last buffers in memory.
const RING_MODES: u32 = 0x2 | 0x400;

/// Whether a session with this log file mode overwrites its oldest events.
pub fn is_ring(log_file_mode: u32) -> bool {
    log_file_mode & RING_MODES != 0
}

/// `EVENT_TRACE_RELOG_MODE`, which a merge sets in place of the session's mode.
const MERGED_MODE: u32 = 0x1_0000;

/// Whether a file with this log file mode was merged or relogged. Then neither its mode nor its buffer numbers are
/// those of the session.
pub fn is_merged(log_file_mode: u32) -> bool {
    log_file_mode & MERGED_MODE != 0
}

impl TraceInfo {
    /// Whether this was converted from the output of another program, which lacks some figures of a trace.
    pub fn is_converted(&self) -> bool {
        self.clock == UNKNOWN_CLOCK || !self.has_clock()
    }

    /// Returns the session start as FILETIME, if known. Even a source without a clock may have been written at a known
    /// time.
    pub fn start_filetime(&self) -> Option<i64> {
        (self.has_clock() || self.session_start_filetime != 0)
            .then_some(self.session_start_filetime)
    }

    /// Whether the times in the tables are real times, and not only an order.
    pub fn has_clock(&self) -> bool {
        self.clock != NO_CLOCK
    }

    /// Whether this came from a minidump.
    pub fn is_dump(&self) -> bool {
        self.source_format.as_deref() == Some(MINIDUMP)
    }

    /// Whether this came from a list of open handles.
    pub fn is_list(&self) -> bool {
        self.source_format.as_deref() == Some(HANDLE_LIST)
    }

    /// Whether this shows the handles of one moment: all that were open then, whatever is known of their opening.
    pub fn is_of_one_moment(&self) -> bool {
        self.is_dump() || self.is_list()
    }

    /// Returns the time range the file covers, in nanoseconds since session start. It is shorter than the session if a
    /// ring overwrote its older events. Everything that is counted by time uses this range.
    ///
    /// An archive of another program does not have it, so the session is used. Returns `None` if its end is unknown,
    /// too, or there is no clock.
    pub fn recorded_ns(&self) -> Option<RangeInclusive<i64>> {
        let from_ns = self.recorded_from_ns.unwrap_or_default();
        let to_ns =
            self.recorded_to_ns.or_else(|| self.length_ns()).filter(|_| self.has_clock())?;
        Some(from_ns..=to_ns.max(from_ns))
    }

    /// Returns the longest time that the clock stands still, in nanoseconds; events within it may have equal time
    /// stamps. `None` for a clock that never does.
    pub fn clock_step_ns(&self) -> Option<i64> {
        let ticks = self.timer_resolution.filter(|ticks| *ticks > 1)?;
        (self.clock == SYSTEM_CLOCK).then_some(i64::from(ticks) * 100)
    }

    /// Returns the length of the session in nanoseconds, if its end is known.
    pub fn length_ns(&self) -> Option<i64> {
        let ticks = self.session_end_filetime?.checked_sub(self.session_start_filetime)?;
        ticks.checked_mul(100).filter(|length| *length >= 0)
    }

    /// Returns the version of the system, if known.
    pub fn known_os_version(&self) -> Option<&str> {
        Some(self.os_version.as_str()).filter(|version| !version.is_empty())
    }

    /// Whether the offset of local time from UTC is known. Dumps may lack it, and text never has it.
    pub fn knows_utc_offset(&self) -> bool {
        self.has_clock() || self.utc_offsets.is_some() || self.utc_offset_minutes != 0
    }

    /// Returns a figure that is never 0 in a real trace, if it is known.
    pub fn known(&self, figure: u64) -> Option<u64> {
        (figure != 0 || !self.is_converted()).then_some(figure)
    }

    /// Returns the numbers of lost events and buffers, if known. An extract that lacks even the number of buffers does
    /// not record them.
    pub fn losses(&self) -> Option<(u64, u64)> {
        let is_known =
            self.known(self.buffers).is_some() || self.events_lost > 0 || self.buffers_lost > 0;
        is_known.then_some((self.events_lost, self.buffers_lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_time_is_the_session_unless_the_trace_says_more() {
        let session = TraceInfo {
            clock: "qpc".to_owned(),
            session_start_filetime: 5,
            session_end_filetime: Some(15),
            ..TraceInfo::default()
        };
        assert_eq!(session.recorded_ns(), Some(0..=1_000));
        let (recorded_from_ns, recorded_to_ns) = (Some(700), Some(980));
        let ring = TraceInfo { recorded_from_ns, recorded_to_ns, ..session.clone() };
        assert_eq!(ring.recorded_ns(), Some(700..=980));
        let open = TraceInfo { session_end_filetime: None, ..ring.clone() };
        assert_eq!(open.recorded_ns(), Some(700..=980));
        assert_eq!(TraceInfo { recorded_to_ns: None, ..open }.recorded_ns(), None);
        assert_eq!(
            TraceInfo { recorded_to_ns: Some(3), ..ring.clone() }.recorded_ns(),
            Some(700..=700)
        );
        assert_eq!(TraceInfo { clock: NO_CLOCK.to_owned(), ..ring }.recorded_ns(), None);
    }

    #[test]
    fn offsets_hold_from_their_moment_on_and_that_of_the_start_where_nothing_else_is_known() {
        let utc_offsets = Some(UtcOffsets::text(&[(10, 60), (20, 120), (30, 60)]));
        let info = TraceInfo { utc_offset_minutes: 120, utc_offsets, ..TraceInfo::default() };
        let offsets = UtcOffsets::new(&info);
        let minutes = [0, 10, 19, 20, 29, 30, 99].map(|at| offsets.minutes_at(at));
        assert_eq!(minutes, [60, 60, 60, 120, 120, 60, 60]);
        assert_eq!(offsets.minutes(), [60, 120]);
        for text in [None, Some("nonsense".to_owned()), Some("9:1,8:2".to_owned())] {
            let offsets = UtcOffsets::new(&TraceInfo { utc_offsets: text, ..info.clone() });
            assert_eq!((offsets.minutes_at(25), offsets.minutes()), (120, vec![120]));
        }
    }

    #[test]
    fn a_converted_extract_knows_its_losses_when_it_knows_its_buffers() {
        let trace = TraceInfo { clock: "qpc".to_owned(), ..TraceInfo::default() };
        assert_eq!((trace.losses(), trace.known(0)), (Some((0, 0)), Some(0)));
        let converted = TraceInfo { clock: UNKNOWN_CLOCK.to_owned(), ..TraceInfo::default() };
        assert_eq!((converted.losses(), converted.known(0)), (None, None));
        assert_eq!(TraceInfo { buffers: 7, ..converted.clone() }.losses(), Some((0, 0)));
        assert_eq!(TraceInfo { events_lost: 1, ..converted }.losses(), Some((1, 0)));
    }
}
