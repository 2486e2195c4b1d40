//! The rule for several processes of a program: 1,000 seeds of each kind; `docs/statistics.md` states the errors.

use handlescope_tests::rng::Rng;

use super::tests::NOT_STEADY;
use super::*;

const SEEDS: u64 = 1_000;

/// A trace of ten minutes.
const TRACE: TimeWindow = TimeWindow { start_ns: 0, end_ns: 600_000_000_000 };

/// The processes of a program.
struct Program {
    rng: Rng,
    processes: Vec<ProcessLifetimes>,
}

impl Program {
    fn fraction(&mut self) -> f64 {
        self.rng.below(1 << 40) as f64 / (1_u64 << 40) as f64
    }

    /// Adds runs of the program at random times, each lasting for about a share of the trace.
    fn run(&mut self, runs: u64, share: f64) {
        for _ in 0..runs {
            let length = share * (0.5 + self.fraction());
            let start = (1.0 - length) * self.fraction();
            let ns = |share: f64| (share * TRACE.length_ns() as f64) as i64;
            let window = TimeWindow { start_ns: ns(start), end_ns: ns(start + length) };
            self.processes.push(ProcessLifetimes { lifetimes: Vec::new(), window });
        }
    }

    /// Adds processes that run all the time.
    fn live(&mut self, count: u64) {
        let process = ProcessLifetimes { lifetimes: Vec::new(), window: TRACE };
        self.processes.resize(count as usize, process);
    }

    /// Opens `count` handles in each process within a share of its time. They live for a share `mean` of it on average,
    /// or for ever without `mean`.
    fn open(&mut self, count: u64, until: f64, mean: Option<f64>) {
        for index in 0..self.processes.len() {
            let window = self.processes[index].window;
            for _ in 0..count {
                let ns = |share: f64| (share * window.length_ns() as f64) as i64;
                let opened_ns = window.start_ns + ns(until * self.fraction());
                let duration = mean.map(|mean| ns(-mean * self.fraction().ln()));
                let closed_ns = duration
                    .map(|duration| opened_ns.saturating_add(duration))
                    .filter(|closed| *closed <= window.end_ns);
                self.processes[index].lifetimes.push(Lifetime { opened_ns, closed_ns });
            }
        }
    }
}

/// Fails if more than `errors` seeds have a verdict that is not accepted.
fn assert_all_but(errors: usize, accepted: &[Verdict], fill: impl Fn(&mut Program)) {
    let wrong: Vec<u64> = (0..SEEDS)
        .filter(|seed| {
            let mut program = Program { rng: Rng::new(*seed), processes: Vec::new() };
            fill(&mut program);
            !accepted.contains(&Growth::from_processes(&program.processes, TRACE).verdict)
        })
        .collect();
    assert!(wrong.len() <= errors, "{} of {SEEDS}: {wrong:?}", wrong.len());
}

#[test]
fn runs_that_lose_a_few_handles_at_any_age_leak_steadily() {
    for leaked in [1, 3, 10] {
        assert_all_but(0, &[Verdict::Steady], |program| {
            program.run(40, 0.02);
            program.open(leaked, 1.0, None);
            program.open(20, 1.0, Some(0.01));
        });
    }
}

#[test]
fn handles_opened_at_the_start_of_each_run_are_filled_once() {
    for kept in [1, 3, 30] {
        assert_all_but(0, &[Verdict::Once], |program| {
            program.run(40, 0.02);
            program.open(kept, 0.1, None);
            program.open(20, 1.0, Some(0.01));
        });
    }
}

#[test]
fn handles_open_when_a_run_ends_are_young() {
    for mean in [0.01, 0.05, 0.15, 0.3] {
        assert_all_but(0, &NOT_STEADY, |program| {
            program.run(40, 0.02);
            program.open(30, 1.0, Some(mean));
        });
    }
}

#[test]
fn processes_that_run_all_the_time_leak_or_not_as_one_does() {
    assert_all_but(1, &[Verdict::Steady], |program| {
        program.live(5);
        program.open(10, 1.0, None);
        program.open(100, 1.0, Some(0.01));
    });
    assert_all_but(0, &[Verdict::Balanced], |program| {
        program.live(5);
        program.open(100, 1.0, Some(0.05));
    });
}
