//! Tests whether the callers of a function leak alike: a test of homogeneity of the leaked share.
//!
//! If the function itself leaks, each caller leaks about the same share of what it acquires, and the number a caller
//! leaks follows the hypergeometric distribution (Fisher, 1935). The caller that differs most from all others is set
//! apart if it differs by more than chance explains and by enough to matter. Then the others are tested again, until
//! only callers that leak alike remain. `docs/why.md` explains the rule to users, with its error rates.

use statrs::distribution::{DiscreteCDF, Hypergeometric};
use statrs::function::erf::erfc;

/// Probability that chance sets any caller of a function apart.
const LEVEL: f64 = 0.01;

/// By which ratio a caller's odds to leak must differ; shares of 20 % and 30 % are still alike.
const ODDS: f64 = 3.0;

/// Maximum number of callers set apart; the rest stay together.
const MAX_APART: usize = 64;

/// Variance above which the hypergeometric distribution is taken as normal.
const NORMAL: f64 = 100.0;

/// Distance from the mean above which it is also taken as normal; the probability is then next to nothing.
const FAR: f64 = 500.0;

/// What one caller acquired through a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallerLeaks {
    /// Number that the program did not release.
    pub leaked: u64,
    /// Number acquired.
    pub acquired: u64,
}

impl CallerLeaks {
    pub fn add(&mut self, other: Self) {
        self.leaked += other.leaked;
        self.acquired += other.acquired;
    }

    pub fn sum(parts: impl Iterator<Item = Self>) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }

    fn released(self) -> u64 {
        self.acquired.saturating_sub(self.leaked)
    }

    /// Returns the rest without some of it.
    pub fn without(self, other: Self) -> Self {
        let leaked = self.leaked.saturating_sub(other.leaked);
        Self { leaked, acquired: self.acquired.saturating_sub(other.acquired) }
    }

    /// Returns the odds to leak, kept away from 0 and infinity.
    fn odds(self) -> f64 {
        (self.leaked as f64 + 0.5) / (self.released() as f64 + 0.5)
    }

    /// Whether the odds differ enough from those of others to matter.
    fn is_far_from(self, others: Self) -> bool {
        let ratio = self.odds() / others.odds();
        ratio >= ODDS || ratio <= 1.0 / ODDS
    }
}

/// Determines for each caller whether it leaks like most callers.
pub fn alike(callers: &[CallerLeaks]) -> Vec<bool> {
    let mut alike = vec![true; callers.len()];
    let mut all = CallerLeaks::sum(callers.iter().copied());
    for _ in 0..MAX_APART.min(callers.len().saturating_sub(1)) {
        let rest: Vec<(usize, CallerLeaks)> = callers
            .iter()
            .zip(&alike)
            .enumerate()
            .filter(|(_, (_, is_alike))| **is_alike)
            .map(|(place, (caller, _))| (place, *caller))
            .collect();
        let far = rest
            .iter()
            .filter(|(_, caller)| caller.is_far_from(all.without(*caller)))
            .map(|&(place, caller)| (deviation(caller, all), place, caller));
        let farthest = far.max_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let Some((_, place, caller)) = farthest else { break };
        if p_value(caller, all) * rest.len() as f64 > LEVEL {
            break;
        }
        alike[place] = false;
        all = all.without(caller);
    }
    alike
}

/// Returns mean and variance of the number a caller leaks, if it leaks like all.
fn expected(caller: CallerLeaks, all: CallerLeaks) -> (f64, f64) {
    let (total, acquired) = (all.acquired as f64, caller.acquired as f64);
    let share = all.leaked as f64 / total.max(1.0);
    let of_others = (total - acquired) / (total - 1.0).max(1.0);
    (acquired * share, acquired * share * (1.0 - share) * of_others)
}

/// Returns how many standard deviations a caller is from its expected number of leaks.
fn deviation(caller: CallerLeaks, all: CallerLeaks) -> f64 {
    let (mean, variance) = expected(caller, all);
    (caller.leaked as f64 - mean).abs() / variance.sqrt().max(f64::MIN_POSITIVE)
}

/// Returns the probability that a caller differs this much by chance, in either direction.
fn p_value(caller: CallerLeaks, all: CallerLeaks) -> f64 {
    let (mean, variance) = expected(caller, all);
    let apart = (caller.leaked as f64 - mean).abs();
    if variance > NORMAL || apart > FAR {
        return erfc((apart - 0.5).max(0.0) / variance.sqrt() / std::f64::consts::SQRT_2);
    }
    // Swapping the caller with the others, or leaked with released, gives the same tail; the smaller ones need fewer
    // terms.
    let others = all.without(caller);
    let caller = if caller.acquired <= others.acquired { caller } else { others };
    let (count, of_all) = if all.leaked <= all.released() {
        (caller.leaked, all.leaked)
    } else {
        (caller.released(), all.released())
    };
    let Ok(distribution) = Hypergeometric::new(all.acquired, of_all, caller.acquired) else {
        return 1.0;
    };
    let mean = caller.acquired as f64 * of_all as f64 / all.acquired as f64;
    let tail = if (count as f64) < mean {
        distribution.cdf(count)
    } else {
        // Not the sum of the upper tail, which may have millions of terms.
        count.checked_sub(1).map_or(1.0, |fewer| 1.0 - distribution.cdf(fewer))
    };
    (2.0 * tail).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(callers: &[(u64, u64)]) -> Vec<usize> {
        let callers: Vec<CallerLeaks> =
            callers.iter().map(|&(leaked, acquired)| CallerLeaks { leaked, acquired }).collect();
        let alike = alike(&callers);
        (0..callers.len()).filter(|caller| !alike[*caller]).collect()
    }

    #[test]
    fn callers_that_leak_the_same_share_are_alike() {
        assert_eq!(apart(&[(5, 5); 6]), [0; 0]);
        assert_eq!(apart(&[(5, 24), (8, 30), (0, 4), (1, 1)]), [0; 0]);
        assert_eq!(apart(&[(3, 10)]), [0; 0]);
        assert_eq!(apart(&[]), [0; 0]);
    }

    #[test]
    fn the_caller_that_leaks_through_a_healthy_function_is_set_apart() {
        assert_eq!(apart(&[(0, 10), (0, 10), (10, 10), (0, 10)]), [2]);
        assert_eq!(apart(&[(0, 100_000), (40, 200), (3, 100_000)]), [1]);
    }

    #[test]
    fn the_caller_that_cleans_up_after_a_leaking_function_is_set_apart() {
        let mut callers = [(20, 20); 39].to_vec();
        callers.push((0, 20));
        assert_eq!(apart(&callers), [39]);
    }

    #[test]
    fn of_several_that_leak_each_is_set_apart_while_most_do_not() {
        let mut callers = [(0, 20); 10].to_vec();
        callers[3] = (20, 20);
        callers[7] = (19, 20);
        assert_eq!(apart(&callers), [3, 7]);
    }

    #[test]
    fn few_handles_are_no_evidence_and_a_small_difference_does_not_matter() {
        assert_eq!(apart(&[(2, 2), (0, 2), (0, 2)]), [0; 0]);
        assert_eq!(apart(&[(200_000, 1_000_000), (300_000, 1_000_000)]), [0; 0]);
    }

    #[test]
    fn numbers_too_large_to_count_one_by_one_are_judged_too() {
        let large = 1 << 40;
        assert_eq!(apart(&[(large, large), (0, large), (0, large)]), [0]);
        assert_eq!(apart(&[(large, large), (large, large), (0, 5)]), [2]);
        assert_eq!(apart(&[(3, large), (0, large), (4, 5)]), [2]);
        assert_eq!(apart(&[(3, large), (0, large), (1, 5)]), [2], "one of five among so many");
    }
}
