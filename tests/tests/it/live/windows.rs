//! What a window forgets and keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use handlescope_extract::live::LiveWindow;
use handlescope_model::tables::{ResourceEnd, ResourceMisses, Stacks, Warnings};
use handlescope_model::{Cancel, StackIdx, Table, TableRows, Trace};
use handlescope_tests::binary::{handlescope, run_script};
use handlescope_tests::bytes::{Guid, PointerSize};
use handlescope_tests::header::{ExtendedItem, HeaderKind, ManifestEvent, Stamp};
use handlescope_tests::payload::{EventInfo, HeapCall};
use handlescope_tests::scenario::{StackMode, TraceBuilder};

use super::{EVENT, KERNEL, MS, OBJECT, extracted, leaked, replayed, saved};
use crate::allocations::allocations_of;

const EVENT_TRACING: Guid = Guid::new(0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2);

/// Returns a one-second window of a trace; asserts that it never takes a third of the memory of a window over the whole
/// trace.
fn of_a_second(path: &Path) -> LiveWindow {
    let mut most = 0;
    let window = replayed(path, Some(Duration::from_secs(1)), |window, _| {
        most = most.max(window.memory());
    });
    let all = replayed(path, None, |_, _| {}).memory();
    assert!(most < all / 3, "{most} bytes of {all}");
    window
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
    let kept = allocations_of(&saved(&window));
    assert!(kept.len() < 40_000, "{}", kept.len());
    let open: Vec<i64> =
        kept.iter().filter(|own| own.end == ResourceEnd::Open.code()).map(|own| own.size).collect();
    assert_eq!((open.len(), open[0]), (60, 16));
    assert_eq!(ResourceMisses::read(&saved(&window)).unwrap().len(), 0);
}

const HOOKS: Guid = Guid::new(0x33333333_0000_0000_0000_000000000003);

/// Returns a record that describes an event of [`HOOKS`] with a handle.
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
    let window = of_a_second(&path);
    let open = |trace: &Trace| {
        let open =
            allocations_of(trace).into_iter().filter(|own| own.end == ResourceEnd::Open.code());
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
        let acquired = allocations_of(trace).len() as u64;
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

/// Returns the number of frames in a stack.
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
    let window = of_a_second(&path);
    let (live, file) = (saved(&window), extracted(&path));
    assert_eq!(leaked(&live), leaked(&file));
    assert_eq!(leaked(&live), BTreeMap::from([(700, 60)]));
    let stacks = |trace: &Trace| trace.frame(Table::Stacks).unwrap().height();
    assert_eq!(stacks(&live), stacks(&file));
}
