//! Events that come one by one: replayed traces give the tables that an extraction gives, at their end and in between,
//! and open handles are counted while they come.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::Duration;

use handlescope_extract::live::{LiveCounts, LiveWindow, Replay, WhenFull, live_queue};
use handlescope_extract::{ExtractOptions, NoObserver, Recording, extract};
use handlescope_model::tables::{ResourceEnd, ResourceMisses, Resources, Stacks, Warnings};
use handlescope_model::{Cancel, StackIdx, Table, TableRows, Trace};
use handlescope_tests::binary::{handlescope, run_script, sample_trace};
use handlescope_tests::bytes::{Guid, PointerSize};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::EtlFile;
use handlescope_tests::header::{ExtendedItem, HeaderKind, ManifestEvent, Stamp};
use handlescope_tests::needs_data;
use handlescope_tests::payload::{EventInfo, HeapCall};
use handlescope_tests::scenario::{StackMode, TraceBuilder};
use polars::prelude::{AnyValue, DataFrame};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_0000;
const KERNEL: u64 = 0xffff_f800_0000_0000;
const EVENT: u16 = 16;
const EVENT_TRACING: Guid = Guid::new(0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2);

/// The tables of a trace, by way of a file.
fn extracted(etl: &Path) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.json7z");
    extract(etl, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    open(&output)
}

/// An extract with all its tables in memory.
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

/// Sends a trace through a queue into a window, and calls `seen` behind each event with its raw time.
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

fn assert_equal(live: &Trace, file: &Trace, tables: impl IntoIterator<Item = Table>, what: &str) {
    for table in tables {
        let (live, file) = (live.frame(table).unwrap(), file.frame(table).unwrap());
        let name = table.name();
        assert!(live.equals_missing(&file), "{what}, {name}:\n{live}\nnot as of the file:\n{file}");
    }
}

#[test]
fn the_sample_replayed_event_by_event_gives_the_tables_of_its_extract() {
    let etl = sample_trace();
    let live = saved(&replayed(&etl, None, |_, _| {}));
    assert_equal(&live, &extracted(&etl), Table::ALL, "leaky.etl");
}

#[needs_data]
#[test]
fn published_traces_replayed_event_by_event_give_the_tables_of_their_extracts() {
    let synthetic = [
        "synthetic/eventleak",
        "synthetic/threadleak",
        "synthetic/registry",
        "synthetic/objectref",
        "synthetic/filemap",
        "synthetic/duplicates",
        "synthetic/growth",
        "synthetic/generic",
        "synthetic/heap",
        "synthetic/valloc",
    ];
    let real = [
        "real/ShutdownPerfDiagLogger",
        "real/TraceLoggingTester",
        "real/net.4.5.2.x64",
        "real/slow-ppt-2011",
    ];
    for name in synthetic.into_iter().chain(real) {
        let trace = SharedTrace::open(name);
        let live = saved(&replayed(trace.etl(), None, |_, _| {}));
        assert_equal(&live, &extracted(trace.etl()), Table::ALL, name);
    }
}

/// A TRACE_LOGFILE_HEADER of a 64-bit system with what a session in real time knows of itself.
fn session_header(of: &Recording) -> Vec<u8> {
    let mut bytes = vec![0; 280];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &of.header.buffer_size.to_le_bytes());
    put(4, &of.header.version);
    put(8, &of.header.os_build.to_le_bytes());
    put(12, &of.header.cpu_count.to_le_bytes());
    put(44, &of.header.pointer_size.to_le_bytes());
    put(248, &of.header.boot_time.to_le_bytes());
    put(256, &of.header.perf_freq.to_le_bytes());
    put(264, &of.header.start_time.to_le_bytes());
    put(272, &1u32.to_le_bytes());
    bytes
}

#[test]
fn a_session_without_a_file_says_itself_how_its_times_are_counted() {
    let etl = sample_trace();
    let mut window = replayed(&etl, None, |_, _| {});
    let file = window.recording.clone();
    let session = Recording::of_session("live", &session_header(&file), file.clock.base).unwrap();
    assert_eq!(
        (session.source_name.as_str(), session.clock.frequency),
        ("live", file.clock.frequency)
    );
    window.recording = session;
    let tables = Table::ALL.into_iter().filter(|table| *table != Table::Trace);
    let live = saved(&window);
    assert_equal(&live, &extracted(&etl), tables, "a session");
    let (live, file) =
        (live.frame(Table::Trace).unwrap(), extracted(&etl).frame(Table::Trace).unwrap());
    for column in ["os_version", "os_build", "perf_freq", "session_start_filetime", "events_total"]
    {
        assert_eq!(live.column(column).unwrap(), file.column(column).unwrap());
    }
    assert_eq!(live.column("session_end_filetime").unwrap().null_count(), 1);
    assert!(Recording::of_session("live", &[0; 280], 0).is_none(), "no clock");
    assert!(Recording::of_session("live", &[0; 100], 0).is_none(), "too short");
}

/// Two processes that open handles all the time, with stacks, and close two thirds of them; one of the processes ends.
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

/// The trace as a file that ends behind a raw time.
fn until(trace: &EtlFile, time: i64) -> EtlFile {
    let mut start = EtlFile::new(trace.options.clone());
    for (at, cpu, event) in trace.events().filter(|(at, ..)| *at <= time) {
        start.push(cpu, at, event.to_vec());
    }
    start
}

#[test]
fn tables_made_in_between_are_those_of_a_file_that_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [StackMode::Fragments, StackMode::Keys] {
        let trace = growing(mode).build();
        let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
        trace.clone().write(&whole).unwrap();
        let mut times: Vec<i64> = trace.events().map(|(time, ..)| time).collect();
        times.sort_unstable();
        // Events of one time come together.
        let points = [times.len() / 7, times.len() / 3, times.len() / 2, times.len() - 2];
        let mut points = points.map(|at| times[at]).into_iter().peekable();
        let mut compared = 0;
        let mut last: Option<(i64, Trace)> = None;
        replayed(&whole, None, |window, time| {
            let Some(point) = points.peek().copied() else { return };
            if time <= point {
                if time == point {
                    last = Some((point, saved(window)));
                }
                return;
            }
            points.next();
            let (point, live) = last.take().expect("events of the point");
            until(&trace, point).write(&part).unwrap();
            let file = extracted(&part);
            // The header of the file says more than is known before the end.
            let tables = Table::ALL.into_iter().filter(|table| *table != Table::Trace);
            assert_equal(&live, &file, tables, "in between");
            compared += 1;
        });
        assert!(compared >= 3, "{compared}");
    }
}

fn number(value: &AnyValue<'_>) -> Option<u64> {
    value.extract()
}

/// How many handles are open at the end, by process id, of processes that go on; views and what children inherit are
/// not counted while events come, either.
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

/// The counts at the end of a replay.
fn counted(etl: &Path) -> BTreeMap<u64, u64> {
    let replay = Replay::open(etl, &Cancel::default()).unwrap();
    let (sender, mut receiver) = live_queue(64 << 20, WhenFull::Wait);
    let sending =
        thread::spawn(move || replay.run(&sender, |_| ControlFlow::Continue(())).map(drop));
    let mut counts = LiveCounts::default();
    while let Some(events) = receiver.receive(Duration::from_secs(60)) {
        events.iter().for_each(|event| counts.event(&event, |_, _| {}));
    }
    sending.join().unwrap().unwrap();
    let open = counts.processes().map(|(pid, open)| (u64::from(pid), open.count()));
    open.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn handles_counted_while_they_come_are_those_that_a_file_that_ends_there_leaves_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.etl");
    let trace = growing(StackMode::Fragments).build();
    for ms in [3, 40, 100, 250, 299, 320, 500] {
        until(&trace, trace.options.raw(ms * MS)).write(&path).unwrap();
        assert_eq!(counted(&path), leaked(&extracted(&path)), "{ms} ms");
    }
    assert_eq!(counted(&sample_trace()), leaked(&extracted(&sample_trace())));
}

#[needs_data]
#[test]
fn handles_counted_in_published_traces_are_those_that_are_left_open() {
    for name in ["eventleak", "threadleak", "registry", "objectref", "growth", "heap", "valloc"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        assert_eq!(counted(trace.etl()), leaked(&extracted(trace.etl())), "{name}");
    }
}

#[test]
fn a_window_forgets_blocks_that_were_freed_and_keeps_those_that_grew() {
    use HeapCall::{Alloc, Free, ReAlloc};
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe").started(MS);
    for step in 0..60_000_i64 {
        let (at, address) = (10 + step, 0x1000 + 16 * step.unsigned_abs());
        let mut heap = |ms: i64, event: HeapCall| {
            let stamp = Stamp::new(trace.options().raw(ms * MS), 700, 701);
            let event = event.payload(7, PointerSize::Eight);
            trace.raw_event(
                ms * MS,
                0,
                event.event(HeaderKind::Compact, PointerSize::Eight, stamp),
            );
        };
        heap(at, Alloc { size: 8, address });
        if step == 0 {
            heap(at, ReAlloc { size: 16, address, old_address: address, old_size: 8 });
        } else if step % 1000 != 0 {
            heap(at, Free { address });
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.etl");
    trace.write(&path).unwrap();
    let window = replayed(&path, Some(Duration::from_secs(5)), |_, _| ());
    let kept = Resources::read(&saved(&window)).unwrap();
    assert!(kept.len() < 40_000, "{}", kept.len());
    let open = kept.rows().filter(|own| own.end == ResourceEnd::Open.code());
    let open: Vec<i64> = open.map(|own| own.size).collect();
    assert_eq!((open.len(), open[0]), (60, 16));
    assert_eq!(ResourceMisses::read(&saved(&window)).unwrap().len(), 0);
}

const HOOKS: Guid = Guid::new(0x33333333_0000_0000_0000_000000000003);

/// A record about events of [`HOOKS`] with a handle.
fn described(id: u16, task: &str, stamp: Stamp) -> Vec<u8> {
    let fields = vec![("Handle".into(), 16)];
    let (provider, task) = (HOOKS, task.into());
    EventInfo { provider, id, task, fields, ..EventInfo::default() }
        .event(PointerSize::Eight, stamp)
}

#[test]
fn a_window_keeps_what_describes_events_and_what_is_not_released() {
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe").started(MS);
    for (id, task) in [(1, "AcquireResource"), (2, "ReleaseResource"), (3, "Work")] {
        let stamp = Stamp::new(trace.options().raw(2 * MS), 700, 701);
        trace.raw_event(2 * MS, 0, described(id, task, stamp));
    }
    for step in 0..30_000_i64 {
        let (ms, handle) = (10 + step, step.unsigned_abs());
        for id in [1, 2, 3] {
            // The stack comes in two events.
            let (frame, match_id) = (0x7ff0_1000 + handle % 5, handle + 1);
            let items = vec![ExtendedItem::part64(match_id, &[KERNEL])];
            let stamp = Stamp::new(trace.options().raw(ms * MS), 700, 701);
            let payload = handle.to_le_bytes().to_vec();
            let event =
                ManifestEvent { provider: HOOKS, id, stamp, items, payload, ..Default::default() };
            if id != 2 || step % 1000 != 0 {
                trace.raw_event(ms * MS, 0, event.encode());
                let items = vec![ExtendedItem::part64(match_id, &[frame])];
                let (provider, payload) = (EVENT_TRACING, Vec::new());
                let event = ManifestEvent { provider, id: 18, items, payload, ..event };
                trace.raw_event(ms * MS, 0, event.encode());
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.etl");
    trace.write(&path).unwrap();
    let mut most = 0;
    let window = replayed(&path, Some(Duration::from_secs(1)), |window, _| {
        most = most.max(window.memory());
    });
    let all = replayed(&path, None, |_, _| {}).memory();
    assert!(most < all / 3, "{most} bytes of {all}");
    let open = |trace: &Trace| {
        let rows = Resources::read(trace).unwrap();
        let open = rows.rows().filter(|own| own.end == ResourceEnd::Open.code());
        let open: Vec<(u64, i64, usize)> =
            open.map(|own| (own.key, own.time_ns, frames(trace, own.stack))).collect();
        open
    };
    let live = saved(&window);
    assert_eq!(open(&live).len(), 30);
    assert_eq!(open(&live), open(&extracted(&path)));
    assert!(open(&live).iter().all(|(_, _, frames)| *frames == 2));
}

#[test]
fn events_that_a_window_forgot_before_they_were_described_are_counted() {
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe").started(MS);
    let count = 60_000_u32;
    for step in 0..count {
        let ms = 10 + i64::from(step);
        for id in [1, 3] {
            let stamp = Stamp::new(trace.options().raw(ms * MS), 700, 701);
            let payload = u64::from(step).to_le_bytes().to_vec();
            let event = ManifestEvent { provider: HOOKS, id, stamp, payload, ..Default::default() };
            trace.raw_event(ms * MS, 0, event.encode());
        }
    }
    let last = 10 + i64::from(count);
    for (id, task) in [(1, "AcquireResource"), (3, "Work")] {
        let stamp = Stamp::new(trace.options().raw(last * MS), 700, 701);
        trace.raw_event(last * MS, 0, described(id, task, stamp));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.etl");
    trace.write(&path).unwrap();
    let found = |trace: &Trace| {
        let acquired = Resources::read(trace).unwrap().len() as u64;
        let warnings = Warnings::read(trace).unwrap();
        let forgotten =
            warnings.rows().find(|own| own.kind.contains("forgotten before its description"));
        (acquired, forgotten.map(|own| (own.count, own.kind)))
    };
    let short = replayed(&path, Some(Duration::from_secs(1)), |_, _| {});
    let (acquired, forgotten) = found(&saved(&short));
    let (forgotten, kind) = forgotten.expect("a warning");
    assert!(acquired >= 1000, "those of the last second are there: {acquired}");
    assert_eq!(acquired + forgotten, u64::from(count), "only those that acquire: {kind}");
    assert!(kind.contains("33333333"), "the provider is named: {kind}");
    let archive = folder.path().join("live.json7z");
    short.save(&archive, &Cancel::default()).unwrap();
    let said =
        |question: &str| run_script(handlescope(folder.path()).arg(&archive), question).ok().stderr;
    let missing = "events that acquire and release are missing";
    assert!(said(".dump Resource\n").contains(missing), "{}", said(".dump Resource\n"));
    assert!(!said(".dump Resource -Kind heap\n").contains(missing), "heaps have other events");
    let whole = replayed(&path, None, |_, _| {});
    assert_eq!(found(&saved(&whole)), (u64::from(count), None), "a window without end keeps all");
}

/// Number of frames of a stack.
fn frames(trace: &Trace, stack: Option<StackIdx>) -> usize {
    let stacks = Stacks::read(trace).unwrap();
    stack.and_then(|row| stacks.rows().nth(row.row())).map_or(0, |stack| stack.frames.len())
}

#[test]
fn a_window_forgets_what_was_closed_before_it_and_keeps_what_is_open() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "leaky.exe").started(MS);
    trace.object_type(EVENT, "Event");
    trace.stack_mode(StackMode::Keys);
    for step in 0..60_000 {
        let (at, number) = ((10 + step) * MS, step as u32);
        let object = OBJECT + u64::from(number) * 0x100;
        trace.create_handle(at, (700, 701), object, 4 * number + 4, EVENT);
        trace.stack(&[KERNEL + 0x10], &[0x7ff0_1000 + u64::from(number % 5)]);
        if step % 1000 != 0 {
            trace.close_handle(at + MS / 2, (700, 701), object, 4 * number + 4, EVENT, "");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.etl");
    trace.write(&path).unwrap();
    let mut most = 0;
    let window = replayed(&path, Some(Duration::from_secs(1)), |window, _| {
        most = most.max(window.memory());
    });
    let all = replayed(&path, None, |_, _| {}).memory();
    assert!(most < all / 3, "{most} bytes of {all}");
    let (live, file) = (saved(&window), extracted(&path));
    assert_eq!(leaked(&live), leaked(&file));
    assert_eq!(leaked(&live), BTreeMap::from([(700, 60)]));
    let stacks = |trace: &Trace| trace.frame(Table::Stacks).unwrap().height();
    assert_eq!(stacks(&live), stacks(&file));
}
