//! The events of objects as rows, for programs.

use std::{collections::HashSet, io};

use handlescope_model::rules::{Kinds, OPENING, REFERENCE_CHANGES, VIEWS};
use handlescope_model::{EventKind, ProcessIdx, StackIdx};

use super::index;
use crate::{
    cancel::{Cancel, Poll},
    query::{
        DuplicateRow, EventRow, FileAnswer, Listing, ObjectRefAnswer, ProcessInfo, Selected,
        ViewRow,
    },
    render::{
        ObjectRefStyle,
        table::{Columns, Part, Show, Table},
        text::StackStyle,
    },
};

/// Rows that are in memory at once.
const BATCH: usize = 1 << 16;

/// What the kind is called of a handle that was open at the end.
const EXISTING: &str = "existing_handle";

/// An event, or a handle that was open at the end.
struct Row<'a> {
    answer: &'a FileAnswer<'a>,
    listing: &'a Listing,
    object: Selected,
    what: What,
    /// The number of the stack, as in JSON.
    stack: Option<u64>,
    stack_text: Option<String>,
}

enum What {
    Event(usize, EventRow),
    Existing { owner: ProcessIdx, handle: u64 },
}

/// Calls `write` with tables of all events, the handles that were open at the end behind those of
/// their objects. There is at least one table.
pub(super) fn for_each_batch(
    answer: &ObjectRefAnswer<'_>,
    style: &ObjectRefStyle<'_>,
    cancel: &Cancel,
    write: &mut dyn FnMut(&Table<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (mut rows, mut poll, mut first_stack) = (Vec::new(), Poll::new(cancel), 0);
    for file in &answer.files {
        let Some(listing) = &file.listing else { continue };
        let mut stacks = Stacks::new(file, first_stack, style);
        first_stack += file.stack_count as u64;
        for &object in file.selection.objects() {
            poll.round().map_err(io::Error::other)?;
            let row = |what, (stack, stack_text)| Row {
                answer: file,
                listing,
                object,
                what,
                stack,
                stack_text,
            };
            for event in file.events(object) {
                let Some(known) = listing.event(event) else { continue };
                rows.push(row(What::Event(event, known), stacks.show(known.stack)));
            }
            let existing = file.file.objects.existing(object.object());
            let handles = listing.existing(existing);
            rows.extend(
                handles.map(|(owner, handle)| row(What::Existing { owner, handle }, (None, None))),
            );
            if rows.len() >= BATCH {
                write(&table(&rows, style)?)?;
                rows.clear();
            }
        }
    }
    write(&table(&rows, style)?)
}

/// The stacks of one trace.
struct Stacks<'a> {
    /// Added to the rows of stacks, so that stacks of several traces have different numbers.
    first: u64,
    seen: HashSet<StackIdx>,
    style: StackStyle<'a>,
}

impl<'a> Stacks<'a> {
    fn new(file: &'a FileAnswer<'_>, first: u64, style: &ObjectRefStyle<'_>) -> Stacks<'a> {
        Stacks { first, seen: HashSet::new(), style: StackStyle::of(file, style.criteria.stacks) }
    }

    /// The number of a stack; at its first use also its frames, if they are to be shown.
    fn show(&mut self, stack: Option<StackIdx>) -> (Option<u64>, Option<String>) {
        let Some(stack) = stack else { return (None, None) };
        let lines = self.style.lines(stack).filter(|_| self.seen.insert(stack));
        let text = lines.map(|lines| lines.collect::<Vec<_>>().join("\n"));
        (Some(self.first + u64::from(stack.0)), text)
    }
}

/// The members of objects and events in `docs/dump-json.md`, side by side.
fn table<'a>(rows: &[Row<'_>], style: &ObjectRefStyle<'_>) -> io::Result<Table<'a>> {
    let mut columns = Columns::of(rows);
    columns.add("file", |row| index(row.answer.index()));
    columns.add("id", |row| row.object.id());
    columns.add("pointer", |row| row.listing.pointer(row.object.object())).show(Show::Hex);
    columns.add("name", |row| row.listing.name(row.object.object()));
    columns.add("type", Row::object_type);
    columns.add("lifetime_s", Row::lifetime_s);
    columns.add("is_multiprocess", |row| row.listing.is_multiprocess(row.object.object()));
    columns.add("is_overlapped", |row| row.listing.is_overlapped(row.object.object()));
    columns.add("kind", |row| row.event().map_or(EXISTING, |event| event.kind.name()));
    columns.add("time_ns", |row| row.event().map(|event| event.time_ns));
    columns.add("pid", |row| row.process().pid);
    columns.add("process", |row| row.process().name.as_str());
    columns.add("tid", |row| row.event().map(|event| event.tid));
    columns.add("handle", Row::handle).show(Show::Hex);
    columns.add("leaked", Row::leaked);
    columns.add("source_pid", |row| row.pid_of(|duplicate| duplicate.source_process));
    let source = |row: &Row<'_>| row.duplicate().and_then(|duplicate| duplicate.source_handle);
    columns.add("source_handle", source).show(Show::Hex);
    columns.add("caller_pid", |row| row.pid_of(|duplicate| duplicate.caller_process));
    columns.add("inherited_by_pid", |row| row.pid_of(|duplicate| duplicate.inherited_by));
    columns.add("ref_delta", Row::ref_delta);
    columns.add("view_base", |row| row.view()?.base).show(Show::Hex);
    columns.add("view_size", |row| row.view()?.size);
    columns.add("byte_offset", |row| row.view()?.offset);
    columns.add("file_object", |row| row.view()?.file_object).show(Show::Hex);
    columns.add("stack", |row| row.stack);
    if style.criteria.stacks.show {
        columns.add("stack_text", |row| row.stack_text.as_deref());
    }
    Table::new("events", columns, [Part::rows_of(rows.len())])
}

impl Row<'_> {
    fn event(&self) -> Option<&EventRow> {
        match &self.what {
            What::Event(_, event) => Some(event),
            What::Existing { .. } => None,
        }
    }

    /// The row of an event of some kinds.
    fn event_of(&self, kinds: Kinds) -> Option<usize> {
        match &self.what {
            What::Event(row, event) if kinds.contains(event.kind) => Some(*row),
            _ => None,
        }
    }

    fn object_type(&self) -> &str {
        let tables = &self.answer.file;
        tables.types.get(tables.objects.type_id(self.object.object()))
    }

    fn lifetime_s(&self) -> Option<f64> {
        Some(self.answer.lifetime_ns(self.listing, self.object)? as f64 / 1e9)
    }

    /// The process that acted, or that has the handle.
    fn process(&self) -> &ProcessInfo {
        let row = match &self.what {
            What::Event(_, event) => event.process,
            What::Existing { owner, .. } => *owner,
        };
        self.answer.file.processes.get(row)
    }

    fn handle(&self) -> Option<u64> {
        match &self.what {
            What::Event(_, event) => event.handle,
            What::Existing { handle, .. } => Some(*handle),
        }
    }

    fn leaked(&self) -> Option<bool> {
        self.event_of(OPENING)?;
        Some(self.event()?.leaked)
    }

    fn duplicate(&self) -> Option<DuplicateRow> {
        Some(self.listing.duplicate(self.event_of(Kinds::of(&[EventKind::HandleDuplicate]))?))
    }

    fn pid_of(&self, process: impl Fn(DuplicateRow) -> Option<ProcessIdx>) -> Option<u32> {
        Some(self.answer.file.processes.get(process(self.duplicate()?)?).pid)
    }

    fn view(&self) -> Option<ViewRow> {
        Some(self.listing.view(self.event_of(VIEWS)?))
    }

    fn ref_delta(&self) -> Option<i32> {
        self.listing.ref_delta(self.event_of(REFERENCE_CHANGES)?)
    }
}
