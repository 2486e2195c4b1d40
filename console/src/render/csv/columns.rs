//! The columns in ETWAnalyzer's order, each with what stands in it.

use std::borrow::Cow;

use handlescope_model::{EventKind, rules::Kinds};

use super::row::Row;
use crate::{query::UNKNOWN_LIFETIME_NS, render::event_item::EventItem};

/// A header, and the value of a row below it.
type Column = (&'static str, for<'r> fn(&'r Row<'_>) -> Cow<'r, str>);

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
    ("EventName", |row| event_name(&row.item).into()),
    ("Time", |row| number(row.item.event().and_then(|event| event.time_ns))),
    ("Thread Id", |row| number(row.item.event().and_then(|event| event.tid))),
    ("Handle Value", |row| hex(row.item.handle())),
    ("Type", |row| row.object.kind.into()),
    ("Object Name", |row| row.object.name.into()),
    ("Object Ptr", |row| hex(row.object.pointer)),
    ("SourceProces", source_process),
    ("SourceHandleValue", |row| {
        hex(row.item.duplicate().and_then(|duplicate| duplicate.source_handle))
    }),
    ("ViewBase", |row| hex(row.item.view().and_then(|view| view.base))),
    ("ViewSize", |row| number(row.item.view().and_then(|view| view.size))),
    ("File Object", |row| hex(row.item.view().and_then(|view| view.file_object))),
    ("File Offset", |row| number(row.item.view().and_then(|view| view.offset))),
    ("RefChange", |row| number(row.item.ref_delta())),
    ("Lifetime in s (9999 is not closed)", |row| {
        of_event(row, |row| match row.object.lifetime_ns {
            None if row.object.is_ended => String::new(),
            lifetime => seconds(lifetime.unwrap_or(UNKNOWN_LIFETIME_NS)),
        })
    }),
    ("MultiProcess", |row| of_event(row, |row| yes_or_no(row.object.is_multiprocess))),
    ("MaxRefCount", |row| of_event(row, |row| row.object.max_ref_count.to_string())),
    ("Overlapped (Opened multiple times)", |row| {
        of_event(row, |row| yes_or_no(row.object.is_overlapped))
    }),
    ("Inherited by Process", |row| match row.item.event_of(INHERITABLE) {
        Some(_) => row.object.inherited_by.as_str().into(),
        None => "".into(),
    }),
    ("Process", |row| row.file.marked(row.item.process()).into()),
    ("ProcessName", |row| row.file.process_name(row.item.process()).into()),
    ("Start Time", |row| {
        number(row.item.process().start_ns.map(|start_ns| row.file.clock.at(start_ns)))
    }),
    ("CommandLine", |row| row.arguments().into()),
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

fn source_process<'r>(row: &'r Row<'_>) -> Cow<'r, str> {
    let Some(duplicate) = row.item.duplicate() else { return "".into() };
    let processes = &row.file.answer.file.processes;
    row.file.marked(processes.known_or_invalid(duplicate.source_process)).into()
}

/// A fact about the object, which ETWAnalyzer leaves out behind handles that were open at the end.
fn of_event<'r>(row: &'r Row<'_>, fact: impl Fn(&Row<'_>) -> String) -> Cow<'r, str> {
    match row.item.event() {
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
