//! The handle part: objects with their events, one object after the other.

use std::collections::BTreeMap;

use handlescope_model::{EventKind, TypeId};
use serde::de::{DeserializeSeed, Deserializer, MapAccess};

use super::super::lists::List;
use super::super::own::EVENT_ORDER;
use super::json::{Each, EachPair, EachRow, Fill, Int, Record, Text};

/// Reads the handle part and hands each object to `each` when it is complete.
pub(super) struct HandlePart<F> {
    /// Type names by id.
    pub(super) types: BTreeMap<TypeId, String>,
    each: F,
}

impl<F: FnMut(ObjectRecord)> HandlePart<F> {
    pub(super) fn new(each: F) -> Self {
        Self { types: BTreeMap::new(), each }
    }
}

impl<'de, F: FnMut(ObjectRecord)> Record<'de> for HandlePart<F> {
    const MEMBERS: &'static [&'static str] = &["ObjectTypeMap", "ObjectReferences"];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "ObjectTypeMap" => map.next_value_seed(EachPair(|id: String, name| {
                if let Ok(id) = id.parse() {
                    self.types.insert(TypeId(id), name);
                }
            })),
            _ => map.next_value_seed(Each::new(&mut self.each)),
        }
    }
}

/// One object as it is written.
#[derive(Debug, Default)]
pub(super) struct ObjectRecord {
    pub(super) pointer: u64,
    pub(super) type_id: Option<TypeId>,
    pub(super) name: Option<String>,
    /// Its events, list by list.
    pub(super) events: Vec<EventRecord>,
    /// The handles that were open at the end.
    pub(super) existing: Vec<ExistingRecord>,
    /// Not ETWAnalyzer's: where each event belongs, when sorted by time and list.
    pub(super) order: Vec<usize>,
}

/// A handle of the rundown.
#[derive(Debug, Default)]
pub(super) struct ExistingRecord {
    pub(super) handle: u64,
    pub(super) process: Option<i64>,
}

/// One event as it is written.
#[derive(Debug, Default)]
pub(super) struct EventRecord {
    /// The list it stands in.
    pub(super) list: List,
    pub(super) time_ns: i64,
    pub(super) stack: Option<i64>,
    pub(super) process: Option<i64>,
    pub(super) tid: u32,
    pub(super) handle: u64,
    pub(super) source_handle: Option<u64>,
    pub(super) source_process: Option<i64>,
    /// Not ETWAnalyzer's: the process that called for a duplicate, if another one got the handle.
    pub(super) caller_process: Option<i64>,
    /// Not ETWAnalyzer's: the child that inherited the handle, -1 for none.
    pub(super) inherited_by: Option<i64>,
    /// Not ETWAnalyzer's: the process id of the source, where no process has it.
    pub(super) source_pid: Option<u32>,
    /// Not ETWAnalyzer's: the row of the stack, if another one has its text, too.
    pub(super) stack_row: Option<u32>,
    pub(super) ref_change: i64,
    pub(super) view_base: u64,
    pub(super) view_size: Option<u64>,
    pub(super) file_object: Option<u64>,
    pub(super) byte_offset: Option<u64>,
    pub(super) misc_info: Option<u64>,
}

impl EventRecord {
    /// What the event is.
    pub(super) fn kind(&self) -> EventKind {
        match self.list {
            List::ObjectCreate => EventKind::ObjectCreate,
            List::HandleCreate => EventKind::HandleCreate,
            List::HandleDuplicate => EventKind::HandleDuplicate,
            List::Map => EventKind::Map,
            List::RefChange if self.ref_change < 0 => EventKind::Dereference,
            List::RefChange => EventKind::Reference,
            List::HandleClose => EventKind::HandleClose,
            List::Unmap => EventKind::Unmap,
            List::ObjectDelete => EventKind::ObjectDelete,
        }
    }
}

/// Adds the events of a list to those of the object; null is a list without any.
struct EventsOf<'a> {
    list: List,
    events: &'a mut Vec<EventRecord>,
}

impl<'de> DeserializeSeed<'de> for EventsOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { list, events } = self;
        let each = |event| events.push(EventRecord { list, ..event });
        Each::<_, EventRecord>::new(each).deserialize(deserializer)
    }
}

/// Adds one event; null is none.
fn single<'de, A: MapAccess<'de>>(
    list: List,
    events: &mut Vec<EventRecord>,
    map: &mut A,
) -> Result<(), A::Error> {
    let mut event = EventRecord { list, ..EventRecord::default() };
    if map.next_value_seed(Fill(&mut event))? {
        events.push(event);
    }
    Ok(())
}

impl<'de> Record<'de> for ObjectRecord {
    const MEMBERS: &'static [&'static str] = &[
        "ObjectPtr",
        "ObjectType",
        "Name",
        "CreateEvent",
        "DestroyEvent",
        "Existing",
        "HandleCreateEvents",
        "HandleDuplicateEvents",
        "HandleCloseEvents",
        "RefChanges",
        "FileMapEvents",
        "FileUnmapEvents",
        EVENT_ORDER,
    ];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "ObjectPtr" => self.pointer = map.next_value::<Int>()?.u64().unwrap_or_default(),
            "ObjectType" => self.type_id = map.next_value::<Int>()?.u32().map(TypeId),
            "Name" => self.name = map.next_value::<Text>()?.0,
            "Existing" => {
                map.next_value_seed(Each::new(|handle| self.existing.push(handle)))?;
            }
            EVENT_ORDER => map.next_value_seed(EachRow::new(|place| self.order.push(place)))?,
            _ => {
                let events = &mut self.events;
                return match List::named(name).unwrap_or_default() {
                    list if list.is_single() => single(list, events, map),
                    list => map.next_value_seed(EventsOf { list, events }),
                };
            }
        }
        Ok(())
    }
}

impl<'de> Record<'de> for EventRecord {
    const MEMBERS: &'static [&'static str] = &[
        "TimeNs",
        "StackIdx",
        "ProcessIdx",
        "ThreadId",
        "HandleValue",
        "SourceHandleValue",
        "SourceProcessIdx",
        "CallerProcessIdx",
        "InheritedByIdx",
        "SourcePid",
        "StackRow",
        "RefCountChange",
        "ViewBase",
        "ViewSize",
        "FileObject",
        "ByteOffset",
        "MiscInfo",
    ];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value = map.next_value::<Int>()?;
        match name {
            "TimeNs" => self.time_ns = value.0.unwrap_or_default(),
            "StackIdx" => self.stack = value.0,
            "ProcessIdx" => self.process = value.0,
            "ThreadId" => self.tid = value.u32().unwrap_or_default(),
            "HandleValue" => self.handle = value.u64().unwrap_or_default(),
            "SourceHandleValue" => self.source_handle = value.u64(),
            "SourceProcessIdx" => self.source_process = value.0,
            "CallerProcessIdx" => self.caller_process = value.0,
            "InheritedByIdx" => self.inherited_by = value.0,
            "SourcePid" => self.source_pid = value.u32(),
            "StackRow" => self.stack_row = value.u32(),
            "RefCountChange" => self.ref_change = value.0.unwrap_or_default(),
            "ViewBase" => self.view_base = value.u64().unwrap_or_default(),
            "ViewSize" => self.view_size = value.u64(),
            "FileObject" => self.file_object = value.u64(),
            "ByteOffset" => self.byte_offset = value.u64(),
            _ => self.misc_info = value.u64(),
        }
        Ok(())
    }
}

impl<'de> Record<'de> for ExistingRecord {
    const MEMBERS: &'static [&'static str] = &["Handle", "Process"];

    fn member<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value = map.next_value::<Int>()?;
        match name {
            "Handle" => self.handle = value.u64().unwrap_or_default(),
            _ => self.process = value.0,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (BTreeMap<TypeId, String>, Vec<ObjectRecord>) {
        let mut objects = Vec::new();
        let mut part = HandlePart::new(|object| objects.push(object));
        Fill(&mut part)
            .deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()))
            .unwrap();
        (part.types, objects)
    }

    #[test]
    fn every_list_gives_events_of_its_kind() {
        let (_, objects) = read(
            r#"{"ObjectReferences":[{"ObjectPtr":-1,"ObjectType":16,"Name":"x",
              "CreateEvent":{"RefCountChange":1},"DestroyEvent":null,
              "HandleCreateEvents":[{"HandleValue":18446744073709551615,"TimeNs":3,"StackIdx":1,"ProcessIdx":2,"ThreadId":7}],
              "HandleDuplicateEvents":null,"HandleCloseEvents":[{}],
              "RefChanges":[{"RefCountChange":-2},{"RefCountChange":3}],
              "FileMapEvents":[{"ViewBase":4096}],"FileUnmapEvents":[],
              "Existing":[{"Handle":4,"Process":1},{}]}]}"#,
        );
        let object = &objects[0];
        let kinds: Vec<EventKind> = object.events.iter().map(EventRecord::kind).collect();
        assert_eq!(
            kinds,
            [
                EventKind::ObjectCreate,
                EventKind::HandleCreate,
                EventKind::HandleClose,
                EventKind::Dereference,
                EventKind::Reference,
                EventKind::Map
            ]
        );
        assert_eq!((object.pointer, object.type_id), (u64::MAX, Some(TypeId(16))));
        let create = &object.events[1];
        assert_eq!((create.handle, create.tid, create.process), (u64::MAX, 7, Some(2)));
        let existing: Vec<_> = object.existing.iter().map(|h| (h.handle, h.process)).collect();
        assert_eq!(existing, [(4, Some(1)), (0, None)]);
    }

    #[test]
    fn types_may_come_last_or_not_at_all() {
        let (types, objects) = read(
            r#"{"ObjectReferences":[null,{}],"objecttypemap":{"16":"Event","x":"y","17":null}}"#,
        );
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            [(TypeId(16), "Event".into()), (TypeId(17), String::new())]
        );
        assert_eq!(objects.len(), 2);
        assert!(read("{}").0.is_empty());
    }
}
