//! Snapshots by the debugger.

use std::fs;

use handlescope_tests::data::faults;
use handlescope_tests::needs_data;
use serde_json::{Value, json};

use super::{EVENTS, SESSION, answer, events, with};

#[test]
fn snapshots_and_differences_are_one_history() {
    let diff = "0:000> !htrace -diff\nHandle tracing information snapshot successfully taken.\n\
                0x1 new stack traces since the previous snapshot.\n\
                Ignoring handles that were already closed...\n\
                Outstanding handles opened since the previous snapshot:\n\
                --------------------------------------\nHandle = 0x00000038 - OPEN\n\
                Thread ID = 0x000017ec, Process ID = 0x000017e8\n\n\
                0x77ca2e3c: ntdll!ZwCreateFile+0x0000000c\n0x00ab158f: my_app!Cache::Open+0x0000016f\n\
                --------------------------------------\n\
                Displayed 0x1 stack traces for outstanding handles opened since the previous snapshot.\n";
    let snapshot =
        "0:000> !htrace -snapshot\nHandle tracing information snapshot successfully taken.\n";
    let nothing = "0:000> !htrace -diff\nHandle tracing information snapshot successfully taken.\n\
                   0x0 new stack traces since the previous snapshot.\n\
                   No outstanding handles opened since the previous snapshot were detected.\n";
    for text in [
        format!("{SESSION}{snapshot}{diff}"),
        format!("{diff}{SESSION}"),
        format!("{SESSION}{nothing}{SESSION}"),
    ] {
        let (answer, messages) = answer(&text);
        assert_eq!(events(&answer), EVENTS, "{text}");
        assert!(!messages.contains("first in line"), "{messages}");
    }
    let (answer, _) = answer(diff);
    assert_eq!(events(&answer), EVENTS[2..]);
}

/// Returns a session that takes a snapshot between two opens, and compares with it.
fn session_with_snapshot() -> String {
    let open = |handle: u32, function: &str| {
        format!(
            "--------------------------------------\nHandle = 0x{handle:x} - OPEN\nThread ID = 0x17ec, \
             Process ID = 0x17e8\n\n0x77ca310c: ntdll!ZwCreateEvent+0xc\n0x00ab1234: my_app!{function}+0x4\n"
        )
    };
    let taken = "Handle tracing information snapshot successfully taken.\n";
    let behind = [open(0x44, "Leak"), open(0x40, "Leak")].concat();
    let before = [open(0x38, "Start"), open(0x34, "Leak")].concat();
    format!(
        "0:000> !htrace -enable\nHandle tracing enabled.\n{taken}0:000> g\n\
         0:000> !htrace\n{before}Dumped 0x2 stack traces.\n\
         0:000> !htrace -snapshot\n{taken}0:000> g\n\
         0:000> !htrace -diff\n{taken}0x2 new stack traces since the previous snapshot.\n\
         Ignoring handles that were already closed...\n\
         Outstanding handles opened since the previous snapshot:\n{behind}\
         Displayed 0x2 stack traces for outstanding handles opened since the previous snapshot.\n"
    )
}

#[test]
fn a_snapshot_of_the_debugger_is_where_a_diff_begins() {
    let shell = with(session_with_snapshot());
    let list = shell.run(&["session.log", "-c", ".snapshot"]).ok().stdout;
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["snapshot1", "after", "2", "events", "session.log"], "{list}");
    let diff = |line: &str| -> Value {
        // The extract gives the same.
        let run = shell.run(&["session.log", "-c", &format!("{line} -json")]).ok();
        serde_json::from_str(&run.stdout).unwrap()
    };
    let found = |document: &Value| -> Vec<(Value, Value)> {
        document["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| (own["function"].clone(), own["still_open"].clone()))
            .collect()
    };
    let since = [(json!("my_app!Leak"), json!(2))];
    let document = diff(".diff");
    assert_eq!((&document["a"], &document["b"]), (&json!("snapshot1"), &json!("end")));
    assert_eq!(found(&document), since);
    assert_eq!(found(&diff(".dump Diff -From SNAPSHOT1")), since);
    let before = [(json!("my_app!Leak"), json!(1)), (json!("my_app!Start"), json!(1))];
    let mut until = found(&diff(".diff -To snapshot1"));
    until.sort_by_key(|(function, _)| function.to_string());
    assert_eq!(until, before, "the start is another point");
    let text = shell.run(&["session.log", "-c", ".diff"]).ok().stdout;
    assert!(text.ends_with("Opened after snapshot1 and still open at end: 2\n"), "{text}");
    // The flame graph shows what grew since the snapshot.
    let run = shell.run(&["session.log", "-c", ".diff -flame since.svg"]).ok();
    assert!(run.stdout.contains("SVG export was successful"), "{}", run.stdout);
    let svg = fs::read_to_string(shell.path("since.svg")).unwrap();
    assert!(svg.contains("(3 handles, 75.00%; +50.00%)"), "{svg}");
}

#[test]
fn a_name_of_a_snapshot_of_the_debugger_may_get_another_point() {
    let shell = with(session_with_snapshot());
    let run = shell.script(&["session.log"], ".snapshot snapshot1\n.snapshot\n.diff\n").ok();
    assert!(run.stdout.contains("end"), "{}", run.stdout);
    assert!(
        run.stdout.ends_with("Opened after start and still open at end: 4\n"),
        "{}",
        run.stdout
    );
}

#[needs_data]
#[test]
fn handles_repeated_in_differences_and_listings_count_once() {
    let text = fs::read(faults().join("dup2.log")).unwrap();
    let shell = with(text);
    let run = shell.run(&["session.log", "-c", ".dump ObjectRef -ShowTotal File"]).ok();
    assert!(run.stdout.contains("Created/Closed/Duplicated: 2/1/0 Diff: 1"), "{}", run.stdout);
    assert!(!run.stderr.contains("close is missing"), "{}", run.stderr);
}

#[needs_data]
#[test]
fn a_difference_since_a_snapshot_is_what_the_debugger_printed() {
    let shell = with(fs::read(faults().join("snap.log")).unwrap());
    let list = shell.run(&["session.log", "-c", ".snapshot"]).ok().stdout;
    assert!(list.contains("after 3 events"), "{list}");
    let text = shell.run(&["session.log", "-c", ".diff snapshot1"]).ok().stdout;
    assert!(text.ends_with("Opened after snapshot1 and still open at end: 1\n"), "{text}");
}
