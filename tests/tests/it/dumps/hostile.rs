//! Dumps that are cut off, damaged or malicious.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::binary::Shell;
use handlescope_tests::corrupt::damage;
use handlescope_tests::dump::{DumpModule, HANDLE_DATA, SampleDump, TraceOperation};
use handlescope_tests::thorough::one_of;
use proptest::prelude::*;

use super::{PROGRAM, answer, narrow, program, traced, with};

/// Makes a dump with all streams.
fn full() -> SampleDump {
    let mut dump = traced();
    dump.has_information = true;
    dump.command_line = Some("server.exe".to_owned());
    dump.unloaded.push(DumpModule::new("gone.dll", 0x5000_0000, 0x1000));
    dump
}

/// Extracts bytes as a dump, and reads all tables if that succeeds.
fn read(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join("a.dmp"), folder.path().join("a.json7z"));
    fs::write(&path, bytes).unwrap();
    let cancel = Cancel::default();
    if extract(&path, &output, ExtractOptions::default(), &NoObserver, &cancel).is_err() {
        return false;
    }
    let trace = Trace::open(&output).unwrap();
    Table::ALL.into_iter().for_each(|table| drop(trace.frame(table).unwrap()));
    true
}

#[test]
fn a_dump_cut_anywhere_is_read_as_far_as_it_goes_or_refused() {
    for dump in [full(), narrow(full())] {
        let bytes = dump.to_bytes();
        assert!(read(&bytes));
        for length in (0..bytes.len()).step_by(7 * one_of(8)) {
            read(&bytes[..length]);
        }
    }
}

#[test]
fn a_cut_dump_answers_with_a_warning() {
    let dump = full();
    let shell = with(&dump);
    let bytes = dump.to_bytes();
    fs::write(shell.path("cut.dmp"), &bytes[..bytes.len() - 1200]).unwrap();
    let run = shell.run(&["cut.dmp", "-c", ".dump ObjectRef"]);
    assert!(run.stderr.contains("of the dump cut off at the end of the file"), "{run:?}");
    assert!(run.stderr.contains("objects, closes and leaks may be wrong"), "{run:?}");
}

#[test]
fn a_cut_list_of_handles_closes_none_that_operations_opened() {
    // The list is written last; only one of its three handles is left.
    let mut dump = program();
    for number in 1..=3 {
        dump =
            dump.handle(number * 4, "", "").operation(TraceOperation::Open, number * 4, &[PROGRAM]);
    }
    let mut bytes = dump.to_bytes();
    let is_list = |entry: &[u8]| entry.starts_with(&HANDLE_DATA.to_le_bytes());
    let entry = 32 + bytes[32..].chunks_exact(12).position(is_list).unwrap() * 12;
    let place = u32::from_le_bytes(bytes[entry + 8..entry + 12].try_into().unwrap()) as usize;
    let end = bytes.len() as u32;
    bytes[entry + 8..entry + 12].copy_from_slice(&end.to_le_bytes());
    bytes.extend_from_within(place..place + 16 + 32);
    let shell = Shell::new();
    fs::write(shell.path("cut.dmp"), bytes).unwrap();
    let sql = ".sql SELECT SUM(CAST(leaked AS INT)) AS leaked, COUNT(closed_unseen) AS closed FROM events -csv";
    let run = shell.run(&["cut.dmp", "-c", sql]).ok();
    assert!(run.stdout.ends_with("3,0\n"), "{run:?}");
    assert!(run.stderr.contains("it shows what opened 1 of its 1 open handle"), "{run:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400 / one_of(4) as u32))]

    #[test]
    fn no_damage_ends_in_a_panic(seed in any::<u64>(), is_narrow: bool) {
        let mut bytes = if is_narrow { narrow(full()) } else { full() }.to_bytes();
        damage(&mut bytes, seed);
        read(&bytes);
    }

    #[test]
    fn no_number_in_a_dump_is_believed(place in 0_usize..2000, number in prop_oneof![
        Just(0_u32), Just(1), Just(u32::MAX), Just(0x7FFF_FFFF), Just(0x8000_0000), 0_u32..4096,
    ]) {
        let mut bytes = full().to_bytes();
        let place = (place * 4) % (bytes.len() - 4);
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        read(&bytes);
    }
}

/// A sparse file of several gigabytes, with counts and text lengths as large as the file.
#[cfg(target_os = "linux")]
#[test]
fn counts_and_texts_as_large_as_the_file_take_neither_time_nor_memory() {
    use handlescope_tests::dump::{HANDLE_OPERATION_LIST, MODULE_LIST};
    let whole = full().to_bytes();
    for kind in [HANDLE_DATA, HANDLE_OPERATION_LIST, MODULE_LIST] {
        let mut bytes = whole.clone();
        let directory = bytes[32..32 + 12 * 9].to_vec();
        let entry = directory.chunks_exact(12).position(|entry| entry[..4] == kind.to_le_bytes());
        let entry = 32 + entry.unwrap() * 12;
        let stream = u32::from_le_bytes(bytes[entry + 8..entry + 12].try_into().unwrap()) as usize;
        bytes[entry + 4..entry + 8].copy_from_slice(&(2_u32 << 30).to_le_bytes());
        let count = if kind == MODULE_LIST { stream } else { stream + 8 };
        bytes[count..count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let folder = tempfile::tempdir().unwrap();
        let (path, output) = (folder.path().join("a.dmp"), folder.path().join("a.json7z"));
        fs::write(&path, &bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(3 << 30).unwrap();
        let begin = Instant::now();
        let (options, cancel) = (ExtractOptions::default(), Cancel::default());
        let summary = extract(&path, &output, options, &NoObserver, &cancel).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60), "{kind}: {:?}", begin.elapsed());
        assert!(!summary.warnings.is_empty());
    }
}

#[test]
fn names_with_control_characters_are_not_printed_as_they_are() {
    let dump = program().handle(4, "Event\u{1b}[31m", "\u{1b}]0;x\u{7}\\name\n\u{202e}");
    let shell = with(&dump);
    let run =
        shell.run(&["a.dmp", "-c", ".dump ObjectRef", "-c", ".dump ObjectRef -ShowTotal Total"]);
    assert!(!run.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{run:?}");
    let (document, _) = answer(&dump, super::QUESTION);
    assert_eq!(document["objects"][0]["name"], "\u{1b}]0;x\u{7}\\name\n\u{202e}");
}
