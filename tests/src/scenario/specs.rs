//! Processes, modules and threads of a scenario.

use crate::bytes::Guid;
use crate::payload::{DebugId, ImageRecord, ProcessRecord, Sid};

/// Exit status of a running process.
const STATUS_PENDING: i32 = 0x103;

/// One lifetime of a process.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    pub record: ProcessRecord,
    pub started: Option<i64>,
    pub ended: Option<(i64, i32)>,
    /// Process and thread that create it, where stated.
    pub creator: (Option<u32>, Option<u32>),
    /// Processors that log its start and its end.
    pub processors: [u16; 2],
    pub unrecorded: bool,
    pub unswept: bool,
    /// When its sweep is over, once that is known.
    pub gone: Option<i64>,
}

impl ProcessSpec {
    pub fn new(pid: u32, name: &str, key: u64) -> Self {
        let record = ProcessRecord {
            key,
            pid,
            session: 1,
            exit_status: STATUS_PENDING,
            page_directory: 0x1_2340_0000 + u64::from(pid) * 0x1000,
            sid: Some(Sid { authority: 5, sub: vec![21, 1, 2, 3, 1001] }),
            name: name.into(),
            command_line: name.into(),
            ..ProcessRecord::default()
        };
        Self {
            record,
            started: None,
            ended: None,
            creator: (None, None),
            processors: [0, 0],
            unrecorded: false,
            unswept: false,
            gone: None,
        }
    }

    /// The parent process. Default: 0.
    pub fn parent(&mut self, pid: u32) -> &mut Self {
        self.record.parent = pid;
        self
    }

    /// The thread of the parent that starts the process. Default: the one that acted last.
    pub fn creator_thread(&mut self, tid: u32) -> &mut Self {
        self.creator.1 = Some(tid);
        self
    }

    /// The thread that starts the process for the parent, which another process chose.
    pub fn creator(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.creator = (Some(pid), Some(tid));
        self
    }

    /// The command line. Default: the name.
    pub fn command_line(&mut self, text: &str) -> &mut Self {
        self.record.command_line = text.into();
        self
    }

    /// The session. Default: 1.
    pub fn session(&mut self, id: u32) -> &mut Self {
        self.record.session = id;
        self
    }

    /// The user; `None` writes a null SID. Default: some user of the machine.
    pub fn sid(&mut self, sid: Option<Sid>) -> &mut Self {
        self.record.sid = sid;
        self
    }

    /// The unique process key. Default: one per process.
    pub fn key(&mut self, key: u64) -> &mut Self {
        self.record.key = key;
        self
    }

    /// Started during the trace.
    pub fn started(&mut self, ns: i64) -> &mut Self {
        self.started = Some(ns);
        self
    }

    /// The processor that logs the start. Default: 0.
    pub fn start_processor(&mut self, cpu: u16) -> &mut Self {
        self.processors[0] = cpu;
        self
    }

    /// The processor that logs the end. Default: 0.
    pub fn end_processor(&mut self, cpu: u16) -> &mut Self {
        self.processors[1] = cpu;
        self
    }

    /// Ended during the trace, with exit status 0.
    pub fn ended(&mut self, ns: i64) -> &mut Self {
        self.exited(ns, 0)
    }

    /// Ended during the trace with this exit status.
    pub fn exited(&mut self, ns: i64, status: i32) -> &mut Self {
        self.ended = Some((ns, status));
        self
    }

    /// The trace has nothing of what the end closes and unmaps. Default: the ending thread closes the open handles 0.3 to
    /// 50 ms after the end, then it unmaps the views.
    pub fn unswept(&mut self) -> &mut Self {
        self.unswept = true;
        self
    }

    /// No event and no rundown names the process: its modules still follow its lifetime.
    pub fn unrecorded(&mut self) -> &mut Self {
        self.unrecorded = true;
        self
    }
}

/// One module in a process or in the kernel.
#[derive(Debug, Clone)]
pub struct ModuleSpec {
    pub record: ImageRecord,
    /// Row of the process, when it was declared.
    pub process: Option<usize>,
    pub loaded: Option<i64>,
    pub unloaded: Option<i64>,
    pub rundown_only: bool,
    pub pdb: Option<DebugId>,
    pub original_name: String,
    pub file_version: Option<String>,
}

impl ModuleSpec {
    pub fn new((pid, process): (u32, Option<usize>), path: &str, base: u64, size: u64) -> Self {
        let name = path.rsplit('\\').next().unwrap_or(path);
        let record = ImageRecord {
            base,
            size,
            pid,
            checksum: 0x0001_0000 | (size as u32 >> 8),
            timestamp: 0x6239_de3c,
            path: path.into(),
        };
        Self {
            record,
            process,
            loaded: None,
            unloaded: None,
            rundown_only: false,
            pdb: None,
            original_name: name.into(),
            file_version: None,
        }
    }

    /// The time stamp of the file.
    pub fn timestamp(&mut self, seconds: u32) -> &mut Self {
        self.record.timestamp = seconds;
        self
    }

    /// The checksum of the file.
    pub fn checksum(&mut self, checksum: u32) -> &mut Self {
        self.record.checksum = checksum;
        self
    }

    /// The PDB. Default: an image without debug data.
    pub fn pdb(&mut self, name: &str, guid: Guid, age: u32) -> &mut Self {
        self.pdb = Some(DebugId { name: name.into(), guid, age });
        self
    }

    /// The name in the version resource. Default: the file name.
    pub fn original_name(&mut self, name: &str) -> &mut Self {
        self.original_name = name.into();
        self
    }

    /// The file version; written once per file.
    pub fn file_version(&mut self, version: &str) -> &mut Self {
        self.file_version = Some(version.into());
        self
    }

    /// Loaded at this time. Default: with its process, if that starts in the trace.
    pub fn loaded(&mut self, ns: i64) -> &mut Self {
        self.loaded = Some(ns);
        self
    }

    /// Unloaded at this time. Default: with its process, if that ends in the trace.
    pub fn unloaded(&mut self, ns: i64) -> &mut Self {
        self.unloaded = Some(ns);
        self
    }

    /// Keeps the module out of load and unload events, whatever its process does.
    pub fn rundown_only(&mut self) -> &mut Self {
        self.rundown_only = true;
        self
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ThreadSpec {
    pub pid: u32,
    pub tid: u32,
    pub creator: (u32, u32),
    pub started: Option<i64>,
    pub ended: Option<i64>,
}

impl ThreadSpec {
    /// Process and thread that started it.
    pub fn creator(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.creator = (pid, tid);
        self
    }

    /// Started during the trace.
    pub fn started(&mut self, ns: i64) -> &mut Self {
        self.started = Some(ns);
        self
    }

    /// Ended during the trace.
    pub fn ended(&mut self, ns: i64) -> &mut Self {
        self.ended = Some(ns);
        self
    }
}
