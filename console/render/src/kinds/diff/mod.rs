//! `.diff`: a row for each group, one file for each of its answers.

mod points;
mod traces;

use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;
use serde::Serialize;

pub use self::{
    points::{diff_points, point_columns},
    traces::{diff_traces, trace_columns},
};
use crate::json::Meanings;
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

// Members of groups of handles and of allocations.
const CREATE_STACK_MEMBER: (&str, &str) = (
    "create_stack",
    "number of the stack in `stacks`; of two traces that of the trace after, else of the \
     trace before; null: none",
);
const FUNCTION_MEMBER: (&str, &str) =
    ("function", "the function of the program in that stack ([why.md](why.md#the-function))");
const OWNER_MEMBER: (&str, &str) =
    ("file, pid", "only between points: index of the trace, process id of the owner");

/// Meanings of the members of `groups` in `.dump Diff`.
pub const DIFF_GROUP_MEMBERS: Meanings = &[
    (
        "process",
        "between points: the owner, as in `leaky.exe(7316)`; of two traces: the name of the owners",
    ),
    ("type", "type of the objects"),
    (
        "name_pattern",
        "only of two dumps: names of the objects with # for numbers and GUIDs, of handles without a \
         stack; else null",
    ),
    CREATE_STACK_MEMBER,
    FUNCTION_MEMBER,
    OWNER_MEMBER,
    ("opened", "only between points: handles and views opened after `a` and not after `b`"),
    ("still_open", "only between points: those of them that are open at `b`"),
    (
        "per_minute",
        "only between points: `still_open` divided by the minutes from `a` to `b`; null: the \
         trace has no clock",
    ),
    ("sample_ids", "only between points: ids of up to three objects"),
    (
        "before, after",
        "only of two traces: handles and views that nothing, or only the end of their process, \
         closed; of two dumps: handles that were open",
    ),
    (
        "before_per_minute, after_per_minute",
        "only of two traces: the same divided by the minutes in which processes of that name ran \
         in the trace; null: it has no clock",
    ),
    (
        "before_growth, after_growth",
        "only of two traces: the growth verdict of [growth.md](growth.md); null: nothing leaked",
    ),
    ("state", "only of two traces: `new`, `gone`, `worse`, `better`, `uncertain` or `same`"),
    (
        "got_worse",
        "only of two traces: whether the trace after leaks more than chance and a factor of 1.5 \
         explain",
    ),
    (
        "uncertain",
        "only of two traces: whether lost events, or stacks that dumps lack, may explain that it got worse, \
         or did not",
    ),
    (
        "p_value",
        "only of two traces: the probability that the trace after leaks this many or more if \
         nothing changed",
    ),
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

/// Meanings of the members of `groups` in `.dump Diff -Kind`.
pub const DIFF_KIND_GROUP_MEMBERS: Meanings = &[
    (
        "process",
        "between points: the owner, as in `leaky.exe(7316)`; of two traces: the name of the \
         owners; null if unknown",
    ),
    ("kind", "as in `.dump Resource`"),
    (
        "allocator",
        "as in `.dump Resource`; of two traces it is null for heaps, whose handles differ",
    ),
    CREATE_STACK_MEMBER,
    FUNCTION_MEMBER,
    OWNER_MEMBER,
    ("allocated, allocated_bytes", "only between points: allocations after `a` and not after `b`"),
    (
        "outstanding, outstanding_bytes",
        "only between points: those of them that are still allocated at `b`",
    ),
    (
        "bytes_per_minute",
        "only between points: `outstanding_bytes` divided by the minutes from `a` to `b`; null: \
         the trace has no clock",
    ),
    (
        "at_a, at_a_bytes, at_b, at_b_bytes",
        "only between points: what was allocated in the trace and is still allocated at `a`, and \
         at `b`",
    ),
    (
        "before, after",
        "only of two traces: allocations that nothing, or only the end of their process, freed",
    ),
    ("before_bytes, after_bytes", "only of two traces: their bytes"),
    ("before_growth, after_growth", "only of two traces: as in `.dump Diff`"),
    (
        "expected_bytes",
        "only of two traces: bytes that the trace after would leak if nothing had changed; for a \
         group without a rate, this is a range, and the value is the number in it nearest to \
         `after_bytes`",
    ),
    ("state, uncertain, p_value", "only of two traces: as in `.dump Diff`"),
    (
        "got_worse",
        "only of two traces: whether the trace after leaks more than chance and a factor of 1.5 \
         explain, and for memory at least 64 KiB more",
    ),
];
