//! An archive does not depend on the number of threads that made it.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use handlescope_extract::{ExtractOptions, NoObserver, StackChoice};
use handlescope_model::Cancel;
use handlescope_sources::extract;
use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::sample_trace;
use handlescope_tests::data::{hostile, shared_data};
use handlescope_tests::needs_data;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use crate::handle_model::with_cases;

/// Extracts a trace into an archive in a folder; an error is returned as text.
pub fn archive_in(folder: &Path, trace: &Path, options: ExtractOptions) -> Result<PathBuf, String> {
    let output = folder.join("a.json7z");
    match extract(trace, &output, options, &NoObserver, &Cancel::default()) {
        Ok(_) => Ok(output),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the bytes of the archive, or the reason why there is none.
fn extracted(trace: &Path, stacks: StackChoice, threads: usize) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let threads = NonZeroUsize::new(threads).unwrap();
    let options = ExtractOptions { stacks, threads, ..ExtractOptions::default() };
    archive_in(folder.path(), trace, options).map(|archive| fs::read(archive).unwrap())
}

fn assert_same_for_any_number_of_threads(trace: &Path, stacks: StackChoice) {
    let alone = extracted(trace, stacks, 1);
    for threads in [2, 3, 8] {
        let is_same = extracted(trace, stacks, threads) == alone;
        assert!(is_same, "{} {stacks:?}: {threads} threads", trace.display());
    }
}

#[test]
fn a_trace_with_many_stacks_and_processes_becomes_the_same_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.etl");
    let compressed = LargeTrace {
        handle_events: 30_000,
        heap_events: 10_000,
        other_events: 500,
        cpus: 4,
        distinct_stacks: 3_000,
        stack_depth: 12,
        leak_percent: 2,
        processes: 7,
        seed: 11,
        compressed: true,
    };
    for trace in [LargeTrace { compressed: false, ..compressed.clone() }, compressed] {
        write_large_trace(&path, &trace).unwrap();
        assert_same_for_any_number_of_threads(&path, StackChoice::HandleEvents);
        assert_same_for_any_number_of_threads(&path, StackChoice::All);
    }
}

#[test]
fn the_sample_becomes_the_same_archive() {
    for stacks in [StackChoice::HandleEvents, StackChoice::All] {
        assert_same_for_any_number_of_threads(&sample_trace(), stacks);
    }
}

/// Returns the files with these endings in a folder of published traces.
pub fn traces(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let has_ending = |path: &PathBuf| {
        let name = path.to_string_lossy();
        !name.contains("pdbs") && endings.iter().any(|ending| name.ends_with(ending))
    };
    let traces: Vec<PathBuf> = files.filter(has_ending).collect();
    assert!(!traces.is_empty(), "{} has no traces", folder.display());
    traces
}

#[needs_data]
#[test]
fn published_and_hostile_traces_become_the_same_archives() {
    for path in traces(&shared_data().join("synthetic"), &[".etl.7z"])
        .into_iter()
        .chain(traces(&hostile(), &[".etl", ".zip"]))
    {
        assert_same_for_any_number_of_threads(&path, StackChoice::HandleEvents);
    }
}

#[needs_data]
#[test]
fn real_traces_become_the_same_archives() {
    for path in traces(&shared_data().join("real"), &[".zip", ".7z"]) {
        for stacks in [StackChoice::HandleEvents, StackChoice::All] {
            assert_same_for_any_number_of_threads(&path, stacks);
        }
    }
}

/// Generates traces with few or many processors, stacks and processes.
pub fn traces_of_any_shape() -> impl Strategy<Value = LargeTrace> {
    let sizes = (0..3_000_u64, 0..600_u64, 1..7_u16, 1..400_usize, 4..20_usize);
    (sizes, 0..20_u32, 1..9_u32, any::<u64>(), any::<bool>()).prop_map(
        |(sizes, leak_percent, processes, seed, compressed)| {
            let (handle_events, heap_events, cpus, distinct_stacks, stack_depth) = sizes;
            LargeTrace {
                handle_events,
                heap_events,
                other_events: 0,
                cpus,
                distinct_stacks,
                stack_depth,
                leak_percent,
                processes,
                seed,
                compressed,
            }
        },
    )
}

#[test]
fn any_trace_becomes_the_same_archive_damaged_ones_too() {
    let damage = vec((any::<u64>(), any::<u8>()), 0..6);
    let input = (traces_of_any_shape(), damage, 2..9_usize);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.etl");
    with_cases(12, input, |(trace, damage, threads)| {
        write_large_trace(&path, &trace).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len() as u64;
        for (position, value) in damage {
            bytes[(position % length) as usize] = value;
        }
        fs::write(&path, bytes).unwrap();
        // Unless all stacks are kept, rows are gathered, and stack parts come with their events.
        for stacks in [StackChoice::HandleEvents, StackChoice::All] {
            let alone = extracted(&path, stacks, 1);
            assert!(extracted(&path, stacks, threads) == alone, "{stacks:?}");
        }
    });
}
