//! Causes at the exit of a process, in a second open, and on the other side of a duplicate.

use handlescope_tests::binary::run_over;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

use super::{DUPLICATE, MS, OBJECT, asked, causes, close, open, suspects, trace};

/// Returns the text of a cause, for the first suspect that has it.
fn text(trace: &TraceBuilder, cause: &str) -> Option<String> {
    let document = asked(trace, "");
    let diagnoses =
        suspects(&document).iter().flat_map(|suspect| suspect["diagnoses"].as_array().unwrap());
    let mut texts = diagnoses.filter(|diagnosis| diagnosis["cause"] == cause);
    Some(texts.next()?["text"].as_str().unwrap().to_owned())
}

/// Builds a handle of a process that exits, without an event that closes it; the trace goes on.
fn ended(status: Option<i32>) -> TraceBuilder {
    let mut trace = trace();
    let process = trace.process(900, "worker.exe");
    process.started(MS).unswept();
    if let Some(status) = status {
        process.exited(40 * MS, status);
    }
    open(&mut trace, 10 * MS, (900, 901), OBJECT, 0x10);
    close(&mut trace, 900 * MS, (800, 801), OBJECT + 0x900, 0x99);
    trace
}

#[test]
fn one_thread_that_opens_an_object_twice_and_closes_one_handle() {
    let twice = |apart: i64, tid: u32, closes: bool| {
        let mut trace = trace();
        open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
        open(&mut trace, 10 * MS + apart, (700, tid), OBJECT, 0x14);
        if closes {
            close(&mut trace, 50 * MS, (700, tid), OBJECT, 0x14);
        }
        close(&mut trace, 90 * MS, (800, 801), OBJECT + 0x900, 0x99);
        text(&trace, "opened_twice")
    };
    let expected = "one thread opened the same object twice and closed only one handle (thread 701, 300 µs apart)";
    assert_eq!(twice(MS * 3 / 10, 701, true).as_deref(), Some(expected));
    assert_eq!(twice(MS * 3 / 10, 702, true), None, "two threads");
    assert_eq!(twice(MS * 3 / 10, 701, false), None, "none is closed");
    assert_eq!(twice(2 * MS, 701, true), None, "too far apart");
    let mut after_the_close = trace();
    open(&mut after_the_close, 10 * MS, (700, 701), OBJECT, 0x10);
    close(&mut after_the_close, 10 * MS + MS / 10, (700, 701), OBJECT, 0x10);
    open(&mut after_the_close, 10 * MS + MS / 5, (700, 701), OBJECT, 0x14);
    assert_eq!(text(&after_the_close, "opened_twice"), None, "only one was open");
}

#[test]
fn a_process_that_crashed_or_ended_before_it_closed_a_handle_says_when_and_how() {
    const ACCESS_VIOLATION: i32 = -1_073_741_819;
    let crashed = ended(Some(ACCESS_VIOLATION));
    let expected = "the process crashed at 0.040 s (exit status 0xC0000005, access violation): counted as leaked, because the trace has no close";
    assert_eq!(text(&crashed, "owner_crashed").as_deref(), Some(expected));
    assert_eq!(text(&crashed, "owner_ended"), None);
    let exited = ended(Some(3));
    let expected = "the process ended at 0.040 s with exit code 3: counted as leaked, because the trace has no close";
    assert_eq!(text(&exited, "owner_ended").as_deref(), Some(expected));
    assert_eq!(text(&exited, "owner_crashed"), None);
    let running = ended(None);
    assert_eq!((text(&running, "owner_ended"), text(&running, "owner_crashed")), (None, None));
}

#[test]
fn a_handle_of_a_process_that_ended_is_open_no_more() {
    for (status, open_at_end) in [(Some(3), 0), (None, 1)] {
        let command = ".dump ObjectRef -pn worker -GroupBy process -ShowTime 10 -json\n";
        let run = run_over(&ended(status), command).ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let open = document["groups"][0]["outstanding"].as_array().unwrap();
        assert_eq!((&open[0], &open[9]), (&open_at_end.into(), &open_at_end.into()), "{open:?}");
        assert_eq!(document["groups"][0]["leaked"], 1, "the trace has no close");
    }
    let text = run_over(&ended(Some(3)), ".why\n").ok().stdout;
    assert!(text.contains("1 leaked, opened 30.0 ms before process exit"), "{text}");
    let text = run_over(&ended(None), ".why\n").ok().stdout;
    assert!(text.contains("1 leaked, opened 891 ms before the end of the trace"), "{text}");
}

#[test]
fn a_pid_that_is_used_again_is_named_with_the_process_that_has_it() {
    let reused = |pid: u32| {
        let mut trace = ended(Some(0));
        trace.process(pid, "helper.exe").started(100 * MS);
        close(&mut trace, 200 * MS, (pid, pid + 2), OBJECT, 0x10);
        trace
    };
    let expected = "the pid was reused after the process ended, by helper.exe(900) at 0.100 s, \
                    which closed a handle with the same value at 0.200 s";
    assert_eq!(text(&reused(900), "pid_reused").as_deref(), Some(expected));
    assert_eq!(text(&reused(904), "pid_reused"), None, "another pid");
    let printed = run_over(&reused(900), ".why\n").ok().stdout;
    assert!(printed.contains("\n   The pid was reused"), "beside the end: {printed}");
}

#[test]
fn a_close_after_the_end_of_the_process_is_of_its_exit() {
    let closed_by = |tid: u32| {
        let mut trace = ended(Some(0));
        close(&mut trace, 90 * MS, (900, tid), OBJECT, 0x10);
        trace
    };
    assert_eq!(text(&closed_by(901), "owner_ended"), None, "it was closed");
    let counts = |tid: u32| {
        let document = asked(&closed_by(tid), "");
        ["leaked", "closed_at_exit"].map(|count| suspects(&document)[0][count].as_u64().unwrap())
    };
    assert_eq!((counts(901), counts(777)), ([0, 1], [0, 1]), "whichever thread it is of");
    let printed = run_over(&closed_by(901), ".why\n").ok().stdout;
    assert!(printed.contains("1 of 1 Event handle closed only by process exit"), "{printed}");
}

#[test]
fn the_other_process_of_a_duplicate_is_named_while_its_handle_is_open() {
    let duplicated = |closes: bool| {
        let mut trace = trace();
        open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
        trace.duplicate_handle(20 * MS, (700, 701), DUPLICATE);
        if closes {
            close(&mut trace, 30 * MS, (700, 701), OBJECT, 0x10);
        }
        asked(&trace, "")
    };
    let open = duplicated(false);
    let texts: Vec<&Value> = suspects(&open)
        .iter()
        .flat_map(|suspect| suspect["diagnoses"].as_array().unwrap())
        .filter(|diagnosis| diagnosis["cause"] == "other_side_open")
        .map(|diagnosis| &diagnosis["text"])
        .collect();
    for process in ["client.exe(800)", "server.exe(700)"] {
        let expected =
            format!("the other process of the duplicate, {process}, still has its handle open");
        assert!(texts.contains(&&Value::from(expected.as_str())), "{texts:?}");
    }
    let closed = duplicated(true);
    assert!(suspects(&closed).iter().all(|suspect| !causes(suspect).contains(&"other_side_open")));
}

#[test]
fn a_cause_counts_all_its_objects_beside_the_ids_of_five() {
    let mut trace = trace();
    for number in 0..8 {
        let object = OBJECT + 0x100 * u64::from(number);
        open(&mut trace, MS * i64::from(number + 1), (700, 701), object, 4 * number + 4);
    }
    let document = asked(&trace, "");
    let diagnosis = &suspects(&document)[0]["diagnoses"][0];
    assert_eq!(diagnosis["cause"], "never_closed");
    assert_eq!(diagnosis["objects"], 8);
    assert_eq!(diagnosis["object_ids"].as_array().unwrap().len(), 5);
}
