//! `.dump Resource -FoldStack` and `-StackFrom`: which frames they leave out, and which groups merge.

use handlescope_tests::allocations::{HEAP, MS};
use handlescope_tests::binary::{ProgramRun, run_over};
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

/// Builds a program that allocates through two modules, and frees what came through the second one.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    trace.module(700, r"C:\app.exe", 0x1000_0000, 0x10000);
    trace.module(700, r"C:\first.dll", 0x2000_0000, 0x10000);
    trace.module(700, r"C:\second.dll", 0x3000_0000, 0x10000);
    for (n, module) in [(0, 0x2000_0020), (1, 0x3000_0030), (2, 0x3000_0030)] {
        let call = HeapCall::Alloc { address: 0x5000 + n * 0x100, size: 10 };
        let stack = [module, 0x1000_0010, 0x1000_0050];
        trace.heap(MS * (2 + n as i64), (700, 701), HEAP, call).stack(&[], &stack);
    }
    let free = HeapCall::Free { address: 0x5200 };
    trace.heap(9 * MS, (700, 701), HEAP, free).stack(&[], &[0x3000_0040, 0x1000_0050]);
    trace
}

fn dumped(options: &str) -> ProgramRun {
    run_over(&trace(), &format!(".dump Resource {options}")).ok()
}

/// Returns the groups of a document, each as a count and the frames of a stack.
fn counted(options: &str, rows: &str, count: &str, stack: &str) -> Value {
    let run = dumped(&format!("{options} -ShowStack -json"));
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let frame = |frame: &Value| {
        format!("{}+{}", frame["module"].as_str().unwrap(), frame["rva"].as_str().unwrap())
    };
    let group = |row: &Value| {
        let number = row.pointer(stack).unwrap();
        let frames = document["stacks"][number.to_string()].as_array();
        let frames: Option<Vec<String>> = frames.map(|frames| frames.iter().map(frame).collect());
        json!([row[count], frames])
    };
    document[rows].as_array().unwrap().iter().map(group).collect()
}

#[test]
fn leaks_that_differ_in_folded_frames_are_one_group() {
    let leaks = |options: &str| counted(options, "leaked", "count", "/stack");
    let (first, second) = ("first.dll+0x20", "second.dll+0x30");
    let own = ["app.exe+0x10", "app.exe+0x50"];
    assert_eq!(
        leaks("-Leak"),
        json!([[1, [first, own[0], own[1]]], [1, [second, own[0], own[1]]]])
    );
    assert_eq!(leaks("-Leak -FoldStack first*;second*"), json!([[2, own]]));
    assert_eq!(leaks("-Leak -FoldStack *"), json!([[2, []]]));
    assert_eq!(leaks("-Leak -FoldStack !*"), leaks("-Leak"));
}

#[test]
fn stacks_begin_at_the_first_frame_that_matches() {
    let leaks = |options: &str| counted(options, "leaked", "count", "/stack");
    let own = ["app.exe+0x10", "app.exe+0x50"];
    assert_eq!(leaks("-Leak -StackFrom app.exe*"), json!([[2, own]]));
    let (first, second) = ("first.dll+0x20", "second.dll+0x30");
    assert_eq!(
        leaks("-Leak -StackFrom first.dll+*;*+0x50"),
        json!([[1, [first, own[0], own[1]]], [1, [own[1]]]]),
        "what has no such frame stays whole, what has several begins at the innermost"
    );
    assert_eq!(
        leaks("-Leak -StackFrom nothing*"),
        json!([[1, [first, own[0], own[1]]], [1, [second, own[0], own[1]]]])
    );
    // Documents have leaks beside totals, so the options also apply to leaks without `-Leak`.
    assert_eq!(leaks("-StackFrom app.exe*"), json!([[2, own]]));
}

#[test]
fn stacks_that_group_by_asks_for_are_trimmed_too() {
    let groups = |options: &str, column: &str| {
        counted(options, "groups", "allocs", &format!("/keys/{column}"))
    };
    let own = ["app.exe+0x10", "app.exe+0x50"];
    assert_eq!(
        groups("-GroupBy createstack -StackFrom app.exe*", "createstack"),
        json!([[3, own]])
    );
    assert_eq!(
        groups("-GroupBy freestack -FoldStack second.dll*", "freestack"),
        json!([[2, null], [1, [own[1]]]])
    );
}

#[test]
fn text_and_files_show_what_is_left_of_a_stack() {
    let run = dumped("-Leak -ShowStack -TimeFmt s -FoldStack first*;second*");
    insta::assert_snapshot!(run.stdout);
    let run = dumped("-GroupBy createstack,freestack -csv -FoldStack first*;second*;*+0x10");
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn without_stacks_that_are_grouped_by_they_say_that_they_do_nothing() {
    let (folds, begins) = ("note: -FoldStack has no effect", "note: -StackFrom has no effect");
    for (options, note) in [
        ("-FoldStack a*", Some(folds)),
        ("-StackFrom a*", Some(begins)),
        ("-GroupBy kind,thread -StackFrom a*", Some(begins)),
        ("-Leak -ShowTotal Process -FoldStack a* -json", Some(folds)),
        ("-Leak -FoldStack a*", None),
        ("-LeakAtExit -StackFrom a*", None),
        ("-FoldStack a* -json", None),
        ("-GroupBy freestack -FoldStack a*", None),
    ] {
        let run = dumped(options);
        let said = run.stderr.lines().find(|line| line.contains("has no effect"));
        let is_as_expected = match (said, note) {
            (Some(said), Some(note)) => said.starts_with(note),
            (said, note) => said.is_none() && note.is_none(),
        };
        assert!(is_as_expected, "{options}: {}", run.stderr);
    }
}

#[test]
fn stacks_of_allocations_and_frees_are_among_all_stacks() {
    let rows = |command: &str| -> Vec<Value> {
        let run = run_over(&trace(), &format!("{command} -json\n")).ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let rows = document.get("stacks").or_else(|| document.get("rows")).unwrap();
        rows.as_array().unwrap().clone()
    };
    let count = |filter: &str| {
        let rows = rows(&format!(".sql SELECT count(*) AS n FROM allocations WHERE {filter}"));
        rows[0]["n"].as_u64().unwrap()
    };
    let allocated = count("opened_stack IS NOT NULL AND part_of IS NULL");
    let freed = count("ended_stack IS NOT NULL AND \"end\" = 'freed'");
    assert!(allocated > 0 && freed > 0, "{allocated} {freed}");
    let stacks = rows(".dump Stack");
    let recorded: u64 = stacks.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(recorded, allocated + freed);
    assert!(stacks.iter().any(|row| row["process"] == "app.exe"), "{stacks:?}");
}
