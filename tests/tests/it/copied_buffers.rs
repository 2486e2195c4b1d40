//! A buffer that a file contains several times counts once, and a warning says so.

use std::fs;
use std::path::Path;

use handlescope_extract::{ExtractOptions, ExtractSummary, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::Shell;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;

const COPY: &str = "copy of a buffer left out";

/// Builds a trace of several buffers on several processors.
fn trace(compressed: bool) -> Vec<u8> {
    let options = FileOptions { buffer_size: 4096, compressed, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.process(700, "leaky.exe");
    trace.object_type(16, "Event").noise(300, 3);
    for step in 0..200u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(step % 40) * 0x100;
        let (ns, caller) = (1_000_000 * i64::from(step + 1), (700, 701, (step % 4) as u16));
        trace.create_handle(ns, caller, object, 4 * step + 4, 16);
        if step % 3 == 0 {
            trace.close_handle(ns + 10, caller, object, 4 * step + 4, 16, "");
        }
    }
    trace.to_bytes()
}

/// Splits a file into its buffers, headers included.
fn buffers(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut buffers = Vec::new();
    while let Some(size) = bytes.first_chunk::<4>() {
        let (buffer, rest) = bytes.split_at(u32::from_le_bytes(*size) as usize);
        buffers.push(buffer);
        bytes = rest;
    }
    buffers
}

fn extracted(folder: &Path, bytes: &[u8]) -> (ExtractSummary, Trace) {
    let (input, output) = (folder.join("a.etl"), folder.join("a.json7z"));
    fs::write(&input, bytes).unwrap();
    let cancel = Cancel::default();
    let summary = extract(&input, &output, ExtractOptions::default(), &NoObserver, &cancel);
    (summary.unwrap(), Trace::open(&output).unwrap())
}

/// Returns how many copies were counted, and the offset of the first one.
fn copies(summary: &ExtractSummary) -> Option<(u64, Option<u64>)> {
    summary.warnings.iter().find(|warning| warning.kind == COPY).map(|w| (w.count, w.first_offset))
}

#[test]
fn copies_of_buffers_change_no_answer_and_are_counted() {
    for compressed in [false, true] {
        let sound = trace(compressed);
        let whole = buffers(&sound);
        let (count, second) = (whole.len() as u64, whole[0].len() as u64);
        let in_order = whole.iter().flat_map(|buffer| [*buffer, *buffer]).collect::<Vec<_>>();
        let appended = [whole.clone(), whole.clone()].concat();
        let behind = [whole.clone(), vec![whole[2]; 3]].concat();
        let end = sound.len() as u64;
        let folder = tempfile::tempdir().unwrap();
        let (expected, original) = extracted(folder.path(), &sound);
        assert_eq!(copies(&expected), None);
        assert!(expected.handle_events > 200 && count > 8);
        for (file, found) in [
            (in_order.concat(), (count, second)),
            (appended.concat(), (count, end)),
            (behind.concat(), (3, end)),
            // The last copy is cut off.
            ([&sound[..], &sound[..sound.len() / 2 + 99]].concat(), (0, end)),
        ] {
            let (summary, trace) = extracted(folder.path(), &file);
            let (copies, first) = copies(&summary).unwrap();
            assert!((found.0 == 0 && copies > 3) || copies == found.0, "{copies}, {found:?}");
            assert_eq!(first, Some(found.1));
            // There is no other warning about the file.
            assert_eq!(summary.warnings.len(), expected.warnings.len() + 1, "{summary:?}");
            for table in Table::ALL {
                if ![Table::Trace, Table::Warnings].contains(&table) {
                    let (left, right) = (trace.frame(table), original.frame(table));
                    assert!(left.unwrap().equals_missing(&right.unwrap()), "{table:?}");
                }
            }
            for figure in ["buffers", "events_total", "stack_fragments", "attributed_header"] {
                let (left, right) =
                    (trace.column(Table::Trace, figure), original.column(Table::Trace, figure));
                assert_eq!(left.unwrap(), right.unwrap(), "{figure}");
            }
        }
    }
}

#[test]
fn buffers_without_numbers_and_times_are_no_copies_of_each_other() {
    let mut bytes = trace(false);
    for fields in [16..32, 4..8] {
        for buffer in bytes.chunks_mut(4096) {
            buffer[fields.clone()].fill(0);
        }
        let folder = tempfile::tempdir().unwrap();
        let (summary, _) = extracted(folder.path(), &bytes);
        assert_eq!(copies(&summary), None);
        assert_eq!(summary.handle_events, 267);
    }
    // The same if numbers start over, as in merged files.
    for (place, buffer) in bytes.chunks_mut(4096).enumerate() {
        buffer[24] = place as u8 % 3;
    }
    let (summary, _) = extracted(tempfile::tempdir().unwrap().path(), &bytes);
    assert_eq!((copies(&summary), summary.handle_events), (None, 267));
}

#[test]
fn copies_are_said_at_extraction_at_every_load_and_in_the_statistics() {
    let shell = Shell::new();
    let sample = fs::read(shell.path("leaky.etl")).unwrap();
    fs::write(shell.path("twice.etl"), [&sample[..], &sample].concat()).unwrap();
    let said = format!("duplicate buffers, skipped, first at offset 0x{:X}", sample.len());
    for _ in 0..2 {
        let run = shell.run(&["twice.etl", "-c", ".dump Stats"]).ok();
        assert_eq!(run.stderr.matches(&said).count(), 1, "{run:?}");
        assert!(run.stdout.contains(&said), "{run:?}");
        assert!(run.stdout.contains("No events and no buffers were lost"), "{run:?}");
    }
}

#[needs_data]
#[test]
fn no_published_trace_has_copies() {
    let real = ["TraceLoggingTester", "slow-ppt-2011", "net.4.5.2.x64", "ShutdownPerfDiagLogger"];
    let synthetic = [
        "duplicates",
        "eventleak",
        "filemap",
        "generic",
        "growth",
        "heap",
        "objectref",
        "registry",
        "threadleak",
        "valloc",
    ];
    let real = real.map(|name| format!("real/{name}"));
    let names = synthetic.map(|name| format!("synthetic/{name}")).into_iter().chain(real);
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let output = folder.path().join("a.json7z");
        let (options, cancel) = (ExtractOptions::default(), Cancel::default());
        let trace = SharedTrace::open(&name);
        let summary = extract(trace.etl(), &output, options, &NoObserver, &cancel).unwrap();
        assert_eq!(copies(&summary), None, "{name}");
    }
}
