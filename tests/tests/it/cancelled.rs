//! A cancelled extraction leaves nothing behind, whenever it is cancelled.

use std::cell::Cell;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use handlescope_extract::etl::{Event, Selector};
use handlescope_extract::{ExtractError, ExtractOptions, NoObserver, OpenRecording};
use handlescope_model::{Cancel, Trace};
use handlescope_sources::{SourceError, extract};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;
use tempfile::TempDir;

/// More than the number of cancellation checks in an extraction of a small trace.
const MANY: u32 = 10_000;

/// Builds a trace of small buffers with a few events.
fn trace() -> Vec<u8> {
    let options = FileOptions { buffer_size: 4096, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.object_type(16, "Event");
    for step in 0..200u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(step) * 0x100;
        trace.create_handle(1_000_000 * i64::from(step + 1), (4, 8, 0), object, 4 * step, 16);
    }
    trace.to_bytes()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Cancels at each check in turn; returns how many checks there are.
fn stop_everywhere(input: &Path, folder: &TempDir, threads: usize) -> u32 {
    let output = folder.path().join("x.json7z");
    let threads = NonZeroUsize::new(threads).unwrap();
    for looks in 0..MANY {
        let cancel = Cancel::after(looks);
        let options = ExtractOptions { threads, ..ExtractOptions::default() };
        match extract(input, &output, options, &NoObserver, &cancel) {
            Ok(_) => {
                assert_eq!(files(folder.path()), ["x.json7z"]);
                assert!(Trace::open(&output).is_ok());
                return looks;
            }
            Err(SourceError::Extract(ExtractError::Cancelled(_))) => {
                assert_eq!(files(folder.path()), [""; 0]);
            }
            Err(other) => panic!("stopped at look {looks}: {other}"),
        }
    }
    panic!("never done")
}

#[test]
fn a_cancelled_extraction_leaves_nothing_behind() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let input = source.path().join("x.etl");
    fs::write(&input, trace()).unwrap();
    for threads in [1, 2, 4] {
        // The checks are between batches of events, and between the later steps.
        assert!(stop_everywhere(&input, &target, threads) > 8);
        fs::remove_file(target.path().join("x.json7z")).unwrap();
    }
}

/// Returns how often an extraction of this many events checks whether it is cancelled.
fn looks(events: u32) -> u32 {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (input, output) = (source.path().join("x.etl"), target.path().join("x.json7z"));
    let options = FileOptions { buffer_size: 8 << 20, cpus: 1, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.object_type(16, "Event");
    for step in 0..events {
        let object = 0xffff_8100_0000_1000 + u64::from(step) * 0x100;
        trace.create_handle(1_000 * i64::from(step + 1), (4, 8, 0), object, 4 * step, 16);
    }
    fs::write(&input, trace.to_bytes()).unwrap();
    let ends = |looks: &u32| {
        let cancel = Cancel::after(*looks);
        extract(&input, &output, ExtractOptions::default(), &NoObserver, &cancel).is_ok()
    };
    let all: Vec<u32> = (0..MANY).collect();
    all.partition_point(|looks| !ends(looks)) as u32
}

#[test]
fn the_passes_between_reading_and_writing_look_every_few_thousand_rows() {
    // Processes, objects, groups (twice), and what is derived from them.
    const PASSES: u32 = 5;
    let (few, many) = (looks(100), looks(100 + 2 * 4096));
    assert!(many - few >= PASSES * 2, "{few} and {many}");
}

/// Selects every event.
struct EveryEvent;

impl Selector for EveryEvent {
    fn select(&mut self, _event: &Event<'_>) -> bool {
        true
    }
}

#[test]
fn a_large_buffer_is_left_in_its_middle() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.etl");
    let options = FileOptions { buffer_size: 16 << 20, cpus: 1, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.noise(100_000, 3);
    fs::write(&input, trace.to_bytes()).unwrap();
    for threads in [1, 2, 4] {
        let handed_out = Cell::new(0);
        let open = OpenRecording::open(&input).unwrap();
        let read = open.on_threads(NonZeroUsize::new(threads).unwrap()).read(
            &mut EveryEvent,
            |_| match handed_out.get() {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            },
            |_| handed_out.set(handed_out.get() + 1),
        );
        assert!(matches!(read, Err(ExtractError::Cancelled(_))));
        let handed_out = handed_out.get();
        assert!((1..50_000).contains(&handed_out), "{handed_out} on {threads} threads");
    }
}

/// A panic while collecting events ends the reading threads, which wait for the collector to take more.
#[test]
fn a_panic_over_an_event_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.etl");
    let options = FileOptions { cpus: 2, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.noise(300_000, 3);
    fs::write(&input, trace.to_bytes()).unwrap();
    for threads in [1, 2, 4] {
        let open = OpenRecording::open(&input).unwrap();
        let open = open.on_threads(NonZeroUsize::new(threads).unwrap());
        let read = catch_unwind(AssertUnwindSafe(|| {
            open.read(&mut EveryEvent, |_| ControlFlow::Continue(()), |_| panic!("over an event"))
        }));
        let panic = read.err().unwrap_or_else(|| panic!("no panic on {threads} threads"));
        assert_eq!(panic.downcast_ref(), Some(&"over an event"));
    }
}

#[test]
fn unpacking_can_be_cancelled() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let input = source.path().join("x.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&input).unwrap());
    zip.start_file("x.etl", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, &trace()).unwrap();
    zip.finish().unwrap();
    assert!(stop_everywhere(&input, &target, 2) > 8);
}

#[test]
fn a_cancelled_extraction_leaves_an_older_extract_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.etl"), folder.path().join("x.json7z"));
    fs::write(&input, trace()).unwrap();
    extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    let before = fs::read(&output).unwrap();
    let cancel = Cancel::after(8);
    assert!(matches!(
        extract(&input, &output, ExtractOptions::default(), &NoObserver, &cancel),
        Err(SourceError::Extract(ExtractError::Cancelled(_)))
    ));
    assert_eq!(fs::read(&output).unwrap(), before);
}
