//! Writes the main part: machine, session and processes.
//!
//! Times are in ETWAnalyzer's format: ISO 8601 with the offset of the recording machine.

use handlescope_extract::filetime::date_time;
use handlescope_model::history::StartHandle;
use handlescope_model::tables::{
    Acquisitions, End, EventCounts, Losses, ObjectTypes, Objects, Process, Processes, Threads,
    TraceInfo, Volumes, Warnings, Zombies,
};
use handlescope_model::{
    ArchiveError, EventOrder, ObjectIdx, ProcessIdx, TableRows, Texts, Trace, TypeId,
};
use jiff::SignedDuration;

use super::super::record::{Rows, Unread};
use super::super::records::{
    HANDLESCOPE_OPTIONS, HandleShell, HandlescopeMain, Header, Main, NamedStartHandle,
    ProcessRecord, SYSTEM, StacksShell, TypeMap, log_file_mode_names,
};

/// Inputs of the main part.
pub struct MainPart<'a> {
    pub info: &'a TraceInfo,
    pub processes: &'a Processes,
    pub event_counts: &'a EventCounts,
    pub warnings: &'a Warnings,
    pub volumes: &'a Volumes,
    pub threads: &'a Threads,
    pub zombies: &'a Zombies,
    pub losses: &'a Losses,
    pub start_handles: &'a [StartHandle],
    pub names: &'a Texts,
    /// Time of the last event, ns since session start.
    pub last_event_ns: i64,
    /// The types, if there are no objects and so no handle part to hold them.
    pub types_without_objects: Option<&'a ObjectTypes>,
}

/// Returns the handles listed by the start rundown.
pub fn start_handles(trace: &Trace, order: &EventOrder) -> Result<Vec<StartHandle>, ArchiveError> {
    let object = trace.values(Acquisitions::object)?;
    let process = trace.values(Acquisitions::process)?;
    let (key, end) = (trace.values(Acquisitions::key)?, trace.codes(Acquisitions::end)?);
    let (pointer, name) = (trace.values(Objects::pointer)?, trace.values(Objects::name)?);
    let (type_id, pid) = (trace.values(Objects::type_id)?, trace.values(Processes::pid)?);
    let handles = order.listed_at_start.iter().map(|row| {
        let row = *row as usize;
        let of = object.get(row).map_or(usize::MAX, ObjectIdx::row);
        let process = process.get(row);
        let open = u8::try_from(End::Open.code()).ok();
        StartHandle {
            pointer: pointer.get(of).unwrap_or_default(),
            process,
            pid: process.and_then(|it: ProcessIdx| pid.get(it.row())).unwrap_or_default(),
            handle: key.get(row).unwrap_or_default(),
            type_id: type_id.get(of).unwrap_or(TypeId(0)),
            name: name.get(of),
            closed: end.get(row).copied() != open,
        }
    });
    Ok(handles.collect())
}

/// Returns the index of the process under which kernel modules are listed; the number of processes if it must be added.
pub fn system_process(processes: &Processes) -> usize {
    processes.name.iter().position(|name| name == SYSTEM).unwrap_or(processes.len())
}

impl MainPart<'_> {
    fn clock(&self) -> WallClock {
        WallClock {
            session_start: self.info.session_start_filetime,
            offset_minutes: self.info.utc_offset_minutes,
        }
    }

    /// Returns the processes, followed by System if it is missing, because ETWAnalyzer looks for kernel modules there.
    fn processes(&self) -> Vec<ProcessRecord> {
        let clock = self.clock();
        let is_missing = system_process(self.processes) == self.processes.len();
        let system =
            is_missing.then(|| Process { pid: 4, name: SYSTEM.into(), ..Process::default() });
        self.processes.rows().chain(system).map(|process| record(process, clock)).collect()
    }

    fn header(&self) -> Header {
        let info = self.info;
        let [major, minor] = major_minor(&info.os_version).unwrap_or_default();
        let format = info.log_file_version.as_deref().and_then(major_minor).unwrap_or_default();
        let byte = |number: u32| u8::try_from(number).unwrap_or_default();
        let bits = |count: u64| Some(count.min(u32::MAX.into()));
        Header {
            buffer_size: Some(info.buffer_size),
            major_version: Unread(byte(major)),
            minor_version: Unread(byte(minor)),
            sub_version: Some(byte(format[0]).into()),
            sub_minor_version: Some(byte(format[1]).into()),
            build: Some(info.os_build),
            timer_resolution: Some(info.timer_resolution.unwrap_or_default()),
            maximum_file_size: Some(info.maximum_file_size.unwrap_or_default()),
            log_file_mode: Some(log_file_mode_names(info.log_file_mode)),
            buffers_written: bits(info.buffers),
            events_lost: bits(info.events_lost),
            buffers_lost: bits(info.buffers_lost),
        }
    }

    fn handlescope(&self) -> HandlescopeMain {
        let start_handle = |handle: StartHandle| NamedStartHandle {
            pointer: handle.pointer,
            process: handle.process,
            pid: handle.pid,
            handle: handle.handle,
            type_id: handle.type_id,
            name: handle.name.and_then(|name| self.names.get(name.row())).map(str::to_owned),
            closed: handle.closed,
        };
        HandlescopeMain {
            trace: Some(self.info.clone()),
            processes: Rows(self.processes.rows().collect()),
            event_counts: Rows(self.event_counts.rows().collect()),
            warnings: Rows(self.warnings.rows().collect()),
            start_handles: Rows(self.start_handles.iter().cloned().map(start_handle).collect()),
            volumes: Rows(self.volumes.rows().collect()),
            threads: Rows(self.threads.rows().collect()),
            zombies: Rows(self.zombies.rows().collect()),
            losses: Rows(self.losses.rows().collect()),
        }
    }

    /// Returns the part as it is written.
    pub fn record(&self) -> Main {
        let (info, clock) = (self.info, self.clock());
        let version = env!("CARGO_PKG_VERSION");
        let end = info.session_end_filetime;
        // A session that was not closed has no end; the last event is the closest.
        let end = end.map_or_else(|| clock.at(self.last_event_ns), |end| clock.time(end));
        let boot = info.boot_filetime.map_or_else(|| MINIMUM.into(), |boot| clock.time(boot));
        Main {
            source: Some(source(info)),
            options: Some(format!(
                "{HANDLESCOPE_OPTIONS} {version} -extract ObjectRef -etwanalyzer"
            )),
            computer: info.computer.clone(),
            product: info.product.clone(),
            build: info.os_build_string.as_deref().map(|build| branch(build).to_owned()),
            version: Some(os_version(info)),
            memory_mb: Some(info.memory_mb.unwrap_or_default()),
            cpus: Some(info.cpu_count),
            cpu_mhz: Some(info.cpu_mhz.unwrap_or_default()),
            // Windows has up to 64 processors per group.
            cpu_groups: Unread(info.cpu_count.div_ceil(64).max(1)),
            start: Some(clock.time(info.session_start_filetime)),
            end: Some(end),
            boot: Some(boot),
            header: self.header(),
            processes: Some(self.processes()),
            handle_data: self.types_without_objects.map(|types| {
                Unread(HandleShell {
                    object_type_map: TypeMap(types.clone()),
                    object_references: [],
                    stacks: StacksShell::default(),
                })
            }),
            handlescope: self.handlescope(),
            ..Main::default()
        }
    }
}

/// Converts a process; its times are by the clock of the recording machine.
fn record(process: Process, clock: WallClock) -> ProcessRecord {
    let time = |time: Option<i64>, unknown: &str| {
        Some(time.map_or_else(|| unknown.to_owned(), |time| clock.at(time)))
    };
    ProcessRecord {
        pid: Some(process.pid.into()),
        name: Some(process.name).filter(|name| !name.is_empty()),
        command_line: Some(process.command_line),
        start: time(process.start_ns, MINIMUM),
        end: time(process.end_ns, MAXIMUM),
        identity: Some(process.sid.unwrap_or_default()),
        session_id: Some(process.session_id.map_or(0, |session| session as i32).into()),
        has_ended: Some(process.end_ns.is_some()),
        is_new: Some(process.start_ns.is_some()),
        exit_code: process.exit_code.map(i64::from),
        parent_pid: Some((process.parent_pid as i32).into()),
    }
}

/// Returns the path of the trace. A trace in an archive gets the archive's folder and its own name.
fn source(info: &TraceInfo) -> String {
    let folder = info.source_path.rfind(['/', '\\']).and_then(|at| info.source_path.get(..=at));
    format!("{}{}", folder.unwrap_or_default(), info.source_name)
}

/// Returns the branch of a build: `ge_release` of 26100.4652.amd64fre.ge_release.240331-1435.
fn branch(build: &str) -> &str {
    match build.split('.').collect::<Vec<_>>().as_slice() {
        [_, _, _, branch, _] => branch,
        _ => build,
    }
}

/// Parses major and minor version of Windows.
fn major_minor(version: &str) -> Option<[u32; 2]> {
    let (major, minor) = version.split_once('.')?;
    Some([major.parse().ok()?, minor.parse().ok()?])
}

/// Formats the version like 10.0.22631; .NET refuses anything but numbers.
fn os_version(info: &TraceInfo) -> String {
    let [major, minor] = major_minor(&info.os_version).unwrap_or_default();
    format!("{major}.{minor}.{}", info.os_build)
}

/// A time before everything, or one that never was.
const MINIMUM: &str = "0001-01-01T00:00:00+00:00";

/// A time that never comes.
const MAXIMUM: &str = "9999-12-31T23:59:59.9999999+00:00";

/// The wall clock of the recording machine.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    /// Session start in 100 ns since 1601, UTC; 0 if unknown.
    pub session_start: i64,
    /// Local time minus UTC in minutes.
    pub offset_minutes: i32,
}

impl WallClock {
    /// Formats a time in 100 ns since 1601, UTC; the minimum if it cannot be written.
    pub fn time(self, filetime: i64) -> String {
        self.format(filetime).unwrap_or_else(|| MINIMUM.to_owned())
    }

    /// Formats a time in ns since session start. ETWAnalyzer's times have a resolution of 100 ns.
    pub fn at(self, time_ns: i64) -> String {
        self.time(self.session_start.saturating_add(time_ns / 100))
    }

    fn format(self, filetime: i64) -> Option<String> {
        if filetime == 0 {
            return None;
        }
        let minutes = self.offset_minutes;
        if minutes.unsigned_abs() >= 24 * 60 {
            return None;
        }
        let offset = SignedDuration::from_mins(minutes.into());
        let local = date_time(filetime)?.checked_add(offset).ok()?;
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, minutes) = (minutes.unsigned_abs() / 60, minutes.unsigned_abs() % 60);
        (local.year() > 0).then(|| format!("{local}{sign}{hours:02}:{minutes:02}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 133_598_115_940_000_000;

    fn clock(offset_minutes: i32) -> WallClock {
        WallClock { session_start: START, offset_minutes }
    }

    #[test]
    fn the_offset_is_kept_and_zeros_at_the_end_are_dropped() {
        assert_eq!(clock(120).time(START), "2024-05-10T12:46:34+02:00");
        assert_eq!(clock(0).time(START), "2024-05-10T10:46:34+00:00");
        assert_eq!(clock(-210).time(START), "2024-05-10T07:16:34-03:30");
        assert_eq!(clock(120).time(START + 5_000_000), "2024-05-10T12:46:34.5+02:00");
        assert_eq!(clock(120).time(START + 1_234_567), "2024-05-10T12:46:34.1234567+02:00");
    }

    #[test]
    fn times_within_the_session_end_at_ticks() {
        assert_eq!(clock(120).at(1_000_000_199), "2024-05-10T12:46:35.0000001+02:00");
        assert_eq!(clock(120).at(-500_000_000), "2024-05-10T12:46:33.5+02:00");
    }

    #[test]
    fn a_time_that_cannot_be_written_is_the_minimum() {
        let unknown = WallClock { session_start: 0, offset_minutes: 60 };
        assert_eq!(unknown.time(0), MINIMUM);
        assert_eq!(clock(0).time(i64::MAX), MINIMUM);
        assert_eq!(clock(i32::MAX).time(START), MINIMUM);
    }
}
