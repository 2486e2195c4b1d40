//! Reads manifests that an EventSource writes into the trace, in chunks (event 65534, ManifestEnvelope of
//! dotnet/runtime). Only XML's own five entities are expanded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event as XmlEvent};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::fields::{
    Count, FieldKind, FieldPlan, Fields, Length, Schema, SchemaId, SchemaSource, in_type_of_name,
    reading,
};
use crate::etl::{Event, EventId, Guid};
use crate::payload::Payload;

/// Id of an event with a chunk.
pub const CHUNK: u16 = 65534;

/// ManifestEnvelope.ManifestFormats.SimpleXmlFormat, and its magic number.
const XML: u8 = 1;
const MAGIC: u8 = 0x5B;

/// Largest manifest, and maximum bytes of incomplete manifests. .NET sends 100 KiB.
const MAX_MANIFEST: usize = 16 << 20;
const MAX_PENDING: usize = 2 * MAX_MANIFEST;

/// Memory per chunk besides its bytes.
const CHUNK_COST: usize = 128;

/// Maximum number of processes told apart.
const MAX_PROCESSES: usize = 1 << 16;

/// Chunks of a manifest that is still incomplete.
#[derive(Default)]
struct PendingManifest {
    total: u16,
    chunks: BTreeMap<u16, Vec<u8>>,
    cost: usize,
}

/// Events of one manifest.
type ManifestEvents = FxHashMap<(u16, u8), SchemaId>;

/// Outcome of adding a chunk.
pub enum Chunk {
    /// Unknown format, or no content.
    Unusable,
    /// More chunks are missing.
    Kept,
    /// The chunk cannot be read, or there are too many.
    Refused,
    /// The last chunk: the complete manifest and its hash.
    Complete(Vec<u8>, [u8; 32]),
}

/// Manifests by provider and process.
#[derive(Default)]
pub struct Manifests {
    pending: FxHashMap<(Guid, Option<u32>), PendingManifest>,
    pending_cost: usize,
    manifests: Vec<ManifestEvents>,
    by_content: FxHashMap<(Guid, [u8; 32]), u32>,
    by_process: FxHashMap<(Guid, Option<u32>), u32>,
    /// Manifest of any process, for processes that sent none.
    by_provider: FxHashMap<Guid, u32>,
}

impl Manifests {
    /// Handles a [`CHUNK`] event.
    pub fn chunk(&mut self, event: &Event<'_>) -> Chunk {
        let EventId::Manifest { guid, .. } = event.id else { return Chunk::Unusable };
        let mut p = Payload::from_event(event);
        let head = (p.u8(), p.u8(), p.u8(), p.u8());
        if !matches!(head, (Some(XML), Some(_), Some(_), Some(MAGIC))) {
            return Chunk::Unusable;
        }
        let (Some(total), Some(number)) = (p.u16(), p.u16()) else { return Chunk::Refused };
        if number >= total {
            return Chunk::Refused;
        }
        let key = (guid, event.pid);
        let pending = self.pending.entry(key).or_default();
        if pending.total != total || pending.chunks.contains_key(&number) {
            // The manifest is being sent again from the beginning.
            self.pending_cost -= pending.cost;
            *pending = PendingManifest { total, ..PendingManifest::default() };
        }
        let cost = p.rest().len() + CHUNK_COST;
        if pending.cost + cost > MAX_MANIFEST || self.pending_cost + cost > MAX_PENDING {
            self.pending_cost -= pending.cost;
            self.pending.remove(&key);
            return Chunk::Refused;
        }
        pending.cost += cost;
        self.pending_cost += cost;
        pending.chunks.insert(number, p.rest().to_vec());
        if pending.chunks.len() < usize::from(total) {
            return Chunk::Kept;
        }
        self.pending_cost -= pending.cost;
        let chunks = self.pending.remove(&key).map(|pending| pending.chunks).unwrap_or_default();
        let text: Vec<u8> = chunks.into_values().flatten().collect();
        let hash = Sha256::digest(&text).into();
        Chunk::Complete(text, hash)
    }

    /// Gives a process a manifest that is already known; returns whether it is.
    pub fn is_known(&mut self, guid: Guid, pid: Option<u32>, hash: [u8; 32]) -> bool {
        let Some(manifest) = self.by_content.get(&(guid, hash)).copied() else { return false };
        self.give(guid, pid, manifest);
        true
    }

    /// Adds a manifest; `events` has the numbers of its schemas.
    pub fn add(&mut self, guid: Guid, pid: Option<u32>, hash: [u8; 32], events: ManifestEvents) {
        let manifest = self.manifests.len() as u32;
        self.manifests.push(events);
        self.by_content.insert((guid, hash), manifest);
        self.give(guid, pid, manifest);
    }

    fn give(&mut self, guid: Guid, pid: Option<u32>, manifest: u32) {
        if self.by_process.len() < MAX_PROCESSES || self.by_process.contains_key(&(guid, pid)) {
            self.by_process.insert((guid, pid), manifest);
        }
        self.by_provider.insert(guid, manifest);
    }

    /// Returns the schema of a process's event.
    pub fn find(&self, guid: Guid, pid: Option<u32>, id: u16, version: u8) -> Option<SchemaId> {
        let of_process = self.by_process.get(&(guid, pid));
        let manifest = of_process.or_else(|| self.by_provider.get(&guid))?;
        self.manifests.get(*manifest as usize)?.get(&(id, version)).copied()
    }
}

/// Returns the schemas of a manifest; `None` if its XML makes no sense.
pub fn schemas(guid: Guid, text: &[u8]) -> Option<Vec<Schema>> {
    parse(text).map(|manifest| manifest.schemas(guid))
}

/// Maximum nesting depth of elements; manifests have nine levels.
const MAX_DEPTH: usize = 32;

/// Maximum number of events and templates read.
const MAX_EVENTS: usize = 1 << 16;

/// Maximum number of fields in a template.
const MAX_FIELDS: usize = 4096;

/// Events described by a manifest.
#[derive(Default)]
pub struct EventManifest {
    provider: Option<String>,
    events: Vec<ManifestEvent>,
    templates: HashMap<String, Template>,
    /// Template being read, and whether the next fields are members of its last structure.
    open: Option<(String, Template)>,
    is_in_structure: bool,
}

struct ManifestEvent {
    id: u16,
    version: u8,
    task: String,
    opcode: String,
    template: Option<String>,
}

#[derive(Default)]
struct Template {
    fields: Vec<Data>,
    /// Number of fields and members so far.
    size: usize,
}

/// A `data` or `struct` element.
struct Data {
    name: String,
    in_type: String,
    length: Option<String>,
    count: Option<String>,
    map: Option<String>,
    /// Members of a structure.
    members: Option<Vec<Self>>,
}

/// Reads a manifest; `None` if it is not well-formed, names no provider, or nests too deeply.
pub fn parse(text: &[u8]) -> Option<EventManifest> {
    let mut reader = Reader::from_reader(text);
    let mut manifest = EventManifest::default();
    let mut depth = 0;
    loop {
        match reader.read_event().ok()? {
            XmlEvent::Start(element) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return None;
                }
                manifest.start(&element)?;
            }
            XmlEvent::Empty(element) => {
                manifest.start(&element)?;
                manifest.end(element.local_name().as_ref());
            }
            XmlEvent::End(element) => {
                depth -= 1;
                manifest.end(element.local_name().as_ref());
            }
            XmlEvent::Eof => break,
            _ => {}
        }
    }
    manifest.provider.is_some().then_some(manifest)
}

/// Returns the value of an attribute.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    // Checking for repeated attributes takes quadratic time.
    let mut attributes = element.attributes();
    let attribute = attributes
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name.as_bytes())?;
    let text = String::from_utf8_lossy(&attribute.value).into_owned();
    // Entities declared by the manifest are left as they are.
    Some(unescape(&text).map_or(text.clone(), |text| text.into_owned()))
}

impl EventManifest {
    fn start(&mut self, element: &BytesStart<'_>) -> Option<()> {
        match element.local_name().as_ref() {
            b"provider" if self.provider.is_none() => {
                self.provider = Some(attribute(element, "name")?);
            }
            b"event" if self.events.len() < MAX_EVENTS => self.events.extend(event(element)),
            b"template" if self.templates.len() < MAX_EVENTS => {
                let tid = attribute(element, "tid");
                self.open = tid.map(|tid| (tid, Template::default()));
            }
            b"struct" => {
                self.is_in_structure = true;
                self.field(Data { members: Some(Vec::new()), ..data(element) })?;
            }
            b"data" => self.field(data(element))?,
            _ => {}
        }
        Some(())
    }

    fn field(&mut self, data: Data) -> Option<()> {
        let Some((_, template)) = &mut self.open else { return Some(()) };
        template.size += 1;
        if template.size > MAX_FIELDS {
            return None;
        }
        let is_member = self.is_in_structure && data.members.is_none();
        let members = template.fields.last_mut().and_then(|last| last.members.as_mut());
        match members.filter(|_| is_member) {
            Some(members) => members.push(data),
            None => template.fields.push(data),
        }
        Some(())
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"struct" => self.is_in_structure = false,
            b"template" => self.templates.extend(self.open.take()),
            _ => {}
        }
    }

    /// Returns the schemas of the events. An event with fields that are not understood has none.
    pub fn schemas(self, guid: Guid) -> Vec<Schema> {
        let provider: Arc<str> = self.provider.unwrap_or_default().into();
        let fields: HashMap<&str, Option<Arc<Fields>>> = self
            .templates
            .iter()
            .map(|(tid, template)| (tid.as_str(), template.compiled().map(Arc::new)))
            .collect();
        let without = Arc::new(Fields::default());
        self.events
            .iter()
            .filter_map(|event| {
                Some(Schema {
                    source: SchemaSource::Manifest,
                    provider: Arc::clone(&provider),
                    guid,
                    id: event.id,
                    version: event.version,
                    task: event.task.as_str().into(),
                    opcode: event.opcode.as_str().into(),
                    fields: match &event.template {
                        None => Arc::clone(&without),
                        Some(tid) => fields.get(tid.as_str())?.clone()?,
                    },
                })
            })
            .collect()
    }
}

fn event(element: &BytesStart<'_>) -> Option<ManifestEvent> {
    let text = |name| attribute(element, name);
    Some(ManifestEvent {
        id: text("value")?.parse().ok()?,
        version: text("version").map_or(Some(0), |version| version.parse().ok())?,
        task: text("task").unwrap_or_default(),
        opcode: text("opcode").unwrap_or_default(),
        template: text("template"),
    })
}

fn data(element: &BytesStart<'_>) -> Data {
    let text = |name| attribute(element, name);
    Data {
        name: text("name").unwrap_or_default(),
        in_type: text("inType").unwrap_or_default(),
        length: text("length"),
        count: text("count"),
        map: text("map"),
        members: None,
    }
}

/// A length or count: a number, or the field that has it.
enum FieldAmount {
    Number(u16),
    Field(u16),
}

impl Template {
    fn compiled(&self) -> Option<Fields> {
        let top_level = self.fields.len();
        let names = |fields: &[Data], first: usize| -> HashMap<String, u16> {
            fields
                .iter()
                .enumerate()
                .map(|(at, data)| (data.name.clone(), (first + at) as u16))
                .collect()
        };
        let outer = names(&self.fields, 0);
        let mut plans = Vec::new();
        let mut next = top_level;
        for data in &self.fields {
            let members = data.members.as_ref().map(|members| (next, members.len()));
            next += members.map_or(0, |(_, members)| members);
            plans.push(plan(data, members, &outer, &outer)?);
        }
        for data in &self.fields {
            let Some(members) = &data.members else { continue };
            let member_names = names(members, plans.len());
            let compiled: Option<Vec<_>> =
                members.iter().map(|member| plan(member, None, &member_names, &outer)).collect();
            plans.extend(compiled?);
        }
        Fields::new(plans, top_level)
    }
}

/// Creates a field. Names of other fields are looked up beside it first, then on the top level.
fn plan(
    data: &Data,
    members: Option<(usize, usize)>,
    beside: &HashMap<String, u16>,
    outer: &HashMap<String, u16>,
) -> Option<FieldPlan> {
    let amount = |text: &String| {
        let number = text.parse().map(FieldAmount::Number).ok();
        number.or_else(|| {
            beside.get(text).or_else(|| outer.get(text)).copied().map(FieldAmount::Field)
        })
    };
    let length = match data.length.as_ref().map(amount) {
        None => Length::OfType,
        Some(length) => match length? {
            FieldAmount::Number(length) => Length::Fixed(length),
            FieldAmount::Field(field) => Length::Field(field),
        },
    };
    let kind = match members {
        Some((first, members)) => {
            FieldKind::Structure { first: first as u16, members: members as u16 }
        }
        None => {
            let (form, extent) = reading(in_type_of_name(&data.in_type)?, 0, length)?;
            FieldKind::Value(form, extent)
        }
    };
    let count = match data.count.as_ref().map(amount) {
        None => Count::Single,
        Some(count) => match count? {
            FieldAmount::Number(count) => Count::Fixed(count),
            FieldAmount::Field(field) => Count::Field(field),
        },
    };
    let map = data.map.as_deref().map(Into::into);
    Some(FieldPlan { name: data.name.as_str().into(), kind, count, map })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::fields::{Extent, ValueForm};

    const GUID: Guid = Guid([4; 16]);

    fn send(manifests: &mut Manifests, pid: u32, total: u16, number: u16, text: &[u8]) -> Chunk {
        let mut payload = vec![XML, 1, 0, MAGIC];
        payload.extend(total.to_le_bytes());
        payload.extend(number.to_le_bytes());
        payload.extend(text);
        let id = EventId::Manifest { guid: GUID, id: CHUNK };
        manifests.chunk(&Event { id, pid: Some(pid), payload: &payload, ..Event::default() })
    }

    fn complete(chunk: Chunk) -> Option<Vec<u8>> {
        match chunk {
            Chunk::Complete(text, _) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn chunks_of_processes_are_joined_apart() {
        let mut manifests = Manifests::default();
        assert!(complete(send(&mut manifests, 1, 2, 0, b"ab")).is_none());
        assert!(complete(send(&mut manifests, 2, 2, 0, b"xy")).is_none());
        assert_eq!(complete(send(&mut manifests, 1, 2, 1, b"c")), Some(b"abc".to_vec()));
        assert_eq!(complete(send(&mut manifests, 2, 2, 1, b"z")), Some(b"xyz".to_vec()));
        assert_eq!(manifests.pending_cost, 0);
    }

    #[test]
    fn a_manifest_that_begins_again_forgets_its_first_chunks() {
        let mut manifests = Manifests::default();
        send(&mut manifests, 1, 3, 0, b"old");
        assert!(complete(send(&mut manifests, 1, 2, 0, b"a")).is_none());
        assert_eq!(complete(send(&mut manifests, 1, 2, 1, b"b")), Some(b"ab".to_vec()));
    }

    #[test]
    fn false_numbers_are_refused_and_unknown_formats_are_no_manifests() {
        let mut manifests = Manifests::default();
        assert!(matches!(send(&mut manifests, 1, 2, 2, b"a"), Chunk::Refused));
        assert!(matches!(send(&mut manifests, 1, 0, 0, b"a"), Chunk::Refused));
        let id = EventId::Manifest { guid: GUID, id: CHUNK };
        for payload in [&[0; 32][..], b"", &[XML, 1, 0]] {
            let event = Event { id, payload, ..Event::default() };
            assert!(matches!(manifests.chunk(&event), Chunk::Unusable));
        }
    }

    #[test]
    fn chunks_that_never_end_take_bounded_memory() {
        let mut manifests = Manifests::default();
        let chunk = vec![b' '; 60_000];
        let mut refused = 0;
        for pid in 0..40 {
            for number in 0..60 {
                let outcome = send(&mut manifests, pid, u16::MAX, number, &chunk);
                refused += u32::from(matches!(outcome, Chunk::Refused));
                assert!(manifests.pending_cost <= MAX_PENDING);
            }
        }
        assert!(refused > 0);
    }

    fn manifest(events: &str, templates: &str) -> String {
        format!(
            r#"<instrumentationManifest><instrumentation><events>
            <provider name="My-Source" guid="{{x}}"><events>{events}</events>
            <templates>{templates}</templates></provider></events></instrumentation>
            </instrumentationManifest>"#
        )
    }

    fn schemas(events: &str, templates: &str) -> Option<Vec<Schema>> {
        parse(manifest(events, templates).as_bytes())
            .map(|manifest| manifest.schemas(Guid([1; 16])))
    }

    #[test]
    fn events_have_the_fields_of_their_template_which_comes_later() {
        let schemas = schemas(
            r#"<event value="7" version="2" task="Go" opcode="win:Start" template="T"/>
               <event value="8" task="Stop &amp; go"/>"#,
            r#"<template tid="T"><data name="Size" inType="win:UInt32"/>
               <data name="Bytes" inType="win:Binary" length="Size"/></template>"#,
        )
        .unwrap();
        let names: Vec<String> = schemas.iter().map(Schema::name).collect();
        assert_eq!(names, ["Go/win:Start", "Stop & go"]);
        assert_eq!((schemas[0].id, schemas[0].version, &*schemas[0].provider), (7, 2, "My-Source"));
        let kinds: Vec<FieldKind> =
            schemas[0].fields.plans().iter().map(|field| field.kind).collect();
        let bytes = FieldKind::Value(ValueForm::Binary, Extent::BytesOf(0));
        assert_eq!(kinds, [FieldKind::Value(ValueForm::Unsigned, Extent::Bytes(4)), bytes]);
    }

    #[test]
    fn structures_have_members_behind_the_fields() {
        let schemas = schemas(
            r#"<event value="1" task="A" template="T"/>"#,
            r#"<template tid="T"><data name="Count" inType="win:UInt16"/>
               <struct name="Items" count="Count"><data name="Length" inType="win:UInt16"/>
               <data name="Text" inType="win:UnicodeString" length="Length"/></struct>
               <data name="Last" inType="win:Int8"/></template>"#,
        )
        .unwrap();
        let fields = &schemas[0].fields;
        let names: Vec<&str> = fields.plans().iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["Count", "Items", "Last", "Length", "Text"]);
        assert_eq!(fields.plans()[1].count, Count::Field(0));
        assert_eq!(fields.plans()[1].kind, FieldKind::Structure { first: 3, members: 2 });
        assert_eq!(
            fields.plans()[4].kind,
            FieldKind::Value(ValueForm::Utf16, Extent::CharactersOf(3))
        );
    }

    #[test]
    fn declared_entities_are_not_expanded() {
        let bomb =
            r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>"#;
        let text = format!("{bomb}{}", manifest(r#"<event value="1" task="&b;&b;"/>"#, ""));
        let schemas = parse(text.as_bytes()).map(|manifest| manifest.schemas(Guid([1; 16])));
        assert_eq!(schemas.unwrap()[0].name(), "&b;&b;");
    }

    #[test]
    fn a_manifest_too_deep_too_long_or_not_well_formed_is_refused() {
        assert!(schemas(&"<a>".repeat(100), "").is_none());
        let fields = r#"<data name="a" inType="win:Int8"/>"#.repeat(MAX_FIELDS + 1);
        assert!(schemas("", &format!(r#"<template tid="T">{fields}</template>"#)).is_none());
        assert!(schemas("</nothing>", "").is_none());
        assert!(parse(b"").is_none());
        assert!(parse(b"no XML at all").is_none());
    }

    #[test]
    fn an_event_whose_fields_are_not_understood_has_no_schema() {
        let schemas = schemas(
            r#"<event value="1" template="T"/><event value="2" template="None"/>
               <event value="x"/><event value="3"/>"#,
            r#"<template tid="T"><data name="a" inType="win:Surprise"/></template>"#,
        );
        let ids: Vec<u16> = schemas.unwrap().iter().map(|schema| schema.id).collect();
        assert_eq!(ids, [3]);
    }
}
