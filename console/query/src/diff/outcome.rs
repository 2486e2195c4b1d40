//! Compares the leaks of a group on two sides, whether these are traces or sets of traces, and says what became of it.

use super::rule::{self, Chances};
use super::tally::{LeakTally, TimeDependence};
use crate::amounts::Amount;
use crate::growth::Verdict;

/// Differences below this many bytes are ignored.
pub const MIN_BYTES: f64 = 65_536.0;

/// If fewer handles than this are expected on a much shorter side, that side says nothing about a group it lacks; nor
/// does one in which the program did not run. A steady leak is then worse by itself: a healthy program leaks nothing at
/// a rate.
const TOO_SHORT: f64 = 0.2;

/// Leaks of a group on one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SideLeaks {
    /// Amount that nothing but process exit closed or freed.
    pub leaked: Amount,
    /// Number leaked per minute of process run time; `None` if the minutes are unknown.
    pub per_minute: Option<f64>,
    /// How the group grows, the worst of all traces; `None` if nothing leaks.
    pub verdict: Option<Verdict>,
}

/// Leaks of a group on both sides, and what the comparison says about them.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedLeaks {
    /// The side before and the side after.
    pub sides: [SideLeaks; 2],
    pub state: GroupState,
    /// Whether the side after leaks more than chance and a factor of 1.5 explain, whatever events were lost.
    pub got_worse: bool,
    /// Whether lost events, or stacks missing from a dump, could explain why it seems to have got worse or not.
    pub is_uncertain: bool,
    /// The probability that the side after leaks at least this much if nothing changed.
    pub p_value: f64,
}

/// State of a group after the comparison, in listing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupState {
    /// Leaks more than chance explains.
    Worse,
    /// Leaks nothing before.
    New,
    /// Leaks nothing after.
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

impl ComparedLeaks {
    /// Returns the key by which groups are listed: those that got worse first.
    pub fn order(&self) -> (bool, bool, GroupState) {
        (!self.got_worse, !self.is_uncertain, self.state)
    }
}

/// Numbers of groups in a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparisonTotals {
    pub groups: usize,
    /// Groups that got worse, without known leaks.
    pub worse: usize,
    /// Groups that may have got worse, without known leaks; lost events or missing stacks in dumps leave that open.
    pub uncertain: usize,
    /// Groups in each state, in the order of states.
    states: [usize; 6],
}

impl ComparisonTotals {
    /// Counts groups, given whether each is a known leak.
    pub fn new<'l>(groups: impl Iterator<Item = (&'l ComparedLeaks, bool)>) -> Self {
        groups.fold(Self::default(), |mut totals, (leaks, is_known_leak)| {
            totals.groups += 1;
            totals.worse += usize::from(leaks.got_worse && !is_known_leak);
            totals.uncertain += usize::from(leaks.is_uncertain && !is_known_leak);
            totals.states[leaks.state as usize] += 1;
            totals
        })
    }

    /// Returns the number of groups in a state.
    pub fn count(&self, state: GroupState) -> usize {
        self.states[state as usize]
    }
}

/// From when on a side covers the life of a process, and so what the process fills once. Ordered by how much is
/// covered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// Later than the start of the session, as in a ring.
    #[default]
    Later,
    /// Start of the session.
    Session,
    /// Start of the process.
    Process,
}

/// Leaks of a group on one side, in the form that is tested.
pub struct TestedSide {
    /// What leaks in all the time.
    pub tally: LeakTally,
    /// Number that leaks.
    pub count: f64,
    /// How long the processes that could leak ran, in nanoseconds; `None` if only numbers are compared.
    pub length_ns: Option<f64>,
    /// Number of processes.
    pub processes: usize,
    pub verdict: Option<Verdict>,
    pub start: Start,
    /// Whether the program ran.
    pub has_run: bool,
}

/// One side compared with the other.
#[derive(Clone, Copy)]
pub struct Comparison {
    chances: Chances,
    /// Factor from the leaks of the other side to those expected here, if nothing changed.
    pub times: f64,
    /// Whether it can be worse at all.
    can_be_more: bool,
}

impl Comparison {
    /// Compares a side that may leak more with the other one, by the number of chances they leak on. Differences of up
    /// to `tolerance` do not matter. `in_pieces` counts both in parts of the time that have equal lengths, if that is
    /// possible.
    fn new(
        [more, less]: [&TestedSide; 2],
        tolerance: f64,
        in_pieces: impl FnOnce() -> Option<[LeakTally; 2]>,
    ) -> Self {
        let can_be_more = match more.verdict {
            // Short-lived handles are open at the end by chance; they do not leak at a rate.
            None | Some(Verdict::Balanced) => false,
            // The other side may lack a fill if it covers less of the start of the process.
            Some(Verdict::Once) => less.start >= more.start,
            Some(_) => true,
        };
        let against = |[more, less]: [&LeakTally; 2], share, times, kind| {
            let can_be_more = can_be_more && more.amount - less.amount * times > tolerance;
            Self { chances: Chances::new([more, less], share, kind), times, can_be_more }
        };
        let whole = [&more.tally, &less.tally];
        let Some((more_ns, less_ns)) = more.length_ns.zip(less.length_ns) else {
            return against(whole, 0.5, 1.0, TimeDependence::Rate);
        };
        let times = more_ns.max(1.0) / less_ns.max(1.0);
        if more.verdict != Some(Verdict::Steady) {
            // A leak without a rate does not shrink in a shorter time, and may happen once in each process.
            let processes = [more, less].map(|side| side.processes.max(1) as f64);
            let times = times.max(processes[0] / processes[1]).max(1.0);
            return against(whole, times / (1.0 + times), times, TimeDependence::Fill);
        }
        let share = times / (1.0 + times);
        if less.count <= 0.0 && (!less.has_run || more.tally.count / times < TOO_SHORT) {
            return against(whole, share.min(0.5), times, TimeDependence::Rate);
        }
        let Some([more, less]) = in_pieces() else {
            return against(whole, share, times, TimeDependence::Rate);
        };
        let share = more.length_ns / (more.length_ns + less.length_ns).max(1.0);
        against([&more, &less], share, times, TimeDependence::Rate)
    }

    fn is_more(&self, level: f64) -> bool {
        self.can_be_more && self.chances.is_significant(level)
    }
}

/// Both directions of a comparison.
pub struct BothDirections {
    /// Whether the side after leaks more.
    pub worse: Comparison,
    /// Whether the side before leaked more.
    pub better: Comparison,
    /// Whether each side leaks anything.
    leaks: [bool; 2],
}

impl BothDirections {
    /// Compares the side before with the side after. `in_pieces` gets the places of a side and of the other one.
    pub fn new(
        [before, after]: [&TestedSide; 2],
        tolerance: f64,
        in_pieces: impl Fn([usize; 2]) -> Option<[LeakTally; 2]>,
    ) -> Self {
        Self {
            worse: Comparison::new([after, before], tolerance, || in_pieces([1, 0])),
            better: Comparison::new([before, after], tolerance, || in_pieces([0, 1])),
            leaks: [before, after].map(|side| side.count > 0.0),
        }
    }
}

/// The probabilities below which groups are worse, and better.
#[derive(Clone, Copy)]
pub struct Levels {
    worse: f64,
    better: f64,
}

impl Levels {
    /// Returns the levels for some groups, which depend on their number.
    pub fn new(groups: &[BothDirections]) -> Self {
        Self {
            worse: rule::level(groups.iter().map(|both| both.worse.chances)),
            better: rule::level(groups.iter().map(|both| both.better.chances)),
        }
    }

    /// Determines for each group whether it is worse.
    pub fn worse(self, groups: &[BothDirections]) -> Vec<bool> {
        groups.iter().map(|both| both.worse.is_more(self.worse)).collect()
    }

    /// Says what became of a group, given whether it is worse and whether that is sure.
    pub fn compared(
        self,
        both: &BothDirections,
        sides: [SideLeaks; 2],
        is_worse: bool,
        is_sure: bool,
    ) -> ComparedLeaks {
        ComparedLeaks {
            sides,
            state: match both.leaks {
                [false, _] => GroupState::New,
                [_, false] => GroupState::Gone,
                _ if !is_sure => GroupState::Uncertain,
                _ if is_worse => GroupState::Worse,
                _ if both.better.is_more(self.better) => GroupState::Better,
                _ => GroupState::Same,
            },
            got_worse: is_worse && is_sure,
            is_uncertain: !is_sure,
            p_value: both.worse.chances.p_value(),
        }
    }
}
