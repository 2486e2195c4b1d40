//! Processes that have exited but are still in memory: they are listed separately, and the processes with handles to
//! them are named.

use std::collections::BTreeMap;

use handlescope_tests::binary::run_over;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value, json};

use crate::real_traces::collect;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const KEY: u64 = 0xffff_8100_0000_1080;
const PROCESS: u16 = 7;

/// Builds a service that keeps two of three workers in memory, one of them by a handle from before the trace. Another
/// program reuses the pid of a worker.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(1234, "service.exe");
    trace.process(700, "editor.exe");
    let ended = trace.process(900, "viewer.exe").command_line("viewer.exe --once");
    let viewer = ended.started(MS).exited(2 * MS, 5).record.key;
    trace.object_type(PROCESS, "Process").object_type(16, "Event");
    for worker in 0..3 {
        trace.zombie(700 + worker, "worker.exe", KEY + u64::from(worker) * 0x1000, -3600 * SECOND);
    }
    trace.zombie(900, "viewer.exe", viewer, 2 * MS);
    trace.module(1234, r"C:\app\service.exe", 0x2000_0000, 0x1_0000);
    trace.handle_rundown_start(1234, KEY, 0x10, PROCESS, "");
    trace.handle_rundown_end(1234, KEY, 0x10, PROCESS, "");
    trace.create_handle(5 * MS, (1234, 1235), KEY + 0x1000, 0x14, PROCESS);
    trace.stack(&[], &[0x2000_0010]);
    trace.handle_rundown_end(1234, KEY + 0x1000, 0x14, PROCESS, "");
    trace.create_handle(6 * MS, (700, 701), KEY + 0x8000, 0x20, 16);
    trace
}

fn text(commands: &str) -> String {
    run_over(&trace(), &format!("{commands}\n")).ok().stdout
}

fn document(command: &str) -> Value {
    Deserializer::from_str(&text(&format!("{command} -json"))).into_iter().next().unwrap().unwrap()
}

/// Returns name and pid of the processes that a command lists.
fn listed(command: &str) -> Vec<String> {
    let document = document(command);
    let processes = document["processes"].as_array().unwrap();
    let label =
        |process: &Value| format!("{}({})", process["name"].as_str().unwrap(), process["pid"]);
    processes.iter().map(label).collect()
}

#[test]
fn zombies_are_listed_by_themselves_the_most_frequent_program_first() {
    assert_eq!(
        listed(".dump Process -Zombie"),
        ["worker.exe(700)", "worker.exe(701)", "worker.exe(702)", "viewer.exe(900)"]
    );
    assert_eq!(
        listed(".dump Process"),
        ["System(4)", "editor.exe(700)", "viewer.exe(900)", "service.exe(1234)"]
    );
    assert_eq!(listed(".dump Process -Zombie -pn viewer"), ["viewer.exe(900)"]);
    assert_eq!(listed(".dump Process -Zombie -NewProcess 1"), ["viewer.exe(900)"]);
    assert_eq!(listed(".dump Process -Zombie -NewProcess 0 -TopN 1"), ["worker.exe(700)"]);
    insta::assert_snapshot!(text(".dump Process -Zombie -TimeFmt s"));
}

#[test]
fn a_zombie_of_the_trace_has_its_start_and_its_command_line() {
    let document = document(".dump Process -Zombie -pn viewer");
    let viewer = &document["processes"][0];
    let values = ["command_line", "start_ns", "end_ns", "exit_code", "has_ended", "is_zombie"];
    let values = values.map(|name| viewer[name].clone());
    assert_eq!(json!(values), json!(["viewer.exe --once", MS, 2 * MS, 5, true, true]));
}

#[test]
fn a_zombie_from_before_the_trace_ended_before_it() {
    let document = document(".dump Process -Zombie -pn 701");
    let worker = &document["processes"][0];
    let values = ["start_ns", "end_ns", "has_ended", "is_zombie"].map(|name| worker[name].clone());
    assert_eq!(json!(values), json!([null, -3600 * SECOND, false, true]));
}

#[test]
fn a_zombie_owns_no_events_of_its_pid() {
    let text = text(".dump ObjectRef -Type Event");
    assert!(text.contains("editor.exe") && !text.contains("worker.exe"), "{text}");
}

#[test]
fn stats_and_why_count_zombies_and_why_says_who_keeps_them() {
    let line = "4 ended processes are still in memory: 3 worker.exe, 1 viewer.exe; .dump Process -Zombie lists them";
    let (why, stats) = (text(".why"), text(".dump Stats"));
    assert!(why.contains(line) && stats.contains(line), "{why}{stats}");
    let kept = "2 ended processes are kept in memory by open handles: 2 of service.exe(1234), opened by service";
    assert!(why.contains(kept), "{why}");
    assert_eq!(document(".dump Stats")["files"][0]["zombies"], 4);
    let document = document(".why");
    let zombies = &document["zombies"][0];
    assert_eq!(zombies["programs"], json!([["worker.exe", 3], ["viewer.exe", 1]]));
    assert_eq!((&zombies["count"], &zombies["held"]), (&json!(4), &json!(2)));
    let holder = &zombies["holders"][0];
    assert_eq!(holder["process"], "service.exe(1234)");
    assert_eq!((&holder["zombies"], &holder["handles"]), (&json!(2), &json!(2)));
    assert!(document["stacks"][holder["create_stack"].to_string()].is_array(), "{document}");
}

#[test]
fn why_of_a_process_counts_the_zombies_that_it_keeps_or_is() {
    let count = |processes: &str| {
        let document = document(&format!(".why -pn {processes}"));
        document["zombies"].as_array().map(|rows| json!([rows[0]["count"], rows[0]["held"]]))
    };
    assert_eq!(count("service"), Some(json!([2, 2])));
    assert_eq!(count("viewer"), Some(json!([1, 0])));
    let editor = text(".why -pn editor");
    assert!(!editor.contains("in memory"), "{editor}");
}

/// A service that started workers in the trace, which have ended: it has handles to two of them, one of them twice.
fn trace_of_ended() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(1234, "service.exe");
    trace.process(1300, "helper.exe").ended(80 * MS).unswept();
    for worker in 0..4 {
        let process = trace.process(900 + worker, "worker.exe");
        process.parent(1234).started((10 + i64::from(worker)) * MS);
        process.exited((20 + i64::from(worker)) * MS, 7).key(KEY + u64::from(worker) * 0x1000);
    }
    trace.object_type(PROCESS, "Process");
    let opened = [(1234, 0, 0x10), (1234, 0, 0x14), (1234, 1, 0x18), (1234, 2, 0x1c)];
    for (at, (pid, worker, handle)) in (30..).zip(opened) {
        trace.create_handle(at * MS, (pid, pid + 1), KEY + worker * 0x1000, handle, PROCESS);
    }
    trace.close_handle(40 * MS, (1234, 1235), KEY + 0x2000, 0x1c, PROCESS, "");
    // It has ended without a sweep, and has no handles any more.
    trace.create_handle(41 * MS, (1300, 1301), KEY + 0x3000, 0x20, PROCESS);
    trace
}

#[test]
fn an_ended_process_to_which_a_handle_is_open_is_a_zombie_without_being_listed() {
    let run = |command: &str| run_over(&trace_of_ended(), &format!("{command}\n")).ok().stdout;
    let zombies = run(".dump Process -Zombie -json");
    let document: Value = Deserializer::from_str(&zombies).into_iter().next().unwrap().unwrap();
    let pids: Vec<&Value> =
        document["processes"].as_array().unwrap().iter().map(|it| &it["pid"]).collect();
    assert_eq!(json!(pids), json!([900, 901]));
    assert_eq!(document["processes"][0]["exit_code"], 7);
    let (why, stats) = (run(".why"), run(".dump Stats"));
    let line =
        "2 ended processes are still in memory: 2 worker.exe; .dump Process -Zombie lists them";
    assert!(why.contains(line) && stats.contains(line), "{why}{stats}");
    assert!(
        why.contains(
            "2 ended processes are kept in memory by open handles: 2 of service.exe(1234)"
        ),
        "{why}"
    );
}

#[test]
fn a_zombie_of_the_rundown_at_the_start_is_none_if_that_at_the_end_lists_others() {
    let mut trace = trace();
    trace.config.start_rundown = true;
    trace.freed_zombie(800, "freed.exe", KEY + 0x20_000, -60 * SECOND);
    let command = ".dump Process -Zombie -pn freed\n";
    let run = run_over(&trace, command).ok();
    assert!(!run.stdout.contains("freed.exe(800)") && !run.stdout.contains(" 800 "), "{run:?}");
    let mut trace = TraceBuilder::new();
    trace.config.start_rundown = true;
    trace.process(4, "System");
    trace.freed_zombie(800, "freed.exe", KEY, -60 * SECOND);
    let run = run_over(&trace, command).ok();
    assert!(run.stdout.contains("1 ended process is still in memory: 1 freed.exe"), "{run:?}");
}

#[test]
fn a_trace_without_zombies_says_nothing_of_them() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let run = |command: &str| run_over(&trace, &format!("{command}\n")).ok().stdout;
    let text = run(".why") + &run(".dump Stats");
    assert!(!text.contains("memory:"), "{text}");
    let listed = run(".dump Process -Zombie");
    assert!(listed.contains("no ended process is known to be still in memory"), "{listed}");
}

#[needs_data]
#[test]
fn zombies_of_real_traces_are_all_there() {
    // Version 5 of the event has the exit time.
    for (name, count, has_ends) in [
        ("real/TraceLoggingTester", 126, true),
        ("real/ShutdownPerfDiagLogger", 5, true),
        ("real/net.4.5.2.x64", 2, false),
        ("real/slow-ppt-2011", 1, false),
    ] {
        let (recording, collector) = collect(&SharedTrace::open(name));
        let zombies = &collector.processes.zombies;
        let session = recording.header.start_time..=recording.header.end_time;
        let ended = zombies
            .iter()
            .filter(|zombie| zombie.exit_time.is_some_and(|time| time <= *session.end()));
        assert_eq!(
            (zombies.len(), ended.count()),
            (count, if has_ends { count } else { 0 }),
            "{name}"
        );
    }
    let (_, collector) = collect(&SharedTrace::open("real/TraceLoggingTester"));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for zombie in &collector.processes.zombies {
        *counts.entry(&zombie.process.name).or_default() += 1;
    }
    for (name, count) in [("nvngx_update.exe", 36), ("LogonUI.exe", 27), ("msiexec.exe", 16)] {
        assert_eq!(counts[name], count, "{name}");
    }
}
