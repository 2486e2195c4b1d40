//! Which files an output may replace: those that handlescope wrote and that are unchanged since. `-Force` replaces any
//! other file, but never a loaded one.

use std::fs;
use std::path::Path;

use handlescope_tests::binary::{ProgramRun, Shell, ended};

/// Commands that write the file FILE.
const WRITERS: [&str; 8] = [
    ".dump ObjectRef -csv FILE",
    ".dump Process -csv FILE",
    ".dump Process -parquet FILE",
    ".sql SELECT 1 AS a -csv FILE",
    ".list > FILE",
    ".dump Process -json > FILE",
    ".schema > FILE",
    ".redact trace.etl -o FILE",
];

/// Makes a folder with the sample as `leaky.etl` and `trace.etl`, and its extract `leaky.json7z`.
fn shell() -> Shell {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    fs::copy(shell.path("leaky.etl"), shell.path("trace.etl")).unwrap();
    shell
}

fn ask(shell: &Shell, loaded: &str, command: &str) -> ProgramRun {
    shell.run(&[loaded, "-c", command])
}

#[track_caller]
fn assert_refused(run: &ProgramRun, name: &str, reason: &str) {
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains(name) && run.stderr.contains(reason), "{run:?}");
}

const NOT_OURS: &str =
    "already exists and was not written by handlescope; use -Force to replace it";
const LOADED: &str = "is never replaced; name another file";

#[test]
fn only_force_replaces_what_others_wrote() {
    let shell = shell();
    let old = shell.path("old.txt");
    for writer in WRITERS {
        fs::write(&old, "mine").unwrap();
        let command = writer.replace("FILE", "old.txt");
        assert_refused(&ask(&shell, "leaky.json7z", &command), "old.txt", NOT_OURS);
        assert_eq!(fs::read(&old).unwrap(), b"mine", "{command}");
        let _ = ask(&shell, "leaky.json7z", &format!("{command} -Force")).ok();
        assert_ne!(fs::read(&old).unwrap(), b"mine", "{command}");
        fs::write(&old, "mine").unwrap();
        let _ = shell.run(&["leaky.json7z", "--force", "-c", &command]).ok();
        assert_ne!(fs::read(&old).unwrap(), b"mine", "{command}");
    }
    fs::write(&old, "mine").unwrap();
    let run = shell.run(&["dump", "Process", "-fd", "leaky.json7z", "-csv", "old.txt"]);
    assert_refused(&run, "old.txt", NOT_OURS);
    let _ =
        shell.run(&["dump", "Process", "-fd", "leaky.json7z", "-csv", "old.txt", "-Force"]).ok();
    let _ =
        shell.run(&["dump", "Process", "-fd", "leaky.json7z", "-csv", "old.txt", "--force"]).ok();
}

#[test]
fn an_extraction_replaces_extracts_only() {
    let shell = shell();
    let extract = shell.path("leaky.json7z");
    let line = ["extract", "leaky.etl", "-o", "."];
    let _ = shell.run(&line).ok();
    let mut damaged = fs::read(&extract).unwrap();
    damaged.truncate(damaged.len() / 2);
    for content in [&b"mine"[..], &damaged] {
        fs::write(&extract, content).unwrap();
        assert_refused(&shell.run(&line), "leaky.json7z", NOT_OURS);
        assert_eq!(fs::read(&extract).unwrap(), content);
        let _ = shell.run(&[&line[..], &["-Force"]].concat()).ok();
        fs::write(&extract, content).unwrap();
        let _ = shell.run(&[&["--force"][..], &line].concat()).ok();
        let _ = shell.run(&["leaky.json7z", "-c", ".list"]).ok();
    }
}

#[test]
fn files_of_handlescope_are_replaced_until_they_are_changed() {
    let shell = shell();
    for (at, writer) in WRITERS.iter().enumerate() {
        let name = format!("{at}.txt");
        let command = writer.replace("FILE", &name);
        // Once in each of two sessions, and twice in one session.
        let _ = ask(&shell, "leaky.json7z", &command).ok();
        let _ = shell.run(&["leaky.json7z", "-c", &command, "-c", &command]).ok();
        fs::write(shell.path(&name), "mine").unwrap();
        assert_refused(&ask(&shell, "leaky.json7z", &command), &name, NOT_OURS);
    }
}

#[test]
fn without_a_folder_for_data_a_session_still_knows_what_it_wrote() {
    let shell = shell();
    fs::write(shell.path("data"), "no folder").unwrap();
    let command = ".list > list.txt";
    let _ = shell.run(&["leaky.json7z", "-c", command, "-c", command]).ok();
    assert_refused(&ask(&shell, "leaky.json7z", command), "list.txt", NOT_OURS);
}

#[test]
fn a_trace_and_an_extract_are_replaced_by_force_only() {
    let shell = shell();
    fs::copy(shell.path("leaky.json7z"), shell.path("other.json7z")).unwrap();
    for name in ["trace.etl", "other.json7z"] {
        let before = fs::read(shell.path(name)).unwrap();
        for command in [
            format!(".dump Process -csv {name}"),
            format!(".dump Process -parquet {name}"),
            format!(".list > {name}"),
            format!(".redact leaky.etl -o {name}"),
        ] {
            assert_refused(&ask(&shell, "leaky.json7z", &command), name, NOT_OURS);
        }
        assert_eq!(fs::read(shell.path(name)).unwrap(), before);
    }
    assert_refused(&ask(&shell, "leaky.json7z", ".save other.json7z"), "other.json7z", NOT_OURS);
    let _ = ask(&shell, "leaky.json7z", ".save other.json7z -Force").ok();
    let _ = ask(&shell, "leaky.json7z", ".save other.json7z").ok();
    fs::write(shell.path("trace.redacted.etl"), "mine").unwrap();
    assert_refused(&shell.run(&["redact", "trace.etl"]), "trace.redacted.etl", NOT_OURS);
    let _ = shell.run(&["redact", "trace.etl", "-Force"]).ok();
    let _ = shell.run(&["redact", "trace.etl"]).ok();
}

#[test]
fn loaded_files_are_never_replaced_under_any_name() {
    let shell = shell();
    fs::create_dir(shell.path("sub")).unwrap();
    let mut names = vec!["leaky.etl", "./leaky.etl", "sub/../leaky.etl"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("leaky.etl", shell.path("link.txt")).unwrap();
        std::os::unix::fs::symlink(".", shell.path("here")).unwrap();
        names.extend(["link.txt", "here/leaky.etl"]);
    }
    fs::hard_link(shell.path("leaky.etl"), shell.path("hard.txt")).unwrap();
    names.push("hard.txt");
    if shell.path("LEAKY.ETL").exists() {
        names.push("LEAKY.ETL");
    }
    let before = fs::read(shell.path("leaky.etl")).unwrap();
    // The trace itself, and the trace beside its extract.
    for loaded in ["leaky.etl", "leaky.json7z"] {
        for name in &names {
            for writer in WRITERS {
                let command = format!("{} -Force", writer.replace("FILE", name));
                assert_refused(&ask(&shell, loaded, &command), name, LOADED);
            }
            let appended = ask(&shell, loaded, &format!(".list >> {name}"));
            assert_refused(&appended, name, LOADED);
        }
    }
    assert_eq!(fs::read(shell.path("leaky.etl")).unwrap(), before);

    let before = fs::read(shell.path("leaky.json7z")).unwrap();
    for command in
        [".save leaky.json7z -Force", ".list > leaky.json7z -Force", ".save ./leaky.json7z"]
    {
        assert_refused(&ask(&shell, "leaky.json7z", command), "leaky.json7z", LOADED);
    }
    assert_eq!(fs::read(shell.path("leaky.json7z")).unwrap(), before);
}

#[test]
fn the_trace_of_an_extract_elsewhere_is_not_replaced() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "far/away"]).ok();
    let run = ask(&shell, "far/away/leaky.json7z", ".list > leaky.etl -Force");
    assert_refused(&run, "leaky.etl", LOADED);
}

#[test]
fn export_replaces_its_own_tables_and_looks_before_it_writes() {
    let shell = shell();
    let _ = ask(&shell, "leaky.json7z", ".export tables -csv").ok();
    let _ = ask(&shell, "leaky.json7z", ".export tables -csv").ok();
    fs::write(shell.path("tables/stacks.csv"), "mine").unwrap();
    let times = |folder: &Path| -> Vec<_> {
        let mut files: Vec<_> =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| fs::metadata(file).unwrap().modified().unwrap()).collect()
    };
    let before = times(&shell.path("tables"));
    assert_refused(&ask(&shell, "leaky.json7z", ".export tables -csv"), "stacks.csv", NOT_OURS);
    assert_eq!(times(&shell.path("tables")), before, "nothing was written");
    let _ = ask(&shell, "leaky.json7z", ".export tables -csv -Force").ok();
    assert_ne!(fs::read(shell.path("tables/stacks.csv")).unwrap(), b"mine");
}

#[test]
fn only_text_is_appended_to() {
    let shell = shell();
    fs::write(shell.path("notes.txt"), "mine\n").unwrap();
    let _ = ask(&shell, "leaky.json7z", ".list >> notes.txt").ok();
    assert!(fs::read_to_string(shell.path("notes.txt")).unwrap().starts_with("mine\n"));
    // Appending does not make the file handlescope's.
    assert_refused(&ask(&shell, "leaky.json7z", ".list > notes.txt"), "notes.txt", NOT_OURS);
    fs::copy(shell.path("leaky.json7z"), shell.path("other.json7z")).unwrap();
    for name in ["trace.etl", "other.json7z"] {
        let before = fs::read(shell.path(name)).unwrap();
        for force in ["", " -Force"] {
            let run = ask(&shell, "leaky.json7z", &format!(".list >> {name}{force}"));
            assert_refused(&run, name, "is not a text file, so nothing is appended");
        }
        assert_eq!(fs::read(shell.path(name)).unwrap(), before);
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_no_device_is_replaced() {
    let shell = shell();
    fs::create_dir(shell.path("sub")).unwrap();
    std::os::unix::fs::symlink("sub/real.txt", shell.path("link.txt")).unwrap();
    std::os::unix::net::UnixListener::bind(shell.path("socket")).unwrap();
    for name in ["link.txt", "socket", "sub"] {
        let run = ask(&shell, "leaky.json7z", &format!(".list > {name} -Force"));
        assert_refused(&run, name, "is not a regular file");
    }
    fs::write(shell.path("sub/real.txt"), "mine").unwrap();
    assert_refused(&ask(&shell, "leaky.json7z", ".list > link.txt"), "link.txt", NOT_OURS);
    let _ = ask(&shell, "leaky.json7z", ".list > link.txt -Force").ok();
    assert!(fs::symlink_metadata(shell.path("link.txt")).unwrap().is_symlink());
    assert_ne!(fs::read(shell.path("sub/real.txt")).unwrap(), b"mine");
}

#[test]
fn every_command_that_writes_a_file_takes_force() {
    let shell = Shell::new();
    for kind in shell.kinds() {
        assert!(kind.options.iter().any(|usage| usage == "-Force"), "{kind:?}");
    }
    for command in [".sql", ".export", ".save", ".redact", ".extract"] {
        let help = shell.run(&["-c", &format!(".help {command}")]).ok().stdout;
        assert!(help.contains("  -Force"), "{help}");
    }
}

#[cfg(unix)]
#[test]
fn the_null_device_takes_any_answer_and_stays() {
    use std::os::unix::fs::FileTypeExt;
    let shell = shell();
    for arrow in [">", ">>"] {
        assert_eq!(
            ask(&shell, "leaky.json7z", &format!(".list {arrow} /dev/null")).ok().stdout,
            ""
        );
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

/// Number of consoles that write at the same time.
const WRITING_AT_ONCE: usize = 16;

#[test]
fn consoles_that_append_at_once_lose_no_answer_of_each_other() {
    const ANSWERS: usize = 3;
    let shell = shell();
    let command = [".sql SELECT 1 AS one -csv >> all.csv"; ANSWERS].map(|line| ["-c", line]);
    let words = [&["leaky.json7z"][..], command.as_flattened()].concat();
    let programs: Vec<_> =
        (0..WRITING_AT_ONCE).map(|_| shell.command(&words).spawn().unwrap()).collect();
    for mut program in programs {
        assert!(ended(&mut program).success());
    }
    let text = fs::read_to_string(shell.path("all.csv")).unwrap();
    assert_eq!(text.matches("one").count(), WRITING_AT_ONCE * ANSWERS, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_consoles_write_at_once_are_remembered_while_one_that_was_stopped_keeps_the_list() {
    let shell = shell();
    fs::create_dir_all(shell.path("data/handlescope")).unwrap();
    let list = fs::File::create(shell.path("data/handlescope/written.lock")).unwrap();
    // The second time, they replace what they wrote the first time.
    for _ in 0..2 {
        list.lock().unwrap();
        let write = |console| {
            let command = format!(".list > {console}.txt");
            shell
                .command(&["leaky.json7z", "-c", &command])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        for mut program in (0..WRITING_AT_ONCE).map(write).collect::<Vec<_>>() {
            assert!(ended(&mut program).success());
        }
        list.unlock().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_permissions_and_its_links_when_it_is_written_again() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let shell = shell();
    let file = shell.path("o.txt");
    fs::write(&file, "mine\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(&file, shell.path("link.txt")).unwrap();
    let _ = ask(&shell, "leaky.json7z", ".list >> o.txt").ok();
    let data = fs::metadata(&file).unwrap();
    assert_eq!((data.mode() & 0o777, data.nlink()), (0o600, 2));
    assert!(fs::read_to_string(shell.path("link.txt")).unwrap().contains("leaky.json7z"));
    let _ = ask(&shell, "leaky.json7z", ".list > o.txt -Force").ok();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}
