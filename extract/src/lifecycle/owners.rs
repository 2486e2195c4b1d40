//! The process of every event, and of every side of a duplicate.

use super::{Attribution, EXIT_GRACE_NS, NONE, ProcessIndex};
use crate::collect::{HandleEvents, ProcessRow, RawKind};
use crate::etl::{Clock, Diagnostics};

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

/// The processes of the events.
pub struct EventOwners {
    /// For each event the process: the owner of the handle, else the one that acted. [`NONE`] for
    /// events that belong to no process and are dropped.
    pub process: Vec<u32>,
    /// For each duplicate its further processes, by [`HandleEvents::detail`].
    pub duplicates: Vec<DuplicateOwners>,
    /// What decided.
    pub attribution: Attribution,
}

impl EventOwners {
    /// Attributes all events.
    pub fn new(
        events: &HandleEvents,
        processes: &[ProcessRow],
        index: &ProcessIndex,
        clock: &Clock,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let nobody = DuplicateOwners { caller: NONE, source: NONE, inherited_by: NONE };
        let mut owners = Self {
            process: Vec::with_capacity(events.len()),
            duplicates: vec![nobody; events.duplicates.len()],
            attribution: Attribution::default(),
        };
        let grace = clock.ticks(EXIT_GRACE_NS);
        for row in 0..events.len() {
            let time = events.time[row];
            let pid = event_pid(events, row);
            let process = owners.attribution.attribute(
                index,
                pid,
                events.ids_from_stack[row],
                time,
                grace,
                diagnostics,
            );
            let process = match (process, events.kind[row]) {
                (Some(caller), RawKind::Duplicate) => {
                    owners.duplicate(events, row, caller, processes, index)
                }
                (process, _) => process.unwrap_or(NONE),
            };
            owners.process.push(process);
        }
        owners
    }

    /// Notes the processes of a duplicate and returns the one that owns the new handle.
    ///
    /// That is the target process of the payload if it is known at the time, else the caller.
    fn duplicate(
        &mut self,
        events: &HandleEvents,
        row: usize,
        caller: u32,
        processes: &[ProcessRow],
        index: &ProcessIndex,
    ) -> u32 {
        let time = events.time[row];
        let slot = events.detail[row] as usize;
        let Some(detail) = events.duplicates.get(slot) else { return caller };
        let known = |pid: u32| if pid == 0 { None } else { index.find(pid, time) };
        let target = known(detail.target_pid).unwrap_or(caller);
        let source = detail.source_pid.and_then(known).unwrap_or(NONE);
        // Equal handles in equal processes: the handle table of a parent is being cloned. The
        // event does not name the child, so the next one started is taken.
        let is_inherited = detail.source_handle == events.value[row] && source == target;
        let inherited_by = is_inherited.then(|| processes.get(target as usize)).flatten();
        let inherited_by = inherited_by.and_then(|parent| {
            index.first_child(parent.process.pid, time, parent.end.unwrap_or(i64::MAX))
        });
        if let Some(owners) = self.duplicates.get_mut(slot) {
            *owners =
                DuplicateOwners { caller, source, inherited_by: inherited_by.unwrap_or(NONE) };
        }
        target
    }
}

/// The pid an event is about.
///
/// The payload of a map or unmap tells whose address space it is; the header only who acted.
pub(super) fn event_pid(events: &HandleEvents, row: usize) -> u32 {
    match events.kind[row] {
        RawKind::Map | RawKind::Unmap => {
            let view = events.views.get(events.detail[row] as usize);
            let in_payload = view.and_then(|view| view.pid).filter(|pid| *pid != 0);
            in_payload.unwrap_or(events.pid[row])
        }
        _ => events.pid[row],
    }
}
