//! The data that the script of the page reads.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use handlescope_model::{StackIdx, Untrusted};

use super::ReportAnswer;
use super::groups::{columns, with_groups};
use super::pictures::{BUCKETS, PROCESSES, numbers, with_pictures};
use crate::json::Document;
use crate::no_match::InOptions;
use crate::pictures::{FrameTable, Measure, PictureFrame, Timeline, folded, folded_leaks};
use crate::text::{amounts, capitalized};
use crate::time::Clock;
use handlescope_query::{
    AllocatedKind, AllocationsOverview, Diagnosis, FileAnswer, Stats, Suspect, WhyAnswer,
};
use handlescope_session::paths::stem;
use handlescope_session::trace::CaveatKind;

/// Suspects of a trace that are listed; the others are counted.
pub const SUSPECTS: usize = 500;

/// Data about the traces, and the command line, if it chose handles.
pub fn data<'a>(
    answers: &'a [ReportAnswer<'a>],
    command_line: Option<&str>,
    command: impl Fn(usize, &Suspect) -> String,
) -> Document<'a> {
    let mut table = FrameTable::default();
    let files = answers.iter().enumerate();
    let files = files.map(|(index, answer)| file(index, answer, &command, &mut table));
    let files: Vec<Document<'a>> = files.collect();
    Document::default()
        .with("exporter", concat!("handlescope ", env!("CARGO_PKG_VERSION")))
        .with("asked", command_line.map(clean))
        .with("tables", columns())
        .with("files", files)
        .with("frames", table.frames.into_iter().map(frame).collect::<Vec<_>>())
}

/// A trace, by its index in the page.
fn file<'a>(
    index: usize,
    answer: &'a ReportAnswer<'a>,
    command: &impl Fn(usize, &Suspect) -> String,
    table: &mut FrameTable,
) -> Document<'a> {
    let WhyAnswer { file, suspects, allocations, has_events, .. } = &answer.why;
    let (suspects, rest) = suspects.split_at(suspects.len().min(SUSPECTS));
    let has_handles =
        !file.about.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents);
    let caveats = file.about.caveats.iter().chain(answer.allocation_caveats());
    let caveats = caveats.map(|caveat| caveat.text.clone());
    let no_match =
        file.about.no_match.iter().map(|no_match| clean(&InOptions(no_match).to_string()));
    let shown = suspects.iter().flat_map(|suspect| {
        let causes = suspect.diagnoses.iter();
        suspect.create_stack.into_iter().chain(causes.flat_map(|cause| cause.stacks.clone()))
    });
    let stacks = shown.map(|stack| (stack.0, frames(file, stack, table)));
    let stacks: BTreeMap<u32, Vec<usize>> = stacks.collect();
    let suspects = suspects.iter().map(|row| suspect(row, &command(file.about.index, row)));
    let overviews = answer.allocations.iter();
    let kinds =
        overviews.flat_map(|overview| overview.kinds.iter().map(move |kind| (overview, kind)));
    let start = file.about.info.has_clock().then(|| Clock::recorded_start(&file.about.info));
    let seconds = |ns: RangeInclusive<i64>| ns.end().saturating_sub(*ns.start()) as f64 / 1e9;
    let open = Timeline::of(file, BUCKETS, PROCESSES);
    let totals = &file.totals;
    let kinds = kinds.map(|(overview, allocated)| kind(overview, allocated, table));
    let kinds: Vec<Document<'a>> = kinds.collect();
    let document = Document::default()
        .with("index", index)
        .with("name", Untrusted(&stem(file.about.path)).to_string())
        .with("path", Untrusted(file.about.path).to_string())
        .with("start", start)
        .with("seconds", file.about.info.recorded_ns().map(seconds))
        .with("caveats", caveats.chain(no_match).collect::<Vec<_>>())
        .with(
            "totals",
            Document::default()
                .with("opened", totals.handles_created + totals.handles_duplicated)
                .with("closed", totals.handles_closed)
                .with("leaked", totals.leaked_handles.saturating_sub(totals.leaked_views))
                .with("leaked_views", totals.leaked_views)
                .with("at_exit", totals.closed_at_exit),
        )
        .with("allocations", allocations)
        .with("has_handles", has_handles)
        .with("has_events", *allocations > 0 || *has_events)
        .with("suspects", suspects.collect::<Vec<_>>())
        .with("suspects_left_out", rest.len())
        .with("unit", Measure::Handles.unit());
    let document = with_pictures(document, open, folded(file, Stats::unreleased), table);
    with_groups(document.with("kinds", kinds), answer).with("stacks", stacks)
}

/// The allocations of one kind; the pictures count `unit`, bytes or allocations.
fn kind<'a>(
    overview: &AllocationsOverview<'_>,
    kind: &AllocatedKind,
    table: &mut FrameTable,
) -> Document<'a> {
    let AllocatedKind { name, stats } = *kind;
    let measure = Measure::of_bytes(kind.has_bytes());
    let over_time = overview.over_time(kind);
    let allocated = Timeline::of_kind(over_time, name, measure, BUCKETS, PROCESSES);
    let stacks = folded_leaks(&overview.groups, overview.groups.groups_of(name), measure);
    let document = Document::default()
        .with("kind", name)
        .with("unit", measure.unit())
        .with("allocated", stats.allocs)
        .with("allocated_bytes", stats.alloc_bytes)
        .with("outstanding", stats.outstanding)
        .with("outstanding_bytes", stats.outstanding_bytes)
        .with("at_exit", stats.at_exit)
        .with("at_exit_bytes", stats.at_exit_bytes);
    with_pictures(document, allocated, stacks, table)
}

fn clean(text: &str) -> String {
    Untrusted(text).to_string()
}

/// The frames of a stack in the list of all.
fn frames(file: &FileAnswer<'_>, stack: StackIdx, table: &mut FrameTable) -> Vec<usize> {
    let Some(frames) = &file.file.frames else { return Vec::new() };
    let named = frames.named();
    numbers(PictureFrame::of_stack(named.stack(stack)), table)
}

fn suspect<'a>(suspect: &'a Suspect, command: &str) -> Document<'a> {
    let cause = |diagnosis: &'a Diagnosis| {
        Document::default()
            .with("text", clean(&capitalized(&diagnosis.sentence(&[]))))
            .with("objects", &diagnosis.object_ids)
            .with("object_count", diagnosis.objects)
            .with("close_stacks", diagnosis.stacks.iter().map(|stack| stack.0).collect::<Vec<_>>())
    };
    let kind = match &suspect.allocator {
        Some(allocator) => clean(&format!("{} {allocator}", suspect.type_name)),
        None => clean(&suspect.type_name),
    };
    Document::default()
        .with("rank", suspect.rank)
        .with("process", clean(&suspect.process))
        .with("type", kind)
        .with("leaked", suspect.counts.leaked)
        .with("at_exit", suspect.counts.closed_at_exit)
        .with("opened", suspect.counts.opened)
        .with("bytes", suspect.bytes.map(|bytes| bytes.unreleased))
        .with("amount", amounts(suspect))
        .with("verdict", suspect.growth.verdict.title())
        .with("evidence", suspect.evidence())
        .with("rate", suspect.rate_per_minute())
        .with("function", clean(suspect.function.as_deref().unwrap_or("no stack")))
        .with("stack", suspect.create_stack.map(|stack| stack.0))
        .with("causes", suspect.diagnoses.iter().map(cause).collect::<Vec<_>>())
        .with("command", clean(command))
}

fn frame(PictureFrame { name, source, is_of_program, .. }: PictureFrame) -> Document<'static> {
    let source = source.map(|(file, line)| match line {
        Some(line) => format!("{file}:{line}"),
        None => file,
    });
    Document::default().with("name", name).with_some("source", source).with("own", is_of_program)
}
