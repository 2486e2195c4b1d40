//! What events and providers are called.

use rustc_hash::FxHashMap;

use super::event_info::Described;
use super::fields::{Schema, SchemaId, SchemaSource};
use crate::etl::{EventId, Guid};

/// Names of events and providers; of several versions of an event, those of the last that came.
#[derive(Default)]
pub struct SchemaNames<'a> {
    schemas: FxHashMap<EventId, &'a Schema>,
    providers: FxHashMap<Guid, &'a str>,
}

impl<'a> SchemaNames<'a> {
    pub(super) fn new(schemas: &'a [Schema], described: &FxHashMap<Described, SchemaId>) -> Self {
        let mut names = Self::default();
        for schema in schemas {
            if !schema.provider.is_empty() {
                names.providers.insert(schema.guid, &schema.provider);
            }
        }
        // Of several sources, the one that decodes an event names it.
        for schema in schemas.iter().filter(|schema| schema.source == SchemaSource::Manifest) {
            let id = EventId::Manifest { guid: schema.guid, id: schema.id };
            names.schemas.insert(id, schema);
        }
        let mut all: Vec<_> = described.iter().collect();
        all.sort_unstable_by_key(|(_, schema)| **schema);
        for (described, schema) in all {
            let id = match *described {
                Described::Manifest { guid, id, .. } => EventId::Manifest { guid, id },
                Described::Classic { guid, opcode, .. } => EventId::Classic { guid, opcode },
            };
            names.schemas.extend(schemas.get(schema.row()).map(|schema| (id, schema)));
        }
        names
    }

    /// The schema of an event that does not carry its own.
    pub fn of(&self, id: EventId) -> Option<&'a Schema> {
        self.schemas.get(&id).copied()
    }

    pub fn provider(&self, guid: Guid) -> Option<&'a str> {
        self.providers.get(&guid).copied()
    }
}
