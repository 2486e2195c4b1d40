//! Kernel objects that were referenced and dereferenced (MOF class ObReferenceEvent).

use handlescope_model::{EventKind, Table};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const REFERENCE: EventId = EventId::Hook(0x1132);
const DEREFERENCE: EventId = EventId::Hook(0x1133);

#[derive(Default)]
pub struct References {
    /// Kernel address of the object.
    pub object: Vec<u64>,
    /// Number of references that were taken or given back.
    pub count: Vec<u32>,
}

impl EventFamily for References {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (REFERENCE, EventKind::Reference.event_name()),
        (DEREFERENCE, EventKind::Dereference.event_name()),
    ];
    const TABLES: &'static [Table] = &[Table::Events];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(1), Field::Unread(4), Field::Bytes(4)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (object, _pool_tag, count) = (p.pointer()?, p.u32()?, p.u32()?);
        let kind = if event.id == REFERENCE { RowKind::Reference } else { RowKind::Dereference };
        shared.timeline.push(kind, self.object.len(), event);
        self.object.push(object);
        self.count.push(count);
        Some(())
    }
}
