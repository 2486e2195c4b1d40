//! The event family and its columns.

use handlescope_model::Table;
use rustc_hash::FxHashMap;

use super::allocators::AllocatorNames;
use super::gui::{self, GuiChange, GuiRow};
use super::rules::{Meaning, OfFamily, Rules};
use super::undecided::{Undecided, UndescribedKinds};
use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::mapping::{ResourceAction, ResourceMapping};
use crate::metadata::{Decoded, Decoder, Schema, SchemaId, Value, schema_item};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

/// What described events say.
#[derive(Default)]
pub struct Described {
    pub resources: Vec<ResourceRow>,
    pub handles: Vec<GuiRow>,
    pub providers: Vec<DescribedProvider>,
    pub allocators: AllocatorNames,
    numbers: FxHashMap<Guid, u32>,
    rules: Rules,
    /// What each schema says of its events, as far as they came.
    meanings: Vec<Option<Meaning>>,
    undecided: Undecided,
    /// Events that a window forgot before anything described them.
    pub(crate) forgotten: UndescribedKinds,
}

/// An event that acquires or releases a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceRow {
    /// The handle; 0 where the event has none.
    pub handle: u64,
    /// Bytes, with the sign that the event gives.
    pub size: i64,
    /// Number among the names of allocators.
    pub allocator: u32,
    /// Row of the providers.
    pub provider: u32,
}

/// A provider of such events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedProvider {
    pub guid: Guid,
    /// Empty where no description names it.
    pub name: String,
}

/// What became of an event.
enum Found {
    Nothing,
    /// It is in this row of its columns.
    Row(RowKind, usize),
    /// It lacks a field.
    Short,
}

impl EventFamily for Described {
    /// Those that are known without a description; others are known by `Described::consider`.
    const EVENTS: &'static [(EventId, &'static str)] = &gui::EVENTS;
    const TABLES: &'static [Table] = &[Table::Allocators, Table::Resources, Table::ResourceMisses];

    /// What described events hold is only known with their descriptions, which go.
    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    /// `Described::consider` has taken it, with its description if there is one.
    fn take(&mut self, _: &Event<'_>, _: &mut Shared) -> Option<()> {
        Some(())
    }
}

impl Described {
    /// No events yet; these mappings go before what is usual.
    pub fn new(mappings: Vec<ResourceMapping>) -> Self {
        Self { rules: Rules::new(mappings), ..Self::default() }
    }

    /// Takes an event that another family takes, too, if a mapping is for it.
    pub(crate) fn consider_of_family(
        &mut self,
        event: &Event<'_>,
        decoder: &mut Decoder,
        shared: &mut Shared,
    ) {
        let EventId::Manifest { guid, id } = event.id else { return };
        let may_be = match self.rules.of_family(guid, id) {
            OfFamily::Nothing => false,
            OfFamily::WhatIsDescribed => decoder.schema_of(event).is_some(),
            OfFamily::Anything => true,
        };
        if may_be {
            self.consider(event, decoder, shared);
        }
    }

    /// Takes an event of a manifest if its description says that it is one of these.
    pub(crate) fn consider(
        &mut self,
        event: &Event<'_>,
        decoder: &mut Decoder,
        shared: &mut Shared,
    ) {
        if !matches!(event.id, EventId::Manifest { .. }) || Decoder::is_metadata(event.id) {
            return;
        }
        let found = match (decoder.schema_of(event), gui::by_id(event.id)) {
            (Some(schema), _) => self.described(schema, event, decoder),
            (None, Some((change, class))) => {
                let row = GuiRow::by_layout(change, class, Payload::of(event));
                row.map_or(Found::Short, |row| self.gui(change, row))
            }
            // One that carries its description gets no other one.
            (None, None) if schema_item(event.extended).is_some() => return,
            (None, None) => {
                let row = shared.timeline.len();
                if self.undecided.keep(event, row) {
                    shared.timeline.push(RowKind::Undescribed, 0, event);
                }
                return;
            }
        };
        match found {
            Found::Nothing => {}
            Found::Row(kind, row) => shared.timeline.push(kind, row, event),
            Found::Short => {
                shared.diagnostics.count(WarningKind::ShortPayload, Some(event.offset));
            }
        }
    }

    /// Takes the events whose description came after them.
    pub(crate) fn decide(&mut self, decoder: &mut Decoder, shared: &mut Shared) {
        let undecided = std::mem::take(&mut self.undecided);
        for (timeline_row, event) in undecided.events() {
            let Some(schema) = decoder.schema_of(&event) else { continue };
            match self.described(schema, &event, decoder) {
                Found::Nothing => {}
                Found::Row(kind, row) => shared.timeline.set(timeline_row, kind, row),
                Found::Short => shared.diagnostics.count(WarningKind::ShortPayload, None),
            }
        }
        let forgotten = std::mem::take(&mut self.forgotten);
        self.warn(WarningKind::TooManyUndescribed, undecided.left_out(), decoder, shared);
        self.warn(WarningKind::ForgottenUndescribed, &forgotten, decoder, shared);
        shared.diagnostics.add(WarningKind::TooManyAllocators, self.allocators.left_out(), None);
    }

    /// Warns of events that are not there any more, if a description says by now that they are some of these.
    fn warn(
        &self,
        kind: WarningKind,
        missing: &UndescribedKinds,
        decoder: &mut Decoder,
        shared: &mut Shared,
    ) {
        for (event, count) in missing.events() {
            let Some(id) = decoder.schema_of(&event) else { continue };
            let Some(schema) = decoder.schemas().get(id.row()) else { continue };
            if self.rules.meaning(schema) != Meaning::Other {
                let provider = match &*schema.provider {
                    "" => schema.guid.to_string(),
                    name => name.to_owned(),
                };
                shared.diagnostics.add_of(kind, &provider, count);
            }
        }
    }

    /// Whether nothing describes an event, so that it may be one of these all the same.
    pub(crate) fn awaits_description(event: &Event<'_>, decoder: &mut Decoder) -> bool {
        matches!(event.id, EventId::Manifest { .. })
            && !Decoder::is_metadata(event.id)
            && schema_item(event.extended).is_none()
            && gui::by_id(event.id).is_none()
            && decoder.schema_of(event).is_none()
    }

    fn described(&mut self, id: SchemaId, event: &Event<'_>, decoder: &mut Decoder) -> Found {
        match self.meaning(id, decoder) {
            Meaning::Other => Found::Nothing,
            Meaning::Gui(change, class) => {
                let decoded = decoder.decode_as(id, event.payload, event.pointer_size);
                let row = decoded.and_then(|decoded| GuiRow::described(change, class, &decoded));
                row.map_or(Found::Short, |row| self.gui(change, row))
            }
            Meaning::Resource(action, fields) => {
                match decoder.decode_as(id, event.payload, event.pointer_size) {
                    Some(decoded) => self.resource(action, fields, &decoded),
                    None => Found::Short,
                }
            }
        }
    }

    /// What events of a schema are; each schema is looked at once.
    fn meaning(&mut self, id: SchemaId, decoder: &Decoder) -> Meaning {
        if let Some(known) = self.meanings.get(id.row()).copied().flatten() {
            return known;
        }
        let Some(schema) = decoder.schemas().get(id.row()) else { return Meaning::Other };
        let meaning = self.rules.meaning(schema);
        if self.meanings.len() <= id.row() {
            self.meanings.resize(id.row() + 1, None);
        }
        self.meanings[id.row()] = Some(meaning);
        meaning
    }

    fn gui(&mut self, change: GuiChange, row: GuiRow) -> Found {
        let kind = match change {
            GuiChange::Create => RowKind::GuiCreate,
            GuiChange::Destroy => RowKind::GuiDestroy,
            GuiChange::Owner => RowKind::GuiOwner,
            GuiChange::Transform => RowKind::GuiTransform,
        };
        self.handles.push(row);
        Found::Row(kind, self.handles.len() - 1)
    }

    fn resource(&mut self, action: ResourceAction, fields: usize, decoded: &Decoded<'_>) -> Found {
        let fields = self.rules.fields(fields);
        let handle = decoded.value(&fields.handle).and_then(Value::bits);
        let size = decoded.value(&fields.size).and_then(Value::signed).unwrap_or_default();
        // What has no handle is of no allocator either, whatever it says.
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
        Found::Row(kind, self.resources.len() - 1)
    }

    /// The number of the provider of a schema.
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
    /// The name, or else the GUID.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.guid.to_string() } else { self.name.clone() }
    }
}
