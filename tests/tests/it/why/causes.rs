//! Why handles leak.

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, MS, OBJECT, asked, causes, close, open, suspects, trace};

const US: i64 = 1_000;

/// A lost handle and a closed one to the same object, of two threads, so far apart.
pub(super) fn race(apart_ns: i64, second: (u32, u32), closes: bool) -> TraceBuilder {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    open(&mut trace, 10 * MS + apart_ns, second, OBJECT, 0x14);
    if closes {
        close(&mut trace, 50 * MS, second, OBJECT, 0x14);
    }
    // The trace goes on.
    close(&mut trace, 90 * MS, (800, 801), OBJECT + 0x900, 0x99);
    trace
}

#[test]
fn a_race_needs_two_threads_of_one_process_within_the_window_of_which_one_closes() {
    let has_race = |trace: &TraceBuilder, options: &str| {
        let document = asked(trace, options);
        suspects(&document).iter().any(|suspect| causes(suspect).contains(&"race"))
    };
    assert!(has_race(&race(300 * US, (700, 702), true), ""));
    assert!(!has_race(&race(300 * US, (700, 702), true), "-RaceWindow 200us"));
    assert!(!has_race(&race(2 * MS, (700, 702), true), ""), "too far apart");
    assert!(has_race(&race(2 * MS, (700, 702), true), "-RaceWindow 5ms"));
    assert!(!has_race(&race(300 * US, (700, 701), true), ""), "one thread");
    assert!(!has_race(&race(300 * US, (800, 802), true), ""), "two processes");
    assert!(!has_race(&race(300 * US, (700, 702), false), ""), "none is closed");
}

#[test]
fn a_duplicate_that_is_not_closed_names_who_made_it() {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    trace.duplicate_handle(
        20 * MS,
        (700, 701),
        DuplicateRecord {
            object: OBJECT,
            source_handle: 0x10,
            target_handle: 0x24,
            target_pid: 800,
            source_pid: Some(700),
            type_id: EVENT,
        },
    );
    close(&mut trace, 30 * MS, (700, 701), OBJECT, 0x10);
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!(suspect["process"], "client.exe(800)");
    assert_eq!(causes(suspect), ["duplicate_not_closed", "never_closed"]);
    let text = suspect["diagnoses"][0]["text"].as_str().unwrap();
    assert_eq!(text, "duplicated into the process by server.exe(700) and never closed");
}

#[test]
fn a_healthy_trace_says_that_nothing_leaks_and_one_without_handles_that_it_does_not_know() {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    close(&mut trace, 20 * MS, (700, 701), OBJECT, 0x10);
    let run = run_over(&trace, ".why\n").ok();
    assert!(run.stdout.contains("Nothing leaks: of 1 handles"), "{}", run.stdout);
    assert_eq!(asked(&trace, "")["suspects"], json!([]));
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let run = run_over(&trace, ".why\n").ok();
    assert!(run.stdout.contains("Whether anything leaks is unknown"), "{}", run.stdout);
    assert!(run.stderr.contains("no handle events"), "{}", run.stderr);
}

#[test]
fn what_hides_the_truth_comes_first() {
    let shell = Shell::new();
    let run = shell.run(&["why", "leaky.etl"]).ok();
    assert!(run.stderr.contains("no symbols of leaky.exe"), "{}", run.stderr);
    let document: Value =
        serde_json::from_str(&shell.run(&["why", "leaky.etl", "-json"]).ok().stdout).unwrap();
    let kinds: Vec<&Value> =
        document["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["kind"]).collect();
    assert!(kinds.contains(&&json!("symbols_missing")), "{kinds:?}");
}
