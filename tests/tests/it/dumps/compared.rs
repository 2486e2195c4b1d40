//! `.diff` of two dumps of the same process.

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::dump::{DumpModule, SampleDump, TraceOperation, WRITTEN};
use serde_json::Value;

use super::{PROGRAM, program};

/// Type, name pattern, state, counts before and after, and whether it got worse.
type ComparedRow<'d> = (&'d str, Option<&'d str>, &'d str, u64, u64, bool);

/// Returns the groups of a comparison.
fn groups(document: &Value) -> Vec<ComparedRow<'_>> {
    document["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (
                group["type"].as_str().unwrap(),
                group["name_pattern"].as_str(),
                group["state"].as_str().unwrap(),
                group["before"].as_u64().unwrap(),
                group["after"].as_u64().unwrap(),
                group["got_worse"].as_bool().unwrap(),
            )
        })
        .collect()
}

/// Compares two dumps; the second was written an hour after the first.
fn compared(before: &SampleDump, after: SampleDump) -> (Value, Option<i32>, String) {
    let shell = Shell::new();
    fs::write(shell.path("before.dmp"), before.to_bytes()).unwrap();
    let after = SampleDump { written: WRITTEN + 3600, ..after };
    fs::write(shell.path("after.dmp"), after.to_bytes()).unwrap();
    let run = shell.run(&["diff", "before.dmp", "after.dmp", "-json"]);
    // Loaded dumps are compared in the order of their times.
    let text = shell.run(&["after.dmp", "before.dmp", "-c", ".diff"]);
    assert_eq!(text.status, run.status, "{text:?}");
    (serde_json::from_str(&run.stdout).unwrap(), run.status, text.stdout)
}

/// Makes a dump with handles of these types and names, without operations.
fn listed(handles: &[(u64, &str, &str)]) -> SampleDump {
    let mut value = 0;
    let mut dump = program();
    for (count, type_name, name) in handles {
        for number in 0..*count {
            value += 4;
            dump = dump.handle(value, type_name, &name.replace('#', &number.to_string()));
        }
    }
    dump
}

#[test]
fn what_grew_is_named_by_type_and_name_without_any_stack() {
    let base = [(20, "Event", ""), (10, "Key", r"\REGISTRY\MACHINE")];
    let before = listed(&[base[0], base[1], (2, "File", r"\Device\spool#.tmp")]);
    let after = listed(&[base[0], base[1], (60, "File", r"\Device\spool#.tmp")]);
    let (document, status, text) = compared(&before, after);
    let expected = [
        ("File", Some(r"\Device\spool#.tmp"), "worse", 2, 60, true),
        ("Event", None, "same", 20, 20, false),
        ("Key", Some(r"\REGISTRY\MACHINE"), "same", 10, 10, false),
    ];
    let mut found = groups(&document);
    found[1..].sort();
    assert_eq!(found, expected, "{document}");
    assert_eq!(status, Some(1));
    let line = r"worse: server.exe File \Device\spool#.tmp: 2 open before, 60 after";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_grew_is_named_by_its_stack() {
    let leak = [PROGRAM + 0x500, PROGRAM + 0x600];
    let dump = |leaked: u64| {
        let mut dump = listed(&[(20, "Event", "")]);
        for number in 0..leaked {
            let handle = 0x1000 + number * 4;
            dump =
                dump.handle(handle, "Semaphore", "").operation(TraceOperation::Open, handle, &leak);
        }
        // A handle that is opened and closed.
        dump.operation(TraceOperation::Close, 0x900, &[PROGRAM + 0x700]).operation(
            TraceOperation::Open,
            0x900,
            &[PROGRAM + 0x100],
        )
    };
    let (document, status, text) = compared(&dump(3), dump(40));
    let found = groups(&document);
    assert_eq!(found[0], ("Semaphore", None, "worse", 3, 40, true), "{document}");
    assert_eq!(found[1], ("Event", None, "same", 20, 20, false), "{document}");
    assert_eq!((found.len(), status), (2, Some(1)));
    assert!(text.contains("server.exe Semaphore: 3 open before, 40 after"), "{text}");
    assert!(text.contains("server.exe+0x500"), "{text}");
}

/// Makes a dump of events; only the first `traced` have the stack that opened them.
fn partly_traced(events: u64, traced: u64) -> SampleDump {
    let stack = [PROGRAM + 0x500, PROGRAM + 0x600];
    let dump = listed(&[(events, "Event", "")]);
    (1..=traced).fold(dump, |dump, number| dump.operation(TraceOperation::Open, number * 4, &stack))
}

#[test]
fn handles_that_only_got_or_lost_their_stack_may_have_been_there_before() {
    for (before, after) in [(0, 18), (18, 0)] {
        let (document, status, _) = compared(&partly_traced(20, before), partly_traced(20, after));
        let states: Vec<_> = groups(&document).iter().map(|group| (group.2, group.5)).collect();
        assert!(
            states.iter().all(|(state, got_worse)| *state != "worse" && !got_worse),
            "{states:?}"
        );
        assert_eq!(status, Some(2), "{document}");
        // Any growth beyond that got worse.
        let (_, status, _) = compared(&partly_traced(20, before), partly_traced(60, after * 3));
        assert_eq!(status, Some(1));
    }
}

#[test]
fn dumps_that_hold_the_same_are_no_reason_to_fail() {
    let (document, status, _) =
        compared(&listed(&[(20, "Event", "")]), listed(&[(20, "Event", "")]));
    assert_eq!(groups(&document), [("Event", None, "same", 20, 20, false)]);
    assert_eq!(status, Some(0));
    let (document, status, _) =
        compared(&listed(&[(20, "Event", "")]), listed(&[(21, "Event", "")]));
    assert_eq!(groups(&document), [("Event", None, "same", 20, 21, false)]);
    assert_eq!(status, Some(0));
}

#[test]
fn a_dump_and_a_trace_are_compared_by_what_leaks() {
    let shell = Shell::new();
    let dump = listed(&[(20, "Event", "")]);
    let dump =
        dump.handle(0x1000, "Key", "").operation(TraceOperation::Open, 0x1000, &[PROGRAM + 0x500]);
    fs::write(shell.path("a.dmp"), dump.to_bytes()).unwrap();
    let run = shell.run(&["diff", "a.dmp", "leaky.etl", "-pn", "server", "-json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(groups(&document), [("Key", None, "gone", 1, 0, false)], "{run:?}");
}

#[test]
fn dumps_are_put_in_the_order_of_their_times() {
    let shell = Shell::new();
    let newer = SampleDump { written: WRITTEN + 60, ..listed(&[(60, "Event", "")]) };
    fs::write(shell.path("old.dmp"), listed(&[(2, "Event", "")]).to_bytes()).unwrap();
    fs::write(shell.path("new.dmp"), newer.to_bytes()).unwrap();
    let run = shell.run(&["diff", "old.dmp", "new.dmp", "-json"]);
    let swapped = shell.run(&["diff", "new.dmp", "old.dmp", "-json"]);
    assert_eq!((run.status, swapped.status), (Some(1), Some(1)), "{swapped:?}");
    let [run_document, swapped_document]: [Value; 2] =
        [&run, &swapped].map(|run| serde_json::from_str(&run.stdout).unwrap());
    assert_eq!(groups(&run_document), groups(&swapped_document));
    assert!(swapped.stderr.contains("old.dmp is older"), "{}", swapped.stderr);
    assert!(!run.stderr.contains("is older"), "{}", run.stderr);
}

#[test]
fn dumps_of_two_programs_are_said_to_be_so() {
    let shell = Shell::new();
    let other = DumpModule::new(r"C:\demo\Client.exe", PROGRAM, 0x10_0000);
    let other = SampleDump { modules: vec![other], written: WRITTEN + 60, ..SampleDump::default() };
    fs::write(shell.path("a.dmp"), listed(&[(2, "Event", "")]).to_bytes()).unwrap();
    fs::write(shell.path("b.dmp"), other.handle(4, "Event", "").to_bytes()).unwrap();
    let run = shell.run(&["diff", "a.dmp", "b.dmp"]);
    let said = "the first is of server.exe and the second of Client.exe";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    let same = shell.run(&["diff", "a.dmp", "a.dmp"]);
    assert!(!same.stderr.contains("the first is of"), "{}", same.stderr);
}
