//! Objects and their events.

use handlescope_model::{EventIdx, EventKind, ProcessIdx};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Array, Hex, StackNumbers, seconds};
use crate::query::{EventRow, FileAnswer, Listing, Selected};

pub(super) struct ObjectJson<'a> {
    pub(super) answer: &'a FileAnswer<'a>,
    pub(super) numbers: StackNumbers,
    pub(super) listing: &'a Listing,
    pub(super) selected: Selected,
}

#[derive(Serialize)]
struct Creator<'a> {
    pid: Option<u32>,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pretty_name: Option<&'static str>,
    start_ns: Option<i64>,
}

#[derive(Serialize)]
struct ExistingHandle {
    pid: u32,
    handle: Hex,
}

impl Serialize for ObjectJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { answer, numbers, listing, selected } = *self;
        let object = selected.object();
        let (tables, processes) = (&answer.file.objects, &answer.file.processes);
        // Facts about the object itself, whatever the filters removed of its events.
        let create = tables.create_event(object).map(EventIdx::row);
        let end = tables.destroy_event(object).map(EventIdx::row);
        let creator = create.and_then(|event| listing.event(event)).map(|event| {
            let process = processes.get(event.process);
            Creator {
                pid: process.known_pid(),
                name: process.known_name(),
                pretty_name: process.pretty_name,
                start_ns: process.start_ns,
            }
        });
        let existing = || {
            let handles = listing.existing(tables.existing(object));
            handles.map(|(owner, handle)| ExistingHandle {
                pid: processes.get(owner).pid,
                handle: Hex(handle),
            })
        };
        let events = || {
            let events = answer.events(selected);
            let event =
                |row| Some(EventJson { answer, numbers, listing, row, event: listing.event(row)? });
            events.filter_map(event)
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &answer.about.index)?;
        map.serialize_entry("id", &selected.id())?;
        map.serialize_entry("pointer", &listing.pointer(object).map(Hex))?;
        map.serialize_entry("name", &listing.name(object))?;
        map.serialize_entry("type", answer.file.types.get(tables.type_id(object)))?;
        map.serialize_entry("lifetime_s", &answer.lifetime_ns(listing, selected).map(seconds))?;
        map.serialize_entry("first_create_ns", &create.and_then(|event| listing.time_ns(event)))?;
        map.serialize_entry("last_destroy_ns", &end.and_then(|event| listing.time_ns(event)))?;
        map.serialize_entry("creator", &creator)?;
        map.serialize_entry("is_multiprocess", &listing.is_multiprocess(object))?;
        map.serialize_entry("is_overlapped", &listing.is_overlapped(object))?;
        map.serialize_entry("existing_handles", &Array(existing))?;
        map.serialize_entry("events", &Array(events))?;
        map.end()
    }
}

struct EventJson<'a> {
    answer: &'a FileAnswer<'a>,
    numbers: StackNumbers,
    listing: &'a Listing,
    row: usize,
    event: EventRow,
}

impl Serialize for EventJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = &self.event;
        let process = self.answer.file.processes.get(event.process);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", event.kind.name())?;
        map.serialize_entry("time_ns", &event.time_ns)?;
        map.serialize_entry("pid", &process.known_pid())?;
        map.serialize_entry("process", &process.known_name())?;
        map.serialize_entry("tid", &event.tid)?;
        self.serialize_own_members(&mut map)?;
        map.serialize_entry("stack", &event.stack.map(|stack| self.numbers.of(stack)))?;
        map.end()
    }
}

impl EventJson<'_> {
    /// Writes the members that only events of this kind have.
    fn serialize_own_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let event = &self.event;
        match event.kind {
            EventKind::HandleCreate | EventKind::HandleDuplicate => {
                map.serialize_entry("handle", &event.handle.map(Hex))?;
                map.serialize_entry("leaked", &event.leaked)?;
                map.serialize_entry("closed_at_exit", &event.closed_at_exit)?;
                self.serialize_unseen_close(map)?;
            }
            EventKind::HandleClose => {
                map.serialize_entry("handle", &event.handle.map(Hex))?;
                map.serialize_entry("closed_at_exit", &event.closed_at_exit)?;
            }
            EventKind::Reference | EventKind::Dereference => {
                map.serialize_entry("ref_delta", &self.listing.ref_delta(self.row))?;
            }
            EventKind::Map => {
                self.serialize_view(map)?;
                self.serialize_unseen_close(map)?;
            }
            EventKind::Unmap => self.serialize_view(map)?,
            EventKind::ObjectCreate | EventKind::ObjectDelete => {}
        }
        if event.kind == EventKind::HandleDuplicate {
            self.serialize_duplicate(map)?;
        }
        Ok(())
    }

    fn serialize_unseen_close<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let close = self.listing.unseen_close(self.row);
        map.serialize_entry("closed_unseen", &close.map(|close| close.evidence.name()))?;
        map.serialize_entry("closed_after_ns", &close.and_then(|close| close.after_ns))?;
        map.serialize_entry("closed_before_ns", &close.and_then(|close| close.before_ns))
    }

    fn serialize_duplicate<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let duplicate = self.listing.duplicate(self.row);
        let processes = &self.answer.file.processes;
        let pid = |row: Option<ProcessIdx>| row.map(|row| processes.get(row).pid);
        map.serialize_entry("source_pid", &pid(duplicate.source_process))?;
        map.serialize_entry("source_handle", &duplicate.source_handle.map(Hex))?;
        map.serialize_entry("caller_pid", &pid(duplicate.caller_process))?;
        map.serialize_entry("inherited_by_pid", &pid(duplicate.inherited_by))
    }

    fn serialize_view<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let view = self.listing.view(self.row);
        if self.event.kind == EventKind::Map {
            map.serialize_entry("leaked", &self.event.leaked)?;
        }
        map.serialize_entry("view_base", &view.base.map(Hex))?;
        map.serialize_entry("view_size", &view.size)?;
        map.serialize_entry("byte_offset", &view.offset)?;
        map.serialize_entry("file_object", &view.file_object.map(Hex))
    }
}
