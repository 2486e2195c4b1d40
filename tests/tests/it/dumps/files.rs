//! Dump files: found, packed, refused, extracted, beside other files, and many gigabytes large.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use handlescope_tests::binary::{Shell, handlescope_path};
use handlescope_tests::containers::{write_7z, write_zip};
use handlescope_tests::dump::SampleDump;

use super::{program, traced, with};

const LIST: &str = ".list";

#[test]
fn a_dump_is_known_by_its_content_and_found_by_its_name() {
    let shell = with(&traced());
    fs::copy(shell.path("a.dmp"), shell.path("memory.bin")).unwrap();
    fs::write(shell.path("other.dmp"), traced().to_bytes()).unwrap();
    let run = shell.run(&["memory.bin", "-c", ".dump ObjectRef -NoObjects"]);
    assert!(run.stderr.contains("it is a dump"), "{run:?}");
    // Folders and patterns find dumps by their extension.
    let run = shell.run(&["*.dmp", "-c", LIST]).ok();
    assert!(run.stdout.contains("a.dmp") && run.stdout.contains("other.dmp"), "{run:?}");
    assert!(!run.stdout.contains("memory.bin"), "{run:?}");
}

#[test]
fn an_extract_is_written_beside_the_dump_and_keeps_its_extension() {
    let shell = with(&traced());
    let run = shell.run(&["extract", "a.dmp"]).ok();
    assert!(run.stdout.contains("a.dmp.json7z"), "{run:?}");
    let written = fs::metadata(shell.path("Extract/a.dmp.json7z")).unwrap().modified().unwrap();
    let run = shell.run(&["a.dmp", "-c", LIST]).ok();
    assert!(run.stdout.contains("a.dmp"), "{run:?}");
    let again = fs::metadata(shell.path("Extract/a.dmp.json7z")).unwrap().modified().unwrap();
    assert_eq!(written, again);
    // Another dump with the same name is extracted again.
    fs::write(shell.path("a.dmp"), program().handle(4, "Event", "").to_bytes()).unwrap();
    let run = shell.run(&["a.dmp", "-c", ".dump ObjectRef -ShowTotal Total"]).ok();
    assert!(run.stderr.contains("its 1 handle,"), "{run:?}");
}

#[test]
fn a_dump_in_an_archive_is_read() {
    let shell = with(&traced());
    let dump = fs::read(shell.path("a.dmp")).unwrap();
    let members = [("notes.txt", b"text".to_vec()), ("dumps/a.dmp", dump)];
    write_zip(&shell.path("packed.zip"), &members);
    write_7z(&shell.path("packed.7z"), &members);
    for archive in ["packed.zip", "packed.7z"] {
        let run = shell.run(&[archive, "-c", ".dump ObjectRef -ShowTotal Total"]).ok();
        assert!(run.stderr.contains("1 of its 3 open handles"), "{run:?}");
        let run = shell.run(&[archive, "-c", ".sql SELECT source_name FROM trace -csv"]).ok();
        assert!(run.stdout.ends_with("a.dmp\n"), "{run:?}");
    }
}

#[test]
fn a_dump_without_handle_data_is_refused_with_what_writes_it() {
    let shell = with(&program());
    let run = shell.run(&["a.dmp"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let message = "error: a.dmp: the dump has no handle data; write it with .dump /mh FILE in WinDbg or cdb, \
                   procdump -ma, or MiniDumpWriteDump with MiniDumpWithHandleData";
    assert!(run.stderr.contains(message), "{run:?}");
    assert!(!shell.path("Extract/a.dmp.json7z").exists());
    // It is no failure if the dump was only found by a pattern.
    fs::write(shell.path("b.dmp"), traced().to_bytes()).unwrap();
    let run = shell.run(&["*.dmp", "-c", LIST]).ok();
    assert!(run.stdout.contains("b.dmp") && !run.stdout.contains("a.dmp\n"), "{run:?}");
    assert!(run.stderr.contains("a.dmp: the dump has no handle data"), "{run:?}");
}

#[test]
fn a_dump_of_the_kernel_and_other_files_are_refused() {
    let shell = Shell::new();
    for (name, content, message) in [
        ("kernel.dmp", b"PAGEDU64".repeat(1024), "is a kernel dump"),
        ("empty.dmp", Vec::new(), "is empty (0 bytes), not a trace"),
        ("text.dmp", b"some text\n".repeat(100), "not a trace"),
        ("cut.dmp", b"MDMP\x93\xA7".to_vec(), "no complete header at offset 0"),
    ] {
        fs::write(shell.path(name), content).unwrap();
        let run = shell.run(&[name]);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.stderr.contains(message), "{name}: {run:?}");
    }
}

#[test]
fn what_only_a_trace_can_do_is_refused_with_what_a_dump_can() {
    let shell = with(&traced());
    write_zip(&shell.path("a.zip"), &[("a.dmp", fs::read(shell.path("a.dmp")).unwrap())]);
    for (arguments, path) in [
        (&["redact", "a.dmp"][..], "a.dmp"),
        (&["redact", "a.zip"], "a.zip"),
        (&["live", "--replay", "a.dmp"], "a.dmp"),
    ] {
        let run = shell.run(arguments);
        let message = format!(
            "error: {path}: a minidump cannot be redacted or replayed; load it: handlescope {path}"
        );
        assert!(run.status == Some(1) && run.stderr.contains(&message), "{run:?}");
    }
    assert!(!shell.path("a.redacted.etl").exists());
}

/// Returns the peak memory of an extraction in KiB, and its time.
#[cfg(target_os = "linux")]
fn measured(shell: &Shell, name: &str) -> (u64, Duration) {
    let begin = Instant::now();
    let script = "\"$@\" >/dev/null 2>err.txt & child=$!; most=0; \
                  while kill -0 $child 2>/dev/null; do \
                  now=$(awk '/^RssAnon/ {print $2}' /proc/$child/status 2>/dev/null); \
                  [ \"${now:-0}\" -gt $most ] && most=$now; sleep 0.01; done; wait $child || exit 1; echo $most";
    let program = handlescope_path();
    let output = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .args(["extract", name])
        .current_dir(shell.path(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = fs::read_to_string(shell.path("err.txt")).unwrap_or_default();
    assert!(output.status.success(), "{output:?} {errors}");
    (text.parse().unwrap(), begin.elapsed())
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_in_a_full_dump_is_not_read() {
    let shell = with(&traced());
    let further_memory = 6 << 30;
    let command_line = Some("server.exe".to_owned());
    let dump = SampleDump { further_memory, command_line, ..traced() };
    let bytes = dump.to_bytes();
    fs::write(shell.path("full.dmp"), &bytes).unwrap();
    let file = File::options().write(true).open(shell.path("full.dmp")).unwrap();
    file.set_len(bytes.len() as u64 + further_memory).unwrap();
    let (small, _) = measured(&shell, "a.dmp");
    let (full, time) = measured(&shell, "full.dmp");
    assert!(full < small + (32 << 10), "{full} KiB, a small dump {small} KiB");
    assert!(time < Duration::from_secs(30), "{time:?}");
    let sql = ".sql SELECT command_line FROM processes -csv";
    let run = shell.run(&["full.dmp", "-c", sql]).ok();
    assert!(run.stdout.contains("server.exe"), "{run:?}");
}

#[test]
fn a_dump_in_a_dataset_is_of_the_day_on_which_it_was_written() {
    // 2019-05-06 07:08:09 UTC; the file itself is from today.
    let shell = with(&SampleDump { written: 1_557_126_489, ..traced() });
    let _ = shell.run(&["dataset", "add", "fleet", "a.dmp"]).ok();
    let run = shell.run(&["dataset", "list", "fleet", "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(listed["traces"][0]["date"], "2019-05-06", "{listed}");
    let query = ".sql SELECT strftime(started_utc, '%Y-%m-%d %H:%M:%S') AS t FROM traces -json";
    let run = shell.run(&["fleet", "-c", query]).ok();
    assert!(run.stdout.contains("2019-05-06 07:08:09"), "{run:?}");
}
