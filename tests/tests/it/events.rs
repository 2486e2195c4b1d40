//! `.dump Events`: the events in a trace, by provider and event, with names from the trace's own metadata.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell, run_over, sample_trace};
use handlescope_tests::bytes::{ByteString, Guid, PointerSize};
use handlescope_tests::header::{ExtendedItem, ManifestEvent, Stamp};
use handlescope_tests::payload::{EventInfo, manifest_chunks, trace_logging};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const INFO: Guid = Guid::new(0x11111111_0000_0000_0000_000000000001);
const LOGGING: Guid = Guid::new(0x22222222_0000_0000_0000_000000000002);
const SOURCE: Guid = Guid::new(0x33333333_0000_0000_0000_000000000003);
const UNNAMED: Guid = Guid::new(0x44444444_0000_0000_0000_000000000004);

const MANIFEST: &str = r#"<m><provider name="My-Source"><events>
    <event value="3" version="0" task="Work" opcode="win:Start" template="WorkArgs"/></events>
    <templates><template tid="WorkArgs"><data name="Item" inType="win:UInt32"/></template></templates>
    </provider></m>"#;

const MS: i64 = 1_000_000;

/// Returns a manifest event of process 700 at this many milliseconds.
fn event(trace: &TraceBuilder, ms: i64, provider: Guid, id: u16) -> ManifestEvent {
    let stamp = Stamp::new(trace.options().raw(ms * MS), 700, 701);
    ManifestEvent { provider, id, stamp, ..ManifestEvent::default() }
}

/// Builds a trace with events for every source of names, and one without any.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app.exe");
    let info = EventInfo {
        provider: INFO,
        provider_name: "Contoso-Info".into(),
        id: 7,
        task: "Acquire".into(),
        fields: vec![("Handle".into(), 16), ("Size".into(), 9), ("Name".into(), 1)],
        ..EventInfo::default()
    };
    let stamp = Stamp::new(trace.options().raw(10 * MS), 700, 701);
    trace.raw_event(10 * MS, 0, info.event(PointerSize::Eight, stamp));
    for ms in [10, 30] {
        let payload = ByteString::new().u64(0xAB).i64(-5).utf16z("a \"b\"").into_vec();
        let own = event(&trace, ms, INFO, 7);
        trace.raw_event(ms * MS, 0, ManifestEvent { payload, ..own }.encode());
    }
    for (ms, name) in [(11, "Go"), (12, "Stop"), (13, "Go")] {
        let items = trace_logging(name, b"n\0\x48", "Contoso.Logging");
        let payload = ByteString::new().u16(2).u32(1).u32(2).into_vec();
        let own = event(&trace, ms, LOGGING, 0);
        trace.raw_event(ms * MS, 0, ManifestEvent { items, payload, ..own }.encode());
    }
    let stamp = Stamp::new(trace.options().raw(14 * MS), 700, 701);
    for chunk in manifest_chunks(SOURCE, MANIFEST, 100, stamp) {
        trace.raw_event(14 * MS, 0, chunk);
    }
    let own = event(&trace, 15, SOURCE, 3);
    let payload = ByteString::new().u32(77).into_vec();
    trace.raw_event(15 * MS, 0, ManifestEvent { payload, ..own }.encode());
    let own = event(&trace, 16, UNNAMED, 9);
    trace.raw_event(16 * MS, 0, own.encode());
    trace
}

fn ask(command: &str) -> String {
    run_over(&trace(), &format!("{command}\n")).ok().stdout
}

fn document(command: &str) -> Value {
    serde_json::from_str(&ask(command)).expect("a document")
}

/// Returns provider, event and count of every row.
fn rows(document: &Value) -> Vec<(Value, Value, u64)> {
    let providers = document["providers"].as_array().unwrap().iter();
    let of = |provider: &Value| {
        let events = provider["events"].as_array().unwrap().iter();
        let row = |event: &Value| {
            (provider["provider"].clone(), event["name"].clone(), event["count"].as_u64().unwrap())
        };
        events.map(row).collect::<Vec<_>>()
    };
    providers.flat_map(of).collect()
}

#[test]
fn events_are_counted_by_provider_and_by_their_names_in_the_metadata() {
    let document = document(".dump Events -json -Provider !*kernel*");
    assert_eq!(document["kind"], "Events");
    let row = |provider: &str, name: &str, count| (json!(provider), json!(name), count);
    let found = rows(&document);
    for expected in [
        row("Contoso-Info", "Acquire", 2),
        row("Contoso.Logging", "Go", 2),
        row("Contoso.Logging", "Stop", 1),
        row("My-Source", "ManifestData", 3),
        row("My-Source", "Work/win:Start", 1),
        (Value::Null, Value::Null, 1),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    let mut info = document["providers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|provider| provider["guid"] == INFO.to_string());
    let acquire = &info.next().unwrap()["events"][0];
    assert_eq!((&acquire["first_ns"], &acquire["last_ns"]), (&json!(10 * MS), &json!(30 * MS)));
}

#[test]
fn unnamed_events_go_by_guid_and_id() {
    let text = ask(".dump Events -Provider 4444*");
    assert!(text.contains(&format!("1  {UNNAMED}  9 ")), "{text}");
    let of_id = rows(&document(".dump Events -Event 9 -json"));
    assert_eq!(of_id, [(Value::Null, Value::Null, 1)]);
}

#[test]
fn filters_choose_providers_and_events() {
    let found = rows(&document(".dump Events -Provider Contoso* -Event !stop -json"));
    let names: Vec<&str> = found.iter().map(|(_, name, _)| name.as_str().unwrap()).collect();
    assert_eq!(names, ["Acquire", "Go"]);
    let kernel = rows(&document(".dump Events -Provider *kernel* -Event hook:0303 -json"));
    assert!(kernel.is_empty() || kernel[0].1 == "ProcessDCStart", "{kernel:?}");
}

#[test]
fn counts_are_rows_of_a_table() {
    let sql = ".sql SELECT name, count, first_ns, last_ns FROM event_counts \
               WHERE provider = 'Contoso.Logging' ORDER BY name -json";
    let rows = document(sql)["rows"].clone();
    let row = |name: &str, count: u64, first: i64, last: i64| json!({ "name": name, "count": count, "first_ns": first * MS, "last_ns": last * MS });
    assert_eq!(rows, json!([row("Go", 2, 11, 13), row("Stop", 1, 12, 12)]));
}

#[test]
fn metadata_that_lies_is_left_out_and_counted() {
    let mut trace = trace();
    let stamp = Stamp::new(trace.options().raw(20 * MS), 700, 701);
    let mut info = EventInfo {
        provider: UNNAMED,
        provider_name: "Unnamed".into(),
        id: 9,
        task: "Lie".into(),
        fields: vec![("a".into(), 8)],
        ..EventInfo::default()
    };
    // There is no in-type with this number.
    info.fields[0].1 = 999;
    trace.raw_event(20 * MS, 0, info.event(PointerSize::Eight, stamp));
    let bomb = format!("<!DOCTYPE a [<!ENTITY a \"&b;&b;\">]>{}", "<a>".repeat(5000));
    for chunk in manifest_chunks(UNNAMED, &bomb, 8000, stamp) {
        trace.raw_event(20 * MS, 0, chunk);
    }
    let ProgramRun { stdout, .. } =
        run_over(&trace, ".dump Stats\n.dump Events -Provider 4444*\n").ok();
    let warning = "unreadable event descriptions, skipped";
    assert!(stdout.contains(warning), "{stdout}");
    assert!(!stdout.contains("Unnamed"), "{stdout}");
}

/// Extracts the trace with `-events`, and runs a command on it.
fn ask_of_kept(choice: &str, command: &str) -> ProgramRun {
    let shell = Shell::new();
    trace().write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["extract", "a.etl", "-events", choice, "-outdir", "out"]).ok();
    shell.run(&["out/a.json7z", "-c", command]).ok()
}

fn events_of_kept(choice: &str, command: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ask_of_kept(choice, command).stdout).unwrap();
    assert_eq!(document["kind"], "Events");
    document["events"].as_array().unwrap().clone()
}

#[test]
fn events_of_providers_that_are_asked_for_are_kept_with_typed_fields() {
    let events = events_of_kept("contoso-info;My-Source", ".dump Events -ShowFields -json");
    let acquire = |ms: i64| {
        json!({
            "file": 0, "time_ns": ms * MS, "pid": 700, "tid": 701, "process": "app.exe",
            "provider": "Contoso-Info", "name": "Acquire", "kind": format!("manifest:{INFO}:7"),
            "is_short": false, "fields": { "Handle": "0xAB", "Size": -5, "Name": "a \"b\"" },
            "stack": null,
        })
    };
    assert_eq!(events.len(), 3);
    assert_eq!(events[0], acquire(10));
    assert_eq!(events[1]["name"], "Work/win:Start");
    assert_eq!(events[1]["fields"], json!({ "Item": 77 }));
    assert_eq!(events[2], acquire(30));
}

#[test]
fn a_provider_may_be_named_by_its_guid_and_all_means_every_one_that_can_be_decoded() {
    let by_guid = events_of_kept(&LOGGING.to_string(), ".dump Events -ShowFields -json");
    assert_eq!(by_guid.len(), 3);
    assert_eq!(by_guid[0]["fields"], json!({ "n": [1, 2] }), "an array is a list");
    let all = events_of_kept("all", ".dump Events -ShowFields -json");
    assert_eq!(all.len(), 6, "{all:?}");
}

#[test]
fn single_events_are_chosen_by_time_process_and_name() {
    let count = |options: &str| {
        events_of_kept("all", &format!(".dump Events -ShowFields -json {options}")).len()
    };
    assert_eq!(count("-MinMaxTime 11ms 13ms"), 3);
    assert_eq!(count("-Event Go"), 2);
    assert_eq!(count("-pn app"), 6);
    assert_eq!(count("-pn !app"), 0);
    assert_eq!(count("-TopN 2"), 2);
    let counted = ask_of_kept("all", ".dump Events -MinMaxTime 11ms 12ms -json").stdout;
    let row = |name: &str| (json!("Contoso.Logging"), json!(name), 1);
    assert_eq!(rows(&serde_json::from_str(&counted).unwrap()), [row("Go"), row("Stop")]);
}

#[test]
fn counts_of_single_events_are_of_those_that_the_extract_keeps() {
    let of_all = ask_of_kept("contoso-info;My-Source", ".dump Events").stdout;
    let all: u64 = rows(&document(".dump Events -json")).iter().map(|row| row.2).sum();
    let line = of_all.lines().last().unwrap();
    assert!(line.starts_with(&format!("{all} of {all} events of the source, ")), "{of_all}");
    for (options, passed) in [("-pn app", 3), ("-MinMaxTime 11ms 30ms", 2)] {
        let kept = ask_of_kept("contoso-info;My-Source", &format!(".dump Events {options}")).stdout;
        let line = kept.lines().last().unwrap();
        let said = format!("{passed} of 3 events that the extract keeps, ");
        assert!(line.starts_with(&said), "{options}: {kept}");
    }
}

#[test]
fn values_are_columns_of_their_types() {
    let sql = ".sql SELECT f.name, v.item, v.signed, v.unsigned, v.text FROM event_values v \
               JOIN event_fields f ON f.row = v.field JOIN provider_events e ON e.row = v.event \
               WHERE e.time_ns < 12000000 ORDER BY v.row -json";
    let document: Value = serde_json::from_str(&ask_of_kept("all", sql).stdout).unwrap();
    let row = |name: &str, item: Value, signed: Value, unsigned: Value, text: Value| json!({ "name": name, "item": item, "signed": signed, "unsigned": unsigned, "text": text });
    let null = || Value::Null;
    let expected = json!([
        row("Handle", null(), null(), json!(0xAB), null()),
        row("Size", null(), json!(-5), null(), null()),
        row("Name", null(), null(), null(), json!("a \"b\"")),
        row("n", json!(0), null(), json!(1), null()),
        row("n", json!(1), null(), json!(2), null()),
    ]);
    assert_eq!(document["rows"], expected);
    let sql = ".sql SELECT field AS name, item, signed, unsigned, text FROM provider_values \
               WHERE time_ns < 12000000 -json";
    let joined: Value = serde_json::from_str(&ask_of_kept("all", sql).stdout).unwrap();
    assert_eq!(joined["rows"], expected);
    let sql =
        ".sql SELECT DISTINCT process, pid, event FROM provider_values WHERE field = 'Size' -json";
    let owners: Value = serde_json::from_str(&ask_of_kept("all", sql).stdout).unwrap();
    assert_eq!(owners["rows"][0]["process"], "app.exe", "{owners}");
}

#[test]
fn an_event_has_the_stack_that_it_carries() {
    let mut trace = trace();
    trace.module(700, r"C:\app.exe", 0x7FF6_0000_0000, 0x1_0000);
    let items = [
        trace_logging("Go", b"", "Contoso.Logging"),
        vec![ExtendedItem::stack64(&[0x7FF6_0000_1000, 0x7FF6_0000_2000])],
    ];
    let own = event(&trace, 40, LOGGING, 0);
    trace.raw_event(40 * MS, 0, ManifestEvent { items: items.concat(), ..own }.encode());
    let shell = Shell::new();
    trace.write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["extract", "a.etl", "-events", "all", "-outdir", "out"]).ok();
    let command = ".dump Events -Stack -MinMaxTime 40ms 40ms";
    let run = shell.run(&["out/a.json7z", "-c", &format!("{command} -json")]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let frames = &document["events"][0]["frames"];
    assert_eq!(frames, &json!(["app.exe+0x1000", "app.exe+0x2000"]));
    let text = shell.run(&["out/a.json7z", "-c", command]).ok().stdout;
    assert!(text.contains("Contoso.Logging/Go") && text.contains("app.exe+0x2000"), "{text}");
}

#[test]
fn without_single_events_the_answer_says_how_to_keep_them() {
    let run = run_over(&trace(), ".dump Events -ShowFields\n.dump Events -pn app\n").ok();
    let note =
        "the extract has no single events; extract again with -events PROVIDER, or -events all";
    assert_eq!(run.stderr.matches(note).count(), 2, "{}", run.stderr);
}

#[test]
fn a_manifest_that_comes_after_its_events_names_them_too() {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    let own = event(&trace, 5, SOURCE, 3);
    let payload = ByteString::new().u32(78).into_vec();
    trace.raw_event(5 * MS, 0, ManifestEvent { payload, ..own }.encode());
    let stamp = Stamp::new(trace.options().raw(14 * MS), 700, 701);
    for chunk in manifest_chunks(SOURCE, MANIFEST, 100, stamp) {
        trace.raw_event(14 * MS, 0, chunk);
    }
    let shell = Shell::new();
    trace.write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["extract", "a.etl", "-events", "my-source", "-outdir", "out"]).ok();
    let run = shell.run(&["out/a.json7z", "-c", ".dump Events -ShowFields -json"]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["events"][0]["fields"], json!({ "Item": 78 }));
}

#[test]
fn a_redacted_copy_has_the_counts_without_the_names() {
    let shell = Shell::new();
    trace().write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["redact", "a.etl"]).ok();
    let run = shell.run(&["a.redacted.etl", "-c", ".dump Events -Provider !*kernel* -json"]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let names = ["Acquire", "Go", "Stop", "Work/win:Start"];
    let found = rows(&document);
    assert!(found.iter().all(|(_, name, _)| names.iter().all(|own| name != own)), "{found:?}");
    assert!(found.contains(&(Value::Null, Value::Null, 3)), "those of TraceLogging: {found:?}");
    let warning = "metadata of events that cannot be read";
    assert!(!run.stderr.contains(warning), "{}", run.stderr);
}

#[test]
fn a_filter_that_no_trace_matches_is_reported_and_fails() {
    let shell = Shell::new();
    fs::copy(sample_trace(), shell.path("leaky.etl")).unwrap();
    for (option, value, message) in [
        (
            "-events",
            "NoSuchProvider",
            "-events: no trace has an event of a provider NoSuchProvider; ",
        ),
        ("-events", "Windows Kernle", "did you mean Windows Kernel?"),
        (
            "-resource",
            "NoSuch/Open acquire",
            "-resource: no trace has an event of a provider NoSuch; ",
        ),
        ("-resource", "*/NoSuch acquire", "-resource: no trace has an event NoSuch of *"),
    ] {
        let run = shell.run(&["extract", "leaky.etl", option, value]);
        assert_eq!(run.status, Some(1), "{value}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert!(shell.path("Extract/leaky.json7z").is_file());
    }
}
