//! Places that accept no output: full disks, closed outputs, folders that cannot be made; and names that are not text.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use handlescope_tests::binary::{ProgramRun, Shell, handlescope_path, sample_symbols};
use handlescope_tests::foreign::{ForeignMembers, pack};
use handlescope_tests::symbol_server::SymbolServer;
use handlescope_tests::terminal::{Terminal, TerminalKey};

/// Runs the program through a line of `sh`, where `"$@"` is the program with its arguments.
fn in_sh(shell: &Shell, line: &str, arguments: &[&str]) -> ProgramRun {
    let mut command = shell.command(arguments);
    let environment: Vec<_> = command
        .get_envs()
        .map(|(key, value)| (key.to_owned(), value.map(OsStr::to_owned)))
        .collect();
    let mut sh = Command::new("sh");
    sh.args(["-c", line, "sh"]).arg(handlescope_path()).args(arguments).current_dir(shell.path(""));
    for (key, value) in environment {
        match value {
            Some(value) => sh.env(key, value),
            None => sh.env_remove(key),
        };
    }
    command = sh;
    command.output().unwrap().into()
}

#[test]
fn a_full_disk_names_the_file_and_what_to_do() {
    // No file may grow beyond 2 KiB; the error is that of an exceeded quota.
    const FULL: &str = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "source"]).ok();
    for (command, target) in [
        (".save target.json7z", "target.json7z: cannot write: "),
        (".save target.json7z -etwanalyzer", "target.json7z: cannot write: "),
        (".export target", "target/trace.parquet: cannot be written: "),
        (".export target -csv", "target/names.csv: cannot be written: "),
        (".export target -ndjson", "target/threads.ndjson: cannot be written: "),
        (".dump ObjectRef -csv target.csv", "target.csv: cannot be written: "),
        (".dump ObjectRef -parquet target.parquet", "target.parquet: cannot be written: "),
        (".dump ObjectRef -json > target.json", "target.json: cannot be written: "),
        (".redact leaky.etl -o target.etl", "target.etl: cannot be written: "),
        (".extract leaky.etl -o target", "target/leaky.json7z: cannot write: "),
    ] {
        let run = in_sh(&shell, FULL, &["source/leaky.json7z", "-c", command]);
        assert_eq!(run.status, Some(1), "{command}: {run:?}");
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("error: ")).collect();
        assert!(lines[0].contains(target), "{command}: {lines:?}");
        assert!(lines[0].contains("free some space, or "), "{command}: {lines:?}");
        let of_source = lines[0].contains("source") || lines[0].contains("thrift");
        assert!(!of_source && !lines[0].contains('{'), "{command}: {lines:?}");
    }
    for file in fs::read_dir(shell.path("target")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".tmp"), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_trace_on_a_full_disk_is_extracted_for_the_session() {
    // The disk has room for the trace only.
    const MOUNT: &str = "mount -t tmpfs -o size=40k none small && cp leaky.etl small";
    let shell = Shell::new();
    fs::create_dir(shell.path("small")).unwrap();
    let on_small = |line: &str, arguments: &[&str]| {
        in_sh(&shell, &format!("exec unshare -rm sh -c '{MOUNT} && {line}' sh \"$@\""), arguments)
    };
    if on_small("true", &[]).status != Some(0) {
        // This system does not let users mount anything.
        return;
    }
    let run = on_small("exec \"$@\"", &["small/leaky.etl", "-c", ".dump Process"]).ok();
    assert!(run.stdout.contains("leaky.exe"), "{run:?}");
    let note = "small/Extract/leaky.json7z cannot be written (the disk is full); working without a cache, so";
    assert!(run.stderr.contains(note), "{run:?}");
}

#[test]
fn denied_access_is_reported_in_plain_words() {
    let shell = Shell::new();
    let mut cases = vec![
        (
            ".dump Process > none/a.txt",
            "none/a.txt: cannot be written: folder not found; name another file",
        ),
        (
            ".dump Process >> none/a.txt",
            "none/a.txt: cannot be written: folder not found; name another file",
        ),
        (
            ".dump Process -csv none/a.csv",
            "none/a.csv: cannot be written: folder not found; name another",
        ),
        (".load none/*.etl", "none: cannot list the folder: file or folder not found"),
        (".cd none", "none: cannot change to this folder: file or folder not found"),
        (
            ".cd leaky.etl",
            "leaky.etl: cannot change to this folder: a part of the path is not a folder",
        ),
    ];
    // `/proc` takes no files, not even from an administrator.
    if cfg!(target_os = "linux") {
        cases.push((
            ".dump Process > /proc/a.txt",
            "/proc/a.txt: cannot be written: no file can be made in this folder; name another file with >",
        ));
    }
    for (command, message) in cases {
        let run = shell.run(&["leaky.etl", "-c", command]);
        assert_eq!(run.status, Some(1), "{command}: {run:?}");
        assert!(run.stderr.contains(message), "{command}: {run:?}");
        for raw in ["os error", ".tmp", "close what has it open"] {
            assert!(!run.stderr.contains(raw), "{command}: {run:?}");
        }
    }
}

#[test]
fn a_closed_output_is_an_error_and_a_reader_that_leaves_is_none() {
    let shell = Shell::new();
    for arguments in [
        &["leaky.etl", "-c", ".list"][..],
        &["-c", ".help"],
        &["schema"],
        &["man"],
        &["--help"],
        &["completions", "bash"],
        &["extract", "leaky.etl"],
        &["dump", "ObjectRef", "-fd", "leaky.etl"],
    ] {
        let run = in_sh(&shell, "exec \"$@\" >&-", arguments);
        assert_eq!(run.status, Some(1), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains("standard output is closed"), "{arguments:?}: {run:?}");
        let left = in_sh(&shell, "{ \"$@\"; echo $? > status; } | true", arguments);
        assert_eq!(fs::read_to_string(shell.path("status")).unwrap(), "0\n", "{arguments:?}");
        assert!(!left.stderr.contains("error: "), "{arguments:?}: {left:?}");
        let nowhere = in_sh(&shell, "exec \"$@\" > /dev/null", arguments);
        assert_eq!(nowhere.status, Some(0), "{arguments:?}: {nowhere:?}");
    }
    // Without output, nothing can fail.
    assert_eq!(in_sh(&shell, "exec \"$@\" >&-", &["leaky.etl", "-c", "# nothing"]).status, Some(0));
}

#[test]
fn a_word_that_is_no_text_is_named_and_the_file_can_be_loaded_by_a_pattern() {
    let shell = Shell::new();
    let name = OsStr::from_bytes(b"a\xFFb.etl");
    if fs::rename(shell.path("leaky.etl"), shell.path("").join(name)).is_err() {
        // The file system takes only text names.
        return;
    }
    let run = ProgramRun::from(shell.command(&[]).arg(name).output().unwrap());
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stderr.contains("'a\u{FFFD}b.etl' is not UTF-8; "), "{run:?}");
    let run = shell.run(&["a?b.etl", "-c", ".dump Process"]).ok();
    assert!(run.stdout.contains("leaky.exe"), "{run:?}");
    assert!(shell.path("Extract").join(OsStr::from_bytes(b"a\xFFb.json7z")).is_file());
}

#[test]
fn a_name_that_is_no_text_is_replaced_and_counted() {
    let shell = Shell::new();
    for (at, broken) in
        [&b"Demo\xFF0"[..], br"Demo\uD8000", br"Demo\uDC000"].into_iter().enumerate()
    {
        let mut members = ForeignMembers::default().named("Demo");
        let place = |bytes: &[u8]| bytes.windows(6).position(|window| window == b"Demo_0");
        for (_, content) in &mut members {
            if let Some(start) = place(content) {
                content.splice(start..start + 6, broken.iter().copied());
            }
        }
        let file = format!("Demo{at}.json7z");
        fs::create_dir(shell.path(&at.to_string())).unwrap();
        pack(&shell.path(&file), &members);
        let run = shell.run(&[&file, "-c", ".dump ObjectRef", "-c", ".dump Stats"]).ok();
        assert!(run.stdout.contains("\\BaseNamedObjects\\Demo\u{FFFD}0 "), "{run:?}");
        let warning = "1 invalid character in a text of this extract, replaced by U+FFFD";
        assert!(run.stderr.contains(warning), "{run:?}");
        assert!(run.stdout.contains("1 invalid character in a text of this extract"), "{run:?}");
    }
}

#[test]
fn without_a_cache_everything_works_once_more_each_time() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    // Nothing can be created below a file, not even by an administrator.
    for file in ["cache", "data", "Extract"] {
        fs::write(shell.path(file), "").unwrap();
    }
    fs::rename(shell.path("leaky.json7z"), shell.path("other.json7z")).unwrap();
    let symbols = sample_symbols().display().to_string();
    let ask = ".dump ObjectRef -Leak -ShowStack";
    let expected = shell.run(&["--symbol-path", &symbols, "other.json7z", "-c", ask]).ok();
    let notes: Vec<&str> =
        expected.stderr.lines().filter(|line| line.contains("no symbol cache")).collect();
    assert!(matches!(notes.as_slice(), [one] if one.contains("leaky.exe")), "{expected:?}");
    assert!(expected.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate"));

    let tmp = shell.path("tmp");
    fs::create_dir(&tmp).unwrap();
    let in_tmp = |arguments: &[&str]| {
        ProgramRun::from(shell.command(arguments).env("TMPDIR", &tmp).output().unwrap()).ok()
    };
    let run = in_tmp(&["--symbol-path", &symbols, "leaky.etl", "-c", ask]);
    let answer = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(answer(&run.stdout), answer(&expected.stdout));
    assert!(
        run.stderr.contains("cannot be written (")
            && run.stderr.contains("working without a cache, so"),
        "{run:?}"
    );

    let server = SymbolServer::for_folder(&sample_symbols());
    for path in [format!("srv*{}", server.url), format!("srv*cache/below*{}", server.url)] {
        let run = in_tmp(&["--symbol-path", &path, "other.json7z", "-c", ask]);
        assert_eq!(answer(&run.stdout), answer(&expected.stdout), "{path}");
        assert!(run.stderr.contains("no symbol cache"), "{run:?}");
    }

    ForeignMembers::default().pack(&shell.path("Demo.json7z"), "Demo");
    let run = in_tmp(&["Demo.json7z", "-c", ".symbolize", "-c", ".dump ObjectRef"]);
    assert!(run.stdout.contains("Demo_0"), "{run:?}");
    assert!(run.stderr.contains("working without a cache, so"), "{run:?}");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "what was kept for a session is gone");

    let mut terminal = Terminal::spawn(100, 24, &["other.json7z"], &shell.path(""));
    terminal.wait_for_line("other.json7z> ");
    assert!(
        terminal.view(|view| view.lines().any(|line| line.contains("the history cannot be saved")))
    );
    terminal.press(TerminalKey::Ctrl('d'));
    assert_eq!(terminal.wait_for_exit(), Some(0));
}

/// Runs the program as a user with a limited number of processes and threads.
#[cfg(target_os = "linux")]
fn with_threads(threads: usize, arguments: &[&str]) -> ProgramRun {
    use std::fs::File;
    use std::os::unix::process::CommandExt as _;
    // That user may not be able to open its folder, but can use the open file.
    let program = File::open(handlescope_path()).unwrap();
    let mut bash = Command::new("bash");
    let line = format!("ulimit -u {threads}; exec /proc/self/fd/0 \"$@\"");
    bash.args(["-c", &line, "bash"]).args(arguments).stdin(program).current_dir("/");
    bash.env("HOME", "/nonexistent").env_remove("RUST_MIN_STACK");
    // The limit does not apply to root.
    if fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0) {
        bash.uid(54_321).gid(54_321);
    }
    bash.output().unwrap().into()
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_may_have_too_few_threads_says_so_and_ends() {
    for threads in [1, 2, 5] {
        let run = with_threads(threads, &["-c", ".list"]);
        let is_said = run.stderr.starts_with("error: the system allows ");
        assert!(run.status == Some(1) && is_said, "{threads}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
    let run = with_threads(1000, &["-c", ".list"]).ok();
    assert_eq!(run.stdout, "No traces are loaded.\n");
}

#[test]
fn variables_that_libraries_cannot_use_are_ignored_with_a_warning() {
    let shell = Shell::new();
    for (name, value) in [
        ("POLARS_MAX_THREADS", "0"),
        ("POLARS_MAX_THREADS", "many"),
        ("TOKIO_WORKER_THREADS", "0"),
        ("POLARS_ROW_GROUP_PREFETCH_SIZE", "0"),
        ("RUST_MIN_STACK", "1"),
    ] {
        let mut command = shell.command(&["leaky.etl", "-c", ".why"]);
        let run: ProgramRun = command.env(name, value).output().unwrap().into();
        let said = format!("warning: {name}={value} is ignored: not a number of at least ");
        assert!(run.stderr.contains(&said) && run.status == Some(0), "{run:?}");
        assert!(run.stdout.contains("8 of 56 Event handles leaked"), "{run:?}");
    }
}
