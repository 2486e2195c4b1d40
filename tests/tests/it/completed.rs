//! A trace straight from a session is completed with the identities of its images and with the events of other
//! sessions.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use handlescope_extract::{
    AdditionCounts, CompleteError, ExtractOptions, NoObserver, StackChoice, complete,
};
use handlescope_model::tables::{Modules, TraceInfos};
use handlescope_model::{Cancel, Table, TableRows, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::{Shell, examples, sample_symbols, sample_trace};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::{EtlFile, FileOptions, RawClock};
use handlescope_tests::needs_data;
use handlescope_tests::payload::{IDENTITY_GUID, MethodEvent, MethodRecord};
use handlescope_tests::scenario::{Caller, TraceBuilder};
use tempfile::TempDir;

const MS: i64 = 1_000_000;

/// Finds the file of an image by the last part of its path, among the sample's executables.
fn of_the_sample(path: &str) -> Option<PathBuf> {
    let name = path.rsplit('\\').next()?;
    Some(examples().join("bin").join(name)).filter(|file| file.is_file())
}

fn nowhere(_: &str) -> Option<PathBuf> {
    None
}

fn completed_with(
    from: &Path,
    further: &[PathBuf],
    locate: &mut dyn FnMut(&str) -> Option<PathBuf>,
    to: &Path,
) -> Result<AdditionCounts, CompleteError> {
    let mut out = File::create(to).unwrap();
    complete(from, further, locate, &mut out, &NoObserver, &Cancel::default())
}

fn extracted(etl: &Path) -> Trace {
    let output = etl.with_extension("json7z");
    let options = ExtractOptions { stacks: StackChoice::All, ..ExtractOptions::default() };
    extract(etl, &output, options, &NoObserver, &Cancel::default()).unwrap();
    Trace::open(&output).unwrap()
}

/// Returns the columns in which two traces differ, except those about the file itself.
fn differences(left: &Trace, right: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    for table in Table::ALL {
        let [left, right] = [left, right].map(|trace| trace.frame(table).unwrap());
        if left.height() != right.height() {
            found.push(format!("{}: {} {}", table.name(), left.height(), right.height()));
            continue;
        }
        for (left, right) in left.columns().iter().zip(right.columns()) {
            let name = left.name().as_str();
            let is_of_file = name.starts_with("source_") || name == "first_offset";
            if !is_of_file && !left.equals_missing(right) {
                found.push(format!("{}.{name}", table.name()));
            }
        }
    }
    found
}

/// Writes the sample as its session would have left it: with image events, but nothing that identifies the images.
fn unmerged_sample(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("unmerged.etl");
    completed_with(&sample_trace(), &[], &mut nowhere, &path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let guid = IDENTITY_GUID.to_bytes();
    let places: Vec<usize> =
        bytes.windows(16).enumerate().filter(|(_, at)| *at == guid).map(|(at, _)| at).collect();
    assert!(places.len() > 10);
    places.iter().for_each(|at| bytes[at + 15] ^= 0xFF);
    fs::write(&path, bytes).unwrap();
    path
}

/// Returns name, PDB and PDB identity of every module that has one.
fn pdbs(trace: &Trace) -> Vec<(String, String, String, u32)> {
    let modules = Modules::read(trace).unwrap();
    let mut found: Vec<_> = modules
        .rows()
        .filter_map(|module| {
            let pdb = module.pdb_name?.rsplit('\\').next()?.to_owned();
            Some((module.name, pdb, module.pdb_guid?, module.pdb_age?))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn images_get_the_identities_of_their_files_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    let unmerged = unmerged_sample(&folder);
    let path = folder.path().join("completed.etl");
    let done = completed_with(&unmerged, &[], &mut of_the_sample, &path).unwrap();
    let [before, after, merged] =
        [&unmerged, &path, &sample_copy(&folder)].map(|etl| extracted(etl));
    assert_eq!(pdbs(&before), []);
    assert!(pdbs(&merged).len() > 4, "{:?}", pdbs(&merged));
    assert_eq!(pdbs(&after), pdbs(&merged));
    assert_eq!((done.identified, done.events), (pdbs(&merged).len() as u64, 0));
    let changed = differences(&before, &after);
    let expected = ["modules.", "event_counts", "trace."];
    let others: Vec<_> =
        changed.iter().filter(|name| !expected.iter().any(|own| name.starts_with(own))).collect();
    assert!(others.is_empty(), "{others:?}");
}

fn sample_copy(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("merged.etl");
    fs::copy(sample_trace(), &path).unwrap();
    path
}

#[test]
fn the_leak_of_a_completed_trace_has_names() {
    let (shell, folder) = (Shell::new(), tempfile::tempdir().unwrap());
    let unmerged = unmerged_sample(&folder);
    fs::copy(&unmerged, shell.path("before.etl")).unwrap();
    completed_with(&unmerged, &[], &mut of_the_sample, &shell.path("after.etl")).unwrap();
    let symbols = sample_symbols().to_string_lossy().into_owned();
    let named = |trace| {
        let run = shell.run(&["why", trace, "--symbol-path", &symbols]).ok();
        run.stdout.contains("leaky::EventCache::GetOrCreate   leaky.cpp:29")
    };
    assert_eq!((named("before.etl"), named("after.etl")), (false, true));
}

#[test]
fn a_trace_with_identities_gets_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completed.etl");
    completed_with(&sample_trace(), &[], &mut of_the_sample, &path).unwrap();
    let left = extracted(&sample_copy(&folder));
    // A buffer boundary between an event and its identity record hides the record.
    let changed = differences(&left, &extracted(&path));
    assert!(changed.iter().all(|name| name.starts_with("trace.")), "{changed:?}");
}

/// Builds a trace with one module, loaded during the recording and listed in the rundown at the end.
fn with_module(timestamp: u32, checksum: u32, size: u64) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.merge_events(false).process(700, "leaky.exe");
    let module = trace.module(700, r"C:\app\leaky.exe", 0x7ff6_0000_0000, size);
    module.timestamp(timestamp).checksum(checksum).loaded(MS);
    trace
}

#[test]
fn a_file_that_is_not_the_one_that_was_mapped_says_nothing() {
    let bytes = fs::read(examples().join("bin/leaky.exe")).unwrap();
    let field = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    // The header fields: PE signature, time stamp, and the image's size and checksum in the optional header.
    let pe = field(0x3C) as usize;
    let (timestamp, size, checksum) = (field(pe + 8), field(pe + 24 + 56), field(pe + 24 + 64));
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.etl"), folder.path().join("b.etl"));
    for (stamp, sum, size, expected) in [
        (timestamp, 5, 0x1000, (1, 0)),
        (timestamp ^ 1, checksum, size, (0, 1)),
        (0, checksum + 1, size, (0, 1)),
        (0, 0, size, (1, 0)),
        (0, 0, size + 0x1000, (0, 1)),
    ] {
        let mut trace = with_module(stamp, sum, size.into());
        trace.rundowns(false, false);
        trace.write(&from).unwrap();
        let done = completed_with(&from, &[], &mut of_the_sample, &to).unwrap();
        assert_eq!((done.identified, done.unidentified), expected, "{stamp:#x} {sum:#x} {size:#x}");
    }
}

/// Builds two simultaneous sessions: one with kernel events, one with .NET events.
fn two_sessions(options: FileOptions) -> (EtlFile, EtlFile, EtlFile) {
    let mut trace = TraceBuilder::with_options(options);
    trace.process(700, "net.exe").started(MS);
    trace.module(700, r"C:\app\leaky.exe", 0x7ff6_0000_0000, 0x1000);
    for number in 0..400 {
        let (time, caller) =
            (number * MS / 7, Caller::new(700, 701 + number as u32 % 5).on(number as u16 % 4));
        let code = 0x2000_0000 + 0x100 * number as u64;
        let object = 0xFFFF_8000_0000_1000 + 0x100 * number as u64;
        trace
            .create_handle(time, caller, object, 4 * number as u32 + 4, 16)
            .stack(&[], &[code + 5]);
        let method = MethodRecord {
            module_id: 9,
            address: code,
            size: 0x40,
            name: format!("M{number}"),
            ..MethodRecord::default()
        };
        trace.method(time + 9, caller, MethodEvent::Load, &method);
        trace.method(500 * MS, caller, MethodEvent::RundownEnd, &method);
    }
    let mut all = trace.build();
    let [mut kernel, mut clr] = [(), ()].map(|()| EtlFile::new(all.options.clone()));
    for (time, processor, event) in all.events() {
        let file = if event[2] == 19 { &mut clr } else { &mut kernel };
        file.push(processor, time, event.to_vec());
    }
    for file in [&mut all, &mut clr] {
        (file.options.events_lost, file.options.buffers_lost) = (5, 2);
    }
    (all, kernel, clr)
}

#[test]
fn the_events_of_a_further_session_become_those_of_the_trace() {
    for buffer_size in [0x1000, 0x1_0000] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (all, kernel, mut clr) =
            two_sessions(FileOptions { buffer_size, ..FileOptions::default() });
        clr.options.buffer_size = 0x2000;
        all.write(&path("all.etl")).unwrap();
        kernel.write(&path("kernel.etl")).unwrap();
        clr.write(&path("clr.etl")).unwrap();
        let further = [path("clr.etl")];
        let done =
            completed_with(&path("kernel.etl"), &further, &mut nowhere, &path("both.etl")).unwrap();
        assert_eq!(done.events, 800);
        well_formed(&fs::read(path("both.etl")).unwrap());
        let [all, both] = ["all.etl", "both.etl"].map(|name| extracted(&path(name)));
        let changed = differences(&all, &both);
        let is_other =
            |name: &&String| !name.starts_with("trace.buffer") && !name.starts_with("warnings");
        let others: Vec<_> = changed.iter().filter(is_other).collect();
        assert!(others.is_empty(), "{others:?}");
        let info = TraceInfos::read(&both).unwrap();
        assert_eq!((info.events_lost[0], info.buffers_lost[0]), (5, 2));
    }
}

#[test]
fn a_session_with_another_clock_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (_, kernel, mut clr) = two_sessions(FileOptions::default());
    clr.options.clock = RawClock::Qpc { frequency: 2_000_000 };
    kernel.write(&path("kernel.etl")).unwrap();
    clr.write(&path("clr.etl")).unwrap();
    let further = [path("clr.etl")];
    let refused = completed_with(&path("kernel.etl"), &further, &mut nowhere, &path("both.etl"));
    assert!(matches!(refused, Err(CompleteError::ClockMismatch)), "{refused:?}");
}

/// Checks that buffers have equal sizes and numbers, with whole events in time order on each processor, and that the
/// header counts them.
fn well_formed(bytes: &[u8]) {
    let u16_at = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let i64_at = |at: usize| i64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let size = u32_at(0) as usize;
    assert_eq!((bytes.len() % size, u32_at(72 + 32) as usize), (0, size));
    assert_eq!(u32_at(72 + 32 + 36) as usize, bytes.len() / size);
    let mut last: BTreeMap<u16, i64> = BTreeMap::new();
    for (number, start) in (0..bytes.len()).step_by(size).enumerate() {
        assert_eq!((u32_at(start) as usize, i64_at(start + 24)), (size, number as i64));
        let (filled, processor) = (u32_at(start + 48) as usize, u16_at(start + 40));
        let mut at = start + 72;
        while at < start + filled {
            assert_eq!(bytes[at + 3], 0xC0);
            let is_kernel = matches!(bytes[at + 2], 1..=4 | 0x10 | 0x11);
            let event = usize::from(u16_at(if is_kernel { at + 4 } else { at }));
            let time = i64_at(at + if matches!(bytes[at + 2], 0x10 | 0x11) { 8 } else { 16 });
            let before = last.entry(processor).or_insert(time);
            assert!(*before <= time, "processor {processor}, {at:#x}");
            *before = time;
            at += event.next_multiple_of(8);
        }
        assert_eq!(at, start + filled);
        assert!(bytes[at..start + size].iter().all(|byte| *byte == 0xFF));
    }
}

#[test]
fn records_that_do_not_fit_go_on_in_a_buffer_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.etl"), folder.path().join("b.etl"));
    let mut trace = TraceBuilder::with_options(FileOptions {
        buffer_size: 0x400,
        merged: false,
        ..FileOptions::default()
    });
    trace.merge_events(false);
    for pid in 700..760 {
        trace.process(pid, "leaky.exe");
        let size = 0x1000;
        let module =
            trace.module(pid, r"\Device\HarddiskVolume3\leaky.exe", 0x7ff6_0000_0000, size);
        module.timestamp(0).checksum(0);
    }
    trace.write(&from).unwrap();
    completed_with(&from, &[], &mut of_the_sample, &to).unwrap();
    well_formed(&fs::read(&to).unwrap());
    assert!(fs::metadata(&to).unwrap().len() >= fs::metadata(&from).unwrap().len());
}

/// Every event of the published traces survives, in files of every kind.
#[needs_data]
#[test]
fn real_traces_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["slow-ppt-2011", "net.4.5.2.x64", "TraceLoggingTester", "ShutdownPerfDiagLogger"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        let (left, right) = (folder.path().join("a.etl"), folder.path().join("b.etl"));
        fs::copy(trace.etl(), &left).unwrap();
        completed_with(&left, &[], &mut nowhere, &right).unwrap();
        let changed = differences(&extracted(&left), &extracted(&right));
        // Compressed buffers are written expanded.
        let is_of_buffers =
            |name: &String| name.starts_with("trace.buffer") || *name == "trace.log_file_mode";
        let others: Vec<_> = changed.iter().filter(|name| !is_of_buffers(name)).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}
