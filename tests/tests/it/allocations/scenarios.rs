//! Scenarios of blocks and pages, down to each event.

use handlescope_model::tables::{ResourceEnd, ResourceMissKind};
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::file::FileOptions;
use handlescope_tests::header::{HeaderKind, Stamp};
use handlescope_tests::payload::{
    HeapCall, KernelPayload, MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord,
};
use handlescope_tests::scenario::TraceBuilder;

use super::{ExtractRows, kind};

const MS: i64 = 1_000_000;
const HEAP: u64 = 0x1_0000;

fn alloc(size: u64, address: u64) -> HeapCall {
    HeapCall::Alloc { address, size }
}

fn free(address: u64) -> HeapCall {
    HeapCall::Free { address }
}

fn realloc(size: u64, address: u64, old_address: u64) -> HeapCall {
    HeapCall::ReAlloc { address, old_address, size, old_size: 0 }
}

fn range(base: u64, size: u64, pid: u32, flags: u32, pointer: PointerSize) -> KernelPayload {
    let is_free = flags & (MEM_COMMIT | MEM_RESERVE) == 0;
    RangeRecord { base, size, pid, flags }.payload(is_free && flags != 0x8_0000, pointer)
}

/// A trace that starts with process 700; its events are a millisecond apart.
struct Scenario {
    trace: TraceBuilder,
    ms: i64,
    pointer: PointerSize,
}

impl Scenario {
    fn new(pointer: PointerSize) -> Self {
        let options = FileOptions { pointer, ..FileOptions::default() };
        let mut trace = TraceBuilder::with_options(options);
        trace.process(700, "app.exe");
        Self { trace, ms: 0, pointer }
    }

    fn event(&mut self, pid: u32, payload: &KernelPayload) -> &mut Self {
        self.ms += 1;
        let stamp = Stamp::new(self.trace.options().raw(self.ms * MS), pid, pid + 1);
        let event = payload.event(HeaderKind::Compact, self.pointer, stamp);
        self.trace.raw_event(self.ms * MS, 0, event);
        self
    }

    /// Newer systems pad heap events.
    fn heap(&mut self, call: HeapCall) -> &mut Self {
        let mut payload = call.payload(HEAP, self.pointer);
        payload.bytes.extend([0; 4]);
        self.event(700, &payload)
    }

    fn memory(&mut self, base: u64, pages: u64, flags: u32) -> &mut Self {
        self.event(700, &range(base, pages * 4096, 700, flags, self.pointer))
    }

    /// Returns each allocation as `kind key size end` in table order, then each miss.
    fn found(&self) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let etl = folder.path().join("a.etl");
        self.trace.build().write(&etl).unwrap();
        let tables = ExtractRows::new(&etl);
        let name = |allocator: handlescope_model::AllocatorIdx| {
            kind(&tables.allocators[allocator.row()]).name()
        };
        let resources = tables.resources.iter().map(|own| {
            let end = ResourceEnd::from_code(own.end).unwrap().name();
            let part = own.part_of.map_or("", |_| " part");
            let grown = own.grown_from.map_or("", |_| " grown");
            format!("{} {:#x} {} {end}{part}{grown}", name(own.allocator), own.key, own.size)
        });
        let misses = tables.misses.iter().map(|own| {
            let what = ResourceMissKind::from_code(own.what).unwrap().name();
            format!("{} {:#x} {} {what}", name(own.allocator), own.key, own.size)
        });
        resources.chain(misses).collect()
    }
}

#[test]
fn a_block_ends_with_its_free_its_heap_or_not_at_all() {
    use HeapCall::{Create, Destroy};
    for pointer in [PointerSize::Four, PointerSize::Eight] {
        let mut trace = Scenario::new(pointer);
        trace.heap(Create).heap(alloc(10, 0x100)).heap(alloc(20, 0x200)).heap(alloc(0, 0x300));
        trace.heap(free(0x100)).heap(free(0x100)).heap(alloc(7, 0)).heap(alloc(21, 0x200));
        trace.heap(Destroy).heap(free(0x200)).heap(Create).heap(alloc(30, 0x200));
        assert_eq!(
            trace.found(),
            [
                "heap 0x100 10 freed",
                "heap 0x200 20 replaced",
                "heap 0x300 0 destroyed",
                "heap 0x200 21 destroyed",
                "heap 0x200 30 open",
                "heap 0x100 0 orphan_free",
                "heap 0x0 7 ignored",
                "heap 0x200 0 orphan_free",
            ]
        );
    }
}

#[test]
fn a_reallocation_counts_once_with_and_without_the_events_that_may_go_with_it() {
    let mut trace = Scenario::new(PointerSize::Eight);
    trace.heap(alloc(10, 0x100)).heap(realloc(20, 0x100, 0x100)).heap(realloc(30, 0x200, 0x100));
    trace.heap(alloc(40, 0x300)).heap(free(0x200)).heap(realloc(40, 0x300, 0x200));
    trace.heap(realloc(50, 0, 0x300)).heap(realloc(60, 0x500, 0x400));
    assert_eq!(
        trace.found(),
        [
            "heap 0x100 10 reallocated",
            "heap 0x100 20 reallocated grown",
            "heap 0x200 30 reallocated grown",
            "heap 0x300 40 open grown",
            "heap 0x500 60 open",
            "heap 0x300 50 ignored",
            "heap 0x400 0 orphan_free",
        ]
    );
}

#[test]
fn pages_belong_to_what_committed_them_first_until_they_end() {
    let mut trace = Scenario::new(PointerSize::Eight);
    trace
        .memory(0x10000, 8, MEM_RESERVE)
        .memory(0x11000, 2, MEM_COMMIT)
        .memory(0x10000, 8, MEM_COMMIT);
    trace.memory(0x12000, 2, MEM_DECOMMIT).memory(0x10000, 1, MEM_COMMIT).memory(
        0x10000,
        0,
        MEM_RELEASE,
    );
    trace.memory(0x10000, 1, MEM_RELEASE).memory(0x20000, 2, MEM_RESERVE | MEM_COMMIT);
    trace.memory(0x21000, 2, MEM_RESERVE).memory(0x10000, 1, 0x8_0000);
    assert_eq!(
        trace.found(),
        [
            "reserve 0x10000 32768 freed",
            "reserve 0x20000 4096 replaced",
            "reserve 0x20000 4096 open part",
            "reserve 0x21000 8192 open",
            "commit 0x11000 4096 freed",
            "commit 0x11000 4096 freed part",
            "commit 0x10000 4096 freed",
            "commit 0x10000 20480 freed part",
            "commit 0x10000 0 empty",
            "commit 0x20000 4096 replaced",
            "commit 0x20000 4096 open part",
            "commit 0x10000 4096 orphan_free",
            "commit 0x10000 4096 ignored",
        ]
    );
}

#[test]
fn a_free_without_a_size_frees_nothing_where_nothing_is_known_to_be_reserved() {
    let mut trace = Scenario::new(PointerSize::Eight);
    // The range was reserved before the trace.
    trace.memory(0x10000, 3, MEM_COMMIT).memory(0x11000, 0, MEM_RELEASE);
    assert_eq!(trace.found(), ["commit 0x10000 12288 open", "commit 0x11000 0 orphan_free"]);
}

#[test]
fn allocations_at_the_end_of_the_address_space_or_in_no_process_are_followed() {
    let mut trace = Scenario::new(PointerSize::Eight);
    let all = u64::MAX;
    trace.event(9, &range(all - 1, all, 8, MEM_COMMIT | MEM_RESERVE, PointerSize::Eight));
    trace.event(9, &alloc(all, all).payload(all, PointerSize::Eight));
    trace.event(9, &range(0, all, 8, MEM_RELEASE, PointerSize::Eight));
    assert_eq!(
        trace.found(),
        [
            "reserve 0xfffffffffffffffe 4095 freed",
            "commit 0xfffffffffffffffe 4095 freed",
            "heap 0xffffffffffffffff 9223372036854775807 open",
        ]
    );
}
