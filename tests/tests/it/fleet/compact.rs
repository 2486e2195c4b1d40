//! `dataset compact`: days that are over have few files, and no answer changes.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use std::{fs, thread};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope, sample_symbols};
use handlescope_tests::file::FileOptions;
use handlescope_tests::folders::{copy_folder, files};
use handlescope_tests::{needs_duckdb, needs_spark};
use serde_json::Value;

use super::console::{small_fleet, trace};
use super::contents;
use super::engines::{Spark, answers, assert_equal, console, duckdb, questions};

const TABLES: [&str; 8] =
    ["acquisitions", "groups", "growth", "modules", "processes", "stacks", "suspects", "traces"];

/// Questions of each kind to a dataset, about all traces and some.
const COMMANDS: [&str; 12] = [
    ".why -json",
    ".why -machine WS-1 -json",
    ".why -day 2025-07-22 -json",
    ".dump ObjectRef -GroupBy machine,build,process,type,createstack -json",
    ".dump ObjectRef -GroupBy machine -machine WS-0;WS-2 -json",
    ".dump ObjectRef -ShowTotal File -json",
    ".diff -build 1.9 1.10 -json",
    ".plot",
    ".plot -machine WS-2",
    ".sql SELECT trace, date, count(*) AS n FROM acquisitions GROUP BY trace, date ORDER BY trace -json",
    ".sql SELECT machine, sum(leaked) AS n FROM groups WHERE date = '2025-07-22' GROUP BY machine ORDER BY machine -json",
    ".sql SELECT t.source, count(*) AS n FROM suspects s JOIN traces t ON s.trace = t.trace GROUP BY t.source ORDER BY t.source -json",
];

fn compact(shell: &Shell) -> ProgramRun {
    shell.run(&["dataset", "compact", "fleet"])
}

/// What handlescope answers about the dataset `fleet`.
fn asked(shell: &Shell) -> Vec<String> {
    let tables = TABLES.map(|table| format!(".sql SELECT * FROM {table} ORDER BY ALL -csv"));
    let commands: Vec<String> = COMMANDS.map(str::to_owned).into_iter().chain(tables).collect();
    let commands = commands.iter().flat_map(|command| ["-c", command.as_str()]);
    let run = shell.run(&["fleet"].into_iter().chain(commands).collect::<Vec<_>>()).ok();
    let mut lines: Vec<String> = run.stdout.lines().map(str::to_owned).collect();
    let list = shell.run(&["dataset", "list", "fleet", "--json"]).ok().stdout;
    lines.extend(list.lines().map(str::to_owned));
    lines
}

/// Names of the Parquet files.
fn parts(shell: &Shell) -> Vec<PathBuf> {
    let dataset = shell.path("fleet");
    files(&dataset)
        .into_iter()
        .map(|(path, _)| path.strip_prefix(&dataset).unwrap().to_owned())
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect()
}

/// Number of merged files, while a process writes them.
fn merged_now(shell: &Shell) -> usize {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    TABLES
        .map(|table| shell.path(&format!("fleet/merged/{table}")))
        .into_iter()
        .flat_map(entries)
        .flat_map(|day| entries(day.path()))
        .count()
}

fn ids(shell: &Shell) -> Vec<String> {
    let run = shell.run(&["dataset", "list", "fleet", "--json"]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    document["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trace| trace["trace"].as_str().unwrap().to_owned())
        .collect()
}

fn assert_sound(shell: &Shell) {
    let _ = shell.run(&["dataset", "check", "fleet"]).ok();
}

#[test]
fn every_answer_is_the_same_after_a_merge() {
    let shell = small_fleet();
    let before = asked(&shell);
    assert_eq!(parts(&shell).len(), 6 * 8);
    let run = compact(&shell).ok();
    assert!(run.stdout.starts_with("merged 48 files into 16, "), "{run:?}");
    let merged = parts(&shell);
    assert_eq!(merged.len(), 2 * 8, "{merged:?}");
    assert!(merged.iter().all(|path| path.starts_with("merged")), "{merged:?}");
    for (after, before) in asked(&shell).iter().zip(&before) {
        assert_eq!(after, before);
    }
    assert_eq!(asked(&shell).len(), before.len());
    assert_sound(&shell);
    let content = contents(&shell.path("fleet"));
    assert_eq!(compact(&shell).ok().stdout, "nothing to merge\n");
    assert!(contents(&shell.path("fleet")) == content);
}

#[needs_duckdb]
#[test]
fn duckdb_answers_the_same_after_a_merge() {
    let shell = small_fleet();
    let (before, own) =
        (duckdb(&shell, "fleet", &questions()), console(&shell, "fleet", &questions()));
    let _ = compact(&shell).ok();
    // One more, which is not merged.
    trace(1, 3, true).write(shell.path("late.etl")).unwrap();
    assert_equal(&duckdb(&shell, "fleet", &questions()), &before);
    assert_equal(&console(&shell, "fleet", &questions()), &own);
    let _ = shell.run(&["dataset", "add", "fleet", "late.etl", "--build", "1.10"]).ok();
    let mixed = duckdb(&shell, "fleet", &questions());
    let _ = compact(&shell).ok();
    assert_equal(&duckdb(&shell, "fleet", &questions()), &mixed);
}

#[needs_spark]
#[test]
fn spark_answers_the_same_after_a_merge() {
    let shell = small_fleet();
    let before = duckdb(&shell, "fleet", &questions());
    let _ = compact(&shell).ok();
    let spark = Spark::new(&shell);
    let mut command = spark.command(&shell, "questions.py");
    command.arg("fleet").args(questions()).args(["--engine", "spark", "--json"]);
    command.stderr(Stdio::null());
    let after = answers(command.output().expect("Python starts").into());
    assert_equal(&after, &before);
}

#[test]
fn traces_come_to_merged_days_and_go_from_them() {
    let shell = small_fleet();
    let before = asked(&shell);
    let _ = compact(&shell).ok();
    let all = ids(&shell);
    let run = shell.run(&["dataset", "remove", "fleet", &all[0], &all[1], &all[5]]).ok();
    assert_eq!(run.stdout.matches(": removed\n").count(), 3, "{run:?}");
    assert_eq!(ids(&shell), all[2..5]);
    assert_sound(&shell);
    // No byte of them is left.
    let content = contents(&shell.path("fleet"));
    let rows = shell.run(&["fleet", "-c", ".sql SELECT DISTINCT trace FROM acquisitions -csv"]);
    assert_eq!(rows.ok().stdout.lines().count(), 1 + 3);
    for (path, bytes) in &content {
        let has = |id: &String| bytes.windows(id.len()).any(|window| window == id.as_bytes());
        assert!(!all.iter().take(2).any(has), "{}", path.display());
    }
    for (build, machine) in
        [("1.9", 0), ("1.9", 1), ("1.9", 2), ("1.10", 0), ("1.10", 1), ("1.10", 2)]
    {
        let (name, computer) = (format!("{build}-{machine}.etl"), format!("WS-{machine}"));
        let options = ["--build", build, "--machine", &computer];
        let _ = shell.run(&[&["dataset", "add", "fleet", &name], &options[..]].concat()).ok();
    }
    assert_eq!(asked(&shell), before);
    let run = compact(&shell).ok();
    assert!(run.stdout.starts_with("merged 40 files into 16, "), "{run:?}");
    assert_eq!(asked(&shell), before);
    let _ = shell
        .run(
            &[
                &["dataset", "remove", "fleet"],
                &all.iter().map(String::as_str).collect::<Vec<_>>()[..],
            ]
            .concat(),
        )
        .ok();
    assert_eq!((parts(&shell), ids(&shell)), (Vec::new(), Vec::new()));
    assert_sound(&shell);
}

#[test]
fn a_merged_trace_gets_names_later() {
    let shell = Shell::new();
    trace(0, 1, false).write(shell.path("other.etl")).unwrap();
    let symbols = sample_symbols();
    let _ = shell.run(&["dataset", "add", "fleet", "leaky.etl", "other.etl"]).ok();
    let _ = compact(&shell).ok();
    let function = |shell: &Shell| {
        let query = ".sql SELECT DISTINCT function FROM groups WHERE process = 'leaky.exe' AND leaked > 0 ORDER BY function -csv";
        shell.run(&["fleet", "-c", query]).ok().stdout
    };
    assert!(function(&shell).contains("leaky.exe+0x"), "{}", function(&shell));
    let options = ["--symbol-path", symbols.to_str().unwrap()];
    let _ = shell.run(&[&["dataset", "symbolize", "fleet"], &options[..]].concat()).ok();
    for _ in 0..2 {
        let named = function(&shell);
        assert!(named.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{named}");
        assert!(!named.contains("+0x"), "{named}");
        assert_eq!(ids(&shell).len(), 2);
        assert_sound(&shell);
        let _ = compact(&shell).ok();
    }
}

#[test]
fn today_is_not_merged() {
    let shell = small_fleet();
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let now = (unix as i64 + 11_644_473_600) * 10_000_000;
    let days = (now - FileOptions::default().start) / 864_000_000_000;
    for machine in 0..2 {
        // Tomorrow where a day ends in between.
        trace(days + 1, machine, false).write(shell.path("new.etl")).unwrap();
        let _ = shell.run(&["dataset", "add", "fleet", "new.etl"]).ok();
    }
    let run = compact(&shell).ok();
    assert!(run.stdout.starts_with("merged 48 files into 16, "), "{run:?}");
    assert_eq!(parts(&shell).len(), 16 + 16);
}

#[test]
fn a_merge_may_be_killed_at_any_point() {
    let shell = small_fleet();
    let before = asked(&shell);
    copy_folder(&shell.path("fleet"), &shell.path("original"));
    // Files of the merge that are there when it is killed; it ends with 16.
    for placed in [0, 1, 7, 8, 9, 16] {
        fs::remove_dir_all(shell.path("fleet")).unwrap();
        copy_folder(&shell.path("original"), &shell.path("fleet"));
        let mut command = handlescope(&shell.path(""));
        command.args(["dataset", "compact", "fleet"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        while child.try_wait().unwrap().is_none() && merged_now(&shell) < placed {
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(asked(&shell), before, "{placed}");
        let _ = compact(&shell).ok();
        assert_eq!(parts(&shell).len(), 16, "{placed}");
        assert_sound(&shell);
    }
}

#[test]
fn what_an_interrupted_merge_left_is_named_and_removed_by_the_next_one() {
    let shell = small_fleet();
    let before = asked(&shell);
    copy_folder(&shell.path("fleet"), &shell.path("original"));
    let _ = compact(&shell).ok();
    copy_folder(&shell.path("fleet"), &shell.path("after"));
    // Killed after the list was written: what it replaces is still there.
    copy_folder(&shell.path("original"), &shell.path("fleet"));
    assert_eq!(asked(&shell), before);
    let run = shell.run(&["dataset", "check", "fleet"]);
    assert!(run.stderr.contains("left by a process that was interrupted"), "{run:?}");
    assert_eq!(compact(&shell).ok().stdout, "nothing to merge\n");
    assert_sound(&shell);
    assert_eq!(parts(&shell).len(), 16);
    // Killed before: files that no list names.
    fs::remove_dir_all(shell.path("fleet")).unwrap();
    copy_folder(&shell.path("original"), &shell.path("fleet"));
    copy_folder(&shell.path("after/merged"), &shell.path("fleet/merged"));
    assert_eq!(asked(&shell), before);
    assert_eq!(shell.run(&["dataset", "check", "fleet"]).status, Some(1));
    let _ = compact(&shell).ok();
    assert_eq!(asked(&shell), before);
    assert_sound(&shell);
}

#[test]
fn traces_are_added_and_questions_asked_while_days_are_merged() {
    let shell = small_fleet();
    let leaked = |shell: &Shell| -> i64 {
        let run = shell.run(&["fleet", "-c", ".sql SELECT sum(leaked) AS n FROM groups -csv"]).ok();
        run.stdout.lines().nth(1).unwrap().parse().unwrap()
    };
    let start = leaked(&shell);
    for machine in 3..9 {
        trace(0, machine, false).write(shell.path(&format!("more-{machine}.etl"))).unwrap();
    }
    thread::scope(|scope| {
        let add = scope.spawn(|| {
            for machine in 3..9 {
                let _ =
                    shell.run(&["dataset", "add", "fleet", &format!("more-{machine}.etl")]).ok();
            }
        });
        let merge = scope.spawn(|| {
            for _ in 0..6 {
                let _ = compact(&shell).ok();
            }
        });
        let mut last = start;
        while !(add.is_finished() && merge.is_finished()) {
            let now = leaked(&shell);
            assert!(now >= last && (now - start) % 29 == 0, "{last} {now}");
            last = now;
        }
    });
    assert_eq!(leaked(&shell), start + 6 * 29);
    let _ = compact(&shell).ok();
    assert_eq!(parts(&shell).len(), 16);
    assert_eq!(ids(&shell).len(), 12);
    assert_sound(&shell);
}

#[test]
fn damage_is_not_merged() {
    let shell = small_fleet();
    let part = shell.path("fleet").join(&parts(&shell)[7]);
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, bytes).unwrap();
    let content = contents(&shell.path("fleet"));
    let run = compact(&shell);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("changed since it was written"), "{run:?}");
    let after = contents(&shell.path("fleet"));
    assert!(after == content, "{:?}", after.keys());
}

#[test]
fn damage_of_merged_files_and_lists_is_an_error() {
    let shell = small_fleet();
    let _ = compact(&shell).ok();
    copy_folder(&shell.path("fleet"), &shell.path("original"));
    let list = "_merged/2025-07-22.json";
    let suspects = parts(&shell).into_iter().find(|it| it.starts_with("merged/suspects")).unwrap();
    let suspects = suspects.to_str().unwrap();
    let text = fs::read_to_string(shell.path("fleet").join(list)).unwrap();
    let id = ids(&shell).pop().unwrap();
    for (name, content, error) in [
        (list, "{".to_owned(), "damaged"),
        (list, text.replace(&id, "../../escape"), "is not the id of a trace"),
        (list, text.replace("\"sha256\": \"", "\"sha256\": \"../"), "is not a hash"),
        (list, String::new(), "damaged"),
        (suspects, String::new(), "changed since it was written"),
        (suspects, "PAR1".repeat(100), "changed since it was written"),
    ] {
        fs::write(shell.path("fleet").join(name), content).unwrap();
        let run = shell.run(&["fleet", "-c", ".why"]);
        assert_eq!(run.status, Some(1), "{name}: {run:?}");
        assert!(run.stderr.contains(error), "{name}: {run:?}");
        assert_eq!(shell.run(&["dataset", "check", "fleet"]).status, Some(1), "{name}");
        copy_folder(&shell.path("original"), &shell.path("fleet"));
        assert_sound(&shell);
    }
    // Without its list, a day is missing, which manifests notice.
    fs::remove_file(shell.path("fleet").join(list)).unwrap();
    let run = shell.run(&["fleet", "-c", ".why"]);
    assert!(run.stderr.contains("missing"), "{run:?}");
    copy_folder(&shell.path("original"), &shell.path("fleet"));
    fs::remove_file(shell.path("fleet").join(suspects)).unwrap();
    let run = shell.run(&["fleet", "-c", ".why"]);
    assert!(run.stderr.contains("part-") && run.stderr.contains("missing"), "{run:?}");
}
