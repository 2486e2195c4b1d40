//! Parts of a scenario, and the methods that add to it.

use std::collections::BTreeSet;

use super::actors::{Actors, Caller};
use super::config::Config;
use super::ledger::{Change, What};
use super::specs::{ModuleSpec, ProcessSpec, ThreadSpec};
use crate::file::FileOptions;
use crate::header::{HeaderKind, Stamp};
use crate::payload::{
    ClassicPayload, HandleRecord, KernelPayload, ProcessRecord, StackPart, ViewRecord,
};

/// An event on its way into the file.
#[derive(Debug, Clone)]
pub struct Entry {
    pub time: i64,
    pub cpu: u16,
    /// The thread that logged the event; context switches are made from it.
    pub tid: Option<u32>,
    pub bytes: Vec<u8>,
}

/// The event the next stack belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
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
    /// The part a key stands for; `None` writes the frames.
    pub key: Option<StackPart>,
    pub frames: Vec<u64>,
}

/// Builds a trace file from what happened in it.
#[derive(Debug, Clone, Default)]
pub struct TraceBuilder {
    pub options: FileOptions,
    pub config: Config,
    pub processes: Vec<ProcessSpec>,
    /// Processes that the rundown at the end lists as ended, but still in memory.
    pub zombies: Vec<ProcessRecord>,
    /// Zombies that only the rundown at the start lists.
    pub freed_zombies: Vec<ProcessRecord>,
    pub modules: Vec<ModuleSpec>,
    pub threads: Vec<ThreadSpec>,
    pub types: Vec<(u16, String)>,
    pub handles_at_start: Vec<HandleRecord>,
    pub handles_at_end: Vec<HandleRecord>,
    pub views_at_end: Vec<ViewRecord>,
    pub entries: Vec<Entry>,
    pub fragments: Vec<Fragment>,
    pub owner: Option<Owner>,
    /// Threads (pid, tid) that logged events.
    pub callers: BTreeSet<(u32, u32)>,
    /// Raw times of the stated events, with their threads.
    pub acts: Vec<(i64, Caller)>,
    /// Stated changes to what is open.
    pub changes: Vec<Change>,
    /// Known when the file is built.
    pub actors: Actors,
}

impl TraceBuilder {
    /// An empty trace with the default [`FileOptions`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty trace in a file of these options, which give the clock and the pointer width.
    #[must_use]
    pub fn with_options(options: FileOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The options of the file, which convert times.
    #[must_use]
    pub fn options(&self) -> &FileOptions {
        &self.options
    }

    /// A process, from before the trace until after it unless stated otherwise. A process
    /// declared again with the same pid is another lifetime.
    pub fn process(&mut self, pid: u32, name: &str) -> &mut ProcessSpec {
        let key = 0xffff_a38d_0000_0080 + 0x1000 * (self.processes.len() as u64 + 1);
        self.processes.push(ProcessSpec::new(pid, name, key));
        self.processes.last_mut().expect("just pushed")
    }

    /// A process that ended at a time, mostly before the trace, and that the rundown at the end lists as still in memory.
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

    /// A module of a process (pid 0: of the kernel), with a DOS or NT path. Its lifetime is that of
    /// the process declared last with this pid, unless stated otherwise.
    pub fn module(&mut self, pid: u32, path: &str, base: u64, size: u64) -> &mut ModuleSpec {
        let process = self.processes.iter().rposition(|process| process.record.pid == pid);
        self.modules.push(ModuleSpec::new((pid, process), path, base, size));
        self.modules.last_mut().expect("just pushed")
    }

    /// A thread, from before the trace until after it unless stated otherwise. Threads that log
    /// events are in the rundown without being declared.
    pub fn thread(&mut self, pid: u32, tid: u32) -> &mut ThreadSpec {
        self.threads.push(ThreadSpec { pid, tid, creator: (pid, tid), started: None, ended: None });
        self.threads.last_mut().expect("just pushed")
    }

    pub fn object_type(&mut self, id: u16, name: &str) -> &mut Self {
        self.types.push((id, name.into()));
        self
    }

    /// Any kernel event of a thread; a stack may follow.
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

    /// Any classic event of a thread; a stack may follow.
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

    /// An encoded event; `ns` only gives its place in the file.
    pub fn raw_event(&mut self, ns: i64, cpu: u16, bytes: Vec<u8>) -> &mut Self {
        self.add(self.options.raw(ns), cpu, None, bytes);
        self
    }

    /// Notes the event a stack may follow, and its thread.
    pub fn logged(&mut self, time: i64, caller: Caller) -> &mut Self {
        self.owner = Some(Owner { time, caller });
        self.callers.insert((caller.pid, caller.tid));
        self.acts.push((time, caller));
        self
    }

    /// Notes a change to what is open.
    pub fn changed(&mut self, ns: i64, caller: impl Into<Caller>, what: What) {
        self.changes.push(Change { ns, caller: caller.into(), what });
    }

    pub fn last_ns(&self) -> i64 {
        let last = self.entries.iter().map(|entry| entry.time).max();
        last.map_or(0, |time| self.options.nanoseconds(time))
    }

    pub fn add(&mut self, time: i64, cpu: u16, tid: Option<u32>, bytes: Vec<u8>) {
        self.entries.push(Entry { time, cpu, tid, bytes });
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

    /// An event of a rundown or merge: a perfinfo header, on processor 0, of no thread.
    pub fn add_rundown(&mut self, time: i64, event: &KernelPayload) {
        let bytes = event.event(HeaderKind::PerfInfo, self.options.pointer, Stamp::new(time, 0, 0));
        self.add(time, 0, None, bytes);
    }
}
