//! The events of objects as rows, for programs.

use std::io;

use handlescope_model::ProcessIdx;
use handlescope_model::rules::{OPENING, WITH_HANDLE};

use super::index;
use crate::{
    cancel::{Cancel, Poll},
    query::{DuplicateRow, FileAnswer, Listing, ObjectRefAnswer, Selected},
    render::{
        ObjectRefStyle,
        event_item::{EventItem, StackTexts},
        table::{Columns, Part, Show, Table},
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
    item: EventItem<'a>,
    /// The number of the stack, as in JSON.
    stack: Option<u64>,
    stack_text: Option<String>,
}

/// Calls `write` with tables of all events, the handles that were open at the end after those of
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
        let mut stacks = StackTexts::new(file, first_stack, style.criteria.stacks);
        first_stack += file.about.stack_count as u64;
        for &object in file.selection.objects() {
            poll.round().map_err(io::Error::other)?;
            for item in EventItem::of_object(file, listing, object) {
                let (stack, stack_text) = stacks.show(&item);
                rows.push(Row { answer: file, listing, object, item, stack, stack_text });
            }
            if rows.len() >= BATCH {
                write(&table(std::mem::take(&mut rows), style)?)?;
            }
        }
    }
    write(&table(rows, style)?)
}

/// The members of objects and events in `docs/dump-json.md`, side by side.
fn table<'a>(rows: Vec<Row<'a>>, style: &ObjectRefStyle<'_>) -> io::Result<Table<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("file", |row| index(row.answer.about.index));
    columns.add("id", |row| row.object.id());
    columns.add("pointer", |row| row.listing.pointer(row.object.object())).show(Show::Hex);
    columns.add("name", |row| row.listing.name(row.object.object()));
    columns.add("type", Row::object_type);
    columns.add("lifetime_s", Row::lifetime_s);
    columns.add("is_multiprocess", |row| row.listing.is_multiprocess(row.object.object()));
    columns.add("is_overlapped", |row| row.listing.is_overlapped(row.object.object()));
    columns.add("kind", |row| row.item.event().map_or(EXISTING, |event| event.kind.name()));
    columns.add("time_ns", |row| row.item.event()?.time_ns);
    columns.add("pid", |row| row.item.process().known_pid());
    columns.add("process", |row| row.item.process().known_name());
    columns.add("tid", |row| row.item.event()?.tid);
    columns.add("handle", |row| row.item.handle()).show(Show::Hex);
    columns.add("leaked", Row::leaked);
    columns.add("closed_at_exit", Row::closed_at_exit);
    columns.add("closed_unseen", |row| row.item.unseen_close().map(|close| close.evidence.name()));
    columns.add("closed_after_ns", |row| row.item.unseen_close()?.after_ns);
    columns.add("closed_before_ns", |row| row.item.unseen_close()?.before_ns);
    columns.add("source_pid", |row| row.pid_of(|duplicate| duplicate.source_process));
    let source = |row: &Row<'a>| row.item.duplicate().and_then(|duplicate| duplicate.source_handle);
    columns.add("source_handle", source).show(Show::Hex);
    columns.add("caller_pid", |row| row.pid_of(|duplicate| duplicate.caller_process));
    columns.add("inherited_by_pid", |row| row.pid_of(|duplicate| duplicate.inherited_by));
    columns.add("ref_delta", |row| row.item.ref_delta());
    columns.add("view_base", |row| row.item.view()?.base).show(Show::Hex);
    columns.add("view_size", |row| row.item.view()?.size);
    columns.add("byte_offset", |row| row.item.view()?.offset);
    columns.add("file_object", |row| row.item.view()?.file_object).show(Show::Hex);
    columns.add("stack", |row| row.stack);
    if style.criteria.stacks.show {
        columns.add("stack_text", |row| row.stack_text.clone());
    }
    let parts = [Part::rows_of(rows.len())];
    Table::new("events", columns, rows, parts)
}

impl<'a> Row<'a> {
    fn object_type(&self) -> &'a str {
        let tables = &self.answer.file;
        tables.types.get(tables.objects.type_id(self.object.object()))
    }

    fn lifetime_s(&self) -> Option<f64> {
        Some(self.answer.lifetime_ns(self.listing, self.object)? as f64 / 1e9)
    }

    fn leaked(&self) -> Option<bool> {
        self.item.event_of(OPENING)?;
        Some(self.item.event()?.leaked)
    }

    fn closed_at_exit(&self) -> Option<bool> {
        self.item.event_of(WITH_HANDLE)?;
        self.item.event()?.closed_at_exit
    }

    fn pid_of(&self, process: impl Fn(DuplicateRow) -> Option<ProcessIdx>) -> Option<u32> {
        Some(self.answer.file.processes.get(process(self.item.duplicate()?)?).pid)
    }
}
