//! The columns in ETWAnalyzer's order, each with what stands in it.

use std::borrow::Cow;

use handlescope_model::{
    EventKind,
    rules::{Kinds, REFERENCE_CHANGES, VIEWS},
};

use super::row::{Row, What};
use crate::query::UNKNOWN_LIFETIME_NS;

/// A header, and the value of a row below it.
type Column = (&'static str, for<'r> fn(&'r Row<'_>) -> Cow<'r, str>);

const DUPLICATES: Kinds = Kinds::of(&[EventKind::HandleDuplicate]);
const INHERITABLE: Kinds = Kinds::of(&[EventKind::HandleDuplicate, EventKind::HandleClose]);

/// All columns. The headers are ETWAnalyzer's, slips included, because scripts know them.
pub(super) static COLUMNS: &[Column] = &[
    ("CSVOptions", |row| row.options.into()),
    ("FileName", |row| row.file.name.as_str().into()),
    ("Date", |row| row.file.date.as_str().into()),
    ("TestCase", |row| row.file.name.as_str().into()),
    // The duration of a test and the tested version are not known.
    ("Test Time in ms", |_| "".into()),
    ("Baseline", |_| "".into()),
    ("Id", |row| row.object.id.to_string().into()),
    ("Stack", |row| row.stack.as_str().into()),
    ("EventName", |row| event_name(&row.what).into()),
    ("Time", |row| number(row.event().map(|event| event.time_ns))),
    ("Thread Id", |row| number(row.event().map(|event| event.tid))),
    ("Handle Value", |row| match row.what {
        What::Event(_, event) => hex(event.handle),
        What::Existing { handle, .. } => hex(Some(handle)),
    }),
    ("Type", |row| row.object.kind.into()),
    ("Object Name", |row| row.object.name.into()),
    ("Object Ptr", |row| hex(Some(row.object.pointer))),
    ("SourceProces", source_process),
    ("SourceHandleValue", |row| {
        let duplicate = row.event_of(DUPLICATES);
        hex(duplicate.and_then(|event| row.file.listing.duplicate(event).source_handle))
    }),
    ("ViewBase", |row| {
        hex(row.event_of(VIEWS).and_then(|event| row.file.listing.view(event).base))
    }),
    ("ViewSize", |row| {
        number(row.event_of(VIEWS).and_then(|event| row.file.listing.view(event).size))
    }),
    ("File Object", |row| {
        hex(row.event_of(VIEWS).and_then(|event| row.file.listing.view(event).file_object))
    }),
    ("File Offset", |row| {
        number(row.event_of(VIEWS).and_then(|event| row.file.listing.view(event).offset))
    }),
    ("RefChange", |row| {
        number(row.event_of(REFERENCE_CHANGES).and_then(|event| row.file.listing.ref_delta(event)))
    }),
    ("Lifetime in s (9999 is not closed)", |row| {
        of_event(row, |row| seconds(row.object.lifetime_ns.unwrap_or(UNKNOWN_LIFETIME_NS)))
    }),
    ("MultiProcess", |row| of_event(row, |row| yes_or_no(row.object.is_multiprocess))),
    ("MaxRefCount", |row| of_event(row, |row| row.object.max_ref_count.to_string())),
    ("Overlapped (Opened multiple times)", |row| {
        of_event(row, |row| yes_or_no(row.object.is_overlapped))
    }),
    ("Inherited by Process", |row| match row.event_of(INHERITABLE) {
        Some(_) => row.object.inherited_by.as_str().into(),
        None => "".into(),
    }),
    ("Process", |row| row.file.marked(row.process()).into()),
    ("ProcessName", |row| row.file.process_name(row.process()).into()),
    ("Start Time", |row| {
        number(row.process().start_ns.map(|start_ns| row.file.clock.at(start_ns)))
    }),
    ("CommandLine", |row| row.arguments().into()),
];

fn event_name(what: &What) -> &'static str {
    let What::Event(_, event) = what else { return "Existing Handle" };
    match event.kind {
        EventKind::HandleCreate => "HandleCreateEvent",
        EventKind::HandleDuplicate => "HandleDuplicateEvent",
        EventKind::HandleClose => "HandleCloseEvent",
        EventKind::Reference | EventKind::Dereference => "RefCountChangeEvent",
        EventKind::Map => "FileMapEvent",
        EventKind::Unmap => "FileUnmapEvent",
        // ETWAnalyzer has no rows for these two.
        EventKind::ObjectCreate => "ObjectCreateEvent",
        EventKind::ObjectDelete => "ObjectDeleteEvent",
    }
}

fn source_process<'r>(row: &'r Row<'_>) -> Cow<'r, str> {
    let Some(event) = row.event_of(DUPLICATES) else { return "".into() };
    let source = row.file.listing.duplicate(event).source_process;
    row.file.marked(row.file.answer.file.processes.known_or_invalid(source)).into()
}

/// A fact about the object, which ETWAnalyzer leaves out behind handles that were open at the end.
fn of_event<'r>(row: &'r Row<'_>, fact: impl Fn(&Row<'_>) -> String) -> Cow<'r, str> {
    match row.event() {
        Some(_) => fact(row).into(),
        None => "".into(),
    }
}

/// A value that may be unknown.
fn number(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map_or_else(String::new, |value| value.to_string()).into()
}

fn hex(value: Option<u64>) -> Cow<'static, str> {
    value.map_or_else(String::new, |value| format!("0x{value:X}")).into()
}

/// Seconds with as many digits as they have.
fn seconds(ns: i64) -> String {
    (ns as f64 / 1e9).to_string()
}

/// As .NET writes them.
fn yes_or_no(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}
