//! Known allocations are found in the published traces.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use handlescope_model::rules::is_never_freed;
use handlescope_model::tables::ResourceEnd;
use handlescope_tests::binary::{handlescope, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::{Value, json};

use super::{ExtractRows, KnownNumbers, PlaceFigures, add};

const TRACES: [&str; 3] = ["heap", "valloc", "generic"];

fn expected(trace: &SharedTrace) -> Value {
    let expected = fs::read_to_string(trace.expected()).unwrap();
    serde_json::from_str::<Value>(&expected).unwrap()["resources"].take()
}

#[needs_data]
#[test]
fn totals_are_those_that_are_known() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let (tables, expected) = (ExtractRows::new(trace.etl()), expected(&trace));
        let mut found = tables.totals();
        for known in expected["totals"].as_array().unwrap() {
            let text = |name: &str| known[name].as_str().unwrap().to_owned();
            let start = known["process_start_ns"].as_i64().unwrap_or_default();
            let place = (text("kind"), text("allocator"), text("process"), start);
            let numbers: KnownNumbers = known
                .as_object()
                .unwrap()
                .iter()
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
fn the_line_after_an_extraction_distinguishes_what_only_the_end_of_a_process_freed() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let totals = expected(&trace);
        let totals = totals["totals"].as_array().unwrap();
        let sum = |member: &str| {
            totals.iter().map(|total| total[member].as_u64().unwrap_or_default()).sum::<u64>()
        };
        let home = tempfile::tempdir().unwrap();
        fs::copy(trace.etl(), home.path().join("trace.etl")).unwrap();
        let run = run_script(handlescope(home.path()).args(["extract", "trace.etl"]), "").ok();
        let line = run.stdout.replace(',', "");
        let said = format!(
            " {} leaked (and {} freed only by process exit) ",
            sum("outstanding"),
            sum("at_exit")
        );
        assert!(line.contains(&said), "{name}: {said}: {line}");
    }
}

#[needs_data]
#[test]
fn every_allocation_that_is_left_over_is_known() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let (tables, expected) = (ExtractRows::new(trace.etl()), expected(&trace));
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
fn allocations_end_after_they_start_and_parts_point_to_the_first() {
    for name in TRACES {
        let tables = ExtractRows::new(SharedTrace::open(&format!("synthetic/{name}")).etl());
        for own in &tables.resources {
            let end = ResourceEnd::from_code(own.end).unwrap();
            assert!(own.end_time_ns.is_none_or(|end| end >= own.time_ns), "{own:?}");
            let is_over = end != ResourceEnd::Open && end != ResourceEnd::Empty;
            assert_eq!(own.end_time_ns.is_some(), is_over, "{own:?}");
            assert_eq!(is_never_freed(end), matches!(end, ResourceEnd::Open | ResourceEnd::AtExit));
            for (other, is_same) in [(own.part_of, true), (own.grown_from, false)] {
                let Some(other) = other.map(|row| &tables.resources[row as usize]) else {
                    continue;
                };
                assert_eq!(other.time_ns == own.time_ns, is_same, "{own:?} {other:?}");
                assert!(other.part_of.is_none());
            }
        }
    }
}

#[needs_data]
#[test]
fn leaked_allocations_and_those_freed_at_exit_have_known_times_and_bytes() {
    let trace = SharedTrace::open("synthetic/generic");
    let (tables, expected) = (ExtractRows::new(trace.etl()), expected(&trace));
    for (name, end) in [("outstanding", ResourceEnd::Open), ("at_exit", ResourceEnd::AtExit)] {
        let mut known: BTreeMap<_, PlaceFigures> = BTreeMap::new();
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
