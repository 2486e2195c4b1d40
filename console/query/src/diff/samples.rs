//! Compares two sets of traces: whether the second leaks more of a group than the first, by the same [`rule`](super::rule)
//! as two traces. Whole traces take the place of parts of the time: if their counts vary more than chance allows, their
//! dispersion is used.

use super::outcome::{
    BothDirections, ComparedLeaks, Levels, MIN_BYTES, SideLeaks, Start, TestedSide,
};
use super::tally::LeakTally;

/// Leaks of a group in a trace in which its processes ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceLeaks {
    /// Number that nothing but process exit closed or freed.
    pub count: f64,
    /// How long the processes that could leak ran, in seconds.
    pub seconds: f64,
    /// Number of processes.
    pub processes: usize,
    /// Whether the trace lost events.
    pub has_losses: bool,
}

/// A group in two sets of traces, before and after.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledGroup {
    pub sides: [SideLeaks; 2],
    pub traces: [Vec<TraceLeaks>; 2],
}

impl SampledGroup {
    /// Compares all traces, or only those without losses.
    fn compare(&self, only_lossless: bool) -> BothDirections {
        let [before, after] = [0, 1].map(|side| {
            let traces =
                self.traces[side].iter().filter(|trace| !(only_lossless && trace.has_losses));
            let leaks = traces.clone().map(|trace| (trace.count, trace.seconds * 1e9));
            let tally = LeakTally::from_traces(leaks);
            TestedSide {
                count: tally.count,
                length_ns: Some(tally.length_ns),
                tally,
                processes: traces.map(|trace| trace.processes).sum(),
                verdict: self.sides[side].verdict,
                start: Start::default(),
                has_run: true,
            }
        });
        BothDirections::new([&before, &after], f64::NEG_INFINITY, |_| None)
    }

    /// Whether it leaks enough more to matter, if it has bytes.
    fn matters(&self) -> bool {
        let [before, after] = self.sides.map(|side| side.leaked.bytes as f64);
        let [before_s, after_s] = self
            .traces
            .each_ref()
            .map(|traces| traces.iter().map(|trace| trace.seconds).sum::<f64>().max(1.0));
        before.max(after) <= 0.0 || after - before * (after_s / before_s) > MIN_BYTES
    }

    /// Whether both sets still have traces without those that lost events.
    fn is_known_without_losses(&self) -> bool {
        self.traces
            .iter()
            .all(|traces| traces.is_empty() || traces.iter().any(|trace| !trace.has_losses))
    }
}

/// Compares groups. Those for which the traces without losses alone lead to another result are uncertain.
pub fn compare_samples(groups: &[SampledGroup]) -> Vec<ComparedLeaks> {
    let [all, lossless] = [false, true].map(|only_lossless| -> Vec<BothDirections> {
        groups.iter().map(|group| group.compare(only_lossless)).collect()
    });
    let levels = Levels::new(&all);
    let worse = levels.worse(&all).into_iter().zip(Levels::new(&lossless).worse(&lossless));
    groups
        .iter()
        .zip(&all)
        .zip(worse)
        .map(|((group, both), (is_worse, is_worse_lossless))| {
            let says_else = !group.is_known_without_losses() || is_worse != is_worse_lossless;
            let matters = group.matters();
            levels.compared(both, group.sides, is_worse && matters, !(matters && says_else))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::GroupState;
    use super::*;
    use crate::growth::Verdict;

    fn sampled(counts: [&[u32]; 2]) -> SampledGroup {
        let sides = counts.map(|counts| SideLeaks {
            verdict: counts.iter().any(|count| *count > 0).then_some(Verdict::Steady),
            ..SideLeaks::default()
        });
        let trace = |count: &u32| {
            let count = f64::from(*count);
            TraceLeaks { count, seconds: 600.0, processes: 1, has_losses: false }
        };
        SampledGroup { sides, traces: counts.map(|counts| counts.iter().map(trace).collect()) }
    }

    fn compared(before: &[u32], after: &[u32]) -> ComparedLeaks {
        compare_samples(&[sampled([before, after])]).remove(0)
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
        let mut group = sampled([&[], &[20, 20]]);
        group.sides[1].verdict = Some(Verdict::Balanced);
        assert!(!compare_samples(&[group])[0].got_worse);
    }
}
