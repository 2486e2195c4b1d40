//! What `.why` claims only with evidence, and what it counts instead of lists.

use handlescope_tests::binary::run_over;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

use super::{KERNEL, MS, OBJECT, USER, asked, close, open, suspects, trace};

const SECOND: i64 = 1000 * MS;

/// Builds a minute in which the server opens `count` handles on one stack, one every half second. It closes those for
/// which `lives` returns a lifetime.
fn opened(count: u32, lives: impl Fn(u32) -> Option<i64>) -> TraceBuilder {
    let mut trace = trace();
    trace.end(60 * SECOND);
    for number in 0..count {
        let (ns, object) = (SECOND / 2 * i64::from(number + 1), OBJECT + 0x100 * u64::from(number));
        open(&mut trace, ns, (700, 701), object, 4 * number + 4);
        if let Some(life) = lives(number) {
            close(&mut trace, ns + life, (700, 701), object, 4 * number + 4);
        }
    }
    trace
}

fn text(document: &Value, cause: &str) -> Option<String> {
    let mut texts = suspects(document).first()?["diagnoses"]
        .as_array()?
        .iter()
        .filter(|diagnosis| diagnosis["cause"] == cause);
    Some(texts.next()?["text"].as_str()?.to_owned())
}

#[test]
fn error_paths_are_advised_where_closing_is_the_rule_and_chance_does_not_explain_the_rest() {
    let closed = |trace: &TraceBuilder| text(&asked(trace, ""), "sometimes_closed");
    let all_but =
        |every: u32| move |number: u32| (!number.is_multiple_of(every)).then_some(50 * MS);
    let advised = closed(&opened(20, all_but(5)));
    assert_eq!(advised.as_deref(), Some("16 of 20 are closed: check the error paths"));
    let few = closed(&opened(4, all_but(4)));
    assert_eq!(few.as_deref(), Some("3 of 4 are closed"));
    let exception = closed(&opened(20, |number| (number % 4 == 0).then_some(50 * MS)));
    assert_eq!(exception.as_deref(), Some("5 of 20 are closed"));
    // Each handle lives for ten seconds, and the trace ends before the last ones are closed.
    let young = opened(110, |number| (number < 98).then_some(10 * SECOND));
    let document = asked(&young, "");
    assert_eq!((suspects(&document).len(), &document["young_groups"]), (0, &1.into()));
}

/// Returns a lifetime: mostly less than a second, at most six.
fn life(number: u32) -> i64 {
    300 * MS + 5700 * MS * i64::from(number * 37 % 110).pow(4) / 110_i64.pow(4)
}

#[test]
fn handles_that_outlive_many_closed_ones_by_far_are_leaked() {
    let trace = opened(110, |number| (number != 10 && number != 50).then(|| life(number)));
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["verdict"], &suspect["leaked"]), (&"balanced".into(), &2.into()));
    let evidence = suspect["evidence"].as_str().unwrap();
    let outlived = "2 leaked, the last one opened 34.5 s before the end of the trace, all at least 5.9 times as old as \
                    any that was closed; 108 of 110 closed";
    assert!(evidence.starts_with(outlived), "{evidence}");
    let text = run_over(&trace, ".why\n").ok().stdout;
    assert!(!text.contains("not counted") && !text.contains("Nothing leaks"), "{text}");
}

#[test]
fn handles_that_are_no_older_than_chance_explains_are_said_to_be_left_out() {
    let why = |trace: &TraceBuilder| run_over(trace, ".why\n").ok().stdout;
    // Eight lifetimes of 0.1 to 12.8 s, and a handle that is 55.5 s old.
    let few = why(&opened(9, |number| (number < 8).then(|| (100 * MS) << number)));
    let lines = "Nothing leaks: 9 handles opened, 1 not closed by their programs\n\
                 not counted: 1 handle of 1 group where handles are usually closed; 1 is older than \
                 any closed one was, but that may be chance; also in .dump ObjectRef -Leak\n";
    assert!(few.ends_with(lines), "{few}");
    let young = why(&opened(110, |number| (number < 98).then_some(10 * SECOND + 600 * MS)));
    let lines = "Nothing leaks: 110 handles opened, 12 not closed by their programs\n\
                 not counted: 12 handles of 1 group where handles are usually closed; none is older \
                 than the oldest closed one was; also in .dump ObjectRef -Leak\n";
    assert!(young.ends_with(lines), "{young}");
    let long = why(&opened(110, |number| (number < 29).then_some(45 * SECOND + 100 * MS)));
    let lines = "Nothing is known to leak: 110 handles opened, 81 not closed by their programs\n\
                 not counted: 81 handles of 1 group where handles live too long for this trace to \
                 tell whether any leaks; also in .dump ObjectRef -Leak\n";
    assert!(long.ends_with(lines), "{long}");
    let none = why(&opened(110, |_| Some(8 * MS)));
    assert!(
        none.ends_with("Nothing leaks: 110 handles opened, 0 not closed by their programs\n"),
        "{none}"
    );
}

#[test]
fn a_workload_that_stopped_is_no_fill_of_a_cache() {
    let leaks = |number: u32| (number >= 48 || !number.is_multiple_of(4)).then_some(8 * MS);
    let stopped = run_over(&opened(48, leaks), ".why\n").ok().stdout;
    assert!(stopped.contains("\n   Filled once: 12 leaked, opened within "), "{stopped}");
    assert!(stopped.contains("; nothing opened later than 24.0 s into the trace"), "{stopped}");
    let goes_on = run_over(&opened(118, leaks), ".why\n").ok().stdout;
    assert!(goes_on.contains("12 leaked, opened within "), "{goes_on}");
    assert!(!goes_on.contains("nothing opened"), "{goes_on}");
}

#[test]
fn stacks_of_unknown_code_at_different_addresses_are_not_one() {
    let with_places = |places: u64| {
        let mut trace = trace();
        for number in 0..8 {
            let object = OBJECT + 0x100 * number;
            let place = USER[0] + 0x10 * (number % places);
            trace
                .create_handle(
                    SECOND * number as i64,
                    (700, 701),
                    object,
                    4 * number as u32 + 4,
                    super::EVENT,
                )
                .stack(&KERNEL, &[place]);
        }
        (asked(&trace, "")["suspects"].clone(), run_over(&trace, ".why\n").ok().stdout)
    };
    let line = "create stacks with these functions, at different addresses\n";
    let (several, text) = with_places(3);
    assert_eq!((several.as_array().unwrap().len(), &several[0]["create_stacks"]), (3, &1.into()));
    assert!(!text.contains(line), "unknown code is one place only at one address: {text}");
    let (single, text) = with_places(1);
    assert_eq!(&single[0]["create_stacks"], 1);
    assert!(!text.contains("create stacks"), "{text}");
}

#[test]
fn several_processes_or_threads_that_ended_are_counted_by_program() {
    const PROCESS: u16 = 7;
    const THREAD: u16 = 8;
    let mut trace = trace();
    trace.object_type(PROCESS, "Process").object_type(THREAD, "Thread");
    for number in 0..5_u32 {
        let (at, object) = (i64::from(number) * MS, OBJECT + 0x100 * u64::from(number));
        let child = trace.process(900 + 4 * number, "child.exe");
        child.started(10 * MS + at).ended(40 * MS + at).key(object);
        trace.thread(700, 720 + number).creator(700, 701).started(60 * MS + at).ended(80 * MS + at);
        for (ns, object, kind, place) in [
            (11 * MS + at, object, PROCESS, 0x100),
            (60 * MS + at - 5_000, object + 0x1000, THREAD, 0x200),
        ] {
            let handle = 4 * (2 * number + u32::from(kind == THREAD)) + 4;
            let created = trace.create_handle(ns, (700, 701), object, handle, kind);
            created.stack(&KERNEL, &[USER[0] + place]);
        }
    }
    close(&mut trace, 200 * MS, (800, 801), OBJECT + 0x9000, 0x99);
    let text = run_over(&trace, ".why -All\n").ok().stdout;
    let processes = "Still open after the target process ended (5 of child.exe, all have ended, from \
                     0.040 s to 0.044 s)";
    let threads = "Still open after the target thread ended (5 threads of server.exe, started by \
                   server.exe(700), all have ended, from 0.080 s to 0.084 s)";
    assert!(text.contains(processes) && text.contains(threads), "{text}");
}
