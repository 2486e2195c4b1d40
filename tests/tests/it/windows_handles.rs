//! How Windows opens, passes on and closes handles, through the program: one published trace per behaviour.

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::data::faults;
use handlescope_tests::needs_data;
use serde_json::Value;

/// Leaked handles: owner, class, and how many.
type LeaksByOwner<'a> = &'a [(&'a str, &'a str, u64)];

const LEAKED: &str = "never_closed";
const AT_EXIT: &str = "closed_at_exit";

/// Makes a folder with the trace of this name; also returns the trace's file.
fn shell(name: &str) -> (Shell, String) {
    let folder = match name {
        "kernel-handles" | "close-by-caller" => faults(),
        _ => faults().join("windows"),
    };
    let (shell, file) = (Shell::new(), format!("{name}.etl.7z"));
    fs::copy(folder.join(&file), shell.path(&file)).unwrap();
    (shell, file)
}

/// Returns the answer of a command as JSON.
fn answer(name: &str, command: &str) -> Value {
    let (shell, file) = shell(name);
    let run = shell.script(&[&file], &format!("{command}\n"));
    let start = run.stdout.find(['{', '[']).unwrap_or_else(|| panic!("{name}: {run:?}"));
    serde_json::Deserializer::from_str(&run.stdout[start..]).into_iter().next().unwrap().unwrap()
}

/// Asserts that SQL, the totals, `-Leak` and the suspects agree on the leaked handles.
fn assert_leaks(name: &str, objects: u64, expected: LeaksByOwner<'_>) {
    let rows = answer(
        name,
        ".sql SELECT process, CASE WHEN leaked THEN 'never_closed' ELSE 'closed_at_exit' END AS class, COUNT(*) AS n FROM handles \
         WHERE leaked OR at_exit GROUP BY process, class ORDER BY process, class -json",
    );
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let leaks: Vec<_> = rows["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| (text(row, "process"), text(row, "class"), row["n"].as_u64().unwrap()))
        .collect();
    let known: Vec<_> =
        expected.iter().map(|(owner, class, n)| ((*owner).into(), (*class).into(), *n)).collect();
    assert_eq!(leaks, known, "{name}: SQL");
    let sum = |class: &str| -> u64 {
        expected.iter().filter(|(_, of, _)| *of == class).map(|(_, _, n)| n).sum()
    };
    let all = answer(name, ".dump ObjectRef -json");
    assert_eq!(all["objects"].as_array().map(Vec::len), Some(objects as usize), "{name}: objects");
    assert_eq!(all["totals"]["leaked_handles"], sum(LEAKED), "{name}: totals");
    assert_eq!(all["totals"]["closed_at_exit"], sum(AT_EXIT), "{name}: totals");
    let groups = answer(name, ".dump ObjectRef -GroupBy process -json");
    let total = |column: &str| -> u64 {
        groups["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|group| group[column].as_u64())
            .sum()
    };
    assert_eq!(total("leaked"), sum(LEAKED), "{name}: groups");
    assert_eq!(total("closed_at_exit"), sum(AT_EXIT), "{name}: groups");
    for (option, class) in [("-Leak", LEAKED), ("-LeakAtExit", AT_EXIT)] {
        let listed = answer(name, &format!(".dump ObjectRef {option} -json"));
        let flag = if class == LEAKED { "leaked" } else { "closed_at_exit" };
        let opens = listed["objects"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|object| object["events"].as_array().into_iter().flatten())
            .filter(|event| {
                let kind = event["kind"].as_str().unwrap_or_default();
                ["handle_create", "handle_duplicate"].contains(&kind) && event[flag] == true
            });
        assert_eq!(opens.count() as u64, sum(class), "{name}: {option}");
    }
}

#[needs_data]
#[test]
fn a_sweep_belongs_to_the_process_that_ended_however_long_it_takes() {
    assert_leaks("sweep", 1500, &[("leaky.exe", AT_EXIT, 1000)]);
    assert_leaks("pidreuse", 200, &[("first.exe", AT_EXIT, 100)]);
}

#[needs_data]
#[test]
fn a_debugger_that_ends_a_process_sweeps_its_handles() {
    assert_leaks("debugkill", 200, &[("app.exe", AT_EXIT, 200)]);
}

#[needs_data]
#[test]
fn what_a_child_is_given_before_it_starts_is_inherited() {
    assert_leaks("stdhandles", 3, &[("build.exe", LEAKED, 3)]);
    assert_leaks("parentattr", 1, &[("explorer.exe", LEAKED, 1)]);
    assert_leaks("twospawn", 1, &[("build.exe", LEAKED, 1)]);
    assert_leaks("inh0", 1, &[("build.exe", LEAKED, 1)]);
}

#[needs_data]
#[test]
fn a_call_that_fails_to_create_a_process_leaks_nothing() {
    assert_leaks("failedspawn", 40, &[]);
}

#[needs_data]
#[test]
fn a_duplicate_into_a_process_that_has_not_started_is_of_that_process() {
    assert_leaks("earlydup", 20, &[("child.exe", AT_EXIT, 20)]);
}

#[needs_data]
#[test]
fn tag_bits_and_pseudo_handles_are_no_values_of_their_own() {
    assert_leaks("tagbits", 300, &[]);
    assert_leaks("pseudo", 50, &[]);
}

#[needs_data]
#[test]
fn an_object_lives_on_when_its_handle_is_handed_on() {
    assert_leaks("selfdup", 40, &[]);
    assert_leaks("closesource", 100, &[("worker.exe", LEAKED, 10)]);
    assert_leaks("alpc", 40, &[]);
}

#[needs_data]
#[test]
fn a_close_by_a_thread_of_another_process_ends_the_handle_that_it_names() {
    assert_leaks("close-by-caller", 45, &[]);
}

#[needs_data]
#[test]
fn kernel_handles_are_of_system_and_their_events_of_the_processes_that_made_them() {
    assert_leaks("kernel-handles", 345, &[("System", LEAKED, 5)]);
    let (shell, file) = shell("kernel-handles");
    let run = shell.script(&[&file], ".dump ObjectRef -Leak -pn explorer\n");
    assert_eq!(run.stdout.matches("explorer.exe").count(), 5, "{}", run.stdout);
}
