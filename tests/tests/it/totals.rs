//! Numbers that agree: `-ShowTotal`, its sum and the summary, for one trace and for several.

use std::collections::BTreeSet;

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use serde_json::{Deserializer, Value, json};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

fn trace_with(options: FileOptions) -> TraceBuilder {
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "tool.exe");
    trace.object_type(EVENT, "Event");
    trace
}

fn trace() -> TraceBuilder {
    trace_with(FileOptions::default())
}

fn create(trace: &mut TraceBuilder, ms: i64, pid: u32, handle: u32) {
    let object = OBJECT + u64::from(handle) * 0x100 + u64::from(pid) * 0x10_0000;
    trace.create_handle(ms * MS, (pid, 1), object, handle, EVENT);
}

fn close(trace: &mut TraceBuilder, ms: i64, pid: u32, handle: u32) {
    let object = OBJECT + u64::from(handle) * 0x100 + u64::from(pid) * 0x10_0000;
    trace.close_handle(ms * MS, (pid, 1), object, handle, EVENT, "");
}

fn documents(text: &str) -> Vec<Value> {
    Deserializer::from_str(text).into_iter().map(Result::unwrap).collect()
}

fn not_closed(trace: &TraceBuilder, options: &str) -> Value {
    let run = run_over(trace, &format!(".dump ObjectRef {options} -json\n")).ok();
    documents(&run.stdout).remove(0)["not_closed"].clone()
}

#[test]
fn leaks_are_counted_as_they_are_printed_and_not_the_rundown() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    create(&mut trace, 2, 700, 8);
    create(&mut trace, 3, 800, 4);
    close(&mut trace, 4, 700, 8);
    trace.map(5 * MS, (800, 1), MappedView { base: 0x10000, size: 4096, ..MappedView::default() });
    for handle in 0..20 {
        trace.handle_rundown_end(700, OBJECT + 0x1000_0000, handle * 4, EVENT, "old");
    }
    let by_process = not_closed(&trace, "-Leak -ShowTotal Process");
    assert_eq!(by_process["rows"], json!([["server.exe(700)", 1], ["tool.exe(800)", 2]]));
    assert_eq!((&by_process["sum"], &by_process["counted"]), (&json!(3), &json!("leaked")));
    let by_type = not_closed(&trace, "-Leak -ShowTotal Total");
    assert_eq!(by_type["rows"], json!([["FileMapping", 1], ["Event", 2]]));
    let by_file = not_closed(&trace, "-Leak -ShowTotal File");
    assert_eq!(by_file["sum"], 3);
    let text = run_over(&trace, ".dump ObjectRef -Leak -ShowTotal Process\n").ok().stdout;
    assert!(text.contains("Leaked handles and views (2 processes):\n"), "{text}");
    assert!(text.ends_with("Leaked handles and views: 3\n"), "{text}");
    let open = not_closed(&trace, "-ShowTotal Process");
    assert_eq!(open["rows"], json!([["server.exe(700)", 20]]));
    assert_eq!(open["counted"], "open_at_end");
}

#[test]
fn without_a_rundown_at_the_end_events_and_the_rundown_at_the_start_are_counted() {
    let mut trace = trace();
    trace.rundowns(true, false);
    let old = |handle: u32| OBJECT + 0x2000_0000 + u64::from(handle) * 0x100;
    for handle in [0x100, 0x104, 0x108] {
        trace.handle_rundown_start(800, old(handle), handle, EVENT, r"\old");
    }
    trace.handle_rundown_start(4, old(0x200), 0x200, EVENT, "");
    trace.close_handle(MS, (800, 1), old(0x104), 0x104, EVENT, "");
    create(&mut trace, 2, 700, 4);
    create(&mut trace, 3, 800, 8);
    create(&mut trace, 4, 800, 12);
    close(&mut trace, 5, 800, 12);
    let open = not_closed(&trace, "-ShowTotal Process");
    let expected = json!([["server.exe(700)", 1], ["System(4)", 1], ["tool.exe(800)", 3]]);
    assert_eq!(open["rows"], expected);
    assert_eq!(open["counted"], "open_by_events_and_start");
    let of_tool = not_closed(&trace, "-ShowTotal Total -pn tool");
    assert_eq!(of_tool["rows"], json!([["Event", 3]]));
    let named = not_closed(&trace, r"-ShowTotal Total -ObjectName \old");
    assert_eq!(named["rows"], json!([["Event", 2]]));
    let late = not_closed(&trace, "-ShowTotal Total -MinMaxTime 0.0025");
    assert_eq!(late["rows"], json!([["Event", 1]]), "older handles have no events");
    let text = run_over(&trace, ".dump ObjectRef -ShowTotal Total\n").ok().stdout;
    assert!(text.contains("by its events and the rundown at its start"), "{text}");
}

#[test]
fn names_of_handles_in_the_rundown_at_the_start_match_with_their_drive_letter() {
    let mut trace = trace();
    trace.rundowns(true, false);
    for (handle, name) in [(0x100, "log"), (0x104, "other")] {
        let object = OBJECT + 0x2000_0000 + u64::from(handle) * 0x100;
        let name = format!(r"\Device\HarddiskVolume3\{name}");
        trace.handle_rundown_start(800, object, handle, EVENT, &name);
    }
    for name in [r"C:\log", r"\Device\HarddiskVolume3\log"] {
        let named = not_closed(&trace, &format!("-ShowTotal Total -ObjectName {name}"));
        assert_eq!(named["rows"], json!([["Event", 1]]), "{name}");
    }
}

#[test]
fn without_any_rundown_the_title_says_that_older_handles_are_unknown() {
    let mut trace = trace();
    trace.rundowns(true, false);
    create(&mut trace, 2, 700, 4);
    let open = not_closed(&trace, "-ShowTotal Process");
    assert_eq!(open["rows"], json!([["server.exe(700)", 1]]));
    assert_eq!(open["counted"], "open_by_events");
    let text = run_over(&trace, ".dump ObjectRef -ShowTotal Process\n").ok().stdout;
    assert!(text.contains("older handles are unknown"), "{text}");
}

fn view(base: u64) -> MappedView {
    MappedView { base, size: 4096, file_key: 7, pid: 700, ..MappedView::default() }
}

#[test]
fn omitted_handles_of_the_rundown_and_views_are_counted_separately() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    create(&mut trace, 2, 700, 8);
    for base in 1..4 {
        trace.map((10 + base as i64) * MS, (700, 1), view(base << 16));
    }
    for handle in 0..5 {
        trace.handle_rundown_end(700, OBJECT + 0x1000_0000, 0x100 + handle * 4, EVENT, "old");
    }
    let query =
        |options: &str| run_over(&trace, &format!(".dump ObjectRef {options}\n")).ok().stdout;
    let all = query("");
    assert!(all.contains("Handle Count: 5"), "{all}");
    let none = query("-TopN 1 6");
    let said = "\n+ 6 more objects, 2 handles, 3 views and 5 handles of the rundown\n";
    assert!(none.contains(said), "{none}");
    let rundown = query("-Map 0 -TopN 2 1");
    assert!(rundown.contains("\n+ 1 more object, 0 handles and 5 of the rundown\n"), "{rundown}");
    let views = query("-Leak -TopN 2");
    assert!(views.contains("\n+ 3 more objects, 0 handles and 3 views\n"), "{views}");
    assert!(query("-Map 0 -TopN 1").contains("\n+ 2 more objects, "), "no word of views");
    assert!(!query("-Map 0 -TopN 1").contains("views\n"), "no word of views");
    let groups = query("-GroupBy type -TopN 1");
    assert!(groups.contains("handles and views"), "{groups}");
    let json = run_over(&trace, ".dump ObjectRef -TopN 1 6 -json\n").ok().stdout;
    let left_out = json!({ "objects": 6, "handles": 5, "views": 3, "existing_handles": 5 });
    assert_eq!(documents(&json)[0]["left_out"], left_out);
}

#[test]
fn a_trace_that_leaks_views_alone_has_leaked_views_and_no_leaked_handles() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    close(&mut trace, 2, 700, 4);
    for base in 1..5 {
        trace.map((10 + base as i64) * MS, (700, 1), view(base << 16));
    }
    trace.unmap(30 * MS, (700, 1), view(1 << 16));
    let lines = ".dump Stats\n.dump Stats -json\n.dump ObjectRef -Leak -json\n";
    let run = run_over(&trace, lines).ok();
    assert!(run.stderr.contains(" 0 leaked handles, 3 leaked views, "), "{}", run.stderr);
    let (text, json) = run.stdout.split_at(run.stdout.find('{').unwrap());
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(row("Leaked handles").ends_with(" 0"), "{text}");
    assert!(row("Leaked views").ends_with(" 3"), "{text}");
    let [stats, leaks] = documents(json).try_into().unwrap();
    let stats: &Value = &stats["files"][0];
    assert_eq!((&stats["leaked_handles"], &stats["leaked_views"]), (&json!(0), &json!(3)));
    let totals = &leaks["totals"];
    assert_eq!((&totals["leaked_handles"], &totals["leaked_views"]), (&json!(3), &json!(3)));
    assert_eq!(leaks["files"][0]["totals"], *totals);
    // Both are counted if nothing is suspected.
    let why = run_over(&trace, ".why -Type Event\n.why -Type FileMapping\n").ok().stdout;
    assert!(why.contains("Nothing leaks: 1 handle opened, 0 not closed"), "{why}");
    let shell = Shell::new();
    trace.write(shell.path("views.etl")).unwrap();
    let page = shell.run(&["views.etl", "-c", ".report page.html"]).ok();
    let page = std::fs::read_to_string(shell.path("page.html")).unwrap_or(page.stderr);
    assert!(page.contains("(0 only by process exit), 0 leaked, 3 leaked views"), "{page}");
}

#[test]
fn an_object_that_stays_for_its_creation_alone_is_named_as_such() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    let object = OBJECT + 0x400 + 700 * 0x10_0000;
    trace.create_handle(50 * MS, (800, 1), object, 0x10, EVENT);
    close(&mut trace, 60, 700, 4);
    create(&mut trace, 70, 800, 8);
    let query =
        |options: &str| run_over(&trace, &format!(".dump ObjectRef {options}\n")).ok().stdout;
    // Its first handle is closed, and the one that leaks is outside the time range.
    let early = query("-Leak -MinMaxTime 0 0.01");
    assert!(early.contains("\nId: 1 "), "{early}");
    let expected = "\nLeaked handles and views: 0\n1 object is listed only for its creation or end, \
                    without a leak\n";
    assert!(early.contains(expected), "{early}");
    for options in ["-Leak", "-Leak -MinMaxTime 0.04", "-MinMaxTime 0 0.01"] {
        assert!(!query(options).contains("alone"), "{options}");
    }
}

#[test]
fn top_n_counts_what_it_leaves_out_of_objects_and_of_rows() {
    let mut trace = trace();
    for handle in 1..=5 {
        create(&mut trace, i64::from(handle), 700, handle * 4);
    }
    create(&mut trace, 9, 800, 4);
    let query =
        |options: &str| run_over(&trace, &format!(".dump ObjectRef {options}\n")).ok().stdout;
    let objects = query("-TopN 2");
    assert_eq!(objects.matches("\nId: ").count(), 2, "{objects}");
    assert!(objects.contains("\n+ 4 more objects, 4 handles\n"), "{objects}");
    let skipped = query("-TopN 1 4");
    assert!(skipped.contains("\nId: 5 ") && skipped.contains("+ 5 more objects, 5 handles"));
    let rows = query("-Leak -ShowTotal Process -TopN 1");
    assert!(rows.contains("\n+ 1 more, 1 handle or view\n"), "{rows}");
    let run = run_over(&trace, ".dump ObjectRef -TopN 2 -json\n").ok();
    let document = documents(&run.stdout).remove(0);
    assert_eq!(document["objects"].as_array().unwrap().len(), 2);
    let left_out = json!({ "objects": 4, "handles": 4, "views": 0, "existing_handles": 0 });
    assert_eq!(document["left_out"], left_out);
    assert_eq!(document["totals"]["handles_created"], 6, "totals are of all that passed");
}

#[test]
fn the_stacks_of_a_document_are_those_of_the_objects_that_are_left() {
    let shell = Shell::new();
    let document = |options: &str| {
        let query = format!(".dump ObjectRef -ShowStack -json {options}");
        documents(&shell.run(&["leaky.etl", "-c", &query]).ok().stdout).remove(0)
    };
    let stacks = |document: &Value| {
        let known: BTreeSet<String> =
            document["stacks"].as_object().unwrap().keys().cloned().collect();
        let mut named = BTreeSet::new();
        add_stacks(&document["objects"], &mut named);
        assert_eq!(known, named);
        known.len()
    };
    let (one, all) = (stacks(&document("-Leak -TopN 1")), stacks(&document("-Leak")));
    assert!(0 < one && one < all, "{one} of {all}");
}

/// Collects the stacks in all members named `stack` of a value.
fn add_stacks(value: &Value, named: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| add_stacks(value, named)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Number(stack) if name.ends_with("stack") => {
                        named.insert(stack.to_string());
                    }
                    _ => add_stacks(value, named),
                }
            }
        }
        _ => {}
    }
}

/// Writes two traces of two machines, with the later one first in name and load order, and a trace of other programs.
fn several(shell: &Shell) {
    let minute = 600_000_000;
    for (name, minutes, handles) in [("a-late", 9, 3), ("z-early", 1, 2), ("other", 5, 0)] {
        let mut options = FileOptions::default();
        options.start += minutes * minute;
        let mut trace = trace_with(options);
        for handle in 1..=handles {
            create(&mut trace, i64::from(handle), 700, handle * 4);
        }
        trace.handle_rundown_end(800, OBJECT, 4, EVENT, "");
        trace.write(shell.path(&format!("{name}.etl"))).unwrap();
    }
}

#[test]
fn processes_of_one_name_on_two_machines_are_two() {
    let shell = Shell::new();
    several(&shell);
    let files = ["a-late.etl", "z-early.etl", "other.etl"];
    let script = ".dump ObjectRef -Leak -ShowTotal Process -json\n\
                  .dump ObjectRef -Leak -ShowTotal Total -json\n";
    let documents = documents(&shell.script(&files, script).ok().stdout);
    let paths: Vec<_> = documents[0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["z-early.etl", "other.etl", "a-late.etl"], "in the order of recording");
    let rows = json!([["server.exe(700)", 2, 0], ["server.exe(700)", 3, 2]]);
    assert_eq!(documents[0]["not_closed"]["rows"], rows);
    assert_eq!(documents[1]["not_closed"]["rows"], json!([["Event", 5]]));
}

#[test]
fn every_total_of_several_files_has_a_label_and_files_without_a_match_share_a_line() {
    let shell = Shell::new();
    several(&shell);
    let files = ["a-late.etl", "z-early.etl", "other.etl"];
    let query = ".dump ObjectRef -Leak -ShowTotal Process\n";
    let text = shell.script(&files, query).ok().stdout;
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"));
    assert!(place("Totals of z-early\n") < place("Totals of a-late\n"), "{text}");
    assert!(place("Totals of a-late\n") < place("All 3 files\n"), "{text}");
    assert!(text.contains("server.exe(700) in a-late "), "{text}");
    assert!(!text.contains("Totals of other"), "{text}");
    assert!(text.ends_with("1 of 3 files without a match\n"), "{text}");
    assert!(text.contains("Leaked handles and views: 5\n"), "{text}");
}

#[test]
fn totals_end_with_the_largest_unless_another_order_is_asked_for_and_json_names_the_order() {
    let shell = Shell::new();
    let asked = |sort: &str| {
        let line = format!(".dump ObjectRef -ShowTotal Process -TopN 3 {sort} -json");
        let answer = shell.run(&["leaky.etl", "-c", &line]).ok().stdout;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let totals = &answer["not_closed"];
        let counts: Vec<u64> =
            totals["rows"].as_array().unwrap().iter().map(|row| row[1].as_u64().unwrap()).collect();
        (totals["order"].as_str().unwrap().to_owned(), counts)
    };
    assert_eq!(asked(""), ("largest_last".to_owned(), vec![3, 5, 19]));
    assert_eq!(asked("-SortBy handles"), ("largest_first".to_owned(), vec![19, 5, 3]));
    // The order is explorer.exe, leaky.exe, System.
    assert_eq!(asked("-SortBy Process"), ("name".to_owned(), vec![3, 5, 19]));
    let refused =
        shell.run(&["leaky.etl", "-c", ".dump ObjectRef -ShowTotal Process -SortBy Type"]);
    assert_eq!(refused.status, Some(1));
    assert!(
        refused.stderr.contains("sorted by Handles, or by Type, Process or File"),
        "{refused:?}"
    );
}

#[test]
fn show_total_alone_counts_by_type() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    for command in [".dump ObjectRef -Leak", ".dump Resource -Leak"] {
        let shown = |options: &str| run_over(&trace, &format!("{command} {options}\n")).ok().stdout;
        assert_eq!(shown("-ShowTotal"), shown("-ShowTotal Total"), "{command}");
    }
}

#[test]
fn a_trace_without_handle_events_counts_no_leaks() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    for options in ["-Leak", "-LeakAtExit", "-Leak -LeakAtExit"] {
        let run = run_over(&trace, &format!(".dump ObjectRef {options}\n")).ok();
        assert!(!run.stdout.to_lowercase().contains("leaked"), "{options}: {}", run.stdout);
        assert!(!run.stdout.contains("closed only by"), "{options}: {}", run.stdout);
        assert!(run.stderr.contains("no handle events"), "{}", run.stderr);
    }
}

#[test]
fn rows_of_leaks_are_events_and_not_the_rundown() {
    let mut trace = trace();
    create(&mut trace, 1, 700, 4);
    let object = OBJECT + 4 * 0x100 + 700 * 0x10_0000;
    trace.handle_rundown_end(700, object, 4, EVENT, "");
    let rows = |options: &str| {
        let run = run_over(&trace, &format!(".dump ObjectRef {options} -ndjson\n")).ok();
        run.stdout.lines().filter(|line| line.starts_with('{')).count()
    };
    assert_eq!((rows(""), rows("-Leak"), rows("-Leak -LeakAtExit")), (2, 1, 1));
    let csv = run_over(&trace, ".dump ObjectRef -Leak -csv\n").ok().stdout;
    assert!(!csv.contains("Existing Handle"), "{csv}");
}
