//! Splits time into parts in which handles leak at a constant rate.

use std::ops::Range;

/// Number of equal bins that leaks are counted in; the rate can change only between two bins.
const BINS: usize = 256;

/// Minimum log likelihood ratio for a change of the rate. With this value, one in a thousand groups that leak at random
/// at a constant rate is split.
pub const PENALTY: f64 = 7.0;

/// A part of the time with a constant rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub from_ns: i64,
    pub to_ns: i64,
    /// The opens in it.
    pub opens: Range<usize>,
}

impl Segment {
    pub fn length_ns(&self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Returns the opens per nanosecond.
    fn rate(&self) -> f64 {
        self.opens.len() as f64 / self.length_ns().max(1) as f64
    }

    /// Whether more leaks per time in this part than in the next.
    pub fn is_faster_than(&self, next: &Segment) -> bool {
        self.rate() > next.rate()
    }
}

/// Time split into parts.
pub struct Segments {
    pub parts: Vec<Segment>,
    /// How many times more the number of leaks varies than at random.
    pub dispersion: f64,
}

/// Splits the time between two points where the rate of the ascending `opens` changes. It finds the split with the
/// greatest likelihood less a penalty per part, by optimal partitioning (Jackson et al. 2005).
///
/// The opens of a part are a Poisson process. Opens in batches vary more, so their likelihood is divided by their
/// dispersion.
pub fn segments(opens: &[i64], from_ns: i64, to_ns: i64) -> Segments {
    let length = i128::from(to_ns.saturating_sub(from_ns).max(1));
    let edge = |bin: usize| from_ns.saturating_add((length * bin as i128 / BINS as i128) as i64);
    let before: Vec<usize> = (0..=BINS)
        .map(|bin| match bin {
            // Handles inherited before the start or opened at the very end belong to the first and last part.
            0 => 0,
            BINS => opens.len(),
            bin => opens.partition_point(|open| *open < edge(bin)),
        })
        .collect();
    let dispersion = dispersion(&before);
    // A change during a time without leaks is likeliest at its start or its end.
    let has_opens = |bin: usize| before[bin] < before[bin + 1];
    let ends: Vec<usize> = (0..=BINS)
        .filter(|bin| matches!(*bin, 0 | BINS) || has_opens(*bin - 1) || has_opens(*bin))
        .collect();
    // For each end: the greatest likelihood of the parts before it, and the start of the last of them.
    let mut best = vec![(0.0, 0)];
    for to in 1..ends.len() {
        let (likeliest, from) = (0..to)
            .map(|from| {
                let (start, end) = (ends[from], ends[to]);
                let count = (before[end] - before[start]) as f64;
                let likelihood = if count > 0.0 {
                    count * (count / (end - start) as f64).ln() / dispersion
                } else {
                    0.0
                };
                (best[from].0 + likelihood - PENALTY, from)
            })
            .fold((f64::NEG_INFINITY, 0), |best, next| if next.0 > best.0 { next } else { best });
        best.push((likeliest, from));
    }
    let mut segments = Vec::new();
    let mut end = ends.len() - 1;
    while end > 0 {
        let first = best[end].1;
        let (from, to) = (ends[first], ends[end]);
        let opens = before[from]..before[to];
        segments.push(Segment { from_ns: edge(from), to_ns: edge(to), opens });
        end = first;
    }
    segments.reverse();
    Segments { parts: segments, dispersion }
}

/// Returns how many times more the counts of neighbouring bins differ than in a Poisson process, at least 1. The median
/// is used, because the few bins at rate changes hardly influence it.
fn dispersion(before: &[usize]) -> f64 {
    let counts: Vec<f64> = before.windows(2).map(|bin| (bin[1] - bin[0]) as f64).collect();
    let mut ratios: Vec<f64> = counts
        .windows(2)
        .filter(|pair| pair[0] + pair[1] > 0.0)
        .map(|pair| (pair[0] - pair[1]).powi(2) / (pair[0] + pair[1]))
        .collect();
    if ratios.is_empty() {
        return 1.0;
    }
    let middle = ratios.len() / 2;
    ratios.select_nth_unstable_by(middle, f64::total_cmp).1.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns begin and end of each part in percent of the time, and its number of opens.
    fn parts(opens: &[i64]) -> Vec<(i64, i64, usize)> {
        let percent = |ns: i64| (ns + 5_000) / 10_000;
        let segments = segments(opens, 0, 1_000_000);
        segments
            .parts
            .iter()
            .map(|s| (percent(s.from_ns), percent(s.to_ns), s.opens.len()))
            .collect()
    }

    fn evenly(count: i64, from: i64, to: i64) -> impl Iterator<Item = i64> {
        (0..count).map(move |n| from + (to - from) * (2 * n + 1) / (2 * count))
    }

    #[test]
    fn one_rate_is_one_part() {
        for count in [0, 1, 5, 40, 5_000] {
            let opens: Vec<i64> = evenly(count, 0, 1_000_000).collect();
            assert_eq!(parts(&opens), [(0, 100, count as usize)], "{count}");
        }
    }

    #[test]
    fn a_warm_up_and_what_follows_are_two_parts() {
        let opens: Vec<i64> =
            evenly(60, 0, 100_000).chain(evenly(20, 100_000, 1_000_000)).collect();
        assert_eq!(parts(&opens), [(0, 10, 60), (10, 100, 20)]);
    }

    #[test]
    fn the_time_without_losses_is_a_part() {
        let opens: Vec<i64> = evenly(40, 400_000, 600_000).collect();
        assert_eq!(parts(&opens), [(0, 40, 0), (40, 60, 40), (60, 100, 0)]);
    }

    #[test]
    fn batches_at_one_rate_are_one_part() {
        let opens: Vec<i64> = evenly(30, 0, 1_000_000).flat_map(|at| [at; 25]).collect();
        assert_eq!(parts(&opens), [(0, 100, 750)]);
    }

    #[test]
    fn times_outside_of_the_window_do_no_harm() {
        let opens = [i64::MIN, -1, 0, 999_999, 1_000_000, i64::MAX];
        assert_eq!(parts(&opens).iter().map(|part| part.2).sum::<usize>(), 6);
        assert_eq!(
            segments(&opens, i64::MAX, i64::MIN).parts.iter().map(|s| s.opens.len()).sum::<usize>(),
            6
        );
    }
}
