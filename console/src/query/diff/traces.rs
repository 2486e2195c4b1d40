//! Two traces: what the second one loses more or less of than the first.

use handlescope_model::StackIdx;

use super::matched::{MatchedGroup, Start, matched};
use super::rule::{self, Lost};
use super::tally::{Kind, Seen, Tally};
use super::{NS_PER_MINUTE, grouped, minutes, parts, per_minute};
use crate::cancel::Cancel;
use crate::query::criteria::DiffCriteria;
use crate::query::error::QueryError;
use crate::query::frame_names::FrameNames;
use crate::query::growth::Verdict;
use crate::query::no_match::NoMatch;
use crate::query::object_ref::FileAnswer;
use crate::query::source::Source;
use crate::trace::{Caveat, loss_times};

/// What two traces lose, compared.
#[derive(Default)]
pub struct TracesDiff<'a> {
    /// The trace before and the one after.
    pub files: Vec<FileAnswer<'a>>,
    /// Their lengths in minutes, as far as they are known.
    pub minutes: Vec<Option<f64>>,
    /// Groups that lose handles in either trace: first those that got worse, then new ones.
    pub groups: Vec<ComparedGroup>,
    /// Whether a trace has processes and types that are asked for, with handles or without.
    knows_choice: bool,
}

/// Handles and views of processes of one name, of one type and one create stack by its functions.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedGroup {
    /// Name of the processes.
    pub process: String,
    /// Type of the objects.
    pub type_name: String,
    /// The first frame outside of the system of the stack that opened them.
    pub function: Option<String>,
    /// The trace before.
    pub before: Side,
    /// The trace after.
    pub after: Side,
    /// What became of it.
    pub state: State,
    /// Whether the trace after loses more than chance and a factor of 1.5 explain, whatever events were lost.
    pub got_worse: bool,
    /// Whether lost events explain that it seems to have got worse, or that it does not.
    pub is_uncertain: bool,
    /// The probability that the trace after loses so many or more, if nothing changed.
    pub p_value: f64,
    /// What the trace after is expected to lose if nothing changed. Of what is not lost at a rate that is a
    /// range, and this the number in it that is nearest to what the trace loses.
    pub expected: f64,
}

/// What one of the traces loses of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Side {
    /// Handles and views that nothing but the end of a process closed.
    pub lost: u64,
    /// The same by the minutes in which the processes ran; `None` where these are unknown.
    pub per_minute: Option<f64>,
    /// The stack that opened them: one of those that are equal; `None` where nothing is lost.
    pub create_stack: Option<StackIdx>,
    /// How the group grows; `None` where nothing is lost.
    pub verdict: Option<Verdict>,
}

impl Side {
    /// What is open for a short time only is open at the end by chance, and not lost at a rate.
    fn is_by_chance(&self) -> bool {
        self.verdict == Some(Verdict::Balanced)
    }
}

/// What became of a group, in the order that groups are listed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It loses more than chance explains.
    Worse,
    /// It loses nothing in the trace before.
    New,
    /// It loses nothing in the trace after.
    Gone,
    /// It loses less than chance explains.
    Better,
    /// Chance explains the difference.
    Same,
}

impl State {
    /// The word it goes by, which stays the same.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Better => "better",
            Self::Same => "same",
        }
    }
}

impl TracesDiff<'_> {
    /// How many groups got worse.
    pub fn worse(&self) -> usize {
        self.groups.iter().filter(|group| group.got_worse).count()
    }

    /// How many groups may have got worse, or may not have, because events were lost.
    pub fn uncertain(&self) -> usize {
        self.groups.iter().filter(|group| group.is_uncertain).count()
    }

    /// Why nothing of either trace passes; `None` where something does, or the process or type is known and has no
    /// handles, as it should be.
    pub fn no_match(&self) -> Option<&NoMatch> {
        let no_match = self.files.iter().find_map(|file| file.no_match.as_ref());
        no_match.filter(|_| !self.knows_choice)
    }

    /// Whether what is lost is compared by the lengths of the traces, and not by numbers alone.
    pub fn has_lengths(&self) -> bool {
        self.minutes.iter().all(Option::is_some)
    }

    /// How many groups are in a state.
    pub fn count(&self, state: State) -> usize {
        self.groups.iter().filter(|group| group.state == state).count()
    }
}

/// Compares what the first two sources lose.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn compare_traces<'a>(
    sources: &'a [Source<'a>],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<TracesDiff<'a>, QueryError> {
    let mut files = grouped(sources, criteria, names, cancel)?;
    files.truncate(2);
    let length = |file| parts(file).and_then(|(groups, _)| minutes(file, groups.extent));
    let minutes: Vec<Option<f64>> = files.iter().map(length).collect();
    let (matched, not_comparable) = matched(&files, criteria)?;
    let has_lengths = minutes.iter().all(Option::is_some);
    let losses = files.iter().map(last_loss_ns).collect::<Result<Vec<_>, _>>()?;
    let groups = with_states(&matched, has_lengths, &losses);
    for (at, file) in files.iter_mut().enumerate() {
        let stacks = groups.iter().filter_map(|group| group.sides()[at.min(1)].create_stack);
        file.show_stacks(stacks.collect())?;
    }
    if let Some(file) = files.get_mut(1) {
        file.caveats.extend(Caveat::of_other_builds(&not_comparable));
    }
    let knows_choice = files.iter().any(|file| knows_choice(file, criteria));
    Ok(TracesDiff { files, minutes, groups, knows_choice })
}

/// Whether a trace has processes and types that are asked for.
fn knows_choice(file: &FileAnswer<'_>, criteria: &DiffCriteria) -> bool {
    let has_process = criteria.process.as_ref().is_none_or(|filter| {
        let mut rows = file.file.processes.rows().iter();
        rows.any(|process| process.is_meant_by(filter, criteria.with_identities))
    });
    let has_type = criteria
        .object_type
        .as_ref()
        .is_none_or(|filter| file.file.types.names().any(|name| filter.matches(name)));
    has_process && has_type
}

/// The time after which a trace has all events; `None` where it lost none.
fn last_loss_ns(file: &FileAnswer<'_>) -> Result<Option<i64>, QueryError> {
    let times = loss_times(file.file.trace)?;
    let last = times.spans().last().map(|(_, last)| *last);
    Ok(if times.is_anywhere() { Some(i64::MAX) } else { last })
}

impl ComparedGroup {
    fn sides(&self) -> [&Side; 2] {
        [&self.before, &self.after]
    }
}

/// What a trace loses of a group against the other one.
#[derive(Clone, Copy)]
struct Against {
    lost: Lost,
    /// How many times as much it is expected to lose as the other one, if nothing changed.
    times: f64,
    /// Whether it can be worse at all.
    can_be_more: bool,
}

/// A trace of which it is asked whether it loses more, and the other one.
struct Pair<'m> {
    verdict: Option<Verdict>,
    is_new: bool,
    seen: [&'m Seen; 2],
    starts: [Start; 2],
    /// What both lose, where that is all that is known.
    counts: Option<[u64; 2]>,
}

impl Pair<'_> {
    /// What is lost of it, on how many chances.
    fn compare(&self) -> Against {
        let can_be_more = match self.verdict {
            // What is open for a short time only is open at the end by chance, and not lost at a rate.
            None | Some(Verdict::Balanced) => false,
            // What the other trace does not have from its start.
            Some(Verdict::Once) => self.starts[1] >= self.starts[0],
            Some(_) => true,
        };
        let of = |tallies: [Tally; 2], share, times, kind| {
            let lost = Lost::new([&tallies[0], &tallies[1]], share, kind);
            Against { lost, times, can_be_more }
        };
        if let Some(counts) = self.counts {
            return of(counts.map(Tally::of_counts), 0.5, 1.0, Kind::Rate);
        }
        let lengths = self.seen.map(|seen| seen.length_ns().max(1) as f64);
        let times = lengths[0] / lengths[1];
        if self.verdict != Some(Verdict::Steady) {
            // What is not lost at a rate does not get less in a shorter time, and may be lost once by each process.
            let processes = self.seen.map(|seen| seen.windows.len().max(1) as f64);
            let times = times.max(processes[0] / processes[1]).max(1.0);
            let tallies = self.seen.map(|seen| Tally::of(seen, None));
            return of(tallies, times / (1.0 + times), times, Kind::Fill);
        }
        let whole = self.seen.map(|seen| Tally::of(seen, None));
        if self.is_new && whole[0].handles / times < TOO_SHORT {
            return of(whole, 0.5_f64.min(times / (1.0 + times)), times, Kind::Rate);
        }
        let piece_ns = self.seen.map(Seen::longest_ns).into_iter().min();
        let tallies = self.seen.map(|seen| Tally::of(seen, piece_ns));
        let share = tallies[0].length_ns / (tallies[0].length_ns + tallies[1].length_ns).max(1.0);
        of(tallies, share, times, Kind::Rate)
    }
}

/// Fewer handles than this are not expected in a trace that is much shorter, so that it says nothing about a group that
/// it does not have. A steady leak is worse by itself then: a healthy program loses nothing at a rate.
const TOO_SHORT: f64 = 0.2;

/// What both traces lose against each other, first the one after against the one before.
type Both = [Against; 2];

/// Compares groups, from after the last loss on where `losses` says so and one is asked for.
fn compare(
    groups: &[MatchedGroup],
    has_lengths: bool,
    losses: &[Option<i64>],
) -> (Vec<Both>, [f64; 2]) {
    let both = |group: &MatchedGroup| {
        let left = |at: usize| losses.get(at).copied().flatten();
        let clipped = [0, 1].map(|at| left(at).map(|ns| group.sides[at].seen.after(ns)));
        let seen = |at: usize| clipped[at].as_ref().unwrap_or(&group.sides[at].seen);
        let start =
            |at: usize| if clipped[at].is_some() { Start::Later } else { group.sides[at].start };
        let against = |more: usize, less: usize| {
            let counts = [group.sides[more].lost, group.sides[less].lost];
            Pair {
                verdict: group.sides[more].verdict,
                is_new: counts[1] == 0,
                seen: [seen(more), seen(less)],
                starts: [start(more), start(less)],
                counts: (!has_lengths).then_some(counts),
            }
            .compare()
        };
        [against(1, 0), against(0, 1)]
    };
    let all: Vec<Both> = groups.iter().map(both).collect();
    let levels = [0, 1].map(|way| rule::level(all.iter().map(|both| both[way].lost)));
    (all, levels)
}

/// Whether each group got worse, going by what was recorded after the last loss; `None` without a loss.
fn worse_without_losses(
    groups: &[MatchedGroup],
    has_lengths: bool,
    losses: &[Option<i64>],
) -> Option<Vec<bool>> {
    losses.iter().any(Option::is_some).then(|| {
        let (all, levels) = compare(groups, has_lengths, losses);
        all.iter().map(|[after, _]| after.is_more(levels[0])).collect()
    })
}

impl Against {
    fn is_more(&self, level: f64) -> bool {
        self.can_be_more && self.lost.is_significant(level)
    }
}

/// Says of each group what became of it, and puts them into their order.
fn with_states(
    matched: &[MatchedGroup],
    has_lengths: bool,
    losses: &[Option<i64>],
) -> Vec<ComparedGroup> {
    let (all, [worse, better]) = compare(matched, has_lengths, &[]);
    let without_losses = worse_without_losses(matched, has_lengths, losses);
    let group = |(at, (group, both)): (usize, (&MatchedGroup, Both))| {
        let [before, after] = [0, 1].map(|side| side_of(group, side, has_lengths));
        let is_worse = both[0].is_more(worse);
        let is_sure = without_losses.as_ref().is_none_or(|sure| sure[at] == is_worse);
        let got_worse = is_worse && is_sure;
        let state = match (before.lost, after.lost) {
            (0, _) => State::New,
            (_, 0) => State::Gone,
            _ if got_worse => State::Worse,
            _ if both[1].is_more(better) && is_sure => State::Better,
            _ => State::Same,
        };
        ComparedGroup {
            process: group.process.clone(),
            type_name: group.type_name.clone(),
            function: group.function.clone(),
            before,
            after,
            state,
            got_worse,
            is_uncertain: !is_sure,
            p_value: both[0].lost.p_value(),
            expected: expected([before, after], both),
        }
    };
    let mut groups: Vec<ComparedGroup> = matched.iter().zip(all).enumerate().map(group).collect();
    groups.sort_by_key(|group| {
        let more = i128::from(group.after.lost) - i128::from(group.before.lost);
        (!group.got_worse, !group.is_uncertain, group.state, -more)
    });
    groups
}

fn side_of(group: &MatchedGroup, side: usize, has_lengths: bool) -> Side {
    let side = &group.sides[side];
    let minutes = side.seen.length_ns() as f64 / NS_PER_MINUTE;
    let minutes = Some(minutes).filter(|minutes| has_lengths && *minutes > 0.0);
    Side {
        lost: side.lost,
        per_minute: per_minute(side.lost, minutes),
        create_stack: side.create_stack,
        verdict: side.verdict,
    }
}

/// What the test takes for unchanged in the trace after: no more than makes it worse, no fewer than makes it better.
fn expected([before, after]: [Side; 2], both: Both) -> f64 {
    let lost = before.lost as f64;
    let most = if after.is_by_chance() { f64::INFINITY } else { lost * both[0].times };
    let least = if before.is_by_chance() { 0.0 } else { lost / both[1].times };
    (after.lost as f64).max(least).min(most)
}
