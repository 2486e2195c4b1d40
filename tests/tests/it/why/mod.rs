//! `.why`: what leaks, how fast and why, compared with the known truth about traces.

mod callers;
mod causes;
mod ends;
mod ids;
mod memory;
mod modesty;
mod narrowed;
mod places;
mod programs;
mod published;
mod sample;
mod text;

use handlescope_tests::binary::run_over;
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

fn suspects(document: &Value) -> &[Value] {
    document["suspects"].as_array().unwrap()
}

fn causes(suspect: &Value) -> Vec<&str> {
    let diagnoses = suspect["diagnoses"].as_array().unwrap();
    diagnoses.iter().map(|diagnosis| diagnosis["cause"].as_str().unwrap()).collect()
}

/// Builds two processes and the System process.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "client.exe");
    trace.object_type(EVENT, "Event");
    trace
}

const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];
const USER: [u64; 1] = [0x7ff8_0000_1000];

fn open(trace: &mut TraceBuilder, ns: i64, ids: (u32, u32), object: u64, handle: u32) {
    trace.create_handle(ns, ids, object, handle, EVENT).stack(&KERNEL, &USER);
}

fn close(trace: &mut TraceBuilder, ns: i64, ids: (u32, u32), object: u64, handle: u32) {
    trace.close_handle(ns, ids, object, handle, EVENT, "");
}

/// The duplicate of a handle of the server into the client.
const DUPLICATE: DuplicateRecord = DuplicateRecord {
    object: OBJECT,
    source_handle: 0x10,
    target_handle: 0x24,
    target_pid: 800,
    source_pid: Some(700),
    type_id: EVENT,
};

fn asked(trace: &TraceBuilder, options: &str) -> Value {
    let run = run_over(trace, &format!(".why {options} -json\n")).ok();
    serde_json::from_str(&run.stdout).unwrap()
}
