//! Tests the rule on generated groups: 1,000 seeds of each kind.

use handlescope_tests::rng::Rng;

use super::*;

pub const SEEDS: u64 = 1_000;

/// A generated group in a trace of random length, from a second to days.
pub struct Group {
    rng: Rng,
    /// Length of the trace; times are fractions of it.
    length_ns: f64,
    lifetimes: Vec<Lifetime>,
}

impl std::fmt::Display for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = GrowthWords { closed: "closed", leaked: "leaked", opened: "opened" };
        f.write_str(&self.evidence.sentence(self.verdict, words, self.evidence.opened as u64))
    }
}

impl Group {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let length_ns = [1e9, 30e9, 564e9, 7_200e9, 259_200e9][rng.index(5)];
        Self { rng, length_ns, lifetimes: Vec::new() }
    }

    fn window(&self) -> TimeWindow {
        // A process that starts during the trace does not start at 0.
        TimeWindow { start_ns: START_NS, end_ns: START_NS + self.length_ns as i64 }
    }

    pub fn growth(&self) -> Growth {
        Growth::new(&self.lifetimes, self.window())
    }

    /// Returns a number between 0 and 1, exclusive.
    pub fn fraction(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    pub fn count(&mut self, low: u64, high: u64) -> usize {
        (low + self.rng.below(high - low + 1)) as usize
    }

    /// Opens a handle and closes it if that is before the end.
    pub fn open(&mut self, start: f64, duration: f64) {
        let ns = |start: f64| START_NS + (start * self.length_ns) as i64;
        let closed_ns = (start + duration < 1.0).then(|| ns(start + duration));
        self.lifetimes.push(Lifetime { opened_ns: ns(start), closed_ns });
    }

    pub fn leak_at(&mut self, at: f64) {
        self.open(at, f64::INFINITY);
    }

    /// Opens handles that live for `mean` on average: exponentially, evenly, or almost equally long.
    fn pool(&mut self, count: usize, mean: f64) {
        let distribution = self.rng.index(3);
        for _ in 0..count {
            let duration = match distribution {
                0 => -mean * self.fraction().ln(),
                1 => mean * self.between(0.0, 2.0),
                _ => mean * self.between(0.9, 1.1),
            };
            let at = self.fraction();
            self.open(at, duration);
        }
    }

    /// Opens handles for uses that begin at random and last for `mean` on average. The end of a use closes the handle
    /// opened last.
    fn stack(&mut self, count: usize, mean: f64) {
        let mut uses: Vec<(f64, bool)> = Vec::new();
        for _ in 0..count {
            let (begin, length) = (self.fraction(), -mean * self.fraction().ln());
            uses.extend([(begin, true), (begin + length, false)]);
        }
        uses.retain(|(at, _)| *at < 1.0);
        uses.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut open = Vec::new();
        for (at, is_begin) in uses {
            if is_begin {
                open.push(at);
            } else if let Some(opened) = open.pop() {
                self.open(opened, at - opened);
            }
        }
        open.into_iter().for_each(|at| self.leak_at(at));
    }

    /// Leaks handles one after the other, evenly spaced or at random.
    fn leak(&mut self, count: usize, start: f64) {
        let is_even = self.rng.percent(50);
        for n in 0..count {
            let at = if is_even { (n as f64 + 0.5) / count as f64 } else { self.fraction() };
            self.leak_at(start + (1.0 - start) * at);
        }
    }

    /// Returns arrival times from `start` to the end at a constant rate, with distances from nearly none to double.
    fn arrivals(&mut self, count: usize, start: f64) -> Vec<f64> {
        let mut at = 0.0;
        let mut times = Vec::new();
        for _ in 0..count {
            at += self.between(0.05, 1.95);
            times.push(at);
        }
        times.iter().map(|time| start + (1.0 - start) * time / (at + 1.0)).collect()
    }
}

const START_NS: i64 = 5_000_000_000;

/// Every verdict except steady.
pub const NOT_STEADY: [Verdict; 4] =
    [Verdict::Burst, Verdict::Once, Verdict::Balanced, Verdict::Short];

/// Fails if more than `errors` seeds have a verdict that is not accepted: `docs/statistics.md` states these errors.
fn assert_all_but(errors: usize, accepted: &[Verdict], fill: impl Fn(&mut Group)) {
    assert_growths(errors, |growth| accepted.contains(&growth.verdict), fill);
}

fn assert_growths(errors: usize, is_accepted: impl Fn(&Growth) -> bool, fill: impl Fn(&mut Group)) {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let mut group = Group::new(seed);
        fill(&mut group);
        let growth = group.growth();
        if !is_accepted(&growth) {
            wrong.push(format!("{seed}: {:?}: {growth}", growth.verdict));
        }
    }
    assert!(wrong.len() <= errors, "{} of {SEEDS}\n{}", wrong.len(), wrong.join("\n"));
}

/// Fails with the seeds that are not steady or have a rate more than 10 % off.
fn assert_steady(fill: impl Fn(&mut Group) -> Vec<f64>) {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let mut group = Group::new(seed);
        let leaked = fill(&mut group);
        let growth = group.growth();
        let minutes = (leaked[leaked.len() - 1] - leaked[0]) * group.length_ns / 60e9;
        let expected = (leaked.len() - 1) as f64 / minutes;
        let ratio = growth.evidence.rate.map_or(0.0, |rate| rate.per_minute / expected);
        if growth.verdict != Verdict::Steady || (ratio - 1.0).abs() > 0.1 {
            wrong.push(format!("{seed}: {:?} {ratio:.3}: {growth}", growth.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {SEEDS}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_pool_is_balanced() {
    assert_all_but(0, &[Verdict::Balanced], |group| {
        let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.05));
        group.pool(count, mean);
    });
}

#[test]
fn a_pool_whose_handles_live_long_never_leaks_steadily() {
    assert_all_but(0, &NOT_STEADY, |group| {
        let (count, mean) = (group.count(30, 3_000), group.between(0.05, 0.4));
        group.pool(count, mean);
    });
}

#[test]
fn a_pool_of_a_few_handles_is_balanced() {
    assert_all_but(0, &[Verdict::Balanced], |group| {
        let (count, mean) = (group.count(4, 40), group.between(0.0001, 0.02));
        group.pool(count, mean);
    });
}

#[test]
fn a_batch_just_before_the_end_leaves_a_group_balanced() {
    assert_all_but(0, &[Verdict::Balanced], |group| {
        let batches = group.count(5, 40);
        for batch in 0..batches {
            let at = (batch as f64 + 0.5) / batches as f64 * 0.95;
            for _ in 0..group.count(20, 40) {
                let duration = group.between(0.006, 0.016);
                group.open(at, duration);
            }
        }
        for _ in 0..group.count(20, 40) {
            let at = group.between(0.995, 1.0);
            group.leak_at(at);
        }
    });
}

#[test]
fn a_warm_up_is_filled_once() {
    assert_all_but(0, &[Verdict::Once], |group| {
        let (count, time) = (group.count(10, 1_000), group.between(0.0, 0.08));
        let is_slowing = group.rng.percent(50);
        for _ in 0..count {
            let at = if is_slowing {
                (-time / 3.0 * group.fraction().ln()).min(0.2)
            } else {
                group.between(0.0, time)
            };
            group.leak_at(at);
        }
        if group.rng.percent(30) {
            let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.02));
            group.pool(count, mean);
        }
    });
}

#[test]
fn a_cache_that_evicts_its_oldest_entry_is_no_leak() {
    assert_all_but(0, &[Verdict::Balanced, Verdict::Short], |group| {
        let (capacity, turns) = (group.count(10, 200), group.between(2.5, 20.0));
        let times = group.arrivals((capacity as f64 * turns) as usize, 0.0);
        for (entry, at) in times.iter().enumerate() {
            let duration =
                times.get(entry + capacity).map_or(f64::INFINITY, |evicted| evicted - at);
            group.open(*at, duration);
        }
    });
}

#[test]
fn a_leak_is_steady_from_its_start_to_the_end() {
    assert_steady(|group| {
        let (count, start) = (group.count(18, 2_000), group.between(0.0, 0.6));
        let leaked = group.arrivals(count, start);
        leaked.iter().for_each(|at| group.leak_at(*at));
        leaked
    });
}

#[test]
fn a_leak_among_handles_that_are_closed_is_steady() {
    assert_steady(|group| {
        let (count, start) = (group.count(36, 300), group.between(0.0, 0.5));
        let leaked = group.arrivals(count, start);
        leaked.iter().for_each(|at| group.leak_at(*at));
        let closed = count * group.count(1, 100);
        let mean = group.between(0.00001, 0.02);
        group.pool(closed, mean);
        leaked
    });
}

#[test]
fn a_leak_after_a_warm_up_is_steady() {
    assert_steady(|group| {
        let leaked = group.arrivals(60, 0.1);
        leaked.iter().for_each(|at| group.leak_at(*at));
        for _ in 0..group.count(100, 500) {
            let at = group.between(0.0, 0.01);
            group.leak_at(at);
        }
        leaked
    });
}

#[test]
fn a_slow_leak_after_a_large_warm_up_is_steady_by_itself() {
    for (warm_up, time, count) in
        [(60, 0.1, 20), (60, 0.1, 40), (60, 0.03, 40), (30, 0.1, 20), (30, 0.03, 20)]
    {
        assert_all_but(4, &[Verdict::Steady], |group| {
            for _ in 0..warm_up {
                let at = group.between(0.0, time);
                group.leak_at(at);
            }
            group.leak(count, time);
        });
    }
}

#[test]
fn a_leak_that_begins_late_is_steady_since_then() {
    for (count, wrong) in [(12, 11), (20, 2), (50, 0), (100, 0)] {
        let is_late = |growth: &Growth| {
            let GrowthEvidence { window, first_ns, .. } = growth.evidence;
            let since_ns = first_ns.expect("some are leaked") - window.start_ns;
            growth.verdict == Verdict::Steady && since_ns >= window.length_ns() / 10 * 8
        };
        assert_growths(wrong, is_late, |group| group.leak(count, 0.8));
    }
}

#[test]
fn closing_the_last_opened_handle_is_neither_steady_nor_a_burst() {
    for mean in [0.01, 0.03, 0.1, 0.2, 0.4] {
        let accepted = [Verdict::Once, Verdict::Balanced, Verdict::Short];
        assert_all_but(0, &accepted, |group| group.stack(300, mean));
    }
}

#[test]
fn a_pool_whose_lifetimes_are_exponential_and_a_third_of_the_time_does_not_leak() {
    for count in [30, 100, 300, 1_000] {
        assert_all_but(2, &NOT_STEADY, |group| {
            for _ in 0..count {
                let (at, duration) = (group.fraction(), -0.3 * group.fraction().ln());
                group.open(at, duration);
            }
        });
    }
}

#[test]
fn a_leak_in_batches_and_one_that_doubles_its_rate_are_steady() {
    assert_all_but(8, &[Verdict::Steady], |group| {
        for _ in 0..30 {
            let at = group.between(0.0, 0.999);
            for _ in 0..20 {
                let at = group.between(at, at + 0.0005);
                group.leak_at(at);
            }
        }
    });
    assert_all_but(0, &[Verdict::Steady], |group| {
        let count = group.count(30, 200);
        group.leak(count, 0.0);
        group.leak(count, 0.5);
    });
}

#[test]
fn arrivals_by_chance_are_never_missed() {
    assert_all_but(0, &[Verdict::Steady], |group| {
        for _ in 0..group.count(18, 300) {
            let at = group.fraction();
            group.leak_at(at);
        }
    });
}

#[test]
fn many_handles_in_a_moment_are_a_burst() {
    let is_accepted =
        |growth: &Growth| growth.verdict == Verdict::Burst && growth.evidence.count >= 30;
    assert_growths(0, is_accepted, |group| {
        let (at, width) = (group.between(0.2, 0.9), group.between(0.0, 0.004));
        for _ in 0..group.count(30, 500) {
            let at = group.between(at, at + width);
            group.leak_at(at);
        }
        if group.rng.percent(50) {
            let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.02));
            group.pool(count, mean);
        }
    });
}

#[test]
fn few_handles_and_recent_ones_are_too_short_to_say() {
    assert_all_but(0, &[Verdict::Short], |group| {
        for _ in 0..group.count(1, 4) {
            let at = group.fraction();
            group.leak_at(at);
        }
    });
    assert_all_but(0, &[Verdict::Short], |group| {
        for _ in 0..group.count(4, 100) {
            let at = group.between(0.97, 1.0);
            group.leak_at(at);
        }
    });
}

#[test]
fn the_evidence_is_one_sentence() {
    let second = 1_000_000_000;
    let window = TimeWindow { start_ns: 0, end_ns: 600 * second };
    let leaked = |at: i64| Lifetime { opened_ns: at, closed_ns: None };
    let closed = |at: i64| Lifetime { opened_ns: at, closed_ns: Some(at + second / 4) };
    let leak = || (0..101).map(|n| leaked(n * 5 * second));
    let pool = || (0..400).map(|n| closed(n * second));
    let burst = || (0..40).map(|n| leaked(300 * second + n * second / 20));
    let texts = [
        leak().collect(),
        leak().chain(pool()).collect(),
        burst().collect(),
        (0..40).map(|n| leaked(n * second)).collect(),
        (0..60)
            .map(|n| leaked(n * second))
            .chain((0..20).map(|n| leaked((70 + n * 27) * second)))
            .collect(),
        (0..20).map(|n| leaked((500 + n * 5) * second)).collect(),
        (0..8).map(|n| leaked(300 * second + n * second / 700)).collect(),
        pool().collect(),
        pool().chain([leaked(599 * second + 900_000_000)]).collect(),
        vec![leaked(1), leaked(200 * second)],
        vec![],
    ]
    .map(|lifetimes| {
        let growth = Growth::new(&lifetimes, window);
        format!("{}: {growth}", growth.verdict.word())
    });
    let leaked = "steady: 101 leaked over 8.33 min, 12 per minute (95 % confidence: 10 to 15)";
    let expected = [
        leaked,
        &format!("{leaked}; 400 of 501 closed after 250 ms on average"),
        "burst: 40 leaked, opened within 1.95 s, 5.00 min into the trace and 4.97 min before the end of the trace",
        "once: 40 leaked, opened within 39.0 s at the start of the trace, 9.35 min before the end of the trace",
        "steady: 60 leaked in the first 59.0 s (warm-up), then 20 over 8.55 min, about 2.2 per minute (95 % confidence: 1.4 to 3.5)",
        "steady: 20 leaked over 95.0 s, about 12 per minute (95 % confidence: 8 to 19), since 8.33 min into the trace",
        "burst: 8 leaked, opened within 10.0 ms, 5.00 min into the trace and 5.00 min before the end of the trace",
        "balanced: 400 of 400 closed after 250 ms on average, none leaked",
        "balanced: 400 of 401 closed after 250 ms on average, 1 still open at the end of the trace",
        "short: 2 leaked, the last one opened 6.67 min before the end of the trace",
        "short: none leaked",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_rate_has_the_unit_of_a_person_and_no_digit_that_says_nothing() {
    let text = |per_minute, factor| {
        Rate { per_minute, low: per_minute / factor, high: per_minute * factor }.to_string()
    };
    assert_eq!(text(42_000.0, 2.1), "about 700 per second (95 % confidence: 300 to 1,500)");
    assert_eq!(text(2_520_000.0, 1.01), "42,000 per second (95 % confidence: 41,600 to 42,400)");
    assert_eq!(text(29.99, 1.12), "30 per minute (95 % confidence: 27 to 34)");
    assert_eq!(text(0.4, 1.6), "about 24 per hour (95 % confidence: 15 to 38)");
    assert_eq!(text(0.001, 1.5), "about 1.4 per day (95 % confidence: 1.0 to 2.2)");
    assert_eq!(text(1e-5, 1.3), "0.014 per day (95 % confidence: 0.011 to 0.019)");
}

#[test]
fn leaks_of_a_short_process_are_a_burst_of_the_trace() {
    let window = |start_ns, end_ns| TimeWindow { start_ns, end_ns };
    let lifetimes: Vec<Lifetime> =
        (0..8).map(|n| Lifetime { opened_ns: n * 1_250_000, closed_ns: None }).collect();
    let of_process = window(0, 10_000_000);
    assert_eq!(Growth::new(&lifetimes, of_process).verdict, Verdict::Steady);
    let growth = Growth::within(&lifetimes, of_process, window(0, 5_000_000_000));
    assert_eq!((growth.verdict, growth.evidence.rate), (Verdict::Burst, None));
}

#[test]
fn strays_are_no_part_of_a_burst_or_a_fill_that_goes_on() {
    let second = 1_000_000_000;
    let window = TimeWindow { start_ns: 0, end_ns: 600 * second };
    let text = |opens: &[i64]| {
        let leaked = opens.iter().map(|open| Lifetime { opened_ns: *open, closed_ns: None });
        let growth = Growth::new(&leaked.collect::<Vec<_>>(), window);
        format!("{}: {growth}", growth.verdict.word())
    };
    let batch = |at: i64, count: i64| (0..count).map(move |n| at * second + n * second / 10);
    let burst: Vec<i64> = [120 * second, 180 * second].into_iter().chain(batch(300, 40)).collect();
    let fill: Vec<i64> = batch(0, 40).chain([590 * second]).collect();
    let batches: Vec<i64> = [180, 360, 540].into_iter().flat_map(|at| batch(at, 8)).collect();
    assert_eq!(
        [text(&burst), text(&fill), text(&batches)],
        [
            "burst: 40 of 42 leaked, opened within 3.90 s, 5.00 min into the trace and 4.93 min before the end of the trace",
            "once: 40 of 41 leaked, opened within 3.90 s at the start of the trace, 9.94 min before the end of the trace",
            "burst: 8 of 24 leaked, opened within 700 ms, 3.00 min into the trace and 6.99 min before the end of the trace",
        ]
    );
}

#[test]
fn without_a_clock_the_evidence_is_how_many_leaked_and_were_closed() {
    let lifetime = |closed_ns| Lifetime { opened_ns: 0, closed_ns };
    let text = |lifetimes: &[Lifetime]| Growth::without_clock(lifetimes.iter()).to_string();
    assert_eq!(text(&[lifetime(None), lifetime(None)]), "2 leaked, at unknown times");
    let lifetimes = [lifetime(None), lifetime(Some(0)), lifetime(Some(0))];
    assert_eq!(text(&lifetimes), "1 leaked, at unknown times; 2 of 3 closed");
}

#[test]
fn a_group_of_a_million_handles_takes_no_quadratic_time() {
    let mut group = Group::new(1);
    group.pool(1_000_000, 0.3);
    group.arrivals(100_000, 0.0).into_iter().for_each(|at| group.leak_at(at));
    let begin = std::time::Instant::now();
    assert_eq!(group.growth().evidence.opened, 1_100_000);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}
