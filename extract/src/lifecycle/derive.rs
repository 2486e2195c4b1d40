//! Raw events as the rules of objects see them.

use handlescope_model::rules::ObjectEvents;
use handlescope_model::{EventKind, ProcessIdx};

use super::{DuplicateOwners, EventOwners, NONE};
use crate::collect::{HandleEvents, RawKind};

/// The kind an event is stored as; rundown handles are no events and never come here.
pub fn stored_kind(kind: RawKind) -> EventKind {
    match kind {
        RawKind::Create => EventKind::HandleCreate,
        RawKind::Duplicate => EventKind::HandleDuplicate,
        RawKind::Close | RawKind::Rundown => EventKind::HandleClose,
        RawKind::ObjectCreate => EventKind::ObjectCreate,
        RawKind::ObjectDelete => EventKind::ObjectDelete,
        RawKind::Reference => EventKind::Reference,
        RawKind::Dereference => EventKind::Dereference,
        RawKind::Map => EventKind::Map,
        RawKind::Unmap => EventKind::Unmap,
    }
}

/// Raw events of a trace with their processes.
pub struct RawEvents<'a> {
    /// The events.
    pub events: &'a HandleEvents,
    /// Their processes.
    pub owners: &'a EventOwners,
}

impl RawEvents<'_> {
    fn duplicate(&self, row: u32) -> DuplicateOwners {
        self.owners.duplicates[self.events.detail[row as usize] as usize]
    }
}

impl ObjectEvents for RawEvents<'_> {
    fn kind(&self, row: u32) -> EventKind {
        stored_kind(self.events.kind[row as usize])
    }

    fn process(&self, row: u32) -> Option<ProcessIdx> {
        known(self.owners.process[row as usize])
    }

    fn handle(&self, row: u32) -> u64 {
        u64::from(self.events.value[row as usize])
    }

    fn source_process(&self, row: u32) -> Option<ProcessIdx> {
        known(self.duplicate(row).source)
    }

    fn inherited_by(&self, row: u32) -> Option<ProcessIdx> {
        known(self.duplicate(row).inherited_by)
    }
}

fn known(row: u32) -> Option<ProcessIdx> {
    (row != NONE).then_some(ProcessIdx(row))
}
