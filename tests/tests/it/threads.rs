//! The table of threads: lifetimes of thread ids, and which threads started them.

use std::collections::HashMap;
use std::path::Path;

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value, json};

/// Returns the rows of the answer to a query.
fn rows(printed: &str) -> Vec<Value> {
    let mut documents = Deserializer::from_str(printed).into_iter::<Value>();
    let document = documents.next().expect("a document").expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

fn query(trace: &Path, sql: &str) -> Vec<Value> {
    let command = format!(".sql {sql} -json");
    rows(&Shell::new().run(&[trace.to_str().unwrap(), "-c", &command]).ok().stdout)
}

#[test]
fn a_thread_is_a_lifetime_of_its_id_with_its_process_and_creator() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app.exe");
    trace.process(800, "child.exe").started(3_000);
    trace.thread(700, 1);
    trace.thread(700, 2).started(1_000).creator(700, 1).ended(2_000);
    trace.thread(700, 2).started(5_000).creator(700, 1);
    trace.thread(800, 9).started(4_000).creator(700, 2);
    let sql = "SELECT name, t.pid, tid, t.start_ns, t.end_ns, creator_pid, creator_tid, start_address \
               FROM threads t JOIN processes p ON p.row = t.process ORDER BY t.pid, tid, t.start_ns";
    let run = run_over(&trace, &format!(".sql {sql} -json\n")).ok();
    let thread = |name: &str, ids: [u32; 2], times: [Value; 2], creator: [Value; 2]| {
        let [start, end] = times;
        let [creator_pid, creator_tid] = creator;
        json!({
            "name": name, "pid": ids[0], "tid": ids[1], "start_ns": start, "end_ns": end,
            "creator_pid": creator_pid, "creator_tid": creator_tid,
            "start_address": "0x7FF8BF1521F0",
        })
    };
    let null = || Value::Null;
    let expected = [
        thread("app.exe", [700, 1], [null(), null()], [null(), null()]),
        thread("app.exe", [700, 2], [json!(1_000), json!(2_000)], [json!(700), json!(1)]),
        thread("app.exe", [700, 2], [json!(5_000), null()], [json!(700), json!(1)]),
        thread("child.exe", [800, 9], [json!(4_000), null()], [json!(700), json!(2)]),
    ];
    assert_eq!(rows(&run.stdout), expected);
}

#[needs_data]
#[test]
fn the_published_trace_has_a_thread_for_each_of_its_thread_events() {
    let trace = SharedTrace::open("synthetic/growth");
    let counts =
        query(trace.etl(), "SELECT name, count FROM event_counts WHERE name LIKE 'Thread%'");
    let counts: HashMap<_, _> =
        counts.iter().map(|row| (row["name"].as_str().unwrap(), row["count"].clone())).collect();
    let sums = "SELECT count(start_ns) AS starts, count(end_ns) AS ends, count(creator_tid) AS creators, \
                count(process) AS owned, count(*) AS threads, \
                sum(CASE WHEN end_ns < start_ns THEN 1 ELSE 0 END) AS reversed FROM threads";
    let sums = &query(trace.etl(), sums)[0];
    assert_eq!(sums["starts"], counts["ThreadStart"]);
    assert_eq!(sums["ends"], counts["ThreadEnd"]);
    assert_eq!(sums["creators"], counts["ThreadStart"]);
    assert_eq!(sums["owned"], sums["threads"]);
    assert_eq!(sums["reversed"], 0);
    // Each thread that did not end is in the rundown.
    let open = query(trace.etl(), "SELECT count(*) AS threads FROM threads WHERE end_ns IS NULL");
    assert_eq!(open[0]["threads"], counts["ThreadDCEnd"]);
}

/// The creating thread logs the start within 20 µs after creating the handle.
#[needs_data]
#[test]
fn each_handle_of_a_created_thread_has_the_start_of_that_thread() {
    let trace = SharedTrace::open("synthetic/growth");
    let handles = query(
        trace.etl(),
        "SELECT opened_tid, opened_ns FROM handles WHERE type = 'Thread' AND process LIKE 'OrderService%'",
    );
    let starts = query(trace.etl(), "SELECT creator_tid, start_ns FROM threads WHERE start_ns > 0");
    let number = |row: &Value, column: &str| row[column].as_i64().unwrap();
    let has_start = |handle: &&Value| {
        starts.iter().any(|start| {
            let after = number(start, "start_ns") - number(handle, "opened_ns");
            start["creator_tid"] == handle["opened_tid"] && (0..=20_000).contains(&after)
        })
    };
    assert!(!handles.is_empty());
    assert_eq!(handles.iter().filter(has_start).count(), handles.len());
}
