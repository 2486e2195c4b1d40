//! Names of object types (MOF class ObTypeEvent).

use std::collections::BTreeMap;

use handlescope_model::{Table, rules::TYPE_RUNDOWN_END};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, Shared};

const RUNDOWN_START: EventId = EventId::Hook(0x1124);
const RUNDOWN_END: EventId = EventId::Hook(0x1125);

/// Names by type id.
#[derive(Default)]
pub struct ObjectTypes {
    pub names: BTreeMap<u16, String>,
}

impl EventFamily for ObjectTypes {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(RUNDOWN_START, "TypeDCStart"), (RUNDOWN_END, TYPE_RUNDOWN_END)];
    const TABLES: &'static [Table] = &[Table::ObjectTypes];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Bytes(4), Field::Public]
    }

    fn take(&mut self, event: &Event<'_>, _: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (type_id, _reserved) = (p.u16()?, p.u16()?);
        self.names.insert(type_id, p.utf16());
        Some(())
    }
}
