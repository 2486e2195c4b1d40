//! Handles that were duplicated (MOF class ObHandleDuplicateEvent).

use handlescope_model::{EventKind, Table, rules};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const DUPLICATE: EventId = EventId::Hook(0x1122);

#[derive(Default)]
pub struct Duplicates {
    pub rows: Vec<DuplicateRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateRow {
    /// Kernel address of the object.
    pub object: u64,
    /// Handle value in the source process.
    pub source_handle: u32,
    /// New handle value.
    pub target_handle: u32,
    /// Process that got the new handle. Public tools take it for a handle id; the MOF class
    /// ObHandleDuplicateEvent calls it TargetProcessId.
    pub target_pid: u32,
    pub type_id: u16,
    /// Process that owns the source handle; absent in the older schema.
    pub source_pid: Option<u32>,
}

impl DuplicateRow {
    /// Whether the handle table of a process is being cloned for a child, by what the payload says.
    pub fn is_inherited(&self) -> bool {
        let Self { source_handle, target_handle, source_pid, target_pid, .. } = *self;
        rules::is_inherited(source_handle, target_handle, source_pid, Some(target_pid))
    }
}

impl EventFamily for Duplicates {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(DUPLICATE, EventKind::HandleDuplicate.event_name())];
    const TABLES: &'static [Table] = &[Table::Events];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Bytes(18)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let row = DuplicateRow {
            object: p.pointer()?,
            source_handle: p.u32()?,
            target_handle: p.u32()?,
            target_pid: p.u32()?,
            type_id: p.u16()?,
            source_pid: p.u32(),
        };
        shared.timeline.push(RowKind::HandleDuplicate, self.rows.len(), event);
        self.rows.push(row);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_duplicate_is_a_process() {
        let mut payload = 0xFFFF_8000_0000_1000u64.to_le_bytes().to_vec();
        for field in [0x10u32, 0x20, 20_700] {
            payload.extend(field.to_le_bytes());
        }
        payload.extend(16u16.to_le_bytes());
        payload.extend(20_648u32.to_le_bytes());
        let mut duplicates = Duplicates::default();
        for payload in [&payload[..], &payload[..22]] {
            let event = Event { id: DUPLICATE, payload, ..Event::default() };
            duplicates.take(&event, &mut Shared::default()).unwrap();
        }
        let [row, older] = duplicates.rows[..] else { panic!("two rows") };
        assert_eq!((row.target_pid, row.source_pid), (20_700, Some(20_648)));
        assert_eq!((older.type_id, older.source_pid), (16, None));
    }
}
