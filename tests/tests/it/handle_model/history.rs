//! The events of a history, their expected outcome, and the history as a trace.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::file::FileOptions;
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::{Caller, KERNEL_HANDLE, MappedView, TraceBuilder};

use super::answer::{ByProcess, HandleTotals, ObjectCounts};

pub const EVENT: u16 = 16;
pub const SYSTEM: usize = 0;

/// Kernel frames of opens, of closes by programs, and of closes in a sweep.
const OPEN_FRAMES: [u64; 2] = [0xffff_f800_0000_1100, 0xffff_f800_0000_2000];
const CLOSE_FRAMES: [u64; 2] = [0xffff_f800_0000_1200, 0xffff_f800_0000_2000];
const SWEEP_FRAMES: [u64; 2] = [0xffff_f800_0000_1300, 0xffff_f800_0000_2100];
const USER: [u64; 1] = [0x7ff8_0000_1000];

#[derive(Debug, Clone, Default)]
pub struct HistoryProcess {
    pub pid: u32,
    pub name: String,
    pub parent: u32,
    /// The thread that created the process.
    pub creator: Caller,
    /// Time and processor.
    pub started: Option<(i64, u16)>,
    pub ended: Option<(i64, u16)>,
    /// When the last of its open handles and views was closed.
    pub gone: Option<i64>,
    /// Open handles by value without the kernel bit: indexes into [`ModelHistory::opened`].
    pub handles: BTreeMap<u32, usize>,
    /// Open views by address: indexes into [`ModelHistory::opened`].
    pub views: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    ByProgram,
    ByEnd,
}

/// A handle or view that was opened.
#[derive(Debug, Clone, Copy)]
pub struct HistoryHandle {
    pub ns: i64,
    /// The process that owns it, and its value there (0 for a view). `None` for a child that did not start.
    pub owner: Option<usize>,
    pub value: u32,
    pub object: u64,
    pub is_view: bool,
    pub is_inherited: bool,
    /// Whether it takes process events to know the owner.
    pub is_early: bool,
    pub closed: Option<CloseCause>,
}

#[derive(Debug, Clone, Copy)]
pub enum ModelEvent {
    Create { object: u64, handle: u32 },
    Close { object: u64, handle: u32, how: CloseCause },
    Duplicate(DuplicateRecord),
    Map(u64),
    Unmap { base: u64, how: CloseCause },
    ObjectCreate(u64),
    ObjectDelete(u64),
}

/// An event with its time and thread.
#[derive(Debug, Clone, Copy)]
pub struct HistoryEvent {
    pub ns: i64,
    pub cpu: u16,
    pub pid: u32,
    pub event: ModelEvent,
}

/// The events of a history, and their known outcome.
pub struct ModelHistory {
    pub processes: Vec<HistoryProcess>,
    pub opened: Vec<HistoryHandle>,
    pub events: Vec<HistoryEvent>,
    pub objects: ObjectCounts,
}

/// Returns the thread of a process on a processor; each process has one on each.
pub fn thread(pid: u32, cpu: u16) -> Caller {
    Caller::new(pid, pid + 1 + u32::from(cpu)).on(cpu)
}

impl ModelHistory {
    /// Moves all events to one processor; the threads stay the same.
    pub fn on_one_processor(mut self) -> Self {
        self.events.iter_mut().for_each(|event| event.cpu = 0);
        for process in &mut self.processes {
            let ends = [&mut process.started, &mut process.ended];
            ends.into_iter().flatten().for_each(|(_, cpu)| *cpu = 0);
            process.creator = thread(process.creator.pid, 0);
        }
        self
    }

    /// Returns the expected counts of handles.
    pub fn handles(&self) -> HandleTotals {
        let mut handles = HandleTotals::default();
        let mut count = |counts: fn(&mut HandleTotals) -> &mut ByProcess,
                         opened: &HistoryHandle| {
            if let Some(owner) = opened.owner {
                let name = self.processes[owner].name.clone();
                *counts(&mut handles).entry(name).or_default() += 1;
            }
        };
        for opened in &self.opened {
            match (opened.closed, opened.is_view) {
                (None, false) => count(|handles| &mut handles.leaked, opened),
                (None, true) => count(|handles| &mut handles.leaked_views, opened),
                (Some(CloseCause::ByEnd), _) if !opened.is_inherited => {
                    count(|handles| &mut handles.closed_at_exit, opened);
                }
                _ => {}
            }
        }
        handles.opened = self.opened.iter().filter(|opened| !opened.is_view).count() as u64;
        handles.closed = self.opened.iter().filter(|opened| opened.closed.is_some()).count() as u64;
        handles
    }

    /// Returns the expected counts of objects and views.
    pub fn objects(&self) -> ObjectCounts {
        self.objects
    }

    /// Returns the handles opened since a time, by their time, with whether they leak.
    pub fn opened_since(&self, ns: i64) -> BTreeMap<i64, bool> {
        self.opened
            .iter()
            .filter(|opened| !opened.is_view && opened.ns >= ns)
            .map(|opened| (opened.ns, opened.closed.is_none()))
            .collect()
    }

    /// Returns the handles that a part of the trace shows to be closed, because their values are reused. `opened` has
    /// the opens in that part, by time.
    pub fn reused(&self, opened: &BTreeMap<i64, bool>) -> BTreeSet<i64> {
        let mut latest = BTreeMap::new();
        let mut reused = BTreeSet::new();
        let is_there =
            |handle: &&HistoryHandle| !handle.is_early && opened.contains_key(&handle.ns);
        for handle in self.opened.iter().filter(|handle| !handle.is_view).filter(is_there) {
            reused.extend(latest.insert((handle.owner, handle.value), handle.ns));
        }
        reused
    }

    /// Returns the handles of processes alive at the end; a rundown lists those that are open.
    pub fn listed(&self) -> BTreeSet<i64> {
        let is_listed = |handle: &&HistoryHandle| {
            let is_alive = |owner: usize| self.processes[owner].ended.is_none();
            handle.owner.is_some_and(is_alive) && !handle.is_early && !handle.is_view
        };
        self.opened.iter().filter(is_listed).map(|handle| handle.ns).collect()
    }

    /// Adds the rundown of everything open at the end to a trace of the history.
    pub fn rundown(&self, trace: &mut TraceBuilder) {
        for (number, process) in self.processes.iter().enumerate() {
            for (value, place) in &process.handles {
                let object = self.opened[*place].object;
                let bit = if number == SYSTEM { KERNEL_HANDLE } else { 0 };
                trace.handle_rundown_end(process.pid, object, value | bit, EVENT, "");
            }
        }
    }

    /// Returns the history as a trace.
    pub fn trace(&self, options: FileOptions) -> TraceBuilder {
        let mut trace = TraceBuilder::with_options(options);
        trace.object_type(EVENT, "Event");
        for process in &self.processes {
            // The history itself has the sweep at the end.
            let spec = trace.process(process.pid, &process.name).parent(process.parent).unswept();
            if let Some((ns, cpu)) = process.started {
                spec.started(ns).start_processor(cpu);
                spec.creator(process.creator.pid, process.creator.tid);
            }
            if let Some((ns, cpu)) = process.ended {
                spec.ended(ns).end_processor(cpu);
            }
        }
        for HistoryEvent { ns, cpu, pid, event } in &self.events {
            let caller = thread(*pid, *cpu);
            let view = |base| MappedView { base, size: 0x1000, pid: *pid, ..MappedView::default() };
            let event_of = match *event {
                ModelEvent::Create { object, handle } => {
                    trace.create_handle(*ns, caller, object, handle, EVENT)
                }
                ModelEvent::Close { object, handle, .. } => {
                    trace.close_handle(*ns, caller, object, handle, EVENT, "")
                }
                ModelEvent::Duplicate(record) => trace.duplicate_handle(*ns, caller, record),
                ModelEvent::Map(base) => trace.map(*ns, caller, view(base)),
                ModelEvent::Unmap { base, .. } => trace.unmap(*ns, caller, view(base)),
                ModelEvent::ObjectCreate(object) => trace.create_object(*ns, caller, object, EVENT),
                ModelEvent::ObjectDelete(object) => trace.delete_object(*ns, caller, object, EVENT),
            };
            match event {
                ModelEvent::Close { how: CloseCause::ByEnd, .. }
                | ModelEvent::Unmap { how: CloseCause::ByEnd, .. } => {
                    event_of.stack(&SWEEP_FRAMES, &[])
                }
                ModelEvent::Close { .. } | ModelEvent::Unmap { .. } => {
                    event_of.stack(&CLOSE_FRAMES, &USER)
                }
                ModelEvent::Create { .. } | ModelEvent::Duplicate(_) | ModelEvent::Map(_) => {
                    event_of.stack(&OPEN_FRAMES, &USER)
                }
                ModelEvent::ObjectCreate(_) | ModelEvent::ObjectDelete(_) => event_of,
            };
        }
        trace
    }
}
