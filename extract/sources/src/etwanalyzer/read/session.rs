//! Reads the main part: the session, processes by their number in the file, and counts.
//!
//! Times are in ETWAnalyzer's format: ISO 8601 with the offset of the recording machine.

use std::path::Path;

use handlescope_extract::filetime::{PER_SECOND, of_date_time};
use handlescope_extract::lifecycle::{Lifetime, ProcessIndex};
use handlescope_model::tables::{self, Process, Processes, TraceInfo, Warning, Warnings};
use handlescope_model::{ProcessIdx, SCHEMA_VERSION};
use jiff::fmt::temporal::Pieces;

use super::super::record::Rows;
use super::super::records::{Header, Main, ProcessRecord, log_file_mode};

impl Main {
    pub fn processes(&self) -> &[ProcessRecord] {
        self.processes.as_deref().unwrap_or_default()
    }

    /// Whether this program wrote the extract, in the current layout.
    pub fn is_by_handlescope(&self) -> bool {
        let version = self.handlescope.trace.as_ref().map(|trace| trace.schema_version);
        version == Some(SCHEMA_VERSION)
            && self.handlescope.processes.0.len() <= self.processes().len()
    }

    /// Whether another version of this program wrote it. Then its tables are not read, but all other members are.
    pub fn is_of_another_version(&self) -> bool {
        self.handlescope.trace.as_ref().is_some_and(|trace| trace.schema_version != SCHEMA_VERSION)
    }
}

impl Header {
    /// The version of the log file format.
    pub fn format(&self) -> Option<String> {
        Some(format!("{}.{}", self.sub_version?, self.sub_minor_version?))
    }
}

impl ProcessRecord {
    pub fn pid(&self) -> u32 {
        self.pid.unwrap_or_default() as u32
    }

    pub fn parent_pid(&self) -> u32 {
        self.parent_pid.unwrap_or_default() as u32
    }

    /// Returns the start time, if it was observed.
    fn seen_start(&self) -> Option<Time> {
        Time::new(&self.start).filter(|_| self.is_new != Some(false))
    }

    /// Returns the end time, if it was observed.
    fn seen_end(&self) -> Option<Time> {
        Time::new(&self.end).filter(|_| self.has_ended != Some(false))
    }
}

/// Values of the trace table that the main part does not have.
pub struct TraceStats {
    pub source_size: u64,
    pub stacks_total: u64,
    pub frames_in_modules: u64,
    pub events: u64,
}

/// Returns the row of the trace table.
pub fn info(input: &Path, main: &Main, stats: &TraceStats) -> TraceInfo {
    let header = &main.header;
    let version: Vec<&str> = main.version.as_deref().unwrap_or_default().split('.').collect();
    let build = version.get(2).and_then(|build| build.parse().ok()).or(header.build);
    let start = Time::new(&main.start);
    let utc = |time| Time::new(time).zip(start).map(|(time, start)| time.utc(start));
    let offset = start.map_or(0, Time::offset);
    let name = main.source.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    if let Some(trace) = main.handlescope.trace.as_ref().filter(|_| main.is_by_handlescope()) {
        return trace.clone();
    }
    TraceInfo {
        schema_version: SCHEMA_VERSION,
        extractor: format!("handlescope {}", env!("CARGO_PKG_VERSION")),
        source_path: input.to_string_lossy().into_owned(),
        source_name: name.unwrap_or_else(|| {
            input.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }),
        source_size: stats.source_size,
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
        events_total: stats.events,
        events_lost: header.events_lost.unwrap_or_default(),
        buffers_lost: header.buffers_lost.unwrap_or_default(),
        stacks_total: stats.stacks_total,
        frames_in_modules: stats.frames_in_modules,
        ..TraceInfo::default()
    }
}

/// Returns the rows of one of our own tables, if this program wrote the extract.
pub fn handlescope_rows<R: Clone, T: FromIterator<R>>(main: &Main, rows: &Rows<R>) -> T {
    rows.0.iter().filter(|_| main.is_by_handlescope()).cloned().collect()
}

/// Returns the warnings recorded in our own extract, followed by those of the import.
pub fn warnings(main: &Main, findings: &[Warning]) -> Warnings {
    main.handlescope
        .warnings
        .0
        .iter()
        .filter(|_| main.is_by_handlescope())
        .chain(findings)
        .cloned()
        .collect()
}

/// The processes of an extract. Their numbers are rows of the processes table.
pub struct ProcessRows {
    lifetimes: Vec<Lifetime>,
    index: ProcessIndex,
}

impl ProcessRows {
    pub fn new(main: &Main, session: Option<Time>) -> Self {
        let since =
            |time: Option<Time>| time.zip(session).and_then(|(time, start)| time.since(start));
        // Our own rows have times in nanoseconds.
        let exact = |process: &Process| Lifetime {
            pid: process.pid,
            parent_pid: process.parent_pid,
            start: process.start_ns,
            since: None,
            end: process.end_ns,
        };
        let lifetimes: Vec<Lifetime> = if main.is_by_handlescope() {
            main.handlescope.processes.0.iter().map(exact).collect()
        } else {
            main.processes()
                .iter()
                .map(|process| Lifetime {
                    pid: process.pid(),
                    parent_pid: process.parent_pid(),
                    start: since(process.seen_start()),
                    since: None,
                    end: since(process.seen_end()),
                })
                .collect()
        };
        let index = ProcessIndex::from_rows(lifetimes.iter().copied());
        Self { lifetimes, index }
    }

    /// Returns the process with this number, if there is one.
    pub fn row(&self, number: Option<i64>) -> Option<ProcessIdx> {
        let row = ProcessIdx(u32::try_from(number?).ok()?);
        (row.row() < self.lifetimes.len()).then_some(row)
    }

    /// Whether a process had ended by some time.
    pub fn has_ended(&self, process: ProcessIdx, time_ns: i64) -> bool {
        let lifetime = self.lifetimes.get(process.row());
        lifetime.and_then(|lifetime| lifetime.end).is_some_and(|end| end <= time_ns)
    }

    /// Returns the process id of a row; 0 if there is none.
    pub fn pid(&self, process: ProcessIdx) -> u32 {
        self.lifetimes.get(process.row()).map_or(0, |process| process.pid)
    }

    /// Returns the row of System.
    pub fn system(&self) -> Option<ProcessIdx> {
        self.index.system().map(ProcessIdx)
    }

    /// Returns the child that inherits a handle its parent duplicates at some time.
    pub fn inheriting_child(&self, parent: ProcessIdx, time_ns: i64) -> Option<ProcessIdx> {
        let parent = self.lifetimes.get(parent.row())?;
        self.index
            .inheriting_child(parent.pid, parent.end, time_ns, |_| Some(false))
            .map(ProcessIdx)
    }

    pub fn table(&self, main: &Main) -> Processes {
        if main.is_by_handlescope() {
            return main.handlescope.processes.0.iter().cloned().collect();
        }
        let row = |(record, lifetime): (&ProcessRecord, &Lifetime)| Process {
            pid: record.pid(),
            parent_pid: record.parent_pid(),
            name: record.name.clone().unwrap_or_default(),
            command_line: record.command_line.clone().unwrap_or_default(),
            session_id: record.session_id.and_then(|id| u32::try_from(id).ok()),
            sid: record.identity.clone().filter(|sid| !sid.is_empty()),
            start_ns: lifetime.start,
            end_ns: lifetime.end,
            exit_code: record.exit_code.map(|code| code as i32),
            ..Process::default()
        };
        main.processes().iter().zip(&self.lifetimes).map(row).collect()
    }
}

/// FILETIME of 1602. In some time zone, earlier times are ETWAnalyzer's "never".
const EARLIEST: i64 = 366 * 24 * 3600 * PER_SECOND;

/// FILETIME of 9000. Later times are ETWAnalyzer's "never ended".
const LATEST: i64 = 2_335_000_000_000_000_000;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// 100 ns since 1601: UTC if an offset was written, otherwise wall-clock time.
    filetime: i64,
    /// Local time minus UTC in minutes, if it was written.
    offset: Option<i32>,
}

impl Time {
    /// Reads an optional time; one that cannot be read is unknown.
    pub fn new(text: &Option<String>) -> Option<Time> {
        text.as_deref().and_then(Time::parse)
    }

    /// Reads a time. The minimum and the maximum mean unknown and give `None`.
    fn parse(text: &str) -> Option<Time> {
        let pieces = Pieces::parse(text).ok()?;
        let offset = pieces.to_numeric_offset().map(|offset| offset.seconds() / 60);
        let written = of_date_time(pieces.date().to_datetime(pieces.time()?))?;
        let filetime = written.checked_sub(minutes(offset.unwrap_or(0)))?;
        (EARLIEST..LATEST).contains(&filetime).then_some(Time { filetime, offset })
    }

    /// Local time minus UTC in minutes; 0 if it was not written, so that the wall-clock time stays.
    pub fn offset(self) -> i32 {
        self.offset.unwrap_or(0)
    }

    /// Returns 100 ns since 1601, UTC. A time without offset gets that of the session.
    pub fn utc(self, session: Time) -> i64 {
        let missing = if self.offset.is_some() { 0 } else { session.offset() };
        self.filetime.saturating_sub(minutes(missing))
    }

    /// Returns nanoseconds since the session started.
    pub fn since(self, session: Time) -> Option<i64> {
        self.utc(session).checked_sub(session.utc(session))?.checked_mul(100)
    }
}

/// Converts minutes to FILETIME units.
fn minutes(minutes: i32) -> i64 {
    i64::from(minutes) * 60 * PER_SECOND
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;

    use super::super::super::record::Fill;
    use super::*;

    fn main(text: &str) -> Main {
        let mut main = Main::default();
        Fill(&mut main)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        main
    }

    #[test]
    fn the_smallest_file_is_enough() {
        let main = main(r#"{"SessionStart":"2024-05-10T12:46:34+02:00","Processes":[]}"#);
        assert!(Time::new(&main.start).is_some() && main.processes.is_some());
    }

    #[test]
    fn an_old_process_has_fewer_properties_than_a_new_process() {
        let main = main(
            r#"{"Processes":[
                {"ProcessID":4,"StartTime":"0001-01-01T00:00:00+00:00","StartStopTags":"x"},
                {"ProcessID":5,"ParentPid":-1,"ReturnCode":-1073741819,"IsNew":true,"HasEnded":true,
                 "EndTime":"2024-05-10T12:46:34+02:00","CmdLine":null,"Brand":{"New":[1]}}]}"#,
        );
        let [old, new] = main.processes() else { panic!("two processes") };
        assert_eq!((old.pid(), old.seen_start(), old.seen_end()), (4, None, None));
        assert_eq!((new.parent_pid(), new.exit_code), (u32::MAX, Some(-1_073_741_819)));
        assert!(new.seen_end().is_some() && new.command_line.is_none());
    }

    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
    }

    #[test]
    fn the_offset_is_kept_and_all_digits_count() {
        let start = time("2024-05-10T12:46:34+02:00");
        assert_eq!(start.offset(), 120);
        assert_eq!(start.utc(start), 133_598_115_940_000_000);
        let later = time("2024-05-10T10:46:36.1234567Z");
        assert_eq!(later.since(start), Some(2_123_456_700));
    }

    #[test]
    fn without_offset_the_wall_clock_of_the_session_is_meant() {
        let start = time("2024-05-10T12:46:34+02:00");
        assert_eq!(time("2024-05-10T12:46:35").since(start), Some(1_000_000_000));
        let bare = time("2024-05-10T12:46:34.5");
        assert_eq!((bare.offset(), bare.since(bare)), (0, Some(0)));
    }

    #[test]
    fn the_ends_of_time_are_unknown_times() {
        for text in [
            "0001-01-01T00:00:00+00:00",
            "9999-12-31T23:59:59.9999999+00:00",
            "0001-01-01T00:00:00+01:00",
            "",
            "yesterday",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
