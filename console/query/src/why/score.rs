//! The score that ranks suspects.

use crate::growth::{Growth, Verdict};

/// Scores a group: how many handles it keeps for ever, weighted by how likely it is to go on. `None` if the group is no
/// suspect.
///
/// A steady leak goes on, a burst may happen again, a few handles are no evidence, and a fill at the start is more
/// often a cache than a leak. In a group that does not grow, only the `raced` handles (leaked by races) and handles
/// that outlived the others count.
pub fn of(growth: &Growth, raced: u64) -> Option<f64> {
    let kept = growth.evidence.kept as u64;
    let few = raced.max(growth.evidence.outlived.count as u64);
    let (weight, count) = match growth.verdict {
        Verdict::Steady => (1.0, kept),
        Verdict::Burst => (0.5, kept),
        Verdict::Short => (0.25, kept.max(few)),
        Verdict::Once => (0.1, kept),
        Verdict::Balanced => (0.25, few),
    };
    (count > 0).then_some(weight * count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::{Lifetime, ProcessLifetimes, TimeWindow};

    const SECOND: i64 = 1_000_000_000;
    const WINDOW: TimeWindow = TimeWindow { start_ns: 0, end_ns: 600 * SECOND };

    fn score(opens: impl Iterator<Item = i64>, lived: Option<i64>) -> Option<f64> {
        let lifetimes: Vec<Lifetime> = opens
            .map(|opened_ns| Lifetime { opened_ns, closed_ns: lived.map(|ns| opened_ns + ns) })
            .collect();
        score_of(lifetimes)
    }

    fn score_of(lifetimes: Vec<Lifetime>) -> Option<f64> {
        let processes = [ProcessLifetimes { lifetimes, window: WINDOW }];
        of(&Growth::from_processes(&processes, WINDOW), 0)
    }

    #[test]
    fn steady_leaks_rank_before_caches() {
        let steady = score((0..40).map(|at| at * 15 * SECOND), None);
        let burst = score((0..40).map(|at| 300 * SECOND + at * SECOND / 40), None);
        let once = score((0..40).map(|at| at * SECOND / 4), None);
        assert_eq!((steady, burst, once), (Some(40.0), Some(20.0), Some(4.0)));
    }

    #[test]
    fn groups_that_close_everything_are_no_suspects() {
        assert_eq!(score((0..40).map(|at| at * 15 * SECOND), Some(SECOND)), None);
    }

    #[test]
    fn one_that_outlives_all_others_makes_a_balanced_group_a_suspect() {
        let pool = |open_s: i64| -> Vec<Lifetime> {
            (0..60)
                .map(|at| Lifetime {
                    opened_ns: at * 10 * SECOND,
                    closed_ns: Some(at * 10 * SECOND + SECOND),
                })
                .chain([Lifetime { opened_ns: open_s * SECOND, closed_ns: None }])
                .collect()
        };
        assert_eq!(score_of(pool(100)), Some(0.25));
        assert_eq!(score_of(pool(595)), None, "it is young");
    }
}
