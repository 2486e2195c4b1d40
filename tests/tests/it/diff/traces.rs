//! Two traces.

use std::fs;
use std::process::Stdio;

use handlescope_tests::binary::{Shell, sample_symbols};
use handlescope_tests::bytes::Guid;
use handlescope_tests::file::FileOptions;
use serde_json::{Value, json};

use super::{DiffRecording, EVENT, MS, SECOND, compared, groups, shell, states};

fn p_value(group: &Value) -> f64 {
    group["p_value"].as_f64().unwrap()
}

#[test]
fn two_recordings_of_a_healthy_program_are_the_same_whatever_their_pids_addresses_and_lengths() {
    for (before, after) in [(10, 10), (10, 3), (3, 10)] {
        let before = DiffRecording::healthy(700, 0x7ff6_0000_0000, before);
        let after = DiffRecording::healthy(9_000, 0x7ff7_1234_0000, after);
        let (document, run) = compared(&before, &after);
        assert!(states(&document).iter().all(|own| own.0 == "same" && !own.3), "{document}");
        assert_eq!((groups(&document).len(), run.status), (2, Some(0)), "{document}");
        assert!(!run.stderr.contains("got worse"), "{}", run.stderr);
    }
}

#[test]
fn a_new_leak_is_worse_and_ends_with_status_1() {
    let before = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let (document, run) = compared(&before, &after);
    assert_eq!(states(&document)[0], ("new", 0, 40, true), "{document}");
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("warning: 1 group of handles got worse"), "{}", run.stderr);
    let group = &groups(&document)[0];
    assert_eq!((&group["process"], &group["type"]), (&json!("server.exe"), &json!("Event")));
    assert_eq!(
        (&group["before_per_minute"], &group["after_growth"]),
        (&json!(0.0), &json!("steady"))
    );
    assert!((group["after_per_minute"].as_f64().unwrap() - 240.0).abs() < 1.0, "{group}");
    // The probability that none of 40 falls into the trace before.
    assert!((p_value(group) / 0.5_f64.powi(40) - 1.0).abs() < 1e-6, "{group}");
    let frames = document["stacks"][group["create_stack"].to_string()].as_array().unwrap();
    assert_eq!(frames[0]["rva"], "0x300");

    let (document, run) = compared(&after, &before);
    assert_eq!(states(&document)[0], ("gone", 40, 0, false), "{document}");
    assert_eq!(p_value(&groups(&document)[0]), 1.0);
    assert_eq!(run.status, Some(0));
}

#[test]
fn rates_count_and_not_how_long_was_recorded() {
    let leak = |seconds, count| {
        DiffRecording::new(700, 0x7ff6_0000_0000, seconds).opens(0x300, count, None)
    };
    for (before, after, state, status) in [
        ((60, 60), (20, 20), "same", 0),
        ((20, 20), (60, 60), "same", 0),
        ((60, 60), (20, 60), "worse", 1),
        ((20, 60), (60, 60), "better", 0),
    ] {
        let (document, run) = compared(&leak(before.0, before.1), &leak(after.0, after.1));
        let expected = (state, before.1 as u64, after.1 as u64, status == 1);
        assert_eq!(states(&document), [expected], "{document}");
        assert_eq!(run.status, Some(status));
    }
}

#[test]
fn groups_opened_as_often_and_closed_less_often_are_worse() {
    let leak = |lost, closed| {
        let recording = DiffRecording::new(700, 0x7ff6_0000_0000, 60).opens(0x300, lost, None);
        recording.opens(0x300, closed, Some(100 * MS))
    };
    let (document, run) = compared(&leak(20, 180), &leak(90, 110));
    assert_eq!((states(&document), run.status), (vec![("worse", 20, 90, true)], Some(1)));
}

#[test]
fn of_groups_that_got_worse_the_one_that_leaks_most_more_is_first() {
    let recording = |one, two| {
        let recording = DiffRecording::new(700, 0x7ff6_0000_0000, 60).opens(0x300, one, None);
        recording.opens(0x400, two, None)
    };
    let (document, _) = compared(&recording(40, 10), &recording(120, 100));
    assert_eq!(states(&document), [("worse", 10, 100, true), ("worse", 40, 120, true)]);
}

#[test]
fn a_new_leak_is_worse_also_in_a_trace_that_is_much_longer() {
    let before = DiffRecording::new(700, 0x7ff6_0000_0000, 1).opens(0x100, 1, None);
    let after = DiffRecording::new(700, 0x7ff6_0000_0000, 300).opens(0x300, 40, None);
    let (document, run) = compared(&before, &after);
    assert_eq!(states(&document)[0], ("new", 0, 40, true), "{document}");
    assert_eq!(run.status, Some(1));
}

#[test]
fn a_trace_says_nothing_about_a_program_that_did_not_run_in_it() {
    let after = DiffRecording::new(700, 0x7ff6_0000_0000, 300).opens(0x300, 40, None);
    for (program, got_worse) in [("client.exe", true), ("server.exe", false)] {
        let before =
            DiffRecording::named(program, 700, 0x7ff6_0000_0000, 10, FileOptions::default());
        let (document, _) = compared(&before.opens(0x100, 1, None), &after);
        assert!(states(&document).contains(&("new", 0, 40, got_worse)), "{program}: {document}");
    }
}

#[test]
fn one_or_two_new_handles_are_noise() {
    let before = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 2, None);
    let (document, run) = compared(&before, &after);
    assert_eq!(states(&document)[0], ("new", 0, 2, false), "{document}");
    assert_eq!(run.status, Some(0));
}

#[test]
fn traces_are_compared_in_the_order_they_are_named_or_were_recorded() {
    let later = FileOptions::default();
    let earlier = FileOptions { start: later.start - 36_000_000_000, ..later.clone() };
    let of = |options| DiffRecording::named("server.exe", 700, 0x7ff6_0000_0000, 10, options);
    let before = of(later).opens(0x100, 1, None);
    let after = of(earlier).opens(0x100, 1, None).opens(0x300, 40, None);
    let shell = shell(&before, &after);
    for (files, worse) in [
        (&["before.etl", "after.etl"][..], true),
        (&["-fd", "before.etl", "-fd", "after.etl"], true),
        (&["after.etl", "before.etl"], false),
        (&["after.etl", "after.etl"], false),
    ] {
        let run = shell.run(&[&["diff"], files].concat());
        let text = format!("Got worse: {} of ", u32::from(worse));
        assert!(run.stdout.contains(&text), "{files:?}: {run:?}");
        assert_eq!(run.status, Some(i32::from(worse)), "{files:?}");
    }
    // Loaded traces are compared in the order they were recorded.
    let loaded = shell.run(&["before.etl", "after.etl", "-c", ".diff"]).ok();
    assert!(loaded.stdout.starts_with("before: after.etl (10.0 s)\n"), "{}", loaded.stdout);
}

#[test]
fn a_script_goes_on_when_something_got_worse_and_the_file_is_written() {
    let before = DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 1, None);
    let after = DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let shell = shell(&before, &after);
    let run = shell.run(&["before.etl", "after.etl", "-c", ".diff > diff.txt", "-c", ".list"]);
    assert!(run.stdout.contains("after.etl"), "{run:?}");
    assert_eq!(run.status, Some(1));
    let text = fs::read_to_string(shell.path("diff.txt")).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_reader_that_leaves_early_does_not_change_the_status() {
    let leaks = |leaks, lost| lossy(leaks, FileOptions { events_lost: lost, ..Default::default() });
    for (after, lost, status) in [(80, 0, 1), (80, 80, 2), (20, 0, 0)] {
        let shell = shell(&leaks(20, 0), &leaks(after, lost));
        for arguments in [
            &["diff", "before.etl", "after.etl"][..],
            &["before.etl", "after.etl", "-c", ".diff -json", "-c", ".list"],
        ] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = shell.command(arguments);
            command.stdout(writer).stderr(Stdio::null());
            assert_eq!(command.status().unwrap().code(), Some(status), "{arguments:?}");
        }
    }
}

#[test]
fn anything_but_two_traces_is_wrong_usage() {
    let shell = Shell::new();
    for (files, message) in [
        (&["diff"][..], "handlescope diff needs two traces, BEFORE and AFTER"),
        (&["diff", "leaky.etl"], "handlescope diff needs two traces, BEFORE and AFTER"),
        (&["diff", "leaky.etl", "leaky.etl", "x.etl"], "unexpected 'x.etl'"),
    ] {
        let run = shell.run(files);
        assert!(run.stderr.contains(message), "{files:?}: {}", run.stderr);
        assert_eq!(run.status, Some(2), "{files:?}");
    }
    let missing = shell.run(&["diff", "leaky.etl", "missing.etl"]);
    assert!(missing.stderr.contains("error: missing.etl"), "{}", missing.stderr);
    assert_eq!(missing.status, Some(2));
    fs::write(shell.path("no.etl"), "no trace").unwrap();
    assert_eq!(shell.run(&["diff", "leaky.etl", "no.etl"]).status, Some(2));
    assert_eq!(shell.run(&["diff", "leaky.etl", "leaky.etl", "-flame", "x.txt"]).status, Some(2));
}

#[test]
fn of_more_than_two_traces_two_are_chosen() {
    let trace = || DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 1, None);
    let shell = shell(&trace(), &trace());
    let files = ["before.etl", "after.etl", "leaky.etl"];
    let run = shell.script(&files, ".diff\n");
    assert!(run.stderr.contains("3 traces are loaded, but .diff compares two"), "{}", run.stderr);
    let run =
        shell.script(&files, ".diff -fd before.etl;after.etl\n.diff 0s -fd before.etl\n").ok();
    assert!(run.stdout.contains("1 leaked before, 1 after"), "{}", run.stdout);
    assert!(run.stdout.contains("Opened after 0s and still open at end: 1"), "{}", run.stdout);
}

#[test]
fn a_trace_without_handle_events_is_not_better() {
    let empty = DiffRecording::new(700, 0x7ff6_0000_0000, 10);
    let leak = DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let run = shell(&leak, &empty).run(&["diff", "before.etl", "after.etl"]);
    let message = "error: after.etl: has no handle events, so nothing can be compared";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert_eq!((run.stdout.as_str(), run.status), ("", Some(2)));
}

#[test]
fn texts_of_htrace_are_compared_by_their_counts() {
    let entry = |handle: u32| {
        format!(
            "--------------------------------------\nHandle = 0x{handle:x} - OPEN\nThread ID = 0x17ec, \
             Process ID = 0x17e8\n\n0x77ca310c: ntdll!ZwCreateEvent+0xc\n0x00ab1234: my_app!Leak+0x4\n"
        )
    };
    let log = |count: u32| {
        let entries: String = (1..=count).map(|number| entry(number * 4)).collect();
        format!("0:000> !htrace\n{entries}Dumped 0x{count:x} stack traces.\n")
    };
    let shell = Shell::new();
    fs::write(shell.path("before.log"), log(2)).unwrap();
    fs::write(shell.path("after.log"), log(30)).unwrap();
    let run = shell.run(&["diff", "before.log", "after.log", "-json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(states(&document), [("worse", 2, 30, true)], "{document}");
    assert_eq!(groups(&document)[0]["after_per_minute"], Value::Null);
    // The probability that at most 2 of 32 fall into the trace before: 1 + 32 + 496 ways.
    assert!((p_value(&groups(&document)[0]) / 529.0 * 2_f64.powi(32) - 1.0).abs() < 1e-6);
    assert_eq!(run.status, Some(1));
    let run = shell.run(&["after.log", "-c", ".diff"]).ok();
    assert!(run.stdout.contains("30 still open of 30 opened (ids"), "{}", run.stdout);
    let run = shell.run(&["after.log", "-c", ".snapshot early 1s"]);
    assert!(run.stderr.contains("has no clock, so TIME cannot choose by time"), "{}", run.stderr);
}

#[test]
fn a_filter_that_names_nothing_is_trouble_and_not_a_pass() {
    let recording = || DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let shell = shell(&recording(), &recording());
    for (filter, value, hint) in
        [("-pn", "sevrer", "-pn server.exe"), ("-Type", "Evnet", "-Type Event")]
    {
        let run = shell.run(&["diff", "before.etl", "after.etl", filter, value]);
        assert_eq!(run.status, Some(2), "{run:?}");
        let text = format!(
            "error: nothing was compared: nothing matches: none of 40 objects passes {filter} {value}"
        );
        assert!(run.stderr.contains(&text) && run.stderr.contains(hint), "{}", run.stderr);
    }
    // A program that runs and rightly has no handles.
    let run = shell.run(&["diff", "before.etl", "after.etl", "-pn", "System"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    // A new program.
    let other =
        DiffRecording::named("other.exe", 700, 0x7ff6_0000_0000, 10, FileOptions::default());
    let shell = super::shell(&other.opens(0x100, 1, None), &recording());
    let run = shell.run(&["diff", "before.etl", "after.etl", "-pn", "server"]);
    assert_eq!(run.status, Some(1), "{run:?}");
}

#[test]
fn rates_are_by_the_time_in_which_the_process_ran() {
    let recording = |seconds: i64| {
        let mut recording = DiffRecording::new(700, 0x7ff6_0000_0000, 600);
        let leaks = 12 * seconds / 60;
        recording
            .trace
            .process(800, "worker.exe")
            .parent(4)
            .started(100 * SECOND)
            .ended((100 + seconds) * SECOND);
        for number in 0..leaks {
            let (object, handle) =
                (0xffff_8200_0000_0000 + number as u64 * 0x100, (number as u32 + 1) * 4);
            let ns = (101 + number * (seconds - 2) / leaks) * SECOND + number * 1_000_003;
            recording.trace.create_handle(ns, (800, 804), object, handle, EVENT);
        }
        recording
    };
    for (before, after) in [(100, 400), (400, 100)] {
        let (document, run) = compared(&recording(before), &recording(after));
        assert_eq!(
            (groups(&document)[0]["state"].as_str(), run.status),
            (Some("same"), Some(0)),
            "{document}"
        );
    }
}

#[test]
fn builds_without_symbols_are_compared_by_module() {
    let build = |stamp: u32, place: u64, leaks: i64| {
        let mut recording = DiffRecording::new(700, 0x7ff6_0000_0000, 60);
        recording
            .trace
            .module(700, r"C:\demo\worker.dll", 0x7ff7_0000_0000, 0x1000)
            .timestamp(stamp);
        recording.base = 0x7ff7_0000_0000 - 0x300 + place;
        recording.opens(0x300, leaks, None)
    };
    let (document, run) = compared(&build(1, 0x300, 40), &build(2, 0x340, 40));
    assert_eq!(states(&document), [("same", 40, 40, false)], "{document}");
    assert_eq!(
        (groups(&document)[0]["function"].as_str(), run.status),
        (Some("worker.dll"), Some(0))
    );
    assert!(run.stderr.contains("worker.dll: the builds differ"), "{}", run.stderr);
    let (document, run) = compared(&build(1, 0x300, 40), &build(2, 0x340, 160));
    assert_eq!((states(&document), run.status), (vec![("worse", 40, 160, true)], Some(1)));
    // In a single build they are different places.
    let (document, run) = compared(&build(1, 0x300, 40), &build(1, 0x340, 40));
    assert_eq!((groups(&document).len(), run.status), (2, Some(1)), "{document}");
}

#[test]
fn builds_of_one_time_stamp_differ_by_their_pdbs() {
    let build = |guid: u128, age: u32, place: u64| {
        let mut recording = DiffRecording::new(700, 0x7ff6_0000_0000, 60);
        recording.trace.module(700, r"C:\demo\worker.dll", 0x7ff7_0000_0000, 0x1000).pdb(
            "worker.pdb",
            Guid::new(guid),
            age,
        );
        recording.base = 0x7ff7_0000_0000 - 0x300 + place;
        recording.opens(0x300, 40, None)
    };
    for ((guid, age), groups, status) in [((1, 1), 2, 1), ((2, 1), 1, 0), ((1, 2), 1, 0)] {
        let (document, run) = compared(&build(1, 1, 0x300), &build(guid, age, 0x340));
        assert_eq!((states(&document).len(), run.status), (groups, Some(status)), "{document}");
        let is_other = run.stderr.contains("worker.dll: the builds differ");
        assert_eq!(is_other, groups == 1, "{}", run.stderr);
    }
}

#[test]
fn names_of_functions_in_one_trace_only_are_not_compared() {
    let shell = Shell::new();
    let mut before =
        DiffRecording::named("leaky.exe", 700, 0x7ff6_0000_0000, 2, FileOptions::default());
    before.trace.module(700, r"C:\demo\leaky.exe", 0x7ff7_0000_0000, 0x1000);
    before.base = 0x7ff7_0000_0000;
    before.opens(0x300, 20, None).trace.write(shell.path("before.etl")).unwrap();
    let symbols = sample_symbols();
    let functions = |files: [&str; 2]| {
        let arguments = ["--symbol-path", symbols.to_str().unwrap(), "-pn", "leaky", "-json"];
        let run = shell.run(&[&["diff"][..], &files, &arguments].concat());
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let function = |group: &Value| group["function"].as_str().unwrap_or_default().to_owned();
        (groups(&document).iter().map(function).collect::<Vec<_>>(), run.stderr)
    };
    let (named, _) = functions(["leaky.etl", "leaky.etl"]);
    assert!(
        named.iter().any(|function| function.ends_with("!leaky::EventCache::GetOrCreate")),
        "{named:?}"
    );
    let (coarse, messages) = functions(["before.etl", "leaky.etl"]);
    assert!(messages.contains("leaky.exe: the builds differ"), "{messages}");
    assert!(coarse.iter().any(|function| function == "leaky.exe"), "{coarse:?}");
    assert!(coarse.iter().all(|function| !function.contains("leaky::")), "{coarse:?}");
}

#[test]
fn handles_of_one_operation_are_one_chance() {
    let recording = |operations: i64, at_once: i64| {
        let mut recording = DiffRecording::new(700, 0x7ff6_0000_0000, 600);
        for number in 0..operations * at_once {
            let (operation, place) = (number / at_once, number % at_once);
            let ns = (5 + operation * 590 / operations) * SECOND + place * 50_000;
            let (object, handle) =
                (0xffff_8200_0000_0000 + number as u64 * 0x100, (number as u32 + 1) * 4);
            recording.trace.create_handle(ns, (700, 704), object, handle, EVENT);
        }
        recording
    };
    for (before, after, worse) in
        [((10, 5), (17, 5), false), ((50, 1), (85, 1), true), ((10, 2), (40, 2), true)]
    {
        let (document, _) = compared(&recording(before.0, before.1), &recording(after.0, after.1));
        assert_eq!(
            groups(&document)[0]["got_worse"],
            json!(worse),
            "{before:?} {after:?}: {document}"
        );
    }
}

/// Makes a one-minute recording with a leak that has lost events or buffers.
fn lossy(leaks: i64, lost: FileOptions) -> DiffRecording {
    DiffRecording::named("server.exe", 700, 0x7ff6_0000_0000, 60, lost).opens(0x300, leaks, None)
}

#[test]
fn lost_events_explain_as_many_handles_as_they_are() {
    let events =
        |leaks, events_lost| lossy(leaks, FileOptions { events_lost, ..Default::default() });
    for (before, after, state, status) in [
        ((20, 0), (20_000, 1), "worse", 1),
        ((1, 0), (20, 1), "worse", 1),
        ((20, 0), (80, 5), "worse", 1),
        ((20, 5), (80, 0), "worse", 1),
        ((20, 0), (80, 60), "uncertain", 2),
        ((20, 60), (80, 0), "uncertain", 2),
        ((1, 0), (20, 18), "uncertain", 2),
        // More missing closes could only make it look worse.
        ((20, 0), (20, 60), "same", 0),
        ((20, 5), (20, 0), "same", 0),
        // The losses may all be later than its events.
        ((20, 60), (20, 0), "uncertain", 2),
    ] {
        let (document, run) = compared(&events(before.0, before.1), &events(after.0, after.1));
        let expected = (state, before.0 as u64, after.0 as u64, status == 1);
        assert_eq!(states(&document), [expected], "{before:?} {after:?}");
        assert_eq!(groups(&document)[0]["uncertain"], json!(status == 2), "{document}");
        assert_eq!(run.status, Some(status), "{}", run.stderr);
    }
}

#[test]
fn lost_buffers_explain_as_many_handles_as_they_have_room_for() {
    let buffers =
        |leaks, buffers_lost| lossy(leaks, FileOptions { buffers_lost, ..Default::default() });
    let (document, run) = compared(&buffers(20, 0), &buffers(80, 1));
    assert_eq!((states(&document)[0].0, run.status), ("uncertain", Some(2)), "{document}");
    let message = "1 group of handles may or may not have got worse";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    let (document, run) = compared(&buffers(20, 0), &buffers(4_000, 1));
    assert_eq!((states(&document)[0].0, run.status), ("worse", Some(1)), "{document}");
    let text = shell(&buffers(20, 0), &buffers(80, 1)).run(&["diff", "before.etl", "after.etl"]);
    assert!(text.stdout.starts_with("before: before.etl (60.0 s)"), "{}", text.stdout);
    assert!(text.stdout.contains("\nuncertain: server.exe Event: 20 leaked"), "{}", text.stdout);
    assert!(text.stdout.contains("0 same, 1 uncertain\n"), "{}", text.stdout);
}

#[test]
fn leaks_before_a_loss_are_as_certain_as_leaks_after_it() {
    // The last of several buffers is marked; nothing says how many events it lost.
    let marked = |leaks| lossy(leaks, FileOptions { loss_flags: 2, ..Default::default() });
    let whole = |leaks| lossy(leaks, FileOptions::default());
    for (before, after, state, status) in [
        (whole(20), marked(4_000), "worse", 1),
        (marked(4_000), marked(4_000), "same", 0),
        // A single buffer has everything.
        (whole(20), marked(80), "uncertain", 2),
        (marked(20), whole(20), "uncertain", 2),
    ] {
        let (document, run) = compared(&before, &after);
        assert_eq!((states(&document)[0].0, run.status), (state, Some(status)), "{document}");
    }
}

#[test]
fn of_a_suspect_only_its_group_is_listed_and_compared_as_among_all() {
    let before = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x400, 30, None);
    let after = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10)
        .opens(0x300, 40, None)
        .opens(0x400, 30, None);
    let shell = shell(&before, &after);
    let json = |arguments: &[&str]| -> (Value, Option<i32>) {
        let run = shell.run(arguments);
        (serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}")), run.status)
    };
    let (all, _) = json(&["diff", "before.etl", "after.etl", "-json"]);
    let (why, _) = json(&["why", "after.etl", "-All", "-json"]);
    let ids: Vec<&str> =
        why["suspects"].as_array().unwrap().iter().map(|own| own["id"].as_str().unwrap()).collect();
    let mut seen = Vec::new();
    for id in ids {
        let (chosen, status) = json(&["diff", "before.etl", "after.etl", "-Suspect", id, "-json"]);
        let [group] = groups(&chosen).as_slice() else { panic!("{chosen}") };
        let is_same = |other: &&Value| {
            ["function", "p_value", "state", "before", "after"]
                .iter()
                .all(|name| group[*name] == other[*name])
        };
        assert_eq!(groups(&all).iter().filter(is_same).count(), 1, "{chosen} {all}");
        assert_eq!(status, Some(i32::from(group["got_worse"] == true)), "{chosen}");
        seen.push(states(&chosen)[0].0.to_owned());
    }
    assert!(["new", "same"].iter().all(|state| seen.iter().any(|own| own == state)), "{seen:?}");

    // A leak that is only in the trace before is chosen by its id there.
    let (why, _) = json(&["why", "after.etl", "-json"]);
    let id = why["suspects"][0]["id"].as_str().unwrap();
    let (gone, status) = json(&["diff", "after.etl", "before.etl", "-Suspect", id, "-json"]);
    assert_eq!((groups(&gone).len(), status), (1, Some(0)), "{gone}");

    let unknown = shell.run(&["diff", "before.etl", "after.etl", "-Suspect", "0000"]);
    assert!(unknown.stderr.contains("no suspect among handles has the id 0000"), "{unknown:?}");
    assert_eq!(unknown.status, Some(2), "{unknown:?}");
}
