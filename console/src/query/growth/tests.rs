//! The rule on generated groups: 1,000 seeds of each kind.

use handlescope_tests::rng::Rng;

use super::*;

const SEEDS: u64 = 1_000;

/// A generated group in a trace of random length, from a second to days.
struct Group {
    rng: Rng,
    /// Length of the trace; times are fractions of it.
    length_ns: f64,
    lives: Vec<Life>,
}

impl Group {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let length_ns = [1e9, 30e9, 564e9, 7_200e9, 259_200e9][rng.index(5)];
        Self { rng, length_ns, lives: Vec::new() }
    }

    fn window(&self) -> Window {
        // A trace does not start at 0 for a process that starts in it.
        Window { start_ns: START_NS, end_ns: START_NS + self.length_ns as i64 }
    }

    fn growth(&self) -> Growth {
        Growth::of(&self.lives, self.window())
    }

    /// A number between 0 and 1, neither of them.
    fn fraction(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    fn count(&mut self, low: u64, high: u64) -> usize {
        (low + self.rng.below(high - low + 1)) as usize
    }

    /// Opens a handle; it is closed if that is before the end.
    fn open(&mut self, at: f64, lifetime: f64) {
        let ns = |at: f64| START_NS + (at * self.length_ns) as i64;
        let closed_ns = (at + lifetime < 1.0).then(|| ns(at + lifetime));
        self.lives.push(Life { opened_ns: ns(at), closed_ns });
    }

    fn lose(&mut self, at: f64) {
        self.open(at, f64::INFINITY);
    }

    /// Handles that live for `mean` on average, exponentially, evenly or hardly differently distributed.
    fn pool(&mut self, count: usize, mean: f64) {
        let distribution = self.rng.index(3);
        for _ in 0..count {
            let lifetime = match distribution {
                0 => -mean * self.fraction().ln(),
                1 => mean * self.between(0.0, 2.0),
                _ => mean * self.between(0.9, 1.1),
            };
            let at = self.fraction();
            self.open(at, lifetime);
        }
    }

    /// Arrival times from `start` to the end, at one rate, with distances from nearly none to the double.
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

/// Fails with the seeds whose verdict is not accepted.
fn assert_verdicts(fill: impl Fn(&mut Group), is_accepted: impl Fn(&Growth) -> bool) {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let mut group = Group::new(seed);
        fill(&mut group);
        let growth = group.growth();
        if !is_accepted(&growth) {
            wrong.push(format!("{seed}: {:?}: {growth}", growth.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {SEEDS}\n{}", wrong.len(), wrong.join("\n"));
}

/// Fails with the seeds that are not found to leak, at a rate within 10 % of losses by time.
fn assert_steady(fill: impl Fn(&mut Group) -> Vec<f64>) {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let mut group = Group::new(seed);
        let lost = fill(&mut group);
        let growth = group.growth();
        let minutes = (lost[lost.len() - 1] - lost[0]) * group.length_ns / 60e9;
        let expected = (lost.len() - 1) as f64 / minutes;
        let ratio = growth.evidence.rate.map_or(0.0, |rate| rate.per_minute / expected);
        if growth.verdict != Verdict::Steady || (ratio - 1.0).abs() > 0.1 {
            wrong.push(format!("{seed}: {:?} {ratio:.3}: {growth}", growth.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {SEEDS}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_pool_is_balanced() {
    let fill = |group: &mut Group| {
        let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.05));
        group.pool(count, mean);
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Balanced);
}

#[test]
fn a_pool_whose_handles_live_long_never_leaks_steadily() {
    let fill = |group: &mut Group| {
        let (count, mean) = (group.count(30, 3_000), group.between(0.05, 0.4));
        group.pool(count, mean);
    };
    assert_verdicts(fill, |growth| growth.verdict != Verdict::Steady);
}

#[test]
fn a_pool_of_a_few_handles_is_balanced() {
    let fill = |group: &mut Group| {
        let (count, mean) = (group.count(4, 40), group.between(0.0001, 0.02));
        group.pool(count, mean);
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Balanced);
}

#[test]
fn a_batch_just_before_the_end_leaves_a_group_balanced() {
    let fill = |group: &mut Group| {
        let batches = group.count(5, 40);
        for batch in 0..batches {
            let at = (batch as f64 + 0.5) / batches as f64 * 0.95;
            for _ in 0..group.count(20, 40) {
                let lifetime = group.between(0.006, 0.016);
                group.open(at, lifetime);
            }
        }
        for _ in 0..group.count(20, 40) {
            let at = group.between(0.995, 1.0);
            group.lose(at);
        }
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Balanced);
}

#[test]
fn a_warm_up_is_filled_once() {
    let fill = |group: &mut Group| {
        let (count, time) = (group.count(10, 1_000), group.between(0.0, 0.08));
        let is_slowing = group.rng.percent(50);
        for _ in 0..count {
            let at = if is_slowing {
                (-time / 3.0 * group.fraction().ln()).min(0.2)
            } else {
                group.between(0.0, time)
            };
            group.lose(at);
        }
        if group.rng.percent(30) {
            let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.02));
            group.pool(count, mean);
        }
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Once);
}

#[test]
fn a_cache_that_evicts_its_oldest_entry_is_no_leak() {
    let fill = |group: &mut Group| {
        let (capacity, turns) = (group.count(10, 200), group.between(2.5, 20.0));
        let times = group.arrivals((capacity as f64 * turns) as usize, 0.0);
        for (entry, at) in times.iter().enumerate() {
            let lifetime =
                times.get(entry + capacity).map_or(f64::INFINITY, |evicted| evicted - at);
            group.open(*at, lifetime);
        }
    };
    assert_verdicts(fill, |growth| matches!(growth.verdict, Verdict::Balanced | Verdict::Short));
}

#[test]
fn a_leak_is_steady_from_its_start_to_the_end() {
    assert_steady(|group| {
        let (count, start) = (group.count(18, 2_000), group.between(0.0, 0.6));
        let lost = group.arrivals(count, start);
        lost.iter().for_each(|at| group.lose(*at));
        lost
    });
}

#[test]
fn a_leak_among_handles_that_are_closed_is_steady() {
    assert_steady(|group| {
        let (count, start) = (group.count(36, 300), group.between(0.0, 0.5));
        let lost = group.arrivals(count, start);
        lost.iter().for_each(|at| group.lose(*at));
        let closed = count * group.count(1, 100);
        let mean = group.between(0.00001, 0.02);
        group.pool(closed, mean);
        lost
    });
}

#[test]
fn a_leak_after_a_warm_up_is_steady() {
    assert_steady(|group| {
        let lost = group.arrivals(60, 0.1);
        lost.iter().for_each(|at| group.lose(*at));
        for _ in 0..group.count(100, 500) {
            let at = group.between(0.0, 0.01);
            group.lose(at);
        }
        lost
    });
}

#[test]
fn arrivals_by_chance_are_never_missed() {
    let fill = |group: &mut Group| {
        for _ in 0..group.count(18, 300) {
            let at = group.fraction();
            group.lose(at);
        }
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Steady);
}

#[test]
fn many_handles_in_a_moment_are_a_burst() {
    let fill = |group: &mut Group| {
        let (at, width) = (group.between(0.2, 0.9), group.between(0.0, 0.004));
        for _ in 0..group.count(30, 500) {
            let at = group.between(at, at + width);
            group.lose(at);
        }
        if group.rng.percent(50) {
            let (count, mean) = (group.count(30, 3_000), group.between(0.0001, 0.02));
            group.pool(count, mean);
        }
    };
    assert_verdicts(fill, |growth| growth.verdict == Verdict::Burst && growth.evidence.count >= 30);
}

#[test]
fn few_handles_and_recent_ones_are_too_short_to_say() {
    let few = |group: &mut Group| {
        for _ in 0..group.count(1, 4) {
            let at = group.fraction();
            group.lose(at);
        }
    };
    assert_verdicts(few, |growth| growth.verdict == Verdict::Short);
    let recent = |group: &mut Group| {
        for _ in 0..group.count(4, 100) {
            let at = group.between(0.97, 1.0);
            group.lose(at);
        }
    };
    assert_verdicts(recent, |growth| growth.verdict == Verdict::Short);
}

#[test]
fn the_evidence_is_one_sentence() {
    let second = 1_000_000_000;
    let window = Window { start_ns: 0, end_ns: 600 * second };
    let lost = |at: i64| Life { opened_ns: at, closed_ns: None };
    let closed = |at: i64| Life { opened_ns: at, closed_ns: Some(at + second / 4) };
    let text = |lives: Vec<Life>| {
        let growth = Growth::of(&lives, window);
        format!("{}: {growth}", growth.verdict.word())
    };
    let leak = || (0..101).map(|n| lost(n * 5 * second));
    let pool = || (0..400).map(|n| closed(n * second));
    let burst = || (0..40).map(|n| lost(300 * second + n * second / 20));
    let texts = [
        leak().collect(),
        leak().chain(pool()).collect(),
        burst().collect(),
        (0..40).map(|n| lost(n * second)).collect(),
        pool().collect(),
        pool().chain([lost(599 * second + 900_000_000)]).collect(),
        vec![lost(1), lost(200 * second)],
        vec![],
    ]
    .map(text);
    let leaked = "steady: 101 lost over 8.33 min, 12.0 per minute (95 %: 9.86 to 14.6)";
    let expected = [
        leaked,
        &format!("{leaked}; 400 of 501 closed, after 250 ms on average"),
        "burst: 40 lost within 1.95 s, 5.00 min after the start, 4.97 min before the end",
        "once: 40 lost within 39.0 s, 0 s after the start, 9.35 min before the end",
        "balanced: none lost; 400 of 400 closed, after 250 ms on average",
        "balanced: 1 open at the end, for 100 ms at most; 400 of 401 closed, after 250 ms on average",
        "short: 2 lost, the last one 6.67 min before the end",
        "short: none lost",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn strays_are_no_part_of_a_burst_or_a_fill_that_goes_on() {
    let second = 1_000_000_000;
    let window = Window { start_ns: 0, end_ns: 600 * second };
    let text = |opens: &[i64]| {
        let lost = |opened_ns: &i64| Life { opened_ns: *opened_ns, closed_ns: None };
        let growth = Growth::of(&opens.iter().map(lost).collect::<Vec<_>>(), window);
        format!("{}: {growth}", growth.verdict.word())
    };
    let batch = |at: i64, count: i64| (0..count).map(move |n| at * second + n * second / 10);
    let burst: Vec<i64> = [120 * second, 180 * second].into_iter().chain(batch(300, 40)).collect();
    let fill: Vec<i64> = batch(0, 40).chain([590 * second]).collect();
    let batches: Vec<i64> = [180, 360, 540].into_iter().flat_map(|at| batch(at, 8)).collect();
    assert_eq!(
        [text(&burst), text(&fill), text(&batches)],
        [
            "burst: 40 of 42 lost within 3.90 s, 5.00 min after the start, 4.93 min before the end",
            "once: 40 of 41 lost within 3.90 s, 0 s after the start, 9.94 min before the end",
            "burst: 8 of 24 lost within 700 ms, 3.00 min after the start, 6.99 min before the end",
        ]
    );
}

#[test]
fn without_a_clock_the_evidence_is_how_many_were_lost_and_closed() {
    let life = |closed_ns| Life { opened_ns: 0, closed_ns };
    let text = |lives: &[Life]| Growth::without_clock(lives).to_string();
    assert_eq!(text(&[life(None), life(None)]), "2 lost, at unknown times");
    let lives = [life(None), life(Some(0)), life(Some(0))];
    assert_eq!(text(&lives), "1 lost, at unknown times; 2 of 3 closed");
}

#[test]
fn a_group_of_a_million_handles_takes_no_quadratic_time() {
    let mut group = Group::new(1);
    group.pool(1_000_000, 0.3);
    group.arrivals(100_000, 0.0).into_iter().for_each(|at| group.lose(at));
    let begin = std::time::Instant::now();
    assert_eq!(group.growth().evidence.opened, 1_100_000);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}
