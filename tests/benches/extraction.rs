//! Benchmarks the stages of an extraction: `cargo bench -p handlescope -p handlescope-tests --bench extraction`.
//!
//! The traces have 200,000 handle events with 2,000 stacks; throughput is in events or bytes of the trace.

use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use handlescope_extract::collect::{Collector, KernelSelector};
use handlescope_extract::etl::{Diagnostics, Event, Selector};
use handlescope_extract::lifecycle::{EventOwners, Lifetimes, MissingEvents, ProcessIndex, track};
use handlescope_extract::stacks::{Fragments, KeptStacks};
use handlescope_extract::{ExtractOptions, NoObserver, OpenRecording, Recording};
use handlescope_model::{Cancel, Table, Trace, write_parquet};
use handlescope_sources::extract;
use handlescope_tests::bench::{LargeTrace, write_large_trace};
use tempfile::TempDir;

const HANDLE_EVENTS: u64 = 200_000;

/// A generated trace.
struct Generated {
    folder: TempDir,
    path: PathBuf,
}

impl Generated {
    fn new(compressed: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.etl");
        let trace = LargeTrace {
            handle_events: HANDLE_EVENTS,
            distinct_stacks: 2_000,
            compressed,
            ..LargeTrace::default()
        };
        write_large_trace(&path, &trace).expect("a trace");
        Self { folder, path }
    }

    fn open(&self) -> OpenRecording {
        OpenRecording::open(&self.path).expect("a trace")
    }

    fn extract(&self) -> PathBuf {
        let output = self.folder.path().join("trace.json7z");
        let options = ExtractOptions::default();
        extract(&self.path, &output, options, &NoObserver, &Cancel::default()).expect("an extract");
        output
    }

    /// Collects the events of all families, and returns the recording with them.
    fn collect(&self) -> (Recording, Collector) {
        let mut collector = Collector::new(KeptStacks::default());
        let mut selector = KernelSelector::default();
        let recording = read(self.open(), &mut selector, |event| collector.event(event));
        collector.finish();
        (recording, collector)
    }
}

fn read(
    open: OpenRecording,
    selector: &mut dyn Selector,
    sink: impl FnMut(&Event<'_>),
) -> Recording {
    open.read(selector, |_| ControlFlow::Continue(()), sink).expect("a trace")
}

/// Selects nothing: events are framed but not decoded.
struct NoEvent;

impl Selector for NoEvent {
    fn select(&mut self, _: &Event<'_>) -> bool {
        false
    }
}

fn stages(criterion: &mut Criterion) {
    let plain = Generated::new(false);
    let compressed = Generated::new(true);

    let mut bytes = criterion.benchmark_group("bytes");
    bytes.sample_size(10).throughput(Throughput::Bytes(plain.open().uncompressed_bytes()));
    for (stage, trace) in [("framing", &plain), ("decompression and framing", &compressed)] {
        bytes.bench_function(stage, |bencher| {
            bencher.iter_batched(
                || trace.open(),
                |open| read(open, &mut NoEvent, |_| {}),
                BatchSize::PerIteration,
            );
        });
    }
    bytes.finish();

    let mut events = criterion.benchmark_group("handle events");
    events.sample_size(10).throughput(Throughput::Elements(HANDLE_EVENTS));
    events.bench_function("framing, merge and columns", |bencher| {
        bencher.iter(|| plain.collect());
    });
    let (recording, collected) = plain.collect();
    events.bench_function("owners and lifetimes", |bencher| {
        bencher.iter(|| lifetimes(&recording, &collected));
    });
    let archive = plain.extract();
    let frame = Trace::open(&archive).and_then(|trace| trace.frame(Table::Events)).expect("events");
    events.bench_function("encoding", |bencher| {
        bencher.iter_batched(
            || frame.clone(),
            |frame| write_parquet(Table::Events, frame, io::sink()).expect("encoded"),
            BatchSize::PerIteration,
        );
    });
    events.bench_function("all of it", |bencher| {
        bencher.iter(|| plain.extract());
    });
    events.bench_function("loading", |bencher| bencher.iter(|| load(&archive)));
    events.finish();
}

/// Computes the objects of all events.
fn lifetimes(recording: &Recording, collected: &Collector) -> usize {
    let (clock, cancel) = (&recording.clock, &Cancel::default());
    let mut diagnostics = Diagnostics::default();
    let index = &ProcessIndex::new(&collected.processes.rows);
    let missing = &MissingEvents::new(&recording.losses);
    let one = NonZeroUsize::MIN;
    let owners = EventOwners::new(collected, index, None, missing, one, &mut diagnostics, cancel);
    let owners = &owners.expect("not cancelled");
    let lifetimes = Lifetimes { collected, index, owners, missing, clock, cancel };
    let (tracked, _) = track(&lifetimes, None, one, &mut diagnostics).expect("not cancelled");
    tracked.objects.rows.len()
}

/// Loads the events of an archive with all columns.
fn load(archive: &Path) -> usize {
    Trace::open(archive).and_then(|trace| trace.frame(Table::Events)).expect("events").height()
}

/// Interns parts of stacks, each of which recurs several times.
fn interning(criterion: &mut Criterion) {
    const PARTS: u64 = 100_000;
    const DISTINCT: u64 = 5_000;
    const DEPTH: u64 = 20;
    let part = |number: u64| -> Vec<u8> {
        let addresses = (0..DEPTH).map(|frame| 0x7FF6_0000_0000 + number * 0x1000 + frame * 0x10);
        addresses.flat_map(u64::to_le_bytes).collect()
    };
    let parts: Vec<Vec<u8>> = (0..DISTINCT).map(part).collect();
    let mut group = criterion.benchmark_group("stacks");
    group.throughput(Throughput::Elements(PARTS));
    group.bench_function("interning", |bencher| {
        bencher.iter(|| {
            let mut fragments = Fragments::default();
            for number in 0..PARTS {
                // The factor is odd, so that the parts come in an order without a pattern.
                let at = number.wrapping_mul(0x9E37_79B9) % DISTINCT;
                fragments.intern(&parts[at as usize], 8, true);
            }
            fragments
        });
    });
    group.finish();
}

criterion_group!(benches, stages, interning);
criterion_main!(benches);
