//! The process of every event, and of every side of a duplicate.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use handlescope_model::{Cancel, Cancelled, Poll, rules};

use super::attribution::{Attribution, EXIT_GRACE_NS, NONE, ProcessIndex};
use super::kinds::subject;
use crate::collect::Collector;
use crate::etl::{Clock, Diagnostics};
use crate::raw::{IdSource, RowKind, UNKNOWN_ID};
use crate::side_by_side::{chunk_length, side_by_side};

/// The processes of a duplicate, rows of the processes table or [`NONE`].
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
    /// Owner of a duplicate with an unknown caller.
    const UNKNOWN: Self = Self { caller: NONE, source: NONE, inherited_by: NONE };
}

/// The processes of the rows of the timeline.
pub struct EventOwners {
    /// Process of each row: the owner of the handle, else the process that acted. [`NONE`] for
    /// events that belong to no process and are dropped.
    pub process: Vec<u32>,
    /// Further processes of each duplicate.
    pub duplicates: Vec<DuplicateOwners>,
    /// Source of the attribution.
    pub attribution: Attribution,
}

impl EventOwners {
    /// Attributes all events with so many threads, unless asked to stop.
    pub fn new(
        collected: &Collector,
        index: &ProcessIndex,
        clock: &Clock,
        threads: NonZeroUsize,
        diagnostics: &mut Diagnostics,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let count = collected.shared.timeline.len();
        let mut process = vec![NONE; count];
        let mut duplicates = vec![DuplicateOwners::UNKNOWN; collected.duplicates.rows.len()];
        let mut attribution = Attribution::default();
        let grace = clock.ticks_apart(EXIT_GRACE_NS);
        let rows_of_each = chunk_length(count, threads.get());
        let parts = (0..).step_by(rows_of_each).zip(process.chunks_mut(rows_of_each));
        let parts = side_by_side(parts, |(start, process)| {
            Part::new(collected, index, grace, start, process, cancel)
        })?;
        for part in parts {
            part.duplicates.into_iter().for_each(|(row, owners)| duplicates[row as usize] = owners);
            attribution.add(&part.attribution);
            diagnostics.merge(&part.diagnostics);
        }
        Ok(Self { process, duplicates, attribution })
    }
}

/// Attributions of some rows besides their processes.
#[derive(Default)]
struct Part {
    /// Rows of the duplicates, and their further processes.
    duplicates: Vec<(u32, DuplicateOwners)>,
    attribution: Attribution,
    diagnostics: Diagnostics,
}

impl Part {
    /// Attributes the rows from `start` on, to these slots.
    fn new(
        collected: &Collector,
        index: &ProcessIndex,
        grace: i64,
        start: usize,
        slots: &mut [u32],
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let timeline = &collected.shared.timeline;
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
                grace,
                &mut part.diagnostics,
            );
            *slot = match (process, timeline.kind[row]) {
                (Some(caller), RowKind::HandleDuplicate) => {
                    let (owner, of) = duplicate_owners(row, caller, collected, index);
                    part.duplicates.push((timeline.row[row], of));
                    owner
                }
                (process, _) => process.unwrap_or(NONE),
            };
        }
        Ok(part)
    }
}

/// The pids of object events of which no process is known at their time, because what would tell is among the events that
/// the trace lost; unless asked to stop.
pub fn unnamed_pids(
    collected: &Collector,
    index: &ProcessIndex,
    clock: &Clock,
    cancel: &Cancel,
) -> Result<BTreeSet<u32>, Cancelled> {
    let timeline = &collected.shared.timeline;
    let grace = clock.ticks_apart(EXIT_GRACE_NS);
    let mut unnamed = BTreeSet::new();
    let mut poll = Poll::new(cancel);
    for row in 0..timeline.len() {
        poll.round()?;
        if !subject(timeline.kind[row]).is_of_object() {
            continue;
        }
        let mut pids = [Some(event_pid(collected, row)), None, None];
        if timeline.kind[row] == RowKind::HandleDuplicate {
            let duplicate = &collected.duplicates.rows[timeline.row[row] as usize];
            (pids[1], pids[2]) = (Some(duplicate.target_pid), duplicate.source_pid);
        }
        let pids = pids.into_iter().flatten().filter(|pid| ![0, UNKNOWN_ID].contains(pid));
        unnamed
            .extend(pids.filter(|pid| index.find_ended(*pid, timeline.time[row], grace).is_none()));
    }
    Ok(unnamed)
}

/// The process that owns the new handle of the duplicate in a row of the timeline, and its further processes.
///
/// The owner is the target process of the payload if it is known at the time, else the caller.
fn duplicate_owners(
    row: usize,
    caller: u32,
    collected: &Collector,
    index: &ProcessIndex,
) -> (u32, DuplicateOwners) {
    let (timeline, processes) = (&collected.shared.timeline, &collected.processes.rows);
    let time = timeline.time[row];
    let duplicate = &collected.duplicates.rows[timeline.row[row] as usize];
    let known = |pid: u32| match pid {
        0 => None,
        _ => index.find(pid, time).or_else(|| index.find_unnamed(pid)),
    };
    let target = known(duplicate.target_pid).unwrap_or(caller);
    let source = duplicate.source_pid.and_then(known);
    let is_inherited =
        rules::is_inherited(duplicate.source_handle, duplicate.target_handle, source, Some(target));
    let parent = is_inherited.then(|| processes.get(target as usize)).flatten();
    // The parent duplicates and starts the child on one thread, and rarely on two processors.
    let inheriting_child = parent.and_then(|parent| {
        index.inheriting_child(parent.process.pid, parent.end, time, |child| {
            let start = processes[child as usize].start_position;
            start.map_or(Some(false), |start| start.is_after(row, timeline))
        })
    });
    let [source, inherited_by] = [source, inheriting_child].map(|process| process.unwrap_or(NONE));
    (target, DuplicateOwners { caller, source, inherited_by })
}

/// The pid that an event concerns.
///
/// The payload of a map or unmap has the process of the address space; the header only the process that acted.
pub(super) fn event_pid(collected: &Collector, row: usize) -> u32 {
    let timeline = &collected.shared.timeline;
    match timeline.kind[row] {
        RowKind::Map | RowKind::Unmap => {
            let view = &collected.views.rows[timeline.row[row] as usize];
            view.pid.filter(|pid| *pid != 0).unwrap_or(timeline.pid[row])
        }
        _ => timeline.pid[row],
    }
}

/// The pid whose view is mapped or unmapped.
///
/// It is the pid of the event, not of the process it was attributed to: a process that ended more than
/// the grace time ago still unmaps its views, not views of System.
pub(super) fn view_pid(collected: &Collector, row: usize, process: u32) -> u32 {
    match event_pid(collected, row) {
        UNKNOWN_ID => {
            let process = collected.processes.rows.get(process as usize);
            process.map_or(0, |process| process.process.pid)
        }
        pid => pid,
    }
}
