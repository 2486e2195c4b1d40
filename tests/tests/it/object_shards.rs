//! Several threads find the same objects as one thread, whatever the events are.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use handlescope_extract::OpenRecording;
use handlescope_extract::collect::{Collector, KernelSelector};
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::lifecycle::{
    EventOwners, Lifetimes, MissingEvents, ProcessIndex, TrackedEvents, track,
};
use handlescope_extract::stacks::KeptStacks;
use handlescope_model::Cancel;
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::{Caller, MappedView, TraceBuilder};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use crate::handle_model::with_cases;

const EVENT: u16 = 16;
/// System, two processes, and an unknown one.
const PIDS: [u32; 4] = [4, 700, 800, 999];
/// Addresses of objects and of views. They are few, so that they are reused. A damaged trace may have an object where
/// another process has a view.
const ADDRESSES: [u64; 6] =
    [0x7_0000_0000, 0x7_0001_0000, 0xFFFF_8100, 0xFFFF_8130, 0xFFFF_8160, 0xFFFF_8190];
const HANDLES: [u32; 3] = [4, 8, 12];
const NAMES: [&str; 3] = ["", r"\a", r"\b"];

#[derive(Debug, Clone, Copy)]
enum ShardEvent {
    Create,
    Duplicate,
    Close,
    ObjectCreate,
    ObjectDelete,
    Reference,
    Dereference,
    Map,
    Unmap,
    AtEnd,
}

/// What happens, and the process, address, handle and name involved.
type Happening = (ShardEvent, (usize, usize, usize, usize));

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let what = prop_oneof![
        6 => Just(ShardEvent::Create),
        2 => Just(ShardEvent::Duplicate),
        8 => Just(ShardEvent::Close),
        1 => Just(ShardEvent::ObjectCreate),
        1 => Just(ShardEvent::ObjectDelete),
        1 => Just(ShardEvent::Reference),
        1 => Just(ShardEvent::Dereference),
        2 => Just(ShardEvent::Map),
        2 => Just(ShardEvent::Unmap),
        1 => Just(ShardEvent::AtEnd),
    ];
    let which = (0..PIDS.len(), 0..ADDRESSES.len(), 0..HANDLES.len(), 0..NAMES.len());
    vec((what, which), 1..250)
}

fn trace(happenings: &[Happening]) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "a.exe");
    trace.process(800, "b.exe");
    trace.object_type(EVENT, "Event");
    for (ns, (what, (process, address, handle, name))) in (0..).step_by(100).zip(happenings) {
        let (pid, address) = (PIDS[*process], ADDRESSES[*address]);
        let (handle, name) = (HANDLES[*handle], NAMES[*name]);
        let caller = Caller::new(pid, pid + 1);
        let view = MappedView { base: address, size: 0x1000, pid, ..MappedView::default() };
        let duplicate = DuplicateRecord {
            object: address,
            source_handle: 4,
            target_handle: handle,
            target_pid: pid,
            type_id: EVENT,
            source_pid: Some(4),
        };
        match what {
            ShardEvent::Create => trace.create_handle(ns, caller, address, handle, EVENT),
            ShardEvent::Duplicate => trace.duplicate_handle(ns, caller, duplicate),
            ShardEvent::Close => trace.close_handle(ns, caller, address, handle, EVENT, name),
            ShardEvent::ObjectCreate => trace.create_object(ns, caller, address, EVENT),
            ShardEvent::ObjectDelete => trace.delete_object(ns, caller, address, EVENT),
            ShardEvent::Reference => trace.reference(ns, caller, address, b"Tag ", 1),
            ShardEvent::Dereference => trace.dereference(ns, caller, address, b"Tag ", 1),
            ShardEvent::Map => trace.map(ns, caller, view),
            ShardEvent::Unmap => trace.unmap(ns, caller, view),
            ShardEvent::AtEnd => trace.handle_rundown_end(pid, address, handle, EVENT, name),
        };
    }
    trace
}

/// Tracks the objects of a trace with each of these numbers of threads, in file order and in another order.
fn tracked(
    trace: &TraceBuilder,
    seed: u64,
    threads: &[usize],
) -> Vec<[(TrackedEvents, Diagnostics); 2]> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.etl");
    trace.write(&path).unwrap();
    let mut collected = Collector::new(KeptStacks::default());
    let mut selector = KernelSelector::default();
    let go_on = |_| ControlFlow::Continue(());
    let open = OpenRecording::open(&path).unwrap();
    let recording = open.read(&mut selector, go_on, |event| collected.event(event)).unwrap();
    collected.finish();
    let (clock, cancel, mut unused) =
        (&recording.clock, &Cancel::default(), Diagnostics::default());
    let index = &ProcessIndex::new(&collected.processes.rows);
    let missing = &MissingEvents::new(&[]);
    let one = NonZeroUsize::MIN;
    let owners = EventOwners::new(&collected, index, None, missing, one, &mut unused, cancel);
    let owners = &owners.unwrap();
    let lifetimes = Lifetimes { collected: &collected, index, owners, missing, clock, cancel };
    // Late rows come before earlier ones.
    let mut order: Vec<u32> = (0..collected.shared.timeline.len() as u32).collect();
    order.sort_by_key(|row| u64::from(*row) + u64::from(*row).wrapping_mul(seed | 1) % 7);
    let with = |threads: usize, order| {
        let mut diagnostics = Diagnostics::default();
        let threads = NonZeroUsize::new(threads).unwrap();
        let (tracked, _) = track(&lifetimes, order, threads, &mut diagnostics).unwrap();
        (tracked, diagnostics)
    };
    let both = |threads: &usize| [with(*threads, None), with(*threads, Some(&order[..]))];
    threads.iter().map(both).collect()
}

#[test]
fn several_threads_follow_objects_like_one() {
    let [named_twice, complete, open, without_object] = [0; 4].map(Cell::new);
    with_cases(60, (happenings(), any::<u64>()), |(happenings, seed)| {
        let answers = tracked(&trace(&happenings), seed, &[1, 2, 3, 8]);
        let (alone, further) = answers.split_first().unwrap();
        for several in further {
            for ((alone, findings), (tracked, diagnostics)) in alone.iter().zip(several) {
                assert_eq!(tracked, alone);
                assert_eq!(tracked.objects.positions(), alone.objects.positions());
                assert_eq!(diagnostics.warnings(), findings.warnings());
            }
        }
        for (TrackedEvents { objects, .. }, findings) in alone {
            let ended = objects.rows.iter().filter(|object| object.is_complete()).count();
            let add = |count: &Cell<u64>, more: usize| count.set(count.get() + more as u64);
            add(&named_twice, objects.more_names.len());
            add(&complete, ended);
            add(&open, objects.rows.len() - ended);
            add(&without_object, findings.of(WarningKind::CloseWithoutObject) as usize);
        }
    });
    let seen = [named_twice, complete, open, without_object].map(Cell::into_inner);
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}
