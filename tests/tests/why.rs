//! `.why`: what leaks, how fast and why, against traces whose truth is known.

use std::collections::{HashMap, HashSet};
use std::fs;

use handlescope_tests::binary::{Shell, run_over, sample_symbols};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::documents::stack_text;
use handlescope_tests::needs_data;
use handlescope_tests::payload::{
    DuplicateRecord, HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, RangeRecord,
};
use handlescope_tests::published::Published;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const MS: i64 = 1_000_000;
const US: i64 = 1_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

fn suspects(document: &Value) -> &[Value] {
    document["suspects"].as_array().unwrap()
}

fn causes(suspect: &Value) -> Vec<&str> {
    let diagnoses = suspect["diagnoses"].as_array().unwrap();
    diagnoses.iter().map(|diagnosis| diagnosis["cause"].as_str().unwrap()).collect()
}

#[needs_data]
#[test]
fn suspects_of_the_published_trace_have_its_verdicts_rates_and_causes() {
    let trace = SharedTrace::open("synthetic/growth");
    let expected: Value = serde_json::from_slice(&fs::read(trace.expected()).unwrap()).unwrap();
    let document = Published::open("growth").why();
    let mut found: HashMap<(String, String, String), &Value> = HashMap::new();
    for suspect in suspects(&document) {
        let text = |key: &str| suspect[key].as_str().unwrap().to_owned();
        let key = (text("process"), text("type"), stack_text(&document, &suspect["create_stack"]));
        assert!(found.insert(key.clone(), suspect).is_none(), "twice: {key:?}");
    }
    let groups = expected["why"].as_array().unwrap();
    assert!(groups.len() > 40);
    let mut known = 0;
    for group in groups {
        let script = &group["script"];
        let stack = &expected["stacks"][group["create_stack"].as_u64().unwrap() as usize];
        let lines: Vec<&str> =
            stack.as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
        let others = group["process_or"].as_array().into_iter().flatten();
        let names = std::iter::once(&group["process"]).chain(others);
        let key = |process: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(process), text(&group["type"]), lines.join("\n"))
        };
        let suspect = names.map(key).find_map(|key| found.get(&key).copied());
        if let Some(is) = group["must_rank"].as_bool() {
            assert_eq!(suspect.is_some(), is, "{script}: {suspect:?}");
        }
        let Some(suspect) = suspect else { continue };
        known += 1;
        assert_group(suspect, group);
    }
    assert!(known > 20, "{known}");
    // What is not listed loses next to nothing.
    let lost =
        |own: &&Value| own["leaked"].as_u64().unwrap() + own["closed_at_exit"].as_u64().unwrap();
    let large = suspects(&document).iter().filter(|own| lost(own) > 3);
    assert!(large.count() <= known, "groups without truth are suspects");
}

/// A suspect has the truth of its group.
fn assert_group(suspect: &Value, group: &Value) {
    let script = &group["script"];
    if !group["verdict"].is_null() {
        assert_eq!(suspect["verdict"], group["verdict"], "{script}");
    }
    for verdict in group["not_verdicts"].as_array().into_iter().flatten() {
        assert_ne!(suspect["verdict"], *verdict, "{script}");
    }
    for figure in ["leaked", "closed_at_exit"] {
        assert_eq!(suspect[figure], group[figure], "{script}: {figure}");
    }
    assert_eq!(suspect["created"], group["opened"], "{script}");
    if let Some(rate) = group["rate_per_minute"].as_f64() {
        let own = suspect["rate_per_minute"].as_f64().unwrap();
        assert!((own / rate - 1.0).abs() <= 0.1, "{script}: {own} instead of {rate}");
    }
    let causes = causes(suspect);
    let words =
        |key: &str| group[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    for cause in words("causes").collect::<Vec<_>>() {
        assert!(causes.contains(&cause), "{script}: {causes:?}");
    }
    for cause in words("not_causes").collect::<Vec<_>>() {
        assert!(!causes.contains(&cause), "{script}: {causes:?}");
    }
}

#[test]
fn the_sample_has_three_leaks_with_lines_and_causes() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = shell.run(&["why", "leaky.etl", "--symbol-path", symbols.to_str().unwrap()]).ok();
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn the_command_line_takes_files_between_options() {
    let shell = Shell::new();
    let first = shell.run(&["why", "-pn", "leaky", "leaky.etl", "-json"]).ok().stdout;
    let second = shell.run(&["why", "leaky.etl", "-json", "-pn", "leaky"]).ok().stdout;
    assert_eq!(first, second);
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["kind"], "Why");
    assert_eq!(document["suspects"][0]["rank"], 1);
}

/// Two processes and a kernel that logs.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "client.exe");
    trace.object_type(EVENT, "Event");
    trace
}

const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];
const USER: [u64; 1] = [0x7ff8_0000_1000];

fn open(trace: &mut TraceBuilder, ns: i64, ids: (u32, u32), object: u64, handle: u32) {
    trace.create_handle(ns, ids, object, handle, EVENT).stack(&KERNEL, &USER);
}

fn close(trace: &mut TraceBuilder, ns: i64, ids: (u32, u32), object: u64, handle: u32) {
    trace.close_handle(ns, ids, object, handle, EVENT, "");
}

fn asked(trace: &TraceBuilder, options: &str) -> Value {
    let run = run_over(trace, &format!(".why {options} -json\n")).ok();
    serde_json::from_str(&run.stdout).unwrap()
}

/// A lost handle and a closed one to the same object, of two threads, so far apart.
fn race(apart_ns: i64, second: (u32, u32), closes: bool) -> TraceBuilder {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    open(&mut trace, 10 * MS + apart_ns, second, OBJECT, 0x14);
    if closes {
        close(&mut trace, 50 * MS, second, OBJECT, 0x14);
    }
    // The trace goes on.
    close(&mut trace, 90 * MS, (800, 801), OBJECT + 0x900, 0x99);
    trace
}

#[test]
fn a_race_needs_two_threads_of_one_process_within_the_window_of_which_one_closes() {
    let has_race = |trace: &TraceBuilder, options: &str| {
        let document = asked(trace, options);
        suspects(&document).iter().any(|suspect| causes(suspect).contains(&"race"))
    };
    assert!(has_race(&race(300 * US, (700, 702), true), ""));
    assert!(!has_race(&race(300 * US, (700, 702), true), "-RaceWindow 200us"));
    assert!(!has_race(&race(2 * MS, (700, 702), true), ""), "too far apart");
    assert!(has_race(&race(2 * MS, (700, 702), true), "-RaceWindow 5ms"));
    assert!(!has_race(&race(300 * US, (700, 701), true), ""), "one thread");
    assert!(!has_race(&race(300 * US, (800, 802), true), ""), "two processes");
    assert!(!has_race(&race(300 * US, (700, 702), false), ""), "none is closed");
}

#[test]
fn a_duplicate_that_is_not_closed_names_who_made_it() {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    trace.duplicate_handle(
        20 * MS,
        (700, 701),
        DuplicateRecord {
            object: OBJECT,
            source_handle: 0x10,
            target_handle: 0x24,
            target_pid: 800,
            source_pid: Some(700),
            type_id: EVENT,
        },
    );
    close(&mut trace, 30 * MS, (700, 701), OBJECT, 0x10);
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!(suspect["process"], "client.exe(800)");
    assert_eq!(causes(suspect), ["duplicate_not_closed", "never_closed"]);
    let text = suspect["diagnoses"][0]["text"].as_str().unwrap();
    assert!(text.contains("from server.exe(700) by server.exe(700)"), "{text}");
}

#[test]
fn a_healthy_trace_says_that_nothing_leaks_and_one_without_handles_that_it_does_not_know() {
    let mut trace = trace();
    open(&mut trace, 10 * MS, (700, 701), OBJECT, 0x10);
    close(&mut trace, 20 * MS, (700, 701), OBJECT, 0x10);
    let run = run_over(&trace, ".why\n").ok();
    assert!(run.stdout.contains("Nothing leaks: of 1 handles"), "{}", run.stdout);
    assert_eq!(asked(&trace, "")["suspects"], json!([]));
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let run = run_over(&trace, ".why\n").ok();
    assert!(run.stdout.contains("Whether anything leaks is unknown"), "{}", run.stdout);
    assert!(run.stderr.contains("no handle events"), "{}", run.stderr);
}

#[test]
fn what_hides_the_truth_comes_first() {
    let shell = Shell::new();
    let run = shell.run(&["why", "leaky.etl"]).ok();
    assert!(run.stderr.contains("no symbols of leaky.exe"), "{}", run.stderr);
    let document: Value =
        serde_json::from_str(&shell.run(&["why", "leaky.etl", "-json"]).ok().stdout).unwrap();
    let kinds: Vec<&Value> =
        document["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["kind"]).collect();
    assert!(kinds.contains(&&json!("symbols_missing")), "{kinds:?}");
}

#[needs_data]
#[test]
fn what_leaks_memory_in_the_published_traces_comes_first() {
    for name in ["heap", "valloc"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let known: Value = serde_json::from_slice(&fs::read(trace.expected()).unwrap()).unwrap();
        // "leaking stacks: 48 (alloc), 49 (realloc)" among the notes.
        let notes = known["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
        let leaks = notes.filter_map(|note| note.split_once("leaking stack")).map(|(_, own)| own);
        let numbers = leaks.flat_map(|own| own.split(|c: char| !c.is_ascii_digit()));
        let leaks: HashSet<String> = numbers
            .filter_map(|number| number.parse::<usize>().ok())
            .map(|number| known["stacks"][number].to_string())
            .collect();
        assert!(!leaks.is_empty());
        let document = Published::open(name).why();
        let worst = &suspects(&document)[..leaks.len()];
        let found: HashSet<String> = worst.iter().map(|own| frames(&document, own)).collect();
        assert_eq!(found, leaks, "{name}");
        assert!(worst.iter().all(|own| own["bytes_per_minute"].as_f64().unwrap() > 0.0));
    }
}

/// The frames of the create stack, as the expected results have them.
fn frames(document: &Value, suspect: &Value) -> String {
    let frames = document["stacks"][suspect["create_stack"].to_string()].as_array().unwrap();
    let text = |frame: &Value| {
        format!("{}!{}", frame["module"].as_str().unwrap(), frame["function"].as_str().unwrap())
    };
    Value::from(frames.iter().map(text).collect::<Vec<_>>()).to_string()
}

const HEAP: u64 = 0x1_0000;
const PAGE: u64 = 4096;

/// A process with two functions on the stacks of what it allocates.
fn memory_trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "leaky.exe").started(MS);
    trace.module(700, r"C:\leaky.exe", 0x7ff6_0000_0000, 0x1_0000);
    trace.end(60_000 * MS);
    trace
}

/// Where a stack of this number is.
fn stack(number: u64) -> [u64; 1] {
    [0x7ff6_0000_1000 + 0x100 * number]
}

#[test]
fn a_block_that_only_grows_is_a_leak_and_one_that_is_freed_is_not() {
    let mut trace = memory_trace();
    for step in 0..20_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let (address, size) = (0x10_0000 + 0x1_0000 * step, 100 << step);
        let call = match step {
            0 => HeapCall::Alloc { address, size },
            _ => HeapCall::ReAlloc {
                address,
                old_address: address - 0x1_0000,
                size,
                old_size: size / 2,
            },
        };
        trace.heap(ns, (700, 701), HEAP, call).stack(&[], &stack(1));
        let other = 0x100 + 16 * step;
        let call = HeapCall::Alloc { address: other, size: 1 << 20 };
        trace.heap(ns + MS, (700, 701), HEAP, call).stack(&[], &stack(2));
        trace.heap(ns + 2 * MS, (700, 701), HEAP, HeapCall::Free { address: other });
    }
    let found = asked(&trace, "");
    let [grown] = suspects(&found) else { panic!("{found:#}") };
    assert_eq!(causes(grown), ["realloc_growth", "never_freed"]);
    assert_eq!((&grown["type"], &grown["bytes"]), (&json!("heap"), &json!(100 << 19)));
    // From 100 bytes to 50 MB in 19 s.
    let rate = grown["bytes_per_minute"].as_f64().unwrap();
    assert!((rate / (f64::from(100 << 19) * 60.0 / 19.0) - 1.0).abs() < 0.01, "{rate}");
    let process = asked(&trace, "-pn other.exe");
    assert!(suspects(&process).is_empty());
    assert!(suspects(&asked(&trace, "-Type Event")).is_empty());
    assert_eq!(suspects(&asked(&trace, "-Type heap")).len(), 1);
    for options in ["-pn absent", "-Type Event"] {
        let document = asked(&trace, options);
        assert_eq!(document["no_match"]["option"], json!(options), "{document}");
        assert_eq!(document["no_match"]["before"], json!(40), "{document}");
        assert_eq!(suspects(&document).len(), 0);
    }
}

#[test]
fn heaps_that_are_not_destroyed_and_addresses_that_nothing_is_committed_of_are_leaks() {
    let mut trace = memory_trace();
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let heap = 0x100_0000 * (step + 1);
        trace.heap(ns, (700, 701), heap, HeapCall::Create).stack(&[], &stack(1));
        let call = HeapCall::Alloc { address: heap + 64, size: 10 };
        trace.heap(ns + MS, (700, 701), heap, call).stack(&[], &stack(2));
        if step % 3 == 0 {
            trace.heap(ns + 2 * MS, (700, 701), heap, HeapCall::Destroy);
        }
        let range = RangeRecord {
            base: 0x1_0000_0000 + 16 * PAGE * step,
            size: 16 * PAGE,
            pid: 700,
            flags: MEM_RESERVE,
        };
        trace.virtual_alloc(ns + 3 * MS, (700, 701), range).stack(&[], &stack(3));
        let committed = RangeRecord { size: PAGE, flags: MEM_COMMIT, ..range };
        if step % 2 == 0 {
            trace.virtual_alloc(ns + 4 * MS, (700, 701), committed).stack(&[], &stack(4));
        }
    }
    let found = asked(&trace, "");
    let of = |kind: &str| suspects(&found).iter().find(|own| own["type"] == kind).unwrap();
    let heaps = of("private heap");
    assert_eq!(causes(heaps), ["heap_not_destroyed"]);
    assert_eq!((&heaps["leaked"], &heaps["created"]), (&json!(20), &json!(30)));
    assert!(heaps["command"].as_str().unwrap().contains("-GroupBy allocator"), "{heaps}");
    let reserved = of("reserve");
    assert_eq!(causes(reserved), ["reserve_without_commit", "never_freed"]);
    assert_eq!(reserved["diagnoses"][0]["count"], 15);
    assert_eq!(of("commit")["bytes"], json!(15 * PAGE));
    assert_eq!(of("heap")["leaked"], 20);
}

#[test]
fn a_trace_with_handles_and_allocations_answers_both() {
    let mut trace = memory_trace();
    trace.object_type(EVENT, "Event");
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let object = OBJECT + 0x100 * step;
        trace.create_handle(ns, (700, 701), object, 4 * step as u32 + 4, EVENT);
        trace.stack(&KERNEL, &stack(1));
        let call = HeapCall::Alloc { address: 0x1000 + 32 * step, size: 10 };
        trace.heap(ns + MS, (700, 701), HEAP, call).stack(&[], &stack(2));
    }
    let found = asked(&trace, "");
    let kinds: Vec<&Value> = suspects(&found).iter().map(|own| &own["type"]).collect();
    assert_eq!(kinds, ["Event", "heap"]);
    let ranks: Vec<&Value> = suspects(&found).iter().map(|own| &own["rank"]).collect();
    assert_eq!(ranks, [1, 2]);
    let count = |line: &str, member: &str| {
        let document: Value = serde_json::from_str(&run_over(&trace, line).ok().stdout).unwrap();
        document.pointer(member).cloned()
    };
    let handles = count(".dump ObjectRef -Leak -json\n", "/totals/leaked_handles");
    let blocks = count(".dump Resource -json\n", "/totals/0/outstanding");
    assert_eq!((handles, blocks), (Some(json!(30)), Some(json!(30))));
}

#[test]
fn what_is_freed_in_part_is_not_counted_as_freed() {
    let mut trace = memory_trace();
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let base = 0x1_0000_0000 + 16 * PAGE * step;
        let range = RangeRecord { base, size: 2 * PAGE, pid: 700, flags: MEM_COMMIT };
        trace.virtual_alloc(ns, (700, 701), range).stack(&[], &stack(1));
        let part = RangeRecord { size: PAGE, flags: MEM_DECOMMIT, ..range };
        trace.virtual_free(ns + MS, (700, 701), part).stack(&[], &stack(2));
    }
    let found = asked(&trace, "");
    let [parts] = suspects(&found) else { panic!("{found:#}") };
    assert_eq!((&parts["leaked"], &parts["bytes"]), (&json!(30), &json!(30 * PAGE)));
    assert_eq!(causes(parts), ["sometimes_freed"]);
    let text = parts["diagnoses"][0]["text"].as_str().unwrap();
    assert_eq!(text, "of 30 of this stack some are freed in part, and none is freed wholly");
}
