//! `.diff` of two traces, for handles or allocations.

use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;

use super::{
    CREATE_STACK, ComparisonHead, FUNCTION, PROCESS, TraceSpan, diff_document, growth, rate, shown,
    states_line, write_ignored, write_stack,
};
use crate::findings::{Findings, LeakFinding};
use crate::{
    table::{AnswerTable, Columns, FileRows, Show},
    text::{StackStyle, line_of_ignored},
    traces::{OfTraces, StackOffset, TraceJson, traces},
};
use handlescope_query::{
    ComparedGroup, Domain, Frames, GroupState, TraceAnswer, TracesDiff, Verdict,
};
use handlescope_session::paths;
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::Size;

/// A group, its stack in the trace that has it, and its presentation.
pub struct DiffRow<'a> {
    group: &'a ComparedGroup,
    stacks: StackStyle<'a>,
    stack: Option<StackIdx>,
    numbers: StackOffset,
    /// The word for what the traces count: open or leaked.
    counted: &'static str,
}

/// Returns groups that got worse, or may have, as findings. Only groups that did get worse fail the gate.
pub fn diff_findings<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> Findings {
    let counted = counted(answer);
    let is_finding =
        |group: &&ComparedGroup| (group.got_worse || group.is_uncertain) && group.ignored.is_none();
    let list = answer.groups.iter().filter(is_finding).map(|group| {
        let ComparedGroup { type_name, before, after, state, .. } = group;
        let program = group.process.clone().unwrap_or_default();
        let side = if after.create_stack.is_some() { 1 } else { 0 };
        let stack = after.create_stack.or(before.create_stack);
        let [first, second] = [before, after].map(|side| HumanCount(side.leaked.count));
        let rates = rates(group).map(|(before, after)| format!("{before} and {after} per minute"));
        let growth = growth(after).map(|growth| format!("growth {growth}"));
        let finding = LeakFinding {
            rule: state.word(),
            title: format!("{program} {type_name}: {first} {counted} before, {second} after"),
            program,
            sentences: rates.into_iter().chain(growth).collect(),
            is_failure: group.got_worse,
            ..LeakFinding::default()
        };
        let frames = answer.files.get(side).and_then(|file| file.frames()).map(Frames::named);
        finding.at(frames.as_ref(), stack)
    });
    let list = list.collect();
    let paths: Vec<String> = answer
        .files
        .iter()
        .map(|file| paths::shown(file.about().path))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let headline = line_of_ignored(answer.ignored, "group").into_iter().collect();
    Findings { about: paths.join(" -> "), headline, list }
}

/// Returns the rates in both traces, unless either trace has too little data.
fn rates(group: &ComparedGroup) -> Option<(String, String)> {
    let ComparedGroup { before, after, .. } = group;
    let is_short = [before, after].iter().any(|side| side.verdict == Some(Verdict::Short));
    rate(before.per_minute).zip(rate(after.per_minute)).filter(|_| !is_short)
}

/// Returns the word for what the traces count.
fn counted<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> &'static str {
    if answer.are_of_one_moment() { "open" } else { "leaked" }
}

/// Declares the columns of a group.
pub fn trace_columns<'a>(domain: Domain) -> Columns<'a, DiffRow<'a>> {
    let mut columns = Columns::<DiffRow<'a>>::default();
    columns.add("process", PROCESS, |row| row.group.process.as_deref()).title("Process");
    match domain {
        Domain::Handles => add_handles(&mut columns),
        Domain::Allocations => add_allocations(&mut columns),
    }
    columns
        .add("stack", "the frames of the stack, one per line", |row| row.stacks.text(row.stack))
        .rows_only();
    columns
}

fn add_handles<'a>(columns: &mut Columns<'a, DiffRow<'a>>) {
    let name = |row: &DiffRow<'a>| format!("{} {}", row.process(), row.group.type_name);
    columns.add("name", "program and type", name).rows_only();
    columns.add("type", "type of the objects", |row| row.group.type_name.as_str()).title("Type");
    columns.add(
        "name_pattern",
        "only of two dumps: names of the objects with # for numbers and GUIDs, of \
         handles without a stack; else null",
        |row| row.group.allocator.as_deref(),
    );
    columns
        .nest("create_stack", "integer?", CREATE_STACK, |row| Some(row.numbers.of(row.stack?)))
        .detail();
    columns
        .add(
            "before",
            "only of two traces: handles and views never closed, or closed only by the end of their \
             process; of two dumps: handles that were open",
            |row| row.group.before.leaked.count,
        )
        .title("Before");
    columns
        .add(
            "after",
            "only of two traces: handles and views never closed, or closed only by the end of their \
             process; of two dumps: handles that were open",
            |row| row.group.after.leaked.count,
        )
        .title("After");
    columns.add(
        "before_per_minute",
        "only of two traces: the same per minute that processes with this name ran in the trace; null: no clock",
        |row| row.group.before.per_minute,
    );
    columns.add(
        "after_per_minute",
        "only of two traces: the same per minute that processes with this name ran in the trace; null: no clock",
        |row| row.group.after.per_minute,
    );
    columns
        .add(
            "change",
            "never closed, or closed only by process exit: number in the trace after minus number \
             in the trace before",
            |row| row.change(),
        )
        .title("Change")
        .rows_only();
    columns
        .add(
            "state",
            "only of two traces: `new`, `gone`, `worse`, `better`, `uncertain` or `same`",
            |row| row.group.state.word(),
        )
        .title("State");
    columns
        .add(
            "got_worse",
            "only of two traces: whether the trace after leaks more than chance and a \
             factor of 1.5 explain",
            |row| u32::from(row.group.got_worse),
        )
        .rows_only();
    columns.nest(
        "got_worse",
        "boolean",
        "only of two traces: whether the trace after leaks more than chance and a \
         factor of 1.5 explain",
        |row| row.group.got_worse,
    );
    columns
        .add(
            "uncertain",
            "only of two traces: whether lost events, or stacks missing in dumps, may be why it got \
             worse or did not",
            |row| u32::from(row.group.is_uncertain),
        )
        .rows_only();
    columns.nest(
        "uncertain",
        "boolean",
        "only of two traces: whether lost events, or stacks missing in dumps, may be why it got worse or did not",
        |row| row.group.is_uncertain,
    );
    columns.add(
        "p_value",
        "only of two traces: the probability that the trace after leaks this many or \
         more if nothing changed",
        |row| row.group.p_value,
    );
    columns
        .add(
            "before_growth",
            "only of two traces: the growth verdict of [growth.md](growth.md); null: \
             nothing leaked",
            |row| growth(&row.group.before),
        )
        .follows("after_per_minute");
    columns
        .add(
            "after_growth",
            "only of two traces: the growth verdict of [growth.md](growth.md); null: \
             nothing leaked",
            |row| growth(&row.group.after),
        )
        .follows("before_growth");
    let function = columns.add("function", FUNCTION, |row| row.group.function.as_deref());
    function.title("Function").follows("create_stack");
}

fn add_allocations<'a>(columns: &mut Columns<'a, DiffRow<'a>>) {
    columns.add("kind", "as in `.dump Resource`", |row| row.group.type_name.as_str()).title("Kind");
    let allocator = columns.add(
        "allocator",
        "as in `.dump Resource`; of two traces, null for heaps, because their handles differ",
        |row| row.group.allocator.as_deref(),
    );
    allocator.title("Allocator").unknown("");
    columns
        .nest("create_stack", "integer?", CREATE_STACK, |row| Some(row.numbers.of(row.stack?)))
        .detail();
    columns
        .add(
            "before",
            "only of two traces: allocations never freed, or freed only by the end of their process",
            |row| row.group.before.leaked.count,
        )
        .title("Before")
        .show(Show::Grouped);
    let before =
        columns.add("before_bytes", "only of two traces: the bytes of these allocations", |row| {
            row.group.before.leaked.bytes
        });
    before.title("Bytes before").show(Show::Bytes);
    columns
        .add(
            "after",
            "only of two traces: allocations never freed, or freed only by the end of their process",
            |row| row.group.after.leaked.count,
        )
        .title("After")
        .show(Show::Grouped);
    let after =
        columns.add("after_bytes", "only of two traces: the bytes of these allocations", |row| {
            row.group.after.leaked.bytes
        });
    after.title("Bytes after").show(Show::Bytes);
    columns.add(
        "before_growth",
        "only of two traces: the growth verdict of [growth.md](growth.md); null: \
         nothing leaked",
        |row| growth(&row.group.before),
    );
    columns.add(
        "after_growth",
        "only of two traces: the growth verdict of [growth.md](growth.md); null: \
         nothing leaked",
        |row| growth(&row.group.after),
    );
    columns.add(
        "expected_bytes",
        "only of two traces: bytes that the trace after would leak if nothing had \
         changed; for a group without a rate, this is a range, and the value is the \
         number in it nearest to `after_bytes`",
        |row| row.group.expected_bytes,
    );
    columns
        .add("state", "only of two traces: as in `.dump Diff`", |row| row.group.state.word())
        .title("State");
    columns.add(
        "got_worse",
        "only of two traces: whether the trace after leaks more than chance and a \
         factor of 1.5 explain, and for memory at least 64 KiB more",
        |row| row.group.got_worse,
    );
    columns
        .add("uncertain", "only of two traces: as in `.dump Diff`", |row| row.group.is_uncertain);
    columns.add("p_value", "only of two traces: as in `.dump Diff`", |row| row.group.p_value);
    let function = columns.add("function", FUNCTION, |row| row.group.function.as_deref());
    function.title("Function").unknown("").follows("create_stack");
}

/// Returns a row for each group that leaks in either trace.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_traces<'a, 't: 'a, F: TraceAnswer<'t>>(
    answer: &'a TracesDiff<F>,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let traces = traces(&answer.files);
    let files: Vec<_> = answer.files.iter().zip(traces.iter()).collect();
    let rows = answer.groups.iter();
    let rows =
        rows.filter_map(|group| DiffRow::new(&files, group, stacks, counted(answer))).collect();
    let (mut columns, display) = (trace_columns(F::DOMAIN), *display);
    match F::DOMAIN {
        Domain::Handles => {
            columns.row_text(move |row, out| row.write(stacks.show, &display, out));
        }
        Domain::Allocations if stacks.show => {
            columns.row_text(move |row, out| row.write_allocations(&display, out));
        }
        Domain::Allocations => {}
    }
    let spans = answer.files.iter().zip(&answer.windows).map(|(file, window)| {
        let about = file.about();
        TraceSpan::new(about.index, about.info.has_clock().then_some(*window))
    });
    let index = |position: usize| answer.files.get(position).map(|file| file.about().index);
    let ignored = answer.ignored;
    let rest = ComparisonHead { a: index(0), b: index(1), spans: spans.collect(), ignored };
    let table = AnswerTable::new(columns, rows, [file_rows(answer)])?;
    Ok(table.within(diff_document(F::DOMAIN), OfTraces { traces, rest }))
}

/// Returns the traces with their lengths, and the number of groups in each state.
fn file_rows<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> FileRows {
    let is_of_handles = F::DOMAIN == Domain::Handles;
    let lines = ["before:", "after: "].into_iter().zip(&answer.files).zip(&answer.minutes).map(
        |((word, file), minutes)| {
            let length = minutes.filter(|_| is_of_handles);
            let length =
                length.map_or_else(String::new, |minutes| format!(" ({:.1} s)", minutes * 60.0));
            format!("{word} {}{length}\n", Untrusted(paths::shown(file.about().path)))
        },
    );
    let above: String = lines.collect();
    let noun = if is_of_handles { "" } else { " of allocations" };
    let below = states_line(noun, answer.groups.len(), answer.worse(), |state| answer.count(state));
    let part = FileRows::rows_of(answer.groups.len()).above(above).below(below);
    let are_shown = answer.groups.iter().any(|group| group.ignored.is_some());
    let ignored = line_of_ignored(answer.ignored, "group").filter(|_| !are_shown);
    ignored.into_iter().fold(part, FileRows::below)
}

impl<'a> DiffRow<'a> {
    fn new<'t: 'a, F: TraceAnswer<'t>>(
        files: &[(&'a F, &TraceJson<'_>)],
        group: &'a ComparedGroup,
        stacks: StackDisplayArgs,
        counted: &'static str,
    ) -> Option<Self> {
        let [before, after] = files else { return None };
        let ((file, trace), stack) = match group.after.create_stack {
            None => (*before, group.before.create_stack),
            stack => (*after, stack),
        };
        let (numbers, stacks) = (trace.numbers, StackStyle::for_answer(file, shown(stacks)));
        Some(DiffRow { group, stacks, stack, numbers, counted })
    }

    fn process(&self) -> &str {
        self.group.process.as_deref().unwrap_or_default()
    }

    /// Returns the increase in leaked handles per minute, or in leaked handles if the durations are unknown.
    fn change(&self) -> f64 {
        let (before, after) = (&self.group.before, &self.group.after);
        let by_time = after.per_minute.zip(before.per_minute);
        by_time.map_or(after.leaked.count as f64 - before.leaked.count as f64, |(after, before)| {
            after - before
        })
    }

    fn write(&self, all_frames: bool, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let ComparedGroup { type_name, before, after, state, got_worse, .. } = self.group;
        let is_uncertain = self.group.is_uncertain;
        let role = match state {
            _ if *got_worse => Role::Error,
            GroupState::Gone | GroupState::Better => Role::Opened,
            _ => Role::Plain,
        };
        let also = match (*got_worse, is_uncertain) {
            (true, _) if *state != GroupState::Worse => ", worse",
            (false, true) if *state != GroupState::Uncertain => ", uncertain",
            _ => "",
        };
        let state = display.screen.paint(role, format!("{}{also}", state.word()));
        let name = self.group.allocator.as_deref().map(|name| format!(" {}", Untrusted(name)));
        let heading = format!("{} {}", Untrusted(self.process()), Untrusted(type_name));
        let heading = heading + &name.unwrap_or_default();
        let heading = display.screen.paint(Role::Heading, heading);
        let [first, second] = [before, after].map(|side| HumanCount(side.leaked.count));
        let mut text = format!("{first} {} before, {second} after", self.counted);
        if let Some((before, after)) = rates(self.group) {
            text += &format!(" ({before} and {after} per minute)");
        }
        if let Some(growth) = growth(after).filter(|_| self.counted == "leaked") {
            text += &format!(", growth {growth}");
        }
        writeln!(out, "{state}: {heading}: {}", display.whole(&text))?;
        write_stack(&self.stacks, self.stack, all_frames, display, out)?;
        write_ignored(self.group.ignored.as_ref(), display, out)?;
        writeln!(out)
    }

    /// Writes a line about a group of allocations, then a line for each frame.
    fn write_allocations(&self, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let ComparedGroup { type_name, allocator, process, before, after, state, .. } = self.group;
        let process = process.as_deref().unwrap_or("unknown");
        let names = [process, type_name]
            .into_iter()
            .chain(allocator.as_deref())
            .collect::<Vec<_>>()
            .join(" ");
        writeln!(
            out,
            "{}: {} ({}) after {} ({}), {}",
            Untrusted(&names),
            HumanCount(after.leaked.count),
            Size(after.leaked.bytes),
            HumanCount(before.leaked.count),
            Size(before.leaked.bytes),
            state.word()
        )?;
        let lines = self.stacks.text(self.stack).unwrap_or_else(|| "no stack".to_owned());
        let indent = display.indent(1);
        lines.lines().try_for_each(|line| writeln!(out, "{indent}{}", Untrusted(line)))?;
        write_ignored(self.group.ignored.as_ref(), display, out)?;
        writeln!(out)
    }
}
