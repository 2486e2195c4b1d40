//! The rate at which handles leak.

use std::ops::Range;

const NS_PER_MINUTE: f64 = 60e9;

/// Probability below which a handle far from all others is a stray.
const STRAY: f64 = 0.001;

/// Handles leaked per minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_minute: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
}

impl Rate {
    /// Computes the rate between the first and last of these ascending times; `None` if they are equal.
    ///
    /// For events at random times at a constant rate, (n - 1) / time is the best estimate, and 1 / sqrt(n - 1) is the
    /// standard deviation of its logarithm (Poisson).
    pub fn new(times_ns: &[i64]) -> Option<Self> {
        let (first, last) = (*times_ns.first()?, *times_ns.last()?);
        let steps = (times_ns.len() - 1) as f64;
        let per_minute = steps / minutes(first, last);
        let factor = (1.96 / steps.sqrt()).exp();
        let is_known = per_minute.is_finite();
        is_known.then(|| Self { per_minute, low: per_minute / factor, high: per_minute * factor })
    }
}

/// Returns the range of these ascending times without strays at either end, which would distort the rate.
///
/// At a constant rate, the first of n distances takes at least the share s of the time with probability (1 - s)^(n -
/// 1). There are fewer batches than handles, by the `dispersion`.
pub fn without_strays(times_ns: &[i64], dispersion: f64) -> Range<usize> {
    let mut range = 0..times_ns.len();
    let max_strays = (times_ns.len() / 20).max(1);
    let is_stray = |range: &Range<usize>, distance: Range<usize>| {
        let between =
            |range: &Range<usize>| times_ns[range.end].saturating_sub(times_ns[range.start]);
        let time = between(&(range.start..range.end - 1)).max(1);
        let share = between(&distance) as f64 / time as f64;
        let others = (range.len() - 2) as f64 / dispersion;
        (1.0 - share).max(0.0).powf(others) < STRAY
    };
    for _ in 0..max_strays {
        if range.len() < 4 {
            break;
        }
        if is_stray(&range, range.start..range.start + 1) {
            range.start += 1;
        } else if is_stray(&range, range.end - 2..range.end - 1) {
            range.end -= 1;
        }
    }
    range
}

fn minutes(from_ns: i64, to_ns: i64) -> f64 {
    (to_ns as f64 - from_ns as f64) / NS_PER_MINUTE
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    #[test]
    fn evenly_leaked_handles_have_the_rate_of_their_distances() {
        for count in [2, 18, 99, 100, 101, 5_000] {
            let times: Vec<i64> = (0..count).map(|n| n * MINUTE / 4).collect();
            let rate = Rate::new(&times).unwrap();
            assert!((rate.per_minute - 4.0).abs() < 1e-9, "{count}: {rate:?}");
            assert!(rate.low < 4.0 && rate.high > 4.0);
        }
    }

    #[test]
    fn more_handles_give_a_narrower_interval() {
        let width = |count: i64| {
            let rate = Rate::new(&(0..count).map(|n| n * MINUTE).collect::<Vec<_>>()).unwrap();
            rate.high - rate.low
        };
        assert!(width(401) < 0.2 && width(101) < 0.4 && width(101) > width(401));
    }

    fn range_and_rate(times: &[i64]) -> (Range<usize>, f64) {
        let range = without_strays(times, 1.0);
        (range.clone(), Rate::new(&times[range]).unwrap().per_minute)
    }

    #[test]
    fn a_stray_handle_far_from_the_others_does_not_distort_the_rate() {
        let steady = |from: i64| (0..60).map(move |n| from + n * MINUTE);
        let before: Vec<i64> = [0].into_iter().chain(steady(60 * MINUTE)).collect();
        assert_eq!(range_and_rate(&before), (1..61, 1.0));
        let after: Vec<i64> = steady(0).chain([120 * MINUTE]).collect();
        assert_eq!(range_and_rate(&after), (0..60, 1.0));
        let both: Vec<i64> =
            [0].into_iter().chain(steady(60 * MINUTE)).chain([180 * MINUTE]).collect();
        assert_eq!(range_and_rate(&both).0, 1..61, "of 62 handles, three may be strays");
    }

    #[test]
    fn handles_that_chance_explains_are_no_strays() {
        // Half of the leaks come in a tenth of the time: neither end is far from the others.
        let uneven: Vec<i64> =
            (0..20).map(|n| n * 6).chain((0..20).map(|n| 140 + n * 60)).collect();
        assert_eq!(without_strays(&uneven, 1.0), 0..40);
        let few: Vec<i64> = [0, 40, 50, 60, 70, 80, 90, 100].into_iter().collect();
        assert_eq!(without_strays(&few, 1.0), 0..8);
        let batches: Vec<i64> =
            [0, 300].into_iter().chain((4..20).map(|n| n * 100)).flat_map(|at| [at; 20]).collect();
        assert_eq!(without_strays(&batches, 20.0), 0..360);
    }

    #[test]
    fn handles_of_one_moment_have_no_rate() {
        assert_eq!(Rate::new(&[]), None);
        assert_eq!(Rate::new(&[7]), None);
        assert_eq!(Rate::new(&[7, 7, 7]), None);
        assert!(Rate::new(&[7, 7, 7, 7, 7, MINUTE]).unwrap().per_minute.is_finite());
    }
}
