//! Files that did harm, each with the command that it harmed, in one gigabyte of address space.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope};
use handlescope_tests::{data, needs_data};

/// Address space limit of the program, KiB.
const MAX_ADDRESSES: u64 = 1_000_000;

/// Maximum time of a command; without optimization it takes seconds.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// Runs the program with limited address space, and with small stacks for its threads.
fn run_limited(folder: &Path, arguments: &[&str]) -> ProgramRun {
    let program = handlescope(folder);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MAX_ADDRESSES}; exec \"$@\""), "sh"]);
    command.arg(program.get_program()).args(arguments).current_dir(folder);
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // Tests have large stacks; users do not.
    command.env("RUST_MIN_STACK", "4194304");
    let begin = Instant::now();
    let run: ProgramRun = command.stdin(Stdio::null()).output().expect("there is a shell").into();
    assert!(begin.elapsed() < MAX_DURATION, "{arguments:?} takes {:?}", begin.elapsed());
    run
}

fn check(arguments: &[&str], run: &ProgramRun) {
    assert!(matches!(run.status, Some(0 | 1)), "{arguments:?}: {run:?}");
    let all = [run.stdout.as_str(), run.stderr.as_str()].concat();
    assert!(!all.contains("panicked"), "{arguments:?}: {run:?}");
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let line = all.lines().find(|line| line.contains(is_control));
    assert!(line.is_none(), "{arguments:?}: {line:?}");
}

#[needs_data]
#[test]
fn no_file_takes_the_memory_or_writes_control_characters() {
    let shell = Shell::new();
    for entry in fs::read_dir(data::hostile()).unwrap().flatten() {
        fs::copy(entry.path(), shell.path("").join(entry.file_name())).unwrap();
    }
    let questions = [
        ("empty.json7z", ".dump Stats"),
        ("st.json7z", ".sql SELECT * FROM stacks"),
        ("st.json7z", ".dump Stack"),
        ("pb_names.json7z", ".save out.json7z -etwanalyzer"),
        ("pb_names.json7z", ".dump ObjectRef -ShowTotal Process"),
        ("procs.json7z", ".list"),
        ("lz77bomb.etl", ".dump Stats"),
        ("esc-module.etl", ".dump ObjectRef -ShowStack"),
        ("esc-module.etl", ".dump Module"),
        ("escbad.zip", ".list"),
        (".", ".list"),
    ];
    for (file, question) in questions {
        let arguments = ["--keep-going", file, "-c", question];
        check(&arguments, &run_limited(&shell.path(""), &arguments));
    }
}

#[needs_data]
#[test]
fn a_broken_extract_is_replaced_and_keeps_no_other_trace_from_loading() {
    let shell = Shell::new();
    fs::create_dir(shell.path("Extract")).unwrap();
    fs::copy(data::hostile().join("empty.json7z"), shell.path("Extract/leaky.json7z")).unwrap();
    let run = shell.run(&[".", "-c", ".list"]).ok();
    assert!(run.stdout.contains("leaky.etl"), "{run:?}");
    assert!(run.stderr.contains("extracting the trace again"), "{run:?}");
    // Neither does a file beside it that is not an extract.
    fs::copy(data::hostile().join("empty.json7z"), shell.path("other.json7z")).unwrap();
    let run = shell.run(&["--keep-going", ".", "-c", ".list"]);
    assert!(run.stdout.contains("leaky.etl"), "{run:?}");
    assert!(run.stderr.contains("other.json7z: member trace.parquet is damaged"), "{run:?}");
}

/// A query with rows that take some hundred megabytes before they are sorted.
const LARGE: &str = "SELECT a.time_ns + b.time_ns + c.time_ns AS t FROM events a, events b, events c \
                     ORDER BY t DESC LIMIT 1";

#[test]
fn a_query_ends_when_it_takes_more_memory_than_it_may() {
    let shell = Shell::new();
    let question = format!(".sql -MaxMemory 20MB {LARGE}");
    let run = shell.run(&["--keep-going", "leaky.etl", "-c", &question, "-c", ".list"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("the query needs more than 19.07 MiB of memory"), "{run:?}");
    assert!(run.stderr.contains("raise the limit with -MaxMemory"), "{run:?}");
    assert!(run.stdout.contains("leaky.etl"), "the session goes on: {run:?}");
}

#[test]
fn lines_of_scripts_and_filters_have_a_longest_length() {
    let shell = Shell::new();
    let run = shell.script(&[], &format!(".list {}\n.list\n", "x".repeat(1 << 20)));
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("line 1 is longer than 1048576 bytes"), "{run:?}");
    let filter = "x".repeat(100_000);
    let run = shell.run(&["leaky.etl", "-c", &format!(".dump ObjectRef -Type {filter}")]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("has 100000 bytes, more than 65536"), "{run:?}");
}
