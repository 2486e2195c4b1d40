//! `.dump Stack`

use std::{
    io::{self, Write},
    rc::Rc,
};

use indicatif::HumanCount;

use super::index;
use crate::{
    no_match::{NoMatchRow, first_no_match},
    table::{AnswerTable, Columns, FileRows, Show},
    text::{ProcessStyle, StackStyle},
    traces::StackJson,
};
use handlescope_query::{FrameStats, ListAnswer, ProcessStack, StackList, StacksAnswer};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::{CountedNoun, Format};

/// Note for an extract that lacks the stacks of some events.
const ONLY_HANDLES: &str = "Only stacks of handle events, allocations and kept provider events; \
                            extract with -stacks all for those of every event";

/// A stack and its presentation.
pub struct StackItem<'a> {
    file: Rc<ListStyle<'a, StackList<'a>>>,
    stack: ProcessStack,
}

/// The presentation of a list of a trace with processes and stacks.
pub struct ListStyle<'a, T> {
    pub answer: &'a ListAnswer<'a, T>,
    pub processes: ProcessStyle,
    pub stacks: StackStyle<'a>,
}

/// Declares the columns of a stack. `has_text`: files have its frames.
pub fn stack_columns<'a>(has_text: bool) -> Columns<'a, StackItem<'a>> {
    let mut columns = Columns::<StackItem<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.file.answer.index));
    columns
        .add("count", "events with this stack in this process", |row| row.stack.count)
        .title("Count")
        .show(Show::Grouped);
    columns.add("pid", "process id", |row| row.stack.pid);
    columns.add("process", "process name", |row| row.file.answer.list.process(row.stack).name);
    columns.nest(
        "frames",
        "array",
        "list of frames, innermost first; their members are those of the \
         [stacks](#stacks) of `.dump ObjectRef`",
        StackItem::frames,
    );
    columns
        .add("name", "process with its start and end", StackItem::process)
        .title("Process")
        .text_only();
    columns.add("stack", "number of the stack", |row| row.stack.stack.0).title("Stack").rows_only();
    columns.add("depth", "number of frames", StackItem::depth).title("Frames").rows_only();
    let innermost = columns.add("innermost_frame", "the first frame of the program", |row| {
        row.file.stacks.representative_line(row.stack.stack)
    });
    innermost.title("Innermost frame").unknown("").rows_only();
    if has_text {
        let text = |row: &StackItem<'a>| row.file.stacks.text(Some(row.stack.stack));
        columns
            .add("text", "the frames, one per line", move |row| text(row).unwrap_or_default())
            .rows_only();
    }
    columns
}

/// Returns a row for each stack; JSON also has its frames, and so does the text with `-ShowStack`.
///
/// # Errors
/// None that a caller could do anything about.
pub fn call_stacks<'a>(
    answers: &'a [StacksAnswer<'a>],
    stacks: StackDisplayArgs,
    format: Format,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let rows = answers.iter().flat_map(|answer| {
        let (frames, bases) = (&answer.list.frames, &answer.list.bases);
        let file =
            ListStyle::new(answer, StackStyle::new(Some(frames.named()), bases, stacks), display);
        answer.list.rows.iter().map(move |&stack| StackItem { file: Rc::clone(&file), stack })
    });
    let (mut columns, display) = (stack_columns(format != Format::Text), *display);
    if stacks.show {
        columns.row_text(move |row, out| row.write(&display, out));
    }
    let mut stats = FrameStats::default();
    answers.iter().for_each(|answer| stats += answer.list.stats);
    let about = StacksHead {
        stats,
        has_every_stack: answers.iter().all(|answer| answer.list.has_every_stack),
        no_match: first_no_match(answers),
    };
    let table = AnswerTable::new(columns, rows.collect(), answers.iter().map(file_rows))?;
    Ok(table.within(stack_document(), about))
}

impl<'a, T> ListStyle<'a, T> {
    pub fn new(
        answer: &'a ListAnswer<'a, T>,
        stacks: StackStyle<'a>,
        display: &Display,
    ) -> Rc<Self> {
        Rc::new(Self { answer, processes: ProcessStyle::new(&answer.info, display), stacks })
    }
}

impl<'a> StackItem<'a> {
    fn frames(&self) -> StackJson<'a> {
        let answer = self.file.answer;
        let (frames, stack) = (Some(&answer.list.frames), self.stack.stack);
        StackJson { frames, bases: &answer.list.bases, stack, trims: None }
    }

    /// Writes a line about the stack, then a line for each frame.
    fn write(&self, display: &Display, mut out: &mut dyn Write) -> io::Result<()> {
        let process = display.screen.paint(Role::Process, self.process());
        let (count, number) = (HumanCount(self.stack.count), self.stack.stack);
        writeln!(out, "Count: {count} Process: {process} Stack: {number}")?;
        self.file.stacks.write_frames(&mut out, self.stack.stack, display, 1)?;
        writeln!(out)
    }

    /// Returns the process for people, with its start and end.
    fn process(&self) -> String {
        self.file.processes.marked(&self.file.answer.list.process(self.stack))
    }

    fn depth(&self) -> u32 {
        index(self.file.answer.list.frames.stacks.get(self.stack.stack.row()).len())
    }
}

fn file_rows(answer: &StacksAnswer<'_>) -> FileRows {
    let (passed, recorded) =
        (CountedNoun(answer.list.passed, "stack"), CountedNoun(answer.list.recorded, "time"));
    let FrameStats { frames_total, frames_in_modules, frames_managed, frames_unknown } =
        answer.list.stats;
    let total = CountedNoun(frames_total, "frame");
    let [modules, managed, unknown] =
        [frames_in_modules, frames_managed, frames_unknown].map(HumanCount);
    let file_rows = FileRows::new(answer.path, answer.list.rows.len())
        .of(answer.list.passed as usize)
        .counted(format!("of {passed}, recorded {recorded}"))
        .below(format!(
            "{total}: {modules} in modules, {managed} in managed methods outside of modules, \
             {unknown} unknown"
        ));
    if answer.list.has_every_stack { file_rows } else { file_rows.below(ONLY_HANDLES.to_owned()) }
}

/// The head of the document of stacks.
pub struct StacksHead<'a> {
    stats: FrameStats,
    has_every_stack: bool,
    no_match: Option<NoMatchRow<'a>>,
}

/// Declares the document of `.dump Stack`.
pub fn stack_document<'a>() -> Columns<'a, StacksHead<'a>> {
    let mut document = Columns::<StacksHead<'a>>::default();
    document.member("frames_total", "all frames", |about| about.stats.frames_total).for_programs();
    document
        .member("frames_in_modules", "frames in an image, managed or not", |about| {
            about.stats.frames_in_modules
        })
        .for_programs();
    document
        .member(
            "frames_managed",
            "frames outside all images, in a managed method compiled at run time",
            |about| about.stats.frames_managed,
        )
        .for_programs();
    document
        .member("frames_unknown", "the remaining frames", |about| about.stats.frames_unknown)
        .for_programs();
    document
        .member(
            "has_every_stack",
            "whether the traces have the stacks of every event, or only of handle events; \
         `handlescope extract -stacks all` keeps all. Stacks carried by provider events exist if \
         the extract has these events (`-events`)",
            |about| about.has_every_stack,
        )
        .for_programs();
    document.left_out("stacks", "number of omitted stacks");
    document.rows("stacks", "the stacks, by file, most frequent first");
    document.no_match(
        "only if nothing matches: the filter that removed everything, as in `.dump ObjectRef`; \
         `before` counts stacks",
        |about| about.no_match,
    );
    document
}
