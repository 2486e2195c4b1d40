//! Event families of the kernel: payload layouts and raw columns.
//!
//! This file has those of the object manager (MOF classes of ObTrace): handles created, closed, duplicated, or open at
//! the beginning and end of the trace; objects created, deleted and referenced; and the names of object types. Payloads
//! are packed, without alignment gaps.

mod image_paths;
mod images;
mod memory;
mod processes;
mod system;

use std::collections::BTreeMap;
use std::ops::Range;

pub use self::image_paths::{ImagePath, ImagePaths};
pub use self::images::{IDENTITY_GUID, ImagePayload, ImageRow, Images};
pub use self::memory::{Heaps, RangeRow, ViewRow, Views, VirtualMemory};
pub use self::processes::{
    ProcessPayload, ProcessRow, Processes, Sid, ThreadRow, Threads, ZombieRow,
};
pub use self::system::{FACTS_GUID, Losses, System};
use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload, utf16_bytes};
use crate::raw::{EventFamily, GatheredFamily, NameInterner, PassState, RowKind, gathered_columns};
use handlescope_model::rules::{HANDLE_RUNDOWN_END, TYPE_RUNDOWN_END};
use handlescope_model::{EventKind, Table, rules};

const CREATE: EventId = EventId::Hook(0x1120);
const CLOSE: EventId = EventId::Hook(0x1121);
const RUNDOWN_START: EventId = EventId::Hook(0x1126);
const RUNDOWN_END: EventId = EventId::Hook(0x1127);

/// Columns of creates, closes, and handles open at the end.
#[derive(Default)]
pub struct Handles {
    /// Kernel address of the object.
    pub object: Vec<u64>,
    /// Handle value.
    pub handle: Vec<u32>,
    pub type_id: Vec<u16>,
    /// Name of the object in [`Self::names`], 0 for none; mostly empty in creates.
    pub name: Vec<u32>,
    pub names: NameInterner,
    /// Handles open at the start.
    pub start: Vec<StartHandleRow>,
}

/// Handle of the start rundown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartHandleRow {
    /// Kernel address of the object.
    pub object: u64,
    pub pid: u32,
    /// Handle value.
    pub handle: u32,
    pub type_id: u16,
    /// Name of the object, 0 for none.
    pub name: u32,
    /// Raw time.
    pub time: i64,
}

impl EventFamily for Handles {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (CREATE, EventKind::HandleCreate.event_name()),
        (CLOSE, EventKind::HandleClose.event_name()),
        (RUNDOWN_START, "HandleDCStart"),
        (RUNDOWN_END, HANDLE_RUNDOWN_END),
    ];
    const TABLES: &'static [Table] = &[Table::Acquisitions, Table::Names];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            RUNDOWN_START | RUNDOWN_END => &[Field::Pointers(1), Field::Bytes(10), Field::Utf16],
            _ => &[Field::Pointers(1), Field::Bytes(6), Field::Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        let object = p.pointer()?;
        let pid = match event.id {
            RUNDOWN_START | RUNDOWN_END => p.u32()?,
            _ => 0,
        };
        let (handle, type_id) = (p.u32()?, p.u16()?);
        let name = self.names.intern(utf16_bytes(p.rest()));
        let row = self.object.len();
        match event.id {
            CREATE => shared.timeline.push(RowKind::HandleCreate, row, event),
            CLOSE => shared.timeline.push(RowKind::HandleClose, row, event),
            RUNDOWN_END => shared.timeline.push_rundown(RowKind::HandleAtEnd, row, event, pid),
            RUNDOWN_START => {
                let time = event.time;
                self.start.push(StartHandleRow { object, pid, handle, type_id, name, time });
                return Some(());
            }
            _ => return None,
        }
        self.object.push(object);
        self.handle.push(handle);
        self.type_id.push(type_id);
        self.name.push(name);
        Some(())
    }
}

impl GatheredFamily for Handles {
    /// Selects creates and closes. Rundown records are about the process in their payload, and those at the start are
    /// not rows.
    fn is_gathered(id: EventId) -> bool {
        matches!(id, CREATE | CLOSE)
    }

    fn rows(&self) -> usize {
        self.object.len()
    }

    fn append(&mut self, batch: &Self, rows: Range<usize>) {
        let Self { object, handle, type_id, name, names, start: _ } = self;
        object.extend_from_slice(&batch.object[rows.clone()]);
        handle.extend_from_slice(&batch.handle[rows.clone()]);
        type_id.extend_from_slice(&batch.type_id[rows.clone()]);
        name.extend(batch.name[rows].iter().map(|name| names.intern(batch.names.bytes(*name))));
    }

    fn clear(&mut self) {
        let Self { object, handle, type_id, name, names, start } = self;
        object.clear();
        handle.clear();
        type_id.clear();
        name.clear();
        names.clear();
        start.clear();
    }
}

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
    /// Process that got the new handle. Public tools take this for a handle id; the MOF class ObHandleDuplicateEvent
    /// calls it TargetProcessId.
    pub target_pid: u32,
    pub type_id: u16,
    /// Process that owns the source handle; absent in the older schema.
    pub source_pid: Option<u32>,
}

impl DuplicateRow {
    /// Whether the payload says that a process's handle table is being cloned for a child.
    pub fn is_inherited(&self) -> bool {
        let Self { source_handle, target_handle, source_pid, target_pid, .. } = *self;
        rules::is_inherited(source_handle, target_handle, source_pid, Some(target_pid))
    }
}

impl EventFamily for Duplicates {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(DUPLICATE, EventKind::HandleDuplicate.event_name())];
    const TABLES: &'static [Table] = &[Table::Acquisitions];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Bytes(18)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
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

gathered_columns!(Duplicates { rows });

const OBJECT_CREATE: EventId = EventId::Hook(0x1130);
const OBJECT_DELETE: EventId = EventId::Hook(0x1131);

#[derive(Default)]
pub struct Objects {
    /// Kernel address of the object.
    pub object: Vec<u64>,
    pub type_id: Vec<u16>,
}

impl EventFamily for Objects {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (OBJECT_CREATE, EventKind::ObjectCreate.event_name()),
        (OBJECT_DELETE, EventKind::ObjectDelete.event_name()),
    ];
    const TABLES: &'static [Table] = &[Table::Objects];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Bytes(2)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        let (object, type_id) = (p.pointer()?, p.u16()?);
        let kind =
            if event.id == OBJECT_CREATE { RowKind::ObjectCreate } else { RowKind::ObjectDelete };
        shared.timeline.push(kind, self.object.len(), event);
        self.object.push(object);
        self.type_id.push(type_id);
        Some(())
    }
}

gathered_columns!(Objects { object, type_id });

const REFERENCE: EventId = EventId::Hook(0x1132);
const DEREFERENCE: EventId = EventId::Hook(0x1133);

#[derive(Default)]
pub struct References {
    /// Kernel address of the object.
    pub object: Vec<u64>,
    /// Number of references taken or given back.
    pub count: Vec<u32>,
}

impl EventFamily for References {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (REFERENCE, EventKind::Reference.event_name()),
        (DEREFERENCE, EventKind::Dereference.event_name()),
    ];
    const TABLES: &'static [Table] = &[Table::ReferenceChanges];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Unread(4), Field::Bytes(4)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        let (object, _pool_tag, count) = (p.pointer()?, p.u32()?, p.u32()?);
        let kind = if event.id == REFERENCE { RowKind::Reference } else { RowKind::Dereference };
        shared.timeline.push(kind, self.object.len(), event);
        self.object.push(object);
        self.count.push(count);
        Some(())
    }
}

gathered_columns!(References { object, count });

const TYPE_RUNDOWN_START: EventId = EventId::Hook(0x1124);
const TYPE_RUNDOWN: EventId = EventId::Hook(0x1125);

/// Names by type id.
#[derive(Default)]
pub struct ObjectTypes {
    pub names: BTreeMap<u16, String>,
}

impl EventFamily for ObjectTypes {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(TYPE_RUNDOWN_START, "TypeDCStart"), (TYPE_RUNDOWN, TYPE_RUNDOWN_END)];
    const TABLES: &'static [Table] = &[Table::ObjectTypes];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Bytes(4), Field::Public]
    }

    fn take(&mut self, event: &Event<'_>, _: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        let (type_id, _reserved) = (p.u16()?, p.u16()?);
        self.names.insert(type_id, p.utf16());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_may_carry_a_name() {
        let mut payload = vec![0; 4];
        payload.extend([0xC0, 0, 0, 0, 16, 0]);
        payload.extend(b"\\\0X\0\0\0");
        let mut handles = Handles::default();
        let event = Event { id: CLOSE, payload: &payload, pointer_size: 4, ..Event::default() };
        handles.take(&event, &mut PassState::default()).unwrap();
        assert_eq!((handles.handle[0], handles.names.text(handles.name[0])), (0xC0, r"\X".into()));
    }

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
            duplicates.take(&event, &mut PassState::default()).unwrap();
        }
        let [row, older] = duplicates.rows[..] else { panic!("two rows") };
        assert_eq!((row.target_pid, row.source_pid), (20_700, Some(20_648)));
        assert_eq!((older.type_id, older.source_pid), (16, None));
    }
}
