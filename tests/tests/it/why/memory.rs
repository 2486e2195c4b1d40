//! Allocations that leak.

use handlescope_tests::binary::run_over;
use handlescope_tests::payload::{HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, RangeRecord};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, KERNEL, MS, OBJECT, asked, causes, suspects};

const HEAP: u64 = 0x1_0000;
const PAGE: u64 = 4096;

/// Builds a process with two functions for the stacks of its allocations.
fn memory_trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "leaky.exe").started(MS);
    trace.module(700, r"C:\leaky.exe", 0x7ff6_0000_0000, 0x1_0000);
    trace.end(60_000 * MS);
    trace
}

/// Returns the stack with this number.
fn stack(number: u64) -> [u64; 1] {
    [0x7ff6_0000_1000 + 0x100 * number]
}

#[test]
fn a_block_that_only_grows_is_a_leak_and_one_that_is_freed_is_not() {
    let mut trace = memory_trace();
    for step in 0..20_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let (address, size) = (0x10_0000 + 0x1_0000 * step, 100 << step);
        let call = match step {
            0 => HeapCall::Alloc { address, size },
            _ => HeapCall::ReAlloc {
                address,
                old_address: address - 0x1_0000,
                size,
                old_size: size / 2,
            },
        };
        trace.heap(ns, (700, 701), HEAP, call).stack(&[], &stack(1));
        let other = 0x100 + 16 * step;
        let call = HeapCall::Alloc { address: other, size: 1 << 20 };
        trace.heap(ns + MS, (700, 701), HEAP, call).stack(&[], &stack(2));
        trace.heap(ns + 2 * MS, (700, 701), HEAP, HeapCall::Free { address: other });
    }
    let found = asked(&trace, "");
    let [grown] = suspects(&found) else { panic!("{found:#}") };
    assert_eq!(causes(grown), ["realloc_growth", "never_freed"]);
    assert_eq!((&grown["type"], &grown["bytes"]), (&json!("heap"), &json!(100 << 19)));
    // From 100 bytes to 50 MB in 19 s.
    let rate = grown["bytes_per_minute"].as_f64().unwrap();
    assert!((rate / (f64::from(100 << 19) * 60.0 / 19.0) - 1.0).abs() < 0.01, "{rate}");
    let process = asked(&trace, "-pn other.exe");
    assert!(suspects(&process).is_empty());
    assert!(suspects(&asked(&trace, "-Type Event")).is_empty());
    assert_eq!(suspects(&asked(&trace, "-Type heap")).len(), 1);
    for options in ["-pn absent", "-Type Event"] {
        let document = asked(&trace, options);
        assert_eq!(document["no_match"]["option"], json!(options), "{document}");
        assert_eq!(document["no_match"]["before"], json!(40), "{document}");
        assert_eq!(suspects(&document).len(), 0);
    }
}

#[test]
fn heaps_that_are_not_destroyed_and_addresses_that_nothing_is_committed_of_are_leaks() {
    let mut trace = memory_trace();
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let heap = 0x100_0000 * (step + 1);
        trace.heap(ns, (700, 701), heap, HeapCall::Create).stack(&[], &stack(1));
        let call = HeapCall::Alloc { address: heap + 64, size: 10 };
        trace.heap(ns + MS, (700, 701), heap, call).stack(&[], &stack(2));
        if step % 3 == 0 {
            trace.heap(ns + 2 * MS, (700, 701), heap, HeapCall::Destroy);
        }
        let range = RangeRecord {
            base: 0x1_0000_0000 + 16 * PAGE * step,
            size: 16 * PAGE,
            pid: 700,
            flags: MEM_RESERVE,
        };
        trace.virtual_alloc(ns + 3 * MS, (700, 701), range).stack(&[], &stack(3));
        let committed = RangeRecord { size: PAGE, flags: MEM_COMMIT, ..range };
        if step % 2 == 0 {
            trace.virtual_alloc(ns + 4 * MS, (700, 701), committed).stack(&[], &stack(4));
        }
    }
    let found = asked(&trace, "");
    let of = |kind: &str| suspects(&found).iter().find(|own| own["type"] == kind).unwrap();
    let heaps = of("private heap");
    assert_eq!(causes(heaps), ["heap_not_destroyed"]);
    assert_eq!((&heaps["leaked"], &heaps["created"]), (&json!(20), &json!(30)));
    assert!(heaps["command"].as_str().unwrap().contains("-GroupBy allocator"), "{heaps}");
    let reserved = of("reserve");
    assert_eq!(causes(reserved), ["reserve_without_commit", "never_freed"]);
    assert_eq!(reserved["diagnoses"][0]["count"], 15);
    assert_eq!(of("commit")["bytes"], json!(15 * PAGE));
    assert_eq!(of("heap")["leaked"], 20);
}

#[test]
fn a_trace_with_handles_and_allocations_answers_both() {
    let mut trace = memory_trace();
    trace.object_type(EVENT, "Event");
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let object = OBJECT + 0x100 * step;
        trace.create_handle(ns, (700, 701), object, 4 * step as u32 + 4, EVENT);
        trace.stack(&KERNEL, &stack(1));
        let call = HeapCall::Alloc { address: 0x1000 + 32 * step, size: 10 };
        trace.heap(ns + MS, (700, 701), HEAP, call).stack(&[], &stack(2));
    }
    let found = asked(&trace, "");
    let kinds: Vec<&Value> = suspects(&found).iter().map(|own| &own["type"]).collect();
    assert_eq!(kinds, ["Event", "heap"]);
    let ranks: Vec<&Value> = suspects(&found).iter().map(|own| &own["rank"]).collect();
    assert_eq!(ranks, [1, 2]);
    let count = |line: &str, member: &str| {
        let document: Value = serde_json::from_str(&run_over(&trace, line).ok().stdout).unwrap();
        document.pointer(member).cloned()
    };
    let handles = count(".dump ObjectRef -Leak -json\n", "/totals/leaked_handles");
    let blocks = count(".dump Resource -json\n", "/totals/0/leaked");
    assert_eq!((handles, blocks), (Some(json!(30)), Some(json!(30))));
}

#[test]
fn an_allocation_freed_in_part_is_not_counted_as_freed() {
    let mut trace = memory_trace();
    for step in 0..30_u64 {
        let ns = (100 + 1000 * step as i64) * MS;
        let base = 0x1_0000_0000 + 16 * PAGE * step;
        let range = RangeRecord { base, size: 2 * PAGE, pid: 700, flags: MEM_COMMIT };
        trace.virtual_alloc(ns, (700, 701), range).stack(&[], &stack(1));
        let part = RangeRecord { size: PAGE, flags: MEM_DECOMMIT, ..range };
        trace.virtual_free(ns + MS, (700, 701), part).stack(&[], &stack(2));
    }
    let found = asked(&trace, "");
    let [parts] = suspects(&found) else { panic!("{found:#}") };
    assert_eq!((&parts["leaked"], &parts["bytes"]), (&json!(30), &json!(30 * PAGE)));
    assert_eq!(causes(parts), ["sometimes_freed"]);
    let text = parts["diagnoses"][0]["text"].as_str().unwrap();
    assert_eq!(text, "none freed completely, some in part");
}
