//! Raw events of a part of the events table, from which objects are derived.

use handlescope_model::rules::{ObjectEvents, handle_slot};
use handlescope_model::{EventKind, ProcessIdx};

use crate::collect::Collector;
use crate::lifecycle::{DuplicateOwners, EventOwners, NONE, UnseenCloses, event_kind, known};
use crate::raw::RowKind;

/// Process of handles that were duplicated for a process that never started.
const NO_PROCESS: ProcessIdx = ProcessIdx(NONE);

/// Raw events grouped by object, with their values that are needed several times.
///
/// The events of an object may be anywhere in the columns of a trace. So each column is read for all rows at once,
/// which lets the processor overlap many fetches, and from then on the values are in order. Events are identified by
/// position.
pub struct RawRows<'a> {
    owners: &'a EventOwners,
    unseen: &'a UnseenCloses<'a>,
    /// Rows of the timeline.
    pub rows: &'a [u32],
    pub kind: Vec<RowKind>,
    /// Rows in the columns of the events' families.
    pub family_row: Vec<u32>,
    /// Rows of the processes table, or [`NONE`].
    pub process: Vec<u32>,
    /// Handle values of creates, duplicates and closes; 0 for all others.
    pub handle: Vec<u32>,
}

impl<'a> RawRows<'a> {
    pub fn new(
        collected: &'a Collector,
        owners: &'a EventOwners,
        unseen: &'a UnseenCloses<'a>,
        rows: &'a [u32],
    ) -> Self {
        let Collector { handles, duplicates, shared, .. } = collected;
        let kind: Vec<_> = rows.iter().map(|row| shared.timeline.kind[*row as usize]).collect();
        let family_row: Vec<_> =
            rows.iter().map(|row| shared.timeline.row[*row as usize]).collect();
        let process = rows.iter().map(|row| owners.process[*row as usize]).collect();
        let handle = kind
            .iter()
            .zip(&family_row)
            .map(|(kind, row)| match kind {
                RowKind::HandleCreate | RowKind::HandleClose => handles.handle[*row as usize],
                RowKind::HandleDuplicate => duplicates.rows[*row as usize].target_handle,
                _ => 0,
            })
            .collect();
        Self { owners, unseen, rows, kind, family_row, process, handle }
    }

    /// Returns the kind in the events table; only rows of that table get here.
    pub fn event_kind(&self, position: usize) -> EventKind {
        event_kind(self.kind[position]).unwrap_or(EventKind::HandleClose)
    }

    /// Whether any event maps or unmaps a view.
    pub fn has_views(&self) -> bool {
        self.kind.iter().any(|kind| matches!(kind, RowKind::Map | RowKind::Unmap))
    }

    /// Whether the event at a position belongs to a process that never started: a duplicate for it, or the close of
    /// one.
    pub fn is_of_no_process(&self, position: u32) -> bool {
        let EventOwners { failed, failed_closes, .. } = self.owners;
        if failed.is_empty() {
            return false;
        }
        let row = self.rows[position as usize];
        match self.kind[position as usize] {
            RowKind::HandleDuplicate => failed.contains_key(&row),
            RowKind::HandleClose => failed_closes.contains(&row),
            _ => false,
        }
    }

    /// Returns the processes of the duplicate at a position.
    pub fn duplicate_owners(&self, position: u32) -> DuplicateOwners {
        self.owners.duplicates[self.family_row[position as usize] as usize]
    }
}

impl ObjectEvents for RawRows<'_> {
    fn kind(&self, position: u32) -> EventKind {
        self.event_kind(position as usize)
    }

    fn process(&self, position: u32) -> Option<ProcessIdx> {
        if self.kind[position as usize] == RowKind::HandleClose && self.is_of_no_process(position) {
            return Some(NO_PROCESS);
        }
        known(self.process[position as usize]).map(ProcessIdx)
    }

    fn handle(&self, position: u32) -> u64 {
        handle_slot(self.handle[position as usize].into())
    }

    fn source_process(&self, position: u32) -> Option<ProcessIdx> {
        known(self.duplicate_owners(position).source).map(ProcessIdx)
    }

    fn inherited_by(&self, position: u32) -> Option<ProcessIdx> {
        if self.is_of_no_process(position) {
            return Some(NO_PROCESS);
        }
        known(self.duplicate_owners(position).inherited_by).map(ProcessIdx)
    }

    fn is_closed_before(&self, opened: u32, event: u32) -> bool {
        self.unseen.is_closed_before(self.rows[opened as usize], self.rows[event as usize])
    }
}
