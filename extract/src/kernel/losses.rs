//! Records of events and buffers that the session lost (MOF class RT_LostEvent).

use handlescope_model::Table;

use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::payload::Field;
use crate::raw::{EventFamily, Shared};

const PROVIDER: Guid =
    Guid::new(0x6a39_9ae0, 0x4bc6, 0x4de9, [0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e]);
const LOST_EVENT: EventId = EventId::Classic { guid: PROVIDER, opcode: 32 };
const LOST_BUFFER: EventId = EventId::Classic { guid: PROVIDER, opcode: 33 };
const LOST_FILE: EventId = EventId::Classic { guid: PROVIDER, opcode: 34 };

/// Losses are only counted.
#[derive(Default)]
pub struct Losses;

impl EventFamily for Losses {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(LOST_EVENT, "LostEvent"), (LOST_BUFFER, "LostEvent"), (LOST_FILE, "LostEvent")];
    const TABLES: &'static [Table] = &[Table::Warnings];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        shared.diagnostics.count(WarningKind::LossRecord, Some(event.offset));
        Some(())
    }
}
