//! A model of programs that use handles, and of what happens to the handles.

use std::collections::{BTreeMap, VecDeque};

use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::KERNEL_HANDLE;

use super::answer::ObjectCounts;
use super::history::{
    CloseCause, EVENT, HistoryEvent, HistoryHandle, HistoryProcess, ModelEvent, ModelHistory,
    SYSTEM,
};
use super::operations::{ModelOperation, OperationKind};

/// Time between two events of an operation: a tick of the finest clock.
pub const NEXT: i64 = 100;
/// Pseudo handles of the current process and thread.
const PSEUDO: [u32; 2] = [0xffff_ffff, 0xffff_fffe];

/// What differs between histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSetup {
    /// Whether events say when objects are created and deleted.
    pub with_objects: bool,
    /// Whether the clock stands still for up to 15.6 ms; some things must then not happen soon after each other.
    pub is_coarse: bool,
    /// Whether duplicates that a child inherits name the parent as their target, as older generated traces do.
    pub names_parent: bool,
}

impl ModelSetup {
    pub const EXACT: Self = Self { with_objects: false, is_coarse: false, names_parent: false };
}

/// The state in which operations take effect.
pub struct Model {
    pub setup: ModelSetup,
    pub now: i64,
    pub history: ModelHistory,
    /// Reference counts of the existing objects, by address: handles, and messages that carry one.
    alive: BTreeMap<u64, u32>,
    /// What exited processes still have to close, in time order.
    pub sweeps: VecDeque<Sweep>,
}

/// A close or unmap that happens later because its process exited.
#[derive(Debug, Clone, Copy)]
pub struct Sweep {
    pub ns: i64,
    pub process: usize,
    pub cpu: u16,
    /// A handle; `None` for a view.
    pub handle: Option<u32>,
    pub view: Option<u64>,
}

impl Model {
    /// Runs operations and returns their history.
    pub fn run(operations: &[ModelOperation], setup: ModelSetup) -> ModelHistory {
        let process = |pid: u32| HistoryProcess {
            pid,
            name: format!("p{pid}.exe"),
            ..HistoryProcess::default()
        };
        let processes = [4, 700, 704].map(process).to_vec();
        let history = ModelHistory {
            processes,
            opened: Vec::new(),
            events: Vec::new(),
            objects: ObjectCounts::default(),
        };
        let (alive, sweeps) = (BTreeMap::new(), VecDeque::new());
        let mut model = Self { setup, now: 1_000_000, history, alive, sweeps };
        // A program goes on after a close and an unmap, so that these frames are known to be a program's.
        model.create(1, 1, model.free_address(), 0);
        model.close(1, (1, 4), 0, CloseCause::ByProgram, 0);
        model.create(1, 1, model.free_address(), 0);
        model.map(1, 0);
        let view = *model.history.processes[1].views.keys().next().unwrap();
        model.unmap(1, view, CloseCause::ByProgram, 0);
        model.map(1, 0);
        for operation in operations {
            model.pause(i64::from(operation.pause_us) * 1_000);
            model.operate(*operation);
        }
        model.pause(60_000_000);
        model.history
    }

    fn operate(&mut self, operation: ModelOperation) {
        let ModelOperation { what, which, partner, processor, tag, .. } = operation;
        let process = self.living(operation.process);
        let partner = self.living(partner);
        let (which, cpu, tag) = (usize::from(which), u16::from(processor), u32::from(tag));
        match what {
            OperationKind::Create => self.create(process, process, self.free_address(), cpu),
            OperationKind::Open => {
                let objects: Vec<u64> = self.alive.keys().copied().collect();
                if let Some(object) = objects.get(which % objects.len().max(1)) {
                    self.create(process, process, *object, cpu);
                }
            }
            OperationKind::CreateKernel => self.create(process, SYSTEM, self.free_address(), cpu),
            OperationKind::CloseKernel => {
                if let Some(value) = self.handle(SYSTEM, which) {
                    self.close(process, (SYSTEM, value), tag, CloseCause::ByProgram, cpu);
                }
            }
            OperationKind::Pull => self.duplicate(process, (partner, which), process, cpu),
            OperationKind::Push => self.duplicate(process, (process, which), partner, cpu),
            OperationKind::Pseudo => self.duplicate_pseudo(process, which, cpu),
            OperationKind::Give => self.transfer(process, (process, which), partner, cpu),
            OperationKind::Take => self.transfer(process, (partner, which), process, cpu),
            OperationKind::Send => self.send((process, which), partner, cpu),
            OperationKind::Close => {
                if let Some(value) = self.handle(process, which) {
                    self.close(process, (process, value), tag, CloseCause::ByProgram, cpu);
                }
            }
            OperationKind::CloseOther => {
                if let Some(value) = self.handle(partner, which)
                    && self.is_unique(process, (partner, value))
                {
                    self.close(process, (partner, value), tag, CloseCause::ByProgram, cpu);
                }
            }
            OperationKind::Replace => {
                if let Some(value) = self.handle(process, which) {
                    self.close(process, (process, value), tag, CloseCause::ByProgram, cpu);
                    self.create(process, process, self.free_address(), (cpu + 1) % 4);
                }
            }
            OperationKind::Start => self.start(process, process, which, cpu),
            OperationKind::StartFor => self.start(process, partner, which, cpu),
            OperationKind::StartTwo => self.start_two(process, which, cpu),
            OperationKind::StartFails => self.start_fails(process, partner, which, cpu),
            OperationKind::Fork => self.fork(process, which, cpu),
            OperationKind::End => self.end(process, cpu),
            OperationKind::Kill => self.kill(partner, process, cpu),
            OperationKind::Map => self.map(process, cpu),
            OperationKind::Unmap => {
                let views = &self.history.processes[process].views;
                let base = views.keys().nth(which % views.len().max(1)).copied();
                if let Some(base) = base {
                    self.unmap(process, base, CloseCause::ByProgram, cpu);
                }
            }
        }
    }

    /// Lets time pass, during which exited processes close what they have open.
    pub fn pause(&mut self, ns: i64) {
        let until = self.now + ns;
        while let Some(sweep) = self.sweeps.pop_front_if(|sweep| sweep.ns <= until) {
            self.now = self.now.max(sweep.ns);
            let Sweep { process, cpu, handle, view, .. } = sweep;
            if let Some(value) = handle {
                self.close(process, (process, value), 0, CloseCause::ByEnd, cpu);
            }
            if let Some(base) = view {
                self.unmap(process, base, CloseCause::ByEnd, cpu);
            }
        }
        self.now = self.now.max(until);
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

    /// Returns the lowest address without an object, so that addresses are reused soon.
    pub fn free_address(&self) -> u64 {
        (0..)
            .map(|place| 0xffff_8100_0000_1000 + 0x100 * place)
            .find(|address| !self.alive.contains_key(address))
            .unwrap_or_default()
    }

    pub fn free_value(&self, process: usize) -> u32 {
        let handles = &self.history.processes[process].handles;
        (1..).map(|place| 4 * place).find(|value| !handles.contains_key(value)).unwrap_or_default()
    }

    pub fn object_of(&self, (process, value): (usize, u32)) -> u64 {
        self.history.opened[self.history.processes[process].handles[&value]].object
    }

    /// Whether a close by another process can only mean this handle: that process has none with this value and object,
    /// and no third process has one.
    pub fn is_unique(&self, caller: usize, handle: (usize, u32)) -> bool {
        let (owner, value) = handle;
        let object = self.object_of(handle);
        let has = |process: usize| {
            let place = self.history.processes[process].handles.get(&value);
            place.is_some_and(|place| self.history.opened[*place].object == object)
        };
        caller != owner
            && owner != SYSTEM
            && (0..self.history.processes.len()).filter(|process| has(*process)).count() == 1
    }

    pub fn record(&mut self, process: usize, cpu: u16, event: ModelEvent) -> i64 {
        self.now += NEXT;
        let pid = self.history.processes[process].pid;
        self.history.events.push(HistoryEvent { ns: self.now, cpu, pid, event });
        self.now
    }

    /// Notes an opened handle; returns its index.
    pub fn open(&mut self, ns: i64, owner: Option<usize>, object: u64, value: u32) -> usize {
        let opened = HistoryHandle {
            ns,
            owner,
            value,
            object,
            is_view: false,
            is_inherited: false,
            is_early: false,
            closed: None,
        };
        self.history.opened.push(opened);
        self.refer(object);
        let place = self.history.opened.len() - 1;
        if let Some(owner) = owner {
            self.history.processes[owner].handles.insert(value, place);
        }
        place
    }

    /// Adds a reference to an object.
    fn refer(&mut self, object: u64) {
        *self.alive.entry(object).or_default() += 1;
    }

    /// Removes a reference to an object, by a thread of a process.
    pub fn forget(&mut self, object: u64, process: usize, cpu: u16) {
        let references = self.alive.get_mut(&object).unwrap();
        *references -= 1;
        if *references == 0 {
            self.alive.remove(&object);
            self.history.objects.ended += 1;
            if self.setup.with_objects {
                self.record(process, cpu, ModelEvent::ObjectDelete(object));
            }
        }
    }

    /// Counts an object that did not exist before.
    fn begin(&mut self, object: u64, process: usize, cpu: u16) {
        if !self.alive.contains_key(&object) {
            self.history.objects.created += 1;
            if self.setup.with_objects {
                self.record(process, cpu, ModelEvent::ObjectCreate(object));
            }
        }
    }

    /// Lets a thread of a process open a handle in its own table or that of System.
    fn create(&mut self, process: usize, owner: usize, object: u64, cpu: u16) {
        self.begin(object, process, cpu);
        let value = self.free_value(owner);
        // Threads of System open handles in its table with and without the bit.
        let is_marked = owner == SYSTEM && (process != SYSTEM || cpu == 0);
        let handle = value | if is_marked { KERNEL_HANDLE } else { 0 };
        let ns = self.record(process, cpu, ModelEvent::Create { object, handle });
        self.open(ns, Some(owner), object, value);
    }

    /// Returns the handle value as events show it. In the table of System, other processes set the bit, and System may
    /// set it.
    fn shown(&self, owner: usize, value: u32, caller: usize, cpu: u16) -> u32 {
        let is_marked = owner == SYSTEM && (caller != SYSTEM || cpu.is_multiple_of(2));
        value | if is_marked { KERNEL_HANDLE } else { 0 }
    }

    fn duplicate(&mut self, caller: usize, from: (usize, usize), target: usize, cpu: u16) {
        let Some(value) = self.handle(from.0, from.1) else { return };
        let object = self.object_of((from.0, value));
        let source_handle = self.shown(from.0, value, caller, cpu);
        self.duplicate_from(caller, (from.0, source_handle), target, object, cpu);
    }

    /// Duplicates a handle, which may have just been closed, into a process.
    fn duplicate_from(
        &mut self,
        caller: usize,
        (source, source_handle): (usize, u32),
        target: usize,
        object: u64,
        cpu: u16,
    ) {
        let value = self.free_value(target);
        let record = DuplicateRecord {
            object,
            source_handle,
            target_handle: self.shown(target, value, caller, cpu),
            target_pid: self.history.processes[target].pid,
            type_id: EVENT,
            source_pid: Some(self.history.processes[source].pid),
        };
        let ns = self.record(caller, cpu, ModelEvent::Duplicate(record));
        self.open(ns, Some(target), object, value);
    }

    fn duplicate_pseudo(&mut self, process: usize, which: usize, cpu: u16) {
        let object = self.free_address();
        self.begin(object, process, cpu);
        let pseudo = PSEUDO[which % PSEUDO.len()];
        self.duplicate_from(process, (process, pseudo), process, object, cpu);
    }

    /// Moves a handle: the caller closes the source, then makes the duplicate.
    fn transfer(&mut self, caller: usize, from: (usize, usize), target: usize, cpu: u16) {
        let Some(value) = self.handle(from.0, from.1) else { return };
        if from.0 == SYSTEM || caller != from.0 && !self.is_unique(caller, (from.0, value)) {
            return;
        }
        let object = self.object_of((from.0, value));
        self.refer(object);
        self.close(caller, (from.0, value), 0, CloseCause::ByProgram, cpu);
        self.duplicate_from(caller, (from.0, value), target, object, cpu);
        self.forget(object, caller, cpu);
    }

    /// Sends a handle; the receiver duplicates it after the sender closed it.
    fn send(&mut self, from: (usize, usize), receiver: usize, cpu: u16) {
        let Some(value) = self.handle(from.0, from.1) else { return };
        if from.0 == SYSTEM || from.0 == receiver {
            return;
        }
        let object = self.object_of((from.0, value));
        self.refer(object);
        self.close(from.0, (from.0, value), 0, CloseCause::ByProgram, cpu);
        self.pause(20_000);
        if self.history.processes[receiver].ended.is_none() {
            self.duplicate_from(receiver, (from.0, value), receiver, object, (cpu + 1) % 4);
        }
        self.forget(object, from.0, cpu);
    }

    /// Closes a handle of a process, with these low bits.
    pub fn close(
        &mut self,
        caller: usize,
        (owner, value): (usize, u32),
        tag: u32,
        how: CloseCause,
        cpu: u16,
    ) {
        let object = self.object_of((owner, value));
        let handle = self.shown(owner, value, caller, cpu) | tag;
        self.record(caller, cpu, ModelEvent::Close { object, handle, how });
        let place = self.history.processes[owner].handles.remove(&value).unwrap();
        self.history.opened[place].closed = Some(how);
        self.forget(object, caller, cpu);
    }

    fn map(&mut self, process: usize, cpu: u16) {
        let views = &self.history.processes[process].views;
        let base = (1..)
            .map(|place| 0x7_0000_0000 + 0x1_0000 * place)
            .find(|base| !views.contains_key(base))
            .unwrap();
        let ns = self.record(process, cpu, ModelEvent::Map(base));
        let view = HistoryHandle {
            ns,
            owner: Some(process),
            value: 0,
            object: base,
            is_view: true,
            is_inherited: false,
            is_early: false,
            closed: None,
        };
        self.history.opened.push(view);
        let place = self.history.opened.len() - 1;
        self.history.processes[process].views.insert(base, place);
        self.history.objects.created += 1;
    }

    pub fn unmap(&mut self, process: usize, base: u64, how: CloseCause, cpu: u16) {
        self.record(process, cpu, ModelEvent::Unmap { base, how });
        let place = self.history.processes[process].views.remove(&base).unwrap();
        self.history.opened[place].closed = Some(how);
        self.history.objects.ended += 1;
    }
}
