//! What the script of the page reads.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use handlescope_model::{StackIdx, Untrusted};

use super::allocations::{allocated, kind};
use super::answer::ReportAnswer;
use super::pictures::{PARTS, PROCESSES, flame, numbers, timeline};
use crate::paths::stem;
use crate::query::{Diagnosis, Figures, FileAnswer, GroupKey, Groups, NodeIdx, Suspect, WhyAnswer};
use crate::render::json::Document;
use crate::render::pictures::{Place, PlaceTable, Timeline, folded};
use crate::render::text::amounts;
use crate::render::time::Clock;
use crate::trace::CaveatKind;

/// Suspects and groups of a trace that are listed; the others are counted.
pub(crate) const SUSPECTS: usize = 500;
const GROUPS: usize = 2_000;

/// Data about the traces, and the command line, if it chose handles.
pub(super) fn data<'a>(
    answers: &'a [ReportAnswer<'_>],
    asked: Option<&str>,
    command: impl Fn(usize, &Suspect) -> String,
) -> Document<'a> {
    let mut places = PlaceTable::default();
    let files = answers.iter().enumerate();
    let files = files.map(|(at, answer)| file(at, answer, &command, &mut places));
    let files: Vec<Document<'a>> = files.collect();
    Document::default()
        .with("exporter", concat!("handlescope ", env!("CARGO_PKG_VERSION")))
        .with("asked", asked.map(clean))
        .with("files", files)
        .with("frames", places.places.into_iter().map(frame).collect::<Vec<_>>())
}

/// A trace, by its place in the page.
fn file<'a>(
    index: usize,
    answer: &'a ReportAnswer<'_>,
    command: &impl Fn(usize, &Suspect) -> String,
    places: &mut PlaceTable,
) -> Document<'a> {
    let WhyAnswer { file, suspects, allocations, .. } = &answer.why;
    let (suspects, others) = suspects.split_at(suspects.len().min(SUSPECTS));
    let has_handles =
        !file.about.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents);
    let caveats = file.about.caveats.iter().chain(answer.own_caveats());
    let caveats = caveats.map(|caveat| caveat.text.clone());
    let no_match = file.about.no_match.iter().map(|no_match| clean(&no_match.to_string()));
    let shown = suspects.iter().flat_map(|suspect| {
        let causes = suspect.diagnoses.iter();
        suspect.create_stack.into_iter().chain(causes.flat_map(|cause| cause.stacks.clone()))
    });
    let stacks = shown.map(|stack| (stack.0, frames(file, stack, places)));
    let stacks: BTreeMap<u32, Vec<usize>> = stacks.collect();
    let suspects = suspects.iter().map(|of| suspect(of, &command(file.about.index, of)));
    let overviews = answer.allocations.iter();
    let kinds = overviews.flat_map(|overview| overview.kinds.iter().map(move |of| (overview, of)));
    let start = file.about.info.has_clock().then(|| Clock::recorded_start(&file.about.info));
    let seconds = |ns: RangeInclusive<i64>| ns.end().saturating_sub(*ns.start()) as f64 / 1e9;
    let open = Timeline::of(file, PARTS, PROCESSES);
    let totals = &file.totals;
    let kinds: Vec<Document<'a>> = kinds.map(|(overview, of)| kind(overview, of, places)).collect();
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
        .with("has_events", *allocations > 0 || has_handles)
        .with("suspects", suspects.collect::<Vec<_>>())
        .with("suspects_left_out", others.len())
        .with("timeline", open.filter(|timeline| !timeline.is_empty()).map(timeline))
        .with("flame", flame(folded(file, Figures::lost), places))
        .with("kinds", kinds);
    let allocated = answer.allocations.as_ref().map(|overview| allocated(overview, GROUPS));
    let document = listed(document, ["allocated", "allocated_left_out"], allocated);
    let groups = file.groups.as_ref().map(|of| groups(file, of));
    listed(document, ["groups", "groups_left_out"], groups).with("stacks", stacks)
}

/// Adds some of the rows of a list, and how many are left out.
fn listed<'a>(
    document: Document<'a>,
    [rows, left_out]: [&'static str; 2],
    list: Option<(Vec<Document<'a>>, usize)>,
) -> Document<'a> {
    let (shown, more) = list.unwrap_or_default();
    document.with(rows, shown).with(left_out, more)
}

fn clean(text: &str) -> String {
    Untrusted(text).to_string()
}

/// The frames of a stack in the list of all.
fn frames(file: &FileAnswer<'_>, stack: StackIdx, places: &mut PlaceTable) -> Vec<usize> {
    let Some(frames) = &file.file.frames else { return Vec::new() };
    numbers(frames.named().stack(stack).map(|frame| Place::of(&frame)), places)
}

/// The groups that lose most, and how many are left out.
fn groups<'a>(file: &FileAnswer<'_>, groups: &Groups) -> (Vec<Document<'a>>, usize) {
    let mut leaves: Vec<NodeIdx> = groups.tree.leaves().collect();
    leaves.sort_by_key(|leaf| {
        let figures = groups.tree.figures(*leaf);
        Reverse((figures.lost(), figures.handles))
    });
    let left_out = leaves.len().saturating_sub(GROUPS);
    leaves.truncate(GROUPS);
    (leaves.into_iter().map(|leaf| group(file, groups, leaf)).collect(), left_out)
}

fn group<'a>(file: &FileAnswer<'_>, groups: &Groups, leaf: NodeIdx) -> Document<'a> {
    let text = |node: NodeIdx| match groups.key(node) {
        GroupKey::Text(text) => clean(text),
        GroupKey::Stack(stack) => {
            let function = groups.stacks.as_ref().map(|all| all.function(&file.file, stack));
            clean(&function.unwrap_or_default())
        }
        GroupKey::Number(number) => number.to_string(),
        GroupKey::None => String::new(),
    };
    let figures = groups.tree.figures(leaf);
    let mut keys = groups.path(leaf).map(text);
    let mut key = || keys.next().unwrap_or_default();
    Document::default()
        .with("process", key())
        .with("type", key())
        .with("function", key())
        .with("leaked", figures.leaked)
        .with("at_exit", figures.closed_at_exit)
        .with("open", figures.open_at_end)
        .with("opened", figures.opened())
        .with("closed", figures.closed.saturating_add(figures.unmapped))
}

fn suspect<'a>(suspect: &'a Suspect, command: &str) -> Document<'a> {
    let cause = |diagnosis: &'a Diagnosis| {
        Document::default()
            .with("cause", diagnosis.cause)
            .with("text", clean(&diagnosis.sentence(&[])))
            .with("objects", &diagnosis.object_ids)
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
        .with("bytes", suspect.bytes.map(|bytes| bytes.lost))
        .with("amount", amounts(suspect))
        .with("verdict", suspect.growth.verdict.word())
        .with("evidence", suspect.evidence())
        .with("rate", suspect.rate_per_minute())
        .with("function", clean(suspect.function.as_deref().unwrap_or("no stack")))
        .with("stack", suspect.create_stack.map(|stack| stack.0))
        .with("causes", suspect.diagnoses.iter().map(cause).collect::<Vec<_>>())
        .with("command", clean(command))
}

fn frame(Place { name, source, is_own, .. }: Place) -> Document<'static> {
    let source = source.map(|(file, line)| match line {
        Some(line) => format!("{file}:{line}"),
        None => file,
    });
    Document::default().with("name", name).with_some("source", source).with("own", is_own)
}
