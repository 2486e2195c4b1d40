//! Handles that are only closed by the exit of their process, through the program.

use handlescope_tests::binary::{Shell, run_over, sample_symbols};
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value, json};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

/// Kernel frames of a close by a program, and of a sweep of the handle table.
const CLOSE: [u64; 2] = [0xffff_f800_0000_1000, 0xffff_f800_0000_2000];
const SWEEP: [u64; 3] = [0xffff_f800_0000_1500, 0xffff_f800_0000_1600, 0xffff_f800_0000_2000];
const USER: [u64; 2] = [0x7ff8_0000_1000, 0x7ff8_0000_2000];

/// Builds a trace of System, a program that keeps running, and one that exits at 50 ms.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "tool.exe").parent(700).started(MS).ended(50 * MS);
    trace.object_type(EVENT, "Event");
    // The server goes on after its closes, so these frames cannot be those of a sweep.
    create(&mut trace, 2 * MS, 700, 1);
    close(&mut trace, 3 * MS, 700, 1, &CLOSE);
    create(&mut trace, 4 * MS, 700, 2);
    close(&mut trace, 5 * MS, 700, 2, &CLOSE);
    create(&mut trace, 90 * MS, 700, 3);
    close(&mut trace, 91 * MS, 700, 3, &CLOSE);
    trace
}

/// Opens handle number `number`, to its own object.
fn create(trace: &mut TraceBuilder, ns: i64, pid: u32, number: u32) {
    let (object, handle) = (OBJECT + u64::from(pid * 100 + number) * 0x100, number * 4);
    trace.create_handle(ns, (pid, pid + 1), object, handle, EVENT).stack(&CLOSE, &USER);
}

fn close(trace: &mut TraceBuilder, ns: i64, pid: u32, number: u32, kernel: &[u64]) {
    close_by(trace, ns, (pid, pid + 1), number, kernel);
}

fn close_by(
    trace: &mut TraceBuilder,
    ns: i64,
    (pid, tid): (u32, u32),
    number: u32,
    kernel: &[u64],
) {
    let (object, handle) = (OBJECT + u64::from(pid * 100 + number) * 0x100, number * 4);
    trace.close_handle(ns, (pid, tid), object, handle, EVENT, "");
    if !kernel.is_empty() {
        trace.stack(kernel, &USER);
    }
}

fn document(trace: &TraceBuilder, options: &str) -> Value {
    let run = run_over(trace, &format!(".dump ObjectRef {options} -json\n")).ok();
    Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap()
}

/// Returns the handles that `-LeakAtExit` prints.
fn at_exit(trace: &TraceBuilder) -> Vec<String> {
    let document = document(trace, "-LeakAtExit");
    document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|object| object["events"].as_array().unwrap())
        .map(|event| {
            assert_eq!(event["closed_at_exit"], true);
            event["handle"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn the_last_closes_of_a_process_on_frames_of_a_sweep_leak_at_its_exit() {
    let mut trace = trace();
    for number in 1..=4 {
        create(&mut trace, 10 * MS + i64::from(number), 800, number);
    }
    close(&mut trace, 20 * MS, 800, 1, &CLOSE);
    close(&mut trace, 49 * MS + 990_000, 800, 2, &SWEEP);
    close(&mut trace, 49 * MS + 995_000, 800, 3, &SWEEP);
    close(&mut trace, 50 * MS + 10_000, 800, 4, &SWEEP);
    assert_eq!(at_exit(&trace), ["0x8", "0xC", "0x10"]);
}

#[test]
fn closes_after_the_end_of_the_process_are_closes_at_exit_with_any_stack() {
    let mut trace = trace();
    create(&mut trace, 10 * MS, 800, 1);
    create(&mut trace, 11 * MS, 800, 2);
    close(&mut trace, 50 * MS + 10_000, 800, 1, &CLOSE);
    close(&mut trace, 50 * MS + 20_000, 800, 2, &[]);
    assert_eq!(at_exit(&trace), ["0x4", "0x8"]);
}

#[test]
fn a_program_that_closes_its_handles_just_before_it_ends_leaks_nothing() {
    let mut trace = trace();
    create(&mut trace, 10 * MS, 800, 1);
    create(&mut trace, 11 * MS, 800, 2);
    close(&mut trace, 49 * MS + 990_000, 800, 1, &CLOSE);
    close(&mut trace, 49 * MS + 999_000, 800, 2, &CLOSE);
    assert!(at_exit(&trace).is_empty());
}

#[test]
fn the_sweep_is_the_run_of_one_thread_behind_the_last_open() {
    let mut trace = trace();
    for number in 1..=3 {
        create(&mut trace, 10 * MS + i64::from(number), 800, number);
    }
    close(&mut trace, 49 * MS + 900_000, 800, 1, &SWEEP);
    close_by(&mut trace, 49 * MS + 910_000, (800, 99), 2, &SWEEP);
    close(&mut trace, 49 * MS + 920_000, 800, 3, &SWEEP);
    assert_eq!(at_exit(&trace), ["0xC"], "another thread ends the run");

    let mut trace = self::trace();
    create(&mut trace, 10 * MS, 800, 1);
    close(&mut trace, 49 * MS + 900_000, 800, 1, &SWEEP);
    create(&mut trace, 49 * MS + 910_000, 800, 2);
    close(&mut trace, 50 * MS + 10_000, 800, 2, &SWEEP);
    assert_eq!(at_exit(&trace), ["0x8"], "a process that opens handles does not end yet");
}

#[test]
fn a_sweep_whose_last_close_lost_its_stack_is_still_on_the_same_frames() {
    let mut trace = trace();
    for number in 1..=3 {
        create(&mut trace, 10 * MS + i64::from(number), 800, number);
    }
    // Nothing shows that the program goes on after closes on these frames.
    close(&mut trace, 49 * MS + 900_000, 800, 1, &CLOSE[1..]);
    close(&mut trace, 49 * MS + 910_000, 800, 2, &SWEEP);
    close(&mut trace, 49 * MS + 920_000, 800, 3, &[]);
    assert_eq!(at_exit(&trace), ["0x8"]);
}

#[test]
fn closes_long_before_the_end_or_without_an_end_are_no_sweep() {
    let mut trace = trace();
    create(&mut trace, 10 * MS, 800, 1);
    close(&mut trace, 40 * MS, 800, 1, &SWEEP);
    trace.process(900, "other.exe");
    create(&mut trace, 60 * MS, 900, 1);
    close(&mut trace, 70 * MS, 900, 1, &SWEEP);
    assert!(at_exit(&trace).is_empty());
}

#[test]
fn an_inherited_handle_is_no_leak_of_the_child_that_ends() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "tool.exe").parent(700).started(10 * MS).ended(50 * MS);
    trace.object_type(EVENT, "Event");
    let inherited = DuplicateRecord {
        object: OBJECT,
        source_handle: 4,
        target_handle: 4,
        target_pid: 700,
        type_id: EVENT,
        source_pid: Some(700),
    };
    trace.create_handle(5 * MS, (700, 1), OBJECT, 4, EVENT);
    trace.duplicate_handle(9 * MS, (700, 1), inherited);
    trace.close_handle(50 * MS + 10_000, (800, 1), OBJECT, 4, EVENT, "");
    assert!(at_exit(&trace).is_empty());
    let close = &document(&trace, "")["objects"][0]["events"][2];
    assert_eq!((&close["kind"], &close["closed_at_exit"]), (&"handle_close".into(), &true.into()));
}

#[test]
fn leaks_say_how_many_more_there_are_at_exits_under_the_same_filters() {
    let mut trace = trace();
    create(&mut trace, 10 * MS, 800, 1);
    create(&mut trace, 11 * MS, 800, 2);
    create(&mut trace, 12 * MS, 700, 9);
    close(&mut trace, 50 * MS + 10_000, 800, 1, &SWEEP);
    close(&mut trace, 50 * MS + 20_000, 800, 2, &SWEEP);
    let printed =
        |options: &str| run_over(&trace, &format!(".dump ObjectRef {options}\n")).ok().stdout;
    let leaks = printed("-Leak");
    assert!(leaks.contains("Leaked handles and views: 1\n"), "{leaks}");
    let more = "2 more handles were closed only by the exit of their process: -LeakAtExit\n";
    assert!(leaks.ends_with(more), "{leaks}");
    assert!(!leaks.contains("0x8 "), "{leaks}");
    assert!(!printed("-Leak -pn server").contains("-LeakAtExit"));
    assert!(!printed("-Leak -ShowTotal None").contains("-LeakAtExit"));
    let at_exit = printed("-LeakAtExit");
    assert!(at_exit.ends_with("Handles closed only by process exit: 2\n"), "{at_exit}");
    let both = document(&trace, "-Leak -LeakAtExit");
    let totals = &both["totals"];
    assert_eq!((&totals["leaked_handles"], &totals["closed_at_exit"]), (&1.into(), &2.into()));
    assert_eq!(both["objects"].as_array().unwrap().len(), 3);
    assert_eq!(document(&trace, "-Leak")["totals"]["closed_at_exit"], 2);
}

#[test]
fn sql_distinguishes_the_classes_of_leaks() {
    let mut trace = trace();
    create(&mut trace, 10 * MS, 800, 1);
    create(&mut trace, 12 * MS, 700, 9);
    close(&mut trace, 50 * MS + 10_000, 800, 1, &SWEEP);
    let query = ".sql SELECT \"end\", process, key FROM handles WHERE leaked OR at_exit ORDER BY \"end\" -csv\n";
    let leaks = run_over(&trace, query).ok().stdout;
    let expected = "end,process,key\nat_exit,tool.exe,0x4\nopen,server.exe,0x24\n";
    assert_eq!(leaks, expected);
    let never_closed = run_over(&trace, ".sql SELECT key, \"end\" FROM leaks -csv\n").ok().stdout;
    assert_eq!(never_closed, "key,end\n0x24,open\n");
}

#[test]
fn with_names_the_stacks_of_closes_at_exit_confirm_them() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let ask = |options: &str| {
        let line = format!(".dump ObjectRef -LeakAtExit {options}");
        let symbols = symbols.to_str().unwrap();
        shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", &line]).ok().stdout
    };
    let confirmed = "Confirmed by their stacks (ExSweepHandleTable, ObKillProcess, PspExitProcess): \
         1 of 1 closes";
    assert!(ask("-ShowStack").lines().any(|line| line == confirmed));
    assert!(!ask("").contains("Confirmed"), "without names nothing is said");
    let document: Value = serde_json::from_str(&ask("-ShowStack -json")).unwrap();
    let stacks = &document["files"][0]["exit_stacks"];
    assert_eq!(*stacks, json!({ "closes": 1, "confirmed": 1, "doubtful": 0 }));
}
