//! The document of `.dump ObjectRef`.

use crate::json::Meanings;
use std::io::{self, Write};

use serde::Serialize;

use super::events::objects;
use crate::json::{self, Document, Rows, traces};
use crate::text::ObjectRefStyle;
use handlescope_query::{CountBy, Counted, GuiHandles, HandleCounts, LeftOut, ObjectRefAnswer};
use handlescope_session::values::JsonMode;

pub fn write_document(
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

/// Meanings of the members of the document of `.dump ObjectRef`.
pub const OBJECT_REF_MEMBERS: Meanings = &[
    ("command", "the command as typed"),
    ("files", "the traces, see below"),
    (
        "totals",
        "sums over the objects and events that passed the filters, over all files; with `-Suspect`, \
         and neither `-Leak` nor `-LeakAtExit`, over all handles of the suspect, though `objects` \
         has only the leaked ones",
    ),
    (
        "caveats",
        "what makes the answer wrong or incomplete, see below; `[]` if nothing is known to",
    ),
    ("no_match", "only if nothing matches: the filter that removed everything, see below"),
    (
        "gui_handles",
        "only if the options also select GDI or USER handles and a trace has some: one object per \
         trace and kind, see below",
    ),
    (
        "not_closed",
        "only with `-ShowTotal Total`, `Process` or `File`: handles open at the end, or leaked",
    ),
    ("left_out", "only with `-TopN` and without these options: what `objects` omits"),
    (
        "left_out.objects, left_out.handles",
        "number of omitted objects, and of the handles and views that their events opened",
    ),
    ("left_out.views", "the views among these"),
    (
        "left_out.existing_handles",
        "further handles of those objects that the rundown at the end lists and no event opened \
         or closed",
    ),
    ("objects", "the objects that passed; `[]` with `-ShowTotal Total`, `Process` or `File`"),
    ("stacks", "only with `-ShowStack`: the stacks of the events in `objects`"),
];

/// Meanings of the members of `totals` and `files.totals` in `.dump ObjectRef`.
pub const TOTALS_MEMBERS: Meanings = &[
    (
        "objects_created, objects_destroyed",
        "objects with a creation, and with an end, after the filters",
    ),
    ("handles_created, handles_duplicated, handles_closed", "handle events"),
    ("ref_changes", "reference and dereference events"),
    ("map_count, unmap_count", "views mapped and unmapped"),
    ("map_size, unmap_size", "their bytes"),
    ("leaked_handles", "creates, duplicates and maps with `leaked` true"),
    ("leaked_views", "the maps among these"),
    (
        "closed_at_exit",
        "creates, duplicates and maps with `closed_at_exit` true; with `-Leak`, which omits them, \
         those that `-LeakAtExit` would keep",
    ),
    (
        "closed_unseen",
        "creates, duplicates and maps with `closed_unseen` not null; with `-Leak` and \
         `-LeakAtExit`, which omit them, those that would be listed otherwise",
    ),
];

/// Meanings of the members of `gui_handles` in `.dump ObjectRef`.
pub const GUI_HANDLE_MEMBERS: Meanings = &[
    ("file", "the index of the trace"),
    ("kind", "`\"gdi\"` or `\"user\"`"),
    ("created, closed", "number of handles created and closed"),
    ("leaked", "number that nothing closed"),
    ("closed_at_exit", "number that only the end of their process closed"),
    ("leaked_by_type", "`[type, count]` pairs of both, by name"),
];

/// Meanings of the members of `not_closed` in `.dump ObjectRef`.
pub const NOT_CLOSED_MEMBERS: Meanings = &[
    (
        "by",
        "`\"type\"` (`-ShowTotal Total`), `\"process\"` (`-ShowTotal Process`) or `\"file\"` \
         (`-ShowTotal File`)",
    ),
    ("counted", "see above"),
    (
        "order",
        "`\"largest_last\"`; `\"largest_first\"` with `-SortBy Handles`; `\"name\"` with `-SortBy \
         Type`, `Process` or `File`",
    ),
    (
        "rows",
        "`[name, count]` pairs in that order. By process with several files: `[name, count, \
         file]`, because a process belongs to one trace. A process is `name.exe(pid)`, a file is \
         its `path`, even without open handles. With `-TopN n skip`, the n largest after the \
         `skip` largest",
    ),
    ("sum", "sum of the rows shown"),
    ("left_out", "rows that `-TopN` omits:"),
    ("left_out.rows, left_out.count", "number of rows, and of the handles they count"),
    ("process_count", "number of processes among all counted handles, including those not shown"),
];
