//! Compares two traces: what the second leaks more or less of than the first.

use std::sync::Arc;

use handlescope_model::rules::LossTimes;
use handlescope_model::tables::Processes;
use handlescope_model::{StackIdx, Trace};

use super::builds::UnknownCode;
use super::compared::{
    ComparableAnswer, NS_PER_MINUTE, extent, minutes, per_minute, rows_of_suspect,
};
use super::matched::{Decreases, MatchedGroup, Start, matched};
use super::rule::{self, Chances};
use super::tally::{GroupSample, LeakTally, TimeDependence};
use crate::acquired::{AcquisitionGroups, KeptSites};
use crate::amounts::Amount;
use crate::answer::TraceAnswer;
use crate::context::Source;
use crate::criteria::DiffCriteria;
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use crate::growth::{TimeWindow, Verdict};
use crate::ignored::{IgnoreCandidate, ignored_by};
use crate::no_match::NoMatch;
use crate::suspect_rows::SuspectRows;
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::{IgnoreEntry, IgnoreList};
use handlescope_session::trace::{Caveat, loss_times, most_lost_events};

/// Comparison of the leaks of two traces; `F` is the answer for each, about handles or allocations.
pub struct TracesDiff<F> {
    /// The trace before and the trace after.
    pub files: Vec<F>,
    /// Time ranges of the traces.
    pub windows: Vec<TimeWindow>,
    /// Lengths of the traces in minutes, if known.
    pub minutes: Vec<Option<f64>>,
    /// Groups that leak in either trace: first those that got worse, then new ones.
    pub groups: Vec<ComparedGroup>,
    /// Number of groups that are known leaks; `groups` lacks them unless they were asked for.
    pub ignored: usize,
    /// Why nothing in either trace passes; `None` if anything passes, or if a trace has what was asked for and it
    /// simply does not leak.
    pub no_match: Option<NoMatch>,
}

/// Handles and views of one process name, type and create stack (by its functions), or allocations of one kind and
/// allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedGroup {
    /// Name of the processes, if known.
    pub process: Option<String>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: String,
    /// The allocator of allocations; `None` for a heap, because its handle differs each time. For handles without stack
    /// in dumps, the pattern of their object names.
    pub allocator: Option<String>,
    /// The program's function in the stack that opened or allocated them.
    pub function: Option<String>,
    /// The trace before.
    pub before: SideLeaks,
    /// The trace after.
    pub after: SideLeaks,
    /// State of the group after the comparison.
    pub state: GroupState,
    /// Whether the trace after leaks more than chance and a factor of 1.5 explain, whatever events were lost.
    pub got_worse: bool,
    /// Whether lost events, or stacks missing from a dump, could explain why it seems to have got worse or not.
    pub is_uncertain: bool,
    /// The probability that the trace after leaks at least this much if nothing changed.
    pub p_value: f64,
    /// Number that the trace after is expected to leak if nothing changed. Without a rate this is a range; then it is
    /// the number in the range nearest to what the trace leaks.
    pub expected: f64,
    /// Expected bytes of allocations, in the same sense.
    pub expected_bytes: f64,
    /// The known leak it matches, if any.
    pub ignored: Option<Arc<IgnoreEntry>>,
}

impl ComparedGroup {
    /// Returns the trace that has the group's stack, and the stack; prefers the trace after if it leaks there.
    fn stack(&self) -> Option<(usize, StackIdx)> {
        let after = self.after.create_stack.map(|stack| (1, stack));
        after.or(self.before.create_stack.map(|stack| (0, stack)))
    }
}

/// Leaks of a group in one trace.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SideLeaks {
    /// Amount that nothing but process exit closed or freed.
    pub leaked: Amount,
    /// Amount leaked per minute of process run time; `None` if the minutes are unknown.
    pub per_minute: Option<f64>,
    /// The stack that opened them, one of several equal ones; `None` if nothing leaks.
    pub create_stack: Option<StackIdx>,
    /// How the group grows; `None` if nothing leaks.
    pub verdict: Option<Verdict>,
}

impl SideLeaks {
    /// Whether the group is open only by chance: short-lived handles happen to be open at the end and do not leak at a
    /// rate.
    fn is_by_chance(&self) -> bool {
        self.verdict == Some(Verdict::Balanced)
    }
}

/// State of a group after the comparison, in listing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupState {
    /// Leaks more than chance explains.
    Worse,
    /// Leaks nothing in the trace before.
    New,
    /// Leaks nothing in the trace after.
    Gone,
    /// Leaks less than chance explains.
    Better,
    /// Lost events or forgotten stacks may explain the difference, or why there is none.
    Uncertain,
    /// Chance explains the difference.
    Same,
}

impl GroupState {
    /// Returns the word for the state, which never changes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Better => "better",
            Self::Uncertain => "uncertain",
            Self::Same => "same",
        }
    }
}

impl<'t, F: TraceAnswer<'t>> TracesDiff<F> {
    /// Whether both traces are dumps or lists. In these, everything that is open counts, leaked or not.
    pub fn are_of_one_moment(&self) -> bool {
        self.files.iter().all(|file| file.about().info.is_of_one_moment())
    }
}

impl<F> TracesDiff<F> {
    /// Returns the number of groups that got worse.
    pub fn worse(&self) -> usize {
        let is_counted = |group: &&ComparedGroup| group.got_worse && group.ignored.is_none();
        self.groups.iter().filter(is_counted).count()
    }

    /// Returns the number of groups that may have got worse; lost events or missing stacks in dumps leave that open.
    pub fn uncertain(&self) -> usize {
        let is_counted = |group: &&ComparedGroup| group.is_uncertain && group.ignored.is_none();
        self.groups.iter().filter(is_counted).count()
    }

    /// Returns the trace that has the group's stack, and the stack; prefers the trace after if it leaks there.
    pub fn stack(&self, group: &ComparedGroup) -> Option<(&F, StackIdx)> {
        let (side, stack) = group.stack()?;
        Some((self.files.get(side)?, stack))
    }

    /// Whether leaks are compared relative to the lengths of the traces rather than by number alone.
    pub fn has_lengths(&self) -> bool {
        self.minutes.iter().all(Option::is_some)
    }

    /// Returns the number of groups in a state.
    pub fn count(&self, state: GroupState) -> usize {
        self.groups.iter().filter(|group| group.state == state).count()
    }
}

/// Compares what the first two sources leak.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn compare_traces<'a, F: ComparableAnswer<'a>>(
    sources: &'a [Source<'a>],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<TracesDiff<F>, QueryError> {
    let mut files = F::ask(sources, criteria, true, names, cancel)?;
    files.truncate(2);
    let acquired = files
        .iter()
        .map(|file| file.acquired(criteria, KeptSites::All))
        .collect::<Result<Vec<_>, _>>()?;
    let lengths: Vec<Option<f64>> = acquired
        .iter()
        .map(|file| {
            let acquired = file.as_ref()?;
            minutes(acquired, acquired.extent)
        })
        .collect();
    let windows = files
        .iter()
        .zip(&acquired)
        .map(|(file, acquired)| extent(file, acquired.as_ref()))
        .collect();
    let suspects = rows_of_suspect(&files, criteria)?;
    // The command refuses a trace without acquisitions, because a gate would pass.
    let acquired = acquired.into_iter().zip(suspects.iter().map(Option::as_ref));
    let (acquired, suspects): (Vec<AcquisitionGroups<'_>>, Vec<_>) =
        acquired.filter_map(|(acquired, suspect)| Some((acquired?, suspect))).unzip();
    let ComparedGroups { mut groups, not_comparable } =
        compared(sources, &acquired, &suspects, &lengths)?;
    drop(acquired);
    // All groups were compared first, so that ignoring some does not change the significance.
    mark_ignored(&mut groups, &files, &criteria.ignoring.list)?;
    let ignored = groups.iter().filter(|group| group.ignored.is_some()).count();
    groups.retain(|group| criteria.ignoring.shows(group.ignored.as_ref()));
    for (side, file) in files.iter_mut().enumerate() {
        file.show_stacks(stacks(&groups, side))?;
    }
    let programs = programs_of_dumps(&files)?;
    if let Some(file) = files.get_mut(1) {
        file.about_mut().caveats.extend(programs);
        file.about_mut().caveats.extend(Caveat::for_other_builds(&not_comparable));
    }
    let no_match = files
        .iter()
        .find_map(|file| file.about().no_match.as_ref())
        .filter(|no_match| !files.iter().any(|file| file.knows_choice(criteria, no_match)))
        .cloned();
    Ok(TracesDiff { files, windows, minutes: lengths, groups, ignored, no_match })
}

/// Marks groups that are known leaks. The stacks of a group have equal functions.
fn mark_ignored<'a, F: ComparableAnswer<'a>>(
    groups: &mut [ComparedGroup],
    files: &[F],
    list: &IgnoreList,
) -> Result<(), QueryError> {
    for (side, file) in files.iter().enumerate() {
        let of_side: Vec<&mut ComparedGroup> = groups
            .iter_mut()
            .filter(|group| {
                // A group without a stack belongs to the trace after.
                group.stack().map_or(1, |(side, _)| side) == side
            })
            .collect();
        let leaks = of_side.iter().map(|group| IgnoreCandidate {
            program: group.process.as_deref().unwrap_or_default(),
            type_name: &group.type_name,
            function: group.function.as_deref(),
            stacks: vec![group.stack().map(|(_, stack)| stack)],
        });
        let ignored = ignored_by(list, leaks, file.frames())?;
        of_side.into_iter().zip(ignored).for_each(|(group, by)| group.ignored = by);
    }
    Ok(())
}

/// Returns a caveat if two dumps are of different programs. The first process of a dump is its own.
fn programs_of_dumps<'a, F: ComparableAnswer<'a>>(
    files: &[F],
) -> Result<Option<Caveat>, QueryError> {
    let [before, after] = files else { return Ok(None) };
    if ![before, after].iter().all(|file| file.about().info.is_dump()) {
        return Ok(None);
    }
    let name = |file: &F| -> Result<String, QueryError> {
        let names = file.about().trace.values(Processes::name)?;
        Ok(names.get(0).unwrap_or_default().to_owned())
    };
    let [before, after] = [name(before)?, name(after)?];
    Ok(Caveat::for_two_programs([&before, &after]))
}

/// The groups of two traces, and the modules with frames that cannot be compared.
struct ComparedGroups {
    groups: Vec<ComparedGroup>,
    not_comparable: Vec<String>,
}

/// Compares traces; `lengths` is in minutes.
fn compared(
    sources: &[Source<'_>],
    traces: &[AcquisitionGroups<'_>],
    suspects: &[Option<&SuspectRows>],
    lengths: &[Option<f64>],
) -> Result<ComparedGroups, QueryError> {
    let unknown_code = match sources {
        [before, after, ..] => UnknownCode::new([before.trace, after.trace])?,
        _ => UnknownCode::default(),
    };
    let (matched, not_comparable) = matched(traces, suspects, unknown_code)?;
    let has_lengths = lengths.iter().all(Option::is_some);
    let losses = sources
        .iter()
        .zip(traces)
        .map(|(source, trace)| TraceLosses::new(source.trace, trace.extent));
    let groups = match losses.collect::<Result<Vec<_>, _>>()?.as_slice() {
        [before, after] => {
            let is_of_dumps = traces.iter().all(|trace| trace.is_of_one_moment);
            let decreases = Decreases::new(&matched, is_of_dumps);
            with_states(&matched, has_lengths, [before, after], &decreases)
        }
        _ => Vec::new(),
    };
    Ok(ComparedGroups { groups, not_comparable })
}

/// Returns the stacks of groups in one of the traces.
fn stacks(groups: &[ComparedGroup], side: usize) -> Vec<StackIdx> {
    groups
        .iter()
        .map(|group| [group.before, group.after][side.min(1)])
        .filter_map(|side| side.create_stack)
        .collect()
}

/// What a trace lost while it was recorded, or in its file.
struct TraceLosses {
    times: LossTimes,
    /// Maximum number of lost events, and so of lost handles of a group; `None` if unknown.
    max_events: Option<u64>,
    /// Whether at least half of the time has all events.
    is_mostly_whole: bool,
}

impl TraceLosses {
    fn new(trace: &Trace, extent: TimeWindow) -> Result<Self, QueryError> {
        let (times, max_events) = (loss_times(trace)?, most_lost_events(trace)?);
        let trace_time = GroupSample { windows: vec![extent], shares: Vec::new() };
        let is_mostly_whole = trace_time.between(&times).length_ns() > trace_time.length_ns() / 2;
        Ok(Self { times, max_events, is_mostly_whole })
    }
}

/// Leaks of a group in one trace compared with the other.
#[derive(Clone, Copy)]
struct Comparison {
    chances: Chances,
    /// Factor from the leaks of the other trace to those expected here, if nothing changed.
    times: f64,
    /// Whether it can be worse at all.
    can_be_more: bool,
}

/// A trace that may leak more, and the one it is compared with.
struct ComparisonPair<'m> {
    verdict: Option<Verdict>,
    is_new: bool,
    /// Whether the program ran in the other trace.
    has_run: bool,
    samples: [&'m GroupSample; 2],
    starts: [Start; 2],
    /// Number each trace leaks, if only that is known.
    counts: Option<[u64; 2]>,
    /// Number of leaks in each trace that it does not show; negative if fewer leak than shown.
    unseen: [f64; 2],
    /// Size of each unseen leak.
    unseen_size: f64,
    /// Largest difference that does not matter.
    tolerance: f64,
    /// Number of processes in each trace.
    processes: [usize; 2],
}

impl ComparisonPair<'_> {
    /// Compares the leaks by the number of chances they happen on.
    fn compare(&self) -> Comparison {
        let can_be_more = match self.verdict {
            // Short-lived handles are open at the end by chance; they do not leak at a rate.
            None | Some(Verdict::Balanced) => false,
            // The other trace may lack a fill if it covers less of the start of the process.
            Some(Verdict::Once) => self.starts[1] >= self.starts[0],
            Some(_) => true,
        };
        let against = |tallies: [LeakTally; 2], share, times, kind| {
            let [more, less] =
                [0, 1].map(|side| tallies[side].with(self.unseen[side], self.unseen_size));
            let can_be_more = can_be_more && more.amount - less.amount * times > self.tolerance;
            Comparison { chances: Chances::new([&more, &less], share, kind), times, can_be_more }
        };
        if let Some(counts) = self.counts {
            return against(counts.map(LeakTally::from_counts), 0.5, 1.0, TimeDependence::Rate);
        }
        let lengths = self.samples.map(|sample| sample.length_ns().max(1) as f64);
        let times = lengths[0] / lengths[1];
        if self.verdict != Some(Verdict::Steady) {
            // A leak without a rate does not shrink in a shorter time, and may happen once in each process.
            let processes = self.processes.map(|number| number.max(1) as f64);
            let times = times.max(processes[0] / processes[1]).max(1.0);
            let tallies = self.samples.map(|sample| LeakTally::new(sample, None));
            return against(tallies, times / (1.0 + times), times, TimeDependence::Fill);
        }
        let whole = self.samples.map(|sample| LeakTally::new(sample, None));
        let expected = whole[0].with(self.unseen[0], self.unseen_size).count / times;
        if self.is_new && (!self.has_run || expected < TOO_SHORT) {
            return against(whole, 0.5_f64.min(times / (1.0 + times)), times, TimeDependence::Rate);
        }
        let piece_ns = self.samples.map(GroupSample::longest_ns).into_iter().min();
        let tallies = self.samples.map(|sample| LeakTally::new(sample, piece_ns));
        let share = tallies[0].length_ns / (tallies[0].length_ns + tallies[1].length_ns).max(1.0);
        against(tallies, share, times, TimeDependence::Rate)
    }
}

/// Differences below this many bytes are ignored.
const MIN_BYTES: f64 = 65_536.0;

/// If fewer handles than this are expected in a much shorter trace, that trace says nothing about a group it lacks; nor
/// does one in which the program did not run. A steady leak is then worse by itself: a healthy program leaks nothing at
/// a rate.
pub const TOO_SHORT: f64 = 0.2;

/// A comparison in both directions; the first asks whether the trace after leaks more.
type Both = [Comparison; 2];

/// What to assume about lost events in traces and missing stacks in dumps.
#[derive(Clone, Copy)]
enum Assumption<'l> {
    /// No event of a handle is missing.
    NoLoss,
    /// No event between losses is missing; nothing is known about other times.
    Between([&'l TraceLosses; 2]),
    /// This many more handles of a group leak in each trace, or fewer if negative.
    Unseen([f64; 2]),
    /// As many handles as possible only gained or lost a stack, or have unknown code at another address.
    Regrouped(&'l Decreases<'l>),
}

/// Compares groups under an assumption.
fn compare<'m>(
    groups: &'m [MatchedGroup],
    has_lengths: bool,
    assumed: Assumption<'m>,
) -> Vec<Both> {
    groups
        .iter()
        .map(|group| {
            let lossy = |side: usize| match assumed {
                Assumption::Between(losses) => {
                    Some(&losses[side].times).filter(|times| !times.is_empty())
                }
                _ => None,
            };
            let parts =
                [0, 1].map(|side| lossy(side).map(|times| group.sides[side].sample.between(times)));
            let sample = |side: usize| parts[side].as_ref().unwrap_or(&group.sides[side].sample);
            // A loss may hide a fill at the start.
            let start = |side: usize| lossy(side).map_or(group.sides[side].start, |_| Start::Later);
            let unseen = match assumed {
                Assumption::Unseen(unseen) => unseen,
                Assumption::Regrouped(decreases) => [0.0, -(decreases.to(group) as f64)],
                _ => [0.0, 0.0],
            };
            let unseen_size = group.largest();
            let against = |more: usize, less: usize| {
                let counts = [more, less].map(|side| group.sides[side].leaked.count);
                ComparisonPair {
                    verdict: group.sides[more].verdict,
                    is_new: counts[1] as f64 + unseen[less] <= 0.0,
                    has_run: group.sides[less].has_run || group.process.is_none(),
                    samples: [sample(more), sample(less)],
                    starts: [start(more), start(less)],
                    counts: (!has_lengths).then_some(counts),
                    unseen: [unseen[more], unseen[less]],
                    unseen_size,
                    tolerance: if group.has_bytes { MIN_BYTES } else { f64::NEG_INFINITY },
                    processes: [more, less].map(|side| group.sides[side].sample.windows.len()),
                }
                .compare()
            };
            [against(1, 0), against(0, 1)]
        })
        .collect()
}

/// Returns the probabilities below which groups are worse, and better.
fn levels(comparisons: &[Both]) -> [f64; 2] {
    [0, 1].map(|direction| rule::level(comparisons.iter().map(|both| both[direction].chances)))
}

/// Determines for each group whether it surely got worse or surely did not at this level, despite losses and missing
/// stacks.
fn sure<'m>(
    groups: &'m [MatchedGroup],
    has_lengths: bool,
    losses: [&'m TraceLosses; 2],
    decreases: &'m Decreases<'m>,
    comparisons: &[Both],
    level: f64,
) -> Vec<bool> {
    let [before, after] = losses;
    let compare = |assumed| compare(groups, has_lengths, assumed);
    let worse = |comparisons: &[Both], level| -> Vec<bool> {
        comparisons.iter().map(|both| both[0].is_more(level)).collect()
    };
    let is_worse_regrouped = if decreases.is_empty() {
        vec![true; groups.len()]
    } else {
        worse(&compare(Assumption::Regrouped(decreases)), level)
    };
    if before.times.is_empty() && after.times.is_empty() {
        return worse(comparisons, level)
            .into_iter()
            .zip(is_worse_regrouped)
            .map(|(is_worse, is_surely_worse)| !is_worse || is_surely_worse)
            .collect();
    }
    let between = has_lengths.then(|| {
        let comparisons = compare(Assumption::Between(losses));
        let [level, _] = levels(&comparisons);
        worse(&comparisons, level)
    });
    // Assume that the lost events explain, or hide, as much of a difference as possible.
    let unseen = |sign: f64| {
        let (before, after) = before.max_events.zip(after.max_events)?;
        let unseen = [-sign * before as f64, sign * after as f64];
        Some(worse(&compare(Assumption::Unseen(unseen)), level))
    };
    let (explained, hidden) = (unseen(-1.0), unseen(1.0));
    // Events missing in the trace after can only make it look worse.
    let shows_all = before.times.is_empty() || (has_lengths && before.is_mostly_whole);
    let has_verdict = |worse: &Option<Vec<bool>>, index: usize, is_worse: bool| {
        worse.as_ref().is_some_and(|worse| worse[index] == is_worse)
    };
    worse(comparisons, level)
        .into_iter()
        .enumerate()
        .map(|(index, is_worse)| {
            let is_worse_between = has_verdict(&between, index, true);
            if is_worse {
                is_worse_regrouped[index]
                    && (is_worse_between || has_verdict(&explained, index, true))
            } else {
                has_verdict(&hidden, index, false) || (shows_all && !is_worse_between)
            }
        })
        .collect()
}

impl Comparison {
    fn is_more(&self, level: f64) -> bool {
        self.can_be_more && self.chances.is_significant(level)
    }
}

/// Determines the state of each group and puts the groups in order.
fn with_states(
    matched: &[MatchedGroup],
    has_lengths: bool,
    losses: [&TraceLosses; 2],
    decreases: &Decreases<'_>,
) -> Vec<ComparedGroup> {
    let comparisons = compare(matched, has_lengths, Assumption::NoLoss);
    let [worse, better] = levels(&comparisons);
    let sure = sure(matched, has_lengths, losses, decreases, &comparisons, worse);
    let group = |((group, both), is_sure): ((&MatchedGroup, Both), bool)| {
        let [before, after] = [0, 1].map(|side| side_of(group, side, has_lengths));
        let is_worse = both[0].is_more(worse);
        let got_worse = is_worse && is_sure;
        let state = match (before.leaked.count, after.leaked.count) {
            (0, _) => GroupState::New,
            (_, 0) => GroupState::Gone,
            _ if !is_sure => GroupState::Uncertain,
            _ if is_worse => GroupState::Worse,
            _ if both[1].is_more(better) => GroupState::Better,
            _ => GroupState::Same,
        };
        ComparedGroup {
            process: group.process.clone(),
            type_name: group.type_name.clone(),
            allocator: group.allocator.clone(),
            function: group.function.clone(),
            before,
            after,
            state,
            got_worse,
            is_uncertain: !is_sure,
            p_value: both[0].chances.p_value(),
            expected: expected([before, after], both, |leaked| leaked.count as f64),
            expected_bytes: expected([before, after], both, |leaked| leaked.bytes as f64),
            ignored: None,
        }
    };
    // All groups were compared first, so that selecting a suspect does not change the significance.
    let mut groups: Vec<ComparedGroup> = matched
        .iter()
        .zip(comparisons)
        .zip(sure)
        .filter(|((group, _), _)| group.is_of_suspect)
        .map(group)
        .collect();
    groups.sort_by_key(|group| {
        let [before, after] = [group.before.leaked, group.after.leaked];
        let more_bytes = i128::from(after.bytes) - i128::from(before.bytes);
        let more = i128::from(after.count) - i128::from(before.count);
        (!group.got_worse, !group.is_uncertain, group.state, -more_bytes, -more)
    });
    groups
}

fn side_of(group: &MatchedGroup, side: usize, has_lengths: bool) -> SideLeaks {
    let side = &group.sides[side];
    let minutes = side.sample.length_ns() as f64 / NS_PER_MINUTE;
    let minutes = Some(minutes).filter(|minutes| has_lengths && *minutes > 0.0);
    SideLeaks {
        leaked: side.leaked,
        per_minute: per_minute(side.leaked.count, minutes),
        create_stack: side.create_stack,
        verdict: side.verdict,
    }
}

/// Returns the amount the test takes as unchanged in the trace after: no more than what would be worse, no less than
/// what would be better.
fn expected([before, after]: [SideLeaks; 2], both: Both, amount: fn(Amount) -> f64) -> f64 {
    let leaked = amount(before.leaked);
    let most = if after.is_by_chance() { f64::INFINITY } else { leaked * both[0].times };
    let least = if before.is_by_chance() { 0.0 } else { leaked / both[1].times };
    amount(after.leaked).max(least).min(most)
}

#[cfg(test)]
mod tests {
    use handlescope_tests::rng::Rng;

    use super::super::matched::MatchedSide;
    use super::super::tally::SampleShare;
    use super::*;
    use crate::growth::{Lifetime, ProcessLifetimes};

    const WINDOW: TimeWindow = TimeWindow { start_ns: 0, end_ns: 600_000_000_000 };

    fn share(lifetimes: Vec<Lifetime>) -> SampleShare {
        SampleShare { process: ProcessLifetimes { lifetimes, window: WINDOW }, sizes: Vec::new() }
    }

    /// Makes a group that leaks in 20 operations on average at random times, `at_once` handles each.
    fn side(at_once: i64, rng: &mut Rng) -> MatchedSide {
        let (mut lifetimes, mut operation_ns) = (Vec::new(), 0);
        loop {
            let uniform = 1.0 - (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            operation_ns -= (uniform.ln() * WINDOW.end_ns as f64 / 20.0) as i64;
            if operation_ns >= WINDOW.end_ns {
                break;
            }
            let opened = (0..at_once).map(|number| operation_ns + number * 60_000);
            lifetimes.extend(opened.map(|opened_ns| Lifetime { opened_ns, closed_ns: None }));
        }
        MatchedSide {
            leaked: Amount { count: lifetimes.len() as u64, bytes: 0 },
            verdict: Some(Verdict::Steady),
            sample: GroupSample { windows: vec![WINDOW], shares: vec![share(lifetimes)] },
            ..MatchedSide::default()
        }
    }

    #[test]
    fn however_many_handles_are_lost_at_once_chance_makes_one_of_twenty_pairs_worse_at_most() {
        let times = LossTimes::default();
        let lossless = TraceLosses { times, max_events: Some(0), is_mostly_whole: true };
        let mut rng = Rng::new(1);
        for at_once in [1, 2, 3, 5, 9] {
            let mut group = || MatchedGroup {
                process: None,
                type_name: String::new(),
                allocator: None,
                has_bytes: false,
                function: None,
                sides: [(); 2].map(|()| side(at_once, &mut rng)),
                is_of_suspect: true,
                around_unknown: None,
            };
            let is_worse = (0..1_000).map(|_| {
                let groups: Vec<MatchedGroup> = (0..6).map(|_| group()).collect();
                let none = Decreases::default();
                let compared = with_states(&groups, true, [&lossless, &lossless], &none);
                compared.iter().any(|group| group.got_worse)
            });
            let worse = is_worse.filter(|is_worse| *is_worse).count();
            assert!(worse <= 50, "{at_once} at once: {worse} of 1000");
        }
    }
}
