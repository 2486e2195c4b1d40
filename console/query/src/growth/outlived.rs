//! Finds open handles too old to be explained by chance, given the lifetimes of closed ones, with order statistics.
//!
//! Beyond some age, lifetimes are assumed to follow a Pareto distribution. Most other distributions have lighter tails,
//! so this demands more evidence than they would. The ratio of the two largest lifetimes does not depend on where the
//! tail begins, and its one parameter is estimated from the longest lifetimes (Hill 1975). Let k be their number, and
//! let m open handles all be at least r times as old as any closed one. Chance explains that with probability (1 + m
//! ln(r) / S)^-k, where S is the sum of the logarithms of the ages reached in the tail.

use super::lifetime::Lifetime;

/// Limits for the closed handles the tail is estimated from: an absolute number, and one in so many of all closed ones.
const LONGEST: usize = 20;
const LONGEST_SHARE: usize = 2;

/// Probability below which an age is no chance.
const LEVEL: f64 = 0.05;

/// Minimum log ratio of two lifetimes: equal lifetimes may be equal by chance.
const MIN_LOG: f64 = 0.1;

/// Open handles older than any closed handle of their group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OutlivingHandles {
    /// Number of older open handles; 0 if no handle was closed.
    pub older: usize,
    /// Number of open handles too old to be explained by chance.
    pub count: usize,
    /// Age of the youngest of these, as a multiple of the longest closed lifetime; 0 if there are none.
    pub times: f64,
}

impl OutlivingHandles {
    /// Compares the `ages` of open handles, ascending, with closed lifetimes. Handles up to age `unswept_ns` do not
    /// count.
    pub fn new(lifetimes: &[Lifetime], ages: &[i64], unswept_ns: i64) -> Self {
        let mut closed: Vec<i64> =
            lifetimes.iter().filter_map(Lifetime::length_ns).map(|length| length.max(1)).collect();
        let count = closed.len();
        let longest_ns = closed.iter().copied().max().unwrap_or(i64::MAX);
        let older = ages.len() - ages.partition_point(|age| *age <= longest_ns);
        if count == 0 || older == 0 {
            return Self::default();
        }
        let tail = (count / LONGEST_SHARE).min(LONGEST);
        let (_, begin_ns, tail_ns) = closed.select_nth_unstable(count - 1 - tail);
        let begin_ns = *begin_ns;
        let log = |ns: i64| (ns.max(1) as f64 / begin_ns as f64).ln().max(0.0);
        let open = ages.iter().map(|age| log((*age).min(longest_ns)));
        let reached = tail_ns.iter().map(|lifetime| log(*lifetime)).chain(open).sum::<f64>();
        let reached = reached.max(MIN_LOG * tail as f64);
        let chance = |handles: usize, age: i64| {
            let beyond = handles as f64 * (log(age) - log(longest_ns));
            (1.0 + beyond / reached).powf(-(tail as f64))
        };
        let oldest =
            (1..).zip(ages.iter().rev()).take(older).take_while(|(_, age)| **age > unswept_ns);
        let last = oldest.filter(|(handles, age)| chance(*handles, **age) < LEVEL).last();
        let (count, times) =
            last.map_or((0, 0.0), |(count, age)| (count, *age as f64 / longest_ns as f64));
        Self { older, count, times }
    }

    /// Keeps only the number of older handles, for groups in which age is no evidence.
    pub fn by_chance(self) -> Self {
        Self { count: 0, times: 0.0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlived(lifetimes: &[i64], ages: &[i64]) -> usize {
        let closed =
            lifetimes.iter().map(|length| Lifetime { opened_ns: 0, closed_ns: Some(*length) });
        OutlivingHandles::new(&closed.collect::<Vec<_>>(), ages, 0).count
    }

    /// Makes exponential lifetimes of up to 6 s.
    fn exponential(count: u32) -> Vec<i64> {
        let shares = (0..count).map(|n| (f64::from(n) + 0.5) / f64::from(count));
        let scale = 6_000.0 / f64::from(2 * count).ln();
        shares.map(|share| (-scale * (1.0 - share).ln()) as i64).collect()
    }

    #[test]
    fn an_age_is_no_chance_beside_many_lifetimes_and_chance_beside_few() {
        assert_eq!(outlived(&exponential(500), &[1_000, 55_000]), 1);
        assert_eq!(outlived(&exponential(500), &[1_000, 9_000]), 0);
        assert_eq!(outlived(&exponential(8), &[1_000, 55_000]), 0);
        assert_eq!(outlived(&exponential(8), &[6_001, 600_000_000]), 1);
    }

    #[test]
    fn several_old_handles_are_more_evidence_than_one() {
        assert_eq!(outlived(&exponential(20), &[40_000]), 0);
        assert_eq!(outlived(&exponential(20), &[40_000, 42_000, 50_000, 55_000]), 4);
    }

    #[test]
    fn handles_that_no_closed_one_could_outlive_are_no_evidence() {
        assert_eq!(outlived(&[], &[1_000]), 0);
        assert_eq!(outlived(&[5; 100], &[]), 0);
        assert_eq!(outlived(&[0], &[0, 1, i64::MAX]), 0);
        assert_eq!(outlived(&[5; 100], &[5, 6]), 0);
        assert_eq!(outlived(&[5; 100], &[5, 500]), 1);
    }
}
