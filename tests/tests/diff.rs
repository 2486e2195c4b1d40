//! `.snapshot` and `.diff`: what is still open between two points, and what got worse between two traces.

use std::fs;

use handlescope_tests::binary::{Run, Shell, sample_symbols};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const EVENT: u16 = 16;

/// A recording of a program, in which each place in its code opens handles of its own.
struct Recording {
    trace: TraceBuilder,
    pid: u32,
    base: u64,
    ns: i64,
    handles: u32,
}

impl Recording {
    fn new(pid: u32, base: u64, seconds: i64) -> Self {
        Self::of("server.exe", pid, base, seconds, FileOptions::default())
    }

    fn of(name: &str, pid: u32, base: u64, seconds: i64, options: FileOptions) -> Self {
        let mut trace = TraceBuilder::with_options(options);
        trace.process(4, "System");
        trace.process(pid, name).parent(4);
        trace.module(pid, r"C:\demo\server.exe", base, 0x10_0000);
        trace.object_type(EVENT, "Event");
        trace.end(seconds * SECOND);
        Self { trace, pid, base, ns: seconds * SECOND, handles: 0 }
    }

    /// Opens so many handles at a place, evenly over the time, and closes each after a while if any is given.
    fn opens(mut self, place: u64, count: i64, closed_after: Option<i64>) -> Self {
        let caller = (self.pid, self.pid + 4);
        for number in 0..count {
            self.handles += 1;
            let (object, handle) =
                (0xffff_8100_0000_0000 + u64::from(self.handles) * 0x100, self.handles * 4);
            let ns =
                self.ns / 100 + number * (self.ns / 100 * 98) / count + i64::from(self.handles);
            self.trace
                .create_handle(ns, caller, object, handle, EVENT)
                .stack(&[], &[self.base + place, self.base + 0x10]);
            if let Some(lived) = closed_after.filter(|lived| ns + lived < self.ns - MS) {
                self.trace.close_handle(ns + lived, caller, object, handle, EVENT, "");
            }
        }
        self
    }

    /// What a healthy program does: a cache that is filled at once, and a pool whose handles are closed.
    fn healthy(pid: u32, base: u64, seconds: i64) -> Self {
        let mut recording = Self::new(pid, base, seconds);
        let whole = recording.ns;
        recording.ns = SECOND;
        recording = recording.opens(0x100, 20, None);
        recording.ns = whole;
        recording.opens(0x200, 100 * seconds, Some(300 * MS))
    }
}

/// A folder with `before.etl` and `after.etl`.
fn shell(before: &Recording, after: &Recording) -> Shell {
    let shell = Shell::new();
    before.trace.write(shell.path("before.etl")).unwrap();
    after.trace.write(shell.path("after.etl")).unwrap();
    shell
}

fn compared(before: &Recording, after: &Recording) -> (Value, Run) {
    let run = shell(before, after).run(&["diff", "before.etl", "after.etl", "-json"]);
    let document = serde_json::from_str(&run.stdout);
    (document.unwrap_or_else(|error| panic!("{error}: {run:?}")), run)
}

fn groups(document: &Value) -> &Vec<Value> {
    document["groups"].as_array().unwrap()
}

fn states(document: &Value) -> Vec<(&str, u64, u64, bool)> {
    let group = |group: &'_ Value| -> (u64, u64, bool) {
        let count = |name: &str| group[name].as_u64().unwrap();
        (count("before"), count("after"), group["got_worse"].as_bool().unwrap())
    };
    groups(document)
        .iter()
        .map(|own| {
            let (before, after, got_worse) = group(own);
            (own["state"].as_str().unwrap(), before, after, got_worse)
        })
        .collect()
}

/// The sample with its symbols.
fn sample(script: &str) -> Run {
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    Shell::new().script(&arguments, script)
}

fn document(run: Run) -> Value {
    serde_json::from_str(&run.ok().stdout).unwrap()
}

fn still_open(document: &Value) -> u64 {
    groups(document).iter().map(|group| group["still_open"].as_u64().unwrap()).sum()
}

#[test]
fn what_was_opened_after_one_point_and_is_open_at_another_is_what_sql_counts() {
    for (points, from, to) in [
        ("", -1, i64::MAX),
        ("0.5s", SECOND / 2, i64::MAX),
        ("0.5s 1.2s", SECOND / 2, 1_200 * MS),
        ("0.9s 1.5s", 900 * MS, 1_500 * MS),
    ] {
        let found = document(sample(&format!(".diff {points} -json\n")));
        let query = format!(
            ".sql SELECT count(*) AS n FROM handles WHERE open_ns > {from} AND open_ns <= {to} AND \
             (close_ns IS NULL OR close_ns > {to}) -csv\n"
        );
        let counted: u64 = sample(&query).ok().stdout.lines().last().unwrap().parse().unwrap();
        assert!(counted > 0);
        assert_eq!(still_open(&found), counted, "{points}");
    }
}

#[test]
fn groups_between_points_have_process_type_stack_rate_and_examples() {
    let found = document(sample(".diff 0.5s 1.5s -Type Event -json\n"));
    assert_eq!(
        (&found["kind"], &found["a"], &found["b"]),
        (&json!("Diff"), &json!("0.5s"), &json!("1.5s"))
    );
    assert_eq!(found["spans"], json!([{ "file": 0, "from_ns": SECOND / 2, "to_ns": 1_500 * MS }]));
    let group = &groups(&found)[0];
    assert_eq!(
        (&group["process"], &group["pid"], &group["type"]),
        (&json!("leaky.exe(7316)"), &json!(7316), &json!("Event"))
    );
    let open = group["still_open"].as_f64().unwrap();
    assert!((group["per_minute"].as_f64().unwrap() - open * 60.0).abs() < 1e-6, "{group}");
    assert_eq!(group["sample_ids"].as_array().unwrap().len(), 3);
    let stack = found["stacks"][group["create_stack"].to_string()].as_array().unwrap();
    assert!(stack.iter().any(|frame| frame["function"] == "leaky::EventCache::GetOrCreate"));
    let text = sample(".diff 0.5s 1.5s -Type Event -ShowStack\n").ok().stdout;
    assert!(text.contains("\tntoskrnl.exe!NtCreateEvent\n"), "{text}");
    assert!(text.ends_with(&format!("still open at 1.5s: {}\n", still_open(&found))), "{text}");
}

#[test]
fn a_snapshot_is_a_point_with_a_name() {
    let named =
        ".snapshot warm 0.5s\n.snapshot Late 2026-02-10 10:30:01.2\n.diff WARM late -json\n";
    let times = ".diff 0.5s 1.2s -json\n";
    assert_eq!(document(sample(named))["groups"], document(sample(times))["groups"]);
    let list = sample(".snapshot end\n.snapshot warm 0.5s\n.snapshot warm 0.25s\n.snapshot\n").ok();
    let rows: Vec<Vec<&str>> =
        list.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        ["Name", "Seconds", "File"],
        ["end", "end", "leaky.etl"],
        ["warm", "0.250000", "leaky.etl"],
    ];
    assert_eq!(rows, expected);
    assert_eq!(still_open(&document(sample(".snapshot all\n.diff 0s all -json\n"))), 19);
}

#[test]
fn snapshots_go_with_their_trace() {
    let script = ".snapshot warm 0.5s\n.unload\n.load leaky.etl\n.snapshot\n.diff warm\n";
    let run = sample(script);
    assert!(run.stdout.contains("No point in time has a name"), "{}", run.stdout);
    assert!(run.stderr.contains("'warm' is neither a snapshot of leaky.etl nor"), "{}", run.stderr);
    assert_eq!(run.status, Some(1));
}

#[test]
fn what_is_no_point_is_refused() {
    for (line, message) in [
        (".diff 1s 0.5s", "'1s' does not lie before '0.5s'"),
        (".diff 99s", "'99s' is neither a snapshot of leaky.etl nor a time in it"),
        (".diff 1s 1.1s 1.2s", "at most two points, A and B; '1.2s' is too much"),
        (".snapshot 5s", "'5s' is a time; choose another name"),
        (".snapshot a soon", "'soon' is not a valid time"),
        (".snapshot a 99s", "'99s' lies outside of the recording"),
    ] {
        let run = sample(line);
        assert!(run.stderr.contains(message), "{line}: {}", run.stderr);
        assert_eq!(run.status, Some(1), "{line}");
    }
}

#[test]
fn a_diff_goes_into_every_format_and_file() {
    let csv = sample(".diff -csv\n").ok().stdout;
    let header =
        "file,process,pid,name,type,opened,still_open,per_minute,function,stack,sample_ids";
    assert_eq!(csv.lines().next(), Some(header));
    let lines = sample(".dump Diff -SortBy opened -TopN 1 -ndjson\n").ok().stdout;
    let first: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!((&first["opened"], &first["still_open"]), (&json!(56), &json!(8)));
}

#[test]
fn two_recordings_of_a_healthy_program_are_the_same_whatever_their_pids_addresses_and_lengths() {
    for (before, after) in [(10, 10), (10, 3), (3, 10)] {
        let before = Recording::healthy(700, 0x7ff6_0000_0000, before);
        let after = Recording::healthy(9_000, 0x7ff7_1234_0000, after);
        let (document, run) = compared(&before, &after);
        assert!(states(&document).iter().all(|own| own.0 == "same" && !own.3), "{document}");
        assert_eq!((groups(&document).len(), run.status), (2, Some(0)), "{document}");
        assert!(!run.stderr.contains("got worse"), "{}", run.stderr);
    }
}

#[test]
fn a_new_leak_is_worse_and_ends_with_status_1() {
    let before = Recording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = Recording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
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
    let frames = document["stacks"][group["create_stack"].to_string()].as_array().unwrap();
    assert_eq!(frames[0]["rva"], "0x300");

    let (document, run) = compared(&after, &before);
    assert_eq!(states(&document)[0], ("gone", 40, 0, false), "{document}");
    assert_eq!(run.status, Some(0));
}

#[test]
fn rates_count_and_not_how_long_was_recorded() {
    let leak =
        |seconds, count| Recording::new(700, 0x7ff6_0000_0000, seconds).opens(0x300, count, None);
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
fn a_new_leak_is_worse_also_in_a_trace_that_is_much_longer() {
    let before = Recording::new(700, 0x7ff6_0000_0000, 1).opens(0x100, 1, None);
    let after = Recording::new(700, 0x7ff6_0000_0000, 300).opens(0x300, 40, None);
    let (document, run) = compared(&before, &after);
    assert_eq!(states(&document)[0], ("new", 0, 40, true), "{document}");
    assert_eq!(run.status, Some(1));
}

#[test]
fn one_or_two_new_handles_are_noise() {
    let before = Recording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = Recording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 2, None);
    let (document, run) = compared(&before, &after);
    assert_eq!(states(&document)[0], ("new", 0, 2, false), "{document}");
    assert_eq!(run.status, Some(0));
}

#[test]
fn traces_are_compared_in_the_order_they_are_named_or_were_recorded() {
    let later = FileOptions::default();
    let earlier = FileOptions { start: later.start - 36_000_000_000, ..later.clone() };
    let of = |options| Recording::of("server.exe", 700, 0x7ff6_0000_0000, 10, options);
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
    // Loaded traces are in the order they were recorded.
    let loaded = shell.run(&["before.etl", "after.etl", "-c", ".diff"]).ok();
    assert!(loaded.stdout.starts_with("before: after.etl (10.0 s)\n"), "{}", loaded.stdout);
}

#[test]
fn a_script_goes_on_when_something_got_worse_and_the_file_is_written() {
    let before = Recording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 1, None);
    let after = Recording::new(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let shell = shell(&before, &after);
    let run = shell.run(&["before.etl", "after.etl", "-c", ".diff > diff.txt", "-c", ".list"]);
    assert!(run.stdout.contains("after.etl"), "{run:?}");
    assert_eq!(run.status, Some(1));
    let text = fs::read_to_string(shell.path("diff.txt")).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn anything_but_two_traces_is_wrong_usage() {
    let shell = Shell::new();
    for (files, message) in [
        (&["diff"][..], "diff needs two traces, BEFORE and AFTER"),
        (&["diff", "leaky.etl"], "diff needs two traces, BEFORE and AFTER"),
        (&["diff", "leaky.etl", "leaky.etl", "x.etl"], "'x.etl' is too much"),
    ] {
        let run = shell.run(files);
        assert!(run.stderr.contains(message), "{files:?}: {}", run.stderr);
        assert_eq!(run.status, Some(2), "{files:?}");
    }
    let missing = shell.run(&["diff", "leaky.etl", "missing.etl"]);
    assert!(missing.stderr.contains("error: missing.etl"), "{}", missing.stderr);
    assert_eq!(missing.status, Some(1));
}

#[test]
fn of_more_than_two_traces_two_are_chosen() {
    let trace = || Recording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 1, None);
    let shell = shell(&trace(), &trace());
    let files = ["before.etl", "after.etl", "leaky.etl"];
    let run = shell.script(&files, ".diff\n");
    assert!(run.stderr.contains("3 traces are loaded, and two are compared"), "{}", run.stderr);
    let run =
        shell.script(&files, ".diff -fd before.etl;after.etl\n.diff 0s -fd before.etl\n").ok();
    assert!(run.stdout.contains("1 lost before, 1 after"), "{}", run.stdout);
    assert!(run.stdout.contains("Opened after 0s and still open at end: 1"), "{}", run.stdout);
}

#[test]
fn a_trace_without_handle_events_is_not_better() {
    let empty = Recording::new(700, 0x7ff6_0000_0000, 10);
    let leak = Recording::new(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let run = shell(&leak, &empty).run(&["diff", "before.etl", "after.etl"]);
    let message = "error: after.etl: has no handle events, so that nothing can be compared";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert_eq!((run.stdout.as_str(), run.status), ("", Some(1)));
}

#[test]
fn names_in_traces_do_not_talk_to_the_terminal() {
    let of = |count| {
        Recording::of(
            "a\u{1b}[31m\n\u{202e}.exe",
            700,
            0x7ff6_0000_0000,
            10,
            FileOptions::default(),
        )
        .opens(0x300, count, None)
    };
    let shell = shell(&of(3), &of(30));
    let run = shell.run(&["diff", "before.etl", "after.etl"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(
        run.stdout.contains(r"a\u{1b}[31m\n\u{202e}.exe Event: 3 lost before, 30 after"),
        "{}",
        run.stdout
    );
    let run =
        shell.run(&["before.etl", "-c", ".snapshot \u{1b}[31m", "-c", ".snapshot", "-c", ".diff"]);
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{}", run.stdout);
    let name = "\"<script>\u{202e}\u{1b}\"";
    let (point, diff) = (format!(".snapshot {name} 1s"), format!(".diff {name} -flame x.svg"));
    let run = shell.run(&["before.etl", "-c", &point, "-c", &diff]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let svg = fs::read_to_string(shell.path("x.svg")).unwrap();
    assert!(svg.contains(r"against those at &lt;script&gt;\u{202e}\u{1b}"), "{svg}");
    assert!(!svg.contains(['\u{1b}', '\u{202e}']), "{svg}");
}

/// The frames of a flame graph that say a type: name, handles, and the change in percent of all handles.
fn types(svg: &str) -> Vec<(&str, u64, f64)> {
    let titles = svg.split("<title>[").skip(1);
    titles
        .map(|rest| {
            let (name, rest) = rest.split_once("] (").unwrap();
            let (count, rest) = rest.split_once(" handles, ").unwrap();
            let (_, change) = rest.split_once("%; ").unwrap();
            let change = change.split_once('%').unwrap().0;
            (name, count.replace(',', "").parse().unwrap(), change.parse().unwrap())
        })
        .collect()
}

#[test]
fn a_flame_graph_between_points_is_as_wide_as_handles_are_open_at_the_second() {
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    let shell = Shell::new();
    for (points, from, to) in
        [("", -1, i64::MAX), ("0.5s", SECOND / 2, i64::MAX), ("0.9s 1.5s", 900 * MS, 1_500 * MS)]
    {
        let written = shell.script(&arguments, &format!(".diff {points} -flame grown.svg\n")).ok();
        assert!(written.stdout.starts_with("SVG export was successful."), "{}", written.stdout);
        let svg = fs::read_to_string(shell.path("grown.svg")).unwrap();
        let count = |at: i64| -> u64 {
            let query = format!(
                ".sql SELECT count(*) AS n FROM handles WHERE open_ns >= 0 AND open_ns <= {at} AND \
                 (close_ns IS NULL OR close_ns > {at}) -csv\n"
            );
            sample(&query).ok().stdout.lines().last().unwrap().parse().unwrap()
        };
        let open = count(to);
        assert!(svg.contains(&format!("<title>all ({open} handles, 100%)")), "{points}: {svg}");
        let grown: f64 = types(&svg).iter().map(|own| own.2).sum();
        let difference = open as f64 - count(from) as f64;
        // What is open at the first point and of which nothing is at the second one has no width.
        assert!(grown >= 100.0 * difference / open as f64 - 0.1, "{points}: {grown} {difference}");
    }
    let svg = fs::read_to_string(shell.path("grown.svg")).unwrap();
    assert!(
        svg.contains("Handles and views that are open at 1.5s, against those at 0.9s"),
        "{svg}"
    );
    assert!(svg.contains("leaky; red: more, blue: fewer than at 0.9s"), "{svg}");
    assert!(svg.contains("leaky.exe!leaky::EventCache::GetOrCreate ("), "{svg}");
}

#[test]
fn a_flame_graph_of_two_traces_is_as_wide_as_handles_are_lost_in_the_second() {
    let before = Recording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = Recording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let (document, _) = compared(&before, &after);
    let shell = shell(&before, &after);
    let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "worse.svg"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("warning: 1 group of handles got worse"), "{}", run.stderr);
    let svg = fs::read_to_string(shell.path("worse.svg")).unwrap();
    let mut lost: Vec<u64> = states(&document).iter().map(|own| own.2).collect();
    let mut widths: Vec<u64> = types(&svg).iter().map(|own| own.1).collect();
    lost.sort_unstable();
    widths.sort_unstable();
    assert_eq!(widths, lost);
    let all: u64 = lost.iter().sum();
    for (_, width, change) in types(&svg) {
        let expected = if width == 40 { 4_000.0 / all as f64 } else { 0.0 };
        assert!((change - expected).abs() < 0.01, "{width}: {change}");
    }
    assert!(
        svg.contains("Handles and views lost in after, against before in the same time"),
        "{svg}"
    );
    let run = shell.run(&["diff", "after.etl", "before.etl", "-flame", "better.svg"]).ok();
    assert!(run.stdout.starts_with("SVG export was successful."), "{}", run.stdout);
    let svg = fs::read_to_string(shell.path("better.svg")).unwrap();
    assert!(svg.contains("red: more, blue: fewer than expected from after; 1 gone"), "{svg}");
}

#[test]
fn a_flame_graph_of_traces_of_other_lengths_has_the_colours_of_what_changed() {
    let leak =
        |seconds, count| Recording::new(700, 0x7ff6_0000_0000, seconds).opens(0x300, count, None);
    let change = |before: &Recording, after: &Recording| {
        let shell = shell(before, after);
        let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "changed.svg"]);
        assert!(run.stdout.starts_with("SVG export was successful."), "{run:?}");
        let svg = fs::read_to_string(shell.path("changed.svg")).unwrap();
        types(&svg).iter().map(|own| own.2).collect::<Vec<f64>>()
    };
    assert_eq!(change(&leak(60, 60), &leak(20, 20)), [0.0]);
    // 20 were expected in a third of the time, and 180 in three times as long.
    let worse = change(&leak(60, 60), &leak(20, 60));
    assert!((worse[0] - 66.67).abs() < 0.01, "{worse:?}");
    assert_eq!(change(&leak(20, 60), &leak(60, 60)), [-200.0]);
    let healthy = |seconds| Recording::healthy(700, 0x7ff6_0000_0000, seconds);
    for (before, after) in [(10, 3), (3, 10)] {
        assert_eq!(change(&healthy(before), &healthy(after)), [0.0, 0.0], "{before} {after}");
    }
}

#[test]
fn a_flame_graph_stands_in_the_place_of_the_rows_and_replaces_what_is_ours() {
    let shell = Shell::new();
    fs::write(shell.path("mine.svg"), "mine").unwrap();
    for (line, message) in [
        (".diff -flame x.svg -json", "-flame and -json cannot be had together"),
        (".dump Diff -TopN 3 -flame x.svg", "-flame and -TopN cannot be had together"),
        (
            ".diff -flame x.png",
            "x.png: the end of the name says what to write; name one that ends with .svg",
        ),
        (
            ".diff 0s 0.000001s -flame x.svg",
            "no picture: nothing that was opened in the trace is open",
        ),
        (".diff -flame mine.svg", "-Force replaces it"),
        (".diff -flame leaky.etl.svg/x.svg", "cannot be written"),
    ] {
        let run = shell.run(&["leaky.etl", "-c", line]);
        assert!(run.stderr.contains(message), "{line}: {}", run.stderr);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{line}");
    }
    assert!(!shell.path("x.svg").exists());
    assert_eq!(fs::read_to_string(shell.path("mine.svg")).unwrap(), "mine");
    let run = shell.run(&["leaky.etl", "-c", ".diff -flame mine.svg -Force"]).ok();
    assert!(run.stdout.contains("mine.svg"), "{}", run.stdout);
}

#[test]
fn that_nothing_is_lost_is_no_failure_of_a_comparison() {
    let of = || Recording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 4, Some(MS));
    let shell = shell(&of(), &of());
    let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "none.svg"]).ok();
    assert!(run.stderr.contains("no picture: nothing is lost in the second trace"), "{run:?}");
    assert!(!shell.path("none.svg").exists());
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
    assert_eq!(run.status, Some(1));
    let run = shell.run(&["after.log", "-c", ".diff"]).ok();
    assert!(run.stdout.contains("30 still open of 30 opened (ids"), "{}", run.stdout);
    let run = shell.run(&["after.log", "-c", ".snapshot early 1s"]);
    assert!(run.stderr.contains("has no clock, so TIME cannot choose by time"), "{}", run.stderr);
}
