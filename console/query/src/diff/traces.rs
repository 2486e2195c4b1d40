//! Compares two traces: what the second leaks more or less of than the first.

use std::borrow::Cow;

use handlescope_model::rules::LossTimes;
use handlescope_model::tables::Processes;
use handlescope_model::{StackIdx, Trace};

use super::compared::{ComparableAnswer, extent, minutes, rows_of_suspect};
use super::group::{GroupSite, leave_known_leaks};
use super::matched::{Decreases, MatchedGroup, matched};
use super::outcome::{
    BothDirections, ComparedLeaks, ComparisonTotals, Levels, MIN_BYTES, SideLeaks, Start,
    TestedSide,
};
use super::tally::{GroupSample, LeakTally};
use crate::acquired::{AcquisitionGroups, KeptSites};
use crate::amounts::Amount;
use crate::answer::{About, TraceAnswer};
use crate::context::Source;
use crate::criteria::DiffCriteria;
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use crate::growth::{TimeWindow, Verdict};
use crate::no_match::NoMatch;
use crate::suspect_rows::SuspectRows;
use handlescope_session::cancel::Cancel;
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
    pub site: GroupSite,
    pub leaks: ComparedLeaks,
    /// The stack in each trace, one of several equal ones; `None` if nothing leaks there.
    pub stacks: [Option<StackIdx>; 2],
    /// Number that the trace after is expected to leak if nothing changed. Without a rate this is a range; then it is
    /// the number in the range nearest to what the trace leaks.
    pub expected: f64,
    /// Expected bytes of allocations, in the same sense.
    pub expected_bytes: f64,
}

impl<'t, F: TraceAnswer<'t>> TracesDiff<F> {
    /// Whether both traces are dumps or lists. In these, everything that is open counts, leaked or not.
    pub fn are_of_one_moment(&self) -> bool {
        self.files.iter().all(|file| file.about().info.is_of_one_moment())
    }
}

impl<F> TracesDiff<F> {
    /// Counts the groups.
    pub fn totals(&self) -> ComparisonTotals {
        let groups = self.groups.iter();
        ComparisonTotals::new(groups.map(|group| (&group.leaks, group.site.ignored.is_some())))
    }

    /// Whether leaks are compared relative to the lengths of the traces rather than by number alone.
    pub fn has_lengths(&self) -> bool {
        self.minutes.iter().all(Option::is_some)
    }
}

/// Compares what two sources leak.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn compare_traces<'a, F: ComparableAnswer<'a>>(
    sources: &'a [Source<'a>],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<TracesDiff<F>, QueryError> {
    let mut files: Vec<F> = F::ask(sources, criteria, true, names, cancel)?;
    let acquired = files
        .iter()
        .map(|file| file.acquired(criteria, KeptSites::All))
        .collect::<Result<Vec<_>, _>>()?;
    let windows = files.iter().zip(&acquired).map(|(file, it)| extent(file, it.as_ref())).collect();
    let length = |acquired: &AcquisitionGroups<'_>| {
        minutes(acquired.extent.length_ns(), acquired.window.is_some())
    };
    let minutes: Vec<Option<f64>> =
        acquired.iter().map(|acquired| acquired.as_ref().and_then(length)).collect();
    let suspects = rows_of_suspect(&files, criteria)?;
    let (mut groups, not_comparable) = match (files.as_slice(), acquired.as_slice()) {
        ([before, after], [Some(old), Some(new)]) => {
            let has_lengths = minutes.iter().all(Option::is_some);
            compared([before.about(), after.about()], [old, new], &suspects, has_lengths)?
        }
        // The command refuses a trace without acquisitions, because a gate would pass.
        _ => (Vec::new(), Vec::new()),
    };
    drop(acquired);
    // All groups were compared first, so that ignoring some does not change the significance.
    let ignored =
        leave_known_leaks(&mut groups, |group| &mut group.site, &files, &criteria.ignoring)?;
    for (side, file) in files.iter_mut().enumerate() {
        file.show_stacks(groups.iter().filter_map(|group| *group.stacks.get(side)?).collect())?;
    }
    if let [before, after] = files.as_mut_slice() {
        let programs = programs_of_dumps([before.about(), after.about()])?;
        after.about_mut().caveats.extend(programs);
        after.about_mut().caveats.extend(Caveat::for_other_builds(&not_comparable));
    }
    let no_match = files
        .iter()
        .find_map(|file| file.about().no_match.as_ref())
        .filter(|no_match| !files.iter().any(|file| file.knows_choice(criteria, no_match)))
        .cloned();
    Ok(TracesDiff { files, windows, minutes, groups, ignored, no_match })
}

/// Returns a caveat if two dumps are of different programs. The first process of a dump is its own.
fn programs_of_dumps(traces: [&About<'_>; 2]) -> Result<Option<Caveat>, QueryError> {
    if !traces.iter().all(|about| about.info.is_dump()) {
        return Ok(None);
    }
    let [before, after] = traces.map(|about| about.trace.values(Processes::name));
    let (before, after) = (before?, after?);
    Ok(Caveat::for_two_programs([&before, &after].map(|names| names.get(0).unwrap_or_default())))
}

/// Compares two traces: returns their groups, and the modules with frames that cannot be compared.
fn compared(
    abouts: [&About<'_>; 2],
    traces: [&AcquisitionGroups<'_>; 2],
    suspects: &[Option<SuspectRows>],
    has_lengths: bool,
) -> Result<(Vec<ComparedGroup>, Vec<String>), QueryError> {
    let infos = abouts.map(|about| &*about.info);
    let (matched, not_comparable) = matched(traces, suspects, infos)?;
    let [before, after] =
        [0, 1].map(|side| TraceLosses::new(abouts[side].trace, traces[side].extent));
    let is_of_dumps = traces.iter().all(|trace| trace.is_of_one_moment);
    let groups = with_states(matched, has_lengths, [&before?, &after?], is_of_dumps);
    Ok((groups, not_comparable))
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
        let trace_time = GroupSample { windows: vec![extent], ..GroupSample::default() };
        let is_mostly_whole = trace_time.between(&times).length_ns() > trace_time.length_ns() / 2;
        Ok(Self { times, max_events, is_mostly_whole })
    }
}

/// Compares groups. With `losses`, only the times between them count, in which no event is missing. `unseen` says how
/// many more handles of a group leak in each trace than it shows, or fewer if negative.
fn compare(
    groups: &[MatchedGroup],
    has_lengths: bool,
    losses: [Option<&LossTimes>; 2],
    unseen: impl Fn(&MatchedGroup) -> [f64; 2],
) -> Vec<BothDirections> {
    groups
        .iter()
        .map(|group| {
            let samples = [0, 1].map(|side| {
                let sample = &group.sides[side].sample;
                losses[side]
                    .map_or(Cow::Borrowed(sample), |times| Cow::Owned(sample.between(times)))
            });
            let unseen = unseen(group);
            let unseen_size = group.largest();
            let tally = |side: usize, piece_ns| {
                let tally = if has_lengths {
                    LeakTally::new(&samples[side], piece_ns)
                } else {
                    LeakTally::from_counts(group.sides[side].leaked.count)
                };
                tally.with(unseen[side], unseen_size)
            };
            let sides = [0, 1].map(|side| {
                let matched = &group.sides[side];
                TestedSide {
                    tally: tally(side, None),
                    count: matched.leaked.count as f64 + unseen[side],
                    length_ns: has_lengths.then(|| samples[side].length_ns() as f64),
                    processes: matched.sample.windows.len(),
                    verdict: matched.verdict,
                    // A loss may hide a fill at the start.
                    start: losses[side].map_or(matched.start, |_| Start::Later),
                    has_run: matched.has_run || group.site.program.is_none(),
                }
            });
            let piece_ns = samples.iter().map(|sample| sample.longest_ns()).min();
            let tolerance = if group.has_bytes { MIN_BYTES } else { f64::NEG_INFINITY };
            let [before, after] = &sides;
            BothDirections::new([before, after], tolerance, |sides| {
                Some(sides.map(|side| tally(side, piece_ns)))
            })
        })
        .collect()
}

/// Determines for each group whether it surely got worse or surely did not, despite losses and missing stacks.
fn sure(
    groups: &[MatchedGroup],
    has_lengths: bool,
    losses: [&TraceLosses; 2],
    is_of_dumps: bool,
    levels: Levels,
    is_worse: &[bool],
) -> Vec<bool> {
    let [before, after] = losses;
    let decreases = Decreases::new(groups, is_of_dumps);
    let worse = |unseen: &dyn Fn(&MatchedGroup) -> [f64; 2]| {
        levels.worse(&compare(groups, has_lengths, [None; 2], unseen))
    };
    // Assume that as many handles as possible only gained or lost a stack, or have unknown code at another address.
    let is_worse_regrouped = if decreases.is_empty() {
        vec![true; groups.len()]
    } else {
        worse(&|group| [0.0, -(decreases.to(group) as f64)])
    };
    if before.times.is_empty() && after.times.is_empty() {
        return is_worse
            .iter()
            .zip(is_worse_regrouped)
            .map(|(is_worse, is_surely_worse)| !is_worse || is_surely_worse)
            .collect();
    }
    let between = has_lengths.then(|| {
        let losses = losses.map(|losses| Some(&losses.times).filter(|times| !times.is_empty()));
        let groups = compare(groups, has_lengths, losses, |_| [0.0; 2]);
        Levels::new(&groups).worse(&groups)
    });
    // Assume that the lost events explain, or hide, as much of a difference as possible.
    let unseen = |sign: f64| {
        let (before, after) = before.max_events.zip(after.max_events)?;
        Some(worse(&|_| [-sign * before as f64, sign * after as f64]))
    };
    let (explained, hidden) = (unseen(-1.0), unseen(1.0));
    // Events missing in the trace after can only make it look worse.
    let shows_all = before.times.is_empty() || (has_lengths && before.is_mostly_whole);
    let has_verdict = |worse: &Option<Vec<bool>>, index: usize, is_worse: bool| {
        worse.as_ref().is_some_and(|worse| worse[index] == is_worse)
    };
    is_worse
        .iter()
        .enumerate()
        .map(|(index, is_worse)| {
            let is_worse_between = has_verdict(&between, index, true);
            if *is_worse {
                is_worse_regrouped[index]
                    && (is_worse_between || has_verdict(&explained, index, true))
            } else {
                has_verdict(&hidden, index, false) || (shows_all && !is_worse_between)
            }
        })
        .collect()
}

/// Determines the state of each group and puts the groups in order.
fn with_states(
    matched: Vec<MatchedGroup>,
    has_lengths: bool,
    losses: [&TraceLosses; 2],
    is_of_dumps: bool,
) -> Vec<ComparedGroup> {
    let comparisons = compare(&matched, has_lengths, [None; 2], |_| [0.0; 2]);
    let levels = Levels::new(&comparisons);
    let worse = levels.worse(&comparisons);
    let sure = sure(&matched, has_lengths, losses, is_of_dumps, levels, &worse);
    // All groups were compared first, so that selecting a suspect does not change the significance.
    let mut groups: Vec<ComparedGroup> = matched
        .into_iter()
        .zip(&comparisons)
        .zip(worse.into_iter().zip(sure))
        .filter(|((group, _), _)| group.is_of_suspect)
        .map(|((group, both), (is_worse, is_sure))| {
            let sides = group.sides.each_ref().map(|side| side.leaks(has_lengths));
            let stacks = group.sides.each_ref().map(|side| side.create_stack);
            let side = usize::from(stacks[1].is_some() || stacks[0].is_none());
            ComparedGroup {
                leaks: levels.compared(both, sides, is_worse, is_sure),
                stacks,
                expected: expected(sides, both, |leaked| leaked.count as f64),
                expected_bytes: expected(sides, both, |leaked| leaked.bytes as f64),
                site: GroupSite { stack: stacks[side], side, ..group.site },
            }
        })
        .collect();
    groups.sort_by_key(|group| {
        let [before, after] = group.leaks.sides.map(|side| side.leaked);
        let more_bytes = i128::from(after.bytes) - i128::from(before.bytes);
        let more = i128::from(after.count) - i128::from(before.count);
        (group.leaks.order(), -more_bytes, -more)
    });
    groups
}

/// Returns the amount the test takes as unchanged in the trace after: no more than what would be worse, no less than
/// what would be better.
fn expected(
    [before, after]: [SideLeaks; 2],
    both: &BothDirections,
    amount: fn(Amount) -> f64,
) -> f64 {
    // Short-lived handles that happen to be open at the end do not leak at a rate.
    let is_by_chance = |side: SideLeaks| side.verdict == Some(Verdict::Balanced);
    let leaked = amount(before.leaked);
    let most = if is_by_chance(after) { f64::INFINITY } else { leaked * both.worse.times };
    let least = if is_by_chance(before) { 0.0 } else { leaked / both.better.times };
    amount(after.leaked).max(least).min(most)
}

#[cfg(test)]
mod tests {
    use handlescope_tests::rng::Rng;

    use super::super::matched::MatchedSide;
    use super::*;
    use crate::growth::{Lifetime, ProcessLifetimes};

    const WINDOW: TimeWindow = TimeWindow { start_ns: 0, end_ns: 600_000_000_000 };

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
            sample: GroupSample {
                windows: vec![WINDOW],
                processes: vec![ProcessLifetimes { lifetimes, window: WINDOW }],
                sizes: vec![Vec::new()],
            },
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
                site: GroupSite::default(),
                has_bytes: false,
                sides: [(); 2].map(|()| side(at_once, &mut rng)),
                is_of_suspect: true,
                around_unknown: None,
            };
            let is_worse = (0..1_000).map(|_| {
                let groups: Vec<MatchedGroup> = (0..6).map(|_| group()).collect();
                let compared = with_states(groups, true, [&lossless, &lossless], false);
                compared.iter().any(|group| group.leaks.got_worse)
            });
            let worse = is_worse.filter(|is_worse| *is_worse).count();
            assert!(worse <= 50, "{at_once} at once: {worse} of 1000");
        }
    }
}
