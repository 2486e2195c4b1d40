//! The time since handles were last closed, if it says nothing about open handles.

use super::lifetime::{Lifetime, TimeWindow};
use super::outstanding::TimeParts;

/// Number of equal parts of the time: handles closed in one part were closed together.
const PARTS: usize = 256;

/// Probability below which the time without closes is no chance.
const LEVEL: f64 = 0.01;

/// Returns the time at the end in which the group closed nothing; 0 if that is no chance.
///
/// A garbage collector closes all handles dropped since its last run, at irregular times. Handles opened since then are
/// as old as they can be, leaked or not. If n runs are spread at random over a time, none falls into the last share s
/// of it with probability (1 - s)^n.
pub fn unswept_ns(lifetimes: &[Lifetime], window: TimeWindow) -> i64 {
    let parts = TimeParts::new(window, PARTS);
    let mut has_closes = vec![false; parts.width()];
    let (mut first_ns, mut last_ns) = (window.end_ns, None);
    for lifetime in lifetimes {
        first_ns = first_ns.min(lifetime.opened_ns.max(window.start_ns));
        if let Some(closed_ns) = lifetime.closed_ns {
            has_closes[parts.part_of(closed_ns)] = true;
            last_ns = last_ns.max(Some(closed_ns));
        }
    }
    let Some(last_ns) = last_ns else { return 0 };
    let sweeps = has_closes.iter().filter(|has_closes| **has_closes).count();
    let quiet_ns = window.end_ns.saturating_sub(last_ns).max(0);
    let share = quiet_ns as f64 / window.end_ns.saturating_sub(first_ns).max(1) as f64;
    let chance = (1.0 - share).max(0.0).powf(sweeps as f64);
    if chance > LEVEL { quiet_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: TimeWindow = TimeWindow { start_ns: 0, end_ns: 1_000 };

    fn unswept(closes: impl Iterator<Item = i64>) -> i64 {
        let lifetimes = closes.map(|at| Lifetime { opened_ns: 0, closed_ns: Some(at) });
        unswept_ns(&lifetimes.collect::<Vec<_>>(), WINDOW)
    }

    #[test]
    fn the_time_since_a_few_closes_says_nothing_and_that_since_many_does() {
        assert_eq!(unswept([200, 200, 200, 350, 600].into_iter()), 400);
        assert_eq!(unswept((0..60).map(|n| n * 10)), 0);
        assert_eq!(unswept((0..99).map(|n| n * 10)), 20, "it is short");
    }

    #[test]
    fn times_outside_of_the_window_do_no_harm() {
        assert_eq!(unswept([].into_iter()), 0);
        assert_eq!(unswept([i64::MAX].into_iter()), 0);
        unswept([i64::MIN].into_iter());
    }
}
