//! `.dump ObjectRef -json`.

use std::io::{self, Write};

use handlescope_model::EventKind;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Array, Hex, Members, Shown, seconds};
use crate::command::{JsonMode, ObjectRefArgs};
use crate::query::{
    CountBy, EventRow, FileAnswer, FrameView, Listing, NamedFrames, ObjectRefAnswer, Selected,
    Totals, count_by,
};
use crate::render::time::Utc7;

pub(in crate::render) fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefArgs,
    mode: JsonMode,
    out: &mut impl Write,
) -> io::Result<()> {
    super::write(&Document { files: number_stacks(answer), answer, args }, mode, out)
}

/// The document.
struct Document<'a> {
    answer: &'a ObjectRefAnswer<'a>,
    files: Vec<FileJson<'a>>,
    args: &'a ObjectRefArgs,
}

/// One trace in the document.
struct FileJson<'a> {
    index: usize,
    answer: &'a FileAnswer<'a>,
    /// Added to the rows of its stacks, so that stacks of several traces have different numbers.
    first_stack: u64,
}

fn number_stacks<'a>(answer: &'a ObjectRefAnswer<'a>) -> Vec<FileJson<'a>> {
    let mut first_stack = 0;
    let number = |(index, answer): (usize, &'a FileAnswer<'a>)| {
        let file = FileJson { index, answer, first_stack };
        first_stack += answer.stack_count as u64;
        file
    };
    answer.files.iter().enumerate().map(number).collect()
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("command", &self.args.text)?;
        map.serialize_entry("files", &Array(|| self.files.iter().map(FileJson::header)))?;
        map.serialize_entry("totals", &TotalsJson::from(self.answer.totals()))?;
        if let Some(by) = count_by(self.args) {
            map.serialize_entry("not_closed", &NotClosed::new(self.answer, by, self.args))?;
        }
        map.serialize_entry("objects", &Array(|| self.files.iter().flat_map(FileJson::objects)))?;
        if self.args.show_stack {
            map.serialize_entry(
                "stacks",
                &Members(|| self.files.iter().flat_map(FileJson::stacks)),
            )?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct FileHeader {
    file: usize,
    path: String,
    session_start_utc: Shown<Utc7>,
    session_end_utc: Option<Shown<Utc7>>,
    events_lost: u64,
    buffers_lost: u64,
}

#[derive(Serialize)]
struct TotalsJson {
    objects_created: u64,
    objects_destroyed: u64,
    handles_created: u64,
    handles_closed: u64,
    handles_duplicated: u64,
    ref_changes: u64,
    map_count: u64,
    unmap_count: u64,
    map_size: u64,
    unmap_size: u64,
    leaked_handles: u64,
}

impl From<Totals> for TotalsJson {
    fn from(totals: Totals) -> Self {
        Self {
            objects_created: totals.objects_created,
            objects_destroyed: totals.objects_destroyed,
            handles_created: totals.handles_created,
            handles_closed: totals.handles_closed,
            handles_duplicated: totals.handles_duplicated,
            ref_changes: totals.ref_changes,
            map_count: totals.map_count,
            unmap_count: totals.unmap_count,
            map_size: totals.map_size,
            unmap_size: totals.unmap_size,
            leaked_handles: totals.leaked_handles,
        }
    }
}

#[derive(Serialize)]
struct NotClosed {
    by: &'static str,
    rows: Vec<(String, u64)>,
    sum: u64,
    process_count: usize,
}

impl NotClosed {
    fn new(answer: &ObjectRefAnswer<'_>, by: CountBy, args: &ObjectRefArgs) -> Self {
        let handles = answer.open_handles();
        let rows = handles.rows(by, args.top);
        Self {
            by: match by {
                CountBy::Type => "type",
                CountBy::Process => "process",
            },
            sum: rows.iter().map(|(_, count)| count).sum(),
            rows: rows.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            process_count: handles.process_count(),
        }
    }
}

impl<'a> FileJson<'a> {
    fn header(&self) -> FileHeader {
        let info = &self.answer.info;
        FileHeader {
            file: self.index,
            path: self.answer.path().display().to_string(),
            session_start_utc: Shown(Utc7(info.session_start_filetime)),
            session_end_utc: info.session_end_filetime.map(|end| Shown(Utc7(end))),
            events_lost: info.events_lost,
            buffers_lost: info.buffers_lost,
        }
    }

    fn objects(&self) -> impl Iterator<Item = ObjectJson<'_>> {
        let listing = self.answer.listing.as_ref();
        listing.into_iter().flat_map(move |listing| {
            let objects = self.answer.selection.objects().iter();
            objects.map(move |&selected| ObjectJson { file: self, listing, selected })
        })
    }

    fn stacks(&self) -> impl Iterator<Item = (String, StackJson<'_>)> {
        let stacks = self.answer.shown_stacks.iter().flat_map(|stacks| stacks.iter());
        stacks.map(|stack| {
            let number = self.first_stack + u64::from(stack);
            (number.to_string(), StackJson { file: self.answer, stack })
        })
    }

    fn stack(&self, stack: Option<u32>) -> Option<u64> {
        stack.map(|stack| self.first_stack + u64::from(stack))
    }
}

/// One object.
struct ObjectJson<'a> {
    file: &'a FileJson<'a>,
    listing: &'a Listing,
    selected: Selected,
}

#[derive(Serialize)]
struct Creator<'a> {
    pid: u32,
    name: &'a str,
    start_ns: Option<i64>,
}

#[derive(Serialize)]
struct ExistingHandle {
    pid: u32,
    handle: Hex,
}

impl Serialize for ObjectJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { file, listing, selected } = self;
        let (answer, object) = (file.answer, selected.object());
        let (tables, processes) = (&answer.file.objects, &answer.file.processes);
        let create = selected.create();
        let creator = create.and_then(|event| listing.event(event)).map(|event| {
            let process = processes.get(event.process);
            Creator { pid: process.pid, name: &process.name, start_ns: process.start_ns }
        });
        let existing = || {
            let handles = listing.existing(tables.existing(object));
            handles.map(|(owner, handle)| ExistingHandle {
                pid: processes.get(owner).pid,
                handle: Hex(handle),
            })
        };
        let events = || {
            let events = answer.events(*selected);
            let event = |row| Some(EventJson { file, listing, row, event: listing.event(row)? });
            events.filter_map(event)
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &file.index)?;
        map.serialize_entry("id", &selected.id())?;
        map.serialize_entry("pointer", &Hex(listing.pointer(object)))?;
        map.serialize_entry("name", &listing.name(object))?;
        map.serialize_entry("type", answer.file.types.get(tables.type_id(object)))?;
        map.serialize_entry("lifetime_s", &answer.lifetime_ns(listing, *selected).map(seconds))?;
        map.serialize_entry("first_create_ns", &create.and_then(|event| listing.time_ns(event)))?;
        let end = selected.end().and_then(|event| listing.time_ns(event));
        map.serialize_entry("last_destroy_ns", &end)?;
        map.serialize_entry("creator", &creator)?;
        map.serialize_entry("is_multiprocess", &listing.is_multiprocess(object))?;
        map.serialize_entry("is_overlapped", &listing.is_overlapped(object))?;
        map.serialize_entry("existing_handles", &Array(existing))?;
        map.serialize_entry("events", &Array(events))?;
        map.end()
    }
}

/// One event.
struct EventJson<'a> {
    file: &'a FileJson<'a>,
    listing: &'a Listing,
    row: usize,
    event: EventRow,
}

impl Serialize for EventJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = &self.event;
        let process = self.file.answer.file.processes.get(event.process);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", event.kind.name())?;
        map.serialize_entry("time_ns", &event.time_ns)?;
        map.serialize_entry("pid", &process.pid)?;
        map.serialize_entry("process", &process.name)?;
        map.serialize_entry("tid", &event.tid)?;
        self.serialize_own_members(&mut map)?;
        map.serialize_entry("stack", &self.file.stack(event.stack))?;
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
            }
            EventKind::HandleClose => map.serialize_entry("handle", &event.handle.map(Hex))?,
            EventKind::Reference | EventKind::Dereference => {
                map.serialize_entry("ref_delta", &self.listing.ref_delta(self.row))?;
            }
            EventKind::Map | EventKind::Unmap => self.serialize_view(map)?,
            EventKind::ObjectCreate | EventKind::ObjectDelete => {}
        }
        if event.kind == EventKind::HandleDuplicate {
            self.serialize_duplicate(map)?;
        }
        Ok(())
    }

    fn serialize_duplicate<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let duplicate = self.listing.duplicate(self.row);
        let processes = &self.file.answer.file.processes;
        let pid = |row: Option<u32>| row.map(|row| processes.get(row).pid);
        map.serialize_entry("source_pid", &duplicate.source_pid)?;
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

/// One stack.
struct StackJson<'a> {
    file: &'a FileAnswer<'a>,
    stack: u32,
}

#[derive(Serialize)]
struct FrameJson<'a> {
    module: Option<&'a str>,
    function: Option<&'a str>,
    offset: Option<u64>,
    rva: Option<Hex>,
    address: Option<Hex>,
    inlined: bool,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl Serialize for StackJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = self.file.file.frames.as_ref().map(|frames| frames.named());
        let frames = named.iter().flat_map(|named: &NamedFrames<'_>| named.stack(self.stack));
        serializer.collect_seq(frames.map(|frame: FrameView<'_>| FrameJson {
            module: frame.module.map(|module| module.name),
            function: frame.name.map(|name| &*name.function),
            offset: frame.name.map(|name| name.offset),
            rva: frame.module.map(|module| Hex(module.rva)),
            address: self.file.bases.address(&frame).map(Hex),
            inlined: false,
            file: frame.name.and_then(|name| name.file.as_deref()),
            line: frame.name.and_then(|name| name.line),
        }))
    }
}
