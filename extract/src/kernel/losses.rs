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

/// Records of losses, which say that events before them are missing.
#[derive(Default)]
pub struct Losses {
    /// Raw time of the last record, and how many there are.
    pub last: Option<i64>,
    pub count: u64,
}

impl EventFamily for Losses {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(LOST_EVENT, "LostEvent"), (LOST_BUFFER, "LostEvent"), (LOST_FILE, "LostEvent")];
    const TABLES: &'static [Table] = &[Table::Warnings];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        self.last = self.last.max(Some(event.time));
        self.count += 1;
        shared.diagnostics.count(WarningKind::LossRecord, Some(event.offset));
        Some(())
    }
}
