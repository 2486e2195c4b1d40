//! Allocations in the tables of an extract: of scenarios and, to the last block, of the published traces.

mod published;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::history::Resource;
use handlescope_model::rules::is_freed;
use handlescope_model::tables::{
    Acquisitions, Allocator, Allocators, End, Process, Processes, ResourceEnd, ResourceKind,
    ResourceMiss, ResourceMissKind, ResourceMisses,
};
use handlescope_model::{AcquisitionIdx, Cancel, ProcessIdx, TableRows, Trace};
use handlescope_sources::extract;
use serde_json::{Value, json};

/// Returns the allocations of a trace, with references to each other by their numbers.
pub fn allocations_of(trace: &Trace) -> Vec<Resource> {
    let first = trace.event_table().unwrap().allocations;
    let number = |row: Option<AcquisitionIdx>| row.map(|row| row.0 - first as u32);
    let end = |code| End::from_code(code).and_then(End::of_allocation).unwrap().code();
    let rows = Acquisitions::read(trace).unwrap();
    let rows = rows.rows().skip(first).map(|row| Resource {
        allocator: row.allocator.unwrap(),
        key: row.key,
        size: row.size.unwrap(),
        part_of: number(row.part_of),
        grown_from: number(row.grown_from),
        time_ns: row.opened_ns.unwrap(),
        tid: row.opened_tid,
        caller: row.opened_by,
        stack: row.opened_stack,
        end: end(row.end),
        end_time_ns: row.ended_ns,
        end_tid: row.ended_tid,
        end_stack: row.ended_stack,
        free_call: row.free_call,
    });
    rows.collect()
}

/// The tables of an extract as rows.
struct ExtractRows {
    processes: Vec<Process>,
    allocators: Vec<Allocator>,
    resources: Vec<Resource>,
    misses: Vec<ResourceMiss>,
}

impl ExtractRows {
    fn new(etl: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.json7z");
        let options = ExtractOptions::default();
        extract(etl, &output, options, &NoObserver, &Cancel::default()).unwrap();
        let trace = Trace::open(&output).unwrap();
        Self {
            processes: Processes::read(&trace).unwrap().rows().collect(),
            allocators: Allocators::read(&trace).unwrap().rows().collect(),
            resources: allocations_of(&trace),
            misses: ResourceMisses::read(&trace).unwrap().rows().collect(),
        }
    }

    fn process(&self, process: Option<ProcessIdx>) -> String {
        let Some(process) = process else { return String::new() };
        let process = &self.processes[process.row()];
        format!("{}({})", process.name, process.pid)
    }

    /// Returns the key of totals; the start tells the lives of a reused pid apart.
    fn place(&self, allocator: &Allocator) -> (String, String, String, i64) {
        let process = allocator.process.unwrap();
        let start = self.processes[process.row()].start_ns.unwrap_or_default();
        let name = self.process(Some(process));
        (kind(allocator).name().to_owned(), allocator.name.clone(), name, start)
    }

    fn totals(&self) -> BTreeMap<(String, String, String, i64), KnownNumbers> {
        let mut totals: BTreeMap<_, KnownNumbers> = BTreeMap::new();
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

    /// Returns everything that processes still hold, like `leaks` in the expected results.
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

/// Count, bytes, first and last time.
type PlaceFigures = (i64, i64, i64, i64);

impl ExtractRows {
    /// Returns the allocations with this end by place, like `outstanding` and `at_exit` in the expected results,
    /// without stacks.
    fn groups(&self, end: ResourceEnd) -> BTreeMap<(String, String, String, i64), PlaceFigures> {
        let mut groups = BTreeMap::new();
        for own in self.resources.iter().filter(|own| own.end == end.code()) {
            let place = self.place(&self.allocators[own.allocator.row()]);
            let group: &mut PlaceFigures =
                groups.entry(place).or_insert((0, 0, i64::MAX, i64::MIN));
            *group =
                add(*group, (own.part_of.is_none().into(), own.size, own.time_ns, own.time_ns));
        }
        groups
    }
}

fn add(a: PlaceFigures, b: PlaceFigures) -> PlaceFigures {
    (a.0 + b.0, a.1 + b.1, a.2.min(b.2), a.3.max(b.3))
}

type KnownNumbers = BTreeMap<String, i64>;

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
