//! Columns in ETWAnalyzer's order, each with its value.

use std::borrow::Cow;

use handlescope_model::{EventKind, rules::Kinds};

use super::row::{CsvRow, ObjectFacts, hex};
use crate::event_item::EventItem;

/// A header, and the value of a row below it.
pub type Column = (&'static str, for<'r> fn(&'r CsvRow<'_>) -> Cow<'r, str>);

const INHERITABLE: Kinds = Kinds::new(&[EventKind::HandleDuplicate, EventKind::HandleClose]);

/// All columns. The headers are ETWAnalyzer's, slips included, because scripts know them.
pub static COLUMNS: &[Column] = &[
    ("CSVOptions", |row| row.options.into()),
    ("FileName", |row| row.file.name.as_str().into()),
    ("Date", |row| row.file.date.as_str().into()),
    ("TestCase", |row| row.file.name.as_str().into()),
    // The duration of a test and the tested version are not known.
    ("Test Time in ms", |_| "".into()),
    ("Baseline", |_| "".into()),
    ("Id", |row| row.object.id.as_str().into()),
    ("Stack", |row| row.stack.as_str().into()),
    ("EventName", |row| event_name(&row.item).into()),
    ("Time", |row| number(row.item.event().and_then(|event| event.time_ns))),
    ("Thread Id", |row| number(row.item.event().and_then(|event| event.tid))),
    ("Handle Value", |row| hex_or_empty(row.item.handle())),
    ("Type", |row| row.object.kind.into()),
    ("Object Name", |row| row.object.name.into()),
    ("Object Ptr", |row| row.object.pointer.as_str().into()),
    ("SourceProces", source_process),
    ("SourceHandleValue", |row| {
        hex_or_empty(row.item.event().and_then(|event| event.duplicate()?.source_handle))
    }),
    ("ViewBase", |row| hex_or_empty(row.item.event().and_then(|event| event.view()?.base))),
    ("ViewSize", |row| number(row.item.event().and_then(|event| event.view()?.size))),
    ("File Object", |row| {
        hex_or_empty(row.item.event().and_then(|event| event.view()?.file_object))
    }),
    ("File Offset", |row| number(row.item.event().and_then(|event| event.view()?.offset))),
    ("RefChange", |row| number(row.item.event().and_then(|event| event.ref_delta()))),
    ("Lifetime in s (9999 is not closed)", |row| of_event(row, |object| &object.lifetime)),
    ("MultiProcess", |row| of_event(row, |object| yes_or_no(object.is_multiprocess))),
    ("MaxRefCount", |row| of_event(row, |object| &object.max_ref_count)),
    ("Overlapped (Opened multiple times)", |row| {
        of_event(row, |object| yes_or_no(object.is_overlapped))
    }),
    ("Inherited by Process", |row| match row.item.event_of(INHERITABLE) {
        Some(_) => row.object.inherited_by.as_str().into(),
        None => "".into(),
    }),
    ("Process", |row| row.process().marked.as_str().into()),
    ("ProcessName", |row| row.process().name.into()),
    ("Start Time", |row| row.process().start.as_str().into()),
    ("CommandLine", |row| row.process().arguments.into()),
];

/// Columns behind these, with `-ShowTarget`.
pub static TARGET_COLUMNS: &[Column] = &[
    ("Target", |row| row.object.target.label.as_str().into()),
    ("Target Start", |row| row.object.target.start.as_str().into()),
    ("Target End", |row| row.object.target.end.as_str().into()),
    ("Target Started By", |row| row.object.target.started_by.as_str().into()),
    ("Target Function", |row| row.object.target.function.as_str().into()),
];

fn event_name(item: &EventItem<'_>) -> &'static str {
    let Some(event) = item.event() else { return "Existing Handle" };
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

fn source_process<'r>(row: &'r CsvRow<'_>) -> Cow<'r, str> {
    let duplicate = row.item.event().and_then(|event| event.duplicate());
    duplicate.map_or("", |it| row.file.process(it.source_process).marked.as_str()).into()
}

/// Returns a fact about the object. ETWAnalyzer leaves it out for handles that were open at the end.
fn of_event<'r>(
    row: &'r CsvRow<'_>,
    fact: impl Fn(&'r ObjectFacts<'_>) -> &'r str,
) -> Cow<'r, str> {
    match row.item.event() {
        Some(_) => fact(row.object).into(),
        None => "".into(),
    }
}

/// Formats a value that may be unknown.
fn number(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map_or_else(String::new, |value| value.to_string()).into()
}

fn hex_or_empty(value: Option<u64>) -> Cow<'static, str> {
    value.map(hex).unwrap_or_default().into()
}

/// Formats a flag as .NET does.
fn yes_or_no(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
