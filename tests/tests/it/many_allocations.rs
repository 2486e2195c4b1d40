//! Traces with hundreds of thousands of heaps, threads, allocators and pieces of a range. The cost of an event is
//! proportional to what it changes, and queries still get answers.

use std::collections::BTreeMap;

use crate::allocations::allocations_of;
use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::tables::{Allocators, ResourceEnd, ResourceMissKind, ResourceMisses};
use handlescope_model::{Cancel, TableRows, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::Shell;
use handlescope_tests::bytes::{ByteString, Guid, PointerSize};
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::{
    EventInfo, HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, RangeRecord,
};
use handlescope_tests::scenario::TraceBuilder;

const EVENTS: u32 = 300_000;

const QUESTIONS: [&str; 4] = [
    ".dump Resource -TopN 2",
    ".dump Resource -Leak -LeakAtExit -ShowStack -TopN 2",
    ".dump Resource -GroupBy allocator,thread,end,size -ShowTime 2 -TopN 2",
    ".why",
];

/// The counts found in a trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct AllocationCounts {
    allocators: usize,
    /// Allocations and parts of allocations by how they ended, and events without an allocation by kind.
    counts: BTreeMap<&'static str, u32>,
}

impl AllocationCounts {
    fn new(allocators: usize, counts: &[(&'static str, u32)]) -> Self {
        Self { allocators, counts: counts.iter().copied().collect() }
    }

    /// Extracts a trace, and queries it.
    fn from_trace(trace: &TraceBuilder) -> Self {
        let shell = Shell::new();
        let (etl, output) = (shell.path("a.etl"), shell.path("a.json7z"));
        trace.write(&etl).unwrap();
        extract(&etl, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
        let mut arguments = vec!["a.json7z"];
        arguments.extend(QUESTIONS.iter().flat_map(|question| ["-c", question]));
        let _ = shell.run(&arguments).ok();
        let trace = Trace::open(&output).unwrap();
        let ends = allocations_of(&trace)
            .into_iter()
            .map(|own| ResourceEnd::from_code(own.end).unwrap().name());
        let misses = ResourceMisses::read(&trace).unwrap();
        let misses = misses.rows().map(|own| ResourceMissKind::from_code(own.what).unwrap().name());
        let allocators = Allocators::read(&trace).unwrap().len();
        let mut found = Self { allocators, ..Self::default() };
        ends.chain(misses).for_each(|name| *found.counts.entry(name).or_default() += 1);
        found
    }
}

/// A trace of process 700 with events a microsecond apart.
struct ManyAllocations {
    trace: TraceBuilder,
    ns: i64,
}

impl ManyAllocations {
    fn new() -> Self {
        let mut trace = TraceBuilder::new();
        trace.process(700, "app.exe");
        Self { trace, ns: 0 }
    }

    fn heap(&mut self, tid: u32, heap: u64, call: HeapCall) {
        self.ns += 1000;
        self.trace.heap(self.ns, (700, tid), heap, call);
    }

    /// Adds a call for `count` pages from page `first` on.
    fn pages(&mut self, first: u64, count: u64, flags: u32) {
        self.ns += 1000;
        let range =
            RangeRecord { base: 0x1000_0000 + first * 4096, size: count * 4096, pid: 700, flags };
        if flags == MEM_DECOMMIT {
            self.trace.virtual_free(self.ns, (700, 701), range);
        } else {
            self.trace.virtual_alloc(self.ns, (700, 701), range);
        }
    }
}

#[test]
fn a_range_in_pieces_is_committed_again_and_again() {
    let mut many = ManyAllocations::new();
    let pieces = EVENTS / 3;
    let pages = 2 * u64::from(pieces);
    many.pages(0, pages, MEM_RESERVE);
    for piece in 0..u64::from(pieces) {
        many.pages(2 * piece, 1, MEM_COMMIT);
    }
    for piece in 0..u64::from(pieces) {
        many.pages(0, pages, MEM_COMMIT);
        many.pages(2 * piece + 1, 1, MEM_DECOMMIT);
    }
    many.pages(0, pages, MEM_DECOMMIT);
    // The first call for all pages commits the gaps, and loses them page by page to later calls. Each later call
    // commits what the one before it lost.
    let freed = 3 * pieces - 1;
    assert_eq!(
        AllocationCounts::from_trace(&many.trace),
        AllocationCounts::new(2, &[("open", 1), ("freed", freed)])
    );
}

#[test]
fn every_block_has_a_heap_of_its_own() {
    let mut many = ManyAllocations::new();
    for number in 0..u64::from(EVENTS) {
        many.heap(701, number << 16, HeapCall::Alloc { address: number + 1, size: 8 });
    }
    assert_eq!(
        AllocationCounts::from_trace(&many.trace),
        AllocationCounts::new(EVENTS as usize, &[("open", EVENTS)])
    );
}

#[test]
fn a_heap_that_was_large_is_destroyed_again_and_again() {
    let mut many = ManyAllocations::new();
    let count = EVENTS / 3;
    for number in 0..u64::from(count) {
        many.heap(701, 0x10000, HeapCall::Alloc { address: number + 1, size: 8 });
    }
    for _ in 0..count {
        many.heap(701, 0x10000, HeapCall::Destroy);
        many.heap(701, 0x10000, HeapCall::Alloc { address: 1, size: 8 });
    }
    let destroyed = 2 * count - 1;
    let counts = [("destroyed", destroyed), ("open", 1)];
    assert_eq!(
        AllocationCounts::from_trace(&many.trace),
        AllocationCounts::new(count as usize + 1, &counts)
    );
}

#[test]
fn every_reallocation_has_a_thread_of_its_own() {
    let mut many = ManyAllocations::new();
    many.heap(701, 0x10000, HeapCall::Alloc { address: 1, size: 8 });
    for number in 1..EVENTS {
        let address = u64::from(number);
        let call =
            HeapCall::ReAlloc { address: address + 1, old_address: address, size: 8, old_size: 8 };
        many.heap(701 + number, 0x10000, call);
    }
    let counts = [("open", 1), ("reallocated", EVENTS - 1)];
    assert_eq!(AllocationCounts::from_trace(&many.trace), AllocationCounts::new(1, &counts));
}

#[test]
fn every_release_has_an_allocator_of_its_own() {
    let mut many = ManyAllocations::new();
    let provider = Guid::new(0x11111111_0000_0000_0000_000000000001);
    let stamp = |trace: &TraceBuilder, ns| Stamp::new(trace.options().raw(ns), 700, 701);
    let info = EventInfo {
        provider,
        provider_name: "Contoso".into(),
        id: 1,
        task: "ReleaseResource".into(),
        fields: [("Handle", 16), ("Allocator", 8)].map(|(name, kind)| (name.into(), kind)).into(),
        ..EventInfo::default()
    };
    let event = info.event(PointerSize::Eight, stamp(&many.trace, 1));
    many.trace.raw_event(1, 0, event);
    for number in 0..EVENTS {
        many.ns += 1000;
        let payload = ByteString::new().u64(7).u32(number).into_vec();
        let stamp = stamp(&many.trace, many.ns);
        let event = ManifestEvent { provider, id: 1, stamp, payload, ..ManifestEvent::default() };
        many.trace.raw_event(many.ns, 0, event.encode());
    }
    // Most are counted under one name.
    let allocators = (1 << 16) + 1;
    assert_eq!(
        AllocationCounts::from_trace(&many.trace),
        AllocationCounts::new(allocators, &[("orphan_free", EVENTS)])
    );
}

#[test]
fn every_block_is_of_another_life_of_its_process() {
    let mut many = ManyAllocations::new();
    let lives = EVENTS / 3;
    for life in 0..i64::from(lives) {
        let ns = 1_000_000 + life * 2000;
        many.trace.process(800, "short.exe").started(ns).ended(ns + 1000);
        let call = HeapCall::Alloc { address: 1, size: 8 };
        many.trace.heap(ns + 500, (800, 801), 0x10000, call);
    }
    let later = 1_000_000_000 + i64::from(lives) * 2000;
    for number in 0..i64::from(lives) {
        let call = HeapCall::Alloc { address: 1, size: 8 };
        many.trace.heap(later + number, (800, 801), 0x10000, call);
    }
    // Events after the end of the last life belong to it, because no other life starts.
    let counts = [("at_exit", lives), ("replaced", lives)];
    assert_eq!(
        AllocationCounts::from_trace(&many.trace),
        AllocationCounts::new(lives as usize, &counts)
    );
}
