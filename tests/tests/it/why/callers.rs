//! A leak belongs to a function if all its callers leak alike, and to a caller if the other callers do not leak.

use std::collections::BTreeMap;

use handlescope_tests::needs_data;
use handlescope_tests::published::PublishedTrace;
use handlescope_tests::rng::Rng;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, MS, OBJECT, asked, close, suspects, trace};

const PROGRAM: u64 = 0x7ff6_0000_0000;

/// Number of functions tried in one trace, each with its own callers.
const TRIALS: u64 = 200;

/// A trace of a program; stacks are written as offsets in it.
struct CallerTrace {
    trace: TraceBuilder,
    handles: u32,
}

impl CallerTrace {
    fn new() -> Self {
        let mut trace = trace();
        trace.module(700, r"C:\server.exe", PROGRAM, 0x1000_0000);
        Self { trace, handles: 0 }
    }

    /// Opens a handle on a stack, innermost offset first, and closes it at once unless it leaks.
    fn open(&mut self, stack: &[u64], is_leaked: bool) {
        self.handles += 1;
        let (handle, ns) = (4 * self.handles, MS * i64::from(self.handles));
        let object = OBJECT + 0x100 * u64::from(self.handles);
        let stack: Vec<u64> = stack.iter().map(|place| PROGRAM + place).collect();
        self.trace.create_handle(ns, (700, 701), object, handle, EVENT).stack(&[], &stack);
        if !is_leaked {
            close(&mut self.trace, ns + MS / 2, (700, 701), object, handle);
        }
    }

    fn why(&self, options: &str) -> Value {
        asked(&self.trace, options)
    }
}

/// Returns the offset of a trial's function; its callers come after it.
fn function(trial: u64) -> u64 {
    0x1_0000 * (trial + 1)
}

fn caller(trial: u64, caller: u64) -> u64 {
    function(trial) + 0x10 * (caller + 1)
}

/// Returns the suspects of each function, for a program with many trials.
fn by_function(document: &Value) -> BTreeMap<u64, Vec<&Value>> {
    let mut functions: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for suspect in suspects(document) {
        let (_, place) = suspect["function"].as_str().unwrap().split_once("+0x").unwrap();
        let place = u64::from_str_radix(place, 16).unwrap();
        functions.entry(place).or_default().push(suspect);
    }
    functions
}

/// Counts the functions that are a single suspect, and the functions that leak, in 200 trials. Each of `callers` opens
/// 5 handles, and a share of them leaks.
fn united(callers: u64, leaked_percent: u32, depth: impl Fn(u64) -> u64) -> [usize; 2] {
    let (mut program, mut rng) = (CallerTrace::new(), Rng::new(callers));
    for trial in 0..TRIALS {
        for number in 0..callers {
            let mut stack = vec![function(trial); depth(number) as usize];
            stack.extend([caller(trial, number), 0x10]);
            for _ in 0..5 {
                program.open(&stack, rng.percent(leaked_percent));
            }
        }
    }
    let document = program.why("");
    let functions = by_function(&document);
    [functions.values().filter(|suspects| suspects.len() == 1).count(), functions.len()]
}

/// Counts the trials of 200 in which the one leaking caller of `callers` is a suspect of its own. Each caller opens
/// `handles` handles, and that one leaks all of its own.
fn blamed(callers: u64, handles: u64) -> usize {
    let mut program = CallerTrace::new();
    for trial in 0..TRIALS {
        for number in 0..callers {
            for _ in 0..handles {
                program.open(
                    &[function(trial), caller(trial, number), 0x10],
                    number == trial % callers,
                );
            }
        }
    }
    let document = program.why("");
    let is_blamed = |of_function: &&Vec<&Value>| {
        let [suspect] = of_function[..] else { return false };
        suspect["leaked"] == json!(handles) && suspect["created"] == json!(handles)
    };
    by_function(&document).values().filter(is_blamed).count()
}

#[test]
fn a_leaking_function_is_one_suspect_however_many_callers_it_has() {
    // The table in docs/why.md.
    let cases = [(2, 100), (6, 100), (40, 100), (2, 30), (6, 30), (40, 30)];
    let united = cases.map(|(callers, percent)| united(callers, percent, |_| 1));
    assert_eq!(united, [[200, 200], [200, 200], [200, 200], [196, 196], [200, 200], [200, 200]]);
}

#[test]
fn a_function_that_calls_itself_is_one_suspect() {
    assert_eq!(united(6, 100, |number| 1 + number), [200, 200]);
}

#[test]
fn a_caller_that_leaks_through_a_healthy_function_is_a_suspect_of_its_own() {
    for (callers, handles, expected) in [(40, 5, 200), (6, 5, 200), (6, 3, 200), (6, 2, 200)] {
        assert_eq!(blamed(callers, handles), expected, "{callers} callers, {handles} handles");
    }
}

#[test]
fn of_two_callers_that_leak_through_a_healthy_function_each_is_a_suspect() {
    let mut program = CallerTrace::new();
    for number in 0..10 {
        for _ in 0..8 {
            program.open(&[function(0), caller(0, number), 0x10], number < 2);
        }
    }
    let document = program.why("");
    let counts: Vec<(&Value, &Value)> =
        suspects(&document).iter().map(|it| (&it["leaked"], &it["created"])).collect();
    assert_eq!(counts, [(&json!(8), &json!(8)); 2]);
    for suspect in suspects(&document) {
        let others = (&suspect["other_callers_leaked"], &suspect["other_callers_created"]);
        assert_eq!(others, (&json!(8), &json!(72)), "{suspect}");
    }
}

#[test]
fn a_caller_is_compared_with_all_stacks_that_lead_through_it() {
    // Each single stack has too few handles to prove anything.
    let mut program = CallerTrace::new();
    for number in 0..5 {
        for outer in 0..20 {
            let stack = [function(0), caller(0, number), caller(1, outer), 0x10];
            program.open(&stack, number == 3);
        }
    }
    let document = program.why("");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["leaked"], &suspect["created"]), (&json!(20), &json!(20)));
    assert_eq!(suspect["callers"].as_array().unwrap().len(), 20, "callers of the caller");
}

#[test]
fn what_the_function_closed_for_its_callers_counts_and_other_types_do_not() {
    let mut program = CallerTrace::new();
    for number in 0..4 {
        for at in 0..10 {
            program.open(&[function(0), caller(0, number), 0x10], at % 5 == number % 2);
        }
    }
    let document = program.why("");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["leaked"], &suspect["created"]), (&json!(8), &json!(40)));
    assert_eq!(suspect["processes"].as_array().unwrap().len(), 1, "{suspect}");
    let by_stack = program.why("-ByStack");
    assert_eq!(suspects(&by_stack).len(), 4);
    assert!(suspects(&by_stack).iter().all(|it| it["callers"] == json!([])), "{by_stack}");
    // Its id lists what all callers leaked.
    let id = suspect["id"].as_str().unwrap();
    let alone = program.why(&format!("-Suspect {id}"));
    assert_eq!(suspects(&alone)[0]["leaked"], json!(8));
}

#[needs_data]
#[test]
fn the_function_of_a_published_trace_is_blamed_before_one_with_fewer_leaks() {
    let trace = PublishedTrace::fault("many-callers");
    insta::assert_snapshot!(trace.ask(".why"));
}
