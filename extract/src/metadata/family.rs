//! The event family of metadata.

use handlescope_model::Table;

use super::decoder::{Decoder, EVENT_INFO, EVENT_MAP_INFO, Learned};
use crate::etl::{Event, EventId, WarningKind};
use crate::payload::Field;
use crate::raw::{EventFamily, Shared};

/// The metadata of a trace.
#[derive(Default)]
pub struct Metadata {
    pub decoder: Decoder,
}

impl EventFamily for Metadata {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(EVENT_INFO, "EventInfo"), (EVENT_MAP_INFO, "EventMapInfo")];
    const TABLES: &'static [Table] = &[Table::EventCounts];

    /// Names of events and fields come from programs of the machine.
    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        if self.decoder.learn(event) == Learned::Refused {
            shared.diagnostics.count(WarningKind::BadMetadata, Some(event.offset));
        }
        Some(())
    }
}
