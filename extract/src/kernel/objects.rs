//! Kernel objects that were created and deleted (MOF class ObObjectEvent).

use handlescope_model::{EventKind, Table};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const CREATE: EventId = EventId::Hook(0x1130);
const DELETE: EventId = EventId::Hook(0x1131);

#[derive(Default)]
pub struct Objects {
    /// Kernel address of the object.
    pub object: Vec<u64>,
    pub type_id: Vec<u16>,
}

impl EventFamily for Objects {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (CREATE, EventKind::ObjectCreate.event_name()),
        (DELETE, EventKind::ObjectDelete.event_name()),
    ];
    const TABLES: &'static [Table] = &[Table::Events];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Bytes(2)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (object, type_id) = (p.pointer()?, p.u16()?);
        let kind = if event.id == CREATE { RowKind::ObjectCreate } else { RowKind::ObjectDelete };
        shared.timeline.push(kind, self.object.len(), event);
        self.object.push(object);
        self.type_id.push(type_id);
        Some(())
    }
}
