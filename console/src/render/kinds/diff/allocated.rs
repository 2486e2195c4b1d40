//! `.diff -Kind` between two points of a trace.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{SpanJson, members, shown, write_stack};
use crate::{
    query::{AllocatedPoints, Amount, Between, ResourceGroup},
    render::{
        json::{StackNumbers, traces},
        kinds::{index, no_match_line},
        table::{Columns, Part, Show, Table, bytes},
        text::StackStyle,
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
    trace::CaveatKind,
};

/// A group, and how it is shown.
pub(crate) struct Row<'a> {
    answer: &'a AllocatedPoints<'a>,
    group: &'a ResourceGroup,
    numbers: StackNumbers,
    stacks: StackStyle<'a>,
}

/// What is said of a group.
pub(crate) fn allocated_columns<'a>() -> Columns<'a, Row<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("file", |row| index(row.answer.answer.index));
    columns.add("process", |row| row.process(true)).title("Process");
    columns.add("pid", |row| row.answer.answer.process(row.group).map(|own| own.pid));
    columns.add("kind", |row| row.answer.answer.kind(row.group)).title("Kind");
    columns.add("allocator", |row| row.answer.answer.allocator(row.group)).title("Allocator");
    let stack = |row: &Row<'a>| Some(row.numbers.of(row.group.create_stack()?));
    columns.nest("create_stack", "integer?", stack);
    for ((name, bytes_name, title), amount) in AMOUNTS {
        columns.add(name, move |row| amount(&row.group.figures.between).count).title(title);
        columns.add(bytes_name, move |row| amount(&row.group.figures.between).bytes);
    }
    let per_minute = columns.add("bytes_per_minute", |row| row.answer.bytes_per_minute(row.group));
    per_minute.title("Per minute").show(Show::Bytes).follows("outstanding_bytes");
    let function = columns.add("function", |row| row.answer.function(row.group));
    function.title("Function").follows("create_stack");
    columns.add("stack", |row| row.stacks.text(row.group.create_stack(), None)).rows_only();
    columns
}

/// A row for each group with something that is still allocated; `points` are the points as they were given.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_allocated<'a>(
    answers: &'a [AllocatedPoints<'a>],
    points: [&'a str; 2],
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<Table<'a>> {
    let traces = traces(answers.iter().map(|answer| &answer.answer));
    let rows = answers.iter().zip(traces.iter()).flat_map(|(answer, trace)| {
        let (numbers, own) = (trace.numbers, &answer.answer);
        let style = move || StackStyle::new(Some(own.frames.named()), &own.bases, shown(stacks));
        answer.groups().iter().map(move |group| Row { answer, group, numbers, stacks: style() })
    });
    let (mut columns, display) = (allocated_columns(), *display);
    columns.row_text(move |row, out| row.write(points, stacks.show, &display, out));
    let spans = answers.iter().map(|answer| SpanJson::of(answer.answer.index, answer.window));
    let (head, tail) = members(points, &traces, spans.collect());
    let parts = answers.iter().map(|answer| part(answer, points));
    let table = Table::new("groups", columns, rows.collect(), parts)?;
    Ok(table.with_members(head, tail))
}

/// The names of a number and of its bytes, the title, and the figure.
type AmountColumns = ((&'static str, &'static str, &'static str), fn(&Between) -> Amount);

/// What is counted of a group.
const AMOUNTS: [AmountColumns; 4] = [
    (("allocated", "allocated_bytes", "Allocated"), |own| own.allocated),
    (("outstanding", "outstanding_bytes", "Still allocated"), |own| own.kept),
    (("at_a", "at_a_bytes", "At A"), |own| own.at_first),
    (("at_b", "at_b_bytes", "At B"), |own| own.at_second),
];

fn part(answer: &AllocatedPoints<'_>, [from, to]: [&str; 2]) -> Part {
    let part = Part::of(answer.answer.path, answer.groups().len());
    let (from, to) = (Untrusted(from), Untrusted(to));
    let mut sum = Between::default();
    answer.groups().iter().for_each(|group| sum.add_all(&group.figures.between));
    let is_unknown =
        answer.answer.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoResourceEvents);
    part.below(match (sum.kept.count, &answer.answer.no_match) {
        (0, Some(no_match)) if !(is_unknown && no_match.names_kinds()) => no_match_line(no_match),
        (0, _) if is_unknown => "Whether anything was allocated is unknown".to_owned(),
        (0, _) => format!("Nothing that was allocated after {from} is allocated at {to}"),
        _ => format!(
            "Allocated after {from} and still allocated at {to}: {}",
            shown_amount(sum.kept)
        ),
    })
}

/// A number, with its bytes where there are any.
fn shown_amount(Amount { count, bytes: sum }: Amount) -> String {
    match sum {
        0 => HumanCount(count).to_string(),
        _ => format!("{} ({})", HumanCount(count), bytes(sum)),
    }
}

impl Row<'_> {
    fn process(&self, is_plain: bool) -> Option<String> {
        Some(self.answer.answer.process(self.group)?.shown_label(is_plain))
    }

    fn write(
        &self,
        [from, to]: [&str; 2],
        all_frames: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let answer = &self.answer.answer;
        let process = self.process(false).unwrap_or_else(|| "unknown".to_owned());
        let names = [answer.kind(self.group), answer.allocator(self.group)].into_iter().flatten();
        let names: Vec<&str> = [process.as_str()].into_iter().chain(names).collect();
        let heading = Untrusted(&names.join(" ")).to_string();
        let heading = display.screen.paint(Role::Heading, heading);
        let Between { allocated, kept, at_first, at_second } = self.group.figures.between;
        let (kept, allocated) = (shown_amount(kept), shown_amount(allocated));
        let mut text = format!("{kept} still allocated of {allocated} allocated");
        if let Some(rate) = self.answer.bytes_per_minute(self.group).filter(|rate| *rate != 0.0) {
            text += &format!(", {} per minute", bytes(rate as i64));
        }
        if at_first != Amount::default() {
            let (first, second) = (shown_amount(at_first), shown_amount(at_second));
            text += &format!("; at {} {first}, at {} {second}", Untrusted(from), Untrusted(to));
        }
        writeln!(out, "{heading}: {}", display.whole(&text))?;
        write_stack(&self.stacks, self.group.create_stack(), all_frames, display, out)?;
        writeln!(out)
    }
}
