//! The handle part: objects with their events, in the order of the objects table.

use handlescope_model::tables::{
    Event, Events, ExistingHandle, ExistingHandles, Names, Object, ObjectTypes, Objects,
};
use handlescope_model::{ArchiveError, EventKind, FILE_MAPPING_TYPE, Trace};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::super::lists::List;
use super::super::own::EVENT_ORDER;
use super::context::Context;
use super::event::{EventJson, index};
use super::json::{Each, TryEach, Window};

pub(super) struct HandlePart<'a> {
    pub(super) trace: &'a Trace,
    pub(super) types: &'a ObjectTypes,
    pub(super) names: &'a Names,
    pub(super) context: Context<'a>,
}

impl Serialize for HandlePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(Some(2))?;
        part.serialize_entry("ObjectTypeMap", &TypeMap(self.types))?;
        let mut objects = ObjectRecords {
            objects: Window::new(self.trace),
            events: Window::new(self.trace),
            existing: Window::new(self.trace),
            names: self.names,
            context: self.context,
            next: 0,
        };
        part.serialize_entry("ObjectReferences", &TryEach::new(|| objects.next()))?;
        part.end()
    }
}

/// Names of types by their ids as text. That of mapped views is not a kernel type and not written.
pub(super) struct TypeMap<'a>(pub(super) &'a ObjectTypes);

impl Serialize for TypeMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let types = self.0.type_id.iter().zip(&self.0.name);
        serializer.collect_map(types.filter(|(id, _)| **id != FILE_MAPPING_TYPE))
    }
}

/// The objects of a trace one by one.
struct ObjectRecords<'a> {
    objects: Window<'a, Objects>,
    events: Window<'a, Events>,
    existing: Window<'a, ExistingHandles>,
    names: &'a Names,
    context: Context<'a>,
    next: usize,
}

impl<'a> ObjectRecords<'a> {
    fn next(&mut self) -> Result<Option<ObjectJson<'a>>, ArchiveError> {
        let Some(object) = self.objects.row(self.next)? else { return Ok(None) };
        self.next += 1;
        let rows = |first: u32, count: u32| first as usize..first as usize + count as usize;
        let mut events = Vec::with_capacity(object.event_count.0.min(1 << 16) as usize);
        for row in rows(object.first_event.0, object.event_count.0) {
            let Some(event) = self.events.row(row)? else { break };
            events.push(event);
        }
        let mut existing = Vec::new();
        for row in rows(object.first_existing.0, object.existing_count.0) {
            let Some(handle) = self.existing.row(row)? else { break };
            existing.push(handle);
        }
        let name = object.name.and_then(|name| self.names.name.get(name.row()));
        Ok(Some(ObjectJson { object, name, events, existing, context: self.context }))
    }
}

/// One object.
struct ObjectJson<'a> {
    object: Object,
    name: Option<&'a String>,
    events: Vec<Event>,
    existing: Vec<ExistingHandle>,
    context: Context<'a>,
}

impl ObjectJson<'_> {
    /// The places of the events in the order in which a reader puts them: by time, and at one time
    /// by the list they stand in.
    fn order_of_lists(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by_key(|at| self.events.get(*at).map(|event| (event.time_ns, list_of(event))));
        order
    }

    fn of(&self, list: List) -> impl Iterator<Item = EventJson> + '_ {
        let events = self.events.iter().filter(move |event| list_of(event) == Some(list));
        events.map(|event| EventJson::new(event, self.context))
    }
}

/// The list of an event; none for a kind of a later version.
fn list_of(event: &Event) -> Option<List> {
    EventKind::from_code(event.kind).map(List::of)
}

impl Serialize for ObjectJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        // Addresses are signed numbers for ETWAnalyzer.
        object.serialize_entry("ObjectPtr", &(self.object.pointer as i64))?;
        for list in List::WRITTEN.into_iter().filter(|list| list.is_single()) {
            if let Some(event) = self.of(list).next() {
                object.serialize_entry(list.name(), &event)?;
            }
        }
        if let Some(name) = self.name {
            object.serialize_entry("Name", name)?;
        }
        // It has 16 bits there; an id that has more is none of Windows.
        let type_id = u16::try_from(self.object.type_id.0).unwrap_or_default();
        object.serialize_entry("ObjectType", &type_id)?;
        if !self.existing.is_empty() {
            object.serialize_entry("Existing", &Each(|| self.existing.iter().map(existing)))?;
        }
        for list in List::WRITTEN.into_iter().filter(|list| !list.is_single()) {
            if self.of(list).next().is_some() {
                object.serialize_entry(list.name(), &Each(|| self.of(list)))?;
            }
        }
        let order = self.order_of_lists();
        if !order.is_sorted() {
            object.serialize_entry(EVENT_ORDER, &order)?;
        }
        object.end()
    }
}

/// A handle that was open at the end.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ExistingJson {
    /// 32 bits there, as in the event.
    handle: u32,
    process: i64,
}

fn existing(handle: &ExistingHandle) -> ExistingJson {
    ExistingJson { handle: handle.handle as u32, process: index(Some(handle.process)) }
}
