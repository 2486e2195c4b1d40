//! Metadata that a trace carries, and events decoded with it.
//!
//! Three kinds of schema describe an event's payload, in this order of precedence: the TraceLogging schema in an
//! extended item of the event, EventInfo records, and manifests of .NET's EventSource. Each is compiled once into
//! [`Fields`]; a payload is then read without an allocation.
//!
//! A trace is not trusted: metadata may use at most [`MAX_METADATA`] of memory, and the values of an event are limited
//! by its payload size.

mod event_info;
mod fields;
mod manifest;
mod node;
mod read;
mod trace_logging;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::event_info::SchemaTarget;
pub use self::event_info::{EventMap, MapKind};
pub use self::fields::{
    Count, Extent, FieldKind, FieldPlan, Fields, Schema, SchemaId, SchemaSource, ValueForm,
};
use self::manifest::{CHUNK, Chunk, Manifests};
pub use self::node::{DecodedEvent, Node, Value, line, sid_text};
use self::read::FieldReader;
#[cfg(test)]
pub use self::trace_logging::encoded_item;
pub use self::trace_logging::{
    ExtendedItem, event_name, extended_items, provider_name, schema_item, traits_item,
};
use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::intern::ByteInterner;
use crate::payload::Field;
use crate::raw::{EventFamily, PassState};
use handlescope_model::Table;

/// Events of the metadata provider.
const EVENT_INFO: EventId = EventId::Classic { guid: event_info::PROVIDER, opcode: 32 };
const EVENT_MAP_INFO: EventId = EventId::Classic { guid: event_info::PROVIDER, opcode: 33 };

/// Maximum bytes of schemas and maps in memory; beyond that, schemas are refused. The schemas of a large trace take
/// some MB.
const MAX_METADATA: usize = 256 << 20;

/// Memory per schema besides its fields: its entry, its names, and its entries in the lookup tables.
const SCHEMA_COST: usize = 256;

/// Result of offering an event that may be metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnOutcome {
    /// The event is not metadata.
    Nothing,
    /// The metadata was taken.
    Taken,
    /// The metadata cannot be read, or there is too much of it.
    Refused,
}

/// TraceLogging schema: provider, id and version, and the numbers of schema and traits.
type TraceLoggingKey = (Guid, u16, u8, u32, u32);

/// Collects the metadata of a trace and decodes its events.
///
/// Events are given in time order, and all metadata goes to [`Self::learn`] first. An event is decoded with the
/// metadata that came before it.
#[derive(Default)]
pub struct Decoder {
    schemas: Vec<Schema>,
    described: FxHashMap<SchemaTarget, SchemaId>,
    maps: FxHashMap<(Guid, Box<str>), EventMap>,
    manifests: Manifests,
    /// TraceLogging schemas and traits, as they are in events.
    items: ByteInterner,
    trace_logging: FxHashMap<TraceLoggingKey, Option<SchemaId>>,
    /// Bytes of [`MAX_METADATA`] used so far.
    used: usize,
    reader: FieldReader,
}

impl Decoder {
    /// Whether an event is or may be metadata.
    pub fn is_metadata(id: EventId) -> bool {
        matches!(id, EventId::Manifest { id: CHUNK, .. })
            || id == EVENT_INFO
            || id == EVENT_MAP_INFO
    }

    /// Learns from an event if it is metadata.
    pub fn learn(&mut self, event: &Event<'_>) -> LearnOutcome {
        match event.id {
            EVENT_INFO => self.event_info(event.payload),
            EVENT_MAP_INFO => self.event_map(event.payload),
            EventId::Manifest { guid, id: CHUNK } => self.chunk(guid, event),
            _ => LearnOutcome::Nothing,
        }
    }

    fn event_info(&mut self, record: &[u8]) -> LearnOutcome {
        if self.used >= MAX_METADATA {
            return LearnOutcome::Refused;
        }
        let Some((described, schema)) = event_info::decode(record) else {
            return LearnOutcome::Refused;
        };
        // One record describes all events of its kind; later ones say the same.
        if !self.described.contains_key(&described) {
            let id = self.add(schema);
            self.described.insert(described, id);
        }
        LearnOutcome::Taken
    }

    fn event_map(&mut self, record: &[u8]) -> LearnOutcome {
        if self.used >= MAX_METADATA {
            return LearnOutcome::Refused;
        }
        let Some((guid, name, map)) = event_info::decode_map(record) else {
            return LearnOutcome::Refused;
        };
        let (size, key) = (map.size(), (guid, name.into_boxed_str()));
        if self.maps.get(&key).is_none_or(|known| *known != map) {
            self.used += SCHEMA_COST + key.1.len() + size;
            self.maps.insert(key, map);
        }
        LearnOutcome::Taken
    }

    fn chunk(&mut self, guid: Guid, event: &Event<'_>) -> LearnOutcome {
        let (text, hash) = match self.manifests.chunk(event) {
            Chunk::Unusable => return LearnOutcome::Nothing,
            Chunk::Kept => return LearnOutcome::Taken,
            Chunk::Refused => return LearnOutcome::Refused,
            Chunk::Complete(text, hash) => (text, hash),
        };
        if self.manifests.is_known(guid, event.pid, hash) {
            return LearnOutcome::Taken;
        }
        if self.used >= MAX_METADATA {
            return LearnOutcome::Refused;
        }
        let Some(schemas) = manifest::schemas(guid, &text) else { return LearnOutcome::Refused };
        let mut events = FxHashMap::default();
        // Events share the fields of their template.
        let mut templates = rustc_hash::FxHashSet::default();
        for schema in schemas {
            let is_new = templates.insert(Arc::as_ptr(&schema.fields));
            self.used += if is_new { schema.fields.size() } else { 0 };
            let key = (schema.id, schema.version);
            events.entry(key).or_insert_with(|| self.add_shared(schema));
        }
        self.manifests.add(guid, event.pid, hash, events);
        LearnOutcome::Taken
    }

    fn add(&mut self, schema: Schema) -> SchemaId {
        self.used += schema.fields.size();
        self.add_shared(schema)
    }

    /// Adds a schema that shares its fields with others.
    fn add_shared(&mut self, schema: Schema) -> SchemaId {
        let names = schema.provider.len() + schema.task.len() + schema.opcode.len();
        self.used += SCHEMA_COST + names;
        self.schemas.push(schema);
        SchemaId(self.schemas.len() as u32 - 1)
    }

    /// Returns the schema of an event: from the event itself, an EventInfo record, or a manifest.
    pub fn schema_of(&mut self, event: &Event<'_>) -> Option<SchemaId> {
        if let EventId::Manifest { guid, id } = event.id
            && let Some(item) = trace_logging::schema_item(event.extended)
        {
            return self.trace_logging(guid, id, event.version, item, event.extended);
        }
        let described = SchemaTarget::new(event.id, event.version)?;
        if let Some(schema) = self.described.get(&described) {
            return Some(*schema);
        }
        match event.id {
            EventId::Manifest { id: CHUNK, .. } => None,
            EventId::Manifest { guid, id } => {
                self.manifests.find(guid, event.pid, id, event.version)
            }
            _ => None,
        }
    }

    fn trace_logging(
        &mut self,
        guid: Guid,
        id: u16,
        version: u8,
        schema: &[u8],
        extended: &[u8],
    ) -> Option<SchemaId> {
        let traits = trace_logging::traits_item(extended).unwrap_or_default();
        let is_full = self.used >= MAX_METADATA;
        let mut number = |item| {
            let before = self.items.count();
            let number = if is_full { self.items.find(item)? } else { self.items.intern(item) };
            self.used += if self.items.count() > before { SCHEMA_COST + item.len() } else { 0 };
            Some(number)
        };
        let key = (guid, id, version, number(schema)?, number(traits)?);
        if let Some(known) = self.trace_logging.get(&key) {
            return *known;
        }
        if is_full {
            return None;
        }
        let schema_id = trace_logging::decode(schema).map(|(name, fields)| Schema {
            source: SchemaSource::TraceLogging,
            provider: String::from_utf8_lossy(
                trace_logging::provider_name(traits).unwrap_or_default(),
            )
            .into(),
            guid,
            id,
            version,
            task: name.into(),
            opcode: "".into(),
            fields: fields.into(),
        });
        self.used += SCHEMA_COST;
        let schema_id = schema_id.map(|schema| self.add(schema));
        self.trace_logging.insert(key, schema_id);
        schema_id
    }

    /// Decodes an event; `None` without a schema.
    ///
    /// The result borrows from the decoder until the next event is decoded.
    pub fn decode<'a>(&'a mut self, event: &Event<'a>) -> Option<DecodedEvent<'a>> {
        let id = self.schema_of(event)?;
        self.decode_as(id, event.payload, event.pointer_size)
    }

    /// Decodes a payload with a schema, like [`Self::decode`].
    pub fn decode_as<'a>(
        &'a mut self,
        id: SchemaId,
        payload: &'a [u8],
        pointer_size: usize,
    ) -> Option<DecodedEvent<'a>> {
        let schema = self.schemas.get(id.row())?;
        let ending = self.reader.read(&schema.fields, payload, pointer_size);
        Some(DecodedEvent { id, schema, slots: &self.reader.slots, payload, ending })
    }

    /// Returns names of events, whatever their version.
    pub fn names(&self) -> SchemaNames<'_> {
        SchemaNames::new(&self.schemas, &self.described)
    }

    /// Returns all schemas by number.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// Returns the names of a field's values.
    pub fn map(&self, provider: Guid, name: &str) -> Option<&EventMap> {
        self.maps.get(&(provider, Box::from(name)))
    }

    /// Returns all maps with their providers and names.
    pub fn maps(&self) -> impl Iterator<Item = (Guid, &str, &EventMap)> {
        self.maps.iter().map(|((guid, name), map)| (*guid, &**name, map))
    }

    /// Returns the groups of a TraceLogging provider, from all its traits.
    pub fn groups(&self, provider: Guid) -> Vec<Guid> {
        let keys = self.trace_logging.keys().filter(|(guid, ..)| *guid == provider);
        let traits: std::collections::BTreeSet<u32> = keys.map(|(.., traits)| *traits).collect();
        traits
            .into_iter()
            .flat_map(|traits| trace_logging::groups(self.items.get(traits)))
            .collect()
    }
}

/// Metadata of a trace.
#[derive(Default)]
pub struct Metadata {
    pub decoder: Decoder,
}

impl EventFamily for Metadata {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(EVENT_INFO, "EventInfo"), (EVENT_MAP_INFO, "EventMapInfo")];
    const TABLES: &'static [Table] = &[Table::EventCounts];

    /// Names of events and fields come from programs on the machine.
    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        if self.decoder.learn(event) == LearnOutcome::Refused {
            shared.diagnostics.count(WarningKind::BadMetadata, Some(event.offset));
        }
        Some(())
    }
}

/// Names of events and providers. An event with several versions has the names of the latest.
#[derive(Default)]
pub struct SchemaNames<'a> {
    schemas: FxHashMap<EventId, &'a Schema>,
    providers: FxHashMap<Guid, &'a str>,
}

impl<'a> SchemaNames<'a> {
    pub fn new(schemas: &'a [Schema], described: &FxHashMap<SchemaTarget, SchemaId>) -> Self {
        let mut names = Self::default();
        for schema in schemas {
            if !schema.provider.is_empty() {
                names.providers.insert(schema.guid, &schema.provider);
            }
        }
        // An event with several schemas is named after the one that decodes it.
        for schema in schemas.iter().filter(|schema| schema.source == SchemaSource::Manifest) {
            let id = EventId::Manifest { guid: schema.guid, id: schema.id };
            names.schemas.insert(id, schema);
        }
        let mut described: Vec<_> = described.iter().collect();
        described.sort_unstable_by_key(|(_, schema)| **schema);
        for (described, schema) in described {
            let id = match *described {
                SchemaTarget::Manifest { guid, id, .. } => EventId::Manifest { guid, id },
                SchemaTarget::Classic { guid, opcode, .. } => EventId::Classic { guid, opcode },
            };
            names.schemas.extend(schemas.get(schema.row()).map(|schema| (id, schema)));
        }
        names
    }

    /// Returns the schema of an event that does not carry its own.
    pub fn of(&self, id: EventId) -> Option<&'a Schema> {
        self.schemas.get(&id).copied()
    }

    pub fn provider(&self, guid: Guid) -> Option<&'a str> {
        self.providers.get(&guid).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::event_info::tests::{GUID, record};
    use crate::metadata::trace_logging::tests::schema;
    use crate::metadata::trace_logging::{SCHEMA, TRAITS, encoded_item as item};
    use crate::metadata::{Value, line, sid_text};

    const WORK: EventId = EventId::Manifest { guid: GUID, id: 5 };

    fn info(payload: &[u8]) -> Event<'_> {
        Event { id: EVENT_INFO, payload, ..Event::default() }
    }

    fn texts(decoder: &mut Decoder, event: &Event<'_>) -> Option<String> {
        let decoded = decoder.decode(event)?;
        let mut text = format!("{}: ", decoded.schema.name());
        line(decoded.fields(), &mut text).unwrap();
        Some(text)
    }

    #[test]
    fn the_schema_that_an_event_carries_precedes_the_schema_of_a_record() {
        let mut decoder = Decoder::default();
        let of_record = record(&[(0, 8, 0, 1, 4)], 1);
        assert_eq!(decoder.learn(&info(&of_record)), LearnOutcome::Taken);
        let payload = [7, 0, 0, 0];
        let plain = Event { id: WORK, payload: &payload, ..Event::default() };
        assert_eq!(texts(&mut decoder, &plain).unwrap(), "Work/Start: p0=7");
        let extended = item(SCHEMA, &schema("Own", b"a\0\x04b\0\x04"), false);
        // Only the item matters, not the id or channel.
        let described = Event { extended: &extended, ..plain };
        assert_eq!(texts(&mut decoder, &described).unwrap(), "Own: a=7,b=0");
        assert_eq!(decoder.decode(&described).unwrap().value("B"), Some(Value::Unsigned(0)));
    }

    #[test]
    fn a_trace_logging_event_is_named_after_its_traits() {
        let mut decoder = Decoder::default();
        let traits = b"\x0A\0Contoso\0";
        let items = [item(SCHEMA, &schema("Go", b""), true), item(TRAITS, traits, false)].concat();
        let event = Event { id: WORK, extended: &items, ..Event::default() };
        let schema = decoder.schema_of(&event).unwrap();
        assert_eq!(&*decoder.schemas()[schema.row()].provider, "Contoso");
        assert_eq!(decoder.schema_of(&event), Some(schema), "it is kept once");
        assert_eq!(decoder.schemas().len(), 1);
    }

    #[test]
    fn another_version_of_an_event_is_another_event() {
        let mut decoder = Decoder::default();
        decoder.learn(&info(&record(&[], 0)));
        let event = Event { id: WORK, version: 1, ..Event::default() };
        assert!(decoder.decode(&event).is_none());
    }

    #[test]
    fn metadata_is_bounded() {
        let mut decoder = Decoder::default();
        let mut refused = 0;
        // Names overlap, so each record claims far more than its own bytes.
        let mut bytes = record(&[(0, 8, 0, 1, 4); 2000], 2000);
        let name = bytes.len() as u32;
        bytes.extend(b"a\0".repeat(1000));
        for property in 0..2000 {
            let at = 112 + 24 * property + 4;
            bytes[at..at + 4].copy_from_slice(&name.to_le_bytes());
        }
        for id in 0..400_u16 {
            bytes[32..34].copy_from_slice(&id.to_le_bytes());
            refused += u32::from(decoder.learn(&info(&bytes)) == LearnOutcome::Refused);
        }
        assert!(refused > 100, "{refused}");
        assert!(decoder.used < MAX_METADATA + (4 << 20));
        let extended = item(SCHEMA, &schema("Own", b""), false);
        let event = Event { id: WORK, extended: &extended, ..Event::default() };
        assert!(decoder.decode(&event).is_none());
    }

    #[test]
    fn identifiers_are_printed_as_windows_does() {
        assert_eq!(sid_text(&[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 33, 2, 0, 0]), "S-1-5-32-545");
    }
}
