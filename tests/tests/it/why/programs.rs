//! Suspects are groups of a program, whichever processes run it.

use std::collections::HashSet;

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::bytes::Guid;
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::{HeapCall, trace_logging};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, MS, OBJECT, USER, asked, close, open, suspects};

const SECOND: i64 = 1_000 * MS;

fn id(suspect: &Value) -> &str {
    suspect["id"].as_str().unwrap()
}

/// Builds two hours in which `worker.exe` runs 40 times for a minute each. In each run it opens three handles that it
/// does not close, at these seconds of its life, and ten that it closes.
fn runs(leaked_at: [i64; 3]) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(900, "quiet.exe");
    trace.object_type(EVENT, "Event");
    for run in 0..40 {
        let (start, pid) = (run * 180 * SECOND, 1_000 + 4 * run as u32);
        trace.process(pid, "worker.exe").started(start).ended(start + 60 * SECOND).unswept();
        let object = |number: i64| OBJECT + (run * 100 + number) as u64 * 0x100;
        for (number, second) in (0..).zip(leaked_at) {
            open(
                &mut trace,
                start + second * SECOND,
                (pid, pid + 1),
                object(number),
                0x10 + 4 * number as u32,
            );
        }
        for number in 10..20 {
            let (at, handle) = (start + number * SECOND, 0x100 + 4 * number as u32);
            open(&mut trace, at, (pid, pid + 1), object(number), handle);
            close(&mut trace, at + 50 * MS, (pid, pid + 1), object(number), handle);
        }
    }
    close(&mut trace, 7_200 * SECOND, (900, 901), OBJECT - 0x100, 0x10);
    trace
}

#[test]
fn runs_of_one_program_are_one_suspect_with_its_processes_below() {
    let trace = runs([12, 31, 47]);
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["process"], &suspect["pid"]), (&json!("worker.exe"), &Value::Null));
    assert_eq!((&suspect["leaked"], &suspect["created"]), (&json!(120), &json!(520)));
    assert_eq!(suspect["verdict"], "steady");
    let evidence = suspect["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("120 leaked in 40 processes (3 per process) over "), "{evidence}");
    let processes = suspect["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 40);
    for process in processes {
        assert_eq!((&process["leaked"], &process["created"]), (&json!(3), &json!(13)));
    }
    let names: HashSet<&str> =
        processes.iter().map(|process| process["process"].as_str().unwrap()).collect();
    assert!(names.len() == 40 && names.contains("worker.exe(1156)"), "{names:?}");

    let text = run_over(&trace, ".why\n").ok().stdout;
    assert!(text.contains("\n1  120 of 520 Event handles leaked   worker.exe\n"), "{text}");
    let processes = "   in 40 processes: worker.exe(1000) 3, worker.exe(1004) 3, worker.exe(1008) 3, \
                     worker.exe(1012) 3, worker.exe(1016) 3, and 35 more\n";
    assert!(text.contains(processes), "{text}");

    let command = suspect["command"].as_str().unwrap();
    assert_eq!(command, format!(".dump ObjectRef -Suspect {} -ShowStack", id(suspect)));
    let shown = run_over(&trace, &format!("{command} -json\n")).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["objects"].as_array().unwrap().len(), 120, "{command}");
}

#[test]
fn by_process_each_run_is_a_suspect() {
    let document = asked(&runs([12, 31, 47]), "-ByProcess");
    assert_eq!(suspects(&document).len(), 40);
    for suspect in suspects(&document) {
        assert_eq!((&suspect["leaked"], &suspect["created"]), (&json!(3), &json!(13)));
        let process = format!("worker.exe({})", suspect["pid"]);
        assert_eq!(suspect["process"], process);
        assert_eq!(suspect["processes"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn handles_kept_from_the_start_of_each_run_are_no_steady_leak() {
    let document = asked(&runs([1, 2, 3]), "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["leaked"], &suspect["verdict"]), (&json!(120), &json!("once")));
}

#[test]
fn a_process_that_is_asked_for_is_a_suspect_by_itself() {
    let trace = runs([12, 31, 47]);
    let document = asked(&trace, "-pn 1000");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["process"], &suspect["leaked"]), (&json!("worker.exe(1000)"), &json!(3)));
    let document = asked(&trace, "-pn 1000;1004");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    assert_eq!((&suspect["process"], &suspect["leaked"]), (&json!("worker.exe"), &json!(6)));
    let command = suspect["command"].as_str().unwrap();
    assert!(command.contains("-RelatedProcess 1000;1004 "), "{command}");
    let shown = run_over(&trace, &format!("{command} -json\n")).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["objects"].as_array().unwrap().len(), 6, "{command}");
    let all = asked(&trace, "-pn worker");
    assert_eq!(id(&suspects(&all)[0]), id(suspect), "it is a part of the same");
    let command = suspects(&all)[0]["command"].as_str().unwrap();
    assert!(!command.contains("-RelatedProcess"), "all of the program: {command}");
}

#[test]
fn hosts_of_services_are_one_program_where_they_host_the_same() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.object_type(EVENT, "Event");
    for (number, (pid, service)) in
        (0..).zip([(700, "-s Dnscache"), (704, "-s Dnscache"), (708, "-s Dhcp"), (712, "")])
    {
        let line = format!(r"C:\Windows\System32\svchost.exe -k NetworkService -p {service}");
        trace.process(pid, "svchost.exe").command_line(if service.is_empty() { "" } else { &line });
        for at in 0..20 {
            let object = OBJECT + (number * 100 + at) * 0x100;
            let handle = 0x10 + 4 * at as u32;
            open(&mut trace, (at as i64 + 1) * 3 * SECOND, (pid, pid + 1), object, handle);
        }
    }
    let document = asked(&trace, "");
    let found: Vec<(&str, &Value)> = suspects(&document)
        .iter()
        .map(|suspect| (suspect["process"].as_str().unwrap(), &suspect["leaked"]))
        .collect();
    assert_eq!(found[0], ("svchost.exe -s Dnscache", &json!(40)), "{found:?}");
    let others: HashSet<&str> = found[1..].iter().map(|(process, _)| *process).collect();
    assert_eq!(others, ["svchost.exe(708)", "svchost.exe(712)"].into(), "what it hosts is unknown");
    let command = suspects(&document)[0]["command"].as_str().unwrap();
    assert!(command.contains(&format!("-Suspect {} ", id(&suspects(&document)[0]))), "{command}");
    let shown = run_over(&trace, &format!("{command} -json\n")).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let owners = shown["objects"].as_array().unwrap().iter().map(|own| &own["creator"]["pid"]);
    assert_eq!(owners.clone().count(), 40, "{command}");
    assert_eq!(owners.map(Value::as_u64).collect::<HashSet<_>>(), [Some(700), Some(704)].into());
}

#[test]
fn allocations_of_several_processes_of_a_program_are_one_suspect() {
    const HEAP: u64 = 0x1_0000;
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    for pid in [700, 704, 708] {
        let name = if pid == 708 { "other.exe" } else { "leaky.exe" };
        trace.process(pid, name);
        for at in 1..=20 {
            let call = HeapCall::Alloc { address: 0x10_0000 * at, size: 64 };
            trace.heap(at as i64 * 3 * SECOND, (pid, pid + 1), HEAP, call).stack(&[], &USER);
        }
    }
    let document = asked(&trace, "");
    let [both, other] = suspects(&document) else { panic!("{document}") };
    assert_eq!(
        (&both["process"], &other["process"]),
        (&json!("leaky.exe"), &json!("other.exe(708)"))
    );
    assert_eq!((&both["leaked"], &both["bytes"]), (&json!(40), &json!(40 * 64)));
    let processes = both["processes"].as_array().unwrap();
    assert!(processes.iter().all(|process| process["leaked"] == 20), "{processes:?}");
    let command = both["command"].as_str().unwrap();
    assert_eq!(command, format!(".dump Resource -Suspect {} -ShowStack", id(both)));
    let shown = run_over(&trace, &format!("{command} -json\n")).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let rows = shown.as_object().unwrap().values().filter_map(Value::as_array).flatten();
    let left: Vec<(&Value, &Value)> = rows
        .filter(|row| row["allocs"].is_u64())
        .map(|row| (&row["process"], &row["leaked"]))
        .collect();
    let (first, second) = (json!("leaky.exe(700)"), json!("leaky.exe(704)"));
    assert_eq!(left, [(&first, &json!(20)), (&second, &json!(20))], "{shown:#}");
    assert_eq!(suspects(&asked(&trace, "-ByProcess")).len(), 3);
}

#[test]
fn a_steady_leak_has_a_rate_by_request_where_requests_are_known() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.object_type(EVENT, "Event");
    for at in 0..100_i64 {
        let ns = (at + 1) * SECOND;
        let stamp = Stamp::new(trace.options().raw(ns), 700, 701);
        let items = trace_logging("Request/Start", b"", "Contoso.Server");
        let provider = Guid::new(0x22222222_0000_0000_0000_000000000002);
        let request = ManifestEvent { provider, stamp, items, ..ManifestEvent::default() };
        trace.raw_event(ns, 0, request.encode());
        if at % 5 == 0 {
            open(&mut trace, ns + MS, (700, 701), OBJECT + at as u64 * 0x100, 0x10 + 4 * at as u32);
        }
    }
    let shell = Shell::new();
    trace.write(shell.path("requests.etl")).unwrap();
    let rate = |options: &[&str]| {
        let _ = shell.run(&[&["extract", "-force", "requests.etl"], options].concat()).ok();
        let run = shell.run(&["why", "requests.json7z", "-json"]).ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let [suspect] = suspects(&document) else { panic!("{document}") };
        assert_eq!(suspect["verdict"], "steady");
        (suspect["rate_per_request"].clone(), suspect["evidence"].as_str().unwrap().to_owned())
    };
    let (rate_by_request, evidence) = rate(&["-events", "all"]);
    // There are 95 requests from the first leaked handle to the last.
    assert_eq!(rate_by_request, json!(20.0 / 95.0));
    assert!(evidence.ends_with(", 0.21 per request of 95"), "{evidence}");
    let (unknown, evidence) = rate(&[]);
    assert_eq!(unknown, Value::Null);
    assert!(!evidence.contains("request"), "{evidence}");
}
