//! An extract replaces its trace only as long as the trace is the file it was made from.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use handlescope_model::SCHEMA_VERSION;
use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::containers::trace_of_handles;
use handlescope_tests::foreign::ForeignMembers;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::golden::give_layout;

const AGAIN: &str = "extracting the trace again";

/// Returns a time this many seconds ago, in whole seconds, which any file system can store.
fn ago(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds)
}

/// Writes a file with this modification time.
fn put(path: &Path, bytes: &[u8], time: SystemTime) {
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Loads a trace and returns its number of objects.
fn objects(shell: &Shell, file: &str) -> (u64, ProgramRun) {
    let run = shell.run(&[file, "-c", ".dump Stats -json"]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    (document["files"][0]["objects"].as_u64().unwrap(), run)
}

#[test]
fn a_trace_replaced_by_one_of_the_same_size_and_an_equal_or_older_time_is_extracted_again() {
    for age in [0, 1, 86_400] {
        let shell = Shell::new();
        let (two, three) = (trace_of_handles(2), trace_of_handles(3));
        assert_eq!(two.len(), three.len());
        put(&shell.path("a.etl"), &two, ago(0));
        assert_eq!(objects(&shell, "a.etl").0, 2);
        let (same, run) = objects(&shell, "a.etl");
        assert!(same == 2 && !run.stderr.contains(AGAIN), "{run:?}");
        put(&shell.path("a.etl"), &three, ago(age));
        let (objects, run) = objects(&shell, "a.etl");
        let reason = if age == 0 { "with other content" } else { "of another time" };
        assert!(run.stderr.contains(reason) && run.stderr.contains(AGAIN), "{run:?}");
        assert_eq!(objects, 3, "{age}");
    }
}

#[test]
fn a_trace_whose_extract_cannot_be_replaced_is_extracted_for_the_session() {
    let shell = Shell::new();
    // The folder keeps the name in use, as on Windows an extract does that another console has loaded.
    fs::create_dir_all(shell.path("Extract/leaky.json7z/folder")).unwrap();
    let (objects, run) = objects(&shell, "leaky.etl");
    assert!(objects > 0);
    assert!(run.stderr.contains("leaky.json7z cannot be replaced ("), "{run:?}");
    assert!(run.stderr.contains("); extracting for this session only"), "{run:?}");
}

#[test]
fn a_half_copied_trace_is_extracted_again_when_it_is_whole() {
    let shell = Shell::new();
    let mut whole = handlescope_tests::scenario::TraceBuilder::new();
    whole.process(4, "System");
    whole.noise(20_000, 7);
    for n in 0..10 {
        whole.create_handle(1_000_000, (4, 8), 0xffff_8100_0000_1000 + n * 0x100, 4, 16);
    }
    let whole = whole.to_bytes();
    // The copying program allocated the whole space first.
    let mut half = whole.clone();
    half[(1 << 16)..].fill(0);
    put(&shell.path("a.etl"), &half, ago(0));
    let (before, run) = objects(&shell, "a.etl");
    assert!(before == 0 && run.stderr.contains("missing buffers"), "{run:?}");
    put(&shell.path("a.etl"), &whole, ago(0));
    let (after, run) = objects(&shell, "a.etl");
    assert!(run.stderr.contains(AGAIN), "{run:?}");
    assert_eq!(after, 10);
}

/// Makes a `.zip` with a size that depends only on the size of its member.
fn stored_zip(member: &str, bytes: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file(member, stored).unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn an_archive_replaced_by_one_of_the_same_size_and_time_is_extracted_again() {
    let shell = Shell::new();
    put(&shell.path("a.zip"), &stored_zip("x.etl", &trace_of_handles(2)), ago(0));
    assert_eq!(objects(&shell, "a.zip").0, 2);
    let (_, run) = objects(&shell, "a.zip");
    assert!(!run.stderr.contains(AGAIN), "{run:?}");
    put(&shell.path("a.zip"), &stored_zip("x.etl", &trace_of_handles(3)), ago(0));
    let (objects, run) = objects(&shell, "a.zip");
    assert!(objects == 3 && run.stderr.contains(AGAIN), "{run:?}");
}

#[test]
fn an_extract_of_another_layout_is_made_again_where_its_trace_lies() {
    let shell = Shell::new();
    let (known, _) = objects(&shell, "leaky.etl");
    let extract = shell.path("Extract/leaky.json7z");
    for (version, reason) in [
        (SCHEMA_VERSION - 1, "was made by an older version"),
        (SCHEMA_VERSION + 1, "was made by a newer version"),
    ] {
        give_layout(&extract, version);
        let listed = shell.run(&["-c", ".dir leaky.etl"]).ok();
        assert!(listed.stdout.contains("extract outdated"), "{listed:?}");
        let (found, run) = objects(&shell, "leaky.etl");
        assert!(run.stderr.contains(&format!("{reason}; {AGAIN}")), "{run:?}");
        assert_eq!(found, known);
        let (found, run) = objects(&shell, "leaky.etl");
        assert!(found == known && !run.stderr.contains(AGAIN), "{run:?}");
    }
    give_layout(&extract, SCHEMA_VERSION - 1);
    fs::remove_file(shell.path("leaky.etl")).unwrap();
    let alone = shell.run(&["leaky.json7z", "-c", ".dump Stats"]);
    assert_eq!(alone.status, Some(1), "{alone:?}");
    assert!(alone.stderr.ends_with("; extract the trace again\n"), "{alone:?}");
}

#[test]
fn an_extract_that_is_named_is_used_and_its_doubt_is_said() {
    let shell = Shell::new();
    put(&shell.path("a.etl"), &trace_of_handles(2), ago(0));
    assert_eq!(objects(&shell, "a.etl").0, 2);
    let (_, sure) = objects(&shell, "Extract/a.json7z");
    assert!(!sure.stderr.contains("to extract it again"), "{sure:?}");
    put(&shell.path("a.etl"), &trace_of_handles(3), ago(0));
    for name in ["Extract/a.json7z", "a.json7z"] {
        let (objects, run) = objects(&shell, name);
        let said = "warning: Extract/a.json7z belongs to a trace with other content; load a.etl beside it to extract it again\n";
        assert!(objects == 2 && run.stderr.contains(said), "{run:?}");
    }
    fs::rename(shell.path("Extract/a.json7z"), shell.path("a.json7z")).unwrap();
    let (_, beside) = objects(&shell, "a.json7z");
    assert!(beside.stderr.contains("with other content; load a.etl"), "{beside:?}");
    fs::remove_file(shell.path("a.etl")).unwrap();
    let (_, alone) = objects(&shell, "a.json7z");
    assert!(!alone.stderr.contains("to extract it again"), "{alone:?}");
}

#[test]
fn stored_names_of_another_trace_are_given_up_and_that_is_said() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let path = symbols.to_str().unwrap();
    let question = ["leaky.etl", "-c", ".dump ObjectRef -Leak -ShowStack -TopN 1"];
    let _ = shell.run(&["leaky.etl", "--symbol-path", path, "-c", ".symbolize"]).ok();
    let named = shell.run(&question).ok();
    assert!(named.stdout.contains("leaky.exe!"), "{named:?}");
    put(&shell.path("leaky.etl"), &fs::read(shell.path("leaky.etl")).unwrap(), ago(0));
    let unnamed = shell.run(&question).ok();
    assert!(unnamed.stderr.contains(" names of functions in it are discarded"), "{unnamed:?}");
    assert!(!unnamed.stdout.contains("leaky.exe!"), "{unnamed:?}");
}

#[test]
fn names_are_not_stored_in_an_extract_that_was_replaced_since_it_was_loaded() {
    let shell = Shell::new();
    fs::write(shell.path("other.etl"), trace_of_handles(2)).unwrap();
    let _ = shell.run(&["extract", "leaky.etl", "other.etl"]).ok();
    let symbols = sample_symbols();
    let mut program = shell
        .command(&["Extract/leaky.json7z", "--symbol-path", symbols.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    input.write_all(b".dump ObjectRef -Leak -ShowStack\n").unwrap();
    program.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let (loaded, other) = (shell.path("Extract/leaky.json7z"), shell.path("Extract/other.json7z"));
    fs::rename(&other, &loaded).unwrap();
    let before = fs::read(&loaded).unwrap();
    input.write_all(b".symbolize\n").unwrap();
    drop(input);
    let run = ProgramRun::from(program.wait_with_output().unwrap());
    assert!(run.status == Some(1) && run.stderr.contains("was replaced since it was loaded"));
    assert_eq!(fs::read(&loaded).unwrap(), before);
}

#[test]
fn a_converted_extract_is_converted_again_when_any_part_has_another_content() {
    let shell = Shell::new();
    let write = |members: &ForeignMembers| {
        for (name, content) in members.named("Plain") {
            put(&shell.path(&name), content.as_ref(), ago(0));
        }
    };
    let members = ForeignMembers::default();
    write(&members);
    let question = ["Plain.json", "-c", ".dump ObjectRef"];
    let first = shell.run(&question).ok();
    assert!(first.stdout.contains("Demo_0") && first.stderr.contains("was converted"), "{first:?}");
    assert!(!shell.run(&question).ok().stderr.contains("was converted"));
    write(&ForeignMembers { handle: members.handle.replace("Demo_0", "Demo_1"), ..members });
    let second = shell.run(&question).ok();
    assert!(second.stderr.contains("was converted"), "{second:?}");
    assert!(second.stdout.contains("Demo_1"), "{second:?}");
}

#[test]
fn warnings_of_an_extraction_are_repeated_at_every_load() {
    let shell = Shell::new();
    let bytes = fs::read(shell.path("leaky.etl")).unwrap();
    fs::write(shell.path("cut.etl"), &bytes[..bytes.len() - 1000]).unwrap();
    for file in ["cut.etl", "cut.etl", "Extract/cut.json7z"] {
        let run = shell.run(&[file, "-c", ".list"]).ok();
        let warning = format!(
            "warning: {file}: events are missing or unreadable (1 truncated buffer, first at offset 0x"
        );
        assert_eq!(run.stderr.matches(&warning).count(), 1, "{run:?}");
    }
    let run = shell.run(&["extract", "cut.etl"]).ok();
    assert_eq!(run.stderr.matches("truncated buffer, first").count(), 1, "{run:?}");
}
