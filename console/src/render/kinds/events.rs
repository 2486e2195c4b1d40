//! Objects and their events, declared once: a document has events in their objects, files have a row for each event.

use std::io;
use std::rc::Rc;

use handlescope_model::rules::{Kinds, OPENING, REFERENCE_CHANGES, VIEWS, WITH_HANDLE};
use handlescope_model::{EventIdx, ProcessIdx};
use serde::Serialize;

use super::index;
use crate::{
    cancel::{Cancel, Poll},
    query::{DuplicateRow, FileAnswer, Listing, ObjectRefAnswer, Selected},
    render::{
        ObjectRefStyle,
        event_item::{DUPLICATES, EventItem, StackTexts},
        json::{Array, Hex, StackNumbers, Traces, traces},
        table::{Columns, Part, RowsOf, Table},
    },
};

/// Rows that are in memory at once.
const BATCH: usize = 1 << 16;

/// What the kind is called of a handle that was open at the end.
const EXISTING: &str = "existing_handle";

/// An object.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRow<'a> {
    answer: &'a FileAnswer<'a>,
    listing: &'a Listing,
    numbers: StackNumbers,
    object: Selected,
}

/// An event of an object, or a handle to it that was open at the end.
pub(crate) struct Row<'a> {
    object: ObjectRow<'a>,
    item: EventItem<'a>,
    stack_text: Option<String>,
}

/// Members of an object in a document.
pub(crate) fn object_columns<'a>() -> Columns<'a, ObjectRow<'a>> {
    let mut columns = Columns::<ObjectRow<'a>>::default();
    add_object(&mut columns, |row| row);
    // Facts about the object itself, whatever the filters removed of its events.
    columns.add("first_create_ns", ObjectRow::first_create_ns).follows("lifetime_s");
    columns.add("last_destroy_ns", ObjectRow::last_destroy_ns).follows("lifetime_s");
    columns.nest("creator", "object?", |row| row.creator()).follows("lifetime_s");
    columns.nest("existing_handles", "array", |row| {
        let row = *row;
        Array(move || row.existing_handles())
    });
    let events = Rc::new(object_event_columns().in_document());
    columns.nest("events", "array", move |row| {
        let row = *row;
        RowsOf(Rc::clone(&events), move || row.items().filter(|row| row.item.event().is_some()))
    });
    columns
}

/// Members of an event of an object in a document.
pub(crate) fn object_event_columns<'a>() -> Columns<'a, Row<'a>> {
    let mut columns = Columns::default();
    add_event(&mut columns);
    columns
}

/// The objects in a document.
pub(super) fn objects<'a>(
    answer: &'a ObjectRefAnswer<'a>,
    traces: &Traces<'a>,
) -> impl Serialize + 'a {
    let members = Rc::new(object_columns().in_document());
    let numbers: Vec<StackNumbers> = traces.iter().map(|trace| trace.numbers).collect();
    RowsOf(members, move || {
        let files = answer.files.iter().zip(numbers.clone());
        files.flat_map(|(file, numbers)| ObjectRow::all(file, numbers))
    })
}

/// Calls `write` with tables of all events, the handles that were open at the end after those of
/// their objects. There is at least one table.
pub(super) fn for_each_batch(
    answer: &ObjectRefAnswer<'_>,
    style: &ObjectRefStyle<'_>,
    cancel: &Cancel,
    write: &mut dyn FnMut(&Table<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (mut rows, mut poll) = (Vec::new(), Poll::new(cancel));
    for (file, trace) in answer.files.iter().zip(traces(&answer.files).iter()) {
        let mut stacks = StackTexts::new(file, style.criteria.stacks);
        for object in ObjectRow::all(file, trace.numbers) {
            poll.round().map_err(io::Error::other)?;
            rows.extend(
                object.items().map(|row| Row { stack_text: stacks.show(&row.item), ..row }),
            );
            if rows.len() >= BATCH {
                write(&table(std::mem::take(&mut rows), style)?)?;
            }
        }
    }
    write(&table(rows, style)?)
}

fn table<'a>(rows: Vec<Row<'a>>, style: &ObjectRefStyle<'_>) -> io::Result<Table<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    add_object(&mut columns, |row| &row.object);
    add_event(&mut columns);
    if style.criteria.stacks.show {
        columns.add("stack_text", |row| row.stack_text.clone());
    }
    let parts = [Part::rows_of(rows.len())];
    Table::new("events", columns, rows, parts)
}

/// Adds what files have of an object with each of its events, too.
fn add_object<'a, R: 'a>(
    columns: &mut Columns<'a, R>,
    of: impl Fn(&R) -> &ObjectRow<'a> + Copy + 'a,
) {
    columns.add("file", move |row| index(of(row).answer.about.index));
    columns.add("id", move |row| of(row).object.id());
    columns.add("pointer", move |row| of(row).pointer());
    columns.add("name", move |row| of(row).listing.name(of(row).object.object()));
    columns.add("type", move |row| of(row).object_type());
    columns.add("lifetime_s", move |row| of(row).lifetime_s());
    columns.add("is_multiprocess", move |row| of(row).is_multiprocess());
    columns.add("is_overlapped", move |row| of(row).is_overlapped());
}

/// Adds what is said of an event.
fn add_event<'a>(columns: &mut Columns<'a, Row<'a>>) {
    columns.add("kind", |row| row.item.event().map_or(EXISTING, |event| event.kind.name()));
    columns.add("time_ns", |row| row.item.event()?.time_ns);
    columns.add("pid", |row| row.item.process().known_pid());
    columns.add("process", |row| row.item.process().known_name());
    columns.add("tid", |row| row.item.event()?.tid);
    let is_of = |kinds: Kinds| move |row: &Row<'a>| row.item.event_of(kinds).is_some();
    columns.only_of(is_of(WITH_HANDLE), |columns| {
        columns.add("handle", |row| row.item.handle().map(Hex));
    });
    columns.only_of(is_of(OPENING), |columns| {
        columns.add("leaked", Row::leaked);
    });
    columns.only_of(is_of(WITH_HANDLE), |columns| {
        columns.add("closed_at_exit", Row::closed_at_exit);
    });
    columns.only_of(is_of(OPENING), |columns| {
        columns.add("closed_unseen", |row| Some(row.item.unseen_close()?.evidence.name()));
        columns.add("closed_after_ns", |row| row.item.unseen_close()?.after_ns);
        columns.add("closed_before_ns", |row| row.item.unseen_close()?.before_ns);
    });
    columns.only_of(is_of(DUPLICATES), |columns| {
        columns.add("source_pid", |row| row.pid_of(|duplicate| duplicate.source_process));
        columns.add("source_handle", |row| row.item.duplicate()?.source_handle.map(Hex));
        columns.add("caller_pid", |row| row.pid_of(|duplicate| duplicate.caller_process));
        columns.add("inherited_by_pid", |row| row.pid_of(|duplicate| duplicate.inherited_by));
    });
    columns.only_of(is_of(REFERENCE_CHANGES), |columns| {
        columns.add("ref_delta", |row| row.item.ref_delta());
    });
    columns.only_of(is_of(VIEWS), |columns| {
        columns.add("view_base", |row| row.item.view()?.base.map(Hex)).follows("closed_at_exit");
        columns.add("view_size", |row| row.item.view()?.size).follows("closed_at_exit");
        columns.add("byte_offset", |row| row.item.view()?.offset).follows("closed_at_exit");
        let file = columns.add("file_object", |row| row.item.view()?.file_object.map(Hex));
        file.follows("closed_at_exit");
    });
    columns.add("stack", |row| Some(row.object.numbers.of(row.item.event()?.stack?)));
}

/// The process that created an object.
#[derive(Serialize)]
struct Creator<'a> {
    pid: Option<u32>,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pretty_name: Option<&'static str>,
    start_ns: Option<i64>,
}

/// A handle that was open at the end.
#[derive(Serialize)]
struct ExistingHandle {
    pid: u32,
    handle: Hex,
}

impl<'a> ObjectRow<'a> {
    /// The objects of a trace that are left.
    fn all(
        answer: &'a FileAnswer<'a>,
        numbers: StackNumbers,
    ) -> impl Iterator<Item = ObjectRow<'a>> {
        answer.listing.iter().flat_map(move |listing| {
            let objects = answer.selection.objects().iter();
            objects.map(move |&object| ObjectRow { answer, listing, numbers, object })
        })
    }

    fn items(self) -> impl Iterator<Item = Row<'a>> {
        let items = EventItem::of_object(self.answer, self.listing, self.object);
        items.map(move |item| Row { object: self, item, stack_text: None })
    }

    fn pointer(&self) -> Option<Hex> {
        self.listing.pointer(self.object.object()).map(Hex)
    }

    fn object_type(&self) -> &'a str {
        let tables = &self.answer.file;
        tables.types.get(tables.objects.type_id(self.object.object()))
    }

    fn lifetime_s(&self) -> Option<f64> {
        Some(self.answer.lifetime_ns(self.listing, self.object)? as f64 / 1e9)
    }

    fn is_multiprocess(&self) -> bool {
        self.listing.is_multiprocess(self.object.object())
    }

    fn is_overlapped(&self) -> bool {
        self.listing.is_overlapped(self.object.object())
    }

    fn first_create(&self) -> Option<usize> {
        self.answer.file.objects.create_event(self.object.object()).map(EventIdx::row)
    }

    fn first_create_ns(&self) -> Option<i64> {
        self.listing.time_ns(self.first_create()?)
    }

    fn last_destroy_ns(&self) -> Option<i64> {
        let end = self.answer.file.objects.destroy_event(self.object.object())?;
        self.listing.time_ns(end.row())
    }

    fn creator(&self) -> Option<Creator<'a>> {
        let event = self.listing.event(self.first_create()?)?;
        let process = self.answer.file.processes.get(event.process);
        Some(Creator {
            pid: process.known_pid(),
            name: process.known_name(),
            pretty_name: process.pretty_name,
            start_ns: process.start_ns,
        })
    }

    fn existing_handles(self) -> impl Iterator<Item = ExistingHandle> {
        let tables = &self.answer.file;
        let handles = self.listing.existing(tables.objects.existing(self.object.object()));
        handles.map(|(owner, handle)| ExistingHandle {
            pid: tables.processes.get(owner).pid,
            handle: Hex(handle),
        })
    }
}

impl Row<'_> {
    fn leaked(&self) -> Option<bool> {
        self.item.event_of(OPENING)?;
        Some(self.item.event()?.leaked)
    }

    fn closed_at_exit(&self) -> Option<bool> {
        self.item.event_of(WITH_HANDLE)?;
        self.item.event()?.closed_at_exit
    }

    fn pid_of(&self, process: impl Fn(DuplicateRow) -> Option<ProcessIdx>) -> Option<u32> {
        let process = process(self.item.duplicate()?)?;
        Some(self.object.answer.file.processes.get(process).pid)
    }
}
