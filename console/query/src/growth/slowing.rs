//! Tests whether handles leak ever more slowly, as when a cache fills.
//!
//! Three ways of slowing down are compared with piecewise constant rates. They are the growth models of Goel and
//! Okumoto (1979, exponential), Duane (1964, a power of time), and Musa and Okumoto (1984, logarithmic). Within one
//! part of the time, the first is Laplace's test for a trend.

use super::segments::{PENALTY, Segment};

/// Minimum log likelihood ratio in favour of slowing down, for its one parameter: three and a half standard deviations
/// of Laplace's test.
const COST: f64 = 6.0;

/// A leak goes on if its second half has more than this share of the leaks of its first.
const GOES_ON: f64 = 0.5;

/// Maximum number of times that represent all of them.
const POINTS: usize = 1_000;

/// Steps to find a parameter.
const STEPS: usize = 40;

/// A way of slowing down, fitted to times.
#[derive(Clone, Copy)]
struct Fit {
    /// Mean log likelihood ratio per time, compared with a constant rate.
    gain: f64,
    /// Leaks in the second half of the time divided by those in the first.
    half: f64,
}

impl Fit {
    const CONSTANT: Self = Self { gain: 0.0, half: 1.0 };
}

/// Whether leaks slow down over the last of these parts and the ones before it since the rate only falls.
///
/// Batches vary more than single leaks, so likelihoods are divided by the `dispersion`.
pub fn is_slowing(opens: &[i64], parts: &[Segment], dispersion: f64) -> bool {
    let slower = parts.windows(2).rev().take_while(|pair| pair[0].is_faster_than(&pair[1])).count();
    let parts = &parts[parts.len().saturating_sub(slower + 1)..];
    let (Some(from), Some(to)) = (parts.first(), parts.last()) else { return false };
    // A part may begin at a leak because of that leak.
    let [first_ns, opens @ ..] = &opens[from.opens.start..to.opens.end] else { return false };
    let length = to.to_ns.saturating_sub(*first_ns) as f64;
    if opens.is_empty() || length <= 0.0 {
        return false;
    }
    let count = opens.len() as f64;
    let points = opens.len().min(POINTS);
    let times: Vec<f64> = (0..points)
        .map(|point| {
            let open = opens[(2 * point + 1) * opens.len() / (2 * points)];
            (open.saturating_sub(*first_ns) as f64 / length).clamp(1e-6, 1.0)
        })
        .collect();
    let fits = [exponential(&times), power(&times), logarithmic(&times)];
    let best = fits.into_iter().fold(
        Fit::CONSTANT,
        |best, fit| {
            if fit.gain > best.gain { fit } else { best }
        },
    );
    let slowing = count * best.gain / dispersion - COST;
    let changing = gain_of_parts(parts, *first_ns, length, count) / dispersion;
    let changing = changing - PENALTY * (parts.len() - 1) as f64;
    slowing > changing.max(0.0) && best.half < GOES_ON
}

/// Returns the log likelihood ratio of the rates of the parts over one constant rate, for all times after the first.
fn gain_of_parts(parts: &[Segment], first_ns: i64, length: f64, count: f64) -> f64 {
    parts
        .iter()
        .map(|part| {
            let is_first = part.from_ns <= first_ns && first_ns <= part.to_ns;
            let opens = part.opens.len() as f64 - if is_first { 1.0 } else { 0.0 };
            let share = part.to_ns.saturating_sub(part.from_ns.max(first_ns)) as f64 / length;
            if opens > 0.0 { opens * (opens / count / share.max(f64::EPSILON)).ln() } else { 0.0 }
        })
        .sum()
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    numbers.sum::<f64>() / count
}

/// Fits a rate that falls by the same share in equal times.
fn exponential(times: &[f64]) -> Fit {
    let mean = mean(times.iter().copied());
    if mean >= 0.5 {
        return Fit::CONSTANT;
    }
    // The mean time is 1 / rate - 1 / (exp(rate) - 1).
    let (mut low, mut high) = (1e-6_f64, 1e6);
    for _ in 0..2 * STEPS {
        let rate = (low * high).sqrt();
        let is_low = 1.0 / rate - 1.0 / rate.exp_m1() > mean;
        (low, high) = if is_low { (rate, high) } else { (low, rate) };
    }
    Fit { gain: (low / -(-low).exp_m1()).ln() - low * mean, half: (-low / 2.0).exp() }
}

/// Fits a number of leaks that grows like a power of time.
fn power(times: &[f64]) -> Fit {
    let logs = -mean(times.iter().map(|time| time.ln()));
    // The exponent is 1 / logs.
    if logs <= 1.0 {
        return Fit::CONSTANT;
    }
    let half = 0.5_f64.powf(1.0 / logs);
    Fit { gain: (1.0 - 1.0 / logs) * logs - logs.ln(), half: (1.0 - half) / half }
}

/// Fits a number of leaks that grows like ln(1 + speed · time).
fn logarithmic(times: &[f64]) -> Fit {
    let gain = |log_speed: f64| {
        let speed = log_speed.exp();
        (speed / speed.ln_1p()).ln() - mean(times.iter().map(|time| (speed * time).ln_1p()))
    };
    // Golden-section search.
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (-6.0, 12.0);
    for _ in 0..STEPS {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        (low, high) = if gain(left) > gain(right) { (low, right) } else { (left, high) };
    }
    let speed = f64::exp(low);
    let half = (speed / 2.0).ln_1p() / speed.ln_1p();
    Fit { gain: gain(low), half: (1.0 - half) / half }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `count` leaks at these shares of the time are found to slow down within one part.
    fn slows(count: u32, quantile: impl Fn(f64) -> f64) -> bool {
        let opens: Vec<i64> = (0..count)
            .map(|n| quantile((f64::from(n) + 0.5) / f64::from(count)))
            .map(|share| (share * 1e9) as i64)
            .collect();
        let part = Segment { from_ns: 0, to_ns: 1_000_000_000, opens: 0..opens.len() };
        is_slowing(&opens, &[part], 1.0)
    }

    #[test]
    fn caches_that_fill_ever_more_slowly_slow_down() {
        assert!(slows(40, |share| -0.3 * (1.0 - share * (1.0 - (-1.0_f64 / 0.3).exp())).ln()));
        assert!(slows(40, |share| share.powi(3)));
        assert!(slows(40, |share| ((1e3_f64.ln() * share).exp() - 1.0) / 1e3));
    }

    #[test]
    fn leaks_at_one_rate_or_at_a_rising_or_hardly_falling_one_do_not() {
        for count in [1, 2, 8, 40, 5_000] {
            assert!(!slows(count, |share| share));
            assert!(!slows(count, f64::sqrt));
            assert!(!slows(count, |share| share.powf(1.2)));
        }
    }

    #[test]
    fn a_rate_that_changes_once_is_no_trend() {
        let opens: Vec<i64> =
            (0..60).map(|n| n * 10).chain((0..20).map(|n| 610 + n * 450)).collect();
        let part = |from_ns, to_ns, opens| Segment { from_ns, to_ns, opens };
        let parts = [part(0, 600, 0..60), part(600, 9_600, 60..80)];
        assert!(!is_slowing(&opens, &parts, 1.0));
        assert!(is_slowing(&opens, &[part(0, 9_600, 0..80)], 1.0), "as one part");
    }

    #[test]
    fn parts_without_leaks_or_time_do_no_harm() {
        assert!(!is_slowing(&[], &[], 1.0));
        let part = |to_ns, opens| Segment { from_ns: 0, to_ns, opens };
        assert!(!is_slowing(&[], &[part(10, 0..0)], 1.0));
        assert!(!is_slowing(&[5; 9], &[part(5, 0..9)], 1.0));
        assert!(!is_slowing(&[i64::MIN, i64::MAX], &[part(i64::MAX, 0..2)], 1.0));
    }
}
