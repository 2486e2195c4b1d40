//! `.diff`: a row for each group, one file for each of its answers.

mod points;
mod traces;

use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;
use serde::Serialize;

pub(crate) use self::{
    points::{diff_points, point_columns},
    traces::{diff_traces, trace_columns},
};
use crate::{
    query::{Side, State, Window},
    render::{
        json::{Document, Traces},
        text::StackStyle,
    },
    settings::{Display, StackDisplayArgs},
};

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
fn states_line(noun: &str, groups: usize, worse: usize, count: impl Fn(State) -> usize) -> String {
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
fn rate(per_minute: Option<f64>) -> Option<String> {
    let rate = per_minute?;
    Some(if rate >= 100.0 { format!("{rate:.0}") } else { format!("{rate:.1}") })
}
