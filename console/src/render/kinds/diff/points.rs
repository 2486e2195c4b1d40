//! `.diff` between two points of a trace.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{SpanJson, members, rate, shown, write_stack};
use crate::{
    query::{OpenedGroup, PointsDiff},
    render::{
        json::{StackNumbers, traces},
        kinds::{index, no_match_line},
        table::{Columns, Part, Table},
        text::StackStyle,
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
    trace::CaveatKind,
};

/// A group, and how it is shown.
pub(crate) struct Row<'a> {
    answer: &'a PointsDiff<'a>,
    group: &'a OpenedGroup,
    numbers: StackNumbers,
    stacks: StackStyle<'a>,
}

/// What is said of a group.
pub(crate) fn point_columns<'a>() -> Columns<'a, Row<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("file", |row| index(row.answer.file.index()));
    columns.add("process", |row| row.group.process.as_str()).title("Process");
    columns.add("pid", |row| row.group.pid);
    let name = |row: &Row<'a>| format!("{} {}", row.group.process, row.group.type_name);
    columns.add("name", name).rows_only();
    columns.add("type", |row| row.group.type_name.as_str()).title("Type");
    columns.nest("create_stack", "integer?", |row| Some(row.numbers.of(row.group.create_stack?)));
    columns.add("opened", |row| row.group.opened).title("Opened");
    columns.add("still_open", |row| row.group.still_open).title("Still open");
    columns.add("per_minute", |row| row.group.per_minute).title("Per minute");
    let function = columns.add("function", |row| row.group.function.as_deref());
    function.title("Function").follows("create_stack");
    columns.add("stack", |row| row.stacks.text(row.group.create_stack, None)).rows_only();
    columns.add("sample_ids", |row| {
        let ids = row.group.sample_ids.iter();
        ids.filter_map(|id| u32::try_from(*id).ok()).collect::<Vec<u32>>()
    });
    columns
}

/// A row for each group with something that is still open; `points` are the points as they were given.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_points<'a>(
    answers: &'a [PointsDiff<'a>],
    points: [&'a str; 2],
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<Table<'a>> {
    let traces = traces(answers.iter().map(|answer| &answer.file));
    let rows = answers.iter().zip(traces.iter()).flat_map(|(answer, trace)| {
        let (numbers, style) = (trace.numbers, || StackStyle::of(&answer.file, shown(stacks)));
        answer.groups.iter().map(move |group| Row { answer, group, numbers, stacks: style() })
    });
    let (mut columns, display) = (point_columns(), *display);
    columns.row_text(move |row, out| row.write(stacks.show, &display, out));
    let spans = answers.iter().map(|answer| {
        let file = &answer.file;
        SpanJson::of(file.index(), file.info.has_clock().then_some(answer.window))
    });
    let (head, tail) = members(points, &traces, spans.collect());
    let parts = answers.iter().map(|answer| part(answer, points));
    let table = Table::new("groups", columns, rows.collect(), parts)?;
    Ok(table.with_members(head, tail))
}

fn part(answer: &PointsDiff<'_>, [from, to]: [&str; 2]) -> Part {
    let part = Part::of(answer.file.path(), answer.groups.len());
    if let Some(no_match) = &answer.file.no_match {
        return part.below(no_match_line(no_match));
    }
    let (from, to) = (Untrusted(from), Untrusted(to));
    let still_open: u64 = answer.groups.iter().map(|group| group.still_open).sum();
    let is_unknown =
        answer.file.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents);
    part.below(match still_open {
        0 if is_unknown => "Whether anything was opened is unknown".to_owned(),
        0 => format!("Nothing that was opened after {from} is open at {to}"),
        open => {
            format!("Opened after {from} and still open at {to}: {}", HumanCount(open))
        }
    })
}

impl Row<'_> {
    fn write(&self, all_frames: bool, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let OpenedGroup { process, type_name, .. } = self.group;
        let heading = format!("{} {}", Untrusted(process), Untrusted(type_name));
        let heading = display.screen.paint(Role::Heading, heading);
        let [open, opened] =
            [self.group.still_open, self.group.opened].map(|count| HumanCount(count).to_string());
        let rate = rate(self.group.per_minute).map(|rate| format!(", {rate} per minute"));
        let ids: Vec<String> = self.group.sample_ids.iter().map(u64::to_string).collect();
        let text = format!(
            "{open} still open of {opened} opened{} (ids {})",
            rate.unwrap_or_default(),
            ids.join(" ")
        );
        writeln!(out, "{heading}: {}", display.whole(&text))?;
        write_stack(&self.stacks, self.group.create_stack, all_frames, display, out)?;
        writeln!(out)
    }
}
