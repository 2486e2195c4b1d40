//! The document of `.dump ObjectRef`.

use std::io::{self, Write};

use serde::Serialize;

use super::events::objects;
use crate::query::{CountBy, Counted, GuiHandles, HandleCounts, LeftOut, ObjectRefAnswer};
use crate::render::json::{self, Document, Rows, traces};
use crate::render::style::ObjectRefStyle;
use crate::values::JsonMode;

pub(super) fn write_document(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let traces = traces(&answer.files);
    let by = CountBy::of(args.criteria);
    let counts = by.zip(answer.handle_counts.as_ref());
    let is_of_several = answer.files.len() > 1;
    let not_closed = counts.map(|(by, counts)| not_closed(counts, by, is_of_several, args));
    let has_left_out = args.criteria.top.is_some() && by.is_none();
    let gui_handles = answer.files.iter().flat_map(|file| &file.gui_handles);
    let gui_handles: Vec<&GuiHandles> = gui_handles.collect();
    let head = Document::default()
        .with("command", args.text)
        .files(&traces)
        .with("totals", answer.totals())
        .caveats(&traces)
        .with_some("gui_handles", Some(gui_handles).filter(|handles| !handles.is_empty()))
        .with_some("not_closed", not_closed)
        .with_some("left_out", has_left_out.then(|| left_out(answer)));
    let tail = Document::default().stacks_if(args.criteria.stacks.show, &traces);
    json::write(&Rows { head, name: "objects", rows: objects(answer, &traces), tail }, mode, out)
}

/// Objects that `-TopN` leaves out; the handles include views.
fn left_out(answer: &ObjectRefAnswer<'_>) -> Document<'static> {
    let mut sum = LeftOut::default();
    answer.files.iter().for_each(|file| sum += file.left_out);
    Document::default()
        .with("objects", sum.objects)
        .with("handles", sum.handles + sum.views)
        .with("views", sum.views)
        .with("existing_handles", sum.existing)
}

/// A name with its count, and, of a process of one of several traces, the number of the file.
#[derive(Serialize)]
#[serde(untagged)]
enum CountJson<'a> {
    Name(&'a str, u64),
    NameInFile(&'a str, u64, usize),
}

/// Returns the numbers of handles that are not closed, and of those that `-TopN` leaves out.
fn not_closed<'a>(
    counts: &'a HandleCounts,
    by: CountBy,
    is_of_several: bool,
    args: &ObjectRefStyle<'_>,
) -> Document<'a> {
    let rows = counts.rows(by, args.criteria.top, args.criteria.order);
    let sum = rows.sum();
    let left_out = Document::default().with("rows", rows.left_out).with("count", rows.left_out_sum);
    let rows = rows.rows.iter().map(|row| match is_of_several && by == CountBy::Process {
        true => CountJson::NameInFile(row.name, row.count, row.file),
        false => CountJson::Name(row.name, row.count),
    });
    Document::default()
        .with("by", by)
        .with(
            "counted",
            match counts.counted {
                Counted::OpenAtEnd => "open_at_end",
                Counted::OpenByEvents { has_start: true } => "open_by_events_and_start",
                Counted::OpenByEvents { has_start: false } => "open_by_events",
                Counted::Leaked => "leaked",
                Counted::ClosedAtExit => "closed_at_exit",
                Counted::LeakedOrAtExit => "leaked_or_closed_at_exit",
            },
        )
        .with("order", args.criteria.order)
        .with("rows", rows.collect::<Vec<_>>())
        .with("sum", sum)
        .with("left_out", left_out)
        .with("process_count", counts.process_count())
}
