//! The main part: machine, session and processes.

use handlescope_model::TableRows;
use handlescope_model::tables::{
    EventCounts, Names, ObjectTypes, Process, Processes, StartHandle, StartHandles, TraceInfo,
    Warnings,
};
use serde::{Serialize, Serializer};

use super::super::own::OwnStartHandle;
use super::super::words::{OWN_OPTIONS, SYSTEM, log_file_mode_names};
use super::handle_part::TypeMap;
use super::json::Each;
use super::time::{MAXIMUM, MINIMUM, WallClock};

/// What the part is made of.
pub(super) struct MainPart<'a> {
    pub(super) info: &'a TraceInfo,
    pub(super) processes: &'a Processes,
    pub(super) event_counts: &'a EventCounts,
    pub(super) warnings: &'a Warnings,
    pub(super) start_handles: &'a StartHandles,
    pub(super) names: &'a Names,
    /// When the last event happened, ns since session start.
    pub(super) last_event_ns: i64,
    /// The types, if there is no object: then there is no handle part that has them.
    pub(super) types_without_objects: Option<&'a ObjectTypes>,
}

/// Where the process that kernel modules are listed under is, or would be as one more.
pub(super) fn system_process(processes: &Processes) -> usize {
    processes.name.iter().position(|name| name == SYSTEM).unwrap_or(processes.len())
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MainJson<'a, P, O> {
    #[serde(rename = "SourceETLFileName")]
    source: String,
    used_extract_options: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    computer_name: Option<&'a str>,
    #[serde(rename = "OSName", skip_serializing_if = "Option::is_none")]
    os_name: Option<&'a str>,
    #[serde(rename = "OSBuild", skip_serializing_if = "Option::is_none")]
    os_build: Option<&'a str>,
    #[serde(rename = "OSVersion")]
    os_version: String,
    #[serde(rename = "MemorySizeMB")]
    memory_size_mb: u32,
    number_of_processors: u32,
    #[serde(rename = "CPUSpeedMHz")]
    cpu_speed_mhz: u32,
    #[serde(rename = "CPUProcessorGroups")]
    cpu_processor_groups: u32,
    session_start: String,
    session_end: String,
    boot_time: String,
    trace_header: HeaderJson,
    #[serde(rename = "ETWMarks")]
    etw_marks: [(); 0],
    model: &'static str,
    ad_domain: &'static str,
    is_domain_joined: bool,
    displays: [(); 0],
    power_configuration: [(); 0],
    processes: P,
    disk: DiskJson,
    module_versions: [(); 0],
    network_interfaces: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_data: Option<HandleShell<'a>>,
    handlescope: O,
}

/// ETWAnalyzer always writes one, and `-dump Stats` fails without.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DiskJson {
    disk_information: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HeaderJson {
    buffer_size: u32,
    major_version: u8,
    minor_version: u8,
    sub_version: u8,
    sub_minor_version: u8,
    provider_version: u32,
    timer_resolution: u32,
    #[serde(rename = "MaximumFileSizeMB")]
    maximum_file_size_mb: u32,
    log_file_mode: String,
    buffers_written: u32,
    events_lost: u32,
    buffers_lost: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ProcessJson<'a> {
    #[serde(rename = "ProcessID")]
    process_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_name: Option<&'a str>,
    cmd_line: &'a str,
    start_time: String,
    end_time: String,
    identity: &'a str,
    session_id: i32,
    has_ended: bool,
    is_new: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_code: Option<i32>,
    parent_pid: i32,
}

/// What stands for the handle part in a trace without objects.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HandleShell<'a> {
    object_type_map: TypeMap<'a>,
    object_references: [(); 0],
    stacks: StacksShell,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct StacksShell {
    stack_list: [(); 0],
}

/// The tables, of which the part has less than they hold.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Own<'a, P, C, W, H> {
    trace: &'a TraceInfo,
    processes: P,
    event_counts: C,
    warnings: W,
    start_handles: H,
}

impl MainPart<'_> {
    fn clock(&self) -> WallClock {
        WallClock {
            session_start: self.info.session_start_filetime,
            offset_minutes: self.info.utc_offset_minutes,
        }
    }

    /// The processes, and System behind them if it is not among them: ETWAnalyzer looks for the
    /// modules of the kernel there.
    fn process_records(&self) -> impl Serialize + '_ {
        let clock = self.clock();
        let is_missing = system_process(self.processes) == self.processes.len();
        let system =
            is_missing.then(|| Process { pid: 4, name: SYSTEM.into(), ..Process::default() });
        Each(move || {
            let all = self.processes.rows().chain(system.clone());
            all.map(move |process| ProcessRecord { process, clock })
        })
    }

    fn header(&self) -> HeaderJson {
        let info = self.info;
        let [major, minor] = major_minor(&info.os_version).unwrap_or_default();
        let format = info.log_file_version.as_deref().and_then(major_minor).unwrap_or_default();
        let byte = |number: u32| u8::try_from(number).unwrap_or_default();
        let bits = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        HeaderJson {
            buffer_size: info.buffer_size,
            major_version: byte(major),
            minor_version: byte(minor),
            sub_version: byte(format[0]),
            sub_minor_version: byte(format[1]),
            provider_version: info.os_build,
            timer_resolution: info.timer_resolution.unwrap_or_default(),
            maximum_file_size_mb: info.maximum_file_size.unwrap_or_default(),
            log_file_mode: log_file_mode_names(info.log_file_mode),
            buffers_written: bits(info.buffers),
            events_lost: bits(info.events_lost),
            buffers_lost: bits(info.buffers_lost),
        }
    }

    fn start_handle(&self, handle: &StartHandle) -> OwnStartHandle {
        let name = handle.name.and_then(|name| self.names.name.get(name.row()));
        OwnStartHandle {
            pointer: handle.pointer,
            process: handle.process,
            pid: handle.pid,
            handle: handle.handle,
            type_id: handle.type_id,
            name: name.cloned(),
        }
    }
}

impl Serialize for MainPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (info, clock) = (self.info, self.clock());
        let end = info.session_end_filetime;
        MainJson {
            source: source(info),
            used_extract_options: format!(
                "{OWN_OPTIONS} {} -extract ObjectRef -etwanalyzer",
                env!("CARGO_PKG_VERSION")
            ),
            computer_name: info.computer.as_deref(),
            os_name: info.product.as_deref(),
            os_build: info.os_build_string.as_deref().map(branch),
            os_version: os_version(info),
            memory_size_mb: info.memory_mb.unwrap_or_default(),
            number_of_processors: info.cpu_count,
            cpu_speed_mhz: info.cpu_mhz.unwrap_or_default(),
            // Windows has 64 processors in a group.
            cpu_processor_groups: info.cpu_count.div_ceil(64).max(1),
            session_start: clock.time(info.session_start_filetime),
            // A session that was not closed has no end: the last event is the nearest to it.
            session_end: end.map_or_else(|| clock.at(self.last_event_ns), |end| clock.time(end)),
            boot_time: info.boot_filetime.map_or_else(|| MINIMUM.into(), |boot| clock.time(boot)),
            trace_header: self.header(),
            etw_marks: [],
            model: "",
            ad_domain: "",
            is_domain_joined: false,
            displays: [],
            power_configuration: [],
            processes: self.process_records(),
            disk: DiskJson { disk_information: [] },
            module_versions: [],
            network_interfaces: [],
            handle_data: self.types_without_objects.map(|types| HandleShell {
                object_type_map: TypeMap(types),
                object_references: [],
                stacks: StacksShell { stack_list: [] },
            }),
            handlescope: Own {
                trace: info,
                processes: Each(|| self.processes.rows()),
                event_counts: Each(|| self.event_counts.rows()),
                warnings: Each(|| self.warnings.rows()),
                start_handles: Each(|| {
                    self.start_handles.rows().map(|handle| self.start_handle(&handle))
                }),
            },
        }
        .serialize(serializer)
    }
}

/// A process with the clock that its times are written by.
struct ProcessRecord {
    process: Process,
    clock: WallClock,
}

impl Serialize for ProcessRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { process, clock } = self;
        let time = |time: Option<i64>, unknown: &str| {
            time.map_or_else(|| unknown.to_owned(), |time| clock.at(time))
        };
        ProcessJson {
            process_id: process.pid,
            process_name: Some(process.name.as_str()).filter(|name| !name.is_empty()),
            cmd_line: &process.command_line,
            start_time: time(process.start_ns, MINIMUM),
            end_time: time(process.end_ns, MAXIMUM),
            identity: process.sid.as_deref().unwrap_or_default(),
            session_id: process.session_id.map_or(0, |session| session as i32),
            has_ended: process.end_ns.is_some(),
            is_new: process.start_ns.is_some(),
            return_code: process.exit_code,
            parent_pid: process.parent_pid as i32,
        }
        .serialize(serializer)
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
