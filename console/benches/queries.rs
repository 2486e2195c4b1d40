//! Benchmarks one query of each class: `cargo bench -p handlescope --bench queries`.
//!
//! The trace is generated: 200,000 handle events with 2,000 stacks. *Cold* is a session that loads the archive for the
//! query; *warm* is a session that ran the query before.

use std::io;
use std::path::{Path, PathBuf};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use handlescope_commands::console::Console;
use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_query::start_engine;
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{Messages, Screen};
use handlescope_sources::extract;
use handlescope_tests::bench::{LargeTrace, write_large_trace};

/// The classes, each with a sample query.
const QUERIES: [(&str, &str); 6] = [
    ("totals by process", ".dump ObjectRef -Leak -ShowTotal Process"),
    ("filter by process", ".dump ObjectRef -pn app1.exe -ShowTotal Total"),
    ("filter by frame", ".dump ObjectRef -StackFilter *app1* -ShowTotal Total"),
    ("groups by stack", ".dump ObjectRef -GroupBy process,type,createstack -TopN 10"),
    ("leaks as JSON", ".dump ObjectRef -Leak -json"),
    ("why", ".why"),
];

/// Writes an archive into a folder.
fn archive(folder: &Path) -> PathBuf {
    let (trace, archive) = (folder.join("trace.etl"), folder.join("trace.json7z"));
    let large =
        LargeTrace { handle_events: 200_000, distinct_stacks: 2_000, ..LargeTrace::default() };
    write_large_trace(&trace, &large).expect("a trace");
    let options = ExtractOptions::default();
    extract(&trace, &archive, options, &NoObserver, &Cancel::default()).expect("an extract");
    archive
}

/// Starts a session and loads an archive.
fn loaded(archive: &Path) -> Console {
    let mut console = Console::new(Settings::default(), Cancel::default());
    run(&mut console, &format!(".load \"{}\"", archive.display()));
    console
}

fn run(console: &mut Console, line: &str) {
    let mut errors = io::sink();
    let mut messages = Messages::new(&mut errors, Screen::PLAIN);
    console.run(line, &mut io::sink(), &mut messages).expect("an answer");
}

fn queries(criterion: &mut Criterion) {
    start_engine();
    let folder = tempfile::tempdir().expect("a folder");
    let archive = archive(folder.path());
    let mut cold = criterion.benchmark_group("cold");
    cold.sample_size(10);
    cold.bench_function("load", |bencher| bencher.iter(|| loaded(&archive)));
    for (class, query) in QUERIES {
        cold.bench_function(class, |bencher| {
            bencher.iter_batched(
                || loaded(&archive),
                |mut console| run(&mut console, query),
                BatchSize::PerIteration,
            );
        });
    }
    cold.finish();
    let mut warm = criterion.benchmark_group("warm");
    warm.sample_size(10);
    let mut console = loaded(&archive);
    for (class, query) in QUERIES {
        run(&mut console, query);
        warm.bench_function(class, |bencher| bencher.iter(|| run(&mut console, query)));
    }
    warm.finish();
}

criterion_group!(benches, queries);
criterion_main!(benches);
