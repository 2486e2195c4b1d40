//! Event family that only descriptions identify: events that acquire or release a resource, recognized by the names in
//! their schemas instead of their ids, and GDI and USER handles.
//!
//! A description may come after its events, because an EventSource also writes its manifest at the end of a session.
//! Events without description wait for it.

mod gui;
mod rules;

use std::fmt::Write;

use rustc_hash::FxHashMap;

pub use self::gui::{GuiChange, GuiClass, GuiRow, PUBLIC};
pub use self::rules::Interest;
use self::rules::{Meaning, OfFamily, Rules};
use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::intern::ByteInterner;
use crate::mapping::{ResourceAction, ResourceMapping};
use crate::metadata::{DecodedEvent, Decoder, Schema, SchemaId, Value, schema_item};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, PassState, RowKind};
use handlescope_model::Table;

/// Columns of events decoded with their descriptions.
#[derive(Default)]
pub struct Described {
    pub resources: Vec<ResourceRow>,
    pub handles: Vec<GuiRow>,
    pub providers: Vec<DescribedProvider>,
    pub allocators: AllocatorNames,
    numbers: FxHashMap<Guid, u32>,
    rules: Rules,
    /// Meaning of each schema; `None` until its first event.
    meanings: Vec<Option<Meaning>>,
    undecided: WaitingEvents,
    /// Events that a window forgot before their description came.
    pub forgotten: UndescribedKinds,
}

/// Event that acquires or releases a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceRow {
    /// Handle; 0 if the event has none.
    pub handle: u64,
    /// Bytes, with the sign the event gives.
    pub size: i64,
    /// Number of the allocator's name.
    pub allocator: u32,
    /// Row of the providers.
    pub provider: u32,
}

/// Provider of events that acquire or release a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedProvider {
    pub guid: Guid,
    /// Empty if no description names it.
    pub name: String,
}

/// Result of decoding an event.
enum DecodeOutcome {
    Nothing,
    /// The event is in this row of its columns.
    Row(RowKind, usize),
    /// The event lacks a field.
    Short,
}

impl EventFamily for Described {
    /// Events known without a description; `Described::consider` recognizes all others.
    const EVENTS: &'static [(EventId, &'static str)] = &gui::EVENTS;
    const TABLES: &'static [Table] =
        &[Table::Allocators, Table::Acquisitions, Table::ResourceMisses];

    /// Returns no fields: they are known only from descriptions, which a redacted copy does not keep.
    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    /// Does nothing: `Described::consider` has already handled the event, with its description if there is one.
    fn take(&mut self, _: &Event<'_>, _: &mut PassState) -> Option<()> {
        Some(())
    }
}

impl Described {
    /// Creates a family without events; the mappings precede the default rules.
    pub fn new(mappings: Vec<ResourceMapping>) -> Self {
        Self { rules: Rules::new(mappings), ..Self::default() }
    }

    /// Handles an event of another family if a mapping may apply to it.
    pub fn consider_of_family(
        &mut self,
        event: &Event<'_>,
        decoder: &mut Decoder,
        shared: &mut PassState,
    ) {
        let EventId::Manifest { guid, id } = event.id else { return };
        let may_be = match self.rules.of_family(guid, id) {
            OfFamily::Nothing => false,
            OfFamily::Described => decoder.schema_of(event).is_some(),
            OfFamily::Anything => true,
        };
        if may_be {
            self.consider(event, decoder, shared);
        }
    }

    /// Handles a manifest event if its description gives it a meaning.
    pub fn consider(&mut self, event: &Event<'_>, decoder: &mut Decoder, shared: &mut PassState) {
        if !matches!(event.id, EventId::Manifest { .. }) || Decoder::is_metadata(event.id) {
            return;
        }
        let outcome = match (decoder.schema_of(event), gui::by_id(event.id)) {
            (Some(schema), _) => self.described(schema, event, decoder),
            (None, Some((change, class))) => {
                let row = GuiRow::by_layout(change, class, Payload::from_event(event));
                row.map_or(DecodeOutcome::Short, |row| self.gui(change, row))
            }
            // A description carried by the event is final.
            (None, None) if schema_item(event.extended).is_some() => return,
            (None, None) => {
                let row = shared.timeline.len();
                if self.undecided.keep(event, row) {
                    shared.timeline.push(RowKind::Undescribed, 0, event);
                }
                return;
            }
        };
        match outcome {
            DecodeOutcome::Nothing => {}
            DecodeOutcome::Row(kind, row) => shared.timeline.push(kind, row, event),
            DecodeOutcome::Short => {
                shared.diagnostics.count(WarningKind::ShortPayload, Some(event.offset));
            }
        }
    }

    /// Handles the events with a description that came after them.
    pub fn decide(&mut self, decoder: &mut Decoder, shared: &mut PassState) {
        let undecided = std::mem::take(&mut self.undecided);
        for (timeline_row, event) in undecided.events() {
            let Some(schema) = decoder.schema_of(&event) else { continue };
            match self.described(schema, &event, decoder) {
                DecodeOutcome::Nothing => {}
                DecodeOutcome::Row(kind, row) => shared.timeline.set(timeline_row, kind, row),
                DecodeOutcome::Short => shared.diagnostics.count(WarningKind::ShortPayload, None),
            }
        }
        let forgotten = std::mem::take(&mut self.forgotten);
        self.warn(WarningKind::TooManyUndescribed, undecided.left_out(), decoder, shared);
        self.warn(WarningKind::ForgottenUndescribed, &forgotten, decoder, shared);
        shared.diagnostics.add(WarningKind::TooManyAllocators, self.allocators.left_out(), None);
    }

    /// Warns about events that were not kept, if a description came that gives them a meaning.
    fn warn(
        &self,
        kind: WarningKind,
        missing: &UndescribedKinds,
        decoder: &mut Decoder,
        shared: &mut PassState,
    ) {
        for (event, count) in missing.events() {
            let Some(id) = decoder.schema_of(&event) else { continue };
            let Some(schema) = decoder.schemas().get(id.row()) else { continue };
            if self.rules.meaning(schema) != Meaning::Ignored {
                let provider = match &*schema.provider {
                    "" => schema.guid.to_string(),
                    name => name.to_owned(),
                };
                shared.diagnostics.add_of(kind, &provider, count);
            }
        }
    }

    /// Whether an event has no description yet, so it may still get a meaning.
    pub fn awaits_description(event: &Event<'_>, decoder: &mut Decoder) -> bool {
        matches!(event.id, EventId::Manifest { .. })
            && !Decoder::is_metadata(event.id)
            && schema_item(event.extended).is_none()
            && gui::by_id(event.id).is_none()
            && decoder.schema_of(event).is_none()
    }

    fn described(
        &mut self,
        id: SchemaId,
        event: &Event<'_>,
        decoder: &mut Decoder,
    ) -> DecodeOutcome {
        match self.meaning(id, decoder) {
            Meaning::Ignored => DecodeOutcome::Nothing,
            Meaning::Gui(change, class) => {
                let decoded = decoder.decode_as(id, event.payload, event.pointer_size);
                let row = decoded.and_then(|decoded| GuiRow::described(change, class, &decoded));
                row.map_or(DecodeOutcome::Short, |row| self.gui(change, row))
            }
            Meaning::Resource(action, fields) => {
                match decoder.decode_as(id, event.payload, event.pointer_size) {
                    Some(decoded) => self.resource(action, fields, &decoded),
                    None => DecodeOutcome::Short,
                }
            }
        }
    }

    /// Returns the meaning of a schema's events. Each schema is examined once.
    fn meaning(&mut self, id: SchemaId, decoder: &Decoder) -> Meaning {
        if let Some(known) = self.meanings.get(id.row()).copied().flatten() {
            return known;
        }
        let Some(schema) = decoder.schemas().get(id.row()) else { return Meaning::Ignored };
        let meaning = self.rules.meaning(schema);
        if self.meanings.len() <= id.row() {
            self.meanings.resize(id.row() + 1, None);
        }
        self.meanings[id.row()] = Some(meaning);
        meaning
    }

    fn gui(&mut self, change: GuiChange, row: GuiRow) -> DecodeOutcome {
        let kind = match change {
            GuiChange::Create => RowKind::GuiCreate,
            GuiChange::Destroy => RowKind::GuiDestroy,
            GuiChange::Owner => RowKind::GuiOwner,
            GuiChange::Transform => RowKind::GuiTransform,
        };
        self.handles.push(row);
        DecodeOutcome::Row(kind, self.handles.len() - 1)
    }

    fn resource(
        &mut self,
        action: ResourceAction,
        fields: usize,
        decoded: &DecodedEvent<'_>,
    ) -> DecodeOutcome {
        let fields = self.rules.fields(fields);
        let handle = decoded.value(&fields.handle).and_then(Value::bits);
        let size = decoded.value(&fields.size).and_then(Value::signed).unwrap_or_default();
        // An event without handle gets no allocator, even if it has that field.
        let allocator = handle.and_then(|_| decoded.value(&fields.allocator));
        let allocator = self.allocators.number(allocator);
        let provider = self.provider(decoded.schema);
        let kind = match (handle, action) {
            (None, _) => RowKind::ResourceIgnored,
            (_, ResourceAction::Acquire) => RowKind::Acquire,
            (_, ResourceAction::Release) => RowKind::Release,
        };
        let handle = handle.unwrap_or_default();
        self.resources.push(ResourceRow { handle, size, allocator, provider });
        DecodeOutcome::Row(kind, self.resources.len() - 1)
    }

    /// Returns the number of a schema's provider.
    fn provider(&mut self, schema: &Schema) -> u32 {
        let Self { providers, numbers, .. } = self;
        let number = *numbers.entry(schema.guid).or_insert_with(|| {
            providers.push(DescribedProvider { guid: schema.guid, name: String::new() });
            providers.len() as u32 - 1
        });
        if let Some(provider) = providers.get_mut(number as usize)
            && provider.name.is_empty()
        {
            provider.name.push_str(&schema.provider);
        }
        number
    }
}

impl DescribedProvider {
    /// Returns the name, or else the GUID.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.guid.to_string() } else { self.name.clone() }
    }
}

/// Maximum bytes of waiting events, including their rows.
const MAX_BYTES: usize = 64 << 20;

/// Memory per event besides its bytes: its timeline row and its entry here.
const EVENT_COST: usize = 96;

/// Maximum number of event kinds counted separately if there are too many events.
const MAX_KINDS: usize = 1 << 12;

/// Event without its payload.
#[derive(Debug, Clone, Copy)]
struct WaitingEvent {
    id: EventId,
    version: u8,
    pointer_size: u8,
    pid: Option<u32>,
    /// Row of the timeline.
    row: u32,
    /// End of its payload, which begins where the previous event's ends.
    end: u32,
}

/// Events that wait for their description, with their payloads.
#[derive(Default)]
pub struct WaitingEvents {
    events: Vec<WaitingEvent>,
    payloads: Vec<u8>,
    used: usize,
    left_out: UndescribedKinds,
}

/// Number of events without description, by kind.
#[derive(Debug, Clone, Default)]
pub struct UndescribedKinds(FxHashMap<(EventId, u8), u64>);

impl UndescribedKinds {
    /// Counts an event, unless there are too many kinds.
    pub fn count(&mut self, event: &Event<'_>) {
        let key = (event.id, event.version);
        if self.0.len() < MAX_KINDS || self.0.contains_key(&key) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    /// Returns an event of each kind, with the fields needed to find a description, and the number of such events.
    pub fn events(&self) -> impl Iterator<Item = (Event<'_>, u64)> {
        let kinds = self.0.iter();
        kinds.map(|(&(id, version), count)| (Event { id, version, ..Event::default() }, *count))
    }
}

impl WaitingEvents {
    /// Keeps an event that will get this timeline row. Returns whether there is room; if not, the event is counted.
    pub fn keep(&mut self, event: &Event<'_>, row: usize) -> bool {
        let cost = EVENT_COST + event.payload.len() + event.extended.len();
        if self.used + cost > MAX_BYTES {
            self.left_out.count(event);
            return false;
        }
        self.used += cost;
        self.payloads.extend_from_slice(event.payload);
        self.events.push(WaitingEvent {
            id: event.id,
            version: event.version,
            pointer_size: event.pointer_size as u8,
            pid: event.pid,
            row: row as u32,
            end: self.payloads.len() as u32,
        });
        true
    }

    /// Returns the events, with the fields needed to find a description, and their timeline rows.
    pub fn events(&self) -> impl Iterator<Item = (usize, Event<'_>)> {
        let mut start = 0;
        self.events.iter().map(move |waiting| {
            let end = waiting.end as usize;
            let payload = self.payloads.get(start..end).unwrap_or_default();
            start = end;
            let WaitingEvent { id, version, pointer_size, pid, .. } = *waiting;
            let pointer_size = pointer_size.into();
            (
                waiting.row as usize,
                Event { id, version, pid, pointer_size, payload, ..Event::default() },
            )
        })
    }

    /// Returns the kinds of events there was no room for.
    pub fn left_out(&self) -> &UndescribedKinds {
        &self.left_out
    }
}

/// Maximum number of names, and of their bytes; hostile traces invent them without end.
const MAX_NAMES: u32 = 1 << 16;
const MAX_NAME_BYTES: usize = 64 << 20;

/// Allocator that counts events beyond the limit.
const FURTHER_ALLOCATORS: &str = "(other allocators)";

/// Numbers the allocator names in events.
#[derive(Default)]
pub struct AllocatorNames {
    /// Names as in the events, each after a byte for its encoding, so that a known name is not converted again.
    raw: ByteInterner,
    /// For each raw name, its number among the texts.
    numbers: Vec<u32>,
    texts: ByteInterner,
    bytes: usize,
    left_out: u64,
    scratch: Vec<u8>,
    written: String,
}

impl AllocatorNames {
    /// Returns the number of a name, or that of [`FURTHER_ALLOCATORS`] if there are too many. A value that is not text
    /// is named by its printed form.
    pub fn number(&mut self, value: Option<Value<'_>>) -> u32 {
        let (kind, bytes) = match value {
            None => (0, &[][..]),
            Some(Value::Utf16(bytes)) => (1, bytes),
            Some(Value::Ansi(bytes)) => (2, bytes),
            Some(value) => {
                self.written.clear();
                let _ = write!(self.written, "{value}");
                (0, self.written.as_bytes())
            }
        };
        self.scratch.clear();
        self.scratch.push(kind);
        self.scratch.extend_from_slice(bytes);
        if let Some(known) = self.raw.find(&self.scratch) {
            return self.numbers.get(known as usize).copied().unwrap_or_default();
        }
        if self.raw.count() >= MAX_NAMES || self.bytes + bytes.len() > MAX_NAME_BYTES {
            self.left_out += 1;
            return self.texts.intern(FURTHER_ALLOCATORS.as_bytes());
        }
        self.bytes += bytes.len();
        self.raw.intern(&self.scratch);
        let text = match value.and_then(Value::text) {
            Some(text) => self.texts.intern(text.as_bytes()),
            None => self.texts.intern(self.scratch.get(1..).unwrap_or_default()),
        };
        self.numbers.push(text);
        text
    }

    /// Returns the number of events with unnamed allocators because there were too many names.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn text(&self, number: u32) -> String {
        self.texts.text(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_room_are_counted_by_kind() {
        let mut undecided = WaitingEvents::default();
        let payload = vec![7; 1 << 16];
        let id = EventId::Manifest { guid: Guid([2; 16]), id: 3 };
        let event = Event { id, payload: &payload, ..Event::default() };
        let kept = (0..2000).filter(|row| undecided.keep(&event, *row)).count();
        assert_eq!(kept, MAX_BYTES / (payload.len() + EVENT_COST));
        let (row, last) = undecided.events().last().unwrap();
        assert_eq!((row, last.payload), (kept - 1, payload.as_slice()));
        let left: Vec<u64> = undecided.left_out().events().map(|(_, count)| count).collect();
        assert_eq!(left, [2000 - kept as u64]);
    }

    #[test]
    fn equal_texts_in_two_encodings_share_a_number() {
        let mut names = AllocatorNames::default();
        let wide = names.number(Some(Value::Utf16(b"P\0o\0o\0l\0")));
        assert_eq!(names.number(Some(Value::Ansi(b"Pool"))), wide);
        assert_eq!(names.number(Some(Value::Ansi(b"Pool"))), wide);
        let number = names.number(Some(Value::Hex(0x10)));
        let none = names.number(None);
        assert_eq!(names.number(Some(Value::Utf16(b""))), none);
        assert_eq!([wide, number, none].map(|id| names.text(id)), ["Pool", "0x10", ""]);
    }

    #[test]
    fn names_beyond_the_limit_share_a_number() {
        let mut names = AllocatorNames::default();
        for number in 0..u64::from(MAX_NAMES) {
            names.number(Some(Value::Unsigned(number)));
        }
        assert_eq!(names.left_out(), 0);
        let further = names.number(Some(Value::Unsigned(1 << 20)));
        assert_eq!(names.number(Some(Value::Unsigned(1 << 21))), further);
        assert_eq!(names.number(Some(Value::Unsigned(7))), 7);
        assert_eq!((names.left_out(), names.text(further).as_str()), (2, FURTHER_ALLOCATORS));
        let mut large = AllocatorNames::default();
        let further = large.number(Some(Value::Ansi(&vec![b'a'; MAX_NAME_BYTES + 1])));
        assert_eq!(large.text(further), FURTHER_ALLOCATORS);
    }
}
