//! `handlescope dataset`: many traces as Parquet files that any engine can read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use handlescope_tests::binary::{ProgramRun, Shell, examples, sample_symbols};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

const TABLES: [&str; 8] =
    ["acquisitions", "groups", "growth", "modules", "processes", "stacks", "suspects", "traces"];

/// Id of the sample trace.
const SAMPLE: &str = "116a629ec36f27724cc421332243fd3f";

/// Returns all files below a folder with their content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                contents.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    contents
}

/// Returns the table files of a dataset.
fn tables(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = contents(folder);
    contents.retain(|path, _| !path.starts_with("_locks") && !path.starts_with("_extracts"));
    contents
}

fn listed(shell: &Shell) -> Vec<Value> {
    let run = shell.run(&["dataset", "list", "fleet", "--json"]).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    document["traces"].as_array().unwrap().clone()
}

/// Makes a dataset of the sample trace with function names.
fn sample() -> Shell {
    let shell = Shell::new();
    let _ = add(&shell, &["leaky.etl"]).ok();
    shell
}

/// Marks a trace as one that a killed process was still adding.
pub fn unfinished(shell: &Shell, trace: &str) {
    let path = shell.path(&format!("fleet/_manifests/{trace}.json"));
    let text = fs::read_to_string(&path).unwrap();
    let marked = text.replace(r#""unfinished": false"#, r#""unfinished": true"#);
    assert_ne!(marked, text);
    fs::write(path, marked).unwrap();
}

fn add(shell: &Shell, traces: &[&str]) -> ProgramRun {
    let symbols = sample_symbols();
    let options = ["--symbol-path", symbols.to_str().unwrap()];
    shell.run(&[&["dataset", "add", "fleet"], traces, &options[..]].concat())
}

#[test]
fn groups_have_calendar_times_where_the_trace_has_a_clock() {
    let shell = sample();
    let listing = examples().join("htrace.log");
    let _ = add(&shell, &[listing.to_str().unwrap()]).ok();
    let query = ".sql SELECT first_leaked_utc, last_leaked_utc, first_leaked_s, last_leaked_s FROM groups \
                 WHERE leaked > 0 ORDER BY first_leaked_s -csv";
    let run = shell.run(&["fleet", "-c", query]).ok();
    let expected = "first_leaked_utc,last_leaked_utc,first_leaked_s,last_leaked_s\n\
        2026-02-10 09:30:00.500 UTC,2026-02-10 09:30:01.300120 UTC,0.5,1.30012\n\
        2026-02-10 09:30:00.522930 UTC,2026-02-10 09:30:01.349495 UTC,0.5229301,1.3494956\n\
        2026-02-10 09:30:00.630997 UTC,2026-02-10 09:30:01.428559 UTC,0.6309973,1.4285595\n";
    // The listing of a debugger has no times.
    assert_eq!(run.stdout, format!("{expected}{}", ",,,\n".repeat(2)));
}

#[test]
fn a_trace_is_in_each_table_in_the_partition_of_its_day_and_id() {
    let shell = sample();
    let partition = format!("date=2026-02-10/trace={SAMPLE}/part-0.parquet");
    for table in TABLES {
        let part = shell.path("fleet").join(table).join(&partition);
        assert!(fs::read(&part).unwrap().starts_with(b"PAR1"), "{}", part.display());
    }
    let listed = listed(&shell);
    let [trace] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!(
        (&trace["trace"], &trace["opened"], &trace["leaked"], &trace["suspects"]),
        (&SAMPLE.into(), &101.into(), &19.into(), &4.into())
    );
    assert!(!shell.path("Extract").exists(), "nothing is written beside the trace");
}

#[test]
fn adding_again_changes_nothing_whatever_the_trace_is_called() {
    let shell = sample();
    let before = contents(&shell.path("fleet"));
    fs::rename(shell.path("leaky.etl"), shell.path("renamed.etl")).unwrap();
    let _ = shell.run(&["extract", "renamed.etl", "-o", "extracts"]).ok();
    let run = add(&shell, &["renamed.etl", "extracts/renamed.json7z"]).ok();
    assert_eq!(run.stdout.matches("already there, 2026-02-10").count(), 2, "{run:?}");
    assert!(contents(&shell.path("fleet")) == before);
}

#[test]
fn a_trace_that_cannot_be_added_does_not_keep_the_others_out() {
    let shell = Shell::new();
    fs::write(shell.path("broken.etl"), "no trace").unwrap();
    let run = add(&shell, &["broken.etl", "missing.etl", "leaky.etl"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stdout.contains("leaky.etl: 2026-02-10, 101 acquisitions"), "{run:?}");
    assert!(run.stderr.contains("2 of 3 traces could not be added"), "{run:?}");
    assert!(run.stderr.contains("broken.etl") && run.stderr.contains("missing.etl"), "{run:?}");
    assert_eq!(listed(&shell).len(), 1);
}

#[test]
fn processes_that_add_the_same_trace_at_once_add_it_once() {
    let shell = Shell::new();
    let adding = || add(&shell, &["leaky.etl"]).ok().stdout;
    let answers: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(adding)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let added = answers.iter().filter(|answer| answer.contains("101 acquisitions")).count();
    assert_eq!(added, 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.contains("already there")).count(), 5);
    let _ = shell.run(&["dataset", "check", "fleet"]).ok();
    assert!(tables(&shell.path("fleet")) == tables(&sample().path("fleet")));
}

#[test]
fn rows_of_a_process_that_was_killed_are_found_and_replaced() {
    let shell = sample();
    let before = tables(&shell.path("fleet"));
    fs::remove_dir_all(shell.path("fleet/traces")).unwrap();
    unfinished(&shell, SAMPLE);
    let groups = format!("fleet/groups/date=2026-02-10/trace={SAMPLE}/part-0.parquet");
    fs::write(shell.path(&groups), "half of a file").unwrap();
    let check = shell.run(&["dataset", "check", "fleet"]);
    assert_eq!(check.status, Some(1));
    assert!(check.stderr.contains("rows of a trace that was only partly added"), "{check:?}");
    assert_eq!(listed(&shell).len(), 0, "the trace is not there yet");
    let _ = add(&shell, &["leaky.etl"]).ok();
    assert!(tables(&shell.path("fleet")) == before);
}

#[test]
fn a_check_names_files_that_changed_or_are_missing() {
    let shell = sample();
    let part = |table: &str| {
        shell.path(&format!("fleet/{table}/date=2026-02-10/trace={SAMPLE}/part-0.parquet"))
    };
    let mut bytes = fs::read(part("groups")).unwrap();
    bytes[100] ^= 1;
    fs::write(part("groups"), bytes).unwrap();
    fs::remove_file(part("stacks")).unwrap();
    fs::write(part("modules"), "PAR1").unwrap();
    let run = shell.run(&["dataset", "check", "fleet"]);
    assert_eq!(run.status, Some(1));
    for text in ["groups", "changed since it was written", "stacks", "missing", "modules"] {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    assert!(run.stderr.contains("the dataset has 3 problems"), "{run:?}");
}

#[test]
fn a_removed_trace_leaves_nothing_and_may_come_back() {
    let shell = sample();
    let before = tables(&shell.path("fleet"));
    let run = shell.run(&["dataset", "remove", "fleet", "0000"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("dataset list shows the ids"), "{run:?}");
    let _ = shell.run(&["dataset", "remove", "fleet", "116A62"]).ok();
    let left: Vec<PathBuf> = contents(&shell.path("fleet"))
        .into_keys()
        .filter(|path| !path.starts_with("_locks"))
        .collect();
    assert_eq!(left, [PathBuf::from("_dataset.json")]);
    let _ = add(&shell, &["leaky.etl"]).ok();
    assert!(tables(&shell.path("fleet")) == before);
}

#[test]
fn names_that_are_found_later_give_the_rows_of_a_trace_that_had_them() {
    let shell = Shell::new();
    let run = shell.run(&["dataset", "add", "fleet", "leaky.etl", "--build", "7.1"]).ok();
    assert!(
        run.stderr.contains("--symserver ms downloads symbols of "),
        "the dataset is no symbol folder: {run:?}"
    );
    let without = listed(&shell);
    assert!(without[0]["stacks_without_symbols"].as_u64() > Some(0), "{without:?}");
    let symbols = sample_symbols();
    let symbolize = ["dataset", "symbolize", "fleet", "--symbol-path", symbols.to_str().unwrap()];
    let run = shell.run(&symbolize).ok();
    assert!(run.stdout.contains("1 trace with more names, 0 traces as before"), "{run:?}");
    let later = tables(&shell.path("fleet"));
    let shell = Shell::new();
    let _ = add(&shell, &["leaky.etl", "--build", "7.1"]).ok();
    assert!(tables(&shell.path("fleet")) == later, "the build that was given is kept, too");
}

#[test]
fn machine_and_build_are_those_of_the_trace_unless_they_are_given() {
    let shell = Shell::new();
    TraceBuilder::new().write(shell.path("empty.etl")).unwrap();
    let given = ["--build", "2.10", "--machine", "LAB-7"];
    let _ = add(&shell, &[&["empty.etl"], &given[..]].concat()).ok();
    let listed = listed(&shell);
    assert_eq!((&listed[0]["machine"], &listed[0]["build"]), (&"LAB-7".into(), &"2.10".into()));
}

#[test]
fn a_folder_of_other_files_does_not_become_a_dataset() {
    let shell = Shell::new();
    fs::create_dir(shell.path("fleet")).unwrap();
    fs::write(shell.path("fleet/notes.txt"), "mine").unwrap();
    let run = add(&shell, &["leaky.etl"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("neither empty nor a dataset"), "{run:?}");
    assert_eq!(contents(&shell.path("fleet")).len(), 1);
    for action in ["list", "check", "symbolize"] {
        let run = shell.run(&["dataset", action, "fleet"]);
        assert!(run.stderr.contains("fleet: no dataset"), "{run:?}");
    }
}
