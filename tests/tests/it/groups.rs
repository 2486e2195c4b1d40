//! `-GroupBy`: groups add up to the totals, match the known ones, and read as a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use handlescope_tests::binary::{
    ProgramRun, Shell, handlescope, run_over, run_script, sample_symbols, stack_text,
};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

/// Figures of groups, and the totals they add up to.
const SUMS: [(&str, &str); 7] = [
    ("created", "handles_created"),
    ("duplicated", "handles_duplicated"),
    ("closed", "handles_closed"),
    ("mapped", "map_count"),
    ("unmapped", "unmap_count"),
    ("leaked", "leaked_handles"),
    ("closed_at_exit", "closed_at_exit"),
];

const COLUMNS: [&str; 10] = [
    "createstack",
    "closestack",
    "type",
    "process",
    "name",
    "namepattern",
    "module",
    "function",
    "thread",
    "lifetime",
];

fn sample(options: &str) -> ProgramRun {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    shell.script(&arguments, &format!(".dump ObjectRef {options}\n"))
}

fn document(options: &str) -> Value {
    serde_json::from_str(&sample(&format!("{options} -json")).ok().stdout).unwrap()
}

fn groups(document: &Value) -> &Vec<Value> {
    document["groups"].as_array().unwrap()
}

fn sum(document: &Value, figure: &str) -> u64 {
    groups(document).iter().map(|group| group[figure].as_u64().unwrap()).sum()
}

fn assert_sums(document: &Value, options: &str) {
    for (figure, total) in SUMS {
        assert_eq!(json!(sum(document, figure)), document["totals"][total], "{options}: {figure}");
    }
}

#[test]
fn groups_sum_up_to_the_totals_whatever_they_are_grouped_by() {
    for filter in ["", "-Leak ", "-LeakAtExit ", "-Type Event ", "-MinMaxTime 0.5 1 ", "-pn leaky "]
    {
        for column in COLUMNS {
            let options = format!("{filter}-GroupBy {column}");
            assert_sums(&document(&options), &options);
        }
    }
    let all = COLUMNS.join(",");
    assert_sums(&document(&format!("-GroupBy {all}")), &all);
}

#[test]
fn open_handles_are_those_of_the_rundown() {
    let counted = sample("-ShowTotal Total -json").ok();
    let counted: Value = serde_json::from_str(&counted.stdout).unwrap();
    let grouped = document("-GroupBy type,createstack");
    assert_eq!(json!(sum(&grouped, "open_at_end")), counted["not_closed"]["sum"]);
}

#[test]
fn the_tree_has_what_leaks_most_first_and_each_stack_once() {
    let run = sample("-Leak -LeakAtExit -GroupBy process,type,createstack -TimeFmt s -ss").ok();
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn rows_are_a_window_of_the_innermost_groups_with_their_stacks_only() {
    let all = document("-GroupBy type,createstack -MinCount 2");
    let innermost = groups(&all).len();
    assert!(innermost > 6, "{innermost}");
    for (take, skip) in [(2, 0), (3, 2), (100, innermost - 1), (2, innermost), (0, 3)] {
        let options = format!("-GroupBy type,createstack -MinCount 2 -Rows {take} {skip}");
        let window = document(&options);
        let expected: Vec<Value> = groups(&all).iter().skip(skip).take(take).cloned().collect();
        assert_eq!(*groups(&window), expected, "{options}");
        assert_eq!(window["left_out"]["rows"], innermost - expected.len(), "{options}");
        assert_eq!(window["totals"], all["totals"], "{options}");
        let of_rows: BTreeSet<String> = expected
            .iter()
            .filter_map(|row| row["keys"]["createstack"].as_u64())
            .map(|stack| stack.to_string())
            .collect();
        let stacks = window["stacks"].as_object().unwrap().keys().cloned();
        assert_eq!(stacks.collect::<BTreeSet<_>>(), of_rows, "{options}");
    }
}

#[test]
fn levels_are_cut_and_what_is_left_out_is_counted() {
    let run = sample("-GroupBy type,createstack -TopN 1 -MinCount 2 -TimeFmt s").ok();
    insta::assert_snapshot!(run.stdout);
    let document = document("-GroupBy type,createstack -TopN 1");
    let all = sample("-GroupBy type,createstack -json").ok().stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let handles = |document: &Value| {
        let of = |group: &Value| {
            ["created", "duplicated", "mapped"]
                .map(|f| group[f].as_u64().unwrap())
                .iter()
                .sum::<u64>()
        };
        groups(document).iter().map(of).sum::<u64>()
    };
    // Seven handles were opened before the trace.
    assert!(handles(&document) < handles(&all));
    let left_out = document["left_out"]["handles"].as_u64().unwrap();
    assert!(handles(&document) + left_out >= handles(&all), "{left_out}");
    assert_eq!(all["left_out"], json!({ "groups": 0, "handles": 0 }));
}

#[test]
fn depth_keeps_the_groups_of_the_last_column_together() {
    let deep = document("-GroupBy process,type -Depth 1");
    let flat = document("-GroupBy process");
    assert_eq!(groups(&deep), groups(&flat));
}

#[test]
fn lifetimes_have_the_names_of_their_ranges() {
    const MS: i64 = 1_000_000;
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "tool.exe");
    trace.object_type(16, "Event");
    for (number, lived) in (1..).zip([Some(MS - 100), Some(MS), Some(150 * MS), None]) {
        let (object, handle) = (0xffff_8100_0000_0000 + u64::from(number) * 0x100, number * 4);
        trace.create_handle(MS, (700, 1), object, handle, 16);
        if let Some(lived) = lived {
            trace.close_handle(MS + lived, (700, 1), object, handle, 16, "");
        }
    }
    // The object is known, but not when this handle to it was opened.
    trace.close_handle(9 * MS, (700, 1), 0xffff_8100_0000_0400, 0x100, 16, "");
    let run = run_over(&trace, ".dump ObjectRef -GroupBy lifetime -json\n").ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let names = groups(&document).iter().map(|group| group["keys"]["lifetime"].as_str().unwrap());
    assert_eq!(
        names.collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "under 1 ms",
            "1 to 10 ms",
            "100 ms to 1 s",
            "not closed",
            "opened before the trace"
        ])
    );
}

#[test]
fn names_of_one_pattern_are_one_group() {
    let names = document("-Leak -Type Event -GroupBy name");
    let patterns = document("-Leak -Type Event -GroupBy namepattern");
    assert!(groups(&names).len() > 5);
    let keys: Vec<&str> = groups(&patterns)
        .iter()
        .filter_map(|group| group["keys"]["namepattern"].as_str())
        .collect();
    assert!(keys.iter().all(|key| !key.contains(|c: char| c.is_ascii_digit())), "{keys:?}");
    assert!(keys.iter().any(|key| key.ends_with("_#")), "{keys:?}");
}

#[test]
fn a_folded_frame_and_what_lies_inside_of_the_start_are_left_out() {
    let stack = |document: &Value| -> Vec<String> {
        let id = &groups(document)[0]["keys"]["createstack"];
        let frames = document["stacks"][id.to_string()].as_array().unwrap();
        frames.iter().filter_map(|frame| Some(frame["function"].as_str()?.to_owned())).collect()
    };
    let base = "-Leak -Type Event -GroupBy createstack";
    let whole = stack(&document(base));
    assert!(whole.len() > 4 && whole[0] != "leaky::EventCache::GetOrCreate", "{whole:?}");
    let from = stack(&document(&format!("{base} -StackFrom leaky.exe!*GetOrCreate")));
    assert_eq!(from[0], "leaky::EventCache::GetOrCreate");
    assert!(whole.ends_with(&from));
    let folded = stack(&document(&format!("{base} -FoldStack ntoskrnl.exe*;ntdll.dll*")));
    let own = |frame: &&String| frame.starts_with("leaky::");
    assert!(folded.iter().filter(own).eq(whole.iter().filter(own)), "{folded:?}");
    assert!(!folded.iter().any(|frame| frame.starts_with("Nt")), "{folded:?}");
    // Without the frames in which they differ, all stacks are one group.
    let one = document(&format!("{base} -FoldStack *"));
    assert_eq!(groups(&one).len(), 1);
    assert_sums(&one, "-FoldStack");
}

#[test]
fn outstanding_handles_are_counted_in_parts_of_the_time() {
    let document = document("-GroupBy type,createstack -ShowTime 5");
    for group in groups(&document) {
        let open = group["outstanding"].as_array().unwrap();
        assert_eq!(open.len(), 5);
        // Only leaks are open at the end.
        assert_eq!(open[4], group["leaked"], "{group}");
        assert!(
            ["steady", "burst", "once", "balanced", "short"]
                .contains(&group["verdict"].as_str().unwrap())
        );
    }
    let run = sample("-Leak -GroupBy type -ShowTime 5 -TimeFmt s").ok();
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn groups_go_into_every_format() {
    let csv = sample("-Leak -GroupBy type,createstack -csv").ok().stdout;
    let mut lines = csv.lines();
    let header = "file,type,createstack,leaked,closed_at_exit,closed_unseen,open_at_end,created,duplicated,closed,mapped,\
                  unmapped,objects,first_ns,last_ns,share,sample_ids";
    assert_eq!(lines.next(), Some(header));
    assert!(csv.contains("leaky.exe!leaky::EventCache::GetOrCreate\n"), "the text of the stack");
    let lines = sample("-Leak -GroupBy type -ndjson").ok().stdout;
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["leaked"]), (&json!("Event"), &json!(13)));
    let by_name = sample("-Leak -GroupBy type -SortBy objects -csv").ok().stdout;
    assert!(by_name.lines().nth(1).unwrap().starts_with("0,Event,"), "{by_name}");
}

#[test]
fn columns_of_groups_are_chosen_by_name_or_heading_and_stand_in_their_order() {
    let text =
        sample("-Leak -GroupBy type -TopN 1 -Columns share,Created,mapped,share").ok().stdout;
    insta::assert_snapshot!(text.lines().skip(1).take(3).collect::<Vec<_>>().join("\n"), @r"
    Share  Created  Mapped  Group
   70.0 %       13       0  Event
                            + 1 more group, 6 handles
    ");
    let csv = sample("-Leak -GroupBy type -Columns ids,LEAKED,type -csv").ok().stdout;
    let lines: Vec<&str> = csv.lines().take(2).collect();
    assert_eq!(lines[0], "sample_ids,leaked,type");
    assert!(lines[1].ends_with(",13,Event"), "{csv}");
    let over_time = sample("-Leak -GroupBy type -ShowTime 2 -Columns growth -TopN 1").ok().stdout;
    assert_eq!(over_time.lines().nth(1), Some("Growth  Group"));
    for (options, message) in [
        (
            "-Columns creatd",
            "-Columns: no column 'creatd', did you mean created? The columns are leaked, ",
        ),
        ("-Columns growth", "-Columns: no column 'growth'"),
        ("-Columns creatd -csv", "did you mean created? The columns are file, type, leaked, "),
    ] {
        let run = sample(&format!("-GroupBy type {options}"));
        assert!(run.stderr.contains(message), "{options}: {}", run.stderr);
        assert!(run.stdout.lines().count() <= 1, "{}", run.stdout);
        assert_ne!(run.status, Some(0));
    }
}

#[test]
fn options_that_do_not_fit_groups_are_refused() {
    for (options, message) in [
        ("-GroupBy type,colour", "'colour' is not one of createstack, "),
        ("-GroupBy type -ShowTotal Total", "-ShowTotal and -GroupBy cannot be combined"),
        ("-GroupBy type -SortBy colour", "-SortBy and -GroupBy cannot be combined"),
        ("-GroupBy type -Depth 0", "must be at least 1"),
    ] {
        let run = sample(options);
        assert!(run.stderr.contains(message), "{options}: {}", run.stderr);
        assert_ne!(run.status, Some(0));
    }
}

#[test]
fn an_option_about_frames_without_stacks_or_about_a_file_without_one_is_said_to_do_nothing() {
    for (line, said) in [
        ("ObjectRef -ShowLine", "-ShowLine has no effect without -ShowStack"),
        ("ObjectRef -ShowAddress", "-ShowAddress has no effect without -ShowStack"),
        ("Resource -Leak -ShowLine", "-ShowLine has no effect without -ShowStack"),
        ("Process -Force", "-Force has no effect without a file"),
        ("ObjectRef -json -Force", "-Force has no effect without a file"),
        ("ObjectRef -Columns leaked", "-Columns has no effect without -GroupBy"),
        ("ObjectRef -GroupBy type -Columns leaked -json", "-Columns has no effect with -json"),
        ("Process -Columns pid -json-pretty", "-Columns has no effect with -json-pretty"),
        ("Process -Columns pid", ""),
        ("Why -Columns process -ShowStack", "-ShowStack has no effect with -Columns"),
        ("Stack -Columns pid -ShowStack", "-ShowStack has no effect with -Columns"),
        ("Diff -Columns pid -ShowStack", "-ShowStack has no effect with -Columns"),
        ("Stack -Columns pid -ShowStack -csv", ""),
        ("ObjectRef -GroupBy type -Columns leaked -ShowStack", ""),
        ("ObjectRef -ShowStack -ShowLine -ShowAddress", ""),
        ("ObjectRef -csv rows.csv -Force", ""),
        ("Process > rows.txt -Force", ""),
    ] {
        let run = Shell::new().run(&["leaky.etl", "-c", &format!(".dump {line}")]).ok();
        let notes = run.stderr.lines().filter(|line| line.contains("has no effect"));
        let notes: Vec<&str> = notes.collect();
        let expected: Vec<String> = Some(said)
            .filter(|said| !said.is_empty())
            .map(|said| format!("note: {said}"))
            .into_iter()
            .collect();
        assert_eq!(notes, expected, "{line}");
    }
}

#[test]
fn an_option_of_groups_without_any_is_named_in_a_note() {
    let run = sample("-MinCount 3 -ShowTotal Total").ok();
    assert!(run.stderr.contains("-MinCount has no effect without -GroupBy"), "{}", run.stderr);
}

#[needs_data]
#[test]
fn groups_of_process_type_and_stack_are_the_known_ones() {
    let trace = SharedTrace::open("synthetic/growth");
    let (home, pdbs) = (tempfile::tempdir().unwrap(), trace.pdbs());
    fs::copy(trace.etl(), home.path().join("growth.etl")).unwrap();
    let mut program = handlescope(home.path());
    program.arg("--symbol-path").arg(pdbs.path()).arg("growth.etl");
    let run =
        run_script(&mut program, ".dump ObjectRef -GroupBy process,type,createstack -json\n").ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_sums(&document, "growth");
    let expected: Value = serde_json::from_slice(&fs::read(trace.expected()).unwrap()).unwrap();
    let found = by_keys(&document);
    let groups = expected["why"].as_array().unwrap();
    assert!(groups.len() > 40);
    for group in groups {
        let stack = expected["stacks"][group["create_stack"].as_u64().unwrap() as usize].as_array();
        let lines: Vec<&str> = stack.unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
        let key = |process: &str| {
            (process.to_owned(), group["type"].as_str().unwrap().to_owned(), lines.join("\n"))
        };
        let own = &found[&key(group["process"].as_str().unwrap())];
        let opened = ["created", "duplicated", "mapped"].map(|f| own[f].as_u64().unwrap());
        let script = &group["script"];
        assert_eq!(json!(opened.iter().sum::<u64>()), group["opened"], "{script}");
        assert_eq!(own["leaked"], group["leaked"], "{script}");
        assert_eq!(own["closed_at_exit"], group["closed_at_exit"], "{script}");
    }
}

/// Returns the groups of a document by process, type and stack text; asserts that no two are equal.
fn by_keys(document: &Value) -> BTreeMap<(String, String, String), &Value> {
    let mut found = BTreeMap::new();
    for group in groups(document) {
        let keys = &group["keys"];
        let text = |key: &str| keys[key].as_str().unwrap().to_owned();
        let key = (text("process"), text("type"), stack_text(document, &keys["createstack"]));
        assert!(found.insert(key.clone(), group).is_none(), "twice: {key:?}");
    }
    found
}
