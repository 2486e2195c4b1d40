//! Starts and ends of processes in the model.

use handlescope_tests::payload::DuplicateRecord;

use super::history::{CloseCause, EVENT, HistoryProcess, ModelEvent, SYSTEM, thread};
use super::model::{Model, NEXT, Sweep};

const US: i64 = 1_000;
/// Minimum time from the end of a sweep until the pid is reused; with a coarse clock it is longer than the 15.6 ms
/// tick.
const PID_REST: [i64; 2] = [100 * US, 20_000 * US];
/// Minimum time between two starts. It is longer than the slowest tick; within a tick, nothing tells the children
/// apart.
const STARTS_APART: i64 = 32_000 * US;
const MAX_PROCESSES: usize = 9;

/// A child that is being created: its creating process, its parent, and what it inherits.
#[derive(Debug, Clone)]
struct Child {
    creator: usize,
    parent: usize,
    /// The creating thread is the creator's thread on this processor.
    cpu: u16,
    /// Values in the child, with indexes into what was opened.
    inherited: Vec<(u32, usize)>,
}

impl Model {
    /// Lets a process create a child, of itself or of another parent.
    pub fn start(&mut self, creator: usize, parent: usize, which: usize, cpu: u16) {
        if self.can_start(1) {
            let child = self.inherit(creator, parent, which, cpu);
            self.begin_process(child);
        }
    }

    /// Lets two threads create children at once; the one that inherits last starts first.
    pub fn start_two(&mut self, parent: usize, which: usize, cpu: u16) {
        if self.can_start(2) {
            let first = self.inherit(parent, parent, which, cpu);
            let second = self.inherit(parent, parent, which + 1, (cpu + 1) % 4);
            self.begin_process(second);
            self.begin_process(first);
        }
    }

    /// Lets a child inherit; its creation then fails, and the creating thread closes all of that again.
    pub fn start_fails(&mut self, creator: usize, parent: usize, which: usize, cpu: u16) {
        // In the older form, nothing says whose handles the call closes.
        if self.setup.names_parent {
            return;
        }
        let child = self.inherit(creator, parent, which, cpu);
        self.pause(30 * US);
        for (value, place) in child.inherited {
            let object = self.history.opened[place].object;
            let how = CloseCause::ByEnd;
            self.record(creator, cpu, ModelEvent::Close { object, handle: value, how });
            self.history.opened[place].closed = Some(how);
            self.forget(object, creator, cpu);
        }
    }

    /// Gives handles to a child that has a pid, before the event of its start.
    pub fn fork(&mut self, parent: usize, which: usize, cpu: u16) {
        if !self.can_start(1) {
            return;
        }
        // Until the start, a reused pid would mean the process that ended.
        let pid =
            self.history.processes.iter().map(|process| process.pid).max().unwrap_or_default() + 4;
        let parent_pid = self.history.processes[parent].pid;
        let child = self.history.processes.len();
        self.add_process(pid, parent, (parent, cpu));
        for (number, source_handle) in self.heritable(parent, which).into_iter().enumerate() {
            let object = self.object_of((parent, source_handle));
            let value = 4 * (number as u32 + 1);
            let record = DuplicateRecord {
                object,
                source_handle,
                target_handle: value,
                target_pid: pid,
                type_id: EVENT,
                source_pid: Some(parent_pid),
            };
            let ns = self.record(parent, cpu, ModelEvent::Duplicate(record));
            let place = self.open(ns, Some(child), object, value);
            self.history.opened[place].is_early = true;
        }
        self.now += NEXT;
        self.history.processes[child].started = Some((self.now, cpu));
    }

    /// Ends a process. Some time after the end event, its handles are closed, then its views are unmapped.
    pub fn end(&mut self, process: usize, cpu: u16) {
        if process == SYSTEM {
            return;
        }
        self.now += NEXT;
        let ended = &mut self.history.processes[process];
        ended.ended = Some((self.now, cpu));
        let handles = ended.handles.keys().map(|value| (Some(*value), None));
        let swept: Vec<_> =
            handles.chain(ended.views.keys().map(|base| (None, Some(*base)))).collect();
        // From microseconds to over ten milliseconds each.
        let step = [7, 90, 700, 4_000][usize::from(cpu)] * US;
        let mut ns = self.now + (300 + 170 * i64::from(cpu)) * US;
        for (handle, view) in swept {
            self.sweeps.push_back(Sweep { ns, process, cpu, handle, view });
            ns += step.min(3_333 * US);
        }
        self.history.processes[process].gone = Some(ns);
        self.sweeps.make_contiguous().sort_by_key(|sweep| sweep.ns);
    }

    /// Lets a debugger end a process: the debugger's thread closes the handles before the end event.
    pub fn kill(&mut self, debugger: usize, process: usize, cpu: u16) {
        let values: Vec<u32> = self.history.processes[process].handles.keys().copied().collect();
        let is_known = |value: &u32| self.is_unique(debugger, (process, *value));
        if process == SYSTEM || debugger == process || !values.iter().all(is_known) {
            return self.end(process, cpu);
        }
        for value in values {
            self.close(debugger, (process, value), 0, CloseCause::ByEnd, cpu);
        }
        self.pause(500 * US);
        self.end(process, cpu);
    }

    /// Whether `count` more processes may start; waits until the starts can be told apart.
    fn can_start(&mut self, count: usize) -> bool {
        if self.history.processes.len() + count > MAX_PROCESSES {
            return false;
        }
        if self.setup.is_coarse {
            let last = self.history.processes.iter().filter_map(|process| process.started).max();
            self.pause(last.map_or(0, |(ns, _)| ns + STARTS_APART - self.now).max(0));
        }
        true
    }

    /// Returns the handles that a child is given.
    fn heritable(&self, parent: usize, which: usize) -> Vec<u32> {
        let handles = self.history.processes[parent].handles.keys().copied();
        // Kernel handles are not inherited.
        handles.skip(which % 5).take(if parent == SYSTEM { 0 } else { which % 3 }).collect()
    }

    /// Lets a thread of the creator give handles of the parent to a child that has no pid yet.
    fn inherit(&mut self, creator: usize, parent: usize, which: usize, cpu: u16) -> Child {
        let source_pid = self.history.processes[parent].pid;
        let names_parent = self.setup.names_parent && creator == parent;
        // Standard handles get other values.
        let is_standard = which & 0x40 != 0 && !names_parent;
        let mut inherited = Vec::new();
        for (number, source_handle) in self.heritable(parent, which).into_iter().enumerate() {
            let object = self.object_of((parent, source_handle));
            let value = if is_standard { 0x800 + 4 * number as u32 } else { source_handle };
            let record = DuplicateRecord {
                object,
                source_handle,
                target_handle: value,
                target_pid: if names_parent { source_pid } else { 0 },
                type_id: EVENT,
                source_pid: Some(source_pid),
            };
            let ns = self.record(creator, cpu, ModelEvent::Duplicate(record));
            let place = self.open(ns, None, object, value);
            let opened = &mut self.history.opened[place];
            (opened.is_inherited, opened.is_early) = (true, true);
            inherited.push((value, place));
        }
        Child { creator, parent, cpu, inherited }
    }

    /// Starts the child in the creating thread.
    fn begin_process(&mut self, child: Child) {
        let Child { creator, parent, cpu, inherited } = child;
        let rest = PID_REST[usize::from(self.setup.is_coarse)];
        let is_free =
            |process: &HistoryProcess| process.gone.is_some_and(|gone| gone + rest < self.now);
        let taken: Vec<u32> = self
            .history
            .processes
            .iter()
            .filter(|process| !is_free(process))
            .map(|process| process.pid)
            .collect();
        let pid = (175..).map(|place| 4 * place).find(|pid| !taken.contains(pid)).unwrap();
        let number = self.history.processes.len();
        self.add_process(pid, parent, (creator, cpu));
        self.now += NEXT;
        self.history.processes[number].started = Some((self.now, cpu));
        for (value, place) in inherited {
            self.history.opened[place].owner = Some(number);
            self.history.processes[number].handles.insert(value, place);
        }
    }

    fn add_process(&mut self, pid: u32, parent: usize, (creator, cpu): (usize, u16)) {
        let processes = &mut self.history.processes;
        let creator = thread(processes[creator].pid, cpu);
        let parent = processes[parent].pid;
        let name = format!("p{pid}-{}.exe", processes.len());
        processes.push(HistoryProcess { pid, name, parent, creator, ..HistoryProcess::default() });
    }
}
