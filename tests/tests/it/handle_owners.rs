//! Kernel handles, moved, sent and inherited handles, and process exits, wherever handles are shown or stored.

use std::collections::BTreeSet;
use std::fs::File;

use handlescope_extract::{NoObserver, complete};
use handlescope_model::Cancel;
use handlescope_tests::binary::{Shell, handlescope, run_over, run_script};
use handlescope_tests::windows_handles::{AT_EXIT, LEAKED, OBJECTS, windows_handles};
use serde_json::{Deserializer, Value};

const QUESTIONS: &str = "\
.dump ObjectRef -Leak -ShowStack
.dump ObjectRef -LeakAtExit
.dump ObjectRef -json
.sql SELECT process, pid, key, origin, leaked, \"end\", ended_by, source_process FROM handles
";

/// Returns the first document that a run printed.
fn document(text: &str) -> Value {
    Deserializer::from_str(text).into_iter().next().unwrap().unwrap()
}

/// Returns owner and value of handles, sorted.
fn owned(rows: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    rows.iter().map(|(owner, handle)| ((*owner).to_owned(), (*handle).to_owned())).collect()
}

/// Returns process and handle in the rows of a CSV answer.
fn csv_rows(text: &str) -> BTreeSet<(String, String)> {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_once(','))
        .map(|(process, handle)| (process.to_owned(), handle.to_owned()))
        .collect()
}

fn sql(query: &str) -> BTreeSet<(String, String)> {
    csv_rows(&run_over(&windows_handles(), &format!(".sql {query} -csv\n")).ok().stdout)
}

#[test]
fn leaks_and_handles_closed_at_exit_are_those_of_their_owners() {
    let leaked = sql("SELECT process, key FROM leaks");
    assert_eq!(leaked, owned(&LEAKED));
    let at_exit = sql("SELECT process, key FROM handles WHERE at_exit AND kind = 'handle'");
    assert_eq!(at_exit, owned(&AT_EXIT));
}

#[test]
fn objects_that_are_moved_and_sent_live_on() {
    let run = run_over(&windows_handles(), ".dump ObjectRef -Type Event -json\n").ok();
    let document = document(&run.stdout);
    assert_eq!(document["objects"].as_array().unwrap().len(), OBJECTS);
}

#[test]
fn lines_of_events_show_the_processes_of_the_events_and_totals_the_owners() {
    let trace = windows_handles();
    let text = run_over(&trace, ".dump ObjectRef -Leak\n").ok().stdout;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("0x80000008")).collect();
    assert!(lines.iter().all(|line| line.contains("800/804")), "{text}");
    assert!(lines.iter().any(|line| line.contains("client.exe")), "{text}");
    let closed = run_over(&trace, ".dump ObjectRef -Handle 0x80000004\n").ok().stdout;
    let has = |event: &str, id: &str| {
        closed.lines().any(|line| line.contains(event) && line.contains(id))
    };
    assert!(has("HandleCreate", "800/804") && has("HandleClose", "700/704"), "{closed}");
    let totals = run_over(&trace, ".dump ObjectRef -Leak -ShowTotal Process\n").ok().stdout;
    assert!(totals.lines().any(|line| line.contains("System") && line.contains('2')), "{totals}");
    assert!(!totals.lines().any(|line| line.contains("client.exe")), "{totals}");
}

#[test]
fn filters_of_processes_match_the_processes_of_the_events() {
    let count = |options: &str| {
        let run = run_over(&windows_handles(), &format!(".dump ObjectRef {options} -json\n")).ok();
        document(&run.stdout)["objects"].as_array().unwrap().len()
    };
    assert_eq!(count("-Leak -pn client"), 2, "the client opened them for System");
    assert_eq!(count("-Handle 0x80000004 -RelatedProcess server"), 1, "the server closed it");
}

#[test]
fn a_value_means_a_handle_with_and_without_its_tag_bits() {
    let run = run_over(&windows_handles(), ".dump ObjectRef -Handle 0x1A0 -json\n").ok();
    let answer = document(&run.stdout);
    let objects = answer["objects"].as_array().unwrap();
    let handles: Vec<&Value> =
        objects[0]["events"].as_array().unwrap().iter().map(|event| &event["handle"]).collect();
    assert_eq!((objects.len(), handles), (1, vec![&"0x1A0".into(), &"0x1A2".into()]));
}

#[test]
fn groups_and_suspects_are_of_the_owners() {
    let trace = windows_handles();
    let run = run_over(&trace, ".why -All -json\n").ok();
    let why = document(&run.stdout);
    let owners: BTreeSet<&str> = why["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|suspect| suspect["leaked"].as_u64() > Some(0))
        .map(|suspect| suspect["process"].as_str().unwrap())
        .collect();
    assert_eq!(owners, BTreeSet::from(["System(4)", "server.exe(700)"]));
}

#[test]
fn a_redacted_copy_keeps_tag_bits_kernel_handles_and_targets() {
    let home = tempfile::tempdir().unwrap();
    windows_handles().write(home.path().join("trace.etl")).unwrap();
    let redacted = handlescope(home.path()).args(["redact", "trace.etl"]).output().unwrap();
    assert!(redacted.status.success());
    let query = ".sql SELECT pid, key FROM leaks -csv\n";
    let [before, after] = ["trace.etl", "trace.redacted.etl"]
        .map(|file| run_script(handlescope(home.path()).arg(file), query).ok().stdout);
    assert!(before.lines().count() > LEAKED.len());
    assert_eq!(before, after);
}

#[test]
fn a_completed_copy_has_the_same_answers() {
    let home = tempfile::tempdir().unwrap();
    let mut trace = windows_handles();
    trace.merge_events(false);
    trace.write(home.path().join("trace.etl")).unwrap();
    // Answers contain the name of the file.
    std::fs::create_dir(home.path().join("whole")).unwrap();
    let mut out = File::create(home.path().join("whole/trace.etl")).unwrap();
    let trace = home.path().join("trace.etl");
    complete(&trace, &[], &mut |_| None, &mut out, &NoObserver, &Cancel::default()).unwrap();
    drop(out);
    let [before, after] = ["trace.etl", "whole/trace.etl"]
        .map(|file| run_script(handlescope(home.path()).arg(file), QUESTIONS).ok().stdout);
    assert_eq!(before, after.replace("whole/trace.etl", "trace.etl"));
}

#[test]
fn acquisitions_of_a_dataset_are_those_of_the_owners() {
    let shell = Shell::new();
    windows_handles().write(shell.path("trace.etl")).unwrap();
    let _ = shell.run(&["dataset", "add", "fleet", "trace.etl"]).ok();
    let query = "SELECT process, handle_hex FROM acquisitions WHERE is_leaked";
    let run = shell.run(&["fleet", "-c", &format!(".sql {query} -csv")]).ok();
    assert_eq!(csv_rows(&run.stdout), owned(&LEAKED), "{}", run.stdout);
}
