//! Tests whether one trace leaks more of a group than another: a test of two rates.
//!
//! A group leaks on n chances in both traces together. If the rates are equal, each chance belongs to the one trace
//! with a probability given by the times its processes ran. The number of chances in that trace is then binomial, and
//! the test is exact (Przyborowski and Wilenski, 1940).
//!
//! A chance is not a handle: one operation may leak several at once. Handles are therefore divided by their dispersion
//! ([`super::tally`]), as in quasi-Poisson regression (Wedderburn, 1974).
//!
//! Many groups are compared, and chance could make any of them significant. The level is therefore divided by the
//! number of groups that have enough chances to be significant at all (Tarone, 1990). `docs/statistics.md` explains the rule
//! to users.

use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc;

use super::tally::{LeakTally, TimeDependence};

/// The probability that chance alone makes any group worse between two recordings of one program.
const LEVEL: f64 = 0.05;

/// How many times more it must be: two recordings of one program are never quite alike.
const FACTOR: f64 = 1.5;

/// Relative standard deviation between runs of what is filled once.
const FILLS_DIFFER: f64 = 0.25;

/// Above this number of chances, their distribution is taken as normal: the continued fraction of the exact one would
/// need more and more terms.
const MIN_NORMAL: f64 = 10_000.0;

/// Number of chances on which a group leaks in two traces; may be fractional.
#[derive(Debug, Clone, Copy)]
pub struct Chances {
    /// Chances in the trace that may leak more.
    more: f64,
    /// Chances in the other trace.
    less: f64,
    /// The share of all chances that `more` is expected to have if nothing changed, between 0 and 1.
    share: f64,
}

impl Chances {
    /// Computes the chances in the trace that may leak more and in the other one.
    pub fn new([more, less]: [&LeakTally; 2], share: f64, kind: TimeDependence) -> Self {
        let amount = more.amount + less.amount;
        let chances = amount / LeakTally::dispersion([more, less], kind);
        // Let two counts have means that vary by the relative deviation v. Given their sum n, one of them is
        // beta-binomial with parameters 1 / v² on each side. Its variance is the binomial variance times 1 + (n - 1) /
        // (2 / v² + 1).
        let vary = match kind {
            TimeDependence::Rate => 1.0,
            TimeDependence::Fill => {
                1.0 + (chances - 1.0).max(0.0) / (2.0 / (FILLS_DIFFER * FILLS_DIFFER) + 1.0)
            }
        };
        let scale = chances / vary / amount.max(1.0);
        Self { more: more.amount * scale, less: less.amount * scale, share }
    }

    /// Returns the probability of at least this many in one trace if nothing changed.
    pub fn p_value(self) -> f64 {
        at_least(self.more, self.more + self.less, self.share)
    }

    /// Returns the lowest possible probability for this many chances: all of them in one trace.
    fn least_p_value(self) -> f64 {
        self.share.powf(self.more + self.less)
    }

    /// Whether the excess is less likely than `level` by chance, and large enough to matter.
    pub fn is_significant(self, level: f64) -> bool {
        let Self { more, less, share } = self;
        more * (1.0 - share) >= FACTOR * less * share && self.p_value() <= level
    }
}

/// Returns the probability below which one of these groups is significant.
pub fn level(groups: impl Iterator<Item = Chances>) -> f64 {
    let mut least: Vec<f64> = groups.map(Chances::least_p_value).collect();
    least.sort_unstable_by(f64::total_cmp);
    let tests = (1..=least.len()).find(|tests| {
        let level = LEVEL / *tests as f64;
        least.partition_point(|least| *least <= level) <= *tests
    });
    tests.map_or(LEVEL, |tests| LEVEL / tests as f64)
}

/// Returns the probability that at least `least` of `total` are of a kind, if each is with probability `share`. It is
/// the regularized incomplete beta function, which equals the binomial tail for whole numbers.
fn at_least(least: f64, total: f64, share: f64) -> f64 {
    if least <= 0.0 || share >= 1.0 {
        return 1.0;
    }
    if total > MIN_NORMAL {
        let deviation = (total * share * (1.0 - share)).sqrt();
        return erfc((least - 0.5 - total * share) / deviation / std::f64::consts::SQRT_2) / 2.0;
    }
    checked_beta_reg(least, total - least + 1.0, share).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chances(more: u32, less: u32, share: f64) -> Chances {
        Chances { more: f64::from(more), less: f64::from(less), share }
    }

    fn is_more(more: u32, less: u32, share: f64) -> bool {
        let chances = chances(more, less, share);
        chances.is_significant(level([chances].into_iter()))
    }

    #[test]
    fn the_tail_is_that_of_the_binomial_distribution() {
        for (least, total, share, expected) in [
            (5.0, 5.0, 0.5, 1.0 / 32.0),
            (4.0, 5.0, 0.5, 6.0 / 32.0),
            (3.0, 3.0, 0.25, 1.0 / 64.0),
            // Below the mean as well.
            (1.0, 5.0, 0.5, 31.0 / 32.0),
            (2.0, 5.0, 0.5, 26.0 / 32.0),
            (0.0, 5.0, 0.5, 1.0),
            // Sums of exact fractions.
            (60.0, 100.0, 0.5, 0.028_443_966_820_490_392),
            (31.0, 40.0, 0.6, 0.015_572_623_523_328_317),
        ] {
            let tail = at_least(least, total, share);
            assert!((tail - expected).abs() < 1e-9, "{least} of {total}: {tail}");
        }
        assert!((at_least(10.0, 10.0, 0.5) / 0.5_f64.powi(10) - 1.0).abs() < 1e-9);
        assert!((at_least(4_294_967_295.0, 8_589_934_590.0, 0.5) - 0.5).abs() < 1e-4);
        assert!(at_least(3e9, 4e9, 0.5) < 1e-12);
        assert!((at_least(5_040.0, 10_000.0, 0.5) - at_least(5_040.5, 10_001.0, 0.5)).abs() < 1e-3);
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
    fn a_longer_time_may_lose_more() {
        let ten_times = 10.0 / 11.0;
        assert!(!is_more(100, 10, ten_times) && is_more(200, 10, ten_times));
        assert!(is_more(10, 10, 1.0 / 11.0) && !is_more(10, 10, 0.5));
    }

    #[test]
    fn caches_differ_from_run_to_run() {
        let tally = |handles| LeakTally::from_counts(handles);
        let is_more = |more, less, kind| {
            let chances = Chances::new([&tally(more), &tally(less)], 0.5, kind);
            chances.is_significant(level([chances].into_iter()))
        };
        assert!(
            is_more(1_250, 750, TimeDependence::Rate) && !is_more(1_250, 750, TimeDependence::Fill)
        );
        assert!(is_more(80, 20, TimeDependence::Fill) && is_more(40, 0, TimeDependence::Fill));
    }

    #[test]
    fn many_groups_make_chance_likelier_and_small_ones_do_not_count() {
        let group = |more, less| chances(more, less, 0.5);
        let large = || (0..100).map(|_| group(20, 20));
        assert!(group(5, 0).is_significant(level([group(5, 0)].into_iter())));
        assert!(!group(5, 0).is_significant(level(large())));
        assert!(group(11, 0).is_significant(level(large())));
        let small = (0..100).map(|_| group(2, 1));
        assert!(group(5, 0).is_significant(level(small.chain([group(5, 0)]))));
        assert!((level(std::iter::empty()) - LEVEL).abs() < 1e-12);
    }
}
