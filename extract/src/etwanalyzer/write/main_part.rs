//! The main part: machine, session and processes.

use handlescope_model::tables::{
    EventCounts, Losses, ObjectTypes, Process, Processes, StartHandle, StartHandles, Threads,
    TraceInfo, Volumes, Warnings,
};
use handlescope_model::{TableRows, Texts};

use super::super::own::OwnStartHandle;
use super::super::records::{
    HandleShell, Header, Main, OwnMain, ProcessRecord, StacksShell, TypeMap,
};
use super::super::values::{Rows, Unread};
use super::super::words::{OWN_OPTIONS, SYSTEM, log_file_mode_names};
use super::time::{MAXIMUM, MINIMUM, WallClock};

/// What the part is made of.
pub(super) struct MainPart<'a> {
    pub(super) info: &'a TraceInfo,
    pub(super) processes: &'a Processes,
    pub(super) event_counts: &'a EventCounts,
    pub(super) warnings: &'a Warnings,
    pub(super) volumes: &'a Volumes,
    pub(super) threads: &'a Threads,
    pub(super) losses: &'a Losses,
    pub(super) start_handles: &'a StartHandles,
    pub(super) names: &'a Texts,
    /// When the last event happened, ns since session start.
    pub(super) last_event_ns: i64,
    /// The types, if there is no object: then there is no handle part that has them.
    pub(super) types_without_objects: Option<&'a ObjectTypes>,
}

/// Where the process that kernel modules are listed under is, or would be as one more.
pub(super) fn system_process(processes: &Processes) -> usize {
    processes.name.iter().position(|name| name == SYSTEM).unwrap_or(processes.len())
}

impl MainPart<'_> {
    fn clock(&self) -> WallClock {
        WallClock {
            session_start: self.info.session_start_filetime,
            offset_minutes: self.info.utc_offset_minutes,
        }
    }

    /// The processes, and System after them if it is not among them: ETWAnalyzer looks for the
    /// modules of the kernel there.
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

    fn own(&self) -> OwnMain {
        let start_handle = |handle: StartHandle| OwnStartHandle {
            pointer: handle.pointer,
            process: handle.process,
            pid: handle.pid,
            handle: handle.handle,
            type_id: handle.type_id,
            name: handle.name.and_then(|name| self.names.get(name.row())).map(str::to_owned),
            closed: handle.closed,
        };
        OwnMain {
            trace: Some(self.info.clone()),
            processes: Rows(self.processes.rows().collect()),
            event_counts: Rows(self.event_counts.rows().collect()),
            warnings: Rows(self.warnings.rows().collect()),
            start_handles: Rows(self.start_handles.rows().map(start_handle).collect()),
            volumes: Rows(self.volumes.rows().collect()),
            threads: Rows(self.threads.rows().collect()),
            losses: Rows(self.losses.rows().collect()),
        }
    }

    /// The part as it is written.
    pub(super) fn record(&self) -> Main {
        let (info, clock) = (self.info, self.clock());
        let version = env!("CARGO_PKG_VERSION");
        let end = info.session_end_filetime;
        // A session that was not closed has no end: the last event is the nearest to it.
        let end = end.map_or_else(|| clock.at(self.last_event_ns), |end| clock.time(end));
        let boot = info.boot_filetime.map_or_else(|| MINIMUM.into(), |boot| clock.time(boot));
        Main {
            source: Some(source(info)),
            options: Some(format!("{OWN_OPTIONS} {version} -extract ObjectRef -etwanalyzer")),
            computer: info.computer.clone(),
            product: info.product.clone(),
            build: info.os_build_string.as_deref().map(|build| branch(build).to_owned()),
            version: Some(os_version(info)),
            memory_mb: Some(info.memory_mb.unwrap_or_default()),
            cpus: Some(info.cpu_count),
            cpu_mhz: Some(info.cpu_mhz.unwrap_or_default()),
            // Windows has 64 processors in a group.
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
            own: self.own(),
            ..Main::default()
        }
    }
}

/// A process with its times by the clock of the recording machine.
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

/// The path of the trace. Of one in an archive it is that of the archive with its own name.
fn source(info: &TraceInfo) -> String {
    let folder = info.source_path.rfind(['/', '\\']).and_then(|at| info.source_path.get(..=at));
    format!("{}{}", folder.unwrap_or_default(), info.source_name)
}

/// The branch of a build, as in 26100.4652.amd64fre.ge_release.240331-1435.
fn branch(build: &str) -> &str {
    match build.split('.').collect::<Vec<_>>().as_slice() {
        [_, _, _, branch, _] => branch,
        _ => build,
    }
}

/// Major and minor version of Windows.
fn major_minor(version: &str) -> Option<[u32; 2]> {
    let (major, minor) = version.split_once('.')?;
    Some([major.parse().ok()?, minor.parse().ok()?])
}

/// As in 10.0.22631; .NET refuses anything else than numbers.
fn os_version(info: &TraceInfo) -> String {
    let [major, minor] = major_minor(&info.os_version).unwrap_or_default();
    format!("{major}.{minor}.{}", info.os_build)
}
