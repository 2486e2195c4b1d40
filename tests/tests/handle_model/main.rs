//! Random histories of handles against a model of them.
//!
//! [`model`] states what programs do, one operation after the other, and knows from that alone what is open, leaked and
//! closed. It writes each history as a trace, which the extraction reads, and both must agree: with an exact clock,
//! with clocks that stand still for 1 and for 15.6 ms, and in files that lost their beginning.

mod answer;
mod model;
mod operations;

use handlescope_tests::binary::{handlescope, run_script};
use handlescope_tests::file::{Clock, FileOptions, Layout};
use handlescope_tests::thorough;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use self::answer::Answer;
use self::model::Model;
use self::operations::{Operation, operation};

/// Runs `check` with random operations, as often as `cases` times a thousand where the search is thorough.
fn with_histories(cases: u32, longest: usize, check: impl Fn(&[Operation])) {
    let cases = if thorough::one_of(2) == 1 { cases * 40 } else { cases };
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    // The same histories in every run.
    let mut runner = TestRunner::new_with_rng(config.clone(), rng(&config));
    let operations = vec(operation(), 1..longest);
    let result = runner.run(&operations, |operations| {
        check(&operations);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn rng(config: &Config) -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm)
}

/// The system clock that advances every `step` 100 ns units, of four processors.
fn system_clock() -> FileOptions {
    FileOptions { clock: Clock::SystemTime, ..FileOptions::default() }
}

#[test]
fn an_exact_clock_says_all_of_handles_and_objects() {
    with_histories(60, 120, |operations| {
        for with_objects in [false, true] {
            let history = Model::run(operations, with_objects);
            let answer = Answer::of(&history.trace(FileOptions::default()).to_bytes());
            assert_eq!(answer.handles, history.handles());
            assert_eq!(answer.objects, history.objects());
        }
    });
}

#[test]
fn a_clock_that_stands_still_says_all_of_handles() {
    with_histories(60, 200, |operations| {
        for (step, with_objects) in [(10_000, false), (156_250, true), (156_250, false)] {
            let history = Model::run(operations, with_objects);
            let file = history.trace(system_clock()).build().on_coarse_clock(step);
            assert_eq!(Answer::of(&file.to_bytes()).handles, history.handles(), "{step}");
        }
    });
}

#[test]
fn a_ring_says_all_of_the_handles_that_were_opened_since_its_beginning() {
    let options = || FileOptions {
        buffer_size: 0x400,
        cpus: 1,
        layout: Layout::Circular { max_buffers: 12 },
        ..FileOptions::default()
    };
    with_histories(40, 200, |operations| {
        let history = Model::run(operations, false).on_one_processor();
        let mut trace = history.trace(options());
        trace.merge_events(false);
        let answer = Answer::of(&trace.to_bytes());
        assert_eq!(answer.opened, history.opened_since(answer.first_ns));
    });
}

#[test]
fn the_program_says_what_the_model_says() {
    with_histories(3, 200, |operations| {
        let history = Model::run(operations, false);
        let home = tempfile::tempdir().unwrap();
        history.trace(FileOptions::default()).write(home.path().join("trace.etl")).unwrap();
        let script = ".dump ObjectRef -json\n.dump ObjectRef -Leak -ShowTotal Process -json\n";
        let run = run_script(handlescope(home.path()).arg("trace.etl"), script).ok();
        let mut documents = serde_json::Deserializer::from_str(&run.stdout).into_iter::<Value>();
        let totals = documents.next().unwrap().unwrap()["totals"].clone();
        let expected = history.handles();
        let opened = [&totals["handles_created"], &totals["handles_duplicated"]];
        let opened: u64 = opened.into_iter().filter_map(Value::as_u64).sum();
        assert_eq!(opened, expected.opened, "{totals}");
        assert_eq!(totals["leaked_handles"], expected.leaked.values().sum::<u64>(), "{totals}");
        assert_eq!(totals["closed_at_exit"], expected.closed_at_exit.values().sum::<u64>());
    });
}
