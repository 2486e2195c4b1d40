//! What happens to handles and objects in unusual cases, seen in the program's JSON.

use handlescope_tests::binary::run_over;
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use serde_json::{Deserializer, Value};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

/// Builds a trace with System, a parent and its child, and a type.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "parent.exe");
    trace.process(800, "child.exe").parent(700).started(5 * MS);
    trace.object_type(EVENT, "Event");
    trace
}

fn documents(trace: &TraceBuilder, script: &str) -> Vec<Value> {
    let run = run_over(trace, script).ok();
    Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect()
}

/// Returns the objects of a query, by id.
fn objects(trace: &TraceBuilder, options: &str) -> Vec<Value> {
    let document = documents(trace, &format!(".dump ObjectRef {options} -json\n")).remove(0);
    let mut objects = document["objects"].as_array().unwrap().clone();
    objects.sort_by_key(|object| object["id"].as_u64());
    objects
}

fn kinds(object: &Value) -> Vec<&str> {
    let events = object["events"].as_array().unwrap();
    events.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// Returns the count of a warning.
fn warned(trace: &TraceBuilder, kind: &str) -> u64 {
    let document = documents(trace, ".dump Stats -json\n").remove(0);
    let warnings = document["files"][0]["warnings"].as_array().unwrap();
    let found = warnings.iter().find(|warning| warning["kind"] == kind);
    found.map_or(0, |warning| warning["count"].as_u64().unwrap())
}

fn duplicate(from: (u32, u32), to: (u32, u32)) -> DuplicateRecord {
    DuplicateRecord {
        object: OBJECT,
        source_handle: from.1,
        target_handle: to.1,
        target_pid: to.0,
        type_id: EVENT,
        source_pid: Some(from.0),
    }
}

#[test]
fn an_object_ends_when_creates_and_duplicates_are_closed_and_not_before() {
    let mut trace = trace();
    trace.create_handle(MS, (700, 1), OBJECT, 4, EVENT);
    trace.duplicate_handle(2 * MS, (700, 1), duplicate((700, 4), (700, 8)));
    trace.close_handle(3 * MS, (700, 1), OBJECT, 4, EVENT, "");
    assert_eq!(objects(&trace, "")[0]["lifetime_s"], Value::Null, "a duplicate is still open");
    assert_eq!(objects(&trace, "-MinMaxDuration 9999").len(), 1);
    trace.close_handle(4 * MS, (700, 1), OBJECT, 8, EVENT, "");
    assert_eq!(objects(&trace, "")[0]["lifetime_s"], 0.003);
}

#[test]
fn an_object_known_by_its_duplicates_alone_has_a_creator_and_a_lifetime() {
    let mut trace = trace();
    trace.duplicate_handle(MS, (700, 1), duplicate((700, 4), (700, 8)));
    trace.close_handle(3 * MS, (700, 1), OBJECT, 8, EVENT, "");
    let found = objects(&trace, "-pn parent");
    assert_eq!(found[0]["creator"]["name"], "parent.exe");
    assert_eq!(found[0]["lifetime_s"], 0.002);
}

#[test]
fn an_unknown_lifetime_is_null_and_says_whether_it_lacks_a_beginning_or_an_end() {
    let mut trace = trace();
    trace.create_handle(MS, (700, 1), OBJECT, 4, EVENT);
    trace.handle_rundown_end(700, OBJECT + 0x100, 8, EVENT, "old");
    let found = objects(&trace, "");
    let known =
        |object: &Value| (object["first_create_ns"].is_null(), object["last_destroy_ns"].is_null());
    assert_eq!(known(&found[0]), (false, true), "never closed");
    assert_eq!(known(&found[1]), (true, true), "from before the trace");
    assert!(found.iter().all(|object| object["lifetime_s"].is_null()));
}

#[test]
fn a_close_without_object_is_counted_and_reported() {
    let mut trace = trace();
    trace.handle_rundown_start(700, OBJECT, 4, EVENT, "old");
    trace.close_handle(MS, (700, 1), OBJECT, 4, EVENT, "old");
    assert_eq!(objects(&trace, "").len(), 0);
    assert_eq!(warned(&trace, "close of a handle opened before the trace"), 1);
    let run = run_over(&trace, ".list\n");
    assert!(run.stderr.contains("1 close of a handle opened before the trace"), "{run:?}");
}

#[test]
fn a_handle_from_before_the_trace_that_is_open_at_the_end_is_counted() {
    let mut trace = trace();
    for n in 0..3 {
        trace.handle_rundown_start(700, OBJECT + n * 0x100, 4 * n as u32 + 4, EVENT, "old");
        trace.handle_rundown_end(700, OBJECT + n * 0x100, 4 * n as u32 + 4, EVENT, "old");
    }
    let document = documents(&trace, ".dump ObjectRef -ShowTotal Process -json\n").remove(0);
    assert_eq!(document["not_closed"]["rows"], serde_json::json!([["parent.exe(700)", 3]]));
}

#[test]
fn a_late_close_finds_its_object_however_many_have_ended_since() {
    let mut trace = trace();
    // The delete ends the object before its handle is closed.
    trace.create_object(MS, (700, 1), OBJECT, EVENT);
    trace.create_handle(MS + 1000, (700, 1), OBJECT, 4, EVENT);
    trace.delete_object(2 * MS, (700, 1), OBJECT, EVENT);
    for n in 1..200_u64 {
        let (object, handle) = (OBJECT + n * 0x100, 4 * n as u32 + 4);
        let ns = 2 * MS + n as i64 * 10_000;
        trace.create_handle(ns, (700, 1), object, handle, EVENT);
        trace.close_handle(ns + 5000, (700, 1), object, handle, EVENT, "");
    }
    trace.close_handle(9 * MS, (700, 1), OBJECT, 4, EVENT, "late");
    let found = objects(&trace, "-ObjectName late");
    assert_eq!((found.len(), &found[0]["id"]), (1, &Value::from(1)));
    assert_eq!(kinds(&found[0]).last(), Some(&"handle_close"));
    assert_eq!(objects(&trace, "-Leak").len(), 0);
}

#[test]
fn a_handle_is_closed_after_the_duplicate_that_is_made_of_it_at_the_same_time() {
    let mut trace = trace();
    // In the file, the events of the first processor come first.
    trace.close_handle(MS, (700, 1, 0), OBJECT, 4, EVENT, "");
    trace.duplicate_handle(MS, (700, 2, 1), duplicate((700, 4), (700, 8)));
    assert_eq!(kinds(&objects(&trace, "")[0]), ["handle_duplicate", "handle_close"]);
}

#[test]
fn the_close_of_a_reused_address_goes_to_the_object_that_is_there() {
    let mut trace = trace();
    for (ns, handle) in [(MS, 4), (3 * MS, 8)] {
        trace.create_handle(ns, (700, 1), OBJECT, handle, EVENT);
        trace.close_handle(ns + MS, (700, 1), OBJECT, handle, EVENT, "");
    }
    let found = objects(&trace, "");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|object| kinds(object) == ["handle_create", "handle_close"]));
}

#[test]
fn events_after_the_last_close_are_counted_and_reported() {
    let mut trace = trace();
    trace.create_object(MS, (700, 1), OBJECT, EVENT);
    trace.create_handle(MS + 1000, (700, 1), OBJECT, 4, EVENT);
    trace.close_handle(2 * MS, (700, 1), OBJECT, 4, EVENT, "");
    trace.dereference(3 * MS, (700, 1), OBJECT, b"Test", 1);
    trace.delete_object(4 * MS, (700, 1), OBJECT, EVENT);
    assert_eq!(objects(&trace, "")[0]["lifetime_s"], 0.001);
    assert_eq!(warned(&trace, "delete of an unknown object"), 1);
    assert_eq!(warned(&trace, "reference change of an unknown object"), 1);
}

#[test]
fn an_object_created_at_a_used_address_gets_the_events_that_follow() {
    let mut trace = trace();
    trace.create_object(MS, (700, 1), OBJECT, EVENT);
    trace.create_handle(MS + 1000, (700, 1), OBJECT, 4, EVENT);
    // The delete of the first object was lost.
    trace.create_object(3 * MS, (700, 1), OBJECT, EVENT);
    trace.create_handle(3 * MS + 1000, (700, 1), OBJECT, 8, EVENT);
    trace.close_handle(4 * MS, (700, 1), OBJECT, 8, EVENT, "second");
    let found = objects(&trace, "");
    assert_eq!(kinds(&found[0]), ["object_create", "handle_create"]);
    assert_eq!(kinds(&found[1]), ["object_create", "handle_create", "handle_close"]);
    assert_eq!(found[1]["name"], "second");
}

#[test]
fn views_belong_to_the_process_of_the_event_and_never_meet_at_high_addresses() {
    let mut trace = trace();
    let view =
        |pid, base| MappedView { base, size: 0x1000, file_key: 7, misc: 3, offset: 0x2000, pid };
    // ETWAnalyzer uses the same key for both: base | pid << 42.
    let high = 0x7ff0_0010_0000_u64;
    let low = high & ((1 << 42) - 1);
    let other = 700 | (high >> 42) as u32;
    assert_eq!(low | (u64::from(other) << 42), high | (700 << 42));
    trace.process(other, "other.exe");
    // A debugger maps into another process: the header has the debugger's pid, the payload the target's.
    trace.map(MS, (4, 8), view(700, high));
    trace.map(2 * MS, (other, 9), view(other, low));
    trace.unmap(3 * MS, (4, 8), view(700, high));
    let found = objects(&trace, "-Map 1");
    assert_eq!(found.len(), 2);
    assert_eq!(kinds(&found[0]), ["map", "unmap"]);
    assert_eq!(kinds(&found[1]), ["map"]);
    let event = &found[0]["events"][0];
    assert_eq!(event["process"], "parent.exe");
    assert_eq!((&event["byte_offset"], &event["file_object"]), (&0x2000.into(), &"0x7".into()));
    assert_eq!(objects(&trace, "-Map 1 -Leak").len(), 1);
}

#[test]
fn a_view_whose_map_event_is_filtered_away_is_still_a_view() {
    let mut trace = trace();
    let view =
        MappedView { base: 0x10_0000, size: 0x1000, file_key: 7, misc: 0, offset: 0, pid: 700 };
    trace.map(MS, (700, 1), view);
    trace.unmap(3 * MS, (700, 1), view);
    let run = run_over(&trace, ".dump ObjectRef -MinMaxTime 0.002\n").ok();
    assert!(run.stdout.contains("MappingObject: 0x"), "{}", run.stdout);
    assert!(run.stdout.contains("Unmap parent.exe"), "{}", run.stdout);
}

#[test]
fn a_handle_put_into_another_process_is_leaked_there_and_closed_there() {
    let mut trace = trace();
    trace.create_handle(6 * MS, (700, 1), OBJECT, 4, EVENT);
    trace.duplicate_handle(7 * MS, (700, 1), duplicate((700, 4), (800, 0x40)));
    trace.close_handle(8 * MS, (700, 1), OBJECT, 4, EVENT, "");
    let found = objects(&trace, "-Leak");
    assert_eq!(found[0]["events"][0]["process"], "child.exe");
    trace.close_handle(9 * MS, (800, 2), OBJECT, 0x40, EVENT, "");
    assert_eq!(objects(&trace, "-Leak").len(), 0);
}

#[test]
fn a_query_leaves_nothing_behind_for_the_next() {
    let mut trace = trace();
    trace.create_object(MS, (700, 1), OBJECT, EVENT);
    trace.create_handle(2 * MS, (700, 1), OBJECT, 4, EVENT);
    trace.create_handle(3 * MS, (700, 1), OBJECT, 8, EVENT);
    trace.close_handle(4 * MS, (700, 1), OBJECT, 4, EVENT, "");
    let plain = ".dump ObjectRef -json\n.dump ObjectRef -Overlapped -json\n";
    let script = format!(
        "{plain}.dump ObjectRef -MinMaxTime 0.0035 -Overlapped -json\n\
         .dump ObjectRef -StackFilter nothing -json\n.dump ObjectRef -Leak -json\n{plain}"
    );
    let documents = documents(&trace, &script);
    assert_eq!(documents.len(), 7);
    assert_eq!(documents[0], documents[5]);
    assert_eq!(documents[1], documents[6]);
    assert_eq!(documents[1]["objects"].as_array().unwrap().len(), 1);
    assert_eq!(documents[2]["objects"].as_array().unwrap().len(), 0);
}
