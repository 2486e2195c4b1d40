//! Whether one trace loses more handles of a group than another one: a test of two Poisson rates.
//!
//! Of the n handles that a group loses in both traces, each is of the one trace with a probability that
//! follows from the lengths of the traces, if the rates are equal; so the handles of that trace are
//! distributed binomially, and the test is exact (Przyborowski and Wilenski, 1940). Many groups are
//! compared, each of which chance could make significant. The level is therefore divided by the number of
//! groups that have enough handles to be significant at all (Tarone, 1990). `docs/diff.md` explains the
//! rule to users.

/// The probability that chance makes any group of two recordings of one program worse.
const LEVEL: f64 = 0.05;

/// How much more it has to be: two recordings of one program are never quite alike.
const FACTOR: f64 = 1.5;

/// What two traces lose of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// In the trace that may lose more.
    pub(super) more: u64,
    /// In the other.
    pub(super) less: u64,
    /// The part of both that `more` is expected to be if nothing changed, between 0 and 1.
    pub(super) share: f64,
}

/// The part of the handles of both traces that a trace of some minutes is expected to have. Handles that
/// are not lost at a rate (`is_rate`) do not get fewer in a shorter trace.
pub(super) fn share(own: Option<f64>, other: Option<f64>, is_rate: bool) -> f64 {
    let by_time = own.zip(other).map(|(own, other)| own / (own + other));
    by_time.map_or(0.5, |share| if is_rate { share } else { share.max(0.5) })
}

impl Lost {
    /// The probability of so many in the one trace, or even more, if nothing changed.
    pub(super) fn p_value(self) -> f64 {
        at_least(self.more, self.more + self.less, self.share)
    }

    /// The least one that so many handles can have: when all are of one trace.
    fn least_p_value(self) -> f64 {
        self.share.powf((self.more + self.less) as f64)
    }

    /// Whether it is more by chance with less than this probability, and so much more that it matters.
    pub(super) fn is_significant(self, level: f64) -> bool {
        let (more, less) = (self.more as f64, self.less as f64);
        more * (1.0 - self.share) >= FACTOR * less * self.share && self.p_value() <= level
    }
}

/// The probability below which one of these groups is significant.
pub(super) fn level(groups: impl Iterator<Item = Lost>) -> f64 {
    let mut least: Vec<f64> = groups.map(Lost::least_p_value).collect();
    least.sort_unstable_by(f64::total_cmp);
    let is_enough = |tests: &usize| {
        let level = LEVEL / *tests as f64;
        least.partition_point(|own| *own <= level) <= *tests
    };
    (1..=least.len()).find(is_enough).map_or(LEVEL, |tests| LEVEL / tests as f64)
}

/// The probability that at least `least` of `all` are of a kind that each is with probability `share`.
fn at_least(least: u64, all: u64, share: f64) -> f64 {
    let mean = all as f64 * share;
    if (least as f64) <= mean {
        // Nothing that matters; the sum would have many terms.
        return 1.0;
    }
    let (k, n) = (least as f64, all as f64);
    let ways = ln_factorial(all) - ln_factorial(least) - ln_factorial(all - least);
    let rest = if all == least { 0.0 } else { (n - k) * (1.0 - share).ln() };
    let mut term = (ways + k * share.ln() + rest).exp();
    let (mut sum, mut at) = (0.0, k);
    // After the mean the terms fall ever faster.
    while term > sum * 1e-12 {
        sum += term;
        term *= (n - at) / (at + 1.0) * share / (1.0 - share);
        at += 1.0;
    }
    sum.min(1.0)
}

/// The logarithm of n!, by Stirling's series where that is exact.
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|factor| (factor as f64).ln()).sum();
    }
    let n = n as f64;
    n * n.ln() - n + (std::f64::consts::TAU * n).ln() / 2.0 + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_more(more: u64, less: u64, share: f64) -> bool {
        let lost = Lost { more, less, share };
        lost.is_significant(level([lost].into_iter()))
    }

    #[test]
    fn the_tail_is_that_of_the_binomial_distribution() {
        for (least, all, share, expected) in [
            (5, 5, 0.5, 1.0 / 32.0),
            (4, 5, 0.5, 6.0 / 32.0),
            (3, 3, 0.25, 1.0 / 64.0),
            // Sums of exact fractions.
            (60, 100, 0.5, 0.028_443_966_820_490_392),
            (31, 40, 0.6, 0.015_572_623_523_328_317),
        ] {
            let found = at_least(least, all, share);
            assert!((found - expected).abs() < 1e-6, "{least} of {all}: {found}");
        }
        assert!(at_least(u64::from(u32::MAX), 2 * u64::from(u32::MAX), 0.5) > 0.4);
        assert!(at_least(3_000_000_000, 4_000_000_000, 0.5) < 1e-12);
    }

    #[test]
    fn one_or_two_handles_are_noise_and_five_more_of_none_are_not() {
        for few in 0..=4 {
            assert!(!is_more(few, 0, 0.5), "{few}");
        }
        assert!(is_more(5, 0, 0.5) && is_more(38, 3, 0.5));
        assert!(!is_more(12, 8, 0.5) && !is_more(8, 12, 0.5));
    }

    #[test]
    fn a_little_more_of_many_does_not_matter() {
        assert!(!is_more(11_400, 10_000, 0.5) && is_more(15_100, 10_000, 0.5));
    }

    #[test]
    fn a_longer_trace_may_lose_more() {
        let ten_times = share(Some(10.0), Some(1.0), true);
        assert!(!is_more(100, 10, ten_times) && is_more(200, 10, ten_times));
        let shorter = share(Some(1.0), Some(10.0), true);
        assert!(is_more(10, 10, shorter));
        // What is filled once is not filled less in a shorter trace.
        assert!(!is_more(10, 10, share(Some(1.0), Some(10.0), false)));
        assert_eq!(share(None, Some(10.0), true).to_bits(), 0.5_f64.to_bits(), "without a clock");
    }

    #[test]
    fn many_groups_make_chance_likelier_and_small_ones_do_not_count() {
        let group = |more, less| Lost { more, less, share: 0.5 };
        let large = || (0..100).map(|_| group(20, 20));
        assert!(group(5, 0).is_significant(level([group(5, 0)].into_iter())));
        assert!(!group(5, 0).is_significant(level(large())));
        assert!(group(11, 0).is_significant(level(large())));
        let small = (0..100).map(|_| group(2, 1));
        assert!(group(5, 0).is_significant(level(small.chain([group(5, 0)]))));
        assert!((level(std::iter::empty()) - LEVEL).abs() < 1e-12);
    }

    #[test]
    fn chance_makes_hardly_any_comparison_of_one_program_worse() {
        // Two recordings of 30 groups that lose handles at rates which do not change.
        let mut random = 1_u64;
        let mut uniform = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut poisson = |mean: f64| {
            let (mut count, mut product) = (0, uniform());
            while product > (-mean).exp() {
                product *= uniform();
                count += 1;
            }
            count
        };
        let mut is_worse = || {
            let pair = |mean| Lost { more: poisson(mean), less: poisson(mean), share: 0.5 };
            let groups: Vec<Lost> = (0..30).map(f64::from).map(pair).collect();
            let level = level(groups.iter().copied());
            groups.iter().any(|group| group.is_significant(level))
        };
        let worse = (0..1000).filter(|_| is_worse()).count();
        assert!(worse <= 50, "{worse} of 1000");
    }
}
