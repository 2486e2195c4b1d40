//! `.diff` between two points of a trace.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{rate, shown, stack_text, write_stack};
use crate::{
    query::{OpenedGroup, PointsDiff},
    render::{
        json,
        kinds::{index, no_match_line},
        table::{Columns, Part, Table},
        text::StackStyle,
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
    trace::CaveatKind,
};

/// A group, and how it is shown.
struct Row<'a> {
    answer: &'a PointsDiff<'a>,
    group: &'a OpenedGroup,
    stacks: StackStyle<'a>,
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
    let groups = answers.iter().flat_map(|answer| {
        let style = move || StackStyle::of(&answer.file, shown(stacks));
        answer.groups.iter().map(move |group| Row { answer, group, stacks: style() })
    });
    let rows: Vec<Row<'_>> = groups.collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |row| index(row.answer.file.index()));
    columns.add("process", |row| row.group.process.clone()).title("Process");
    columns.add("pid", |row| row.group.pid);
    columns.add("name", |row| format!("{} {}", row.group.process, row.group.type_name));
    columns.add("type", |row| row.group.type_name.clone()).title("Type");
    columns.add("opened", |row| row.group.opened).title("Opened");
    columns.add("still_open", |row| row.group.still_open).title("Still open");
    columns.add("per_minute", |row| row.group.per_minute).title("Per minute");
    columns.add("function", |row| row.group.function.clone()).title("Function");
    columns.add("stack", |row| stack_text(&row.stacks, row.group.create_stack));
    columns.add_list("sample_ids", |row| {
        let ids = row.group.sample_ids.iter();
        ids.filter_map(|id| u32::try_from(*id).ok()).collect()
    });
    let parts = answers.iter().map(|answer| part(answer, points));
    let table = Table::new("groups", columns, parts)?;
    let document = move |parts: &[Part], mode, out: &mut dyn Write| {
        json::diff_points(answers, points, parts, mode, out)
    };
    let display = *display;
    let text = move |at: usize, out: &mut dyn Write| {
        rows.get(at).map_or(Ok(()), |row| row.write(stacks.show, &display, out))
    };
    Ok(table.with_document(document).with_row_text(text))
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
