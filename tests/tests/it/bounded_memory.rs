//! An extraction stays within its memory limit, and makes the same archive.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::handlescope_path;

/// Extracts a trace with a limit on its data segment, in KiB.
fn extract(trace: &Path, kilobytes: u64, options: &[&str]) -> Output {
    extract_with(trace, &format!("ulimit -d {kilobytes}"), options)
}

/// Extracts a trace after running a line of `sh`.
fn extract_with(trace: &Path, line: &str, options: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{line}; exec \"$@\""), "sh"])
        .arg(handlescope_path())
        .args(["extract", "-o"])
        .arg(trace.with_extension("out"))
        .args(options)
        .arg(trace)
        // Thread stacks count as memory, and Cargo sets large ones.
        .env("RUST_MIN_STACK", "4194304")
        .output()
        .unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_that_needs_more_memory_than_it_may_have_is_extracted_with_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.etl");
    let trace = LargeTrace {
        handle_events: 300_000,
        heap_events: 0,
        other_events: 0,
        cpus: 4,
        distinct_stacks: 280_000,
        stack_depth: 70,
        leak_percent: 2,
        processes: 7,
        seed: 12,
        compressed: false,
    };
    write_large_trace(&path, &trace).unwrap();
    let archive = folder.path().join("large.out/large.json7z");

    let unlimited = extract(&path, 16 << 20, &["-MaxMemory", "16GB"]);
    assert!(unlimited.status.success(), "{unlimited:?}");
    let expected = fs::read(&archive).unwrap();
    fs::remove_file(&archive).unwrap();

    // More than the limit plus what every extraction needs, but less than the trace needs without temporary files.
    let kilobytes = 390 << 10;
    let without_files = extract(&path, kilobytes, &["-MaxMemory", "16GB"]);
    assert!(!without_files.status.success(), "the trace is too small for this test");
    assert!(!archive.exists());

    let with_files = extract(&path, kilobytes, &["-MaxMemory", "256MiB"]);
    assert!(with_files.status.success(), "{with_files:?}");
    assert!(fs::read(&archive).unwrap() == expected);
    let names: Vec<_> = fs::read_dir(archive.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
    fs::remove_file(&archive).unwrap();

    // A block moves to memory if its file cannot grow, as on a full disk.
    let limit = format!("trap '' XFSZ; ulimit -f {}", 3 * expected.len() / 1024);
    let full = extract_with(&path, &limit, &["-MaxMemory", "256MiB"]);
    assert!(full.status.success(), "{full:?}");
    assert!(fs::read(&archive).unwrap() == expected);
}
