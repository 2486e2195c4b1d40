//! Matches handles that are duplicated for a child before the child has a process id.
//!
//! The call that creates a process duplicates each inheritable handle with its value, and the standard handles of a
//! console child with other values. So the child is the process whose start the same thread logs next. In traces whose
//! start events name another thread, the next child of the source process is taken. A child gets each value once, so
//! two duplicates of one value are for two children.
//!
//! A call that fails sweeps what it duplicated, on the same thread, and no process starts. Such a duplicate belongs to
//! no process of the trace.

use handlescope_model::rules::{handle_slot, is_inherited, is_kernel_handle};
use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::{HashMap, HashSet};

use super::MissingEvents;
use super::attribution::NONE;
use crate::collect::Collector;
use crate::kernel::{DuplicateRow, ProcessRow};
use crate::raw::{RowKind, UNKNOWN_ID};

/// Processes involved in a duplicate: rows of the processes table, or [`NONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateOwners {
    /// The process that called.
    pub caller: u32,
    /// The process the handle comes from.
    pub source: u32,
    /// The child that inherited the handle.
    pub inherited_by: u32,
}

impl DuplicateOwners {
    /// Owners of a duplicate with an unknown caller.
    pub const UNKNOWN: Self = Self { caller: NONE, source: NONE, inherited_by: NONE };
}

/// What became of the handles that were duplicated for children.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inheritance {
    /// Timeline rows of duplicates, each with the child it is for.
    pub children: Vec<(u32, u32)>,
    /// Duplicates for processes that never started, each with its close by the sweep of the failed call, or [`NONE`].
    pub failed: HashMap<u32, u32>,
    /// Duplicates in `children` that may belong to another child, because starts are missing.
    pub doubtful: HashSet<u32>,
}

/// A duplicate whose child has not started yet.
#[derive(Debug, Clone, Copy)]
struct PendingChild {
    /// Row in the timeline, and its time.
    row: u32,
    time: i64,
    object: u64,
    slot: u64,
    /// Row of the process that the child inherits from.
    source: u32,
    /// Whether the event names no target process, as on Windows.
    is_without_target: bool,
}

/// Maximum number of conflicting calls examined per child, so that a hostile trace takes linear time.
const MAX_CALLS: usize = 64;

impl Inheritance {
    /// Follows the duplicates in time order, unless cancelled. `process` is the process of each row; `order` gives the
    /// time order if it differs from the row order.
    pub fn new(
        collected: &Collector,
        process: &[u32],
        duplicates: &[DuplicateOwners],
        order: Option<&[u32]>,
        missing: &MissingEvents,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let rows = &collected.duplicates.rows;
        let of_one_value = rows.iter().any(|row| row.target_pid != 0 && has_one_value(row));
        if !of_one_value && rows.iter().all(|row| row.target_pid != 0) {
            return Ok(Self::default());
        }
        let timeline = &collected.shared.timeline;
        let mut calls = Calls::new(&collected.processes.rows, missing);
        let mut starts = calls.starts().into_iter().peekable();
        // The handle each thread closed in its most recent handle event.
        let mut just_closed: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut poll = Poll::new(cancel);
        for at in 0..timeline.len() {
            poll.round()?;
            let row = order.map_or(at, |order| order[at] as usize);
            let (kind, tid) = (timeline.kind[row], timeline.tid[row]);
            let is_close = kind == RowKind::HandleClose;
            if kind != RowKind::HandleDuplicate && !(is_close && calls.may_need(of_one_value)) {
                continue;
            }
            while let Some(child) = starts.next_if(|child| {
                let start = &collected.processes.rows[*child as usize];
                let position =
                    start.start_position.filter(|_| start.start == Some(timeline.time[row]));
                start.start < Some(timeline.time[row])
                    || position.is_some_and(|it| it.is_after(row, timeline) == Some(false))
            }) {
                calls.start(child);
            }
            let family_row = timeline.row[row] as usize;
            if is_close {
                let handle = &collected.handles;
                let (object, slot) =
                    (handle.object[family_row], handle_slot(handle.handle[family_row].into()));
                calls.close(row as u32, tid, object, slot);
                if of_one_value {
                    just_closed.insert(tid, (object, slot));
                }
                continue;
            }
            let duplicate = &rows[family_row];
            let owners = duplicates[family_row];
            let slot = handle_slot(duplicate.target_handle.into());
            // `DUPLICATE_CLOSE_SOURCE` closes first, and the new handle often gets the same value.
            let is_moved = just_closed.remove(&tid) == Some((duplicate.object, slot));
            let is_without_target = duplicate.target_pid == 0;
            let is_for_child = if is_without_target {
                !is_kernel_handle(duplicate.target_handle.into())
            } else {
                let source = Some(owners.source).filter(|source| *source != NONE);
                !is_moved
                    && is_inherited(
                        duplicate.source_handle,
                        duplicate.target_handle,
                        source,
                        Some(process[row]),
                    )
            };
            if is_for_child && process[row] != NONE {
                let source = if owners.source == NONE { process[row] } else { owners.source };
                let (row, time) = (row as u32, timeline.time[row]);
                let object = duplicate.object;
                let pending = PendingChild { row, time, object, slot, source, is_without_target };
                calls.duplicate(tid, pending);
            }
        }
        starts.for_each(|child| calls.start(child));
        Ok(calls.finish())
    }
}

/// Whether the duplicate's value equals that of its source.
fn has_one_value(row: &DuplicateRow) -> bool {
    row.source_handle == row.target_handle
}

/// Calls in progress that create processes, with what they have duplicated so far.
struct Calls<'a> {
    processes: &'a [ProcessRow],
    missing: &'a MissingEvents,
    /// Threads that logged starts of processes.
    creators: HashSet<u32>,
    /// Duplicates by thread, in order.
    pending: HashMap<u32, Vec<PendingChild>>,
    /// By pid of the source process, the threads that logged no process start, in the order of their calls.
    without_start: HashMap<u32, Vec<u32>>,
    found: Inheritance,
}

impl<'a> Calls<'a> {
    fn new(processes: &'a [ProcessRow], missing: &'a MissingEvents) -> Self {
        let creators = processes.iter().filter(|row| row.start.is_some());
        Self {
            processes,
            missing,
            creators: creators.filter_map(|row| row.creator).map(|(_, tid)| tid).collect(),
            pending: HashMap::new(),
            without_start: HashMap::new(),
            found: Inheritance::default(),
        }
    }

    /// Returns the processes whose start was seen, in time order.
    fn starts(&self) -> Vec<u32> {
        let rows = (0..).zip(self.processes).filter(|(_, row)| row.start.is_some());
        let mut starts: Vec<u32> = rows.map(|(row, _)| row).collect();
        starts.sort_by_key(|row| {
            let row = &self.processes[*row as usize];
            (row.start, row.start_position.map(|position| position.rows))
        });
        starts
    }

    /// Whether a close can change anything.
    fn may_need(&self, of_one_value: bool) -> bool {
        of_one_value || !self.pending.is_empty()
    }

    fn pid(&self, source: u32) -> u32 {
        self.processes.get(source as usize).map_or(UNKNOWN_ID, |row| row.process.pid)
    }

    fn duplicate(&mut self, tid: u32, duplicate: PendingChild) {
        let call = self.pending.entry(tid).or_default();
        call.push(duplicate);
        let is_first = call.len() == 1;
        if is_first && !self.creators.contains(&tid) {
            self.without_start.entry(self.pid(duplicate.source)).or_default().push(tid);
        }
    }

    /// During the call, the thread closes only what it duplicated, and only if the call fails.
    fn close(&mut self, row: u32, tid: u32, object: u64, slot: u64) {
        let Some(call) = self.pending.get_mut(&tid) else { return };
        let swept = call.iter().position(|it| it.object == object && it.slot == slot);
        // Older traces name the parent as target, and do not say which of its handles is closed.
        if let Some(at) = swept.filter(|at| call[*at].is_without_target) {
            let duplicate = call.remove(at);
            self.found.failed.insert(duplicate.row, row);
            self.forget_if_empty(tid);
        }
    }

    fn forget_if_empty(&mut self, tid: u32) {
        if self.pending.get(&tid).is_some_and(Vec::is_empty) {
            self.pending.remove(&tid);
        }
    }

    /// Starts a process, which receives what is pending for it.
    fn start(&mut self, child: u32) {
        let Some(ProcessRow { process, start, creator, .. }) = self.processes.get(child as usize)
        else {
            return;
        };
        let (parent_pid, start) = (process.parent_pid, start.unwrap_or(i64::MIN));
        let creator = creator.map(|(_, tid)| tid).filter(|tid| self.pending.contains_key(tid));
        if let Some(tid) = creator {
            let call = self.take(tid, parent_pid, start);
            if !call.is_empty() {
                return self.give(call, child);
            }
        }
        let Some(mut threads) = self.without_start.remove(&parent_pid) else { return };
        let mut taken: HashSet<u64> = HashSet::new();
        let (mut at, mut conflicts) = (0, 0);
        while at < threads.len() && conflicts < MAX_CALLS {
            let call = self.pending.get(&threads[at]).map_or(&[][..], Vec::as_slice);
            if call.iter().any(|it| taken.contains(&it.slot)) {
                (at, conflicts) = (at + 1, conflicts + 1);
                continue;
            }
            let call = self.take(threads[at], parent_pid, start);
            taken.extend(call.iter().map(|it| it.slot));
            self.give(call, child);
            threads.remove(at);
        }
        if !threads.is_empty() {
            self.without_start.insert(parent_pid, threads);
        }
    }

    /// Takes what a thread duplicated from the parent of a starting child, if the parent was alive then.
    fn take(&mut self, tid: u32, parent_pid: u32, start: i64) -> Vec<PendingChild> {
        let call = self.pending.remove(&tid).unwrap_or_default();
        let is_of_parent = |it: &PendingChild| {
            let parent = self.processes.get(it.source as usize);
            parent.is_some_and(|parent| {
                parent.process.pid == parent_pid && parent.end.is_none_or(|end| start <= end)
            })
        };
        let (taken, left): (Vec<_>, Vec<_>) = call.into_iter().partition(is_of_parent);
        if !left.is_empty() {
            self.pending.insert(tid, left);
        }
        taken
    }

    /// Gives a call's duplicates to its child. If two have the same value, the first belongs to a failed call.
    fn give(&mut self, call: Vec<PendingChild>, child: u32) {
        let mut values = HashSet::new();
        let start = self.processes.get(child as usize).and_then(|child| child.start);
        for duplicate in call.into_iter().rev() {
            if values.insert(duplicate.slot) {
                self.found.children.push((duplicate.row, child));
                if start.is_some_and(|start| self.missing.times.is_between(duplicate.time, start)) {
                    self.found.doubtful.insert(duplicate.row);
                }
            } else if duplicate.is_without_target {
                self.found.failed.insert(duplicate.row, NONE);
            }
        }
    }

    fn finish(mut self) -> Inheritance {
        for duplicate in self.pending.into_values().flatten().filter(|it| it.is_without_target) {
            // If starts may be missing, the child may have been one that is not known.
            if !self.missing.times.is_between(duplicate.time, i64::MAX) {
                self.found.failed.insert(duplicate.row, NONE);
            }
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use handlescope_model::tables::LossKind;

    use super::*;
    use crate::etl::{EventLoss, LossSpan};
    use crate::kernel::ProcessPayload;
    use crate::raw::LifeEvent;

    const PARENT: u32 = 0;

    /// A process with pid 10 to 19, started by its parent (pid 7) at a time, in a call of this thread.
    fn child(number: u32, start: i64, tid: u32) -> ProcessRow {
        ProcessRow { start: Some(start), creator: Some((7, tid)), ..process(10 + number) }
    }

    fn process(pid: u32) -> ProcessRow {
        ProcessRow {
            process: ProcessPayload {
                action: LifeEvent::Begin,
                key: 0,
                pid,
                parent_pid: 7,
                session_id: Some(0),
                exit_status: 0,
                sid: None,
                name: String::new(),
                command_line: String::new(),
            },
            start: None,
            end: None,
            listed: None,
            since: None,
            is_unnamed: false,
            creator: None,
            start_position: None,
            end_position: None,
        }
    }

    /// A duplicate in this row, of the parent's handle with this slot.
    fn duplicate(row: u32, slot: u64) -> PendingChild {
        // The times increase with the row.
        PendingChild {
            row,
            time: 8 * i64::from(row),
            object: 0x1000 + slot,
            slot,
            source: PARENT,
            is_without_target: true,
        }
    }

    fn children(found: Inheritance) -> Vec<(u32, u32)> {
        let mut children = found.children;
        children.sort_unstable();
        children
    }

    #[test]
    fn the_child_is_the_process_whose_start_the_thread_logs_next() {
        let rows = [process(7), child(1, 10, 72), child(2, 20, 71)];
        let nothing = MissingEvents::new(&[]);
        let mut calls = Calls::new(&rows, &nothing);
        for (row, tid, slot) in [(1, 71, 4), (2, 72, 4), (3, 71, 8), (4, 72, 8)] {
            calls.duplicate(tid, duplicate(row, slot));
        }
        assert_eq!(calls.starts(), [1, 2]);
        [1, 2].into_iter().for_each(|row| calls.start(row));
        assert_eq!(children(calls.finish()), [(1, 2), (2, 1), (3, 2), (4, 1)]);
    }

    #[test]
    fn of_threads_that_no_start_names_the_calls_get_the_next_children_and_each_value_once() {
        let rows = [process(7), child(1, 10, 99), child(2, 20, 99)];
        let nothing = MissingEvents::new(&[]);
        let mut calls = Calls::new(&rows, &nothing);
        for (row, tid, slot) in [(1, 71, 4), (2, 72, 4), (3, 72, 8), (4, 73, 12)] {
            calls.duplicate(tid, duplicate(row, slot));
        }
        [1, 2].into_iter().for_each(|row| calls.start(row));
        assert_eq!(children(calls.finish()), [(1, 1), (2, 2), (3, 2), (4, 1)]);
    }

    #[test]
    fn what_a_failed_call_duplicated_is_of_no_child() {
        let rows = [process(7), child(1, 10, 71)];
        let nothing = MissingEvents::new(&[]);
        let mut calls = Calls::new(&rows, &nothing);
        calls.duplicate(71, duplicate(1, 4));
        calls.close(2, 71, 0x1004, 4);
        // Closes of another object or by another thread are not this call's sweep.
        calls.duplicate(71, duplicate(3, 4));
        calls.close(4, 71, 0x2000, 4);
        calls.close(5, 72, 0x1004, 4);
        calls.start(1);
        calls.duplicate(71, duplicate(6, 4));
        let found = calls.finish();
        assert_eq!(found.failed, HashMap::from([(1, 2), (6, NONE)]));
        assert_eq!(children(found), [(3, 1)]);
    }

    #[test]
    fn a_child_that_starts_after_a_hole_may_be_another_one() {
        let rows = [process(7), child(1, 10, 71), child(2, 30, 71)];
        let span = Some(LossSpan { from: Some(20), to: Some(25) });
        let hole = EventLoss::new(LossKind::MissingBuffers, span, None, None);
        let missing = MissingEvents::new(&[hole]);
        let mut calls = Calls::new(&rows, &missing);
        calls.duplicate(71, duplicate(1, 4));
        calls.start(1);
        calls.duplicate(71, duplicate(2, 4));
        calls.start(2);
        let found = calls.finish();
        assert_eq!(found.doubtful, HashSet::from([2]));
        assert_eq!(children(found), [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_child_gets_nothing_of_a_parent_that_had_ended() {
        let rows = [ProcessRow { end: Some(5), ..process(7) }, child(1, 10, 71)];
        let nothing = MissingEvents::new(&[]);
        let mut calls = Calls::new(&rows, &nothing);
        calls.duplicate(71, duplicate(1, 4));
        calls.start(1);
        assert_eq!(children(calls.finish()), []);
    }
}
