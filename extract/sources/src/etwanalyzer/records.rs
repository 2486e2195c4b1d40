//! The parts of an extract: the members of ETWAnalyzer that are read or written, our own members, and texts with a
//! fixed meaning.
//!
//! Our own members keep an extract complete when it is read back. Each part except the handle part has an additional
//! member named [`HANDLESCOPE_MEMBER`] with the full rows of tables that the format holds only in part. A row uses the
//! column names, like newline-delimited JSON. Records of events have a few additional members instead.
//!
//! ETWAnalyzer ignores members it does not know, and drops them when it writes a file again. Such a file is then read
//! as an extract of ETWAnalyzer.

use handlescope_model::tables::{
    EventCount, Loss, Module, ModuleLoad, ObjectTypes, Process, Thread, TraceInfo, Volume, Warning,
    Zombie,
};
use handlescope_model::{EventKind, FILE_MAPPING_TYPE, ProcessIdx, TypeId};
use serde::{Deserialize, Serialize, Serializer};

use super::record::{Rows, Unread, records};

records! {
    /// The main part: machine, session and processes.
    Main {
        "SourceETLFileName" => source: Option<String>,
        "UsedExtractOptions" => options: Option<String>,
        "ComputerName" => computer: Option<String>,
        "OSName" => product: Option<String>,
        "OSBuild" => build: Option<String>,
        "OSVersion" => version: Option<String>,
        "MemorySizeMB" => memory_mb: Option<u32>,
        "NumberOfProcessors" => cpus: Option<u32>,
        "CPUSpeedMHz" => cpu_mhz: Option<u32>,
        "CPUProcessorGroups" => cpu_groups: Unread<u32>,
        "SessionStart" => start: Option<String>,
        "SessionEnd" => end: Option<String>,
        "BootTime" => boot: Option<String>,
        "TraceHeader" => header: Header,
        "ETWMarks" => marks: Unread<[(); 0]>,
        "Model" => model: Unread<&'static str>,
        "AdDomain" => domain: Unread<&'static str>,
        "IsDomainJoined" => is_domain_joined: Unread<bool>,
        "Displays" => displays: Unread<[(); 0]>,
        "PowerConfiguration" => power_configuration: Unread<[(); 0]>,
        "Processes" => processes: Option<Vec<ProcessRecord>>,
        "Disk" => disk: Unread<Disk>,
        "ModuleVersions" => module_versions: Unread<[(); 0]>,
        "NetworkInterfaces" => network_interfaces: Unread<[(); 0]>,
        "HandleData" => handle_data: Option<Unread<HandleShell>>,
        "Handlescope" => handlescope: HandlescopeMain,
    }

    /// The tables, of which the main part has less than they hold.
    HandlescopeMain {
        "Trace" => trace: Option<TraceInfo>,
        "Processes" => processes: Rows<Process>,
        "EventCounts" => event_counts: Rows<EventCount>,
        "Warnings" => warnings: Rows<Warning>,
        "StartHandles" => start_handles: Rows<NamedStartHandle>,
        "Volumes" => volumes: Rows<Volume>,
        "Threads" => threads: Rows<Thread>,
        "Zombies" => zombies: Rows<Zombie>,
        "Losses" => losses: Rows<Loss>,
    }

    Header {
        "BufferSize" => buffer_size: Option<u32>,
        "MajorVersion" => major_version: Unread<u8>,
        "MinorVersion" => minor_version: Unread<u8>,
        /// The version of the log file format.
        "SubVersion" => sub_version: Option<u32>,
        "SubMinorVersion" => sub_minor_version: Option<u32>,
        /// The build of Windows.
        "ProviderVersion" => build: Option<u32>,
        "TimerResolution" => timer_resolution: Option<u32>,
        "MaximumFileSizeMB" => maximum_file_size: Option<u32>,
        "LogFileMode" => log_file_mode: Option<String>,
        "BuffersWritten" => buffers_written: Option<u64>,
        "EventsLost" => events_lost: Option<u64>,
        "BuffersLost" => buffers_lost: Option<u64>,
    }

    /// A process. Its ids are signed numbers of 32 bits or unsigned ones, the same bits either way.
    ProcessRecord {
        "ProcessID" => pid: Option<i64>,
        "ProcessName" => name: Option<String>,
        "CmdLine" => command_line: Option<String>,
        "StartTime" => start: Option<String>,
        "EndTime" => end: Option<String>,
        "Identity" => identity: Option<String>,
        "SessionId" => session_id: Option<i64>,
        "HasEnded" => has_ended: Option<bool>,
        "IsNew" => is_new: Option<bool>,
        "ReturnCode" => exit_code: Option<i64>,
        "ParentPid" => parent_pid: Option<i64>,
    }

    /// The modules part.
    ModulesPart {
        "Modules" => modules: Vec<ModuleRecord>,
        "UnresolvedPdbs" => pdbs: Vec<PdbRecord>,
        "TotalPdbCount" => pdb_count: Unread<usize>,
        "SharedStrings" => strings: Strings,
        "Handlescope" => handlescope: Option<HandlescopeModules>,
    }

    /// The tables, of which the modules part has paths, versions and processes only.
    HandlescopeModules {
        "Modules" => modules: Rows<Module>,
        "ModuleLoads" => loads: Rows<ModuleLoad>,
    }

    ModuleRecord {
        "ModuleAndPid" => module_and_pid: Option<String>,
        "PdbIdx" => pdb: Option<usize>,
    }

    PdbRecord {
        "Pdb" => pdb: Option<String>,
    }

    Strings {
        "Strings" => texts: Vec<String>,
    }

    /// An object of the handle part, with its events list by list.
    ObjectRecord {
        /// Addresses are signed numbers for ETWAnalyzer.
        "ObjectPtr" => pointer: Option<i64>,
        "CreateEvent" => create: Option<EventRecord>,
        "DestroyEvent" => delete: Option<EventRecord>,
        "Name" => name: Option<String>,
        "ObjectType" => type_id: Option<u32>,
        /// The handles that were open at the end.
        "Existing" => existing: Option<Vec<ExistingRecord>>,
        "HandleCreateEvents" => handle_creates: Option<Vec<EventRecord>>,
        "HandleDuplicateEvents" => duplicates: Option<Vec<EventRecord>>,
        "HandleCloseEvents" => closes: Option<Vec<EventRecord>>,
        "RefChanges" => references: Option<Vec<EventRecord>>,
        "FileMapEvents" => maps: Option<Vec<EventRecord>>,
        "FileUnmapEvents" => unmaps: Option<Vec<EventRecord>>,
        /// Not ETWAnalyzer's: the positions of the events, unless they follow from the time and, at one
        /// time, by the list they stand in.
        "EventOrder" => order: Option<Rows<usize>>,
        /// Not ETWAnalyzer's: for each event the position of the one that closed what it opened, [`NEVER_CLOSED`] or
        /// [`CLOSED_WITHOUT_EVENT`], unless all follow from processes and handle values.
        "ClosingEvents" => closings: Option<Rows<i64>>,
    }

    /// A handle of the rundown.
    ExistingRecord {
        "Handle" => handle: Option<u64>,
        "Process" => process: Option<i64>,
        /// Not ETWAnalyzer's, as are the next three: what a dump has of a handle.
        "GrantedAccess" => granted_access: Option<u32>,
        "Attributes" => attributes: Option<u32>,
        "HandleCount" => handle_count: Option<u32>,
        "PointerCount" => pointer_count: Option<u32>,
    }

    /// An event. Members that a kind does not have are left out.
    ///
    /// ETWAnalyzer always writes an offset of 0 into views; an offset that is not known is left out,
    /// which it reads as 0.
    EventRecord {
        "RefCountChange" => ref_change: Option<i64>,
        "HandleValue" => handle: Option<u64>,
        "SourceHandleValue" => source_handle: Option<u64>,
        "SourceProcessIdx" => source_process: Option<i64>,
        // The kernel's addresses and sizes are signed numbers there.
        "ViewBase" => view_base: Option<i64>,
        "FileObject" => file_object: Option<i64>,
        "MiscInfo" => misc_info: Option<i64>,
        "ViewSize" => view_size: Option<i64>,
        "ByteOffset" => byte_offset: Option<i64>,
        "TimeNs" => time_ns: Option<i64>,
        "StackIdx" => stack: Option<i64>,
        "ProcessIdx" => process: Option<i64>,
        "ThreadId" => tid: Option<u32>,
        // What follows is not ETWAnalyzer's.
        /// The process that called for a duplicate, unless it got the handle.
        "CallerProcessIdx" => caller_process: Option<i64>,
        /// The child that inherited the handle of a duplicate, -1 for none.
        "InheritedByIdx" => inherited_by: Option<i64>,
        /// The process id of the source, where no process has it.
        "SourcePid" => source_pid: Option<u32>,
        /// The row of the stack, unless it is the first row with this text.
        "StackRow" => stack_row: Option<u32>,
        /// Whether the end of the process made this close.
        "IsByExit" => is_by_exit: Option<bool>,
    }
}

/// ETWAnalyzer always writes it, and its `-dump Stats` fails without it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Disk {
    disk_information: [(); 0],
}

/// Placeholder for the handle part in a trace without objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HandleShell {
    pub object_type_map: TypeMap,
    pub object_references: [(); 0],
    pub stacks: StacksShell,
}

/// Names of types by id as text. Mapped views are not a kernel type and are not written.
#[derive(Debug)]
pub struct TypeMap(pub ObjectTypes);

impl Serialize for TypeMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let types = self.0.type_id.iter().zip(&self.0.name);
        serializer.collect_map(types.filter(|(id, _)| **id != FILE_MAPPING_TYPE))
    }
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct StacksShell {
    stack_list: [(); 0],
}

/// Returns the order in which events of the same time happen, by kind. Kinds that share a list have the same rank.
pub fn rank(kind: EventKind) -> u8 {
    match kind {
        EventKind::ObjectCreate => 0,
        EventKind::HandleCreate => 1,
        EventKind::HandleDuplicate => 2,
        EventKind::Map => 3,
        EventKind::Reference | EventKind::Dereference => 4,
        EventKind::HandleClose => 5,
        EventKind::Unmap => 6,
        EventKind::ObjectDelete => 7,
    }
}

impl ObjectRecord {
    /// Adds an event to its list. Only the first creation and the first deletion have a place.
    pub fn add(&mut self, kind: EventKind, event: EventRecord) {
        let list = match kind {
            EventKind::ObjectCreate => {
                self.create.get_or_insert(event);
                return;
            }
            EventKind::ObjectDelete => {
                self.delete.get_or_insert(event);
                return;
            }
            EventKind::HandleCreate => &mut self.handle_creates,
            EventKind::HandleDuplicate => &mut self.duplicates,
            EventKind::HandleClose => &mut self.closes,
            EventKind::Reference | EventKind::Dereference => &mut self.references,
            EventKind::Map => &mut self.maps,
            EventKind::Unmap => &mut self.unmaps,
        };
        list.get_or_insert_default().push(event);
    }

    /// Takes the events out of their lists.
    pub fn take_events(&mut self) -> Vec<(EventKind, EventRecord)> {
        let lists = [
            (EventKind::ObjectCreate, self.create.take().map(|event| vec![event])),
            (EventKind::ObjectDelete, self.delete.take().map(|event| vec![event])),
            (EventKind::HandleCreate, self.handle_creates.take()),
            (EventKind::HandleDuplicate, self.duplicates.take()),
            (EventKind::HandleClose, self.closes.take()),
            (EventKind::Reference, self.references.take()),
            (EventKind::Map, self.maps.take()),
            (EventKind::Unmap, self.unmaps.take()),
        ];
        let event = |list, event: EventRecord| match list {
            EventKind::Reference if event.ref_change.is_some_and(i64::is_negative) => {
                (EventKind::Dereference, event)
            }
            kind => (kind, event),
        };
        let lists = lists.into_iter().map(|(list, events)| (list, events.unwrap_or_default()));
        lists.flat_map(|(list, events)| events.into_iter().map(move |of| event(list, of))).collect()
    }
}

/// No event closed what an event opened, or the event opened nothing.
pub const NEVER_CLOSED: i64 = -1;
/// It was closed, but no event shows that.
pub const CLOSED_WITHOUT_EVENT: i64 = -2;

/// The member of a part that holds our own tables.
pub const HANDLESCOPE_MEMBER: &str = "Handlescope";

/// A handle that was open when the trace started, with its name instead of a row number.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedStartHandle {
    pub pointer: u64,
    pub process: Option<ProcessIdx>,
    pub pid: u32,
    pub handle: u64,
    pub type_id: TypeId,
    pub name: Option<String>,
    pub closed: bool,
}

/// Placeholder for an unknown module.
pub const UNKNOWN_MODULE: &str = "<UnknownModule>";

/// Placeholder for an unknown method.
pub const UNKNOWN_METHOD: &str = "<UnknownMethod>";

/// Placeholder for the version of a module without one.
pub const NO_VERSION: &str = "<NoVersion>";

/// The process under which kernel modules are listed.
pub const SYSTEM: &str = "System";

/// Prefix of the options in extracts by this program, which contain data unknown to ETWAnalyzer.
pub const HANDLESCOPE_OPTIONS: &str = "handlescope";

/// Names of the bits of a log file mode.
const LOG_FILE_MODES: [(&str, u32); 20] = [
    ("FILE_MODE_SEQUENTIAL", 0x1),
    ("FILE_MODE_CIRCULAR", 0x2),
    ("FILE_MODE_APPEND", 0x4),
    ("FILE_MODE_NEWFILE", 0x8),
    ("FILE_MODE_PREALLOCATE", 0x20),
    ("NONSTOPPABLE_MODE", 0x40),
    ("SECURE_MODE", 0x80),
    ("REAL_TIME_MODE", 0x100),
    ("DELAY_OPEN_FILE_MODE", 0x200),
    ("BUFFERING_MODE", 0x400),
    ("PRIVATE_LOGGER_MODE", 0x800),
    ("ADD_HEADER_MODE", 0x1000),
    ("USE_GLOBAL_SEQUENCE", 0x4000),
    ("USE_LOCAL_SEQUENCE", 0x8000),
    ("RELOG_MODE", 0x1_0000),
    ("PRIVATE_IN_PROC", 0x2_0000),
    ("USE_PAGED_MEMORY", 0x100_0000),
    ("SYSTEM_LOGGER_MODE", 0x200_0000),
    ("INDEPENDENT_SESSION_MODE", 0x800_0000),
    ("NO_PER_PROCESSOR_BUFFERING", 0x1000_0000),
];

/// Parses a log file mode written as names.
pub fn log_file_mode(text: &str) -> u32 {
    let flags = text.split(',').map(str::trim).map(|flag| match flag.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or_default(),
        None => LOG_FILE_MODES.iter().find(|(name, _)| *name == flag).map_or(0, |(_, bits)| *bits),
    });
    flags.fold(0, |mode, bits| mode | bits)
}

/// Formats a log file mode as names; bits without a name are combined into a number.
pub fn log_file_mode_names(mode: u32) -> String {
    let set = LOG_FILE_MODES.iter().filter(|(_, bits)| mode & bits != 0);
    let mut names: Vec<String> = set.clone().map(|(name, _)| (*name).to_owned()).collect();
    let rest = set.fold(mode, |rest, (_, bits)| rest & !bits);
    if rest != 0 {
        names.push(format!("0x{rest:X}"));
    }
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_mode_are_its_bits() {
        assert_eq!(log_file_mode("FILE_MODE_SEQUENTIAL, RELOG_MODE,0x80000000"), 0x8001_0001);
        assert_eq!(log_file_mode(""), 0);
    }

    #[test]
    fn a_mode_survives_as_names() {
        assert_eq!(log_file_mode_names(0x1_0001), "FILE_MODE_SEQUENTIAL,RELOG_MODE");
        for mode in [0, 1, 0x8001_0001, u32::MAX] {
            assert_eq!(log_file_mode(&log_file_mode_names(mode)), mode);
        }
    }
}
