//! Allocations: what the tables of an extract say of them, of scenarios and, to the last block, of the published
//! traces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver, extract};
use handlescope_model::rules::{is_freed, is_never_freed};
use handlescope_model::tables::{
    Allocator, Allocators, Process, Processes, Resource, ResourceEnd, ResourceKind, ResourceMiss,
    ResourceMissKind, ResourceMisses, Resources,
};
use handlescope_model::{Cancel, ProcessIdx, TableRows, Trace};
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::header::{HeaderKind, Stamp};
use handlescope_tests::needs_data;
use handlescope_tests::payload::{
    HeapCall, KernelPayload, MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord,
};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const TRACES: [&str; 3] = ["heap", "valloc", "generic"];

/// The tables of an extract, as rows.
struct Tables {
    processes: Vec<Process>,
    allocators: Vec<Allocator>,
    resources: Vec<Resource>,
    misses: Vec<ResourceMiss>,
}

impl Tables {
    fn of(etl: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.json7z");
        let options = ExtractOptions::default();
        extract(etl, &output, options, &NoObserver, &Cancel::default()).unwrap();
        let trace = Trace::open(&output).unwrap();
        Self {
            processes: Processes::read(&trace).unwrap().rows().collect(),
            allocators: Allocators::read(&trace).unwrap().rows().collect(),
            resources: Resources::read(&trace).unwrap().rows().collect(),
            misses: ResourceMisses::read(&trace).unwrap().rows().collect(),
        }
    }

    fn process(&self, process: Option<ProcessIdx>) -> String {
        let Some(process) = process else { return String::new() };
        let process = &self.processes[process.row()];
        format!("{}({})", process.name, process.pid)
    }

    /// What distinguishes totals; the start only of a process whose pid has several lives.
    fn place(&self, allocator: &Allocator) -> (String, String, String, i64) {
        let process = allocator.process.unwrap();
        let start = self.processes[process.row()].start_ns.unwrap_or_default();
        let name = self.process(Some(process));
        (kind(allocator).name().to_owned(), allocator.name.clone(), name, start)
    }

    fn totals(&self) -> BTreeMap<(String, String, String, i64), Totals> {
        let mut totals: BTreeMap<_, Totals> = BTreeMap::new();
        let mut calls = BTreeSet::new();
        for resource in &self.resources {
            let allocator = &self.allocators[resource.allocator.row()];
            let own = totals.entry(self.place(allocator)).or_default();
            let is_range = matches!(kind(allocator), ResourceKind::Commit | ResourceKind::Reserve);
            let end = ResourceEnd::from_code(resource.end).unwrap();
            let mut add = |name: &str, count: i64| {
                *own.entry(name.to_owned()).or_default() += count;
                *own.entry(bytes_of(name)).or_default() += resource.size;
            };
            add("allocs", resource.part_of.is_none().into());
            match end {
                end if is_freed(end) => {
                    let call = resource.free_call.map(|call| (call, resource.allocator));
                    add("frees", call.is_none_or(|call| calls.insert(call)).into());
                }
                ResourceEnd::Replaced => add("replaced", (!is_range).into()),
                ResourceEnd::Destroyed => add("destroyed", 1),
                ResourceEnd::AtExit => add("at_exit", 1),
                ResourceEnd::Open => add("outstanding", 1),
                _ => {}
            }
        }
        for miss in &self.misses {
            let own = totals.entry(self.place(&self.allocators[miss.allocator.row()])).or_default();
            let mut add = |name: &str, number| *own.entry(name.to_owned()).or_default() += number;
            match ResourceMissKind::from_code(miss.what).unwrap() {
                ResourceMissKind::OrphanFree => {
                    add("orphan_frees", 1);
                    add("orphan_bytes", miss.size);
                }
                ResourceMissKind::Ignored => add("ignored", 1),
            }
        }
        for own in totals.values_mut() {
            own.retain(|_, number| *number != 0);
        }
        totals
    }

    /// Everything that its process still holds, as `leaks` of the expected results.
    fn leaks(&self) -> Vec<(Value, Option<u32>)> {
        let open = self.resources.iter().filter(|own| own.end == ResourceEnd::Open.code());
        let leak = |own: &Resource| {
            let allocator = &self.allocators[own.allocator.row()];
            let (kind, name, process, _) = self.place(allocator);
            let key = format!("{:#x}", own.key);
            let leak = json!([own.time_ns, kind, name, process, own.tid, key, own.size]);
            (leak, own.stack.map(|stack| stack.0))
        };
        open.map(leak).collect()
    }
}

/// Number, bytes, first and last time.
type Group = (i64, i64, i64, i64);

impl Tables {
    /// What ended so, by place, as `outstanding` and `at_exit` of the expected results, without stacks.
    fn groups(&self, end: ResourceEnd) -> BTreeMap<(String, String, String, i64), Group> {
        let mut groups = BTreeMap::new();
        for own in self.resources.iter().filter(|own| own.end == end.code()) {
            let place = self.place(&self.allocators[own.allocator.row()]);
            let group: &mut Group = groups.entry(place).or_insert((0, 0, i64::MAX, i64::MIN));
            *group =
                add(*group, (own.part_of.is_none().into(), own.size, own.time_ns, own.time_ns));
        }
        groups
    }
}

fn add(a: Group, b: Group) -> Group {
    (a.0 + b.0, a.1 + b.1, a.2.min(b.2), a.3.max(b.3))
}

type Totals = BTreeMap<String, i64>;

fn kind(allocator: &Allocator) -> ResourceKind {
    ResourceKind::from_code(allocator.kind).unwrap()
}

fn bytes_of(name: &str) -> String {
    match name {
        "allocs" => "alloc_bytes".into(),
        "frees" => "freed_bytes".into(),
        name => format!("{name}_bytes"),
    }
}

fn expected(trace: &SharedTrace) -> Value {
    let expected = fs::read_to_string(trace.expected()).unwrap();
    serde_json::from_str::<Value>(&expected).unwrap()["resources"].take()
}

#[needs_data]
#[test]
fn totals_are_those_that_are_known() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let (tables, expected) = (Tables::of(trace.etl()), expected(&trace));
        let mut found = tables.totals();
        for known in expected["totals"].as_array().unwrap() {
            let text = |name: &str| known[name].as_str().unwrap().to_owned();
            let start = known["process_start_ns"].as_i64().unwrap_or_default();
            let place = (text("kind"), text("allocator"), text("process"), start);
            let numbers = known.as_object().unwrap().iter();
            let numbers: Totals = numbers
                .filter(|(name, _)| *name != "process_start_ns")
                .filter_map(|(name, number)| Some((name.clone(), number.as_i64()?)))
                .collect();
            assert_eq!(found.remove(&place), Some(numbers), "{name} {place:?}");
        }
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[needs_data]
#[test]
fn every_allocation_that_is_left_over_is_known() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let (tables, expected) = (Tables::of(trace.etl()), expected(&trace));
        let sorted = |mut leaks: Vec<(Value, Option<u32>)>| {
            leaks.sort_by_cached_key(|(leak, _)| leak.to_string());
            leaks
        };
        let known = expected["leaks"].as_array().unwrap().iter().map(|leak| {
            let (stack, leak) = leak.as_array().unwrap().split_last().unwrap();
            (json!(leak), stack.as_i64().and_then(|stack| u32::try_from(stack).ok()))
        });
        let (known, found) = (sorted(known.collect()), sorted(tables.leaks()));
        let mut stacks = HashMap::new();
        let mut back = HashMap::new();
        for ((known, known_stack), (found, stack)) in known.iter().zip(&found) {
            assert_eq!(known, found, "{name}");
            assert_eq!(stacks.entry(known_stack).or_insert(stack), &stack, "{name} {known}");
            assert_eq!(back.entry(stack).or_insert(known_stack), &known_stack, "{name} {known}");
        }
        assert_eq!(known.len(), found.len(), "{name}");
    }
}

#[needs_data]
#[test]
fn what_ends_does_so_later_and_parts_point_to_the_first() {
    for name in TRACES {
        let tables = Tables::of(SharedTrace::open(&format!("synthetic/{name}")).etl());
        for own in &tables.resources {
            let end = ResourceEnd::from_code(own.end).unwrap();
            assert!(own.end_time_ns.is_none_or(|end| end >= own.time_ns), "{own:?}");
            let is_over = end != ResourceEnd::Open && end != ResourceEnd::Empty;
            assert_eq!(own.end_time_ns.is_some(), is_over, "{own:?}");
            assert_eq!(is_never_freed(end), matches!(end, ResourceEnd::Open | ResourceEnd::AtExit));
            for (other, is_same) in [(own.part_of, true), (own.grown_from, false)] {
                let Some(other) = other.map(|row| &tables.resources[row.row()]) else { continue };
                assert_eq!(other.time_ns == own.time_ns, is_same, "{own:?} {other:?}");
                assert!(other.part_of.is_none());
            }
        }
    }
}

#[needs_data]
#[test]
fn what_is_left_over_and_what_processes_left_has_known_times_and_bytes() {
    let trace = SharedTrace::open("synthetic/generic");
    let (tables, expected) = (Tables::of(trace.etl()), expected(&trace));
    for (name, end) in [("outstanding", ResourceEnd::Open), ("at_exit", ResourceEnd::AtExit)] {
        let mut known: BTreeMap<_, Group> = BTreeMap::new();
        for group in expected[name].as_array().unwrap() {
            let text = |name: &str| group[name].as_str().unwrap().to_owned();
            let number = |name: &str| group[name].as_i64().unwrap();
            let start = group["process_start_ns"].as_i64().unwrap_or_default();
            let place = (text("kind"), text("allocator"), text("process"), start);
            let sum = known.entry(place).or_insert((0, 0, i64::MAX, i64::MIN));
            let own = (number("count"), number("bytes"), number("first_ns"), number("last_ns"));
            *sum = add(*sum, own);
        }
        assert!(!known.is_empty());
        assert_eq!(tables.groups(end), known, "{name}");
    }
}

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

/// A trace of process 700, at first, and what happens in it, a millisecond apart.
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

    /// Newer systems pad what they write.
    fn heap(&mut self, call: HeapCall) -> &mut Self {
        let mut payload = call.payload(HEAP, self.pointer);
        payload.bytes.extend([0; 4]);
        self.event(700, &payload)
    }

    fn memory(&mut self, base: u64, pages: u64, flags: u32) -> &mut Self {
        self.event(700, &range(base, pages * 4096, 700, flags, self.pointer))
    }

    /// Each allocation as `kind key size end`, in the order of their table, and each miss.
    fn found(&self) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let etl = folder.path().join("a.etl");
        self.trace.build().write(&etl).unwrap();
        let tables = Tables::of(&etl);
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
    // Reserved before the trace.
    trace.memory(0x10000, 3, MEM_COMMIT).memory(0x11000, 0, MEM_RELEASE);
    assert_eq!(trace.found(), ["commit 0x10000 12288 open", "commit 0x11000 0 orphan_free"]);
}

#[test]
fn what_lies_at_the_end_of_the_address_space_or_in_no_process_is_followed_too() {
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
