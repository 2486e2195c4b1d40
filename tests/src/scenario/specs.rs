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
    /// Process and thread that create it, if given.
    pub creator: (Option<u32>, Option<u32>),
    /// Processors that log the start and the end.
    pub processors: [u16; 2],
    pub unrecorded: bool,
    pub unswept: bool,
    /// When its sweep is done, once that is known.
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

    /// Sets the parent process. Default: 0.
    pub fn parent(&mut self, pid: u32) -> &mut Self {
        self.record.parent = pid;
        self
    }

    /// Sets the parent's thread that starts the process. Default: the one that acted last.
    pub fn creator_thread(&mut self, tid: u32) -> &mut Self {
        self.creator.1 = Some(tid);
        self
    }

    /// Sets a thread of another process that starts this one on behalf of the parent.
    pub fn creator(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.creator = (Some(pid), Some(tid));
        self
    }

    /// Sets the command line. Default: the name.
    pub fn command_line(&mut self, text: &str) -> &mut Self {
        self.record.command_line = text.into();
        self
    }

    /// Sets the session. Default: 1.
    pub fn session(&mut self, id: u32) -> &mut Self {
        self.record.session = id;
        self
    }

    /// Sets the user; `None` writes a null SID. Default: some user of the machine.
    pub fn sid(&mut self, sid: Option<Sid>) -> &mut Self {
        self.record.sid = sid;
        self
    }

    /// Sets the unique process key. Default: one per process.
    pub fn key(&mut self, key: u64) -> &mut Self {
        self.record.key = key;
        self
    }

    /// Makes it start during the trace.
    pub fn started(&mut self, ns: i64) -> &mut Self {
        self.started = Some(ns);
        self
    }

    /// Sets the processor that logs the start. Default: 0.
    pub fn start_processor(&mut self, cpu: u16) -> &mut Self {
        self.processors[0] = cpu;
        self
    }

    /// Sets the processor that logs the end. Default: 0.
    pub fn end_processor(&mut self, cpu: u16) -> &mut Self {
        self.processors[1] = cpu;
        self
    }

    /// Makes it end during the trace, with exit status 0.
    pub fn ended(&mut self, ns: i64) -> &mut Self {
        self.exited(ns, 0)
    }

    /// Makes it end during the trace with this exit status.
    pub fn exited(&mut self, ns: i64, status: i32) -> &mut Self {
        self.ended = Some((ns, status));
        self
    }

    /// Leaves out the closes and unmaps after its end. Default: the ending thread closes the open handles 0.3 to 50 ms
    /// after the end, then unmaps the views.
    pub fn unswept(&mut self) -> &mut Self {
        self.unswept = true;
        self
    }

    /// Keeps the process out of all events and rundowns; its modules still follow its lifetime.
    pub fn unrecorded(&mut self) -> &mut Self {
        self.unrecorded = true;
        self
    }
}

/// One module in a process or in the kernel.
#[derive(Debug, Clone)]
pub struct ModuleSpec {
    pub record: ImageRecord,
    /// Index of the process, if it was declared.
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

    /// Sets the time stamp of the file.
    pub fn timestamp(&mut self, seconds: u32) -> &mut Self {
        self.record.timestamp = seconds;
        self
    }

    /// Sets the checksum of the file.
    pub fn checksum(&mut self, checksum: u32) -> &mut Self {
        self.record.checksum = checksum;
        self
    }

    /// Sets the PDB. Default: an image without debug data.
    pub fn pdb(&mut self, name: &str, guid: Guid, age: u32) -> &mut Self {
        self.pdb = Some(DebugId { name: name.into(), guid, age });
        self
    }

    /// Sets the name in the version resource. Default: the file name.
    pub fn original_name(&mut self, name: &str) -> &mut Self {
        self.original_name = name.into();
        self
    }

    /// Sets the file version, which is written once per file.
    pub fn file_version(&mut self, version: &str) -> &mut Self {
        self.file_version = Some(version.into());
        self
    }

    /// Sets the load time. Default: with its process, if that starts in the trace.
    pub fn loaded(&mut self, ns: i64) -> &mut Self {
        self.loaded = Some(ns);
        self
    }

    /// Sets the unload time. Default: with its process, if that ends in the trace.
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
    /// Sets the process and thread that start it.
    pub fn creator(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.creator = (pid, tid);
        self
    }

    /// Makes it start during the trace.
    pub fn started(&mut self, ns: i64) -> &mut Self {
        self.started = Some(ns);
        self
    }

    /// Makes it end during the trace.
    pub fn ended(&mut self, ns: i64) -> &mut Self {
        self.ended = Some(ns);
        self
    }
}
