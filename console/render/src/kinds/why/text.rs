//! The text of `.why`: which suspects it shows, as blocks or as lines of a table, and what it says of the others.

use std::io::{self, Write};

use handlescope_model::Untrusted;

use super::SuspectRow;
use crate::kinds::no_match_line;
use crate::table::FileRows;
use crate::text::{
    BlockWriter, INDENT, StackStyle, amounts, callers, cause, growth, handle_values, headline,
    ignored_because, in_processes, leaked_amount, lines_of_not_counted, lines_of_zombies,
    lines_without_suspects, more, named_objects, over_time, overview, with_telling,
};
use handlescope_query::{Suspect, Verdict, WhyAnswer};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::values::CountedNoun;

/// Share of the worst score, and of the largest amount, below which a suspect is small.
const SMALL: f64 = 0.1;

/// A suspect with at most this many handles is small if a system stack opens them and process exit closes them: each
/// process has a few.
const MIN_AT_EXIT: u64 = 2;

/// Number of suspects that get a block in the first look.
const BLOCKS: usize = 5;

/// Number of suspects in the table of the first look.
const LISTED: usize = 12;

/// How much the text shows of the suspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look<'c> {
    /// A table, blocks about the first suspects, and how this command shows the others.
    First(&'c str),
    /// Blocks about all suspects that are not small, and how this command shows the others.
    Large(&'c str),
    All,
    /// All suspects, and everything about each.
    Whole,
}

/// Returns a style that shows stacks with files and lines.
pub fn stacks_with_lines<'a>(answer: &'a WhyAnswer<'_>) -> StackStyle<'a> {
    let shown = StackDisplayArgs { show: true, line: true, ..StackDisplayArgs::default() };
    StackStyle::for_answer(&answer.file, shown)
}

/// Returns the first lines about a trace: the headline of some of its suspects, or why there are none.
pub fn first_lines(answer: &WhyAnswer<'_>, suspects: &[Suspect]) -> Vec<String> {
    if suspects.is_empty() { lines_without_suspects(answer) } else { headline(suspects) }
}

/// Returns the suspects of a trace that the text shows, and the text about them together. `small` says which of them
/// are small.
pub fn part(answer: &WhyAnswer<'_>, small: &[bool], look: Look<'_>, display: &Display) -> FileRows {
    let mut part =
        FileRows::new(answer.file.about.path, answer.suspects.len()).of_each("more suspect");
    if answer.suspects.is_empty() {
        return without_suspects(part, answer);
    }
    let bold = |line: &String| display.screen.paint(Role::Heading, display.whole(line)).to_string();
    let headline: Vec<String> = headline(&answer.suspects).iter().map(bold).collect();
    let mut above = format!("{}\n\n", headline.join("\n"));
    let mut lines = Vec::new();
    if let Look::First(command) | Look::Large(command) = look {
        let mut places = ShownSuspects::new(small);
        if matches!(look, Look::First(_)) {
            let listed = at(answer, places.shown.get(..LISTED).unwrap_or(&places.shown));
            if listed.len() > 1 {
                above.push_str(&overview(&listed, display));
                above.push('\n');
            }
            places.keep(BLOCKS);
        }
        lines =
            lines_of_left_out(&at(answer, &places.left_out), &stacks_with_lines(answer), command);
        part = part.only(places.shown);
    }
    if look != Look::Whole {
        part = part.above(above);
        lines.extend(lines_of_not_counted(answer));
        lines.extend(lines_of_zombies(answer));
    }
    if lines.is_empty() { part } else { part.below(lines.join("\n")) }
}

/// The indexes of the suspects that the text shows, and of those that it only counts.
struct ShownSuspects {
    shown: Vec<usize>,
    left_out: Vec<usize>,
}

impl ShownSuspects {
    /// Leaves out those that are small, but not all.
    fn new(small: &[bool]) -> Self {
        let (mut left_out, mut shown): (Vec<usize>, Vec<usize>) =
            (0..small.len()).partition(|place| small.get(*place) == Some(&true));
        if shown.is_empty() && !left_out.is_empty() {
            shown.push(left_out.remove(0));
        }
        Self { shown, left_out }
    }

    /// Shows no more than the first ones.
    fn keep(&mut self, first: usize) {
        self.left_out.extend(self.shown.split_off(self.shown.len().min(first)));
        self.left_out.sort_unstable();
    }
}

fn at<'a>(answer: &'a WhyAnswer<'_>, places: &[usize]) -> Vec<&'a Suspect> {
    places.iter().filter_map(|place| answer.suspects.get(*place)).collect()
}

/// Returns the suspects in the table of the first look, and the others.
pub fn listed_and_others<'a>(answer: &'a WhyAnswer<'_>) -> (Vec<&'a Suspect>, Vec<&'a Suspect>) {
    let mut places = ShownSuspects::new(&small(answer));
    places.keep(LISTED);
    (at(answer, &places.shown), at(answer, &places.left_out))
}

/// Returns lines that count the omitted suspects, and say how the command shows them.
fn lines_of_left_out(left_out: &[&Suspect], stacks: &StackStyle<'_>, command: &str) -> Vec<String> {
    let (starts, others): (Vec<&Suspect>, Vec<&Suspect>) =
        left_out.iter().partition(|suspect| is_of_process_start(suspect, stacks));
    let mut lines = Vec::new();
    if let Some(first) = others.first() {
        let is_kind = command.split(' ').next().is_some_and(|word| word != ".why");
        let (which, rank) = (if is_kind { "-Which " } else { "" }, first.rank);
        let (more, command) = (more(&others), Untrusted(command));
        lines.push(format!("+ {more}: {command} {which}{rank}, {command} -All"));
    }
    if !starts.is_empty() {
        let groups = CountedNoun(starts.len() as u64, "more suspect");
        let handles = "of handles opened at process start";
        lines.push(format!("+ {groups} {handles}: {} -All", Untrusted(command)));
    }
    lines
}

/// Adds the reason why there are no suspects.
fn without_suspects(part: FileRows, answer: &WhyAnswer<'_>) -> FileRows {
    if let Some(no_match) = &answer.file.about.no_match {
        return part.below(no_match_line(no_match));
    }
    lines_without_suspects(answer)
        .into_iter()
        .chain(lines_of_zombies(answer))
        .fold(part, FileRows::below)
}

/// Returns for each suspect of a trace whether it matters little next to the others.
pub fn small(answer: &WhyAnswer<'_>) -> Vec<bool> {
    let (suspects, stacks) = (&answer.suspects, stacks_with_lines(answer));
    let handles = suspects.partition_point(|suspect| suspect.bytes.is_none());
    let (of_handles, of_allocations) = suspects.split_at(handles);
    let small = [of_handles, of_allocations].map(|suspects| small_of_kind(suspects, &stacks));
    small.concat()
}

/// Like [`small`], for suspects that are all handles or all allocations. Suspects are small if every process has them;
/// so are those at the end of the list that leak little and do not continue.
fn small_of_kind(suspects: &[Suspect], stacks: &StackStyle<'_>) -> Vec<bool> {
    let min_score = SMALL * suspects.iter().map(|suspect| suspect.score).fold(0.0, f64::max);
    let largest_amount = suspects.iter().map(leaked_amount).max().unwrap_or_default();
    let min_amount = SMALL * largest_amount as f64;
    let is_large = |suspect: &Suspect| {
        let goes_on = matches!(suspect.growth.verdict, Verdict::Steady | Verdict::Burst);
        goes_on || suspect.score >= min_score || leaked_amount(suspect) as f64 >= min_amount
    };
    let trivial: Vec<bool> = suspects.iter().map(|suspect| is_trivial(suspect, stacks)).collect();
    let mut judged = suspects.iter().zip(&trivial);
    let last_large = judged.rposition(|(suspect, is_trivial)| !is_trivial && is_large(suspect));
    let large = last_large.map_or(0, |last| last + 1);
    trivial
        .into_iter()
        .enumerate()
        .map(|(place, is_trivial)| is_trivial || place >= large)
        .collect()
}

/// Whether each process has such handles: the loader opens them, or a system stack does and process exit closes them.
fn is_trivial(suspect: &Suspect, stacks: &StackStyle<'_>) -> bool {
    let Suspect { counts, create_stack, bytes, .. } = suspect;
    let is_of_program = |stack| stacks.program_frames(stack).next().is_some();
    let is_of_exit = counts.leaked == 0
        && counts.closed_at_exit <= MIN_AT_EXIT
        && !create_stack.is_some_and(is_of_program);
    (is_of_exit && bytes.is_none()) || is_of_process_start(suspect, stacks)
}

/// Whether the loader opened the handles of a suspect when the process started.
fn is_of_process_start(suspect: &Suspect, stacks: &StackStyle<'_>) -> bool {
    let Suspect { create_stack: Some(stack), bytes: None, .. } = suspect else { return false };
    stacks.is_of_process_start(*stack)
}

impl SuspectRow<'_> {
    /// Writes a block about a suspect and an empty line: rank, amount and process, the calls that opened it, growth,
    /// causes, and the command that shows it. `is_whole` says everything.
    pub fn write(
        &self,
        all_frames: bool,
        is_whole: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Self { suspect, stacks, .. } = self;
        let mut block = BlockWriter { display, out };
        block.heading(suspect.rank, &amounts(suspect), &suspect.process)?;
        match self.calls().filter(|_| !all_frames && !is_whole) {
            Some(calls) => block.calls(&calls)?,
            None => {
                let frames = stacks.short_lines(suspect.create_stack, true);
                frames.iter().try_for_each(|frame| block.line(Role::Heading, frame))?;
            }
        }
        for callers in callers(suspect, is_whole) {
            block.line(Role::Plain, &callers)?;
        }
        let are_alike = suspect.equal_stacks.len() == 1;
        if let Some(stacks @ 2..) = suspect.create_stacks.filter(|_| are_alike) {
            let alike = "create stacks with these functions, at different addresses";
            block.short_line(&format!("{stacks} {alike}"))?;
        }
        block.line(Role::Plain, &growth(suspect))?;
        if is_whole {
            over_time(suspect, display).iter().try_for_each(|line| block.short_line(line))?;
        }
        let owned = [in_processes(suspect, is_whole), named_objects(suspect, is_whole)];
        owned.iter().flatten().try_for_each(|line| block.line(Role::Plain, line))?;
        handle_values(suspect, is_whole).iter().try_for_each(|line| block.short_line(line))?;
        let diagnoses = with_telling(&suspect.diagnoses);
        for (diagnosis, _) in diagnoses.filter(|(_, is_telling)| *is_telling || is_whole) {
            block.line(Role::Cause, &cause(stacks, diagnosis, suspect.program()))?;
            for stack in diagnosis.stacks.iter().filter(|_| is_whole) {
                let calls = stacks.calls(*stack, suspect.program(), None);
                block.line(Role::Plain, &format!("{INDENT}{calls}"))?;
            }
        }
        if let Some(entry) = &suspect.ignored {
            block.line(Role::Plain, &ignored_because(entry))?;
        }
        block.line(Role::Aside, &self.command)?;
        writeln!(out)
    }
}
