//! Decodes events with the metadata in the published traces, and compares them with the known answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use handlescope_extract::OpenRecording;
use handlescope_extract::etl::{Event, EventId, Guid, Selector};
use handlescope_extract::metadata::{
    Decoder, FieldKind, FieldPlan, Fields, LearnOutcome, MapKind, SchemaId, SchemaSource, line,
};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Selects events that may be decodable, and the metadata to decode them.
struct Decodable;

impl Selector for Decodable {
    fn select(&mut self, event: &Event<'_>) -> bool {
        matches!(event.id, EventId::Classic { .. } | EventId::Manifest { .. })
    }
}

/// Results of decoding the events with one schema.
#[derive(Default)]
struct DecodeResults {
    lines: Vec<String>,
    short: u64,
    bad: u64,
    rest: u64,
}

#[derive(Default)]
struct MetadataReading {
    decoder: Decoder,
    events: BTreeMap<SchemaId, DecodeResults>,
    undecoded: BTreeMap<String, u64>,
    records: [u64; 2],
}

impl MetadataReading {
    fn new(trace: &SharedTrace) -> Self {
        let open = OpenRecording::open(trace.etl()).unwrap();
        let clock = open.recording.clock;
        let mut reading = Self::default();
        let go_on = |_| ControlFlow::Continue(());
        open.read(&mut Decodable, go_on, |event| reading.event(event, clock.ns(event.time)))
            .unwrap();
        reading
    }

    fn event(&mut self, event: &Event<'_>, ns: i64) {
        if self.decoder.learn(event) == LearnOutcome::Taken
            && let EventId::Classic { opcode, .. } = event.id
        {
            self.records[usize::from(opcode == 33)] += 1;
        }
        let Some(decoded) = self.decoder.decode(event) else {
            *self.undecoded.entry(event.id.to_string()).or_default() += 1;
            return;
        };
        let mut text = format!("{ns}|{}|{}|", decoded.schema.provider, decoded.schema.name());
        line(decoded.fields(), &mut text).unwrap();
        let found = self.events.entry(decoded.id).or_default();
        found.short += u64::from(decoded.is_short());
        found.bad += u64::from(decoded.is_bad());
        found.rest += u64::from(decoded.rest() > 0);
        found.lines.push(text);
    }

    /// Returns the events as in the file of expected results: by provider, event, id and version.
    fn events(&self) -> Vec<Value> {
        let mut events: Vec<Value> =
            self.events.iter().map(|(id, found)| self.one(*id, found)).collect();
        events.sort_by_key(order);
        events
    }

    fn one(&self, id: SchemaId, found: &DecodeResults) -> Value {
        let schema = &self.decoder.schemas()[id.row()];
        let source = match schema.source {
            SchemaSource::TraceLogging => "tracelogging",
            SchemaSource::EventInfo => "eventinfo",
            SchemaSource::Manifest => "manifest",
        };
        json!({
            "provider": &*schema.provider, "event": schema.name(), "guid": schema.guid.to_string(),
            "id": schema.id, "version": schema.version, "source": source,
            "fields": names(schema.fields.top_level(), &schema.fields),
            "count": found.lines.len(), "short": found.short, "bad": found.bad, "rest": found.rest,
            "sha256": sha256(found.lines.clone()),
            "first": cut(&found.lines[0]),
        })
    }

    fn all_lines(&self) -> Vec<String> {
        self.events.values().flat_map(|found| found.lines.clone()).collect()
    }
}

/// Cuts a line to the length in the files of expected results.
fn cut(line: &str) -> String {
    let cut: String = line.chars().take(600).collect();
    if cut == line { cut } else { format!("{cut}...") }
}

fn order(event: &Value) -> (String, String, String, u64, u64) {
    let text = |name: &str| event[name].as_str().unwrap().to_owned();
    let number = |name: &str| event[name].as_u64().unwrap();
    (text("provider"), text("event"), text("guid"), number("id"), number("version"))
}

/// Returns the names of fields; a structure's name comes with its members.
fn names(plans: &[FieldPlan], fields: &Fields) -> Vec<String> {
    let name = |plan: &FieldPlan| match plan.kind {
        FieldKind::Value(..) => plan.name.to_string(),
        FieldKind::Structure { first, members } => {
            let members = names(fields.members(first, members), fields).join(",");
            format!("{}{{{members}}}", plan.name)
        }
    };
    plans.iter().map(name).collect()
}

fn sha256(mut lines: Vec<String>) -> String {
    lines.sort_unstable();
    let mut hash = Sha256::new();
    for line in &lines {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn maps(decoder: &Decoder) -> BTreeSet<String> {
    let map = |(guid, name, map): (Guid, &str, &handlescope_extract::metadata::EventMap)| {
        let flag = match map.kind {
            MapKind::Values => 1,
            MapKind::Bits => 2,
            MapKind::Unsupported => 0,
        };
        let (value, text) = &map.entries[0];
        json!({
            "guid": guid.to_string(), "name": name, "flag": flag, "entries": map.entries.len(),
            "first": [value, text],
        })
        .to_string()
    };
    decoder.maps().map(map).collect()
}

#[needs_data]
#[test]
fn real_traces_are_decoded_to_the_last_value() {
    for name in ["TraceLoggingTester", "slow-ppt-2011", "net.4.5.2.x64"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        let expected = read(&trace.file(".events.expected.json"));
        let found = MetadataReading::new(&trace);
        assert_eq!(json!(found.records[0]), expected["event_info_records"], "{name}");
        assert_eq!(json!(found.records[1]), expected["event_map_records"], "{name}");
        let mut known = expected["events"].as_array().unwrap().clone();
        known.sort_by_key(order);
        for (found, known) in found.events().iter().zip(&known) {
            assert_eq!(found, known, "{name}");
        }
        assert_eq!(found.events().len(), known.len(), "{name}");
        assert_eq!(json!(found.undecoded), expected["undecoded"], "{name}");
        let lines = found.all_lines();
        assert_eq!(json!(lines.len()), expected["decoded"], "{name}");
        assert_eq!(json!(sha256(lines)), expected["sha256"], "{name}");
        let known: BTreeSet<String> =
            expected["maps"].as_array().unwrap().iter().map(Value::to_string).collect();
        assert_eq!(maps(&found.decoder), known, "{name}");
    }
}

#[needs_data]
#[test]
fn a_trace_with_all_kinds_of_schemas_is_decoded_to_the_last_value() {
    let trace = SharedTrace::open("synthetic/generic");
    let expected = read(&trace.expected());
    let found = MetadataReading::new(&trace);
    let lines = found.all_lines();
    let known = &expected["resources"];
    for line in known["events_sample"].as_array().unwrap() {
        assert!(lines.iter().any(|found| line == found), "{line}");
    }
    assert_eq!(json!(lines.len()), known["events_decoded"]);
    assert_eq!(json!(sha256(lines)), known["events_sha256"]);
    let sources: BTreeSet<SchemaSource> =
        found.events.keys().map(|id| found.decoder.schemas()[id.row()].source).collect();
    assert_eq!(sources.len(), 3);
}
