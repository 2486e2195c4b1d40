//! What the script of the page reads.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use handlescope_model::{StackIdx, Untrusted};
use serde::Serialize;

use super::allocations::{AllocatedData, KindData};
use super::answer::ReportAnswer;
use super::pictures::{FlameData, PARTS, PROCESSES, TimelineData, numbers};
use crate::paths::stem;
use crate::query::{Diagnosis, Figures, FileAnswer, GroupKey, Groups, NodeIdx, Suspect, WhyAnswer};
use crate::render::pictures::{Place, PlaceTable, Timeline, folded};
use crate::render::text::amounts;
use crate::render::time::Clock;
use crate::trace::CaveatKind;

/// Suspects and groups of a trace that are listed; the others are counted.
pub(crate) const SUSPECTS: usize = 500;
const GROUPS: usize = 2_000;

#[derive(Serialize)]
pub(super) struct Data {
    exporter: &'static str,
    /// The command line, when it chose handles.
    asked: Option<String>,
    files: Vec<FileData>,
    frames: Vec<FrameData>,
}

#[derive(Serialize)]
struct FileData {
    /// Its place in the page.
    index: usize,
    name: String,
    path: String,
    start: Option<String>,
    seconds: Option<f64>,
    caveats: Vec<String>,
    totals: TotalsData,
    /// How many allocations it has.
    allocations: usize,
    /// Whether it has what leaks of handles are found by, and whether it has that or allocations.
    has_handles: bool,
    has_events: bool,
    suspects: Vec<SuspectData>,
    suspects_left_out: usize,
    timeline: Option<TimelineData>,
    flame: Vec<FlameData>,
    /// Its allocations, a kind each.
    kinds: Vec<KindData>,
    allocated: Vec<AllocatedData>,
    allocated_left_out: usize,
    groups: Vec<GroupData>,
    groups_left_out: usize,
    /// By number of the stack the places of its frames in the list of frames, the innermost first.
    stacks: BTreeMap<u32, Vec<usize>>,
}

#[derive(Serialize)]
struct TotalsData {
    opened: u64,
    closed: u64,
    /// Handles alone.
    leaked: u64,
    leaked_views: u64,
    at_exit: u64,
}

#[derive(Serialize)]
struct SuspectData {
    rank: usize,
    process: String,
    r#type: String,
    leaked: u64,
    at_exit: u64,
    opened: u64,
    /// Bytes of allocations that were never freed.
    bytes: Option<i64>,
    /// How much is lost, in words.
    amount: String,
    verdict: &'static str,
    evidence: String,
    rate: Option<f64>,
    function: String,
    stack: Option<u32>,
    causes: Vec<CauseData>,
    command: String,
}

#[derive(Serialize)]
struct CauseData {
    cause: &'static str,
    text: String,
    objects: Vec<u64>,
    close_stacks: Vec<u32>,
}

#[derive(Serialize)]
struct GroupData {
    process: String,
    r#type: String,
    function: String,
    leaked: u32,
    at_exit: u32,
    open: u32,
    opened: u32,
    closed: u32,
}

#[derive(Serialize)]
struct FrameData {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    own: bool,
}

impl Data {
    pub(super) fn of(
        answers: &[ReportAnswer<'_>],
        asked: Option<&str>,
        command: impl Fn(usize, &Suspect) -> String,
    ) -> Self {
        let mut places = PlaceTable::default();
        let files = answers.iter().enumerate();
        let files = files.map(|(at, answer)| FileData::of(at, answer, &command, &mut places));
        Self {
            exporter: concat!("handlescope ", env!("CARGO_PKG_VERSION")),
            asked: asked.map(|line| Untrusted(line).to_string()),
            files: files.collect(),
            frames: places.places.into_iter().map(FrameData::of).collect(),
        }
    }
}

impl FileData {
    fn of(
        index: usize,
        answer: &ReportAnswer<'_>,
        command: &impl Fn(usize, &Suspect) -> String,
        places: &mut PlaceTable,
    ) -> Self {
        let WhyAnswer { file, suspects, allocations, .. } = &answer.why;
        let (suspects, others) = suspects.split_at(suspects.len().min(SUSPECTS));
        let has_clock = file.about.info.has_clock();
        let timeline = Timeline::of(file, PARTS, PROCESSES).filter(|own| !own.is_empty());
        let shown = suspects.iter().flat_map(|own| {
            own.create_stack.into_iter().chain(own.diagnoses.iter().flat_map(|d| d.stacks.clone()))
        });
        let stacks = shown.map(|stack| (stack.0, frames(file, stack, places))).collect();
        let (groups, groups_left_out) =
            file.groups.as_ref().map(|own| all(file, own)).unwrap_or_default();
        let totals = &file.totals;
        let allocated = answer.allocations.as_ref();
        let kinds = allocated.map(|own| KindData::all(own, places)).unwrap_or_default();
        let (allocated, allocated_left_out) =
            allocated.map(|own| AllocatedData::all(own, GROUPS)).unwrap_or_default();
        let has_handles =
            !file.about.caveats.iter().any(|own| own.kind == CaveatKind::NoHandleEvents);
        let caveats = file.about.caveats.iter().chain(answer.own_caveats());
        let caveats = caveats.map(|caveat| caveat.text.clone());
        let no_match =
            file.about.no_match.iter().map(|own| Untrusted(&own.to_string()).to_string());
        Self {
            index,
            name: Untrusted(&stem(file.about.path)).to_string(),
            path: Untrusted(file.about.path).to_string(),
            start: has_clock.then(|| Clock::recorded_start(&file.about.info)),
            seconds: file
                .about
                .info
                .recorded_ns()
                .map(|own| (own.end().saturating_sub(*own.start())) as f64 / 1e9),
            caveats: caveats.chain(no_match).collect(),
            totals: TotalsData {
                opened: totals.handles_created + totals.handles_duplicated,
                closed: totals.handles_closed,
                leaked: totals.leaked_handles.saturating_sub(totals.leaked_views),
                leaked_views: totals.leaked_views,
                at_exit: totals.closed_at_exit,
            },
            allocations: *allocations,
            has_handles,
            has_events: *allocations > 0 || has_handles,
            suspects: suspects
                .iter()
                .map(|own| SuspectData::of(own, &command(file.about.index, own)))
                .collect(),
            suspects_left_out: others.len(),
            timeline: timeline.map(TimelineData::of),
            flame: FlameData::all(folded(file, Figures::lost), places),
            kinds,
            allocated,
            allocated_left_out,
            groups,
            groups_left_out,
            stacks,
        }
    }
}

/// The frames of a stack in the list of all.
fn frames(file: &FileAnswer<'_>, stack: StackIdx, places: &mut PlaceTable) -> Vec<usize> {
    let Some(frames) = &file.file.frames else { return Vec::new() };
    numbers(frames.named().stack(stack).map(|frame| Place::of(&frame)), places)
}

/// The groups that lose most, and how many are left out.
fn all(file: &FileAnswer<'_>, groups: &Groups) -> (Vec<GroupData>, usize) {
    let mut leaves: Vec<NodeIdx> = groups.tree.leaves().collect();
    leaves.sort_by_key(|leaf| {
        let figures = groups.tree.figures(*leaf);
        Reverse((figures.lost(), figures.handles))
    });
    let left_out = leaves.len().saturating_sub(GROUPS);
    leaves.truncate(GROUPS);
    (leaves.into_iter().map(|leaf| GroupData::of(file, groups, leaf)).collect(), left_out)
}

impl GroupData {
    fn of(file: &FileAnswer<'_>, groups: &Groups, leaf: NodeIdx) -> Self {
        let text = |node: NodeIdx| match groups.key(node) {
            GroupKey::Text(text) => Untrusted(text).to_string(),
            GroupKey::Stack(stack) => {
                let function = groups.stacks.as_ref().map(|all| all.function(&file.file, stack));
                Untrusted(&function.unwrap_or_default()).to_string()
            }
            GroupKey::Number(number) => number.to_string(),
            GroupKey::None => String::new(),
        };
        let mut keys = groups.path(leaf).map(text);
        let [process, r#type, function] = std::array::from_fn(|_| keys.next().unwrap_or_default());
        let figures = groups.tree.figures(leaf);
        Self {
            process,
            r#type,
            function,
            leaked: figures.leaked,
            at_exit: figures.closed_at_exit,
            open: figures.open_at_end,
            opened: figures.opened(),
            closed: figures.closed.saturating_add(figures.unmapped),
        }
    }
}

impl SuspectData {
    fn of(suspect: &Suspect, command: &str) -> Self {
        let cause = |own: &Diagnosis| CauseData {
            cause: own.cause,
            text: Untrusted(&own.text).to_string(),
            objects: own.object_ids.clone(),
            close_stacks: own.stacks.iter().map(|stack| stack.0).collect(),
        };
        let text = |text: &str| Untrusted(text).to_string();
        Self {
            rank: suspect.rank,
            process: text(&suspect.process),
            r#type: text(&match &suspect.allocator {
                Some(allocator) => format!("{} {allocator}", suspect.type_name),
                None => suspect.type_name.clone(),
            }),
            leaked: suspect.counts.leaked,
            at_exit: suspect.counts.closed_at_exit,
            opened: suspect.counts.opened,
            bytes: suspect.bytes.map(|bytes| bytes.lost),
            amount: amounts(suspect),
            verdict: suspect.growth.verdict.word(),
            evidence: suspect.evidence(),
            rate: suspect.rate_per_minute(),
            function: text(suspect.function.as_deref().unwrap_or("no stack")),
            stack: suspect.create_stack.map(|stack| stack.0),
            causes: suspect.diagnoses.iter().map(cause).collect(),
            command: text(command),
        }
    }
}

impl FrameData {
    fn of(place: Place) -> Self {
        let source = place.source.map(|(file, line)| match line {
            Some(line) => format!("{file}:{line}"),
            None => file,
        });
        Self { name: place.name, source, own: place.is_own }
    }
}
