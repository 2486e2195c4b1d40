//! Scenarios: what processes did with handles, stated in nanoseconds since the session start.
//!
//! ```
//! use handlescope_tests::scenario::{Caller, TraceBuilder};
//!
//! let mut trace = TraceBuilder::new();
//! trace.process(4711, "app.exe").parent(4).started(1_000).command_line("app.exe -x");
//! trace.module(4711, r"C:\app\app.exe", 0x7ff6_0000_0000, 0x2_0000);
//! trace.object_type(16, "Event");
//! let app = Caller::new(4711, 4712).on(1);
//! trace
//!     .create_handle(2_000, app, 0xffff_8100_0000_1000, 0x24, 16)
//!     .stack(&[0xffff_f801_0000_1000], &[0x7ff6_0000_1000])
//!     .close_handle(9_000, app, 0xffff_8100_0000_1000, 0x24, 16, r"\BaseNamedObjects\Done");
//! let bytes = trace.to_bytes();
//! assert_eq!(bytes.len() % 65_536, 0);
//! ```
//!
//! Verbs take effect in any order of time. What [`TraceBuilder::to_bytes`] adds is what real
//! merged traces end with: rundowns of handles, types, processes, threads and images, image
//! identities and facts about the system.

mod actions;
mod config;
mod lifetimes;
mod memory;
mod noise;
mod rundown;
mod specs;
mod stacks;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::file::{EtlFile, FileOptions, FileSummary};
use crate::header::{HeaderKind, Stamp};
use crate::payload::{ClassicPayload, HandleRecord, KernelPayload, ViewRecord, context_switch};
use config::Config;
use stacks::Fragment;

pub use actions::{Caller, Duplicate, View};
pub use specs::{ModuleSpec, ProcessSpec, ThreadSpec};
pub use stacks::StackMode;

/// Time between the last event and the rundown at the end, in nanoseconds.
const RUNDOWN_DELAY: i64 = 1_000_000;

/// An event on its way into the file.
#[derive(Debug, Clone)]
struct Entry {
    time: i64,
    cpu: u16,
    /// The thread that logged the event; context switches are made from it.
    tid: Option<u32>,
    bytes: Vec<u8>,
}

/// The event the next stack belongs to.
#[derive(Debug, Clone, Copy)]
struct Owner {
    time: i64,
    caller: Caller,
}

/// Builds a trace file from what happened in it.
#[derive(Debug, Clone, Default)]
pub struct TraceBuilder {
    options: FileOptions,
    config: Config,
    processes: Vec<ProcessSpec>,
    modules: Vec<ModuleSpec>,
    threads: Vec<ThreadSpec>,
    types: Vec<(u16, String)>,
    handles_at_start: Vec<HandleRecord>,
    handles_at_end: Vec<HandleRecord>,
    views_at_end: Vec<ViewRecord>,
    entries: Vec<Entry>,
    fragments: Vec<Fragment>,
    owner: Option<Owner>,
    /// Threads (pid, tid) that logged events.
    callers: BTreeSet<(u32, u32)>,
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

    /// The finished file.
    ///
    /// # Panics
    /// As [`EtlFile::to_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.build().to_bytes()
    }

    /// Writes the finished file.
    ///
    /// # Errors
    /// When the file cannot be written.
    ///
    /// # Panics
    /// As [`EtlFile::to_bytes`].
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<FileSummary> {
        self.build().write(path.as_ref())
    }

    /// The file with all events, for changes before it is written.
    #[must_use]
    pub fn build(&self) -> EtlFile {
        let mut trace = self.clone();
        let said = std::mem::take(&mut trace.entries);
        trace.add_starts();
        trace.entries.extend(said);
        trace.add_ends();
        trace.add_stacks();
        let end = trace.config.end.unwrap_or_else(|| trace.last_ns() + RUNDOWN_DELAY);
        trace.add_noise(end);
        trace.add_rundowns(end);
        trace.entries.sort_by_key(|entry| entry.time);
        trace.into_file()
    }

    fn into_file(self) -> EtlFile {
        let mut running: Vec<Option<u32>> = vec![None; self.options.cpus as usize];
        let pointer = self.options.pointer;
        let mut file = EtlFile::new(self.options);
        for entry in self.entries {
            let current = running.get_mut(usize::from(entry.cpu)).filter(|_| entry.tid.is_some());
            if let Some(current) = current.filter(|current| **current != entry.tid)
                && self.config.context_switches
            {
                let switch = context_switch(entry.tid.unwrap_or(0), current.unwrap_or(0));
                let stamp = Stamp::new(entry.time, 0, 0);
                let bytes = switch.event(HeaderKind::PerfInfo, pointer, stamp);
                file.push(entry.cpu, entry.time, bytes);
                *current = entry.tid;
            }
            file.push(entry.cpu, entry.time, entry.bytes);
        }
        file
    }

    /// Notes the event a stack may follow, and its thread.
    fn logged(&mut self, time: i64, caller: Caller) -> &mut Self {
        self.owner = Some(Owner { time, caller });
        self.callers.insert((caller.pid, caller.tid));
        self
    }

    fn last_ns(&self) -> i64 {
        let last = self.entries.iter().map(|entry| entry.time).max();
        last.map_or(0, |time| self.options.nanoseconds(time))
    }

    fn add(&mut self, time: i64, cpu: u16, tid: Option<u32>, bytes: Vec<u8>) {
        self.entries.push(Entry { time, cpu, tid, bytes });
    }

    fn add_kernel(&mut self, kind: HeaderKind, time: i64, caller: Caller, event: &KernelPayload) {
        let stamp = Stamp::new(time, caller.pid, caller.tid);
        let bytes = event.event(kind, self.options.pointer, stamp);
        self.add(time, caller.cpu, Some(caller.tid), bytes);
    }

    /// An event of a rundown or merge: a perfinfo header, on processor 0, of no thread.
    fn add_rundown(&mut self, time: i64, event: &KernelPayload) {
        let bytes = event.event(HeaderKind::PerfInfo, self.options.pointer, Stamp::new(time, 0, 0));
        self.add(time, 0, None, bytes);
    }
}

#[cfg(test)]
mod tests;
