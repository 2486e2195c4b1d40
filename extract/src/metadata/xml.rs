//! The XML of a manifest. Nothing is expanded but the five entities of XML itself.

use std::collections::HashMap;
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use super::fields::{Count, FieldKind, FieldPlan, Fields, Schema, SchemaSource};
use super::reading::{Length, in_type_of_name, reading};
use crate::etl::Guid;

/// How deep elements may stand in each other; manifests have nine levels.
const MAX_DEPTH: usize = 32;

/// Most events and templates that are taken.
const MAX_EVENTS: usize = 1 << 16;

/// Most fields of a template.
const MAX_FIELDS: usize = 4096;

/// What a manifest says of its events.
#[derive(Default)]
pub(super) struct Manifest {
    provider: Option<String>,
    events: Vec<ManifestEvent>,
    templates: HashMap<String, Template>,
    /// The template whose fields are read, and whether they are members of its last structure.
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
    /// Fields and members so far.
    size: usize,
}

/// A `data` or `struct` element.
struct Data {
    name: String,
    in_type: String,
    length: Option<String>,
    count: Option<String>,
    map: Option<String>,
    /// Those of a structure.
    members: Option<Vec<Self>>,
}

/// Reads a manifest; `None` when it is not well-formed, names no provider, or nests without end.
pub(super) fn parse(text: &[u8]) -> Option<Manifest> {
    let mut reader = Reader::from_reader(text);
    let mut manifest = Manifest::default();
    let mut depth = 0;
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return None;
                }
                manifest.start(&element)?;
            }
            Event::Empty(element) => {
                manifest.start(&element)?;
                manifest.end(element.local_name().as_ref());
            }
            Event::End(element) => {
                depth -= 1;
                manifest.end(element.local_name().as_ref());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    manifest.provider.is_some().then_some(manifest)
}

/// The value of an attribute.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    // Checks for repeated attributes take time that grows with the square of their number.
    let mut all = element.attributes();
    let own = all.with_checks(false).flatten().find(|own| own.key.as_ref() == name.as_bytes())?;
    let text = String::from_utf8_lossy(&own.value).into_owned();
    // An entity of the manifest's own is left as it is.
    Some(unescape(&text).map_or(text.clone(), |text| text.into_owned()))
}

impl Manifest {
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

    /// The schemas of the events; an event whose fields are not understood has none.
    pub(super) fn schemas(self, guid: Guid) -> Vec<Schema> {
        let provider: Arc<str> = self.provider.unwrap_or_default().into();
        let fields: HashMap<&str, Option<Arc<Fields>>> = self
            .templates
            .iter()
            .map(|(tid, template)| (tid.as_str(), template.compiled().map(Arc::new)))
            .collect();
        let without = Arc::new(Fields::default());
        let schema = |event: &ManifestEvent| {
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
        };
        self.events.iter().filter_map(schema).collect()
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
enum Amount {
    Number(u16),
    Field(u16),
}

impl Template {
    fn compiled(&self) -> Option<Fields> {
        let top_level = self.fields.len();
        let names = |fields: &[Data], first: usize| -> HashMap<String, u16> {
            let numbered = fields.iter().enumerate();
            numbered.map(|(at, data)| (data.name.clone(), (first + at) as u16)).collect()
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
            let own = names(members, plans.len());
            let compiled: Option<Vec<_>> =
                members.iter().map(|member| plan(member, None, &own, &outer)).collect();
            plans.extend(compiled?);
        }
        Fields::new(plans, top_level)
    }
}

/// A field; names of other fields are looked for beside it, then on the top level.
fn plan(
    data: &Data,
    members: Option<(usize, usize)>,
    beside: &HashMap<String, u16>,
    outer: &HashMap<String, u16>,
) -> Option<FieldPlan> {
    let amount = |text: &String| {
        let number = text.parse().map(Amount::Number).ok();
        let field = || beside.get(text).or_else(|| outer.get(text)).copied().map(Amount::Field);
        number.or_else(field)
    };
    let length = match data.length.as_ref().map(amount) {
        None => Length::OfType,
        Some(length) => match length? {
            Amount::Number(length) => Length::Fixed(length),
            Amount::Field(field) => Length::Field(field),
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
        None => Count::One,
        Some(count) => match count? {
            Amount::Number(count) => Count::Fixed(count),
            Amount::Field(field) => Count::Field(field),
        },
    };
    let map = data.map.as_deref().map(Into::into);
    Some(FieldPlan { name: data.name.as_str().into(), kind, count, map })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::reading::{Extent, Form};

    fn manifest(events: &str, templates: &str) -> String {
        format!(
            r#"<instrumentationManifest><instrumentation><events>
            <provider name="My-Source" guid="{{x}}"><events>{events}</events>
            <templates>{templates}</templates></provider></events></instrumentation>
            </instrumentationManifest>"#
        )
    }

    fn schemas(events: &str, templates: &str) -> Option<Vec<Schema>> {
        parse(manifest(events, templates).as_bytes()).map(|found| found.schemas(Guid([1; 16])))
    }

    #[test]
    fn events_have_the_fields_of_their_template_which_comes_later() {
        let found = schemas(
            r#"<event value="7" version="2" task="Go" opcode="win:Start" template="T"/>
               <event value="8" task="Stop &amp; go"/>"#,
            r#"<template tid="T"><data name="Size" inType="win:UInt32"/>
               <data name="Bytes" inType="win:Binary" length="Size"/></template>"#,
        )
        .unwrap();
        let names: Vec<String> = found.iter().map(Schema::name).collect();
        assert_eq!(names, ["Go/win:Start", "Stop & go"]);
        assert_eq!((found[0].id, found[0].version, &*found[0].provider), (7, 2, "My-Source"));
        let kinds: Vec<FieldKind> = found[0].fields.all().iter().map(|field| field.kind).collect();
        let bytes = FieldKind::Value(Form::Binary, Extent::BytesOf(0));
        assert_eq!(kinds, [FieldKind::Value(Form::Unsigned, Extent::Bytes(4)), bytes]);
    }

    #[test]
    fn structures_have_members_behind_the_fields() {
        let found = schemas(
            r#"<event value="1" task="A" template="T"/>"#,
            r#"<template tid="T"><data name="Count" inType="win:UInt16"/>
               <struct name="Items" count="Count"><data name="Length" inType="win:UInt16"/>
               <data name="Text" inType="win:UnicodeString" length="Length"/></struct>
               <data name="Last" inType="win:Int8"/></template>"#,
        )
        .unwrap();
        let fields = &found[0].fields;
        let names: Vec<&str> = fields.all().iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["Count", "Items", "Last", "Length", "Text"]);
        assert_eq!(fields.all()[1].count, Count::Field(0));
        assert_eq!(fields.all()[1].kind, FieldKind::Structure { first: 3, members: 2 });
        assert_eq!(fields.all()[4].kind, FieldKind::Value(Form::Utf16, Extent::CharactersOf(3)));
    }

    #[test]
    fn entities_of_its_own_are_not_expanded() {
        let bomb =
            r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>"#;
        let text = format!("{bomb}{}", manifest(r#"<event value="1" task="&b;&b;"/>"#, ""));
        let found = parse(text.as_bytes()).map(|found| found.schemas(Guid([1; 16])));
        assert_eq!(found.unwrap()[0].name(), "&b;&b;");
    }

    #[test]
    fn what_is_too_deep_too_long_or_not_well_formed_is_refused() {
        assert!(schemas(&"<a>".repeat(100), "").is_none());
        let fields = r#"<data name="a" inType="win:Int8"/>"#.repeat(MAX_FIELDS + 1);
        assert!(schemas("", &format!(r#"<template tid="T">{fields}</template>"#)).is_none());
        assert!(schemas("</nothing>", "").is_none());
        assert!(parse(b"").is_none());
        assert!(parse(b"no XML at all").is_none());
    }

    #[test]
    fn an_event_whose_fields_are_not_understood_has_no_schema() {
        let found = schemas(
            r#"<event value="1" template="T"/><event value="2" template="None"/>
               <event value="x"/><event value="3"/>"#,
            r#"<template tid="T"><data name="a" inType="win:Surprise"/></template>"#,
        );
        let ids: Vec<u16> = found.unwrap().iter().map(|schema| schema.id).collect();
        assert_eq!(ids, [3]);
    }
}
