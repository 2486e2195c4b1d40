//! `.diff`: a row for each group, and one file for each of its two answers.

mod points;
mod traces;

use std::io::{self, Write};
use std::sync::Arc;

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;
use serde::Serialize;

pub use self::{
    points::{diff_points, point_columns},
    traces::{diff_findings, diff_traces, trace_columns},
};
use crate::{
    table::{Columns, MemberMeaning},
    text::{StackStyle, ignored_because},
    traces::{OfTraces, header_columns},
};
use handlescope_query::{Domain, GroupState, SideLeaks, TimeWindow};
use handlescope_session::settings::{Display, IgnoreEntry, StackDisplayArgs};

/// The compared time of a trace; null if the trace has no clock.
#[derive(Clone, Copy)]
struct TraceSpan {
    file: usize,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

impl TraceSpan {
    fn new(file: usize, window: Option<TimeWindow>) -> Self {
        let (from_ns, to_ns) = window.map(|window| (window.start_ns, window.end_ns)).unzip();
        Self { file, from_ns, to_ns }
    }
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

/// Returns a line with the number of groups in each state.
pub fn states_line(
    noun: &str,
    groups: usize,
    worse: usize,
    count: impl Fn(GroupState) -> usize,
) -> String {
    let uncertain = match count(GroupState::Uncertain) {
        0 => String::new(),
        number => format!(", {} uncertain", HumanCount(number as u64)),
    };
    let count = |state| HumanCount(count(state) as u64).to_string();
    format!(
        "Got worse: {} of {} groups{noun}; {} worse, {} new, {} gone, {} better, {} same{uncertain}",
        HumanCount(worse as u64),
        HumanCount(groups as u64),
        count(GroupState::Worse),
        count(GroupState::New),
        count(GroupState::Gone),
        count(GroupState::Better),
        count(GroupState::Same)
    )
}

/// Returns the growth of a group in a trace, if it leaks there.
fn growth(side: &SideLeaks) -> Option<&'static str> {
    side.verdict.map(|verdict| verdict.word())
}

/// Shows stacks in any case: abbreviated, or complete.
fn shown(stacks: StackDisplayArgs) -> StackDisplayArgs {
    StackDisplayArgs { show: true, ..stacks }
}

/// Writes why a group is ignored, if it is.
fn write_ignored(
    entry: Option<&Arc<IgnoreEntry>>,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(entry) = entry else { return Ok(()) };
    writeln!(out, "{}{}", display.indent(1), display.whole(&ignored_because(entry)))
}

/// Writes the frames of a group's stack: all of them, or the first ones of the program.
fn write_stack(
    stacks: &StackStyle<'_>,
    stack: Option<StackIdx>,
    all_frames: bool,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let indent = display.indent(1);
    let lines = stacks.short_lines(stack, all_frames);
    lines.iter().try_for_each(|line| writeln!(out, "{indent}{}", Untrusted(line)))
}

/// Formats handles per minute for people; `None` if the duration is unknown.
pub fn rate(per_minute: Option<f64>) -> Option<String> {
    let rate = per_minute?;
    Some(match rate.abs() {
        100.0.. => format!("{rate:.0}"),
        // A slow leak gets two digits, so that it does not look like none.
        size if size > 0.0 && size < 0.05 => {
            let decimals = (1.0 - size.log10().floor()).clamp(1.0, 9.0) as usize;
            format!("{rate:.decimals$}")
        }
        _ => format!("{rate:.1}"),
    })
}
