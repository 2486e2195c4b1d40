//! Handles that were created and closed (MOF class ObHandleEvent), and those that were open when the
//! trace began and ended (ObHandleRundownEvent). Payloads are packed, without alignment gaps.

use handlescope_model::{EventKind, Table, rules::HANDLE_RUNDOWN_END};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload, utf16_bytes};
use crate::raw::{EventFamily, NameInterner, RowKind, Shared};

const CREATE: EventId = EventId::Hook(0x1120);
const CLOSE: EventId = EventId::Hook(0x1121);
const RUNDOWN_START: EventId = EventId::Hook(0x1126);
const RUNDOWN_END: EventId = EventId::Hook(0x1127);

/// Columns of creates, closes and handles open at the end.
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
    pub start: Vec<StartHandle>,
}

/// A handle of the rundown at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartHandle {
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
    const TABLES: &'static [Table] =
        &[Table::Events, Table::ExistingHandles, Table::StartHandles, Table::Names];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            RUNDOWN_START | RUNDOWN_END => &[Field::Pointers(1), Field::Bytes(10), Field::Utf16],
            _ => &[Field::Pointers(1), Field::Bytes(6), Field::Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
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
                self.start.push(StartHandle { object, pid, handle, type_id, name, time });
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
        handles.take(&event, &mut Shared::default()).unwrap();
        assert_eq!((handles.handle[0], handles.names.text(handles.name[0])), (0xC0, r"\X".into()));
    }
}
