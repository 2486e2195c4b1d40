//! The command that `.why` prints for each suspect selects exactly what that suspect leaked.

use std::fs;

use handlescope_tests::allocations::{HEAP, MS};
use handlescope_tests::binary::{Shell, handlescope, run_over, run_script, sample_symbols};
use handlescope_tests::needs_data;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::published::PublishedTrace;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value};

const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

#[needs_data]
#[test]
fn the_command_of_a_suspect_shows_its_handles() {
    let names =
        ["growth", "duplicates", "eventleak", "filemap", "objectref", "registry", "threadleak"];
    for name in names {
        let trace = PublishedTrace::open(name);
        let document = trace.why();
        assert!(suspects(&document).len() > if name == "growth" { 20 } else { 0 }, "{name}");
        assert_commands(&document, |script| trace.ask(script));
    }
}

#[needs_data]
#[test]
fn the_command_of_a_suspect_of_one_process_shows_what_that_lost() {
    for name in ["growth", "duplicates", "threadleak", "generic", "heap", "valloc"] {
        let trace = PublishedTrace::open(name);
        let document: Value = serde_json::from_str(&trace.ask(".why -ByProcess -json")).unwrap();
        assert!(!suspects(&document).is_empty(), "{name}");
        assert_commands(&document, |script| trace.ask(script));
    }
}

#[needs_data]
#[test]
fn the_first_of_a_sorted_list_are_those_of_the_whole_list_with_their_commands() {
    let trace = PublishedTrace::open("growth");
    let ask = |options: &str| -> Value {
        serde_json::from_str(&trace.ask(&format!(".why -SortBy created {options} -json"))).unwrap()
    };
    let (all, part) = (ask(""), ask("-TopN 3 1"));
    assert_eq!(suspects(&part), &suspects(&all)[1..4]);
    assert_commands(&part, |script| trace.ask(script));
}

#[needs_data]
#[test]
fn since_and_min_leaked_restrict_suspects_and_their_commands() {
    for (name, since) in [("growth", "200s"), ("heap", "2s")] {
        let trace = PublishedTrace::open(name);
        let ask = |options: &str| -> Value {
            serde_json::from_str(&trace.ask(&format!(".why {options} -json"))).unwrap()
        };
        let (all, late) = (ask(""), ask(&format!("-Since {since}")));
        let leaked = |document: &Value| -> u64 {
            suspects(document).iter().map(|suspect| suspect["leaked"].as_u64().unwrap()).sum()
        };
        assert!((1..leaked(&all)).contains(&leaked(&late)), "{name}");
        assert_commands(&late, |script| trace.ask(script));
        let command = suspects(&late)[0]["command"].as_str().unwrap();
        assert!(command.contains(&format!(" -MinMaxTime {since} ")), "{command}");
        let many = ask("-MinLeaked 20");
        let counts = suspects(&many).iter().map(|suspect| {
            let count = |member: &str| suspect[member].as_u64().unwrap();
            count("leaked") + count("closed_at_exit")
        });
        assert!(counts.clone().all(|count| count >= 20), "{name}");
        assert!((1..suspects(&all).len()).contains(&counts.count()), "{name}");
    }
}

fn suspects(document: &Value) -> &[Value] {
    document["suspects"].as_array().unwrap()
}

/// Asserts that the commands of all suspects show exactly what these leaked.
fn assert_commands(document: &Value, ask: impl Fn(&str) -> String) {
    let command = |suspect: &Value| format!("{} -json\n", suspect["command"].as_str().unwrap());
    let script: String = suspects(document).iter().map(command).collect();
    let printed = ask(script.trim_end());
    let answers: Vec<Value> =
        Deserializer::from_str(&printed).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(answers.len(), suspects(document).len());
    for (suspect, answer) in suspects(document).iter().zip(&answers) {
        match suspect["bytes"].as_i64() {
            None => assert_handles(suspect, answer),
            Some(bytes) => assert_allocations(suspect, answer, bytes),
        }
    }
}

fn assert_handles(suspect: &Value, answer: &Value) {
    let sum = |figures: &Value, of: [&str; 2]| of.map(|key| figures[key].as_u64().unwrap());
    let lost = sum(suspect, ["leaked", "closed_at_exit"]);
    let shown = sum(&answer["totals"], ["leaked_handles", "closed_at_exit"]);
    assert_eq!(shown, lost, "{}", suspect["command"]);
}

fn assert_allocations(suspect: &Value, answer: &Value, bytes: i64) {
    let is_of_heaps = suspect["type"] == "private heap";
    let groups = &answer[if is_of_heaps { "groups" } else { "totals" }];
    let sum = |member: &str| -> i64 {
        groups.as_array().unwrap().iter().map(|own| own[member].as_i64().unwrap()).sum()
    };
    let command = &suspect["command"];
    assert_eq!(sum("leaked_bytes") + sum("closed_at_exit_bytes"), bytes, "{command}");
    // Heaps are counted, not what is left in them.
    if !is_of_heaps {
        let members = ["leaked", "closed_at_exit"];
        let lost = members.map(|own| suspect[own].as_i64().unwrap());
        assert_eq!(members.map(sum), lost, "{command}");
    }
}

#[needs_data]
#[test]
fn the_command_of_a_suspect_shows_its_allocations() {
    for (name, least) in [("generic", 30), ("heap", 10), ("valloc", 10)] {
        let trace = PublishedTrace::open(name);
        let document = trace.why();
        assert!(suspects(&document).len() > least);
        assert_commands(&document, |script| trace.ask(script));
    }
}

#[test]
fn the_command_of_a_suspect_shows_its_handles_when_stacks_share_frames_or_are_missing() {
    const SYSTEM: u64 = 0x7ff8_0000_0000;
    const PROGRAM: u64 = 0x7ff6_0000_0000;
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.object_type(EVENT, "Event");
    trace.module(700, r"C:\Windows\System32\ntdll.dll", SYSTEM, 0x1_0000);
    trace.module(700, "C:\\demo\\a;b \"c\" #1.exe", PROGRAM, 0x1_0000);
    let stacks: [&[u64]; 8] = [
        &[],
        &[SYSTEM + 0x10],
        &[SYSTEM + 0x10, SYSTEM + 0x20],
        &[SYSTEM + 0x10, SYSTEM + 0x30],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x500],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x600, PROGRAM + 0x700],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x500, PROGRAM + 0x700],
        &[SYSTEM + 0x10, PROGRAM + 0x800],
    ];
    let mut handle = 0;
    for (at, stack) in stacks.iter().enumerate() {
        for _ in 0..3 + at {
            handle += 4;
            let (ns, object) = (MS * i64::from(handle), OBJECT + 0x100 * u64::from(handle));
            trace.create_handle(ns, (700, 701), object, handle, EVENT);
            if !stack.is_empty() {
                trace.stack(&[], stack);
            }
        }
    }
    let run = |script: &str| run_over(&trace, &format!("{script}\n")).ok().stdout;
    // Three stacks begin with the same function.
    for (line, count) in [(".why -json", stacks.len() - 2), (".why -ByStack -json", stacks.len())] {
        let document: Value = serde_json::from_str(&run(line)).unwrap();
        assert_eq!(suspects(&document).len(), count, "{document}");
        assert_commands(&document, run);
    }
}

fn asked(trace: &TraceBuilder) -> Value {
    serde_json::from_str(&run_over(trace, ".why -json\n").ok().stdout).unwrap()
}

/// Builds two processes with the same id one after the other; only the time tells their leaks apart.
fn same_pid(second: &str) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.object_type(EVENT, "Event");
    trace.process(700, "first.exe").started(MS).ended(5_000 * MS).unswept();
    trace.process(700, second).started(6_000 * MS);
    trace.end(20_000 * MS);
    for step in 0..20_u32 {
        let half = if step < 8 { 100 } else { 6_100 };
        let ns = (half + 200 * i64::from(step)) * MS + 7;
        let object = OBJECT + 0x100 * u64::from(step);
        trace.create_handle(ns, (700, 701), object, 4 * step + 4, EVENT);
        let call = HeapCall::Alloc { address: 0x1000 + 0x100 * u64::from(step), size: 10 };
        trace.heap(ns + MS, (700, 701), HEAP, call);
    }
    trace
}

#[test]
fn the_command_of_a_suspect_leaves_out_other_processes_that_had_its_id() {
    let trace = same_pid("second.exe");
    let document = asked(&trace);
    let starts: Vec<Option<i64>> =
        suspects(&document).iter().map(|own| own["process_start_ns"].as_i64()).collect();
    assert_eq!(starts.len(), 4, "{document:#}");
    for start in [MS, 6_000 * MS] {
        assert_eq!(starts.iter().filter(|own| **own == Some(start)).count(), 2, "{document:#}");
    }
    assert_commands(&document, |script| run_over(&trace, &format!("{script}\n")).ok().stdout);
    // Handles of processes with the same name and id form a single group, which has no start.
    let trace = same_pid("first.exe");
    let document = asked(&trace);
    let handles: Vec<&Value> =
        suspects(&document).iter().filter(|own| own["bytes"].is_null()).collect();
    let [both] = handles.as_slice() else { panic!("{document:#}") };
    assert_eq!((&both["leaked"], &both["process_start_ns"]), (&Value::from(20), &Value::Null));
    assert_commands(&document, |script| run_over(&trace, &format!("{script}\n")).ok().stdout);
}

#[test]
fn the_command_of_private_heaps_shows_what_is_left_in_them() {
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe").started(MS);
    trace.module(700, r"C:\leaky.exe", 0x7ff6_0000_0000, 0x1_0000);
    trace.end(60_000 * MS);
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let heap = 0x100_0000 * (step + 1);
        trace.heap(ns, (700, 701), heap, HeapCall::Create).stack(&[], &[0x7ff6_0000_1000]);
        for (heap, address) in [(heap, heap + 64), (HEAP, HEAP + 64 * step)] {
            let call = HeapCall::Alloc { address, size: 10 };
            trace.heap(ns + MS, (700, 701), heap, call).stack(&[], &[0x7ff6_0000_1100]);
        }
        if step % 3 == 0 {
            trace.heap(ns + 2 * MS, (700, 701), heap, HeapCall::Destroy);
        }
    }
    let document = asked(&trace);
    let is_heap = |own: &&Value| own["type"] == "private heap";
    let heaps = suspects(&document).iter().find(is_heap).unwrap();
    assert_eq!((&heaps["leaked"], &heaps["bytes"]), (&Value::from(20), &Value::from(200)));
    assert_commands(&document, |script| run_over(&trace, &format!("{script}\n")).ok().stdout);
}

#[test]
fn the_command_of_a_suspect_asks_its_trace_only() {
    let home = tempfile::tempdir().unwrap();
    let names = ["a b.etl", "c#1.etl", "c.etl", "d/c.etl"];
    fs::create_dir(home.path().join("d")).unwrap();
    for (name, handles) in names.into_iter().zip(3..) {
        let mut trace = TraceBuilder::new();
        trace.process(700, "server.exe");
        trace.object_type(EVENT, "Event");
        for handle in 1..=handles {
            let object = OBJECT + 0x100 * u64::from(handle);
            trace.create_handle(MS * i64::from(handle), (700, 701), object, 4 * handle, EVENT);
        }
        trace.write(home.path().join(name)).unwrap();
    }
    let ask = |script: &str| {
        run_script(handlescope(home.path()).args(names), &format!("{script}\n")).ok().stdout
    };
    let document: Value = serde_json::from_str(&ask(".why -json")).unwrap();
    assert_eq!(suspects(&document).len(), names.len(), "{document:#}");
    assert_commands(&document, ask);
}

/// The first suspect of the sample has the id 33434dfa4c.
#[test]
fn decimal_digits_that_are_too_many_for_a_rank_begin_an_id() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let why = |which: &str| {
        shell.run(&["why", "leaky.etl", which, "--symbol-path", symbols.to_str().unwrap()])
    };
    let first = why("1").ok().stdout;
    assert!(first.contains("-Suspect 33434dfa4c"), "{first}");
    assert_eq!(why("3343").ok().stdout, first);
    assert_eq!(why("33434").ok().stdout, first);
    let stderr = why("3344").stderr;
    assert!(stderr.contains("3344"), "{stderr}");
}
