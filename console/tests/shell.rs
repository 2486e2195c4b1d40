//! Tests of the binary from outside: its output streams and exit status.

use std::{
    fs::{self, File},
    io::Write,
    path::MAIN_SEPARATOR,
    process::Stdio,
    time::{Duration, SystemTime},
};

use handlescope_commands::registry::REGISTRY;
use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};

#[test]
fn the_version_names_the_commit() {
    let ended = Shell::new().run(&["--version"]);
    let expected = format!("handlescope {} (", env!("CARGO_PKG_VERSION"));
    assert!(ended.status == Some(0) && ended.stdout.starts_with(&expected), "{ended:?}");
}

#[test]
fn bad_usage_is_status_two() {
    for arguments in [&["--nonsense"][..], &["extract"], &["--color", "blue"]] {
        assert_eq!(Shell::new().run(arguments).status, Some(2), "{arguments:?}");
    }
}

#[test]
fn a_script_has_results_on_stdout_and_nothing_else() {
    let ended = Shell::new().script(&["leaky.etl"], "# what is there?\n\n.list\n");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert!(lines[0].starts_with("#  File") && lines[1].starts_with("0  leaky.etl"), "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
}

#[test]
fn the_first_failing_line_ends_a_script_with_status_one() {
    let ended = Shell::new().script(&[], ".list\n.dump ObjectRef -Foo\n.list\n");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(ended.stdout, "No traces are loaded.\n");
    assert!(
        ended.stderr.contains("line 2: .dump ObjectRef -Foo: unknown option -Foo"),
        "{ended:?}"
    );
}

#[test]
fn keep_going_runs_on_and_ends_with_status_one() {
    let ended = Shell::new().script(&["--keep-going"], ".nonsense\n.list\n");
    assert_eq!(
        (ended.status, ended.stdout.as_str()),
        (Some(1), "No traces are loaded.\n"),
        "{ended:?}"
    );
    let ended = Shell::new().run(&["--keep-going", "no.etl", "leaky.etl", "-c", ".list"]);
    assert!(ended.status == Some(1) && ended.stdout.contains("leaky.etl"), "{ended:?}");
}

#[test]
fn commands_of_the_command_line_are_numbered_and_leave_stdin_alone() {
    let ended = Shell::new().script(&["-c", ".list", "-c", ".nonsense"], ".quit\n");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("command 2: .nonsense: unknown command .nonsense"), "{ended:?}");
}

#[test]
fn a_file_that_cannot_be_loaded_is_named_with_the_reason() {
    let shell = Shell::new();
    fs::write(shell.path("noise.etl"), "this is not a trace at all").unwrap();
    fs::write(shell.path("noise.json7z"), "this is not an extract").unwrap();
    fs::write(shell.path("noise.txt"), "").unwrap();
    for (file, reason) in [
        ("no.etl", "file not found"),
        ("*.7z", "no trace matches `"),
        ("noise.etl", "is a text file, not a trace"),
        ("noise.json7z", "is a text file, not a 7z archive"),
        ("noise.txt", "not an extract (.json7z), a trace"),
    ] {
        let ended = shell.run(&[file, "-c", ".list"]);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains(file) && ended.stderr.contains(reason), "{ended:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let shell = Shell::new();
    let mut command = shell.command(&["--keep-going"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The program may have ended before everything is written.
    let _ = stdin.write_all(".help ObjectRef\n".repeat(1000).as_bytes());
    drop(stdin);
    let ended = ProgramRun::from(child.wait_with_output().unwrap());
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

/// Messages about the sample if it is not extracted again.
const LOADED: &str =
    "warning: leaky.etl: 1 close of a handle opened before the trace\nloaded leaky.etl\n";

#[test]
fn a_trace_is_extracted_once_and_again_when_it_changes() {
    let shell = Shell::new();
    let extract = shell.path("Extract/leaky.json7z");
    let load = || shell.run(&["leaky.etl", "-c", ".list"]);
    let first = load();
    assert!(extract.exists() && first.stderr.contains("leaky.json7z: "), "{first:?}");
    assert_eq!(load().stderr, LOADED);

    let newer = SystemTime::now() + Duration::from_secs(60);
    let trace = File::options().append(true).open(shell.path("leaky.etl")).unwrap();
    trace.set_modified(newer).unwrap();
    let again = load();
    assert!(
        again.stderr.contains("is older than the trace; extracting the trace again"),
        "{again:?}"
    );

    let trace = File::options().append(true).open(shell.path("leaky.etl")).unwrap();
    trace.set_len(trace.metadata().unwrap().len() + 1).unwrap();
    trace.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let again = load();
    assert!(again.stderr.contains("belongs to a trace of another size"), "{again:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_extract_that_cannot_lie_beside_its_trace_lies_in_the_cache() {
    let shell = Shell::new();
    fs::write(shell.path("Extract"), "a file where the folder should be").unwrap();
    let first = shell.run(&["leaky.etl", "-c", ".list"]);
    assert_eq!(first.status, Some(0), "{first:?}");
    assert!(
        first.stderr.contains("cannot be written") && first.stderr.contains("/cache/"),
        "{first:?}"
    );
    assert_eq!(shell.run(&["leaky.etl", "-c", ".list"]).stderr, LOADED);
}

#[test]
fn extract_expands_wildcards_and_prints_a_line_for_each_file() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("leaky two.etl")).unwrap();
    let ended = shell.run(&["extract", "l*.etl", "-o", "out/new"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(shell.path("out/new/leaky.json7z").exists());
    assert!(shell.path("out/new/leaky two.json7z").exists());
    assert_eq!(ended.stdout.lines().count(), 2, "{ended:?}");
    for part in ["objects", "handle events", "leaked handles", "stacks", "lost events", "B/s"] {
        assert!(ended.stdout.lines().all(|line| line.contains(part)), "{part}: {ended:?}");
    }
}

#[test]
fn extract_goes_on_behind_a_bad_file_and_never_overwrites_an_extract_of_its_own() {
    let shell = Shell::new();
    fs::create_dir(shell.path("other")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("other/leaky.etl")).unwrap();
    let ended = shell.run(&["extract", "no.etl", "leaky.etl", "other/leaky.etl", "-o", "out"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("no.etl: file not found"), "{ended:?}");
    assert!(ended.stderr.contains("extract them into different folders"), "{ended:?}");
}

#[test]
fn traces_are_loaded_listed_and_unloaded_by_command() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("second trace.etl")).unwrap();
    let script = ".load leaky.etl \"second trace.etl\"\n.unload LEAKY.etl\n.list\n.unload\n.list\n";
    let ended = shell.script(&[], script);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("0  second trace.etl"), "{ended:?}");
    assert!(ended.stdout.ends_with("No traces are loaded.\n"), "{ended:?}");
    let ended = shell.script(&["leaky.etl"], ".unload other.etl");
    assert!(ended.stderr.contains("'other.etl' is not loaded; .list shows what is"), "{ended:?}");
}

#[test]
fn a_load_that_fails_altogether_leaves_the_session_as_it_is() {
    let ended = Shell::new().script(&["leaky.etl", "--keep-going"], ".load no.etl\n.list\n");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("0  leaky.etl"), "{ended:?}");
}

#[test]
fn the_symbol_path_of_the_session_wins_over_the_environment() {
    let shell = Shell::new();
    let mut command = shell.command(&["-c", ".sympath", "-c", ".sympath a b", "-c", ".sympath"]);
    let ended = ProgramRun::from(command.env("_NT_SYMBOL_PATH", "srv*x*y").output().unwrap());
    let here = shell.path("").canonicalize().unwrap();
    let here = here.to_str().unwrap().trim_end_matches(MAIN_SEPARATOR);
    let folder = |name: &str| format!("{here}{MAIN_SEPARATOR}{name}");
    let expected = [format!("srv*{}*{}", folder("x"), folder("y")), folder("a b")];
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), expected, "{ended:?}");
    let ended = shell.run(&["--symbol-path", "/z", "-c", ".cd ..", "-c", ".sympath"]);
    assert!(ended.stdout.ends_with("/z\n"), "{ended:?}");
}

#[test]
fn a_symbol_path_that_is_not_there_is_reported() {
    let shell = Shell::new();
    let unset = shell.run(&["-c", ".sympath"]);
    assert_eq!(unset.stdout, "No symbol path is set; .sympath PATH sets one.\n", "{unset:?}");
    let stacks = ".dump ObjectRef -Leak -ShowStack";
    let run =
        shell.run(&["--symbol-path", "none;cache*cache", "leaky.etl", "-c", stacks, "-c", stacks]);
    for warning in
        ["none; create it or change the symbol path\n", "cache names no server, so nothing "]
    {
        assert_eq!(run.stderr.matches(warning).count(), 1, "{warning}: {run:?}");
    }
}

#[test]
fn every_example_of_the_help_finds_something_in_the_sample() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    for example in REGISTRY.kinds().flat_map(|kind| kind.signature().examples) {
        let ended = shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", example.line]);
        assert_eq!(ended.status, Some(0), "{}: {ended:?}", example.line);
        if let Some((_, file)) = example.line.split_once("-csv ") {
            let lines = fs::read_to_string(shell.path(file)).unwrap().lines().count();
            assert!(lines > 2, "{}: {lines} lines", example.line);
        } else if example.line.starts_with(".dump ObjectRef") {
            let found = ended.stdout.contains("Id: ") || ended.stdout.contains("leaky.exe(");
            assert!(found, "{}: {ended:?}", example.line);
        } else {
            assert!(!ended.stdout.is_empty(), "{}", example.line);
        }
    }
}

#[test]
fn colors_follow_the_option_and_the_environment() {
    let shell = Shell::new();
    let colored = |arguments: &[&str]| shell.run(arguments).stdout.contains('\u{1b}');
    assert!(!colored(&["-c", ".help"]));
    assert!(colored(&["--color", "always", "-c", ".help"]));
}
