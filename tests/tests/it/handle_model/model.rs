//! Model of programs that use handles, and of what becomes of the handles.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::file::FileOptions;
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::{Caller, TraceBuilder, View};

use super::answer::{ByProcess, Handles, ObjectCounts};
use super::operations::{Operation, What};

const EVENT: u16 = 16;
const SYSTEM: usize = 0;
/// Time between two events of one operation: a tick of the finest clock.
const NEXT: i64 = 100;
/// Windows gives process ids again, but not within a tick.
const PID_REST: i64 = 40_000_000;
/// Longer than the slowest tick.
const STARTS_APART: i64 = 32_000_000;
const MAX_PROCESSES: usize = 7;

#[derive(Debug, Clone, Default)]
struct Process {
    pid: u32,
    name: String,
    parent: u32,
    /// Time and processor.
    started: Option<(i64, u16)>,
    ended: Option<(i64, u16)>,
    /// Open handles by value: places in [`Model::opened`].
    handles: BTreeMap<u32, usize>,
    /// Open views by address: places in [`Model::opened`].
    views: BTreeMap<u64, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    ByProgram,
    ByEnd,
}

/// A handle or view that was opened.
#[derive(Debug, Clone, Copy)]
struct Opened {
    ns: i64,
    /// The process it is counted for: of an inherited handle the parent.
    process: usize,
    /// The process in whose table it is, and its value there; of a view 0.
    holder: usize,
    value: u32,
    object: u64,
    is_view: bool,
    is_inherited: bool,
    closed: Option<Closed>,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Create { object: u64, handle: u32 },
    Close { object: u64, handle: u32 },
    Duplicate(DuplicateRecord),
    Map(u64),
    Unmap(u64),
    ObjectCreate(u64),
    ObjectDelete(u64),
}

/// Events of a history, and their known outcome.
pub(super) struct History {
    processes: Vec<Process>,
    opened: Vec<Opened>,
    events: Vec<(i64, u16, u32, Event)>,
    objects: ObjectCounts,
}

/// The state in which operations take effect.
pub(super) struct Model {
    with_objects: bool,
    now: i64,
    history: History,
    /// Handles of the objects that there are, by address.
    alive: BTreeMap<u64, u32>,
}

impl Model {
    /// Lets operations happen; `with_objects` records when objects come and go, too.
    pub(super) fn run(operations: &[Operation], with_objects: bool) -> History {
        let process = |pid: u32| Process { pid, name: format!("p{pid}.exe"), ..Process::default() };
        let processes = [4, 700, 704].map(process).to_vec();
        let history = History {
            processes,
            opened: Vec::new(),
            events: Vec::new(),
            objects: ObjectCounts::default(),
        };
        let mut model = Self { with_objects, now: 1_000_000, history, alive: BTreeMap::new() };
        for operation in operations {
            model.now += i64::from(operation.pause_us) * 1_000;
            model.operate(*operation);
        }
        model.history
    }

    fn operate(&mut self, operation: Operation) {
        let Operation { what, which, partner, processor, .. } = operation;
        let process = self.living(operation.process);
        let partner = self.living(partner);
        let (which, cpu) = (usize::from(which), u16::from(processor));
        match what {
            What::Create => self.create(process, self.free_address(), cpu),
            What::Open => {
                let objects: Vec<u64> = self.alive.keys().copied().collect();
                if let Some(object) = objects.get(which % objects.len().max(1)) {
                    self.create(process, *object, cpu);
                }
            }
            What::Pull => self.duplicate(process, (partner, which), process, cpu),
            What::Push => self.duplicate(process, (process, which), partner, cpu),
            What::Close => {
                if let Some(handle) = self.handle(process, which) {
                    self.close(process, handle, Closed::ByProgram, cpu);
                }
            }
            What::Replace => {
                if let Some(handle) = self.handle(process, which) {
                    self.close(process, handle, Closed::ByProgram, cpu);
                    self.create(process, self.free_address(), (cpu + 1) % 4);
                }
            }
            What::Start => self.start(process, which, cpu),
            What::End => self.end(process, cpu),
            What::Map => self.map(process, cpu),
            What::Unmap => {
                let views = &self.history.processes[process].views;
                let base = views.keys().nth(which % views.len().max(1)).copied();
                if let Some(base) = base {
                    self.unmap(process, base, cpu);
                }
            }
        }
    }

    fn living(&self, number: u8) -> usize {
        let processes = self.history.processes.iter().enumerate();
        let living: Vec<usize> =
            processes.filter(|(_, process)| process.ended.is_none()).map(|(at, _)| at).collect();
        living[usize::from(number) % living.len()]
    }

    fn handle(&self, process: usize, which: usize) -> Option<u32> {
        let handles = &self.history.processes[process].handles;
        handles.keys().nth(which % handles.len().max(1)).copied()
    }

    /// The lowest address that no object has: addresses are used again soon.
    fn free_address(&self) -> u64 {
        let addresses = (0..).map(|place| 0xffff_8100_0000_1000 + 0x100 * place);
        addresses.into_iter().find(|address| !self.alive.contains_key(address)).unwrap_or_default()
    }

    fn free_value(&self, process: usize) -> u32 {
        let handles = &self.history.processes[process].handles;
        (1..).map(|place| 4 * place).find(|value| !handles.contains_key(value)).unwrap_or_default()
    }

    fn record(&mut self, process: usize, cpu: u16, event: Event) -> i64 {
        self.now += NEXT;
        let pid = self.history.processes[process].pid;
        self.history.events.push((self.now, cpu, pid, event));
        self.now
    }

    /// A handle is there; returns its place.
    fn opened(&mut self, ns: i64, process: usize, object: u64, value: u32) -> usize {
        let opened = Opened {
            ns,
            process,
            holder: process,
            value,
            object,
            is_view: false,
            is_inherited: false,
            closed: None,
        };
        self.history.opened.push(opened);
        *self.alive.entry(object).or_default() += 1;
        self.history.opened.len() - 1
    }

    fn create(&mut self, process: usize, object: u64, cpu: u16) {
        if !self.alive.contains_key(&object) {
            self.history.objects.created += 1;
            if self.with_objects {
                self.record(process, cpu, Event::ObjectCreate(object));
            }
        }
        let handle = self.free_value(process);
        let ns = self.record(process, cpu, Event::Create { object, handle });
        let opened = self.opened(ns, process, object, handle);
        self.history.processes[process].handles.insert(handle, opened);
    }

    fn duplicate(&mut self, caller: usize, from: (usize, usize), target: usize, cpu: u16) {
        let Some(source_handle) = self.handle(from.0, from.1) else { return };
        let object = self.object_of(from.0, source_handle);
        let target_handle = self.free_value(target);
        let ns = self.record(
            caller,
            cpu,
            Event::Duplicate(DuplicateRecord {
                object,
                source_handle,
                target_handle,
                target_pid: self.history.processes[target].pid,
                type_id: EVENT,
                source_pid: Some(self.history.processes[from.0].pid),
            }),
        );
        let opened = self.opened(ns, target, object, target_handle);
        self.history.processes[target].handles.insert(target_handle, opened);
    }

    fn object_of(&self, process: usize, handle: u32) -> u64 {
        self.history.opened[self.history.processes[process].handles[&handle]].object
    }

    fn close(&mut self, process: usize, handle: u32, how: Closed, cpu: u16) {
        let object = self.object_of(process, handle);
        self.record(process, cpu, Event::Close { object, handle });
        let place = self.history.processes[process].handles.remove(&handle).unwrap();
        self.history.opened[place].closed = Some(how);
        let handles = self.alive.get_mut(&object).unwrap();
        *handles -= 1;
        if *handles == 0 {
            self.alive.remove(&object);
            self.history.objects.ended += 1;
            if self.with_objects {
                self.record(process, cpu, Event::ObjectDelete(object));
            }
        }
    }

    fn start(&mut self, parent: usize, which: usize, cpu: u16) {
        if self.history.processes.len() >= MAX_PROCESSES {
            return;
        }
        // Which of two children that start within a tick inherits a handle is not known.
        let last = self.history.processes.iter().filter_map(|process| process.started).max();
        self.now = self.now.max(last.map_or(0, |(ns, _)| ns + STARTS_APART));
        let child = self.history.processes.len();
        let taken: Vec<u32> = (self.history.processes.iter())
            .filter(|process| {
                let rests = |(ns, _)| self.now < ns + PID_REST;
                process.ended.is_none_or(rests) || !process.views.is_empty()
            })
            .map(|process| process.pid)
            .collect();
        let pid = (175..).map(|place| 4 * place).find(|pid| !taken.contains(pid)).unwrap();
        let parent_pid = self.history.processes[parent].pid;
        let inherited: Vec<u32> =
            self.history.processes[parent].handles.keys().copied().take(which % 3).collect();
        let mut handles = BTreeMap::new();
        for handle in inherited {
            let object = self.object_of(parent, handle);
            let duplicate = DuplicateRecord {
                object,
                source_handle: handle,
                target_handle: handle,
                target_pid: parent_pid,
                type_id: EVENT,
                source_pid: Some(parent_pid),
            };
            let ns = self.record(parent, cpu, Event::Duplicate(duplicate));
            let place = self.opened(ns, parent, object, handle);
            self.history.opened[place].is_inherited = true;
            self.history.opened[place].holder = child;
            handles.insert(handle, place);
        }
        self.now += NEXT;
        self.history.processes.push(Process {
            pid,
            name: format!("p{pid}-{child}.exe"),
            parent: parent_pid,
            started: Some((self.now, cpu)),
            handles,
            ..Process::default()
        });
    }

    /// The kernel closes what is open after the event that says the end.
    fn end(&mut self, process: usize, cpu: u16) {
        if process == SYSTEM {
            return;
        }
        self.now += NEXT;
        self.history.processes[process].ended = Some((self.now, cpu));
        let handles: BTreeSet<u32> =
            self.history.processes[process].handles.keys().copied().collect();
        for handle in handles {
            self.close(process, handle, Closed::ByEnd, cpu);
        }
    }

    fn map(&mut self, process: usize, cpu: u16) {
        let views = &self.history.processes[process].views;
        let bases = (1..).map(|place| 0x7_0000_0000 + 0x1_0000 * place);
        let base = bases.into_iter().find(|base| !views.contains_key(base)).unwrap();
        let ns = self.record(process, cpu, Event::Map(base));
        let view = Opened {
            ns,
            process,
            holder: process,
            value: 0,
            object: base,
            is_view: true,
            is_inherited: false,
            closed: None,
        };
        self.history.opened.push(view);
        let place = self.history.opened.len() - 1;
        self.history.processes[process].views.insert(base, place);
        self.history.objects.created += 1;
    }

    fn unmap(&mut self, process: usize, base: u64, cpu: u16) {
        self.record(process, cpu, Event::Unmap(base));
        let place = self.history.processes[process].views.remove(&base).unwrap();
        self.history.opened[place].closed = Some(Closed::ByProgram);
        self.history.objects.ended += 1;
    }
}

impl History {
    /// Moves all events to one processor.
    pub(super) fn on_one_processor(mut self) -> Self {
        self.events.iter_mut().for_each(|(_, cpu, _, _)| *cpu = 0);
        for process in &mut self.processes {
            let ends = [&mut process.started, &mut process.ended];
            ends.into_iter().flatten().for_each(|(_, cpu)| *cpu = 0);
        }
        self
    }

    /// Expected counts of handles.
    pub(super) fn handles(&self) -> Handles {
        let mut handles = Handles::default();
        let mut count = |counts: fn(&mut Handles) -> &mut ByProcess, opened: &Opened| {
            let name = self.processes[opened.process].name.clone();
            *counts(&mut handles).entry(name).or_default() += 1;
        };
        for opened in &self.opened {
            match (opened.closed, opened.is_view) {
                (None, false) => count(|handles| &mut handles.leaked, opened),
                (None, true) => count(|handles| &mut handles.leaked_views, opened),
                (Some(Closed::ByEnd), _) if !opened.is_inherited => {
                    count(|handles| &mut handles.closed_at_exit, opened);
                }
                _ => {}
            }
        }
        handles.opened = self.opened.iter().filter(|opened| !opened.is_view).count() as u64;
        handles.closed = self.opened.iter().filter(|opened| opened.closed.is_some()).count() as u64;
        handles
    }

    /// Expected counts of objects and views.
    pub(super) fn objects(&self) -> ObjectCounts {
        self.objects
    }

    /// The handles that were opened since a time, by their time, with whether they leak.
    pub(super) fn opened_since(&self, ns: i64) -> BTreeMap<i64, bool> {
        let handles = self.opened.iter().filter(|opened| !opened.is_view && opened.ns >= ns);
        handles.map(|opened| (opened.ns, opened.closed.is_none())).collect()
    }

    /// The handles that a part of the trace, with the opens at these times, shows to be closed: their values are used
    /// again.
    pub(super) fn reused(&self, opened: &BTreeMap<i64, bool>) -> BTreeSet<i64> {
        let mut latest = BTreeMap::new();
        let mut reused = BTreeSet::new();
        // Whose handle an inherited one is depends on events of processes, which may be missing.
        let is_there = |handle: &&Opened| !handle.is_inherited && opened.contains_key(&handle.ns);
        for handle in self.opened.iter().filter(|handle| !handle.is_view).filter(is_there) {
            reused.extend(latest.insert((handle.holder, handle.value), handle.ns));
        }
        reused
    }

    /// The handles of processes that are there at the end, which a rundown lists if they are open.
    pub(super) fn listed(&self) -> BTreeSet<i64> {
        let is_listed = |handle: &&Opened| {
            let is_alive = self.processes[handle.holder].ended.is_none();
            is_alive && !handle.is_inherited && !handle.is_view
        };
        self.opened.iter().filter(is_listed).map(|handle| handle.ns).collect()
    }

    /// Adds the rundown of what is open at the end to a trace of the history.
    pub(super) fn rundown(&self, trace: &mut TraceBuilder) {
        for process in &self.processes {
            for (handle, place) in &process.handles {
                let object = self.opened[*place].object;
                trace.handle_rundown_end(process.pid, object, *handle, EVENT, "");
            }
        }
    }

    /// The history as a trace.
    pub(super) fn trace(&self, options: FileOptions) -> TraceBuilder {
        let mut trace = TraceBuilder::with_options(options);
        trace.object_type(EVENT, "Event");
        for process in &self.processes {
            let spec = trace.process(process.pid, &process.name).parent(process.parent);
            if let Some((ns, cpu)) = process.started {
                spec.started(ns).start_processor(cpu);
            }
            if let Some((ns, cpu)) = process.ended {
                spec.ended(ns).end_processor(cpu);
            }
        }
        for (ns, cpu, pid, event) in &self.events {
            // Each process has a thread on each processor.
            let caller = Caller::new(*pid, pid + 1 + u32::from(*cpu)).on(*cpu);
            let view = |base| View { base, size: 0x1000, pid: *pid, ..View::default() };
            match *event {
                Event::Create { object, handle } => {
                    trace.create_handle(*ns, caller, object, handle, EVENT)
                }
                Event::Close { object, handle } => {
                    trace.close_handle(*ns, caller, object, handle, EVENT, "")
                }
                Event::Duplicate(record) => trace.duplicate_handle(*ns, caller, record),
                Event::Map(base) => trace.map(*ns, caller, view(base)),
                Event::Unmap(base) => trace.unmap(*ns, caller, view(base)),
                Event::ObjectCreate(object) => trace.create_object(*ns, caller, object, EVENT),
                Event::ObjectDelete(object) => trace.delete_object(*ns, caller, object, EVENT),
            };
        }
        trace
    }
}
