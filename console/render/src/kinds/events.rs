//! Objects and their events, declared once. A document nests events in their objects; files have a row for each event.

use std::{io, rc::Rc};

use handlescope_model::ProcessIdx;
use handlescope_model::rules::{OPENING, REFERENCE_CHANGES, VIEWS, WITH_HANDLE};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::index;
use crate::{
    ObjectRefStyle,
    event_item::{DUPLICATES, EventItem, TraceStackTexts},
    json::{Array, Hex},
    table::{AnswerTable, Columns, FileRows, PartOf, PartsOf, RowMembers},
    traces::{DocumentTraces, StackOffset, traces},
};
use handlescope_query::{FileAnswer, ListedDuplicate, ListedObject, ObjectRefAnswer, ProcessInfo};
use handlescope_session::cancel::{Cancel, Poll};

/// Maximum number of rows in memory at once.
const BATCH: usize = 1 << 16;

/// Name of the kind of a handle that was open at the end.
const EXISTING: &str = "existing_handle";

/// An object.
#[derive(Clone)]
pub struct ObjectListRow<'a> {
    object: ListedObject<'a>,
    numbers: StackOffset,
    parts: Rc<ObjectMembers<'a>>,
}

/// The members of parts of objects, declared once for all objects.
struct ObjectMembers<'a> {
    creator: Rc<RowMembers<'a, Creator<'a>>>,
    existing: Rc<RowMembers<'a, RemainingHandle>>,
}

impl ObjectMembers<'_> {
    fn new() -> Rc<Self> {
        let creator = Rc::new(creator_columns().in_document());
        Rc::new(ObjectMembers { creator, existing: Rc::new(existing_columns().in_document()) })
    }
}

/// An event of an object, or a handle to it that was open at the end.
pub struct ObjectEventRow<'a> {
    object: ObjectListRow<'a>,
    item: EventItem<'a>,
    stack_text: Option<String>,
}

/// Returns the objects of a document.
pub fn objects<'a>(
    answer: &'a ObjectRefAnswer<'a>,
    traces: &DocumentTraces<'a>,
) -> impl Serialize + 'a {
    let numbers: Vec<StackOffset> = traces.iter().map(|trace| trace.numbers).collect();
    Array(move || {
        let (files, parts) = (answer.files.iter().zip(numbers.clone()), ObjectMembers::new());
        files
            .flat_map(move |(file, numbers)| {
                ObjectListRow::from_file(file, numbers, Rc::clone(&parts))
            })
            .map(ObjectJson)
    })
}

/// Calls `write` with tables of all events. Handles that were open at the end follow the events of their object. There
/// is at least one table.
pub fn for_each_batch(
    answer: &ObjectRefAnswer<'_>,
    style: &ObjectRefStyle<'_>,
    cancel: &Cancel,
    write: &mut dyn FnMut(&AnswerTable<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (mut rows, mut poll) = (Vec::new(), Poll::new(cancel));
    for (file, trace) in answer.files.iter().zip(traces(&answer.files).iter()) {
        let mut stacks = TraceStackTexts::new(file, style.criteria.stacks);
        for object in ObjectListRow::from_file(file, trace.numbers, ObjectMembers::new()) {
            poll.round().map_err(io::Error::other)?;
            rows.extend(
                object
                    .items()
                    .map(|row| ObjectEventRow { stack_text: stacks.show(&row.item), ..row }),
            );
            if rows.len() >= BATCH {
                write(&table(std::mem::take(&mut rows), style)?)?;
            }
        }
    }
    write(&table(rows, style)?)
}

fn table<'a>(
    rows: Vec<ObjectEventRow<'a>>,
    style: &ObjectRefStyle<'_>,
) -> io::Result<AnswerTable<'a>> {
    let mut columns = Columns::<ObjectEventRow<'a>>::default();
    let shows_target = style.criteria.show_target;
    add_object(&mut columns, shows_target);
    add_event(&mut columns, shows_target);
    if style.criteria.stacks.show {
        columns.add("stack_text", "the frames of the stack, one per line", |row| {
            row.stack_text.clone()
        });
    }
    let file_rows = [FileRows::rows_of(rows.len())];
    AnswerTable::new(columns, rows, file_rows)
}

/// Declares the members of rows once, in the order of documents. They become columns for schemas and files, and a row
/// type for documents. That row type avoids type erasure when it is written, because there may be tens of millions of
/// rows.
///
/// Files have the members that begin with `file`. A member with `of` appears only in documents, for events of these
/// kinds.
macro_rules! members {
    ($json:ident($row:ident): $document_columns:ident, $add_to_file:ident from $part:expr;
        $($target:ident $name:literal, $meaning:literal
            $([$depth:ident])? $(as $kind:literal)? $(with $inner:expr)? $(, of $kinds:ident)?
            => $value:expr;)+) => {
        /// Members of a row in a document.
        pub fn $document_columns<'a>() -> Columns<'a, $row<'a>> {
            let mut columns = Columns::<$row<'a>>::default();
            $(members!(@document columns, $name, $meaning, $value $(, $kind)?)$(.inner($inner))?$(.$depth())?;)+
            columns
        }

        /// Adds the members that files have with each event.
        fn $add_to_file<'a>(columns: &mut Columns<'a, ObjectEventRow<'a>>, shows_target: bool) {
            let _ = shows_target;
            $(members!(@$target columns, shows_target, $name, $meaning, $part, $value);)+
        }

        impl Serialize for $json<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(members!(@entry $target map, &self.0, $name, $value $(, $kinds)?);)+
                map.end()
            }
        }
    };
    (@document $columns:ident, $name:literal, $meaning:literal, $value:expr) => {
        $columns.add($name, $meaning, $value)
    };
    (@document $columns:ident, $name:literal, $meaning:literal, $value:expr, $kind:literal) => {
        $columns.nest($name, $kind, $meaning, $value)
    };
    (@file $columns:ident, $shows:ident, $name:literal, $meaning:literal, $part:expr, $value:expr) => {
        $columns.add($name, $meaning, |row: &ObjectEventRow<'a>| valued(valued(row, $part), $value));
    };
    (@target $columns:ident, $shows:ident, $name:literal, $meaning:literal, $part:expr, $value:expr) => {
        if $shows {
            members!(@file $columns, $shows, $name, $meaning, $part, $value);
        }
    };
    (@only $columns:ident, $shows:ident, $name:literal, $meaning:literal, $part:expr, $value:expr) => {};
    (@entry target $map:ident, $row:expr, $name:literal, $value:expr) => {
        if $row.object.target().is_some() {
            $map.serialize_entry($name, &valued($row, $value))?;
        }
    };
    (@entry $target:ident $map:ident, $row:expr, $name:literal, $value:expr) => {
        $map.serialize_entry($name, &valued($row, $value))?;
    };
    (@entry $target:ident $map:ident, $row:expr, $name:literal, $value:expr, $kinds:ident) => {
        if $row.item.event_of($kinds).is_some() {
            members!(@entry $target $map, $row, $name, $value);
        }
    };
}

/// Returns the value of a member; this call lets the compiler infer the types of the declared closures.
fn valued<'r, R, T>(row: &'r R, value: impl FnOnce(&'r R) -> T) -> T {
    value(row)
}

/// An object in a document.
struct ObjectJson<'a>(ObjectListRow<'a>);

members! {
    ObjectJson(ObjectListRow): object_columns, add_object from |row: &ObjectEventRow<'a>| &row.object;
    file "file", "index of the trace" => |row| index(row.object.file.about.index);
    file "id", "number of the object in its trace, from 1; the same in every session"
        => |row| row.object.id();
    file "pointer", "kernel address; for a mapping `base OR (pid << 42)`" => |row| row.object.pointer().map(Hex);
    file "name", "name, or null" => |row| row.object.name();
    file "type", "name of the object type; `\"FileMapping\"` for views of files, `\"UnknownType\"` if no event names the \
                  type"
        => |row| row.object.type_name();
    file "lifetime_s", "time from creation to end; null if one of them is unknown"
        => |row| Some(row.object.lifetime_ns()? as f64 / 1e9);
    // Properties of the object that do not depend on filters of its events.
    only "first_create_ns", "time of creation" => |row| row.object.ends_ns()[0];
    only "last_destroy_ns", "time of the end" => |row| row.object.ends_ns()[1];
    only "creator", "process that created it; null without a creation" as "object?" with creator_columns().members()
        => |row| row.creator();
    file "is_multiprocess", "more than one process created, duplicated, referenced or mapped it" [for_programs]
        => |row| row.object.is_multiprocess();
    file "is_overlapped", "two of its handles were open at the same time" [for_programs]
        => |row| row.object.is_overlapped();
    target "target", "only with `-ShowTarget`, for processes and threads: name of the process that \
                      the handles refer to, or that the thread belongs to; null if unknown"
        => |row| row.object.target()??.process.known_name();
    target "target_pid", "only with `-ShowTarget`: id of that process; null if it is unknown"
        => |row| row.object.target()??.process.known_pid();
    target "target_tid", "only with `-ShowTarget`: id of the thread; null for a process"
        => |row| row.object.target()??.tid;
    target "target_state", "only with `-ShowTarget`: `\"ended\"`, `\"running\"`, or `\"unknown\"` if its end may be \
                            missing"
        => |row| Some(row.object.target()??.end.name());
    target "target_start_ns", "only with `-ShowTarget`: its start; null if before the trace or unknown"
        => |row| row.object.target()??.start_ns;
    target "target_end_ns", "only with `-ShowTarget`: its end, negative before the trace; null if \
                             it still runs or the end is unknown"
        => |row| row.object.target()??.end.time_ns();
    target "target_exit_code", "only with `-ShowTarget`: exit code of an ended process, if known"
        => |row| row.object.target()??.exit_code;
    target "target_started_by", "only with `-ShowTarget`: name of the process that started it; null if only its id is \
                                 known"
        => |row| row.object.target()??.started_by.as_ref()?.known_name();
    target "target_started_by_pid", "only with `-ShowTarget`: id of that process"
        => |row| row.object.target()??.started_by.as_ref()?.known_pid();
    target "target_function", "only with `-ShowTarget`: the function that a thread was started with, `module!function`, or \
                               `module+0xOFFSET` without symbols"
        => |row| row.object.target()??.start_function.as_deref();
    only "existing_handles", "its handles in the rundown" as "array" with existing_columns().members()
        => |row| row.existing_handles();
    only "events", "its events that passed the filters, in time order" as "array" => |row| {
        let row = row.clone();
        let events = move || row.clone().items().filter(|row| row.item.event().is_some());
        Array(move || events().map(EventJson))
    };
}

/// An event in a document.
struct EventJson<'a>(ObjectEventRow<'a>);

members! {
    EventJson(ObjectEventRow): object_event_columns, add_event from |row: &ObjectEventRow<'a>| row;
    file "kind", "`\"handle_create\"`, `\"handle_duplicate\"`, `\"handle_close\"`, `\"object_create\"`, \
                  `\"object_delete\"`, `\"reference\"`, `\"dereference\"`, `\"map\"`, `\"unmap\"`"
        => |row| row.item.event().map_or(EXISTING, |event| event.kind.name());
    file "time_ns", "time" => |row| row.item.event()?.time_ns;
    file "pid", "id of the process that owns the handle (for an inherited handle the parent, see `inherited_by_pid`); for \
                 other events the process that acted; null if unknown"
        => |row| row.item.process().known_pid();
    file "process", "name of that process" => |row| row.item.process().known_name();
    file "tid", "thread that made the call; for a duplicate it may belong to the caller"
        => |row| row.item.event()?.tid;
    file "handle", "only in handle events: handle value", of WITH_HANDLE
        => |row| row.item.handle().map(Hex);
    file "leaked", "only in creates, duplicates and maps: nothing in the trace closes it, and nothing shows that it was \
                    closed",
        of OPENING => |row| Some(row.item.event_of(OPENING)?.leaked);
    file "closed_at_exit", "only in handle events; for a close: made by the end of the process; for \
                            a create or duplicate: closed only by the end of the process, which had \
                            not inherited it",
        of WITH_HANDLE => |row| {
            Some(row.item.event_of(WITH_HANDLE)?.closed_at_exit)
        };
    file "view_base", "only in maps and unmaps: first address of the view",
        of VIEWS => |row| row.item.event()?.view()?.base.map(Hex);
    file "view_size", "only in maps and unmaps: size of the view in bytes",
        of VIEWS => |row| row.item.event()?.view()?.size;
    file "byte_offset", "only in maps and unmaps: offset of the view in the file",
        of VIEWS => |row| row.item.event()?.view()?.offset;
    file "file_object", "only in maps and unmaps: kernel key of the file",
        of VIEWS => |row| row.item.event()?.view()?.file_object.map(Hex);
    file "closed_unseen", "only in creates, duplicates and maps: the trace lost its close \
                           ([architecture.md](architecture.md#events-that-are-missing)), but something else \
                           shows it: `\"reused\"`, `\"not_in_rundown\"`, `\"process_ended\"`; null: it was not \
                           closed unseen",
        of OPENING => |row| Some(row.item.event()?.unseen_close()?.evidence.name());
    file "closed_after_ns", "only in creates, duplicates and maps: it was closed after this time; null: it was not \
                             closed unseen",
        of OPENING => |row| row.item.event()?.unseen_close()?.after_ns;
    file "closed_before_ns", "only in creates, duplicates and maps: it was closed before this time; null: it was not \
                              closed unseen",
        of OPENING => |row| row.item.event()?.unseen_close()?.before_ns;
    file "source_pid", "only in duplicates: process whose handle was duplicated; null if no process with that id was \
                        known at the time",
        of DUPLICATES => |row| row.pid_of(|duplicate| duplicate.source_process);
    file "source_handle", "only in duplicates: value of the handle that was duplicated",
        of DUPLICATES => |row| row.item.event()?.duplicate()?.source_handle.map(Hex);
    file "caller_pid", "only in duplicates: process that made the call",
        of DUPLICATES => |row| row.pid_of(|duplicate| duplicate.caller_process);
    file "inherited_by_pid", "only in duplicates: child process that inherited the handle",
        of DUPLICATES => |row| row.pid_of(|duplicate| duplicate.inherited_by);
    file "ref_delta", "only in references and dereferences: signed change of the reference count",
        of REFERENCE_CHANGES => |row| row.item.event()?.ref_delta();
    file "stack", "number of the stack, or null"
        => |row| Some(row.object.numbers.of(row.item.event()?.stack?));
}

/// The process that created an object.
type Creator<'a> = &'a ProcessInfo;

/// Declares the columns of the process that created an object.
fn creator_columns<'a>() -> Columns<'a, Creator<'a>> {
    const PROCESS: &str = "its id, name and start; a null start: it ran before the trace";
    let mut columns = Columns::<Creator<'a>>::default();
    columns.member("pid", PROCESS, |process| process.known_pid());
    columns.member("name", PROCESS, |process| process.known_name());
    columns.member_if(
        "pretty_name",
        "a better name, as in `\"svchost RDP Service\"`; omitted if there is none",
        |process| process.pretty_name,
    );
    columns.member("start_ns", PROCESS, |process| process.start_ns);
    columns
}

/// The process and the value of a handle that was open at the end.
type RemainingHandle = (u32, Option<u64>);

/// Declares the columns of a handle that was open at the end.
fn existing_columns<'a>() -> Columns<'a, RemainingHandle> {
    const HANDLE: &str = "process id and value of such a handle";
    let mut columns = Columns::<RemainingHandle>::default();
    columns.member("pid", HANDLE, |(pid, _)| *pid);
    columns.member("handle", HANDLE, |(_, handle)| handle.map(Hex));
    columns
}

impl<'a> ObjectListRow<'a> {
    /// Returns the objects of a trace that passed the filters.
    fn from_file(
        answer: &'a FileAnswer<'a>,
        numbers: StackOffset,
        parts: Rc<ObjectMembers<'a>>,
    ) -> impl Iterator<Item = ObjectListRow<'a>> {
        answer.objects().map(move |object| ObjectListRow {
            object,
            numbers,
            parts: Rc::clone(&parts),
        })
    }

    fn items(self) -> impl Iterator<Item = ObjectEventRow<'a>> {
        let items = EventItem::from_object(self.object);
        items.map(move |item| ObjectEventRow { object: self.clone(), item, stack_text: None })
    }

    fn creator(&self) -> Option<PartOf<'a, Creator<'a>>> {
        Some(PartOf(Rc::clone(&self.parts.creator), self.object.creator()?))
    }

    fn existing_handles(&self) -> PartsOf<'a, RemainingHandle> {
        let processes = &self.object.file.file.processes;
        let handles = self.object.existing();
        let handles = handles.map(|(owner, handle)| (processes.get(owner).pid, handle));
        PartsOf(Rc::clone(&self.parts.existing), handles.collect())
    }
}

impl ObjectEventRow<'_> {
    fn pid_of(&self, process: impl Fn(ListedDuplicate) -> Option<ProcessIdx>) -> Option<u32> {
        let process = process(self.item.event()?.duplicate()?)?;
        Some(self.item.object.file.file.processes.get(process).pid)
    }
}
