//! Datasets with missing or damaged files, or with something other than a file: no question is answered as if nothing
//! were there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope};
use handlescope_tests::rng::Rng;
use serde_json::{Deserializer, Value};

use super::console::trace;

const TABLES: [&str; 8] =
    ["acquisitions", "groups", "growth", "modules", "processes", "stacks", "suspects", "traces"];

/// Makes a dataset of two traces, each from another build.
fn dataset() -> Shell {
    let shell = Shell::new();
    for (day, build) in [(0, "1.0"), (1, "2.0")] {
        let name = format!("{build}.etl");
        trace(day, 1, day == 1).write(shell.path(&name)).unwrap();
        let _ = shell.run(&["dataset", "add", "fleet", &name, "--build", build]).ok();
    }
    let _ = shell.run(&["dataset", "check", "fleet"]).ok();
    shell
}

/// Returns questions that read every table.
fn questions() -> Vec<String> {
    let sql = |table: &str| format!(".sql SELECT * FROM {table} -json");
    QUESTIONS.map(str::to_owned).into_iter().chain(TABLES.map(sql)).collect()
}

/// Questions that each read a few tables.
const QUESTIONS: [&str; 4] = [
    ".why -json",
    ".dump ObjectRef -GroupBy type -json",
    ".diff -build 2.0 1.0 -json",
    ".sql SELECT count(*) AS n FROM processes -json",
];

/// Asks each question, several at a time.
fn ask(shell: &Shell, questions: &[String]) -> Vec<ProgramRun> {
    let half = questions.len().div_ceil(2);
    let ask = |questions: &[String]| -> Vec<ProgramRun> {
        questions.iter().map(|question| shell.run(&["fleet", "-c", question])).collect()
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            questions.chunks(half).map(|part| scope.spawn(move || ask(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn list(shell: &Shell) -> ProgramRun {
    shell.run(&["dataset", "list", "fleet", "--json"])
}

fn documents(run: &ProgramRun) -> Vec<Value> {
    Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect()
}

/// Returns the path of the first trace's part in a table.
fn part(shell: &Shell, table: &str) -> PathBuf {
    let only = |folder: PathBuf| {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.swap_remove(0)
    };
    only(only(shell.path("fleet").join(table))).join("part-0.parquet")
}

/// Returns the path as messages name it.
fn named(shell: &Shell, path: &Path) -> String {
    path.strip_prefix(shell.path("")).unwrap().to_str().unwrap().to_owned()
}

/// Asserts that no question is answered, and that each error names the file.
fn assert_refused(shell: &Shell, path: &Path, damage: &str) {
    let name = named(shell, path);
    let asked = ask(shell, &QUESTIONS.map(str::to_owned));
    for run in asked.into_iter().chain([list(shell)]) {
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{damage}: {run:?}");
        assert!(run.stderr.contains(&name), "{damage}: {name}: {run:?}");
    }
    let check = shell.run(&["dataset", "check", "fleet"]);
    assert_eq!(check.status, Some(1), "{damage}: {name}");
    assert!(check.stderr.contains(&name), "{damage}: {check:?}");
}

/// Replaces a file by something else, and puts it back afterwards.
fn with_damage(path: &Path, damage: impl FnOnce(), then: impl FnOnce()) {
    let kept = path.with_file_name("_kept");
    fs::rename(path, &kept).unwrap();
    damage();
    then();
    if path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        fs::remove_dir(path).unwrap();
    } else {
        let _ = fs::remove_file(path);
    }
    fs::rename(kept, path).unwrap();
}

#[test]
fn a_part_or_partition_that_is_missing_or_of_another_size_is_named_by_every_question() {
    let shell = dataset();
    for table in TABLES {
        let part = part(&shell, table);
        let content = fs::read(&part).unwrap();
        with_damage(&part, || {}, || assert_refused(&shell, &part, "removed"));
        with_damage(
            &part,
            || fs::write(&part, "").unwrap(),
            || assert_refused(&shell, &part, "emptied"),
        );
        let half = &content[..content.len() / 2];
        with_damage(
            &part,
            || fs::write(&part, half).unwrap(),
            || assert_refused(&shell, &part, "cut"),
        );
        for folder in part.ancestors().skip(1).take(3) {
            let aside = shell.path("aside");
            fs::rename(folder, &aside).unwrap();
            assert_refused(&shell, &part, "the folder removed");
            fs::rename(&aside, folder).unwrap();
        }
    }
    ask(&shell, &questions()).into_iter().for_each(|run| drop(run.ok()));
}

#[test]
fn a_damaged_part_is_named_where_it_is_read_and_changes_no_answer() {
    let shell = dataset();
    let whole: Vec<String> =
        ask(&shell, &questions()).into_iter().map(|run| run.ok().stdout).collect();
    let mut rng = Rng::new(7);
    for table in TABLES {
        let part = part(&shell, table);
        let content = fs::read(&part).unwrap();
        let mut damaged = content.clone();
        damaged[rng.below(content.len() as u64) as usize] ^= 1 << rng.below(8);
        for damaged in [damaged, vec![0; content.len()]] {
            fs::write(&part, damaged).unwrap();
            let name = named(&shell, &part);
            let asked = ask(&shell, &questions());
            let refused = asked.iter().filter(|run| run.stderr.contains(&name)).count();
            assert!(refused > 0, "{name}: {asked:?}");
            for (run, whole) in asked.iter().zip(&whole) {
                let is_refused = run.status == Some(1) && run.stderr.contains(&name);
                let is_whole = run.status == Some(0) && run.stdout == *whole;
                assert!(is_refused || is_whole, "{name}: {run:?}");
            }
            let check = shell.run(&["dataset", "check", "fleet"]);
            assert!(check.stderr.contains(&name), "{check:?}");
        }
        fs::write(&part, content).unwrap();
    }
}

#[test]
fn pipes_devices_links_to_them_and_folders_are_no_parts_and_no_manifests() {
    let shell = dataset();
    let manifest =
        fs::read_dir(shell.path("fleet/_manifests")).unwrap().next().unwrap().unwrap().path();
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let paths = ["groups", "traces"].map(|table| part(&shell, table));
    for path in paths.iter().chain([&manifest]) {
        with_damage(path, || pipe(path), || assert_refused(&shell, path, "a pipe"));
        let device = || symlink("/dev/zero", path).unwrap();
        with_damage(path, device, || assert_refused(&shell, path, "a device"));
        with_damage(
            path,
            || fs::create_dir(path).unwrap(),
            || assert_refused(&shell, path, "a folder"),
        );
        let endless = || fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        with_damage(path, endless, || assert_refused(&shell, path, "an endless file"));
    }
    for content in ["", "{}", "not JSON"] {
        let write = || fs::write(&manifest, content).unwrap();
        with_damage(&manifest, write, || assert_refused(&shell, &manifest, content));
    }
    with_damage(&manifest, || {}, || assert_refused(&shell, &manifest, "no manifest"));
    let marker = shell.path("fleet/_dataset.json");
    let listed = || {
        let run = list(&shell);
        assert_eq!(run.status, Some(1));
        assert!(run.stderr.contains("_dataset.json: it is a pipe"), "{run:?}");
    };
    with_damage(&marker, || pipe(&marker), listed);
}

#[test]
fn a_check_sees_what_was_planted_or_left_behind() {
    let shell = dataset();
    let part = part(&shell, "groups");
    let [trace, day] = [1, 2].map(|number| part.ancestors().nth(number).unwrap().to_path_buf());
    let other_day = day.with_file_name("date=2020-01-01").join(trace.file_name().unwrap());
    let planted = [
        part.with_file_name("part-1.parquet"),
        day.join("part-0.parquet"),
        day.with_file_name("part-0.parquet"),
        day.join("trace=ff").join("part-0.parquet"),
        other_day.join("part-0.parquet"),
        shell.path("fleet/later.parquet"),
        shell.path("fleet/_staging/.tmpAbc/part-0.parquet"),
    ];
    let names =
        ["part-1.parquet", "", "", "trace=ff", "date=2020-01-01", "later.parquet", ".tmpAbc"];
    for (path, name) in planted.iter().zip(names) {
        let has_folder = path.parent().unwrap().is_dir();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&part, path).unwrap();
        let run = shell.run(&["dataset", "check", "fleet"]);
        assert_eq!(run.status, Some(1), "{}", path.display());
        let name = if name.is_empty() { named(&shell, path) } else { name.to_owned() };
        assert!(run.stderr.contains(&name), "{name}: {run:?}");
        assert!(run.stderr.contains("the dataset has 1 problem"), "{name}: {run:?}");
        fs::remove_file(path).unwrap();
        if !has_folder {
            let _ = fs::remove_dir(path.parent().unwrap());
        }
        let _ = fs::remove_dir(day.with_file_name("date=2020-01-01"));
    }
    fs::write(shell.path("fleet/groups/.DS_Store"), "").unwrap();
    let _ = shell.run(&["dataset", "check", "fleet"]).ok();
    // A trace that occurs twice would count twice.
    let copy = part.ancestors().nth(2).unwrap().with_file_name("date=2020-01-01");
    for table in TABLES {
        let from = shell.path("fleet").join(table).join(day.file_name().unwrap());
        let to = from.with_file_name(copy.file_name().unwrap()).join(trace.file_name().unwrap());
        fs::create_dir_all(&to).unwrap();
        fs::copy(
            from.join(trace.file_name().unwrap()).join("part-0.parquet"),
            to.join("part-0.parquet"),
        )
        .unwrap();
    }
    let asked = ask(&shell, &QUESTIONS.map(str::to_owned));
    for run in asked.into_iter().chain([list(&shell)]) {
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert!(run.stderr.contains("not written by handlescope"), "{run:?}");
    }
}

#[test]
fn removing_stays_in_the_dataset_and_can_be_repeated() {
    let shell = dataset();
    let remove = |ids: &[&str]| shell.run(&[&["dataset", "remove", "fleet"], ids].concat());
    let traces: Vec<String> =
        documents(&shell.run(&["dataset", "list", "fleet", "--json"]))[0]["traces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trace| trace["trace"].as_str().unwrap().to_owned())
            .collect();
    let [first, second] = [&traces[0], &traces[1]];
    let count = || {
        documents(&shell.run(&["dataset", "list", "fleet", "--json"]))[0]["traces"]
            .as_array()
            .unwrap()
            .len()
    };
    // An id that matches nothing keeps the others, too.
    for ids in [&[""][..], &[first, ""], &[first, "ffff"]] {
        let run = remove(ids);
        assert_eq!((run.status, count()), (Some(1), 2), "{run:?}");
        assert!(run.stderr.contains("dataset list shows"), "{run:?}");
    }
    // A link in place of a day's folder leads elsewhere.
    let day = part(&shell, "groups").ancestors().nth(2).unwrap().to_path_buf();
    let (outside, listed) = (shell.path("outside"), day.to_str().unwrap().to_owned());
    fs::rename(&day, &outside).unwrap();
    symlink(&outside, &day).unwrap();
    let of_day = if part(&shell, "groups").to_str().unwrap().contains(first.as_str()) {
        first
    } else {
        second
    };
    let run = remove(&[of_day]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("a link, not a folder of the dataset"), "{run:?}");
    assert!(run.stderr.contains(day.file_name().unwrap().to_str().unwrap()), "{run:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{listed}");
    let check = shell.run(&["dataset", "check", "fleet"]);
    assert!(check.stderr.contains("a link"), "{check:?}");
    fs::remove_file(&day).unwrap();
    fs::rename(&outside, &day).unwrap();
    // As if the removal had been interrupted after the first one.
    let _ = remove(&[&first[..6]]).ok();
    let run = remove(&[&first[..6], &second[..6]]).ok();
    assert!(run.stdout.contains("removed before"), "{run:?}");
    assert!(run.stdout.contains(&format!("{second}: removed")), "{run:?}");
    assert_eq!(count(), 0);
}

#[test]
fn a_dataset_is_found_by_any_path() {
    let shell = dataset();
    let answer = |folder: &str, path: &str| {
        let mut command = handlescope(&shell.path(folder));
        let run: ProgramRun = command.args(["why", path, "-json"]).output().unwrap().into();
        let by_day = ".sql SELECT date, trace, count(*) AS n FROM acquisitions GROUP BY ALL ORDER BY trace -json";
        let mut command = handlescope(&shell.path(folder));
        let sql: ProgramRun = command.args([path, "-c", by_day]).output().unwrap().into();
        [run, sql].map(|run| documents(&run.ok()).swap_remove(0))
    };
    let expected = answer("", "fleet").map(|mut document| {
        document.as_object_mut().unwrap().remove("command");
        document
    });
    for folder in [
        "below/deeper",
        "date=2020-01-01",
        "trace=ff/date=2020-01-01",
        "a=b",
        "tab\there",
        "a%20b #?",
    ] {
        fs::create_dir_all(shell.path(folder)).unwrap();
        let up = "../".repeat(folder.split('/').count());
        let mut paths = vec![(folder.to_owned(), format!("{up}fleet"))];
        paths.push((folder.to_owned(), format!("./{up}fleet/../fleet/")));
        let moved = shell.path(folder).join("fleet");
        let asked = |paths: &[(String, String)]| {
            for (folder, path) in paths {
                let found = answer(folder, path).map(|mut document| {
                    document.as_object_mut().unwrap().remove("command");
                    document
                });
                assert_eq!(found, expected, "{folder}: {path}");
            }
        };
        asked(&paths);
        fs::rename(shell.path("fleet"), &moved).unwrap();
        asked(&[
            (String::new(), format!("{folder}/fleet")),
            (folder.to_owned(), "fleet".to_owned()),
        ]);
        fs::rename(&moved, shell.path("fleet")).unwrap();
    }
}

/// Asserts that a run either succeeded, or says that the folder has no space left.
fn assert_full(run: &ProgramRun, folder: &str, reason: &str) {
    if run.status == Some(0) {
        return;
    }
    let expected = format!("error: {folder}: {reason}\n");
    assert!(run.stderr.contains(&expected), "{run:?}");
    assert!(!run.stderr.contains("_staging") && !run.stderr.contains("specification"), "{run:?}");
}

#[test]
fn a_full_disk_is_named_with_the_folder_that_was_asked_for() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "source"]).ok();
    let add = |script: &str, folder: &str| -> ProgramRun {
        let program = handlescope(&shell.path(""));
        let mut limited = Command::new("sh");
        limited.args(["-c", script, "sh"]).arg(program.get_program());
        limited.args(["dataset", "add", folder, "source/leaky.json7z"]);
        limited.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.current_dir(shell.path("")).output().unwrap().into()
    };
    let mut failed = 0;
    for blocks in [0, 1, 8, 10, 12, 16, 20, 24, 28] {
        // No file may grow beyond this many blocks.
        let run = add(&format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "fleet");
        assert_full(&run, "fleet", "the file is too large for the file system");
        failed += usize::from(run.status != Some(0));
    }
    assert!(failed > 3, "{failed}");
    let _ = add("exec \"$@\"", "fleet").ok();
    let _ = shell.run(&["dataset", "check", "fleet"]).ok();
    fs::create_dir(shell.path("small")).unwrap();
    for kib in (4..200).step_by(28) {
        let mount = format!("mount -t tmpfs -o size={kib}k none small");
        let script = format!("exec unshare -rm sh -c '{mount} && exec \"$@\"' sh \"$@\"");
        let run = add(&script, "small/fleet");
        // Some systems do not let users mount anything.
        if !run.stderr.contains("unshare") && !run.stderr.contains("mount") {
            assert_full(&run, "small/fleet", "the disk is full");
        }
    }
}

#[test]
fn a_trace_whose_manifest_is_lost_is_added_again() {
    let shell = dataset();
    for is_merged in [false, true] {
        if is_merged {
            let _ = shell.run(&["dataset", "compact", "fleet"]).ok();
        }
        let before = list(&shell).ok().stdout;
        for manifest in fs::read_dir(shell.path("fleet/_manifests")).unwrap() {
            fs::remove_file(manifest.unwrap().path()).unwrap();
        }
        assert_eq!(list(&shell).status, Some(1));
        for build in ["1.0", "2.0"] {
            let trace = format!("{build}.etl");
            let _ = shell.run(&["dataset", "add", "fleet", &trace, "--build", build]).ok();
        }
        let _ = shell.run(&["dataset", "check", "fleet"]).ok();
        assert_eq!(list(&shell).ok().stdout, before, "{is_merged}");
    }
}
