//! `.dump ObjectRef -ShowTarget` and `.why`: the processes and threads that handles refer to.

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::dump::{DumpTarget, SampleDump, TraceOperation};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value, json};

const MS: i64 = 1_000_000;
const US: i64 = 1_000;
const SECOND: i64 = 1_000 * MS;
const KEY: u64 = 0xffff_8100_0000_1080;
const PROCESS: u16 = 7;
const THREAD: u16 = 8;
const EVENT: u16 = 16;

/// A service with handles to what it started, to a zombie, to itself, to something unknown and to an event.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(1234, "service.exe").key(KEY + 0x8000);
    let worker = trace.process(900, "worker.exe").parent(1234).started(10 * MS);
    worker.exited(40 * MS, 5).key(KEY);
    // Has the address of the worker after the worker is gone.
    trace.process(901, "later.exe").parent(77).started(60 * MS).key(KEY);
    trace.zombie(700, "old.exe", KEY + 0x1000, -3600 * SECOND).parent = 4;
    trace.thread(1234, 1240).creator(1234, 1235).started(20 * MS).ended(30 * MS);
    // Has the address that threads start with.
    trace.module(1234, r"C:\app\pool.dll", 0x7ff8_bf15_0000, 0x1_0000);
    trace.object_type(PROCESS, "Process").object_type(THREAD, "Thread");
    trace.object_type(EVENT, "Event");
    let caller = (1234, 1235);
    // Before the start event, as by CreateProcess.
    trace.create_handle(10 * MS - 5 * US, caller, KEY, 0x10, PROCESS);
    trace.create_handle(20 * MS - 5 * US, caller, KEY + 0x500, 0x14, THREAD);
    trace.create_handle(25 * MS, caller, KEY + 0x600, 0x18, THREAD);
    trace.close_handle(50 * MS, caller, KEY, 0x10, PROCESS, "");
    trace.create_handle(61 * MS, caller, KEY, 0x1c, PROCESS);
    trace.create_handle(62 * MS, caller, KEY + 0x1000, 0x20, PROCESS);
    trace.create_handle(63 * MS, caller, KEY + 0x8000, 0x24, PROCESS);
    trace.create_handle(64 * MS, caller, KEY + 0x9000, 0x28, PROCESS);
    trace.create_handle(65 * MS, caller, KEY + 0xa000, 0x2c, EVENT);
    trace
}

fn text(commands: &str) -> String {
    run_over(&trace(), &format!("{commands}\n")).ok().stdout
}

fn document(text: &str) -> Value {
    Deserializer::from_str(text).into_iter().next().unwrap().unwrap()
}

#[test]
fn a_listing_has_the_target_of_each_handle_to_a_process_or_thread() {
    insta::assert_snapshot!(text(".dump ObjectRef -ShowTarget -TimeFmt s"));
}

#[test]
fn without_the_option_a_listing_has_no_targets() {
    assert!(!text(".dump ObjectRef").contains("Target:"));
    let document = text(".dump ObjectRef -json");
    assert!(!document.contains("\"target"), "{document}");
    assert!(!text(".dump ObjectRef -csv").contains(";Target"));
    assert!(!text(".dump ObjectRef -ndjson").contains("\"target"));
}

#[test]
fn a_document_has_targets_of_processes_and_threads_only() {
    let document = document(&text(".dump ObjectRef -ShowTarget -json"));
    let objects = document["objects"].as_array().unwrap();
    let of = |name: &str| {
        let found = objects.iter().find(|object| object["target"] == name);
        let object = found.unwrap_or_else(|| panic!("{name}: {document}"));
        let members = ["pid", "tid", "state", "start_ns", "end_ns", "exit_code", "started_by"];
        json!(members.map(|member| object[format!("target_{member}")].clone()))
    };
    assert_eq!(of("worker.exe"), json!([900, null, "ended", 10 * MS, 40 * MS, 5, "service.exe"]));
    assert_eq!(of("later.exe"), json!([901, null, "running", 60 * MS, null, null, null]));
    assert_eq!(of("old.exe"), json!([700, null, "ended", null, -3600 * SECOND, 0, "System"]));
    let thread = objects.iter().find(|object| object["target_tid"] == 1240).unwrap();
    let members = ["target", "target_start_ns", "target_end_ns", "target_started_by_pid"];
    let members = members.map(|member| thread[member].clone());
    assert_eq!(json!(members), json!(["service.exe", 20 * MS, 30 * MS, 1234]));
    assert_eq!(thread["target_function"], "pool.dll+0x21F0");
    let unknown = objects.iter().filter(|object| object.get("target") == Some(&Value::Null));
    assert_eq!(unknown.count(), 2);
    let event = objects.iter().find(|object| object["type"] == "Event").unwrap();
    assert_eq!(event.get("target"), None);
}

#[test]
fn in_a_trace_that_lost_events_a_process_without_an_end_may_have_ended() {
    let mut trace = trace();
    trace.options.events_lost = 3;
    let run = run_over(&trace, ".dump ObjectRef -ShowTarget -Type Process\n").ok();
    assert!(run.stdout.contains("service.exe(1234), start unknown, end unknown"), "{run:?}");
}

#[test]
fn rows_of_files_have_the_columns_of_targets() {
    let csv = text(".dump ObjectRef -ShowTarget -csv -TimeFmt s");
    let header = csv.lines().find(|line| line.contains("CSVOptions")).unwrap();
    assert!(
        header.ends_with(";Target;Target Start;Target End;Target Started By;Target Function"),
        "{header}"
    );
    let worker = ";worker.exe(900);0.010000;0.040000;service.exe(1234)";
    assert!(csv.contains(worker) && csv.contains(";0.060000;running;process 77"), "{csv}");
    let rows = text(".dump ObjectRef -ShowTarget -ndjson");
    let row = rows.lines().find(|line| line.contains("\"target\":\"worker.exe\"")).unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    assert_eq!((&row["target_pid"], &row["target_end_ns"]), (&json!(900), &json!(40 * MS)));
}

#[test]
fn groups_and_totals_have_no_targets_and_say_so() {
    let grouped = ".dump ObjectRef -ShowTarget -GroupBy type\n";
    let run = run_over(&trace(), grouped).ok();
    assert!(run.stderr.contains("-ShowTarget has no effect with"), "{run:?}");
}

#[test]
fn why_lists_the_targets_of_leaked_handles_by_program() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(1234, "service.exe");
    trace.object_type(PROCESS, "Process");
    for worker in 0..12 {
        let start = i64::from(worker) * 10 * MS;
        let key = KEY + 0x1000 * u64::from(worker);
        let process = trace.process(900 + worker, "worker.exe");
        process.parent(1234).started(start + MS).key(key);
        if worker < 9 {
            process.ended(start + 5 * MS);
        }
        let handle = 0x10 + 4 * worker;
        trace.create_handle(start + 2 * MS, (1234, 1235), key, handle, PROCESS);
        trace.stack(&[], &[0x2000_0010]);
    }
    trace.module(1234, r"C:\app\service.exe", 0x2000_0000, 0x1_0000);
    let why = document(&run_over(&trace, ".why -json\n").ok().stdout);
    let diagnoses = why["suspects"][0]["diagnoses"].as_array().unwrap();
    let of_targets = diagnoses.iter().find(|it| it["cause"] == "thread_or_process_handle");
    let text = "9 of 12: still open after the target process ended (12 of worker.exe, started by \
                service.exe(1234), 9 have ended, from 0.005 s to 0.085 s)";
    assert_eq!(of_targets.unwrap()["text"], text, "{why}");
}

/// A program with handles to processes and threads of which some have ended.
fn dump() -> SampleDump {
    let mut dump = SampleDump::default();
    for (handle, pid, tid, exit_code) in [
        (0x4, 42, None, Some(0)),
        (0x8, 42, None, Some(0)),
        (0xc, 43, None, None),
        (0x10, 44, None, Some(-1)),
        (0x14, 44, Some(7), Some(0)),
    ] {
        dump = dump.handle_to(handle, DumpTarget { pid, tid, exit_code });
    }
    dump.operation(TraceOperation::Open, 0x10, &[0x10])
}

#[test]
fn a_dump_says_which_processes_its_handles_keep_in_memory() {
    for pointer_size in [dump().pointer_size, handlescope_tests::bytes::PointerSize::Four] {
        let shell = Shell::new();
        std::fs::write(shell.path("a.dmp"), SampleDump { pointer_size, ..dump() }.to_bytes())
            .unwrap();
        let listed = shell.run(&["a.dmp", "-c", ".dump ObjectRef -ShowTarget"]).ok().stdout;
        assert!(listed.contains("Target: process 42, start unknown, ended with 0"), "{listed}");
        assert!(listed.contains("Target: process 43, start unknown, still running"), "{listed}");
        let thread = "Target: thread 7 of process 44, start unknown, ended";
        assert!(listed.contains(thread), "{listed}");
        let why = shell.run(&["why", "a.dmp"]).stdout;
        assert!(why.contains("2 ended processes are still in memory: 2 of unknown name"), "{why}");
        assert!(
            why.contains("2 ended processes are kept in memory by open handles: 2 of "),
            "{why}"
        );
        let zombies = shell.run(&["a.dmp", "-c", ".dump Process -Zombie -json"]).ok().stdout;
        let zombies = document(&zombies);
        let zombies: Vec<_> = zombies["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (&it["pid"], &it["exit_code"]))
            .collect();
        assert_eq!(json!(zombies), json!([[42, 0], [44, -1]]));
    }
}
