//! A machine being traced: keeps objects and handle tables while its processes run.

use std::collections::{BTreeMap, HashSet};

use handlescope_tests::file::{FileOptions, FileSummary};
use handlescope_tests::payload::Sid;
use handlescope_tests::rng::Rng;
use handlescope_tests::scenario::{Caller, DuplicatedHandle, StackMode, TraceBuilder};
use handlescope_tests::stacks::{EventStack, Stacks};

use crate::handles::{HandleTable, SampleObject, TYPES};

/// Processors of the machine.
pub const CPUS: u16 = 4;
/// Time between two module loads, in nanoseconds.
const LOAD_STEP: i64 = 200_000;

/// A process and its lifetime in nanoseconds; `None` means before or after the trace.
#[derive(Debug, Clone)]
pub struct SampleProcess {
    pub pid: u32,
    /// The thread that starts the process.
    pub parent: Caller,
    pub session: u32,
    pub name: &'static str,
    pub command_line: &'static str,
    pub user: Sid,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    /// File names of its modules, in load order.
    pub modules: &'static [&'static str],
}

/// The machine and the trace it writes.
#[derive(Debug)]
pub struct Machine {
    pub stacks: Stacks,
    pub rng: Rng,
    trace: TraceBuilder,
    tables: BTreeMap<u32, HandleTable>,
    /// Times of handle events. Each is unique, so that its stack finds it.
    taken: HashSet<i64>,
    last_pointer: u64,
}

impl Machine {
    pub fn new(stacks: Stacks, options: FileOptions) -> Self {
        let mut trace = TraceBuilder::with_options(options);
        trace.rundowns(true, true);
        for (id, name) in TYPES {
            trace.object_type(id, name);
        }
        let mut machine = Self {
            stacks,
            rng: Rng::new(2),
            trace,
            tables: BTreeMap::new(),
            taken: HashSet::new(),
            last_pointer: 0xffff_9a0c_51e0_0000,
        };
        machine.module(0, "ntoskrnl.exe", None);
        machine
    }

    /// Creates an object; no two have the same address.
    pub fn object(&mut self, type_id: u16, name: &str) -> SampleObject {
        self.last_pointer += 0x60 + 0x10 * self.rng.below(40);
        SampleObject { pointer: self.last_pointer, type_id, name: name.to_owned() }
    }

    /// Adds a process. One that starts in the trace loads its modules `delay` ns later.
    pub fn process(&mut self, process: SampleProcess, delay: i64) {
        let spec = self.trace.process(process.pid, process.name);
        spec.parent(process.parent.pid)
            .creator_thread(process.parent.tid)
            .session(process.session)
            .command_line(process.command_line)
            .sid(Some(process.user));
        if let Some(ns) = process.started {
            spec.started(ns);
        }
        if let Some(ns) = process.ended {
            spec.ended(ns);
        }
        self.tables.entry(process.pid).or_default();
        for (index, module) in (0..).zip(process.modules) {
            let loaded = process.started.map(|ns| ns + delay + index * LOAD_STEP);
            self.module(process.pid, module, loaded);
        }
    }

    /// Adds a thread that starts in the trace and may end in it.
    pub fn thread(&mut self, thread: Caller, started: i64, ended: Option<i64>) {
        let spec = self.trace.thread(thread.pid, thread.tid);
        spec.started(started);
        if let Some(ns) = ended {
            spec.ended(ns);
        }
    }

    /// Lets a thread create or open an object.
    pub fn create(
        &mut self,
        thread: Caller,
        ns: i64,
        object: &SampleObject,
        stack: &EventStack,
    ) -> u32 {
        let handle = self.table(thread.pid).open(object);
        self.before_event(thread, ns);
        self.trace
            .create_handle(ns, thread, object.pointer, handle, object.type_id)
            .stack(&stack.kernel, &stack.user);
        handle
    }

    /// Lets a thread close a handle.
    pub fn close(&mut self, thread: Caller, ns: i64, handle: u32, stack: &EventStack) {
        let object = self.table(thread.pid).close(handle);
        self.before_event(thread, ns);
        self.trace
            .close_handle(ns, thread, object.pointer, handle, object.type_id, &object.name)
            .stack(&stack.kernel, &stack.user);
    }

    /// Lets a thread duplicate a handle into another process; returns its value there.
    pub fn duplicate_to(
        &mut self,
        thread: Caller,
        ns: i64,
        (handle, object): (u32, &SampleObject),
        target_pid: u32,
        stack: &EventStack,
    ) -> u32 {
        let target_handle = self.table(target_pid).open(object);
        self.duplicate(thread, ns, object, (handle, target_handle), target_pid, stack);
        target_handle
    }

    /// Lets a process that is about to start inherit a handle. The event comes first, in the parent, and names the
    /// parent on both sides, with equal handle values.
    pub fn inherit(
        &mut self,
        thread: Caller,
        ns: i64,
        (handle, object): (u32, &SampleObject),
        child_pid: u32,
        stack: &EventStack,
    ) {
        self.tables.entry(child_pid).or_default().open_as(handle, object);
        self.duplicate(thread, ns, object, (handle, handle), thread.pid, stack);
    }

    /// Adds a handle to a new object from before the trace.
    pub fn opened_before(&mut self, pid: u32, type_id: u16, name: &str) -> u32 {
        let object = self.object(type_id, name);
        let handle = self.table(pid).open(&object);
        self.trace.handle_rundown_start(pid, object.pointer, handle, type_id, name);
        handle
    }

    /// Ends the trace: handles that are still open are listed.
    pub fn stop(&mut self, ns: i64) {
        self.trace.end(ns);
        for (pid, table) in &self.tables {
            for (handle, object) in table.iter() {
                let SampleObject { pointer, type_id, name } = object;
                self.trace.handle_rundown_end(*pid, *pointer, handle, *type_id, name);
            }
        }
    }

    /// Writes the trace.
    pub fn write(&self, path: &std::path::Path) -> std::io::Result<FileSummary> {
        self.trace.write(path)
    }

    fn duplicate(
        &mut self,
        thread: Caller,
        ns: i64,
        object: &SampleObject,
        (source_handle, target_handle): (u32, u32),
        target_pid: u32,
        stack: &EventStack,
    ) {
        let duplicate = DuplicatedHandle {
            object: object.pointer,
            source_handle,
            target_handle,
            target_pid,
            type_id: object.type_id,
            source_pid: Some(thread.pid),
        };
        self.before_event(thread, ns);
        self.trace.duplicate_handle(ns, thread, duplicate).stack(&stack.kernel, &stack.user);
    }

    fn module(&mut self, pid: u32, file: &str, loaded: Option<i64>) {
        let (module, base, path) = self.stacks.module(file);
        let original_name = if file == "ntoskrnl.exe" { "ntkrnlmp.exe" } else { file };
        let spec = self.trace.module(pid, &path, base, module.size);
        spec.timestamp(module.timestamp)
            .checksum(0)
            .pdb(&module.pdb, module.guid, module.age)
            .original_name(original_name);
        if let Some(ns) = loaded {
            spec.loaded(ns);
        }
    }

    /// The user part of a stack is logged some microseconds after the event, when the thread is back in user mode. Now
    /// and then that is on another processor.
    fn before_event(&mut self, thread: Caller, ns: i64) {
        assert!(self.taken.insert(self.trace.options().raw(ns)), "two handle events at {ns} ns");
        self.trace.user_stack_delay(2_000 + 100 * self.rng.below(30) as i64);
        let moved = self.rng.percent(10);
        let other = StackMode::UserOn((thread.cpu + 1) % CPUS);
        self.trace.stack_mode(if moved { other } else { StackMode::Fragments });
    }

    fn table(&mut self, pid: u32) -> &mut HandleTable {
        self.tables.get_mut(&pid).unwrap_or_else(|| panic!("process {pid} has no handle table"))
    }
}
