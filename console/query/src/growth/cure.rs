//! Tests whether part of the handles is never closed or all of them just live long: a mixture cure model (Berkson and
//! Gage 1952) against the same lifetimes without such a part.
//!
//! An open handle lives longer than its age (it is censored). Lifetimes are exponential or lognormal, fitted by
//! expectation maximization (Dempster, Laird and Rubin 1977); the better fit of each model counts.

use std::f64::consts::{SQRT_2, TAU};

use statrs::function::erf::erfc;

/// Maximum number of ages that represent all open handles.
const AGES: usize = 32;

/// Steps of a fit; the last ones no longer change the result noticeably.
const STEPS: usize = 60;

/// Distributions that are fitted, with their starting parameters.
const DISTRIBUTIONS: [LifetimeDistribution; 2] = [
    LifetimeDistribution::Exponential { rate: 0.7 },
    LifetimeDistribution::LogNormal { mean: 0.0, deviation: 1.0 },
];

/// Lifetimes of closed handles and ages of open ones, as multiples of a unit of time.
pub struct LifetimeSample {
    /// Number of closed handles that count only as shorter than 1.
    short: f64,
    /// Number of other closed handles; then the sums of their lifetimes, of the logarithms, and of the squared
    /// logarithms.
    long: f64,
    sum: f64,
    log_sum: f64,
    log_squares: f64,
    /// Ages of open handles, each with the number of handles it stands for.
    open: Vec<(f64, f64)>,
}

impl LifetimeSample {
    /// Makes a sample of all lifetimes of a group, and ages in order. What matters is whether the tail of the lifetimes
    /// explains the ages, so the shorter half counts only as short. `None` without closed handles.
    pub fn from_group(mut lifetimes: Vec<i64>, ages: &[i64]) -> Option<Self> {
        if lifetimes.is_empty() {
            return None;
        }
        let middle = lifetimes.len() / 2;
        let median = *lifetimes.select_nth_unstable(middle).1;
        Some(Self::new(&lifetimes, median, ages, median))
    }

    /// Makes a sample of lifetimes and ages in order, both since the same age; `None` without closed handles.
    pub fn from_late(lifetimes: &[i64], ages: &[i64]) -> Option<Self> {
        let longest = *lifetimes.iter().max()?;
        Some(Self::new(lifetimes, 0, ages, longest))
    }

    /// Makes a sample in which lifetimes below `short` count only as short.
    fn new(lifetimes: &[i64], short: i64, ages: &[i64], unit: i64) -> Self {
        let multiple = |ns: i64| ns.max(1) as f64 / unit.max(1) as f64;
        let points = ages.len().min(AGES);
        let weight = ages.len() as f64 / points.max(1) as f64;
        let open = (0..points).map(|point| {
            let middle = (2 * point + 1) * ages.len() / (2 * points);
            (multiple(ages[middle]), weight)
        });
        let mut sample = Self {
            short: 0.0,
            long: 0.0,
            sum: 0.0,
            log_sum: 0.0,
            log_squares: 0.0,
            open: open.collect(),
        };
        for lifetime in lifetimes {
            if *lifetime < short {
                sample.short += 1.0;
                continue;
            }
            let lifetime = multiple(*lifetime);
            sample.long += 1.0;
            sample.sum += lifetime;
            sample.log_sum += lifetime.ln();
            sample.log_squares += lifetime.ln().powi(2);
        }
        sample
    }

    fn open_count(&self) -> f64 {
        self.open.iter().map(|(_, count)| count).sum()
    }

    fn handles(&self) -> f64 {
        self.short + self.long + self.open_count()
    }

    /// Returns the logarithm of how much likelier the sample is if part of the handles is never closed.
    pub fn evidence(&self) -> f64 {
        self.evidence_by(&DISTRIBUTIONS)
    }

    /// Like [`Self::evidence`], but with exponential lifetimes only.
    pub fn exponential_evidence(&self) -> f64 {
        self.evidence_by(&DISTRIBUTIONS[..1])
    }

    fn evidence_by(&self, distributions: &[LifetimeDistribution]) -> f64 {
        let best = |never: f64| {
            distributions
                .iter()
                .map(|start| self.fit(*start, never))
                .fold(f64::NEG_INFINITY, f64::max)
        };
        best(self.open_count() / self.handles() / 2.0) - best(0.0)
    }

    /// Returns the log likelihood of the best fit. `never` is the initial share of handles that are never closed; 0
    /// means there are none.
    fn fit(&self, mut lifetimes: LifetimeDistribution, mut never: f64) -> f64 {
        for _ in 0..STEPS {
            let mut moments = Moments::default();
            moments.add(self.short, lifetimes.moments_below_one());
            moments.add(1.0, lifetimes.moments(self));
            let mut kept = 0.0;
            for (age, count) in &self.open {
                let survival = (1.0 - never) * lifetimes.survival(*age);
                let share = if never > 0.0 { never / (never + survival) } else { 0.0 };
                kept += count * share;
                moments.add(count * (1.0 - share), lifetimes.moments_above(*age));
            }
            let count = self.handles() - kept;
            never = (kept / self.handles()).min(1.0 - f64::EPSILON);
            lifetimes = lifetimes.fitted(moments, count.max(f64::EPSILON));
        }
        let ln = |likelihood: f64| likelihood.max(f64::MIN_POSITIVE).ln();
        let open = self
            .open
            .iter()
            .map(|(age, count)| count * ln(never + (1.0 - never) * lifetimes.survival(*age)));
        (self.short + self.long) * ln(1.0 - never)
            + self.short * ln(1.0 - lifetimes.survival(1.0))
            + lifetimes.log_density(self)
            + open.sum::<f64>()
    }
}

/// Sums that a distribution is fitted to: lifetimes or their logarithms, and the squares of these.
#[derive(Default, Clone, Copy)]
struct Moments {
    first: f64,
    second: f64,
}

impl Moments {
    fn add(&mut self, count: f64, of_each: Self) {
        self.first += count * of_each.first;
        self.second += count * of_each.second;
    }
}

/// A distribution of lifetimes.
#[derive(Clone, Copy)]
enum LifetimeDistribution {
    Exponential {
        rate: f64,
    },
    /// Mean and standard deviation of the logarithm.
    LogNormal {
        mean: f64,
        deviation: f64,
    },
}

impl LifetimeDistribution {
    /// Returns the share of handles that live longer than `age`.
    fn survival(self, age: f64) -> f64 {
        match self {
            Self::Exponential { rate } => (-rate * age).exp(),
            Self::LogNormal { mean, deviation } => normal_above((age.ln() - mean) / deviation),
        }
    }

    /// Returns the log density of the longer lifetimes of a sample.
    fn log_density(self, sample: &LifetimeSample) -> f64 {
        let LifetimeSample { long, sum, log_sum, log_squares, .. } = *sample;
        match self {
            Self::Exponential { rate } => long * rate.ln() - rate * sum,
            Self::LogNormal { mean, deviation } => {
                let squares = log_squares - 2.0 * mean * log_sum + long * mean * mean;
                let scale = long * (deviation.ln() + TAU.ln() / 2.0);
                -squares / (2.0 * deviation * deviation) - scale - log_sum
            }
        }
    }

    /// Returns the sums over the longer lifetimes of a sample.
    fn moments(self, sample: &LifetimeSample) -> Moments {
        match self {
            Self::Exponential { .. } => Moments { first: sample.sum, second: 0.0 },
            Self::LogNormal { .. } => Moments { first: sample.log_sum, second: sample.log_squares },
        }
    }

    /// Returns the expectation for a handle that lives longer than `age`.
    fn moments_above(self, age: f64) -> Moments {
        match self {
            Self::Exponential { rate } => Moments { first: age + 1.0 / rate, second: 0.0 },
            Self::LogNormal { mean, deviation } => {
                let log = age.ln();
                let excess = deviation * mean_above((log - mean) / deviation);
                let squares = mean * mean + deviation * deviation + (log + mean) * excess;
                Moments { first: mean + excess, second: squares }
            }
        }
    }

    /// Returns the expectation for a handle that lives for less than 1.
    fn moments_below_one(self) -> Moments {
        match self {
            Self::Exponential { rate } => {
                Moments { first: (1.0 / rate - 1.0 / rate.exp_m1()).max(0.0), second: 0.0 }
            }
            Self::LogNormal { mean, deviation } => {
                let deficit = deviation * mean_above(mean / deviation);
                let squares = mean * mean + deviation * deviation - mean * deficit;
                Moments { first: mean - deficit, second: squares }
            }
        }
    }

    /// Returns the distribution with these moments for `count` handles.
    fn fitted(self, Moments { first, second }: Moments, count: f64) -> Self {
        let mean = first / count;
        match self {
            Self::Exponential { .. } => Self::Exponential { rate: 1.0 / mean.max(1e-9) },
            Self::LogNormal { .. } => {
                let variance = second / count - mean * mean;
                Self::LogNormal { mean, deviation: variance.max(1e-6).sqrt() }
            }
        }
    }
}

/// Returns the probability that a standard normal variable is greater than `z`.
fn normal_above(z: f64) -> f64 {
    erfc(z / SQRT_2) / 2.0
}

/// Returns the mean of the values of a standard normal variable above `z`.
fn mean_above(z: f64) -> f64 {
    // Both density and probability vanish far above.
    if z > 8.0 { z + 1.0 / z } else { (-z * z / 2.0).exp() / TAU.sqrt() / normal_above(z) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: f64 = 1_000_000.0;

    /// Makes lifetimes at equal steps of their probability.
    fn lifetimes(count: u32, quantile: impl Fn(f64) -> f64) -> Vec<i64> {
        (0..count)
            .map(|n| (f64::from(n) + 0.5) / f64::from(count))
            .map(|share| (quantile(share) * UNIT) as i64)
            .collect()
    }

    fn exponential(share: f64) -> f64 {
        -(1.0 - share).ln()
    }

    fn evidence(lifetimes: Vec<i64>, ages: &[f64]) -> f64 {
        let ages: Vec<i64> = ages.iter().map(|age| (age * UNIT) as i64).collect();
        LifetimeSample::from_group(lifetimes, &ages).unwrap().evidence()
    }

    #[test]
    fn ages_that_lifetimes_explain_are_no_evidence() {
        // Of 100 handles opened at a constant rate over ten mean lifetimes, ten are open.
        let ages: Vec<f64> = (0..10).map(|n| exponential((f64::from(n) + 0.5) / 10.0)).collect();
        assert!(evidence(lifetimes(90, exponential), &ages) < 1.0);
        assert!(evidence(lifetimes(90, |share| exponential(share).powi(3)), &[30.0, 60.0]) < 1.0);
    }

    #[test]
    fn ages_beyond_all_lifetimes_are_evidence() {
        let ages: Vec<f64> = (1..=10).map(|n| f64::from(n) * 10.0).collect();
        assert!(evidence(lifetimes(90, exponential), &ages) > 20.0);
        assert!(evidence(vec![1_000_000; 90], &ages) > 20.0, "lifetimes may be equal");
    }

    #[test]
    fn handles_that_are_all_open_or_all_closed_do_no_harm() {
        assert!(LifetimeSample::from_group(Vec::new(), &[1, 2]).is_none());
        assert!(LifetimeSample::from_late(&[], &[1, 2]).is_none());
        for (lifetimes, ages) in [
            (vec![0], vec![]),
            (vec![0; 9], vec![0; 9]),
            (vec![i64::MIN, i64::MAX], vec![i64::MIN, i64::MAX]),
        ] {
            let late = LifetimeSample::from_late(&lifetimes, &ages).unwrap();
            let group = LifetimeSample::from_group(lifetimes, &ages).unwrap();
            assert!(!late.exponential_evidence().is_nan() && !group.evidence().is_nan());
        }
    }
}
