//! The published synthetic traces: every query gives its known answer, through the program's JSON. The answer is the
//! same from the trace, from ETWAnalyzer's extract of it, and from what handlescope writes for ETWAnalyzer.

use std::collections::BTreeMap;

use handlescope_tests::binary::{ProgramRun, handlescope, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::foreign::{json_members, pack};
use handlescope_tests::needs_data;
use serde_json::{Deserializer, Value};
use sha1::{Digest, Sha1};
use tempfile::TempDir;

const TRACES: [&str; 6] =
    ["eventleak", "threadleak", "registry", "objectref", "filemap", "duplicates"];

/// The same and a large one, for which not every object is known.
const WITH_GROWTH: [&str; 7] =
    ["eventleak", "threadleak", "registry", "objectref", "filemap", "duplicates", "growth"];

/// The kind of file to query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueriedFile {
    Trace,
    /// ETWAnalyzer's extract of the trace, without symbols: it contains the names.
    Extract,
    /// The extract that handlescope writes for ETWAnalyzer, without the tables beside it.
    Written,
    /// Like `Written`, but also without the tables inside it, so that only ETWAnalyzer's format is left.
    Bare,
}

impl QueriedFile {
    fn file(self) -> &'static str {
        match self {
            Self::Trace => "trace.etl",
            Self::Extract => "extract.json7z",
            Self::Written => "written.json7z",
            Self::Bare => "bare.json7z",
        }
    }
}

/// A trace, its known answers and a folder to work in.
struct TraceCase {
    trace: SharedTrace,
    expected: Value,
    pdbs: TempDir,
    home: TempDir,
}

impl TraceCase {
    fn open(name: &str) -> Self {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let expected = std::fs::read_to_string(trace.expected()).unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::copy(trace.etl(), home.path().join(QueriedFile::Trace.file())).unwrap();
        std::fs::copy(trace.file(".json7z"), home.path().join(QueriedFile::Extract.file()))
            .unwrap();
        let expected = serde_json::from_str(&expected).unwrap();
        let case = Self { pdbs: trace.pdbs(), trace, expected, home };
        case.write_for_etwanalyzer();
        case
    }

    fn write_for_etwanalyzer(&self) {
        let home = self.home.path();
        let mut command = handlescope(home);
        command.args([
            "extract",
            "--etwanalyzer",
            QueriedFile::Trace.file(),
            "-o",
            "both",
            "-symFolder",
        ]);
        let _ = ProgramRun::from(command.arg(self.pdbs.path()).output().unwrap()).ok();
        let members = json_members(&home.join("both/trace.json7z"));
        assert_eq!(members.len(), 4);
        pack(&home.join(QueriedFile::Written.file()), &members);
        let bare = members.into_iter().map(|(name, content)| {
            let mut part: Value = serde_json::from_slice(&content).unwrap();
            part.as_object_mut().unwrap().remove("Handlescope");
            (name, serde_json::to_vec(&part).unwrap())
        });
        pack(&home.join(QueriedFile::Bare.file()), &bare.collect::<Vec<_>>());
    }

    /// Runs a script on the trace or its extract and returns the JSON documents it prints.
    fn documents(&self, asked: QueriedFile, script: &str) -> Vec<Value> {
        let mut command = handlescope(self.home.path());
        if asked == QueriedFile::Trace {
            command.arg("--symbol-path").arg(self.pdbs.path());
        }
        command.arg(asked.file());
        let run = run_script(&mut command, script).ok();
        Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect()
    }
}

fn for_each_case(check: impl Fn(&str, &TraceCase, QueriedFile)) {
    for_each_case_of(&TRACES, check);
}

fn for_each_case_of(names: &[&str], check: impl Fn(&str, &TraceCase, QueriedFile)) {
    for name in names {
        let case = TraceCase::open(name);
        for asked in
            [QueriedFile::Trace, QueriedFile::Extract, QueriedFile::Written, QueriedFile::Bare]
        {
            check(&format!("{name} {}", asked.file()), &case, asked);
        }
    }
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the texts that `objects_digest` is computed from, by object id: `pointer:first_create_ns`, with -1 if it was
/// never created. The creation is the one in the unfiltered object.
fn digest_texts(unfiltered: &Value) -> BTreeMap<u64, String> {
    let text = |object: &Value| {
        let pointer = object["pointer"].as_str().unwrap().trim_start_matches("0x").to_lowercase();
        let first = |kinds: &[&str]| {
            let of_kind = |event: &&Value| kinds.contains(&event["kind"].as_str().unwrap());
            list(object, "events").iter().find(of_kind).map(|event| event["time_ns"].clone())
        };
        let created = first(&["object_create"])
            .or_else(|| first(&["handle_create", "map"]))
            .or_else(|| first(&["handle_duplicate"]))
            .unwrap_or(Value::from(-1));
        (object["id"].as_u64().unwrap(), format!("{pointer}:{created}"))
    };
    list(unfiltered, "objects").iter().map(text).collect()
}

fn digest(ids: &[u64], texts: &BTreeMap<u64, String>) -> String {
    let text = ids.iter().map(|id| texts[id].as_str()).collect::<Vec<_>>().join(",");
    Sha1::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn leaked_by_process(objects: &[Value]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in objects.iter().flat_map(|object| list(object, "events")) {
        if event["leaked"] == true {
            let process = format!("{}({})", event["process"].as_str().unwrap(), event["pid"]);
            *counts.entry(process).or_insert(0) += 1;
        }
    }
    counts
}

/// Formats a frame as in the known answers.
fn frame_text(frame: &Value) -> String {
    match (frame["module"].as_str(), frame["function"].as_str()) {
        (Some(module), Some(function)) => format!("{module}!{function}"),
        (Some(module), None) => format!("{module}+{}", frame["rva"].as_str().unwrap()),
        _ => "<UnknownMethod>".to_owned(),
    }
}

fn check_query(what: &str, query: &Value, document: &Value, texts: &BTreeMap<u64, String>) {
    let objects = list(document, "objects");
    for (member, value) in query["totals"].as_object().unwrap() {
        assert_eq!(&document["totals"][member], value, "{what}: totals.{member}");
    }
    if let Some(leaked) = query.get("leaked_count") {
        assert_eq!(&document["totals"]["leaked_handles"], leaked, "{what}: leaked handles");
    }
    if let Some(rows) = query.get("rows") {
        check_rows(what, query, rows, &document["not_closed"]);
        assert!(objects.is_empty(), "{what}: objects beside totals");
        return;
    }
    assert_eq!(query["object_count"], objects.len(), "{what}: object count");
    let mut ids: Vec<_> = objects.iter().map(|o| o["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    if let Some(known) = query.get("object_ids") {
        assert_eq!(known, &Value::from(ids.clone()), "{what}: ids");
    }
    assert_eq!(query["objects_digest"], digest(&ids, texts), "{what}: digest");
    if let Some(known) = query.get("leaked_by_process") {
        let found = serde_json::to_value(leaked_by_process(objects)).unwrap();
        assert_eq!(known, &found, "{what}: leaks by process");
    }
}

/// Compares rows without regard to order, because rows with equal counts have no defined order.
fn check_rows(what: &str, query: &Value, rows: &Value, found: &Value) {
    let sorted = |rows: &Value| {
        let mut rows: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row[1].as_u64().unwrap(), row[0].as_str().unwrap().to_owned()))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(found["sum"], query["sum"], "{what}: sum");
    assert_eq!(found["process_count"], query["process_count"], "{what}: process count");
    if query.get("tie_at_cut").is_some_and(|tie| tie != &Value::Bool(false)) {
        let counts = |rows: &Value| sorted(rows).iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(counts(&found["rows"]), counts(rows), "{what}: counts");
    } else {
        assert_eq!(sorted(&found["rows"]), sorted(rows), "{what}: rows");
    }
}

#[needs_data]
#[test]
fn every_query_has_its_known_answer() {
    for_each_case_of(&WITH_GROWTH, |name, case, asked| {
        let queries = [list(&case.expected, "queries"), list(&case.expected, "leak_totals")];
        let queries = queries.concat();
        let mut script = ".dump ObjectRef -json\n".to_owned();
        for query in &queries {
            script += &format!(".dump ObjectRef {} -json\n", query["args"].as_str().unwrap());
        }
        let documents = case.documents(asked, &script);
        assert_eq!(documents.len(), queries.len() + 1, "{name}");
        let texts = digest_texts(&documents[0]);
        for (query, document) in queries.iter().zip(&documents[1..]) {
            check_query(&format!("{name}: {}", query["args"]), query, document, &texts);
        }
    });
}

#[needs_data]
#[test]
fn handles_closed_only_at_process_exit_are_those_of_the_script() {
    for_each_case_of(&WITH_GROWTH, |name, case, asked| {
        let known = &case.expected["closed_at_exit"];
        let script = ".dump ObjectRef -LeakAtExit -json\n\
                      .dump ObjectRef -LeakAtExit -ShowTotal Process -json\n\
                      .dump ObjectRef -Leak -json\n";
        let documents = case.documents(asked, script);
        let [printed, by_process, leaks] = documents.as_slice() else { panic!("{name}") };
        for document in &documents {
            assert_eq!(document["totals"]["closed_at_exit"], known["count"], "{name}");
        }
        let mut ids: Vec<_> = list(printed, "objects").iter().map(|o| o["id"].clone()).collect();
        ids.sort_by_key(Value::as_u64);
        assert_eq!(Value::from(ids), known["object_ids"], "{name}");
        let rows = list(&by_process["not_closed"], "rows")
            .iter()
            .map(|row| (row[0].as_str().unwrap().to_owned(), row[1].clone()));
        let rows = Value::Object(rows.collect());
        assert_eq!(rows, known["by_process"], "{name}");
        assert_eq!(leaks["totals"]["leaked_handles"], leaked_count(&case.expected), "{name}");
    });
}

/// Returns the number of leaks in the query without other filters.
fn leaked_count(expected: &Value) -> Value {
    let query =
        list(expected, "leak_totals").iter().map(|query| query["leaked_count"].clone()).next();
    query.expect("a query for all leaks")
}

#[needs_data]
#[test]
fn every_object_and_event_is_the_one_of_the_script() {
    for_each_case(|name, case, asked| {
        let documents = case.documents(asked, ".dump ObjectRef -ShowStack -json\n");
        let document = &documents[0];
        let known_stacks = list(&case.expected, "stacks");
        let mut objects = list(document, "objects").to_vec();
        objects.sort_by_key(|object| object["id"].as_u64());
        let known = list(&case.expected, "objects");
        assert_eq!(objects.len(), known.len(), "{name}");
        for (object, known) in objects.iter().zip(known) {
            let what = format!("{name}: object {}", known["id"]);
            assert_eq!(object["pointer"], known["pointer"], "{what}");
            assert_eq!(object["type"], known["type"], "{what}");
            assert_eq!(object["name"].as_str().unwrap_or_default(), known["name"], "{what}");
            let lifetime = object["lifetime_s"].as_f64().unwrap_or(9999.0);
            let known_lifetime = known["lifetime_s"].as_f64().unwrap();
            assert!((lifetime - known_lifetime).abs() < 1e-6, "{what}: {lifetime}");
            let creator = object["creator"].as_object().map(|creator| {
                format!("{}({})", creator["name"].as_str().unwrap(), creator["pid"])
            });
            assert_eq!(creator.as_deref(), known["creator"].as_str(), "{what}");
            for flag in ["is_multiprocess", "is_overlapped"] {
                let known = known.get(flag).cloned().unwrap_or(Value::Bool(false));
                assert_eq!(object[flag], known, "{what}: {flag}");
            }
            let existing = list(object, "existing_handles").iter();
            let existing =
                existing.map(|h| Value::from(vec![h["pid"].clone(), h["handle"].clone()]));
            assert_eq!(existing.collect::<Vec<_>>(), list(known, "existing_handles"), "{what}");
            check_events(&what, document, object, known, known_stacks);
        }
    });
}

fn check_events(what: &str, document: &Value, object: &Value, known: &Value, stacks: &[Value]) {
    let mut known_events = list(known, "events").to_vec();
    known_events.sort_by_key(|event| event[1].as_i64());
    let events = list(object, "events");
    assert_eq!(events.len(), known_events.len(), "{what}");
    for (event, known) in events.iter().zip(&known_events) {
        let kind = match known[0].as_str().unwrap() {
            "C" => "handle_create",
            "D" => "handle_duplicate",
            "X" => "handle_close",
            "OC" => "object_create",
            "OD" => "object_delete",
            "M" => "map",
            "U" => "unmap",
            _ if known[5].as_i64() > Some(0) => "reference",
            _ => "dereference",
        };
        assert_eq!(event["kind"], kind, "{what}");
        assert_eq!(event["time_ns"], known[1], "{what}");
        assert_eq!(event["pid"], known[2], "{what}");
        assert_eq!(event["tid"], known[3], "{what}");
        check_details(what, event, known);
        check_stack(what, document, event, known[4].as_i64().unwrap(), stacks);
    }
}

/// Checks the members that only some kinds of events have.
fn check_details(what: &str, event: &Value, known: &Value) {
    let or_null = |value: &Value| if *value == 0 { Value::Null } else { value.clone() };
    match known[0].as_str().unwrap() {
        "C" | "X" => assert_eq!(event["handle"], known[5], "{what}"),
        "D" => {
            assert_eq!(event["handle"], known[5], "{what}");
            assert_eq!(event["source_pid"], or_null(&known[6]), "{what}: source");
            assert_eq!(event["source_handle"], known[7], "{what}: source");
            assert_eq!(event["inherited_by_pid"], known[8], "{what}: child");
        }
        "R" => assert_eq!(event["ref_delta"], known[5], "{what}"),
        "M" | "U" => {
            assert_eq!(event["view_base"], known[5], "{what}");
            assert_eq!(event["view_size"], known[6], "{what}");
            assert_eq!(event["byte_offset"], known[7], "{what}");
        }
        _ => {}
    }
}

fn check_stack(what: &str, document: &Value, event: &Value, known: i64, stacks: &[Value]) {
    if known < 0 {
        assert_eq!(event["stack"], Value::Null, "{what}");
        return;
    }
    let frames = document["stacks"][event["stack"].to_string()].as_array().unwrap();
    let frames: Vec<String> = frames.iter().map(frame_text).collect();
    assert_eq!(Value::from(frames), stacks[known as usize], "{what}");
}

#[needs_data]
#[test]
fn processes_are_those_of_the_script() {
    for_each_case(|name, case, asked| {
        let documents = case.documents(asked, ".dump Process -json\n");
        let mut found: Vec<_> = list(&documents[0], "processes").to_vec();
        let key = |process: &Value| (process["pid"].as_u64(), process["start_ns"].as_i64());
        found.sort_by_key(key);
        let mut known = list(&case.expected, "processes").to_vec();
        known.sort_by_key(key);
        assert_eq!(found.len(), known.len(), "{name}");
        for (found, known) in found.iter().zip(&known) {
            for member in ["pid", "name", "parent_pid", "command_line", "start_ns", "end_ns"] {
                assert_eq!(found[member], known[member], "{name}: {member}");
            }
            assert_eq!(found["exit_code"], known["exit_code"], "{name}: exit code");
        }
    });
}

#[needs_data]
#[test]
fn event_counts_and_the_session_are_those_of_the_script() {
    for_each_case(|name, case, asked| {
        if matches!(asked, QueriedFile::Extract | QueriedFile::Bare) {
            // These have neither the clock nor the counts of events other than handle events.
            return;
        }
        let documents = case.documents(asked, ".dump Stats -json\n");
        let stats = &documents[0]["files"][0];
        let session = &case.expected["session"];
        assert_eq!(stats["cpu_count"], session["cpus"], "{name}");
        assert_eq!(stats["perf_freq"], session["ticks_per_second"], "{name}");
        assert_eq!(stats["buffers"], session["buffers_written"], "{name}");
        assert_eq!(stats["session_start_utc"], "2024-05-10T10:46:34.0000000Z", "{name}");
        let counts = case.expected["event_counts"].as_object().unwrap();
        for (kind, count) in counts.iter().filter(|(kind, _)| !kind.starts_with("Noise/")) {
            let found: u64 = list(stats, "events")
                .iter()
                .filter(|event| event["name"] == **kind)
                .map(|event| event["count"].as_u64().unwrap())
                .sum();
            assert_eq!(count, found, "{name}: {kind}");
        }
        let total: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(stats["events_total"], total, "{name}");
        assert!(case.trace.etl().exists());
    });
}
