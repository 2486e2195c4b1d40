//! The document of `.dump ObjectRef`.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::events::objects;
use crate::json;
use crate::table::{Columns, DocumentWithRows};
use crate::text::ObjectRefStyle;
use crate::traces::{OfTraces, totals_columns, traces};
use handlescope_query::{
    CountBy, CountRow, CountRows, CountedHandles, GuiHandles, HandleCounts, ObjectRefAnswer,
    ObjectsLeftOut,
};
use handlescope_session::values::JsonMode;

/// An answer and the options it was requested with.
type ObjectRefHead<'a> = OfTraces<'a, (&'a ObjectRefAnswer<'a>, &'a ObjectRefStyle<'a>)>;

pub fn write_document<'a>(
    answer: &'a ObjectRefAnswer<'a>,
    args: &'a ObjectRefStyle<'a>,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let traces = traces(&answer.files);
    let rows = objects(answer, &traces);
    let document = object_ref_document().part(OfTraces { traces, rest: (answer, args) });
    json::write(&DocumentWithRows { members: &|take| document.each(take), rows }, mode, out)
}

/// Declares the document of `.dump ObjectRef`.
pub fn object_ref_document<'a>() -> Columns<'a, ObjectRefHead<'a>> {
    let mut document = Columns::<ObjectRefHead<'a>>::default();
    document.member("command", "the command as typed", |of| of.rest.1.text).for_programs();
    document.files("the traces, see below");
    document.member(
        "totals",
        "sums over the objects and events that passed the filters, over all files; with `-Suspect`, \
         and neither `-Leak` nor `-LeakAtExit`, over all handles of the suspect, though `objects` \
         has only the leaked ones",
        |of| totals_columns().part(of.rest.0.totals()),
    );
    document.caveats(
        "what makes the answer wrong or incomplete, see below; `[]` if nothing is known to",
        "only if nothing matches: the filter that removed everything, see below",
    );
    document.member_if(
        "gui_handles",
        "only if the options also select GDI or USER handles and a trace has some: one object per \
         trace and kind, see below",
        |of| {
            let handles: Vec<&GuiHandles> =
                of.rest.0.files.iter().flat_map(|file| &file.gui_handles).collect();
            (!handles.is_empty()).then(|| gui_handle_columns().parts_of(handles))
        },
    );
    document.member_if(
        "not_closed",
        "only with `-ShowTotal Total`, `Process` or `File`: handles open at the end, or leaked",
        |of| {
            let (answer, args) = of.rest;
            let (by, counts) = (args.criteria.count_by?, answer.handle_counts.as_ref()?);
            let rows = counts.rows(by, args.criteria.top, args.criteria.order);
            let has_files = answer.files.len() > 1 && by == CountBy::Process;
            Some(not_closed_columns().part(NotClosed { counts, by, rows, has_files, args }))
        },
    );
    document
        .part_if(
            "left_out",
            "only with `-TopN` and without these options: what `objects` omits",
            left_out_columns(),
            |of| {
                let (answer, args) = of.rest;
                let has_left_out = args.criteria.top.is_some() && args.criteria.count_by.is_none();
                has_left_out.then(|| left_out(answer))
            },
        )
        .for_programs();
    document.rows(
        "objects",
        "the objects that passed; `[]` with `-ShowTotal Total`, `Process` or `File`",
    );
    document
        .stacks("only with `-ShowStack`: the stacks of the events in `objects`", |(_, args)| {
            args.criteria.stacks.show
        });
    document
}

/// Declares the columns for what `-TopN` leaves out.
fn left_out_columns<'a>() -> Columns<'a, ObjectsLeftOut> {
    const OMITTED: &str =
        "number of omitted objects, and of the handles and views that their events opened";
    let mut columns = Columns::<ObjectsLeftOut>::default();
    columns.member("objects", OMITTED, |sum| sum.objects);
    columns.member("handles", OMITTED, |sum| sum.handles + sum.views);
    columns.member("views", "the views among these", |sum| sum.views);
    columns.member(
        "existing_handles",
        "further handles of those objects that the rundown at the end lists and no event opened \
         or closed",
        |sum| sum.existing,
    );
    columns
}

fn left_out(answer: &ObjectRefAnswer<'_>) -> ObjectsLeftOut {
    let mut sum = ObjectsLeftOut::default();
    answer.files.iter().for_each(|file| sum += file.left_out);
    sum
}

/// The counts of handles that are not closed.
pub struct NotClosed<'a> {
    counts: &'a HandleCounts,
    by: CountBy,
    rows: CountRows<'a>,
    /// Whether rows contain file numbers.
    has_files: bool,
    args: &'a ObjectRefStyle<'a>,
}

impl NotClosed<'_> {
    /// Returns names with their counts, and file numbers if the names are of processes in several traces.
    fn rows(&self) -> Vec<Value> {
        let row = |row: &CountRow<'_>| {
            if self.has_files {
                json!([row.name, row.count, row.file])
            } else {
                json!([row.name, row.count])
            }
        };
        self.rows.rows.iter().map(row).collect()
    }
}

/// Declares the counts of handles that are not closed, and of those left out by `-TopN`.
pub fn not_closed_columns<'a>() -> Columns<'a, NotClosed<'a>> {
    const LEFT_OUT: &str = "number of rows, and of the handles they count";
    let mut columns = Columns::<NotClosed<'a>>::default();
    columns.member(
        "by",
        "`\"type\"` (`-ShowTotal Total`), `\"process\"` (`-ShowTotal Process`) or `\"file\"` \
         (`-ShowTotal File`)",
        |row| row.by,
    );
    columns.member("counted", "see above", |row| match row.counts.counted {
        CountedHandles::OpenAtEnd => "open_at_end",
        CountedHandles::OpenByEvents { has_start: true } => "open_by_events_and_start",
        CountedHandles::OpenByEvents { has_start: false } => "open_by_events",
        CountedHandles::Leaked => "leaked",
        CountedHandles::ClosedAtExit => "closed_at_exit",
        CountedHandles::LeakedOrAtExit => "leaked_or_closed_at_exit",
    });
    columns.member(
        "order",
        "`\"largest_last\"`; `\"largest_first\"` with `-SortBy Handles`; `\"name\"` with `-SortBy \
         Type`, `Process` or `File`",
        |row| row.args.criteria.order,
    );
    columns.member(
        "rows",
        "`[name, count]` pairs in that order. By process with several files: `[name, count, \
         file]`, because a process belongs to one trace. A process is `name.exe(pid)`, a file is \
         its `path`, even without open handles. With `-TopN n skip`, the n largest after the \
         `skip` largest",
        NotClosed::rows,
    );
    columns.member("sum", "sum of the rows shown", |row| row.rows.sum());
    let mut left_out = Columns::<(usize, u64)>::default();
    left_out.member("rows", LEFT_OUT, |(rows, _)| *rows);
    left_out.member("count", LEFT_OUT, |(_, count)| *count);
    columns.part_if("left_out", "rows that `-TopN` omits:", left_out, |row| {
        Some((row.rows.left_out, row.rows.left_out_sum))
    });
    columns.member(
        "process_count",
        "number of processes among all counted handles, including those not shown",
        |row| row.counts.process_count(),
    );
    columns
}

/// Declares the counts of GDI or USER handles in a trace.
pub fn gui_handle_columns<'a>() -> Columns<'a, &'a GuiHandles> {
    const CREATED: &str = "number of handles created and closed";
    let mut columns = Columns::<&GuiHandles>::default();
    columns.member("file", "the index of the trace", |handles| handles.file);
    columns.member("kind", "`\"gdi\"` or `\"user\"`", |handles| handles.kind);
    columns.member("created", CREATED, |handles| handles.created);
    columns.member("closed", CREATED, |handles| handles.closed);
    columns.member("leaked", "number never closed", |handles| handles.leaked);
    columns.member("closed_at_exit", "number closed only by the end of their process", |handles| {
        handles.closed_at_exit
    });
    columns.member("leaked_by_type", "`[type, count]` pairs of both, by name", |handles| {
        &handles.leaked_by_type
    });
    columns
}
