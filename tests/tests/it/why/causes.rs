//! Why handles leak.

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{DUPLICATE, EVENT, MS, OBJECT, asked, causes, close, open, suspects, trace};

const US: i64 = 1_000;

/// Builds a leaked handle and a closed one to the same object, opened by two threads `apart_ns` apart.
pub fn race(apart_ns: i64, second: (u32, u32), closes: bool) -> TraceBuilder {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    open(&mut trace, 10 * MS + apart_ns, second, OBJECT, 0x14);
    if closes {
        close(&mut trace, 50 * MS, second, OBJECT, 0x14);
    }
    // Keeps the trace going.
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
    trace.duplicate_handle(20 * MS, (700, 701), DUPLICATE);
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
    assert!(run.stdout.contains("Nothing leaks: 1 handle opened"), "{}", run.stdout);
    assert_eq!(asked(&trace, "")["suspects"], json!([]));
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let run = run_over(&trace, ".why\n").ok();
    assert!(run.stdout.contains("Unknown whether anything leaks"), "{}", run.stdout);
    assert!(run.stderr.contains("no handle events"), "{}", run.stderr);
}

#[test]
fn missing_symbols_are_reported_first() {
    let shell = Shell::new();
    let run = shell.run(&["why", "leaky.etl"]).ok();
    let warning = run.stderr.lines().find(|line| line.contains("no symbols for "));
    assert!(warning.is_some_and(|line| line.contains("leaky.exe")), "{}", run.stderr);
    let document: Value =
        serde_json::from_str(&shell.run(&["why", "leaky.etl", "-json"]).ok().stdout).unwrap();
    let kinds: Vec<&Value> =
        document["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["kind"]).collect();
    assert!(kinds.contains(&&json!("symbols_missing")), "{kinds:?}");
}

#[test]
fn a_handle_that_outlives_its_process_or_thread_names_which_ended_and_when() {
    const PROCESS: u16 = 7;
    const THREAD: u16 = 8;
    let mut trace = trace();
    trace.object_type(PROCESS, "Process").object_type(THREAD, "Thread");
    let child = trace.process(900, "child.exe").parent(700);
    child.started(10 * MS).ended(40 * MS).key(OBJECT);
    trace.thread(700, 720).creator(700, 701).started(20 * MS).ended(30 * MS);
    let stack = |place: u64| [super::USER[0] + place];
    for (ns, object, handle, kind, place) in [
        (11 * MS, OBJECT, 0x10, PROCESS, 0x100),
        (20 * MS - 5 * US, OBJECT + 0x500, 0x14, THREAD, 0x200),
    ] {
        let created = trace.create_handle(ns, (700, 701), object, handle, kind);
        created.stack(&super::KERNEL, &stack(place));
    }
    close(&mut trace, 90 * MS, (800, 801), OBJECT + 0x900, 0x99);
    let document = asked(&trace, "");
    let texts: Vec<&str> = suspects(&document)
        .iter()
        .flat_map(|suspect| suspect["diagnoses"].as_array().unwrap())
        .filter(|diagnosis| diagnosis["cause"] == "thread_or_process_handle")
        .map(|diagnosis| diagnosis["text"].as_str().unwrap())
        .collect();
    let process = "still open after the target process ended (child.exe(900), started at 0.010 s \
                   by server.exe(700), ended at 0.040 s)";
    let thread = "still open after the target thread ended (720 of server.exe(700), started at \
                  0.020 s by server.exe(700), ended at 0.030 s)";
    assert!(texts.contains(&process) && texts.contains(&thread), "{texts:?}");
}

#[test]
fn a_suspect_names_its_objects_by_what_they_share() {
    let mut trace = trace();
    let mut name = |number: u64, name: &str| {
        let object = OBJECT + 0x100 * number;
        let handle = 4 * number as u32 + 4;
        open(&mut trace, number as i64 * MS, (700, 701), object, handle);
        trace.handle_rundown_end(700, object, handle, EVENT, name);
    };
    (1..6).for_each(|number| name(number, &format!("\\Work_{number}")));
    name(6, "\\Stop7");
    name(7, "");
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    let names = json!([{"name": "\\Work_#", "count": 5}, {"name": "\\Stop7", "count": 1}]);
    assert_eq!(suspect["object_names"], names);
    let text = run_over(&trace, ".why\n").ok().stdout;
    assert!(text.contains("\n   Objects: \\Work_# (5), \\Stop7 (1), 1 without a name\n"), "{text}");
}
