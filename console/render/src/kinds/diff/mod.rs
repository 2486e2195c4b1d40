//! `.diff`: a row for each group, and one file for each of its two answers.

mod compared;
mod points;
mod traces;

use std::io::{self, Write};

use handlescope_model::Untrusted;
use serde::Serialize;

pub use self::{
    compared::{add_side, add_state, compared_rows, compared_title, growth, rate, rates},
    points::{diff_points, point_columns},
    traces::{diff_findings, diff_traces, trace_columns},
};
use super::index;
use crate::{
    table::{Columns, MemberMeaning},
    text::{StackStyle, ignored_because},
    traces::{OfTraces, TraceJson, header_columns},
};
use handlescope_query::{Domain, GroupSite, TimeWindow, TraceAnswer};
use handlescope_session::settings::{Display, IgnoreEntry, StackDisplayArgs};

/// The compared time of a trace; null if the trace has no clock.
#[derive(Clone, Copy)]
struct TraceSpan {
    file: usize,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

impl TraceSpan {
    fn new<'t>(answer: &impl TraceAnswer<'t>, window: TimeWindow) -> Self {
        let about = answer.about();
        let window = about.info.has_clock().then_some(window);
        let (from_ns, to_ns) = window.map(|window| (window.start_ns, window.end_ns)).unzip();
        Self { file: about.index, from_ns, to_ns }
    }
}

/// A group of handles or allocations and its presentation.
pub struct DiffRow<'a, G> {
    /// The trace that has its stack.
    file: u32,
    group: &'a G,
    site: &'a GroupSite,
    /// The owner, or the name of the owners, as columns show it.
    process: Option<String>,
    pid: Option<u32>,
    stack_number: Option<u64>,
    stacks: StackStyle<'a>,
}

impl<'a, G> DiffRow<'a, G> {
    fn new<'t: 'a, F: TraceAnswer<'t>>(
        (answer, trace): (&'a F, &TraceJson<'_>),
        (group, site): (&'a G, &'a GroupSite),
        process: Option<String>,
        stacks: StackDisplayArgs,
    ) -> Self {
        Self {
            file: index(answer.about().index),
            group,
            site,
            process,
            pid: None,
            stack_number: site.stack.map(|stack| trace.numbers.of(stack)),
            // Stacks are shown in any case: abbreviated, or complete.
            stacks: StackStyle::for_answer(answer, StackDisplayArgs { show: true, ..stacks }),
        }
    }

    /// Writes the text of a group: a line about it, and the frames of its stack, all of them or the first ones of the
    /// program.
    fn write(
        &self,
        title: &str,
        all_frames: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let lines = self.stacks.short_lines(self.site.stack, all_frames);
        write_group(title, &lines, self.site.ignored.as_deref(), display, out)
    }
}

/// Writes the text of a group: a line about it, its frames, and why it is ignored, if it is.
pub fn write_group(
    title: &str,
    frames: &[String],
    ignored: Option<&IgnoreEntry>,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let indent = display.indent(1);
    writeln!(out, "{title}")?;
    frames.iter().try_for_each(|frame| writeln!(out, "{indent}{}", Untrusted(frame)))?;
    if let Some(entry) = ignored {
        writeln!(out, "{indent}{}", display.whole(&ignored_because(entry)))?;
    }
    writeln!(out)
}

/// Declares the columns of a group; `amounts` adds those of what is compared.
fn group_columns<'a, G: 'a>(
    domain: Domain,
    is_of_points: bool,
    amounts: impl FnOnce(&mut Columns<'a, DiffRow<'a, G>>),
) -> Columns<'a, DiffRow<'a, G>> {
    let mut columns = Columns::<DiffRow<'a, G>>::default();
    if is_of_points {
        columns.add("file", "only between points: index of the trace", |row| row.file);
    }
    columns.add("process", PROCESS, |row| row.process.clone()).title("Process");
    if is_of_points {
        columns.add(
            "pid",
            "only between points: process id of the owner; null if unknown",
            |row| row.pid,
        );
    }
    let unknown = if is_of_points { "-" } else { "" };
    match domain {
        Domain::Handles => {
            let name = |row: &DiffRow<'a, G>| {
                format!("{} {}", row.process.as_deref().unwrap_or_default(), row.site.type_name)
            };
            columns.add("name", "owner and type", name).rows_only();
            columns
                .add("type", "type of the objects", |row| row.site.type_name.as_str())
                .title("Type");
            if !is_of_points {
                columns.add(
                    "name_pattern",
                    "only of two dumps: names of the objects with # for numbers and GUIDs, of \
                     handles without a stack; else null",
                    |row| row.site.allocator.as_deref(),
                );
            }
        }
        Domain::Allocations => {
            columns
                .add("kind", "as in `.dump Resource`", |row| Some(row.site.type_name.as_str()))
                .title("Kind");
            let allocator = columns.add(
                "allocator",
                "as in `.dump Resource`; of two traces, null for heaps, because their handles differ",
                |row| row.site.allocator.as_deref(),
            );
            allocator.title("Allocator").unknown(unknown);
        }
    }
    columns.nest("create_stack", "integer?", CREATE_STACK, |row| row.stack_number).detail();
    amounts(&mut columns);
    let function = columns.add("function", FUNCTION, |row| row.site.function.as_deref());
    function.title("Function").follows("create_stack");
    if domain == Domain::Allocations {
        function.unknown(unknown);
    }
    columns
        .add("stack", "the frames of the stack, one per line", |row| {
            row.stacks.text(row.site.stack)
        })
        .rows_only();
    columns
}

/// Meanings of members that both comparisons have: between two points, and of two traces.
const PROCESS: &str = "between points: the owner, as in `leaky.exe(7316)`; of two traces: the name of the owners; null \
                       if unknown";
const CREATE_STACK: &str = "number of the stack in `stacks`; of two traces, in the trace after, \
                            else in the trace before; null: none";
const FUNCTION: &str = "the function of the program in that stack ([why.md](why.md#the-function))";

/// Two points or traces, and the compared time of each trace.
pub struct ComparisonHead<P> {
    a: P,
    b: P,
    spans: Vec<TraceSpan>,
    /// Number of groups that are known leaks.
    ignored: usize,
}

/// Declares the document of a comparison of handles or of allocations.
pub fn diff_document<'a, P: Serialize + Copy + 'a>(
    domain: Domain,
) -> Columns<'a, OfTraces<'a, ComparisonHead<P>>> {
    const TIME: &str = "the time; null: the trace has no clock";
    const POINTS: &str = "between points: the points as given, default `\"start\"` and `\"end\"`; of two traces: \
                          the index of the trace before and of the trace after";
    let meaning = |meaning: &'static str| match domain {
        Domain::Handles => meaning,
        Domain::Allocations => "as in `.dump Diff`",
    };
    let mut document = Columns::<OfTraces<'a, ComparisonHead<P>>>::default();
    document.kind(meaning("`\"Diff\"`"), "Diff");
    document.member("a", meaning(POINTS), |of| of.rest.a);
    document.member("b", meaning(POINTS), |of| of.rest.b);
    let files = document.files("the traces");
    if domain == Domain::Allocations {
        let members = header_columns().members().into_iter();
        let meaning = "as in `.dump ObjectRef`";
        files.inner(members.map(|member| MemberMeaning { meaning, ..member }).collect());
    }
    let mut spans = Columns::<TraceSpan>::default();
    spans.member("file", meaning("index of the trace"), |span| span.file);
    spans.member("from_ns", meaning(TIME), |span| span.from_ns);
    spans.member("to_ns", meaning(TIME), |span| span.to_ns);
    let compared = meaning("the compared time of each trace");
    document.parts("spans", compared, spans, |of| of.rest.spans.clone());
    document.member(
        "ignored",
        meaning("number of groups ignored by a list of known leaks"),
        |of| of.rest.ignored,
    );
    document.rows(
        "groups",
        match domain {
            Domain::Handles => {
                "groups of handles and views of one process, type and create stack, see below"
            }
            Domain::Allocations => {
                "between points: groups of one kind, allocator, process and create stack with \
                 something left at `b`, most bytes first; of two traces: groups of one kind, \
                 allocator, program and create stack that leak in either trace, worse ones first"
            }
        },
    );
    document.stacks("the create stacks of the groups", |_| true);
    document.caveats(
        "what makes the answer wrong or incomplete",
        "only if nothing matches: the filter that removed everything",
    );
    document
}

/// Describes the members of every comparison: of handles and of allocations, of points and of traces.
pub fn diff_document_members() -> Vec<MemberMeaning> {
    let document = |domain| diff_document::<usize>(domain).members();
    [Domain::Handles, Domain::Allocations].map(document).concat()
}

/// Describes the members of the groups of every comparison.
pub fn diff_group_members() -> Vec<MemberMeaning> {
    let members = |domain| [point_columns(domain).members(), trace_columns(domain).members()];
    [Domain::Handles, Domain::Allocations].map(members).concat().concat()
}
