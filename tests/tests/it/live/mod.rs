//! Events that arrive one by one. Replayed traces give the tables of an extraction, at the end and in between, and open
//! handles are counted as they come.

mod counts;
mod tables;
mod windows;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::Duration;

use handlescope_extract::live::{LiveWindow, Replay, WhenFull, live_queue};
use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::file::EtlFile;
use handlescope_tests::scenario::{StackMode, TraceBuilder};
use polars::prelude::{AnyValue, DataFrame};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_0000;
const KERNEL: u64 = 0xffff_f800_0000_0000;
const EVENT: u16 = 16;

/// Extracts the trace from a file, and returns its tables.
fn extracted(etl: &Path) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.json7z");
    extract(etl, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    open(&output)
}

/// Opens an extract with all its tables in memory.
fn open(path: &Path) -> Trace {
    let trace = Trace::open(path).unwrap();
    for table in Table::ALL {
        trace.frame(table).unwrap();
    }
    trace
}

fn saved(window: &LiveWindow) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.json7z");
    window.save(&output, &Cancel::default()).unwrap();
    open(&output)
}

/// Sends a trace through a queue into a window, and calls `seen` after each event with its raw time.
fn replayed(
    etl: &Path,
    limit: Option<Duration>,
    mut seen: impl FnMut(&LiveWindow, i64),
) -> LiveWindow {
    let replay = Replay::open(etl, &Cancel::default()).unwrap();
    let mut window = LiveWindow::new(replay.recording(), limit);
    let (sender, mut receiver) = live_queue(1 << 20, WhenFull::Wait);
    thread::scope(|scope| {
        let sending = scope.spawn(move || replay.run(&sender, |_| ControlFlow::Continue(())));
        while let Some(events) = receiver.receive(Duration::from_secs(60)) {
            for event in events.iter() {
                window.event(&event);
                seen(&window, event.time);
            }
        }
        window.recording = sending.join().unwrap().unwrap().expect("a whole trace");
    });
    assert_eq!(receiver.dropped(), 0);
    window
}

/// Builds a trace of two processes that keep opening handles with stacks and close two thirds of them; one process
/// exits.
fn growing(mode: StackMode) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "leaky.exe").started(MS);
    trace.process(800, "other.exe").started(2 * MS).ended(300 * MS);
    trace.object_type(EVENT, "Event");
    trace.module(4, r"\SystemRoot\system32\ntoskrnl.exe", KERNEL, 0x100_0000);
    trace.module(700, r"\Device\HarddiskVolume3\leaky.exe", 0x7ff0_0000, 0x10_0000);
    trace.stack_mode(mode);
    for step in 0..120 {
        let (pid, at) = (if step % 2 == 0 { 700 } else { 800 }, (5 + 4 * step) * MS);
        if pid == 800 && at > 290 * MS {
            continue;
        }
        let number = step as u32 % 48;
        let (object, handle) = (OBJECT + u64::from(number) * 0x100, 4 * step as u32 + 4);
        let user = [0x7ff0_1000 + u64::from(number % 7), 0x7ff0_2000];
        trace.create_handle(at, (pid, pid + 1), object, handle, EVENT);
        trace.stack(&[KERNEL + 0x10 + u64::from(number % 3)], &user);
        if step % 3 != 0 {
            trace.close_handle(at + 9 * MS, (pid, pid + 1), object, handle, EVENT, "");
            trace.stack(&[KERNEL + 0x20], &user);
        }
    }
    trace
}

/// Returns the trace as a file that ends after a raw time.
fn until(trace: &EtlFile, time: i64) -> EtlFile {
    let mut start = EtlFile::new(trace.options.clone());
    for (at, cpu, event) in trace.events().filter(|(at, ..)| *at <= time) {
        start.push(cpu, at, event.to_vec());
    }
    start
}

fn number(value: &AnyValue<'_>) -> Option<u64> {
    value.extract()
}

/// Counts the handles open at the end, by process id, for processes that are still running. Views and inherited handles
/// are excluded, because they are not counted live either.
fn leaked(trace: &Trace) -> BTreeMap<u64, u64> {
    let column = |frame: &DataFrame, name: &str| -> Vec<AnyValue<'static>> {
        let column = frame.column(name).unwrap().clone();
        (0..frame.height()).map(|row| column.get(row).unwrap().into_static()).collect()
    };
    let processes = trace.frame(Table::Processes).unwrap();
    let (pids, ends) = (column(&processes, "pid"), column(&processes, "end_ns"));
    let events = trace.frame(Table::Events).unwrap();
    let (owners, handles) = (column(&events, "process"), column(&events, "handle"));
    let heirs = column(&events, "inherited_by");
    let mut counts = BTreeMap::new();
    for (row, leaked) in column(&events, "leaked").iter().enumerate() {
        let owner = number(&owners[row]).unwrap() as usize;
        let is_handle = number(&handles[row]).is_some() && heirs[row].is_null();
        if *leaked == AnyValue::Boolean(true) && is_handle && ends[owner].is_null() {
            *counts.entry(number(&pids[owner]).unwrap()).or_default() += 1;
        }
    }
    counts
}
