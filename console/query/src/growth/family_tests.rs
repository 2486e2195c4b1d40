//! Groups with lifetimes or rates that are hard to judge: the table in `docs/statistics.md` says how many of 1,000 are
//! judged wrong.

use std::fs;
use std::path::Path;

use handlescope_tests::thorough;

use super::tests::{Group, SEEDS};
use super::*;

/// Groups of one kind.
struct Family {
    name: &'static str,
    /// Whether they leak steadily.
    leaks: bool,
    fill: fn(&mut Group),
}

const fn pool(name: &'static str, fill: fn(&mut Group)) -> Family {
    Family { name, leaks: false, fill }
}

const fn leak(name: &'static str, fill: fn(&mut Group)) -> Family {
    Family { name, leaks: true, fill }
}

const FAMILIES: [Family; 25] = [
    pool("a pool of 100 to 3,000; 3 % live for half of the time, exactly", |group| {
        let count = group.count(100, 3_000);
        group.long_ones(count, 0.03, |_| 0.5);
    }),
    pool("such a pool; 3 % live for 25 to 75 %", |group| {
        let count = group.count(100, 3_000);
        group.long_ones(count, 0.03, |group| group.between(0.25, 0.75));
    }),
    pool("such a pool; 3 % live for half of the time on average, exponentially", |group| {
        let count = group.count(100, 3_000);
        group.long_ones(count, 0.03, |group| 0.5 * group.exponential());
    }),
    pool("such a pool; 1 to 10 % live for 20 to 80 % on average, exponentially", |group| {
        let (count, share) = (group.count(100, 3_000), group.between(0.01, 0.1));
        let mean = group.between(0.2, 0.8);
        group.long_ones(count, share, move |group| mean * group.exponential());
    }),
    pool("a pool of 100 to 1,000 with lognormal lifetimes of sigma 2", |group| {
        let count = group.count(100, 1_000);
        let median = group.log_between(1e-5, 0.1);
        group.lognormal(count, median, 2.0);
    }),
    pool("a pool of 100 to 1,000 with lognormal lifetimes of sigma 3", |group| {
        let count = group.count(100, 1_000);
        let median = group.log_between(1e-5, 0.1);
        group.lognormal(count, median, 3.0);
    }),
    pool("50 to 1,000 that a finalizer closes at 3 random times", |group| {
        group.finalized(3.0);
    }),
    pool("50 to 1,000 that a finalizer closes at 6 random times", |group| group.finalized(6.0)),
    pool("50 to 1,000 that a finalizer closes at 12 random times", |group| group.finalized(12.0)),
    pool("50 to 1,000 that a finalizer closes at 25 random times", |group| group.finalized(25.0)),
    pool("a cache of 50 to 500 that fills exponentially, in 15 % of the time", |group| {
        group.cache(|group| 0.15 * group.exponential());
    }),
    pool("such a cache, in 30 %", |group| group.cache(|group| 0.3 * group.exponential())),
    pool("such a cache, in 50 %", |group| group.cache(|group| 0.5 * group.exponential())),
    pool("a cache that fills like the logarithm of the time", |group| {
        group.cache(|group| group.log_between(0.002, 1.0));
    }),
    pool("a cache that fills like the square root of the time", |group| {
        group.cache(|group| group.fraction().powi(2));
    }),
    leak("20 leaked at random among 300 with exponential lifetimes of 5 %", |group| {
        group.leak_at_random(20);
        group.exponential_pool(300, 0.05);
    }),
    leak("20 leaked at random among 300 with exponential lifetimes of 10 %", |group| {
        group.leak_at_random(20);
        group.exponential_pool(300, 0.1);
    }),
    leak("40 leaked at random among 300 with exponential lifetimes of 10 %", |group| {
        group.leak_at_random(40);
        group.exponential_pool(300, 0.1);
    }),
    leak("40 leaked among 300 with lognormal lifetimes of sigma 2, 0.1 % in the middle", |group| {
        group.leak_at_random(40);
        group.lognormal(300, 0.001, 2.0);
    }),
    leak("40 leaked among 300 with lognormal lifetimes of sigma 3, 0.1 % in the middle", |group| {
        group.leak_at_random(40);
        group.lognormal(300, 0.001, 3.0);
    }),
    leak("40 leaked among 300 of which 3 % live for half of the time", |group| {
        group.leak_at_random(40);
        group.long_ones(300, 0.03, |_| 0.5);
    }),
    leak("40 leaked among 50 to 1,000 that a finalizer closes at 6 random times", |group| {
        group.leak_at_random(40);
        group.finalized(6.0);
    }),
    leak("40 leaked among 50 to 1,000 that a finalizer closes at 12 random times", |group| {
        group.leak_at_random(40);
        group.finalized(12.0);
    }),
    leak("30 leaked in the first 10 % of the time, then 20 at random", |group| {
        for _ in 0..30 {
            let at = group.between(0.0, 0.1);
            group.leak_at(at);
        }
        for _ in 0..20 {
            let at = group.between(0.1, 1.0);
            group.leak_at(at);
        }
    }),
    leak("100 leaked at a rate that falls evenly to a half", |group| {
        for _ in 0..100 {
            let share = group.fraction();
            // The number until t is (4 t - t²) / 3.
            group.leak_at(2.0 - (4.0 - 3.0 * share).sqrt());
        }
    }),
];

impl Group {
    fn exponential(&mut self) -> f64 {
        -self.fraction().ln()
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    fn leak_at_random(&mut self, count: usize) {
        for _ in 0..count {
            let at = self.fraction();
            self.leak_at(at);
        }
    }

    fn exponential_pool(&mut self, count: usize, mean: f64) {
        for _ in 0..count {
            let (at, duration) = (self.fraction(), mean * self.exponential());
            self.open(at, duration);
        }
    }

    fn lognormal(&mut self, count: usize, median: f64, sigma: f64) {
        for _ in 0..count {
            let (at, duration) = (self.fraction(), median * (sigma * self.normal()).exp());
            self.open(at, duration);
        }
    }

    /// Opens a pool with short lifetimes and a share of long ones.
    fn long_ones(&mut self, count: usize, share: f64, long: impl Fn(&mut Self) -> f64) {
        let short = self.log_between(0.0005, 0.02);
        for _ in 0..count {
            let is_long = self.fraction() < share;
            let duration = if is_long { long(self) } else { short * self.exponential() };
            let at = self.fraction();
            self.open(at, duration);
        }
    }

    /// Opens handles that are dropped after a short use and closed together at about `sweeps` random times.
    fn finalized(&mut self, sweeps: f64) {
        let (mut times, mut at) = (Vec::new(), 0.0);
        while at < 1.0 {
            at += self.exponential() / sweeps;
            times.push(at);
        }
        let used = self.log_between(0.0001, 0.02);
        for _ in 0..self.count(50, 1_000) {
            let at = self.fraction();
            let dropped = at + used * self.exponential();
            let closed = times.iter().copied().find(|time| *time > dropped);
            let delay = 1e-5 * self.fraction();
            self.open(at, closed.unwrap_or(f64::INFINITY) - at + delay);
        }
    }

    /// Opens cache entries, which are kept.
    fn cache(&mut self, time: impl Fn(&mut Self) -> f64) {
        for _ in 0..self.count(50, 500) {
            let at = time(self);
            if at < 1.0 {
                self.leak_at(at);
            }
        }
    }
}

/// Counts the seeds with a wrong verdict.
fn wrong(family: &Family, share: usize) -> usize {
    let seeds = (0..SEEDS).step_by(share);
    let is_wrong = |seed: &u64| {
        let mut group = Group::new(*seed);
        (family.fill)(&mut group);
        (group.growth().verdict == Verdict::Steady) != family.leaks
    };
    seeds.filter(is_wrong).count()
}

/// Returns the number that the page states for a family.
fn documented(page: &str, name: &str) -> Option<usize> {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")))?;
    row.trim_end_matches(" |").rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn as_many_are_judged_wrong_as_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/statistics.md");
    let page = fs::read_to_string(page).unwrap();
    let share = thorough::one_of(10);
    let mut rows = Vec::new();
    let mut differ = Vec::new();
    for family in &FAMILIES {
        let wrong = wrong(family, share);
        let verdict = if family.leaks { "`steady`" } else { "not `steady`" };
        rows.push(format!("| {} | {verdict} | {} |", family.name, wrong * share));
        let documented = documented(&page, family.name);
        // A subset of the seeds has about the same share of errors.
        let is_alike = documented.is_some_and(|documented| match share {
            1 => wrong == documented,
            share => {
                let expected = documented as f64 / share as f64;
                (wrong as f64 - expected).abs() <= 3.0 * (expected + 1.0).sqrt()
            }
        });
        if !is_alike {
            differ.push(family.name);
        }
    }
    assert!(differ.is_empty(), "{differ:?} differ from docs/statistics.md:\n{}", rows.join("\n"));
}

#[test]
fn the_rate_is_that_of_the_sentence() {
    for family in FAMILIES.iter().filter(|family| family.leaks) {
        for seed in (0..SEEDS).step_by(thorough::one_of(20)) {
            let mut group = Group::new(seed);
            (family.fill)(&mut group);
            let GrowthEvidence { count, first_ns, last_ns, rate, .. } = group.growth().evidence;
            let Some(((first, last), rate)) = first_ns.zip(last_ns).zip(rate) else { continue };
            let minutes = (last - first) as f64 / 60e9;
            let quotient = (count - 1) as f64 / minutes;
            assert!((rate.per_minute / quotient - 1.0).abs() < 1e-9, "{}: {seed}", family.name);
        }
    }
}
