//! The parts of a scenario, and the methods that add to it.

use std::collections::BTreeSet;

use super::actors::{Caller, ThreadActors};
use super::config::ScenarioConfig;
use super::ledger::{HandleChange, HandleChangeKind};
use super::specs::{ModuleSpec, ProcessSpec, ThreadSpec};
use crate::file::FileOptions;
use crate::header::{HeaderKind, Stamp};
use crate::payload::{
    ClassicPayload, HandleRecord, KernelPayload, ProcessRecord, StackHalf, ViewRecord,
};

/// An event to be written to the file.
#[derive(Debug, Clone)]
pub struct LogEntry {
    pub time: i64,
    pub cpu: u16,
    /// The thread that logged the event; context switches are derived from it.
    pub tid: Option<u32>,
    pub bytes: Vec<u8>,
}

/// The event that the next stack belongs to.
#[derive(Debug, Clone, Copy)]
pub struct NextStackOwner {
    pub time: i64,
    pub caller: Caller,
}

/// One stack event to be written.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// Raw time of the fragment itself.
    pub time: i64,
    /// Raw time of the event it belongs to.
    pub event_time: i64,
    pub caller: Caller,
    /// The part that a key identifies; `None` writes the frames.
    pub key: Option<StackHalf>,
    pub frames: Vec<u64>,
}

/// Builds a trace file from what happened in it.
#[derive(Debug, Clone, Default)]
pub struct TraceBuilder {
    pub options: FileOptions,
    pub config: ScenarioConfig,
    pub processes: Vec<ProcessSpec>,
    /// Processes that the rundown at the end lists as exited but still in memory.
    pub zombies: Vec<ProcessRecord>,
    /// Zombies that only the rundown at the start lists.
    pub freed_zombies: Vec<ProcessRecord>,
    pub modules: Vec<ModuleSpec>,
    pub threads: Vec<ThreadSpec>,
    pub types: Vec<(u16, String)>,
    pub handles_at_start: Vec<HandleRecord>,
    pub handles_at_end: Vec<HandleRecord>,
    pub views_at_end: Vec<ViewRecord>,
    pub entries: Vec<LogEntry>,
    pub fragments: Vec<Fragment>,
    pub owner: Option<NextStackOwner>,
    /// Threads (pid, tid) that logged events.
    pub callers: BTreeSet<(u32, u32)>,
    /// Raw times of the added events, with their threads.
    pub acts: Vec<(i64, Caller)>,
    /// Changes to what is open.
    pub changes: Vec<HandleChange>,
    /// Filled in when the file is built.
    pub actors: ThreadActors,
}

impl TraceBuilder {
    /// Creates an empty trace with the default [`FileOptions`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty trace in a file with these options, which define the clock and the pointer width.
    #[must_use]
    pub fn with_options(options: FileOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the options of the file, which convert times.
    #[must_use]
    pub fn options(&self) -> &FileOptions {
        &self.options
    }

    /// Adds a process that lives from before the trace until after it, unless told otherwise. Declaring the same pid
    /// again adds another lifetime.
    pub fn process(&mut self, pid: u32, name: &str) -> &mut ProcessSpec {
        let key = 0xffff_a38d_0000_0080 + 0x1000 * (self.processes.len() as u64 + 1);
        self.processes.push(ProcessSpec::new(pid, name, key));
        self.processes.last_mut().expect("just pushed")
    }

    /// Adds a process that ended at a time, mostly before the trace; the rundown at the end lists it as still in
    /// memory.
    pub fn zombie(&mut self, pid: u32, name: &str, key: u64, ended: i64) -> &mut ProcessRecord {
        let record = self.zombie_record(pid, name, key, ended);
        self.zombies.push(record);
        self.zombies.last_mut().expect("just pushed")
    }

    /// A process that ended before the trace, and that only the rundown at the start lists as still in memory.
    pub fn freed_zombie(&mut self, pid: u32, name: &str, key: u64, ended: i64) {
        let record = self.zombie_record(pid, name, key, ended);
        self.freed_zombies.push(record);
    }

    fn zombie_record(&self, pid: u32, name: &str, key: u64, ended: i64) -> ProcessRecord {
        let exit_time = self.options.filetime(self.options.raw(ended));
        let record = ProcessSpec::new(pid, name, key).record;
        let command_line = String::new();
        ProcessRecord { exit_status: 0, exit_time, command_line, ..record }
    }

    /// Adds a module of a process (pid 0: the kernel), with a DOS or NT path. It lives as long as the last process
    /// declared with this pid, unless told otherwise.
    pub fn module(&mut self, pid: u32, path: &str, base: u64, size: u64) -> &mut ModuleSpec {
        let process = self.processes.iter().rposition(|process| process.record.pid == pid);
        self.modules.push(ModuleSpec::new((pid, process), path, base, size));
        self.modules.last_mut().expect("just pushed")
    }

    /// Adds a thread that lives from before the trace until after it, unless told otherwise. Threads that log events
    /// are in the rundown even if they are not declared.
    pub fn thread(&mut self, pid: u32, tid: u32) -> &mut ThreadSpec {
        self.threads.push(ThreadSpec { pid, tid, creator: (pid, tid), started: None, ended: None });
        self.threads.last_mut().expect("just pushed")
    }

    pub fn object_type(&mut self, id: u16, name: &str) -> &mut Self {
        self.types.push((id, name.into()));
        self
    }

    /// Adds any kernel event of a thread; a stack may follow.
    pub fn kernel_event(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        payload: &KernelPayload,
    ) -> &mut Self {
        let caller = caller.into();
        let time = self.options.raw(ns);
        self.add_kernel(self.config.header, time, caller, payload);
        self.logged(time, caller)
    }

    /// Adds any classic event of a thread; a stack may follow.
    pub fn classic_event(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        payload: &ClassicPayload,
    ) -> &mut Self {
        let caller = caller.into();
        let time = self.options.raw(ns);
        let stamp = Stamp::new(time, caller.pid, caller.tid);
        let bytes = payload.event(self.options.pointer, stamp);
        self.add(time, caller.cpu, Some(caller.tid), bytes);
        self.logged(time, caller)
    }

    /// Adds an encoded event; `ns` only gives its place in the file.
    pub fn raw_event(&mut self, ns: i64, cpu: u16, bytes: Vec<u8>) -> &mut Self {
        self.add(self.options.raw(ns), cpu, None, bytes);
        self
    }

    /// Notes the event that a stack may follow, and its thread.
    pub fn logged(&mut self, time: i64, caller: Caller) -> &mut Self {
        self.owner = Some(NextStackOwner { time, caller });
        self.callers.insert((caller.pid, caller.tid));
        self.acts.push((time, caller));
        self
    }

    /// Notes a change to what is open.
    pub fn changed(&mut self, ns: i64, caller: impl Into<Caller>, what: HandleChangeKind) {
        self.changes.push(HandleChange { ns, caller: caller.into(), what });
    }

    pub fn last_ns(&self) -> i64 {
        let last = self.entries.iter().map(|entry| entry.time).max();
        last.map_or(0, |time| self.options.nanoseconds(time))
    }

    pub fn add(&mut self, time: i64, cpu: u16, tid: Option<u32>, bytes: Vec<u8>) {
        self.entries.push(LogEntry { time, cpu, tid, bytes });
    }

    pub fn add_kernel(
        &mut self,
        kind: HeaderKind,
        time: i64,
        caller: Caller,
        event: &KernelPayload,
    ) {
        let stamp = Stamp::new(time, caller.pid, caller.tid);
        let bytes = event.event(kind, self.options.pointer, stamp);
        self.add(time, caller.cpu, Some(caller.tid), bytes);
    }

    /// Adds an event of a rundown or merge: a perfinfo header, on processor 0, without thread.
    pub fn add_rundown(&mut self, time: i64, event: &KernelPayload) {
        let bytes = event.event(HeaderKind::PerfInfo, self.options.pointer, Stamp::new(time, 0, 0));
        self.add(time, 0, None, bytes);
    }
}
