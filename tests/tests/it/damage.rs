//! Damaged traces end in a clear message or a counted warning, never in a panic or a hang.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use handlescope_extract::{EventChoice, ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Trace};
use handlescope_sources::{SourceError, extract};
use handlescope_tests::bytes::{ByteString, Guid, PointerSize};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::{EventInfo, manifest_chunks, trace_logging};
use handlescope_tests::scenario::{StackMode, TraceBuilder};
use handlescope_tests::thorough::one_of;
use handlescope_tests::{corrupt, needs_data};

/// Long enough for the slowest machine; only a hang takes longer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Builds a trace with something of every kind.
fn fixture(compressed: bool) -> Vec<u8> {
    let options = FileOptions { buffer_size: 4096, compressed, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(4, "System");
    trace.process(700, "leaky.exe").started(1_000).command_line("leaky.exe -x");
    trace.process(800, "child.exe").parent(700).started(50_000_000);
    trace.module(0, r"\SystemRoot\ntoskrnl.exe", 0xffff_f800_0000_0000, 0x10_0000);
    trace.module(700, r"C:\leaky.exe", 0x7ff6_0000_0000, 0x2_0000);
    trace.object_type(16, "Event").noise(50, 3);
    for step in 0..120u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(step % 40) * 0x100;
        let ns = 1_000_000 * i64::from(step + 1);
        let mode = [StackMode::Fragments, StackMode::Keys, StackMode::Single][step as usize % 3];
        let address = 0xffff_f800_0000_1000 + u64::from(step % 7);
        trace.stack_mode(mode);
        let caller = (700, 701, (step % 4) as u16);
        match step % 4 {
            0 | 1 => trace.create_handle(ns, caller, object, 4 * step, 16),
            2 => trace.close_handle(ns, caller, object, 4 * (step - 2), 16, r"\X"),
            _ => trace.reference(ns, caller, object, b"Dflt", 1),
        }
        .stack(&[address], &[0x7ff6_0000_1000 + u64::from(step % 5)]);
    }
    trace.handle_rundown_end(700, 0xffff_8100_0000_1000, 4, 16, r"\Open");
    trace.to_bytes()
}

/// Returns options that extract everything possible.
fn with_all_events() -> ExtractOptions {
    ExtractOptions { events: EventChoice::All, ..ExtractOptions::default() }
}

/// Builds a trace of little but event metadata, and events that use it.
fn metadata_fixture() -> Vec<u8> {
    let provider = Guid::new(0x11111111_0000_0000_0000_000000000001);
    let options = FileOptions { buffer_size: 4096, ..FileOptions::default() };
    let mut trace = TraceBuilder::with_options(options);
    trace.process(700, "app.exe");
    for id in 1..60_u16 {
        let ns = 1_000_000 * i64::from(id);
        let stamp = Stamp::new(trace.options().raw(ns), 700, 701);
        let fields = [("Count", 6), ("Name", 1), ("Bytes", 309), ("User", 19), ("At", 16)];
        let info = EventInfo {
            provider,
            provider_name: "Contoso".into(),
            id,
            task: "Work".into(),
            fields: fields.map(|(name, kind)| (name.into(), kind)).into(),
            ..EventInfo::default()
        };
        trace.raw_event(ns, 0, info.event(PointerSize::Eight, stamp));
        let payload = ByteString::new()
            .u16(2)
            .utf16z("name")
            .u32(3)
            .raw(b"abc")
            .raw(&[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0])
            .u64(7)
            .into_vec();
        let event = ManifestEvent { provider, id, stamp, payload, ..ManifestEvent::default() };
        trace.raw_event(ns, 0, event.encode());
        let items = trace_logging("Go", b"n\0\x48s\0\x98\x01t\0\x01", "Contoso.Logging");
        let payload = ByteString::new().u16(1).u32(9).utf16z("x").into_vec();
        let event = ManifestEvent { provider, items, stamp, payload, ..ManifestEvent::default() };
        trace.raw_event(ns, 0, event.encode());
        let data = "<data name=\"a\" inType=\"win:UInt16\"/>".repeat(usize::from(id));
        let xml = format!(
            "<m><provider name=\"P\"><events><event value=\"{id}\" template=\"T\"/></events>\
             <templates><template tid=\"T\">{data}</template></templates></provider></m>"
        );
        for chunk in manifest_chunks(provider, &xml, 500, stamp) {
            trace.raw_event(ns, 0, chunk);
        }
    }
    trace.to_bytes()
}

/// Extracts on another thread and returns how it ended; a panic or a hang fails the test.
fn extract_in_time(input: PathBuf, output: PathBuf, what: &str) -> Result<u64, String> {
    let (done, ended) = mpsc::channel();
    let worker = thread::spawn(move || {
        let result = extract(&input, &output, with_all_events(), &NoObserver, &Cancel::default());
        let warnings = result.map(|summary| summary.warnings.iter().map(|w| w.count).sum());
        let _ = done.send(warnings.map_err(|error: SourceError| error.to_string()));
    });
    match ended.recv_timeout(TIMEOUT) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let _ = worker.join();
            panic!("{what}: panics");
        }
    }
}

/// Damages the bytes in `seeds` ways and checks how each extraction ends.
fn survive(name: &str, bytes: &[u8], seeds: std::ops::Range<u64>) {
    let seeds = seeds.step_by(one_of(6));
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("bad.etl"), folder.path().join("bad.json7z"));
    for seed in seeds {
        let mut bad = bytes.to_vec();
        let damage = corrupt::damage(&mut bad, seed);
        std::fs::write(&input, &bad).unwrap();
        let what = format!("{name}, seed {seed}, {damage:?}");
        match extract_in_time(input.clone(), output.clone(), &what) {
            Ok(_) => {
                Trace::open(&output).unwrap_or_else(|error| panic!("{what}: {error}"));
                std::fs::remove_file(&output).unwrap();
            }
            Err(message) => {
                assert!(message.contains("bad.etl"), "{what}: {message}");
                assert!(!output.exists(), "{what}: left half an archive");
            }
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "{what}: left temporary files");
    }
}

fn extract_bytes(bytes: &[u8]) -> Vec<(String, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    std::fs::write(&input, bytes).unwrap();
    let summary = extract(
        Path::new(&input),
        &output,
        ExtractOptions::default(),
        &NoObserver,
        &Cancel::default(),
    )
    .unwrap();
    summary.warnings.iter().map(|w| (w.kind.clone(), w.count)).collect()
}

fn count(warnings: &[(String, u64)], kind: &str) -> u64 {
    warnings.iter().find(|(known, _)| known == kind).map_or(0, |(_, count)| *count)
}

#[test]
fn a_few_hundred_damaged_fixtures_are_survived() {
    survive("fixture", &fixture(false), 0..150);
    survive("compressed fixture", &fixture(true), 0..150);
}

#[test]
fn damaged_metadata_of_events_is_survived() {
    let sound = metadata_fixture();
    assert_eq!(extract_bytes(&sound), []);
    survive("metadata", &sound, 0..300);
}

#[needs_data]
#[test]
fn damaged_published_traces_are_survived() {
    let synthetic = [
        "eventleak",
        "threadleak",
        "registry",
        "objectref",
        "filemap",
        "duplicates",
        "generic",
        "heap",
        "valloc",
    ];
    for name in synthetic {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        survive(name, &std::fs::read(trace.etl()).unwrap(), 0..40);
    }
    for name in ["TraceLoggingTester", "slow-ppt-2011", "net.4.5.2.x64", "ShutdownPerfDiagLogger"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        survive(name, &std::fs::read(trace.etl()).unwrap(), 0..12);
    }
}

#[test]
fn a_sound_fixture_has_no_warnings_of_damage() {
    for compressed in [false, true] {
        let warnings = extract_bytes(&fixture(compressed));
        // The fixture has closes and references of objects that existed before it.
        let is_harmless = |kind: &str| {
            kind.ends_with("opened before the trace") || kind.ends_with("of an unknown object")
        };
        assert!(warnings.iter().all(|(kind, _)| is_harmless(kind)), "{warnings:?}");
    }
}

#[test]
fn a_file_cut_in_its_last_buffer_is_read_up_to_the_cut() {
    let bytes = fixture(false);
    let warnings = extract_bytes(&bytes[..bytes.len() - 1000]);
    assert_eq!(count(&warnings, "truncated buffer"), 1, "{warnings:?}");
    let warnings = extract_bytes(&bytes[..bytes.len() - 3 * 4096]);
    assert_eq!(count(&warnings, "missing buffers"), 3, "{warnings:?}");
}

#[test]
fn a_buffer_that_was_overwritten_costs_only_itself() {
    let mut bytes = fixture(false);
    bytes[4096 * 2..4096 * 3].fill(0xEE);
    let warnings = extract_bytes(&bytes);
    assert_eq!(count(&warnings, "bad buffer"), 1, "{warnings:?}");
}

#[test]
fn a_file_that_is_no_trace_is_refused_with_its_name_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("notes.etl");
    let no_header = "not an .etl trace: no buffer header at offset 0";
    for (content, expected) in [
        (&b""[..], "is empty (0 bytes), not a trace"),
        (b"hello", "is a text file, not a trace"),
        (&[0; 4096], "not an .etl trace"),
        (&[0xFF; 100_000], no_header),
    ] {
        std::fs::write(&input, content).unwrap();
        let error = extract(
            &input,
            &folder.path().join("x.json7z"),
            ExtractOptions::default(),
            &NoObserver,
            &Cancel::default(),
        )
        .unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&format!("notes.etl: {expected}")), "{message}");
    }
}
