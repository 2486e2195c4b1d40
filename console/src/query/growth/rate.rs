//! The rate at which handles leak.

const NS_PER_MINUTE: f64 = 60e9;

/// Times that the slope is taken of, at most; it compares each with each.
const SLOPE_POINTS: usize = 100;

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
    /// The rate between the first and the last of these times, ascending; `None` when they are one.
    ///
    /// For events at random times at a constant rate, (n - 1) / time is the best estimate, and 1 / sqrt(n - 1) the
    /// standard deviation of its logarithm (Poisson). A stray first or last event distorts it. It is therefore replaced
    /// by the slope of Theil and Sen, the median of the slopes between all pairs of events, if that lies outside of the
    /// interval: the median is robust against a few stray events.
    pub(super) fn of(times_ns: &[i64]) -> Option<Self> {
        let (first, last) = (*times_ns.first()?, *times_ns.last()?);
        let steps = (times_ns.len() - 1) as f64;
        let mean = steps / minutes(first, last);
        if !mean.is_finite() {
            return None;
        }
        let factor = (1.96 / steps.sqrt()).exp();
        let slope = slope(times_ns);
        let is_bent = !(mean / factor..=mean * factor).contains(&slope);
        let per_minute = if is_bent && slope.is_finite() { slope } else { mean };
        Some(Self { per_minute, low: per_minute / factor, high: per_minute * factor })
    }
}

/// The median of the slopes between pairs of events, of at most [`SLOPE_POINTS`], in events per minute.
fn slope(times_ns: &[i64]) -> f64 {
    let last = times_ns.len() - 1;
    let points = times_ns.len().min(SLOPE_POINTS);
    let event = |point: usize| point * last / (points - 1);
    let mut slopes = Vec::with_capacity(points * (points - 1) / 2);
    for (from, to) in (0..points).flat_map(|from| (from + 1..points).map(move |to| (from, to))) {
        let (from, to) = (event(from), event(to));
        slopes.push((to - from) as f64 / minutes(times_ns[from], times_ns[to]));
    }
    let middle = slopes.len() / 2;
    *slopes.select_nth_unstable_by(middle, f64::total_cmp).1
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
            let rate = Rate::of(&times).unwrap();
            assert!((rate.per_minute - 4.0).abs() < 1e-9, "{count}: {rate:?}");
            assert!(rate.low < 4.0 && rate.high > 4.0);
        }
    }

    #[test]
    fn more_handles_give_a_narrower_interval() {
        let width = |count: i64| {
            let rate = Rate::of(&(0..count).map(|n| n * MINUTE).collect::<Vec<_>>()).unwrap();
            rate.high - rate.low
        };
        assert!(width(401) < 0.2 && width(101) < 0.4 && width(101) > width(401));
    }

    #[test]
    fn one_stray_handle_long_before_the_others_does_not_bend_the_rate() {
        let times: Vec<i64> =
            [0].into_iter().chain((0..60).map(|n| 60 * MINUTE + n * MINUTE)).collect();
        let rate = Rate::of(&times).unwrap();
        assert!((rate.per_minute - 1.0).abs() < 0.05, "{rate:?}");
    }

    #[test]
    fn handles_of_one_moment_have_no_rate() {
        assert_eq!(Rate::of(&[]), None);
        assert_eq!(Rate::of(&[7]), None);
        assert_eq!(Rate::of(&[7, 7, 7]), None);
        assert!(Rate::of(&[7, 7, 7, 7, 7, MINUTE]).unwrap().per_minute.is_finite());
    }
}
