//! What suspects are ranked by.

use crate::query::growth::{Growth, Verdict};

/// The score of a group: how many handles it keeps for ever, weighted by how likely it is to go on; of a
/// group that is balanced otherwise, those that `raced` lost. `None` for a group that is no suspect.
///
/// A steady leak goes on; a burst may come again; of a few handles nothing is known; what was filled at
/// the start is a cache more often than a leak.
pub(super) fn of(growth: &Growth, raced: u64) -> Option<f64> {
    let kept = growth.evidence.kept as u64;
    let (weight, count) = match growth.verdict {
        Verdict::Steady => (1.0, kept),
        Verdict::Burst => (0.5, kept),
        Verdict::Short => (0.25, kept.max(raced)),
        Verdict::Once => (0.1, kept),
        Verdict::Balanced => (0.25, raced),
    };
    (count > 0).then(|| weight * count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::growth::{Life, Window};

    const SECOND: i64 = 1_000_000_000;

    fn score(opens: impl Iterator<Item = i64>, lived: Option<i64>) -> Option<f64> {
        let life = |opened_ns: i64| Life { opened_ns, closed_ns: lived.map(|ns| opened_ns + ns) };
        let lives: Vec<Life> = opens.map(life).collect();
        of(&Growth::of(&lives, Window { start_ns: 0, end_ns: 600 * SECOND }), 0)
    }

    #[test]
    fn what_goes_on_comes_before_what_was_filled_once() {
        let steady = score((0..40).map(|at| at * 15 * SECOND), None);
        let burst = score((0..40).map(|at| 300 * SECOND + at * SECOND / 40), None);
        let once = score((0..40).map(|at| at * SECOND / 4), None);
        assert_eq!((steady, burst, once), (Some(40.0), Some(20.0), Some(4.0)));
    }

    #[test]
    fn what_is_closed_is_no_suspect() {
        assert_eq!(score((0..40).map(|at| at * 15 * SECOND), Some(SECOND)), None);
    }
}
