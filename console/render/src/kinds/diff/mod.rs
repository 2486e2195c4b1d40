//! `.diff`: a row for each group, one file for each of its answers.

mod points;
mod traces;

use crate::json::Meanings;
use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;
use serde::Serialize;

pub use self::{
    points::{diff_points, point_columns},
    traces::{diff_traces, trace_columns},
};
use crate::{
    json::{Document, Traces},
    text::StackStyle,
};
use handlescope_query::{Side, State, Window};
use handlescope_session::settings::{Display, StackDisplayArgs};

/// The examined time of a trace; null where the trace has no clock.
#[derive(Serialize)]
struct SpanJson {
    file: usize,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
}

impl SpanJson {
    fn of(file: usize, window: Option<Window>) -> Self {
        let (from_ns, to_ns) = window.map(|window| (window.start_ns, window.end_ns)).unzip();
        Self { file, from_ns, to_ns }
    }
}

/// Meanings of members that groups between points and groups of two traces have in common.
const PROCESS: &str = "between points: the owner, as in `leaky.exe(7316)`; of two traces: the name of the owners; null \
                       if unknown";
const CREATE_STACK: &str = "number of the stack in `stacks`; of two traces that of the trace after, else of the trace \
                            before; null: none";
const FUNCTION: &str = "the function of the program in that stack ([why.md](why.md#the-function))";

/// The members of a document in front of its groups and behind them: two points or traces, and the traces.
fn members<'a, P: Serialize + 'a>(
    a: P,
    b: P,
    traces: &Traces<'a>,
    spans: Vec<SpanJson>,
) -> (Document<'a>, Document<'a>) {
    let head = Document::of("Diff").with("a", a).with("b", b).files(traces).with("spans", spans);
    (head, Document::default().stacks(traces).caveats(traces))
}

/// Returns a line with the number of groups in each state.
pub fn states_line(
    noun: &str,
    groups: usize,
    worse: usize,
    count: impl Fn(State) -> usize,
) -> String {
    let uncertain = match count(State::Uncertain) {
        0 => String::new(),
        number => format!(", {} uncertain", HumanCount(number as u64)),
    };
    let count = |state| HumanCount(count(state) as u64).to_string();
    format!(
        "Got worse: {} of {} groups{noun}; {} worse, {} new, {} gone, {} better, {} same{uncertain}",
        HumanCount(worse as u64),
        HumanCount(groups as u64),
        count(State::Worse),
        count(State::New),
        count(State::Gone),
        count(State::Better),
        count(State::Same)
    )
}

/// Returns the growth of a group in a trace, if it leaks there.
fn growth(side: &Side) -> Option<&'static str> {
    side.verdict.map(|verdict| verdict.word())
}

/// Shows stacks in any case: in short, or all of them.
fn shown(stacks: StackDisplayArgs) -> StackDisplayArgs {
    StackDisplayArgs { show: true, ..stacks }
}

/// Writes the frames of the stack of a group: all, or the first of the program.
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

/// A number of handles by minutes, as people read it; nothing where the minutes are unknown.
pub fn rate(per_minute: Option<f64>) -> Option<String> {
    let rate = per_minute?;
    Some(match rate.abs() {
        100.0.. => format!("{rate:.0}"),
        // Two digits of a slow leak, which is not none.
        size if size > 0.0 && size < 0.05 => {
            let decimals = (1.0 - size.log10().floor()).clamp(1.0, 9.0) as usize;
            format!("{rate:.decimals$}")
        }
        _ => format!("{rate:.1}"),
    })
}

/// Meanings of the members of the document of `.dump Diff`.
pub const DIFF_MEMBERS: Meanings = &[
    ("kind", "`\"Diff\"`"),
    (
        "a, b",
        "between points: the points as given, default `\"start\"` and `\"end\"`; of two traces: \
         the index of the trace before and of the trace after",
    ),
    ("files", "the traces"),
    ("spans", "the compared time of each trace"),
    ("spans.file", "index of the trace"),
    ("spans.from_ns, spans.to_ns", "the time; null: the trace has no clock"),
    ("groups", "handles and views of one process, type and create stack, see below"),
    ("stacks", "the create stacks of the groups"),
    ("caveats", "what makes the answer wrong or incomplete"),
    ("no_match", "only if nothing matches: the filter that removed everything"),
];

/// Meanings of the members of the document of `.dump Diff -Kind`.
pub const DIFF_KIND_MEMBERS: Meanings = &[
    ("kind, a, b, spans", "as in `.dump Diff`"),
    ("spans.file, spans.from_ns, spans.to_ns", "as in `.dump Diff`"),
    ("files", "the traces"),
    (
        "files.file, files.path, files.session_start_utc, files.session_end_utc, \
         files.events_lost, files.buffers_lost",
        "as in `.dump ObjectRef`",
    ),
    (
        "groups",
        "between points: allocations of one kind, allocator, process and create stack of which \
         something is left at `b`, the most bytes first; of two traces: of one kind, allocator, \
         program and create stack that leak in either trace, those that got worse first",
    ),
    ("stacks", "the create stacks of the groups"),
    ("caveats", "what makes the answer wrong or incomplete"),
    ("no_match", "only if nothing matches: the filter that removed everything"),
];
