//! `.dump Stack`

use std::io::{self, Write};

use indicatif::HumanCount;

use super::index;
use crate::{
    query::{FrameFigures, StackRow, StacksAnswer},
    render::{
        json,
        table::{Columns, Part, Show, Table},
        text::{ProcessStyle, StackStyle},
    },
    settings::{Display, StackDisplayArgs},
    terminal::Role,
    values::{Counted, Format},
};

/// What is said when the extract does not have the stacks of every event.
const ONLY_HANDLES: &str = "These are stacks of handle events, of allocations and of kept events of providers; for those of every event extract with \
     -stacks all";

/// A stack, and how it is shown.
#[derive(Clone, Copy)]
struct Row<'a> {
    file: &'a FileStyle<'a>,
    stack: StackRow,
}

/// How the stacks of a trace are shown.
struct FileStyle<'a> {
    answer: &'a StacksAnswer<'a>,
    processes: ProcessStyle,
    stacks: StackStyle<'a>,
}

/// A row for each stack; JSON has its frames, too, and the text with `-ShowStack`.
///
/// # Errors
/// None that a caller could do anything about.
pub fn call_stacks<'a>(
    answers: &'a [StacksAnswer<'a>],
    stacks: StackDisplayArgs,
    format: Format,
    display: &Display,
) -> io::Result<Table<'a>> {
    let styles: Vec<FileStyle<'_>> =
        answers.iter().map(|answer| FileStyle::new(answer, stacks, display)).collect();
    let rows: Vec<Row<'_>> = styles.iter().flat_map(FileStyle::rows).collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |row| index(row.file.answer.index));
    columns.add("count", |row| row.stack.count).title("Count").show(Show::Grouped);
    columns.add("pid", |row| row.stack.pid);
    columns.add("process", |row| row.file.answer.process(row.stack).name);
    columns.add("name", Row::process).title("Process").text_only();
    columns.add("stack", |row| row.stack.stack.0).title("Stack");
    columns.add("depth", |row| row.depth()).title("Frames");
    columns
        .add("innermost_frame", |row| row.file.stacks.representative_line(row.stack.stack))
        .title("Innermost frame")
        .unknown("");
    if format != Format::Text {
        columns.add("text", |row| row.lines().collect::<Vec<_>>().join("\n"));
    }
    let table = Table::new("stacks", columns, answers.iter().map(part))?;
    let document =
        |parts: &[Part], mode, out: &mut dyn Write| json::call_stacks(answers, parts, mode, out);
    let table = table.with_document(document);
    if !stacks.show {
        return Ok(table);
    }
    let stacks: Vec<(usize, StackRow)> = answers.iter().enumerate().flat_map(of_file).collect();
    let display = *display;
    Ok(table.with_row_text(move |at, out| {
        let Some(&(file, stack)) = stacks.get(at) else { return Ok(()) };
        let Some(file) = styles.get(file) else { return Ok(()) };
        Row { file, stack }.write(&display, out)
    }))
}

fn of_file<'a>(
    (file, answer): (usize, &'a StacksAnswer<'_>),
) -> impl Iterator<Item = (usize, StackRow)> + 'a {
    answer.rows.iter().map(move |&stack| (file, stack))
}

impl<'a> FileStyle<'a> {
    fn new(answer: &'a StacksAnswer<'a>, stacks: StackDisplayArgs, display: &Display) -> Self {
        FileStyle {
            answer,
            processes: ProcessStyle::new(&answer.info, display),
            stacks: StackStyle::new(Some(answer.frames.named()), &answer.bases, stacks),
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.answer.rows.iter().map(|&stack| Row { file: self, stack })
    }
}

impl Row<'_> {
    /// Writes a line about the stack, then a line for each frame.
    fn write(&self, display: &Display, mut out: &mut dyn Write) -> io::Result<()> {
        let process = display.screen.paint(Role::Process, self.process());
        let (count, number) = (HumanCount(self.stack.count), self.stack.stack);
        writeln!(out, "Count: {count} Process: {process} Stack: {number}")?;
        self.file.stacks.write_frames(&mut out, self.stack.stack, display, 1)
    }

    /// The process for people, with its start and end.
    fn process(&self) -> String {
        self.file.processes.marked(&self.file.answer.process(self.stack))
    }

    fn depth(&self) -> u32 {
        index(self.file.answer.frames.stacks.get(self.stack.stack.row()).len())
    }

    /// A line for each frame.
    fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.file.stacks.lines(self.stack.stack).into_iter().flatten()
    }
}

fn part(answer: &StacksAnswer<'_>) -> Part {
    let (passed, recorded) = (Counted(answer.passed, "stack"), Counted(answer.recorded, "time"));
    let FrameFigures { frames_total, frames_in_modules, frames_managed, frames_unknown } =
        answer.figures;
    let total = Counted(frames_total, "frame");
    let [modules, managed, unknown] =
        [frames_in_modules, frames_managed, frames_unknown].map(HumanCount);
    let part = Part::of(answer.path, answer.rows.len())
        .counted(format!("of {passed}, recorded {recorded}"))
        .below(format!(
            "{total}: {modules} in modules, {managed} in managed methods outside of modules, \
             {unknown} unknown"
        ));
    if answer.has_every_stack { part } else { part.below(ONLY_HANDLES.to_owned()) }
}
