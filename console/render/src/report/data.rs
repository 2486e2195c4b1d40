//! The data that the page's script reads.

use std::collections::BTreeMap;
use std::io;

use handlescope_model::StackIdx;

use super::ReportAnswer;
use super::groups::{columns as group_columns, with_groups};
use super::html::clean;
use super::pictures::{BUCKETS, PROCESSES, numbers, with_pictures};
use super::summary::has_handles;
use super::suspects::{SuspectLine, columns, line};
use crate::findings::markdown;
use crate::json::Document;
use crate::kinds::{findings_of_suspect, listed_and_others, stacks_with_lines};
use crate::pictures::{
    FrameTable, Measure, OpenTimeline, PictureFrame, allocation_groups, colors, folded,
    handle_groups,
};
use crate::text::{
    StackStyle, callers, cause, ignored_because, in_processes, leaked_amount, named_objects,
    source_place, title,
};
use handlescope_query::{
    AllocatedKind, AllocationsOverview, Amount, Diagnosis, FileAnswer, GroupStats, Suspect,
    WhyAnswer,
};

/// Returns the data about the traces.
pub fn data<'a>(
    answers: &'a [ReportAnswer<'a>],
    command: impl Fn(usize, &Suspect) -> String,
) -> io::Result<Document<'a>> {
    let mut table = FrameTable::default();
    let files: Vec<Document<'a>> = answers
        .iter()
        .enumerate()
        .map(|(index, answer)| file(index, answer, &command, &mut table))
        .collect();
    let frames = table.values;
    let colors = colors(frames.iter().map(|frame| frame.name.as_str()))?;
    let color_of_all = colors.get("").cloned();
    let drawn: Vec<Document<'static>> =
        frames.iter().map(|own| frame(own, colors.get(own.name.as_str()).cloned())).collect();
    Ok(Document::default()
        .with("tables", group_columns())
        .with("files", files)
        .with("frames", drawn)
        .with("color", color_of_all))
}

/// Returns the data about a trace; `index` is its number on the page.
fn file<'a>(
    index: usize,
    answer: &'a ReportAnswer<'a>,
    command: &impl Fn(usize, &Suspect) -> String,
    table: &mut FrameTable,
) -> Document<'a> {
    let why = &answer.why;
    let WhyAnswer { file, suspects, .. } = why;
    let shown = suspects.iter().flat_map(|suspect| {
        let causes = suspect.diagnoses.iter();
        suspect.create_stack.into_iter().chain(causes.flat_map(|cause| cause.stacks.clone()))
    });
    let stacks: BTreeMap<u32, Vec<usize>> =
        shown.map(|stack| (stack.0, frames(file, stack, table))).collect();
    let style = stacks_with_lines(why);
    let lines: Vec<SuspectLine> = suspects.iter().map(|suspect| line(suspect, &style)).collect();
    let columns = columns(&lines);
    let rows: Vec<Document<'a>> = suspects
        .iter()
        .zip(lines)
        .map(|(row, line)| suspect(why, row, line, &style, command(file.about.index, row)))
        .collect();
    let (listed, _) = listed_and_others(why);
    let listed: Vec<usize> = listed.into_iter().map(|suspect| suspect.rank).collect();
    let overviews = answer.allocations.iter();
    let kinds =
        overviews.flat_map(|overview| overview.kinds.iter().map(move |kind| (overview, kind)));
    let open = OpenTimeline::new(file, BUCKETS, PROCESSES);
    let kinds: Vec<Document<'a>> =
        kinds.map(|(overview, allocated)| kind(overview, allocated, table)).collect();
    let document = Document::default()
        .with("index", index)
        .with("has_handles", has_handles(why))
        .with("columns", columns)
        .with("suspects", rows)
        .with("listed", listed)
        .with("unit", Measure::Handles.unit());
    let stacks_of_leaks =
        folded(file, handle_groups(file, GroupStats::unreleased), Measure::Handles);
    let document = with_pictures(document, open, stacks_of_leaks, table);
    with_groups(document.with("kinds", kinds), answer).with("stacks", stacks)
}

/// Returns the allocations of one kind. The pictures count `unit`: bytes or allocations.
fn kind<'a>(
    overview: &AllocationsOverview<'_>,
    kind: &AllocatedKind,
    table: &mut FrameTable,
) -> Document<'a> {
    let name = kind.name;
    let measure = Measure::for_bytes(kind.has_bytes());
    let allocated = OpenTimeline::for_kind(&overview.over_time, name, measure, BUCKETS, PROCESSES);
    let groups = overview.groups.groups_of(name);
    let groups = groups.filter(|group| group.stats.unreleased() != Amount::default());
    let groups = allocation_groups(&overview.groups, groups);
    let stacks = folded(&overview.groups, groups, measure);
    let document = Document::default().with("kind", name).with("unit", measure.unit());
    with_pictures(document, allocated, stacks, table)
}

/// Adds the frames of a stack to the list of all frames, and returns their numbers.
fn frames(file: &FileAnswer<'_>, stack: StackIdx, table: &mut FrameTable) -> Vec<usize> {
    let Some(frames) = &file.file.frames else { return Vec::new() };
    let named = frames.named();
    numbers(PictureFrame::from_stack(named.stack(stack)), table)
}

fn suspect<'a>(
    answer: &WhyAnswer<'_>,
    suspect: &'a Suspect,
    line: SuspectLine,
    stacks: &StackStyle<'_>,
    command: String,
) -> Document<'a> {
    let sentence = |diagnosis: &Diagnosis| clean(&cause(stacks, diagnosis, suspect.program()));
    let (explaining, others): (Vec<&Diagnosis>, Vec<&Diagnosis>) =
        suspect.diagnoses.iter().partition(|diagnosis| diagnosis.explains());
    let causes = explaining.into_iter().map(|diagnosis| {
        Document::default()
            .with("text", sentence(diagnosis))
            .with("objects", &diagnosis.object_ids)
            .with("object_count", diagnosis.objects)
            .with("close_stacks", diagnosis.stacks.iter().map(|stack| stack.0).collect::<Vec<_>>())
    });
    let notes = callers(suspect, false)
        .into_iter()
        .chain(in_processes(suspect, false))
        .chain(named_objects(suspect, false))
        .map(|note| clean(&note));
    let reason = suspect.ignored.as_ref().map(|entry| clean(&ignored_because(entry)));
    let ends = others.into_iter().map(|own| format!("{} (by unknown code)", sentence(own)));
    let rate = suspect.bytes.and_then(|bytes| bytes.per_minute).or(suspect.rate_per_minute());
    let shown_command = clean(&command);
    let findings = findings_of_suspect(answer, suspect, stacks, command);
    Document::default()
        .with("rank", suspect.rank)
        .with("line", line)
        .with("amount", leaked_amount(suspect))
        .with("rate", rate)
        .with("title", clean(&title(suspect)))
        .with("verdict", suspect.growth.verdict.title())
        .with("evidence", suspect.evidence())
        .with("notes", notes.chain(ends).chain(reason).collect::<Vec<String>>())
        .with("causes", causes.collect::<Vec<_>>())
        .with("is_of_handles", suspect.bytes.is_none())
        .with("function", clean(suspect.function.as_deref().unwrap_or("no stack")))
        .with("stack", suspect.create_stack.map(|stack| stack.0))
        .with("command", shown_command)
        .with("markdown", markdown(&[findings]))
}

fn frame(frame: &PictureFrame, color: Option<String>) -> Document<'static> {
    let source = frame.source.as_ref().map(|(file, line)| source_place(file, *line));
    Document::default()
        .with("name", frame.name.clone())
        .with_some("source", source)
        .with("own", frame.is_of_program)
        .with_some("color", color)
}
