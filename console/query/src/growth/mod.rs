//! How a group of handles grows: it leaks at a rate, was filled once, or is balanced.
//!
//! A group is any set of handles; queries use groups of one process, one type and one create stack. A handle is
//! *leaked* if its program never closes it; a close by process exit does not count. The rule has two steps and no
//! absolute times, so it applies to traces of seconds and of days.
//!
//! 1. Which leaked handles are *kept* ([`kept`])? Handles opened shortly before the end are open in a balanced group,
//!    too. The Kaplan-Meier estimate of the lifetimes tells them apart: a leaked handle is kept if at least two thirds
//!    of the handles that reached its age are never closed.
//! 2. How are the opens of the kept handles distributed over time ([`shape`])? This decides the verdict.
//!
//! The rate is a count by time with a Poisson interval ([`rate`]).
//! `docs/growth.md` explains the rule to users; `docs/statistics.md` has its formulas.
//!
//! A group of n handles, m of them leaked, costs O(n log m) time and O(m) memory.

mod cure;
mod evidence;
#[cfg(test)]
mod family_tests;
mod kept;
mod lifetime;
mod outlived;
mod outstanding;
#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod published_tests;
mod rate;
mod segments;
mod shape;
mod slowing;
mod sweeps;
#[cfg(test)]
mod tests;

pub use self::evidence::{GrowthEvidence, GrowthWords};
pub use self::lifetime::ProcessLifetimes;
pub use self::lifetime::{Lifetime, TimeWindow};
pub use self::outlived::OutlivingHandles;
pub use self::outstanding::TimeParts;
pub use self::outstanding::{TimedChange, most_at_once};
pub use self::outstanding::{outstanding, sparkline};
pub use self::rate::Rate;
pub use self::shape::Verdict;

use self::kept::KeptHandles;

/// A verdict with its evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Verdict on the group.
    pub verdict: Verdict,
    /// Evidence for the verdict.
    pub evidence: GrowthEvidence,
}

impl Growth {
    /// Judges handles without times: all it can say is that they leaked.
    pub fn without_clock<'l>(lifetimes: impl Iterator<Item = &'l Lifetime>) -> Self {
        let verdict = Verdict::Short;
        Self { verdict, evidence: GrowthEvidence::without_clock(lifetimes) }
    }

    /// Returns the rate of a steady leak, or else the verdict: `30/min`, `burst`.
    pub fn short(&self) -> String {
        self.steady_rate().map_or_else(|| self.verdict.word().to_owned(), |rate| rate.short())
    }

    /// Returns the rate of a steady leak.
    pub fn steady_rate(&self) -> Option<Rate> {
        self.evidence.rate.filter(|_| self.verdict == Verdict::Steady)
    }

    /// Judges a group of handles in any order.
    pub fn new(lifetimes: &[Lifetime], window: TimeWindow) -> Self {
        Self::within(lifetimes, window, window)
    }

    /// Judges a group of handles, in any order, within the time of its process. A process that leaks everything within
    /// a moment of the `trace` has a burst, however short it lives.
    pub fn within(lifetimes: &[Lifetime], window: TimeWindow, trace: TimeWindow) -> Self {
        let mut growth =
            Self::judge(lifetimes.len(), &KeptHandles::new(lifetimes, window), window, trace);
        growth.evidence.last_open_ns = lifetimes.iter().map(|lifetime| lifetime.opened_ns).max();
        growth.evidence.bounds = window.bounds(trace, false);
        growth
    }

    /// Judges what several processes of a program opened, from the start of the first to the end of the last. Handles
    /// that each process opens at its start and keeps are filled once, even if processes start steadily. Leaking runs
    /// that come steadily are a steady leak, however much each run leaks at once.
    pub fn from_processes(processes: &[ProcessLifetimes], trace: TimeWindow) -> Self {
        if let [ProcessLifetimes { lifetimes, window }] = processes {
            return Self::within(lifetimes, *window, trace);
        }
        let window = processes
            .iter()
            .map(|process| process.window)
            .reduce(TimeWindow::hull)
            .unwrap_or(trace);
        let kept = KeptHandles::from_processes(processes, window);
        let opened = processes.iter().map(|process| process.lifetimes.len()).sum();
        let mut growth = Self::judge(opened, &kept, window, trace);
        let program_verdict = match growth.verdict {
            Verdict::Balanced => None,
            _ if kept.is_filled(processes, trace) => Some((Verdict::Once, None)),
            Verdict::Short => {
                // A run leaks its handles almost at once, so one handle per run shows whether runs come steadily.
                let runs = kept.first_of_each(processes);
                let is_steady = shape::verdict(opened, &runs, window).0 == Verdict::Steady;
                is_steady.then(|| (Verdict::Steady, Rate::new(&kept.opens)))
            }
            _ => None,
        };
        if let Some((verdict, rate)) = program_verdict {
            let evidence = GrowthEvidence::new(opened, &kept, &kept.opens, rate, window);
            growth = Self { verdict, evidence };
        }
        let leaking = processes.iter().filter(|process| {
            process.lifetimes.iter().any(|lifetime| lifetime.closed_ns.is_none())
        });
        growth.evidence.processes = leaking.count();
        growth.evidence.bounds = window.bounds(trace, true);
        growth
    }

    fn judge(opened: usize, kept: &KeptHandles, window: TimeWindow, trace: TimeWindow) -> Self {
        let (mut verdict, opens) = shape::verdict(opened, kept, window);
        let moment_ns = trace.length_ns() / 100;
        if let (Verdict::Steady, [first, .., last]) = (verdict, opens.as_slice())
            && last.saturating_sub(*first) < moment_ns
        {
            verdict = Verdict::Burst;
        }
        let rate = (verdict == Verdict::Steady).then(|| Rate::new(&opens)).flatten();
        Self { verdict, evidence: GrowthEvidence::new(opened, kept, &opens, rate, window) }
    }
}
