//! Determines the process of every event and of each side of a duplicate.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use handlescope_model::rules::is_kernel_handle;
use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::{HashMap, HashSet};

use super::MissingEvents;
use super::attribution::{Attribution, NONE, ProcessIndex, known};
use super::inheritance::{DuplicateOwners, Inheritance};
use super::kinds::subject;
use crate::collect::Collector;
use crate::etl::{Diagnostics, WarningKind};
use crate::raw::{IdSource, RowKind, UNKNOWN_ID};
use crate::side_by_side::{chunk_length, side_by_side};

/// Processes of the timeline rows.
pub struct EventOwners {
    /// Process of each row: the owner of the handle, else the process that acted. [`NONE`] for dropped events, which
    /// belong to no process.
    pub process: Vec<u32>,
    /// Other processes of each duplicate.
    pub duplicates: Vec<DuplicateOwners>,
    /// Duplicates for processes that never started, each with its close or [`NONE`].
    pub failed: HashMap<u32, u32>,
    /// The closes in `failed`.
    pub failed_closes: HashSet<u32>,
    /// Duplicates whose child may be another one, because starts are missing.
    pub doubtful: HashSet<u32>,
    /// Closes of handles that belong to another process than the closing one.
    pub foreign: HashSet<u32>,
    /// Counts of how events were attributed.
    pub attribution: Attribution,
}

impl EventOwners {
    /// Attributes all events on `threads` threads, unless cancelled; `order` gives the time order if it differs from
    /// the row order.
    pub fn new(
        collected: &Collector,
        index: &ProcessIndex,
        order: Option<&[u32]>,
        missing: &MissingEvents,
        threads: NonZeroUsize,
        diagnostics: &mut Diagnostics,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let count = collected.shared.timeline.len();
        let mut process = vec![NONE; count];
        let mut duplicates = vec![DuplicateOwners::UNKNOWN; collected.duplicates.rows.len()];
        let mut attribution = Attribution::default();
        let rows_of_each = chunk_length(count, threads.get());
        let parts = (0..).step_by(rows_of_each).zip(process.chunks_mut(rows_of_each));
        let parts = side_by_side(parts, |(start, process)| {
            RangeOwners::new(collected, index, start, process, cancel)
        })?;
        for part in parts {
            part.duplicates.into_iter().for_each(|(row, owners)| duplicates[row as usize] = owners);
            attribution.add(&part.attribution);
            diagnostics.merge(&part.diagnostics);
        }
        let Inheritance { children, failed, doubtful } =
            Inheritance::new(collected, &process, &duplicates, order, missing, cancel)?;
        for (row, child) in children {
            let owners = &mut duplicates[collected.shared.timeline.row[row as usize] as usize];
            owners.inherited_by = child;
            // The calling thread may belong to a third process.
            process[row as usize] = known(owners.source).unwrap_or(process[row as usize]);
        }
        let without_child = failed.values().filter(|close| **close == NONE).count() as u64;
        diagnostics.add(WarningKind::DuplicateWithoutChild, without_child, None);
        let failed_closes = failed.values().copied().filter(|close| *close != NONE).collect();
        let foreign = HashSet::new();
        Ok(Self { process, duplicates, failed, failed_closes, doubtful, foreign, attribution })
    }

    /// Moves closes to the processes that had the handles.
    pub fn set_foreign(&mut self, foreign: HashMap<u32, u32>) {
        for (row, process) in &foreign {
            self.process[*row as usize] = *process;
        }
        self.foreign = foreign.into_keys().collect();
    }

    /// Returns the process that acted in a row, if it is not the owner.
    pub fn actor(&self, row: usize, collected: &Collector, index: &ProcessIndex) -> Option<u32> {
        let timeline = &collected.shared.timeline;
        let (owner, pid) = (self.process[row], timeline.pid[row]);
        let is_owner = |owner: u32| {
            collected.processes.rows.get(owner as usize).is_some_and(|it| it.process.pid == pid)
        };
        if timeline.kind[row] == RowKind::HandleDuplicate {
            return known(self.duplicates[timeline.row[row] as usize].caller);
        }
        if owner == NONE || is_owner(owner) || pid == UNKNOWN_ID {
            return None;
        }
        let time = timeline.time[row];
        let actor = index.find_or_ended(pid, time).or_else(|| index.find_unnamed(pid));
        actor.filter(|actor| *actor != owner)
    }
}

/// Results for a range of rows, apart from their processes.
#[derive(Default)]
struct RangeOwners {
    /// Rows of duplicates, with their other processes.
    duplicates: Vec<(u32, DuplicateOwners)>,
    attribution: Attribution,
    diagnostics: Diagnostics,
}

impl RangeOwners {
    /// Attributes the rows from `start` on, one per slot.
    fn new(
        collected: &Collector,
        index: &ProcessIndex,
        start: usize,
        slots: &mut [u32],
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let timeline = &collected.shared.timeline;
        let system = index.system();
        let mut part = Self::default();
        let mut poll = Poll::new(cancel);
        for (row, slot) in (start..).zip(slots) {
            poll.round()?;
            if !subject(timeline.kind[row]).is_of_object() {
                continue;
            }
            let process = part.attribution.attribute(
                index,
                event_pid(collected, row),
                timeline.ids[row] == IdSource::Stack,
                timeline.time[row],
                &mut part.diagnostics,
            );
            *slot = match (process, timeline.kind[row]) {
                (Some(caller), RowKind::HandleDuplicate) => {
                    let (owner, of) = duplicate_owners(row, caller, system, collected, index);
                    part.duplicates.push((timeline.row[row], of));
                    owner
                }
                (Some(process), RowKind::HandleCreate | RowKind::HandleClose) => {
                    let value = collected.handles.handle[timeline.row[row] as usize];
                    system.filter(|_| is_kernel_handle(value.into())).unwrap_or(process)
                }
                (process, _) => process.unwrap_or(NONE),
            };
        }
        Ok(part)
    }
}

/// Returns pids of object events for which no process is known at that time, unless cancelled. If no events are
/// missing, it returns only those System cannot take; otherwise also those named by duplicates.
pub fn unnamed_pids(
    collected: &Collector,
    index: &ProcessIndex,
    is_lossy: bool,
    cancel: &Cancel,
) -> Result<BTreeSet<u32>, Cancelled> {
    let timeline = &collected.shared.timeline;
    let mut unnamed = BTreeSet::new();
    let mut poll = Poll::new(cancel);
    for row in 0..timeline.len() {
        poll.round()?;
        let time = timeline.time[row];
        let is_of_system = !is_lossy && index.system_at(time).is_some();
        if is_of_system || !subject(timeline.kind[row]).is_of_object() {
            continue;
        }
        let mut pids = [Some(event_pid(collected, row)), None, None];
        if is_lossy && timeline.kind[row] == RowKind::HandleDuplicate {
            let duplicate = &collected.duplicates.rows[timeline.row[row] as usize];
            (pids[1], pids[2]) = (Some(duplicate.target_pid), duplicate.source_pid);
        }
        // A duplicate's target may start later.
        pids[1] = pids[1].filter(|pid| index.starts_within(*pid, time, i64::MAX).is_none());
        let pids = pids.into_iter().flatten().filter(|pid| ![0, UNKNOWN_ID].contains(pid));
        unnamed.extend(pids.filter(|pid| index.find_or_ended(*pid, time).is_none()));
    }
    Ok(unnamed)
}

/// Returns the owner of a duplicate's new handle, and the other processes of the duplicate.
///
/// The owner is the payload's target process if it is known at the time or starts later, else the caller. Kernel
/// handles belong to System.
fn duplicate_owners(
    row: usize,
    caller: u32,
    system: Option<u32>,
    collected: &Collector,
    index: &ProcessIndex,
) -> (u32, DuplicateOwners) {
    let timeline = &collected.shared.timeline;
    let time = timeline.time[row];
    let duplicate = &collected.duplicates.rows[timeline.row[row] as usize];
    let of_kernel = |value: u32| system.filter(|_| is_kernel_handle(value.into()));
    let alive = |pid: u32| if pid == 0 { None } else { index.find(pid, time) };
    let unnamed = |pid: u32| if pid == 0 { None } else { index.find_unnamed(pid) };
    let owner = of_kernel(duplicate.target_handle)
        .or_else(|| alive(duplicate.target_pid))
        .or_else(|| unnamed(duplicate.target_pid))
        .or_else(|| index.starts_within(duplicate.target_pid, time, i64::MAX));
    let source = of_kernel(duplicate.source_handle).or_else(|| {
        let pid = duplicate.source_pid?;
        alive(pid).or_else(|| unnamed(pid))
    });
    let source = source.unwrap_or(NONE);
    (owner.unwrap_or(caller), DuplicateOwners { caller, source, inherited_by: NONE })
}

/// Returns the pid an event is about.
///
/// The payload of a map or unmap names the process with the address space; the header names only the one that acted.
pub fn event_pid(collected: &Collector, row: usize) -> u32 {
    let timeline = &collected.shared.timeline;
    match timeline.kind[row] {
        RowKind::Map | RowKind::Unmap => {
            let view = &collected.views.rows[timeline.row[row] as usize];
            view.pid.filter(|pid| *pid != 0).unwrap_or(timeline.pid[row])
        }
        _ => timeline.pid[row],
    }
}

/// Returns the pid whose view is mapped or unmapped.
///
/// This is the event's own pid, not that of the process it was attributed to. If no process of the trace has the pid,
/// that process is System.
pub fn view_pid(collected: &Collector, row: usize, process: u32) -> u32 {
    match event_pid(collected, row) {
        UNKNOWN_ID => {
            let process = collected.processes.rows.get(process as usize);
            process.map_or(0, |process| process.process.pid)
        }
        pid => pid,
    }
}
