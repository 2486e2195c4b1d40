//! Two points of one trace.

use std::fs;

use handlescope_tests::binary::run_over;
use handlescope_tests::file::{FileOptions, RawClock};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{DiffRecording, EVENT, MS, SECOND, document, groups, sample, shell};

fn still_open(document: &Value) -> u64 {
    groups(document).iter().map(|group| group["still_open"].as_u64().unwrap()).sum()
}

#[test]
fn handles_opened_after_one_point_and_open_at_another_are_those_of_sql() {
    for (points, from, to) in [
        ("", -1, i64::MAX),
        ("0.5s", SECOND / 2, i64::MAX),
        ("0.5s 1.2s", SECOND / 2, 1_200 * MS),
        ("0.9s 1.5s", 900 * MS, 1_500 * MS),
    ] {
        let found = document(sample(&format!(".diff {points} -json\n")));
        let query = format!(
            ".sql SELECT count(*) AS n FROM handles WHERE opened_ns > {from} AND opened_ns <= {to} AND \
             (ended_ns IS NULL OR ended_ns > {to}) -csv\n"
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
    assert_eq!(group["per_minute"], Value::Null, "a second of a cache says nothing of a rate");
    assert_eq!(group["sample_ids"].as_array().unwrap().len(), 3);
    let stack = found["stacks"][group["create_stack"].to_string()].as_array().unwrap();
    assert!(stack.iter().any(|frame| frame["function"] == "leaky::EventCache::GetOrCreate"));
    let text = sample(".diff 0.5s 1.5s -Type Event -ShowStack\n").ok().stdout;
    assert!(text.contains("\tntoskrnl.exe!NtCreateEvent\n"), "{text}");
    assert!(text.ends_with(&format!("still open at 1.5s: {}\n", still_open(&found))), "{text}");
}

#[test]
fn times_choose_to_the_nanosecond_also_after_half_a_year() {
    // A float is not exact for more than 2^53 ns, or for this many seconds.
    let days = 200 * 24 * 3600 * SECOND;
    let clock = RawClock::Qpc { frequency: SECOND };
    let mut trace = TraceBuilder::with_options(FileOptions { clock, ..FileOptions::default() });
    trace.process(700, "server.exe");
    trace.object_type(EVENT, "Event");
    let opens = [days + 1, days + 2, days + 3];
    for (number, ns) in (1..).zip(opens) {
        let object = 0xffff_8100_0000_0000 + u64::from(number) * 0x100;
        trace.create_handle(ns, (700, 704), object, number * 4, EVENT);
    }
    for (number, ns) in (1..).zip(opens) {
        for time in [format!("{ns}ns"), format!("{}.{:09}", ns / SECOND, ns % SECOND)] {
            let line = format!(".dump ObjectRef -MinMaxTime {time} {time} -json\n");
            let chosen = document(run_over(&trace, &line));
            assert_eq!(chosen["objects"][0]["id"], number, "{line}");
            assert_eq!(chosen["totals"]["handles_created"], 1, "{line}");
            let points = document(run_over(&trace, &format!(".diff 0 {time} -json\n")));
            assert_eq!(still_open(&points), number, "opened until {time}");
            let points = document(run_over(&trace, &format!(".diff {time} -json\n")));
            assert_eq!(still_open(&points), 3 - number, "opened after {time}");
        }
    }
}

#[test]
fn stacks_of_groups_between_points_have_addresses_where_they_are_asked_for() {
    let run = sample(".diff 0.2 1 -ShowStack -ShowAddress\n").ok();
    let frame = "leaky.exe!leaky::EventCache::GetOrCreate+0x6F 0x7FF7D1C4106F\n";
    assert!(run.stdout.contains(frame), "{}", run.stdout);
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
    assert!(run.stdout.contains("No snapshots yet"), "{}", run.stdout);
    assert!(run.stderr.contains("'warm' is neither a snapshot of leaky.etl nor"), "{}", run.stderr);
    assert_eq!(run.status, Some(1));
}

#[test]
fn wrong_points_are_refused() {
    for (line, message) in [
        (".diff 1s 0.5s", "'1s' is not before '0.5s'"),
        (".diff 99s", "'99s' is neither a snapshot of leaky.etl nor a time in it"),
        (".diff 1s 1.1s 1.2s", "at most two points, A and B; unexpected '1.2s'"),
        (".snapshot 5s", "'5s' is a time; put a name in front"),
        (".snapshot a soon", "'soon' is not a valid time"),
        (".snapshot a 99s", "'99s' is outside every loaded recording"),
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
fn names_in_traces_do_not_talk_to_the_terminal() {
    let of = |count| {
        DiffRecording::named(
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
        run.stdout.contains(r"a\u{1b}[31m\n\u{202e}.exe Event: 3 leaked before, 30 after"),
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
    assert!(svg.contains(r"compared with &lt;script&gt;\u{202e}\u{1b}"), "{svg}");
    assert!(!svg.contains(['\u{1b}', '\u{202e}']), "{svg}");
}

#[test]
fn of_a_suspect_only_its_groups_are_listed() {
    let why = document(sample(".why -json\n"));
    let all = document(sample(".diff -json\n"));
    let members = |group: &Value| {
        ["type", "function", "opened", "still_open"].map(|name| group[name].clone())
    };
    let suspects = why["suspects"].as_array().unwrap();
    assert!(suspects.len() >= groups(&all).len(), "{why}");
    let mut listed = Vec::new();
    for suspect in suspects {
        let id = suspect["id"].as_str().unwrap();
        let chosen = document(sample(&format!(".diff -Suspect {id} -json\n")));
        let of_suspect = |group: &Value| group["function"] == suspect["function"];
        assert!(groups(&chosen).iter().all(of_suspect), "{suspect} {chosen}");
        listed.extend(groups(&chosen).iter().map(members));
    }
    let by_text = |a: &[Value; 4], b: &[Value; 4]| format!("{a:?}").cmp(&format!("{b:?}"));
    let mut expected: Vec<_> = groups(&all).iter().map(members).collect();
    expected.sort_by(by_text);
    listed.sort_by(by_text);
    assert_eq!(listed, expected);

    let unknown = sample(".diff -Suspect 0000\n");
    assert!(
        unknown.stderr.contains("no suspect among handles has the id 0000"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn what_a_process_has_open_ends_with_it_also_without_a_sweep() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "gone.exe").ended(20 * SECOND);
    trace.process(800, "stays.exe");
    trace.object_type(EVENT, "Event");
    for (number, pid) in (1_u32..).zip([700, 800].repeat(10)) {
        let object = 0xffff_8100_0000_0000 + u64::from(number) * 0x100;
        trace.create_handle(
            (3 + i64::from(number) / 3) * SECOND,
            (pid, 1),
            object,
            number * 4,
            EVENT,
        );
    }
    trace.end(60 * SECOND);
    let shown = |line: &str| -> Value {
        serde_json::from_str(&run_over(&trace, line).ok().stdout).unwrap()
    };
    let at = |to: &str| {
        let document = shown(&format!(".diff 2s {to} -json\n"));
        groups(&document)
            .iter()
            .map(|group| (group["pid"].as_u64().unwrap(), group["still_open"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let mut before = at("15s");
    before.sort_unstable();
    assert_eq!(before, [(700, 10), (800, 10)]);
    assert_eq!(at("50s"), [(800, 10)]);
    let over_time = shown(".dump ObjectRef -GroupBy process -ShowTime 6 -json\n");
    let last = |name: &str| {
        let group = over_time["groups"]
            .as_array()
            .unwrap()
            .iter()
            .find(|group| group["keys"]["process"] == name)
            .unwrap();
        group["outstanding"].as_array().unwrap().last().unwrap().clone()
    };
    assert_eq!((last("gone.exe(700)"), last("stays.exe(800)")), (json!(0), json!(10)));
}

#[test]
fn between_a_point_and_itself_nothing_is_opened_and_backwards_is_an_error() {
    let run = sample(".diff 1s 1s -json\n").ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(groups(&document).len(), 0);
    let run = sample(".snapshot one 1s\n.snapshot two 1s\n.diff one two\n").ok();
    assert!(run.stdout.contains("Nothing opened after one is still open at two"), "{run:?}");
    assert_ne!(sample(".diff 1s 0.9s\n").status, Some(0));
}

#[test]
fn a_rate_needs_as_much_data_as_in_why() {
    let recording = |count| DiffRecording::new(700, 0x7ff6_0000_0000, 60).opens(0x300, count, None);
    let rate = |count: i64| {
        let run = run_over(&recording(count).trace, ".diff 1s 50s -json\n").ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        groups(&document)[0]["per_minute"].clone()
    };
    assert_eq!(rate(3), Value::Null);
    assert!(rate(100).as_f64().unwrap() > 50.0);
}
