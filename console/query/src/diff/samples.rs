//! Compares two sets of traces: whether the second leaks more of a group than the first, by the same [`rule`] as two
//! traces. Whole traces take the place of parts of the time: if their counts vary more than chance allows, their
//! dispersion is used.

use super::rule::{self, Chances};
use super::tally::{LeakTally, TimeDependence};
use super::traces::{GroupState, TOO_SHORT};
use crate::growth::Verdict;

/// Leaks of a group in one trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceLeaks {
    /// Number that nothing but process exit closed or freed.
    pub count: f64,
    /// How long the processes that could leak ran, in seconds.
    pub seconds: f64,
}

/// Leaks of a group in a set of traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceSetLeaks {
    /// The traces its processes ran in.
    pub traces: Vec<TraceLeaks>,
    /// Number of processes.
    pub processes: usize,
    /// Worst growth of the group in any trace; `None` if nothing leaks.
    pub verdict: Option<Verdict>,
}

/// Comparison of two sets of traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledState {
    pub state: GroupState,
    /// Whether the second set leaks more than chance and a factor of 1.5 explain.
    pub got_worse: bool,
    /// The probability that the second set leaks at least this many if nothing changed.
    pub p_value: f64,
}

impl TraceSetLeaks {
    pub fn count(&self) -> f64 {
        self.traces.iter().map(|trace| trace.count).sum()
    }

    pub fn seconds(&self) -> f64 {
        self.traces.iter().map(|trace| trace.seconds).sum()
    }

    fn tally(&self) -> LeakTally {
        LeakTally::from_traces(self.traces.iter().map(|trace| (trace.count, trace.seconds * 1e9)))
    }
}

/// One direction of a comparison.
struct Direction {
    chances: Chances,
    can_be_more: bool,
}

impl Direction {
    /// Compares in the direction that `more` leaks more than `less`.
    fn new(more: &TraceSetLeaks, less: &TraceSetLeaks) -> Self {
        let can_be_more = !matches!(more.verdict, None | Some(Verdict::Balanced));
        let tallies = [more.tally(), less.tally()];
        let lengths = [&tallies[0], &tallies[1]].map(|tally| tally.length_ns.max(1.0));
        let times = lengths[0] / lengths[1];
        let against = |share, kind| {
            let chances = Chances::new([&tallies[0], &tallies[1]], share, kind);
            Self { chances, can_be_more }
        };
        if more.verdict != Some(Verdict::Steady) {
            // A leak without a rate may happen once in each process.
            let processes = [more, less].map(|side| side.processes.max(1) as f64);
            let times = times.max(processes[0] / processes[1]).max(1.0);
            return against(times / (1.0 + times), TimeDependence::Fill);
        }
        let share = times / (1.0 + times);
        let is_new = less.count() <= 0.0;
        if is_new && more.count() / times < TOO_SHORT {
            against(share.min(0.5), TimeDependence::Rate)
        } else {
            against(share, TimeDependence::Rate)
        }
    }

    fn is_more(&self, level: f64) -> bool {
        self.can_be_more && self.chances.is_significant(level)
    }
}

/// Compares groups of two sets of traces, before and after.
pub fn compare_samples(groups: &[[TraceSetLeaks; 2]]) -> Vec<SampledState> {
    let both = groups
        .iter()
        .map(|[before, after]| [Direction::new(after, before), Direction::new(before, after)]);
    let both: Vec<[Direction; 2]> = both.collect();
    let [worse, better] =
        [0, 1].map(|side| rule::level(both.iter().map(|directions| directions[side].chances)));
    let state = |(both, [before, after]): (&[Direction; 2], &[TraceSetLeaks; 2])| {
        let got_worse = both[0].is_more(worse);
        let state = match (before.count() > 0.0, after.count() > 0.0) {
            (false, _) => GroupState::New,
            (_, false) => GroupState::Gone,
            _ if got_worse => GroupState::Worse,
            _ if both[1].is_more(better) => GroupState::Better,
            _ => GroupState::Same,
        };
        SampledState { state, got_worse, p_value: both[0].chances.p_value() }
    };
    both.iter().zip(groups).map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(counts: &[u32]) -> TraceSetLeaks {
        let traces =
            counts.iter().map(|count| TraceLeaks { count: f64::from(*count), seconds: 600.0 });
        let is_leak = counts.iter().any(|count| *count > 0);
        TraceSetLeaks {
            traces: traces.collect(),
            processes: counts.len(),
            verdict: is_leak.then_some(Verdict::Steady),
        }
    }

    fn compared(before: &[u32], after: &[u32]) -> SampledState {
        compare_samples(&[[sampled(before), sampled(after)]])[0]
    }

    #[test]
    fn more_in_the_same_time_is_worse() {
        assert!(compared(&[10, 11, 9, 10], &[20, 19, 21, 22]).got_worse);
        assert_eq!(compared(&[10, 11, 9, 10], &[11, 10, 10, 11]).state, GroupState::Same);
        assert_eq!(compared(&[20, 19, 21, 22], &[10, 11, 9, 10]).state, GroupState::Better);
        assert_eq!(compared(&[20, 20], &[0, 0]).state, GroupState::Gone);
    }

    #[test]
    fn more_traces_may_leak_more() {
        assert_eq!(compared(&[10, 10], &[10; 20]).state, GroupState::Same);
        let new = compared(&[0, 0], &[20, 20]);
        assert!(new.got_worse && new.state == GroupState::New);
    }

    #[test]
    fn traces_that_differ_by_themselves_say_less() {
        // The sums are the same, but one trace has nearly all of it.
        assert!(compared(&[10; 10], &[20; 10]).got_worse);
        let uneven = [182, 2, 2, 2, 2, 2, 2, 2, 2, 2];
        assert!(!compared(&[10; 10], &uneven).got_worse);
    }

    #[test]
    fn a_steady_leak_of_a_program_that_did_not_run_before_is_worse_by_itself() {
        assert!(compared(&[], &[20, 20]).got_worse);
        let mut after = sampled(&[20, 20]);
        after.verdict = Some(Verdict::Balanced);
        assert!(!compare_samples(&[[sampled(&[]), after]])[0].got_worse);
    }
}
