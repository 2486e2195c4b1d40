//! `.diff -Kind` between two points of one trace: what was allocated after the first point and is still allocated at
//! the second.

use handlescope_tests::allocations::{MS, trace};
use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::{MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, RangeRecord};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

/// Builds the trace for all these tests, with pages that are freed in parts.
fn parted() -> TraceBuilder {
    let mut trace = trace();
    let (caller, base) = ((700, 701), 0x40_0000);
    let range = RangeRecord { base, size: 0x4000, pid: 700, flags: MEM_COMMIT | MEM_RESERVE };
    trace.virtual_alloc(10 * MS, caller, range).stack(&[], &[0x1000_0050]);
    for (time, page) in [(20 * MS, 0), (40 * MS, 2)] {
        let page =
            RangeRecord { base: base + page * 0x1000, size: 0x1000, pid: 700, flags: MEM_DECOMMIT };
        trace.virtual_free(time, caller, page);
    }
    trace.end(100 * MS);
    trace
}

fn document(script: &str) -> Value {
    let run = run_over(&parted(), script).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

fn groups(document: &Value) -> &[Value] {
    document["groups"].as_array().map_or(&[], Vec::as_slice)
}

fn sum(groups: &[Value], member: &str) -> i64 {
    groups.iter().map(|group| group[member].as_i64().unwrap()).sum()
}

#[test]
fn bytes_left_at_the_second_point_are_those_of_sql() {
    for (points, from, to) in [
        ("", -1, i64::MAX),
        ("0.005s", 5 * MS, i64::MAX),
        ("0.0025s 0.03s", 5 * MS / 2, 30 * MS),
        ("0.015s 0.05s", 15 * MS, 50 * MS),
        ("0.015s 0.095s", 15 * MS, 95 * MS),
        // An event exactly at a point counts as before it.
        ("0.012s 0.022s", 12 * MS, 22 * MS),
        ("0.001s 0.06s", MS, 60 * MS),
    ] {
        let found = document(&format!(".diff {points} -Kind * -json"));
        let lives_at = |point: i64| format!("(end = 'open' OR ended_ns > {point})");
        let count = |which: &str, left: &str| {
            let query = format!(
                ".sql SELECT sum(size) AS bytes FROM allocations WHERE opened_ns <= {to} AND {which} AND {left} -csv"
            );
            let text = run_over(&parted(), &query).ok().stdout;
            text.lines().last().and_then(|sum| sum.parse().ok()).unwrap_or(0)
        };
        let after = format!("opened_ns > {from}");
        let bytes: i64 = count(&after, &lives_at(to));
        assert_eq!(sum(groups(&found), "outstanding_bytes"), bytes, "{points}: {found}");
    }
}

#[needs_data]
#[test]
fn in_the_published_traces_all_that_is_counted_between_points_is_what_sql_counts() {
    let shell = Shell::new();
    let mut groups_found = 0;
    for name in ["heap", "valloc", "generic"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let path = trace.etl().to_str().unwrap().to_owned();
        let ask = |script: &str| shell.script(&[&path], script).ok().stdout;
        for (points, from, to) in
            [("", -1, i64::MAX), ("2s", 2000 * MS, i64::MAX), ("1.5s 4s", 1500 * MS, 4000 * MS)]
        {
            let text = ask(&format!(".diff {points} -Kind * -json\n"));
            let found: Value = serde_json::from_str(&text).unwrap();
            let lives = format!("(end = 'open' OR ended_ns > {to})");
            let query = format!(
                ".sql SELECT kind, count(DISTINCT coalesce(part_of, row)) AS n, sum(size) AS bytes \
                 FROM allocations WHERE opened_ns > {from} AND opened_ns <= {to} AND {lives} GROUP BY kind ORDER BY kind -ndjson\n"
            );
            let counted = ask(&query);
            for line in counted.lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                let of_kind: Vec<Value> = groups(&found)
                    .iter()
                    .filter(|group| group["kind"] == row["kind"])
                    .cloned()
                    .collect();
                groups_found += of_kind.len();
                assert_eq!(
                    (sum(&of_kind, "outstanding"), sum(&of_kind, "outstanding_bytes")),
                    (row["n"].as_i64().unwrap(), row["bytes"].as_i64().unwrap()),
                    "{name} {points} {row}"
                );
            }
            let all: i64 = sum(groups(&found), "outstanding");
            let counted: i64 = counted
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .map(|row| row["n"].as_i64().unwrap())
                .sum();
            assert_eq!(all, counted, "{name} {points}");
        }
    }
    assert!(groups_found > 100, "{groups_found}");
}

#[test]
fn a_group_says_what_there_was_and_is_and_how_fast_it_grows() {
    let found = document(".snapshot warm 0.015s\n.diff warm 0.045s -Kind * -json");
    assert_eq!(
        (&found["kind"], &found["a"], &found["b"]),
        (&json!("Diff"), &json!("warm"), &json!("0.045s"))
    );
    let span = json!([{ "file": 0, "from_ns": 15 * MS, "to_ns": 45 * MS }]);
    assert_eq!(found["spans"], span);
    let [heap] = groups(&found) else { panic!("{found}") };
    for (member, value) in [
        ("process", json!("leaky.exe(700)")),
        ("pid", json!(700)),
        ("kind", json!("heap")),
        ("allocator", json!("0x10000")),
        ("function", json!("leaky.exe+0x10")),
        ("allocated", json!(2)),
        ("allocated_bytes", json!(25)),
        ("outstanding", json!(2)),
        ("outstanding_bytes", json!(25)),
        ("bytes_per_minute", json!(null)),
        ("at_a", json!(2)),
        ("at_a_bytes", json!(21)),
        ("at_b", json!(4)),
        ("at_b_bytes", json!(46)),
    ] {
        assert_eq!(heap[member], value, "{member}: {heap}");
    }
    let frames = found["stacks"][heap["create_stack"].to_string()].as_array().unwrap();
    assert_eq!(frames[0]["rva"], json!("0x10"));
    let text = run_over(&parted(), ".diff 0.015s 0.045s -Kind heap").ok().stdout;
    let line = "leaky.exe(700) heap 0x10000: 2 (25 B) still allocated of 2 (25 B) allocated; at \
                0.015s 2 (21 B), at 0.045s 4 (46 B)\n\tleaky.exe+0x10\n";
    assert!(text.contains(line), "{text}");
    assert!(text.ends_with("still allocated at 0.045s: 2 (25 B)\n"), "{text}");
}

#[test]
fn an_allocation_in_parts_counts_once_and_the_end_of_a_process_frees() {
    let at = |points: &str| {
        let found = document(&format!(".diff {points} -Kind commit -json"));
        let row = |row: &Value| {
            ["process", "allocated", "outstanding", "outstanding_bytes"].map(|own| row[own].clone())
        };
        let rows: Vec<Value> = groups(&found).iter().map(|own| row(own).to_vec().into()).collect();
        Value::from(rows)
    };
    let leaky = |bytes| json!(["leaky.exe(700)", 1, 1, bytes]);
    let tool = json!(["tool.exe(800)", 1, 1, 0x4000]);
    assert_eq!(at("0s 0.015s"), json!([tool, leaky(0x4000)]));
    assert_eq!(at("0s 0.03s"), json!([tool, leaky(0x3000)]));
    assert_eq!(at("0s 0.095s"), json!([leaky(0x2000)]));
    assert_eq!(at("0.02s"), json!([]));
    let text = run_over(&parted(), ".diff 0.02s -Kind commit").ok().stdout;
    let none = "Nothing allocated after 0.02s is still allocated at end\n";
    assert!(text.ends_with(none), "{text}");
}

#[test]
fn the_difference_goes_into_every_format_and_of_one_process() {
    let csv = run_over(&parted(), ".diff 0.001s -Kind heap;commit -csv").ok().stdout;
    let header = "file,process,pid,kind,allocator,allocated,allocated_bytes,outstanding,outstanding_bytes,at_a,\
                  at_a_bytes,at_b,at_b_bytes,bytes_per_minute,function,stack";
    assert_eq!(csv.lines().next(), Some(header));
    let lines =
        run_over(&parted(), ".dump Diff -From 0.001s -To 0.05s -Kind commit -pn tool -ndjson");
    let first: Value = serde_json::from_str(lines.ok().stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["kind"], &first["process"]), (&json!("commit"), &json!("tool.exe(800)")));
    let found = document(".diff -Kind heap;commit -SortBy outstanding -TopN 1 -json");
    assert_eq!(groups(&found).len(), 1);
    assert_eq!(groups(&found)[0]["outstanding"], json!(3));
}

/// Returns the top frames of a picture: text, width in `unit`, and the change in percent of the whole.
fn tops(svg: &str, unit: &str) -> Vec<(String, u64, f64)> {
    let titles = svg.split("<title>[").skip(1).filter_map(|rest| rest.split_once("</title>"));
    let top = |(title, _): (&str, &str)| {
        let (name, rest) = title.split_once("] (").unwrap();
        let (width, rest) = rest.split_once(&format!(" {unit}, ")).unwrap();
        let change = rest.split("; ").nth(1).unwrap().trim_end_matches("%)");
        (name.to_owned(), width.replace(',', "").parse().unwrap(), change.parse().unwrap())
    };
    titles.map(top).collect()
}

#[test]
fn a_flame_graph_of_points_is_as_wide_as_the_bytes_at_the_second_and_red_where_these_are_more() {
    let shell = Shell::new();
    parted().write(shell.path("trace.etl")).unwrap();
    let picture = |points: &str, kind: &str| {
        let line = format!(".diff {points} -Kind {kind} -flame a.svg");
        let run = shell.run(&["trace.etl", "-c", &line]).ok();
        assert!(run.stdout.starts_with("SVG export was successful."), "{run:?}");
        std::fs::read_to_string(shell.path("a.svg")).unwrap()
    };
    let svg = picture("0.015s 0.045s", "heap");
    assert!(svg.contains("Allocated at 0.045s, compared with 0.015s (bytes)"), "{svg}");
    assert!(svg.contains("red: more, blue: fewer than at 0.015s"), "{svg}");
    let [(name, width, change)] = &tops(&svg, "bytes")[..] else { panic!("{svg}") };
    assert_eq!((name.as_str(), *width), ("heap 0x10000", 46));
    assert!((change - 100.0 * 25.0 / 46.0).abs() < 0.01, "{change}");
    assert!(svg.contains("<title>leaky.exe+0x10 (46 bytes"), "{svg}");
    // Pages from before the first point count, too, and are blue if some of them are gone.
    let svg = picture("0.015s 0.045s", "commit");
    let tops = tops(&svg, "bytes");
    assert_eq!(tops.len(), 2, "{tops:?}");
    let change = |width| tops.iter().find(|own| own.1 == width).unwrap().2;
    assert!((change(0x2000) + 100.0 * 8192.0 / 24576.0).abs() < 0.01, "{tops:?}");
    assert!(change(0x4000).abs() < 1e-9, "{tops:?}");
    let run = shell.run(&["trace.etl", "-c", ".diff 0s 0.001s -Kind heap -flame none.svg"]);
    assert!(run.stderr.contains("no picture: nothing allocated in the trace is still"), "{run:?}");
    assert!(!shell.path("none.svg").exists());
}

#[test]
fn points_in_the_wrong_order_and_types_of_objects_are_refused() {
    for (line, message) in [
        (".diff 0.05s 0.01s -Kind heap", "'0.05s' is not before '0.01s'"),
        (".diff 99s -Kind heap", "'99s' is neither a snapshot of trace.etl nor a time in it"),
        (".diff -Kind heap -Type Event", "-Kind and -Type cannot be combined"),
    ] {
        let run = run_over(&parted(), line);
        assert!(run.stderr.contains(message), "{line}: {}", run.stderr);
        assert_eq!(run.status, Some(1), "{line}");
    }
    let run = run_over(&parted(), ".diff -Kind gdi").ok();
    assert!(run.stderr.contains("no allocation events (gdi)"), "{run:?}");
    assert!(run.stdout.ends_with("Unknown whether anything was allocated\n"), "{run:?}");
}

#[test]
fn a_trace_without_handle_events_names_the_option_for_its_allocations() {
    let hint = "trace.etl: -Kind heap;commit;reserve selects its allocations";
    for line in [".diff", ".plot", ".flame a.svg"] {
        let run = run_over(&parted(), line);
        assert!(run.stderr.contains(hint), "{line}: {}", run.stderr);
    }
    let shell = Shell::new();
    parted().write(shell.path("before.etl")).unwrap();
    parted().write(shell.path("after.etl")).unwrap();
    let run = shell.run(&["diff", "before.etl", "after.etl"]);
    let error = "has no handle events, so nothing can be compared; -Kind heap;commit;reserve \
                 compares its allocations";
    assert!(run.stderr.contains(error), "{}", run.stderr);
    assert_eq!(run.status, Some(2));
    let run = shell.run(&["diff", "before.etl", "after.etl", "-Kind", "heap"]).ok();
    assert!(run.stdout.contains("Got worse: 0 of 1 groups of allocations"), "{}", run.stdout);
    // A trace with handles has its own answer.
    let run = shell.run(&["leaky.etl", "-c", ".diff"]).ok();
    assert!(!run.stderr.contains("selects its allocations"), "{}", run.stderr);
}

#[test]
fn a_point_is_that_of_each_trace() {
    let shell = Shell::new();
    for name in ["a.etl", "b.etl", "c.etl"] {
        parted().write(shell.path(name)).unwrap();
    }
    let files = ["a.etl", "b.etl", "c.etl"];
    let run = shell.script(&files, ".diff 0.001s -Kind heap -json\n").ok();
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let files_of: Vec<&Value> = groups(&found).iter().map(|group| &group["file"]).collect();
    assert_eq!(files_of, [&json!(0), &json!(1), &json!(2)]);
    let run = shell.script(&files, ".diff -Kind heap\n");
    assert!(run.stderr.contains("3 traces are loaded, but .diff compares two"), "{}", run.stderr);
}
