//! Raw events as the rules of objects see them.

use handlescope_model::rules::ObjectEvents;
use handlescope_model::{EventKind, ProcessIdx};

use super::attribution::NONE;
use super::kinds::event_kind;
use super::owners::{DuplicateOwners, EventOwners};
use super::unseen::UnseenCloses;
use crate::collect::Collector;

/// Raw events of a trace with their processes; rows are those of the timeline.
pub struct RawEvents<'a> {
    pub collected: &'a Collector,
    pub owners: &'a EventOwners,
    pub unseen: &'a UnseenCloses<'a>,
}

impl RawEvents<'_> {
    /// The row in the columns of the event's family.
    fn at(&self, row: u32) -> usize {
        self.collected.shared.timeline.row[row as usize] as usize
    }

    fn duplicate(&self, row: u32) -> DuplicateOwners {
        self.owners.duplicates[self.at(row)]
    }
}

impl ObjectEvents for RawEvents<'_> {
    fn kind(&self, row: u32) -> EventKind {
        let kind = self.collected.shared.timeline.kind[row as usize];
        // Only rows of the events table come here.
        event_kind(kind).unwrap_or(EventKind::HandleClose)
    }

    fn process(&self, row: u32) -> Option<ProcessIdx> {
        known(self.owners.process[row as usize])
    }

    fn handle(&self, row: u32) -> u64 {
        let Collector { handles, duplicates, .. } = self.collected;
        u64::from(match self.kind(row) {
            EventKind::HandleDuplicate => duplicates.rows[self.at(row)].target_handle,
            _ => handles.handle[self.at(row)],
        })
    }

    fn source_process(&self, row: u32) -> Option<ProcessIdx> {
        known(self.duplicate(row).source)
    }

    fn inherited_by(&self, row: u32) -> Option<ProcessIdx> {
        known(self.duplicate(row).inherited_by)
    }

    fn is_closed_before(&self, opened: u32, event: u32) -> bool {
        self.unseen.is_closed_before(opened, event)
    }
}

fn known(row: u32) -> Option<ProcessIdx> {
    (row != NONE).then_some(ProcessIdx(row))
}
