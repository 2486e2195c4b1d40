//! `.dump Events`: what a trace holds, by provider and event, named by its own metadata.

use handlescope_tests::binary::{Run, run_over};
use handlescope_tests::bytes::{Bytes, Guid, PointerSize};
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::{EventInfo, manifest_chunks, trace_logging};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const INFO: Guid = Guid::new(0x11111111_0000_0000_0000_000000000001);
const LOGGING: Guid = Guid::new(0x22222222_0000_0000_0000_000000000002);
const SOURCE: Guid = Guid::new(0x33333333_0000_0000_0000_000000000003);
const NOBODY: Guid = Guid::new(0x44444444_0000_0000_0000_000000000004);

const MANIFEST: &str = r#"<m><provider name="My-Source"><events>
    <event value="3" version="0" task="Work" opcode="win:Start" template="WorkArgs"/></events>
    <templates><template tid="WorkArgs"><data name="Item" inType="win:UInt32"/></template></templates>
    </provider></m>"#;

const MS: i64 = 1_000_000;

/// A manifest event of process 700, at so many milliseconds.
fn event(trace: &TraceBuilder, ms: i64, provider: Guid, id: u16) -> ManifestEvent {
    let stamp = Stamp::new(trace.options().raw(ms * MS), 700, 701);
    ManifestEvent { provider, id, stamp, ..ManifestEvent::default() }
}

/// A trace with events of every source of names, and one without.
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
    };
    let stamp = Stamp::new(trace.options().raw(10 * MS), 700, 701);
    trace.raw_event(10 * MS, 0, info.event(PointerSize::Eight, stamp));
    for ms in [10, 30] {
        let payload = Bytes::new().u64(0xAB).i64(-5).utf16z("a \"b\"").into_vec();
        let own = event(&trace, ms, INFO, 7);
        trace.raw_event(ms * MS, 0, ManifestEvent { payload, ..own }.encode());
    }
    for (ms, name) in [(11, "Go"), (12, "Stop"), (13, "Go")] {
        let items = trace_logging(name, b"n\0\x48", "Contoso.Logging");
        let payload = Bytes::new().u16(2).u32(1).u32(2).into_vec();
        let own = event(&trace, ms, LOGGING, 0);
        trace.raw_event(ms * MS, 0, ManifestEvent { items, payload, ..own }.encode());
    }
    let stamp = Stamp::new(trace.options().raw(14 * MS), 700, 701);
    for chunk in manifest_chunks(SOURCE, MANIFEST, 100, stamp) {
        trace.raw_event(14 * MS, 0, chunk);
    }
    let own = event(&trace, 15, SOURCE, 3);
    let payload = Bytes::new().u32(77).into_vec();
    trace.raw_event(15 * MS, 0, ManifestEvent { payload, ..own }.encode());
    let own = event(&trace, 16, NOBODY, 9);
    trace.raw_event(16 * MS, 0, own.encode());
    trace
}

fn ask(command: &str) -> String {
    run_over(&trace(), &format!("{command}\n")).ok().stdout
}

fn document(command: &str) -> Value {
    serde_json::from_str(&ask(command)).expect("a document")
}

/// Provider, event and count of every row.
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
    let info = &document["providers"].as_array().unwrap().iter();
    let mut info = info.clone().filter(|provider| provider["guid"] == INFO.to_string());
    let acquire = &info.next().unwrap()["events"][0];
    assert_eq!((&acquire["first_ns"], &acquire["last_ns"]), (&json!(10 * MS), &json!(30 * MS)));
}

#[test]
fn what_nothing_names_goes_by_guid_and_id() {
    let text = ask(".dump Events -Provider 4444*");
    assert!(text.contains(&format!("1  {NOBODY}  9 ")), "{text}");
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
        provider: NOBODY,
        provider_name: "Nobody".into(),
        id: 9,
        task: "Lie".into(),
        fields: vec![("a".into(), 8)],
    };
    // No in-type has this number.
    info.fields[0].1 = 999;
    trace.raw_event(20 * MS, 0, info.event(PointerSize::Eight, stamp));
    let bomb = format!("<!DOCTYPE a [<!ENTITY a \"&b;&b;\">]>{}", "<a>".repeat(5000));
    for chunk in manifest_chunks(NOBODY, &bomb, 8000, stamp) {
        trace.raw_event(20 * MS, 0, chunk);
    }
    let Run { stdout, .. } = run_over(&trace, ".dump Stats\n.dump Events -Provider 4444*\n").ok();
    let warning = "metadata of events that cannot be read, left out";
    assert!(stdout.contains(warning), "{stdout}");
    assert!(!stdout.contains("Nobody"), "{stdout}");
}
