//! `.diff -Kind` of two traces.

use std::io::{self, Write};

use handlescope_model::{StackIdx, Untrusted};
use indicatif::HumanCount;

use super::{SpanJson, growth, members, states_line};
use crate::{
    paths,
    query::{ComparedGroup, ResourcesAnswer, TracesDiff},
    render::{
        json::traces,
        table::{Columns, Part, Show, Table, bytes},
        text::StackStyle,
    },
    settings::{Display, StackDisplayArgs},
};

/// A group, and how it is shown.
pub(crate) struct Row<'a> {
    answer: &'a TracesDiff<ResourcesAnswer<'a>>,
    group: &'a ComparedGroup,
    /// The number of its stack in a document.
    number: Option<u64>,
    stacks: StackDisplayArgs,
}

/// What is said of a group.
pub(crate) fn allocation_columns<'a>() -> Columns<'a, Row<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("process", |row| row.group.process.as_deref()).title("Process");
    columns.add("kind", |row| row.group.type_name.as_str()).title("Kind");
    let allocator = columns.add("allocator", |row| row.group.allocator.as_deref());
    allocator.title("Allocator").unknown("");
    columns.nest("create_stack", "integer?", |row| row.number);
    columns.add("before", |row| row.group.before.leaked.count).title("Before").show(Show::Grouped);
    let before = columns.add("before_bytes", |row| row.group.before.leaked.bytes);
    before.title("Bytes before").show(Show::Bytes);
    columns.add("after", |row| row.group.after.leaked.count).title("After").show(Show::Grouped);
    let after = columns.add("after_bytes", |row| row.group.after.leaked.bytes);
    after.title("Bytes after").show(Show::Bytes);
    columns.add("before_growth", |row| growth(&row.group.before));
    columns.add("after_growth", |row| growth(&row.group.after));
    columns.add("expected_bytes", |row| row.group.expected_bytes);
    columns.add("state", |row| row.group.state.word()).title("State");
    columns.add("got_worse", |row| row.group.got_worse);
    columns.add("uncertain", |row| row.group.is_uncertain);
    columns.add("p_value", |row| row.group.p_value);
    let function = columns.add("function", |row| row.group.function.as_deref());
    function.title("Function").unknown("").follows("create_stack");
    columns.add("stack", Row::lines).rows_only();
    columns
}

/// A row for each group that either trace leaves allocated.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_allocations<'a>(
    answer: &'a TracesDiff<ResourcesAnswer<'a>>,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<Table<'a>> {
    let traces = traces(&answer.files);
    let number = |at: usize, stack: Option<StackIdx>| Some(traces.get(at)?.numbers.of(stack?));
    let rows = answer.groups.iter().map(|group| {
        let number =
            number(1, group.after.create_stack).or_else(|| number(0, group.before.create_stack));
        Row { answer, group, number, stacks }
    });
    let (mut columns, display) = (allocation_columns(), *display);
    if stacks.show {
        columns.row_text(move |row, out| row.write(&display, out));
    }
    let spans = answer.files.iter().map(|file| SpanJson::of(file.index, file.window));
    let index = |at: usize| answer.files.get(at).map(|file| file.index);
    let (head, tail) = members([index(0), index(1)], &traces, spans.collect());
    let table = Table::new("groups", columns, rows.collect(), [part(answer)])?;
    Ok(table.with_members(head, tail))
}

/// The traces, and how many groups are in which state.
fn part(answer: &TracesDiff<ResourcesAnswer<'_>>) -> Part {
    let files = ["before:", "after: "].into_iter().zip(&answer.files);
    let above =
        files.map(|(word, file)| format!("{word} {}\n", Untrusted(paths::shown(file.path))));
    let count = |state| answer.count(state);
    let below = states_line(" of allocations", answer.groups.len(), answer.worse(), count);
    Part::rows_of(answer.groups.len()).above(above.collect()).below(below)
}

impl Row<'_> {
    /// The lines of the stack.
    fn lines(&self) -> Option<String> {
        let (file, stack) = self.answer.stack(self.group)?;
        let style = StackStyle::new(Some(file.frames.named()), &file.bases, self.stacks);
        style.text(Some(stack), None)
    }

    /// Writes a line about the group, then a line for each frame.
    fn write(&self, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let ComparedGroup { type_name, allocator, process, before, after, state, .. } = self.group;
        let process = process.as_deref().unwrap_or("unknown");
        let names = [process, type_name].into_iter().chain(allocator.as_deref());
        let names = names.collect::<Vec<_>>().join(" ");
        writeln!(
            out,
            "{}: {} ({}) after {} ({}), {}",
            Untrusted(&names),
            HumanCount(after.leaked.count),
            bytes(after.leaked.bytes),
            HumanCount(before.leaked.count),
            bytes(before.leaked.bytes),
            state.word()
        )?;
        let lines = self.lines().unwrap_or_else(|| "no stack".to_owned());
        let indent = display.indent(1);
        lines.lines().try_for_each(|line| writeln!(out, "{indent}{}", Untrusted(line)))?;
        writeln!(out)
    }
}
