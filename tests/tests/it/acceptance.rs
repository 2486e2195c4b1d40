//! Compares recordings with the truth of `leaky-program`: a correct one, and wrong ones that it has to detect. The
//! program wrote this truth under Wine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;

use handlescope_tests::acceptance::{
    Check, CheckOutcome, Expectation, ReplayProgram, compare, observe, replay,
};
use handlescope_tests::binary::handlescope_path;
use handlescope_tests::file::FileOptions;
use handlescope_tests::needs_linker;
use leaky_program::truth::{AllocationKind, CallEffect, TruthLine, parse};
use tempfile::TempDir;

const TRUTH: &str = include_str!("../../fixtures/leaky-program.ndjson");

/// The program, linked once, and the folder with its symbols.
struct LinkedProgram {
    program: ReplayProgram,
    symbols: PathBuf,
    _folder: TempDir,
}

static LINKED: LazyLock<LinkedProgram> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let symbols = folder.path().join("symbols");
    let functions: BTreeSet<String> = truth().into_iter().map(|line| line.function).collect();
    let program = ReplayProgram::link(&functions, &symbols).unwrap();
    LinkedProgram { program, symbols, _folder: folder }
});

fn truth() -> Vec<TruthLine> {
    parse(TRUTH).unwrap()
}

/// Compares the truth with a recording of these calls.
fn checks(recorded: &[TruthLine], options: FileOptions) -> Vec<Check> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("leaky-program.etl");
    replay(recorded, &LINKED.program, options).write(&trace).unwrap();
    let observed = observe(&handlescope_path(), &trace, LINKED.symbols.to_str()).unwrap();
    compare(&Expectation::new(&truth()), &observed)
}

fn failed(recorded: &[TruthLine], options: FileOptions) -> String {
    checks(recorded, options)
        .into_iter()
        .filter(Check::has_failed)
        .map(|check| format!("{check}\n"))
        .collect()
}

/// Returns the index of the first call of a function that passes.
fn first(lines: &[TruthLine], function: &str, passes: impl Fn(&CallEffect) -> bool) -> usize {
    let index = lines.iter().position(|line| line.function == function && passes(&line.call));
    index.unwrap_or_else(|| panic!("no such call of {function}"))
}

fn is_opened(call: &CallEffect) -> bool {
    matches!(call, CallEffect::Opened { .. })
}

fn is_closed(call: &CallEffect) -> bool {
    matches!(call, CallEffect::Closed { .. })
}

#[needs_linker]
#[test]
fn a_recording_of_what_the_program_did_passes_every_check() {
    let checks = checks(&truth(), FileOptions::default());
    let text: String = checks.iter().map(|check| format!("{check}\n")).collect();
    insta::assert_snapshot!(text, @r"
    ok           lost events: 0
    ok           handles: 63 opened
    ok           types: of 63 handles
    ok           threads: of 63 handles
    ok           names: of 63 handles
    ok           stacks: of 63 handles
    ok           closes, leaks and closes at exit: of 63 handles
    ok           duplicates and inheritance: of 63 handles
    ok           no other handles: of these functions
    ok           leaked by type: Event 15, File 2, Key 1, Mutant 5, Semaphore 5, Thread 3, Token 1
    ok           mapped views: 3
    ok           heap blocks: 16
    ok           committed pages: 8
    not checked  GDI objects: not recorded
    not checked  USER objects: not recorded
    ok           suspects of .why: leaky-program.exe!leaky_program::leak_events, leaky-program.exe!leaky_program::get_or_create_event, leaky-program.exe!leaky_program::leak_threads
    ");
}

#[needs_linker]
#[test]
fn a_recording_that_is_wrong_in_one_way_fails_the_check_of_it() {
    type TruthChange = fn(&mut Vec<TruthLine>);
    let changes: [(&str, &str, TruthChange); 12] = [
        ("handles", "of leak_threads is not in the trace", |lines| {
            lines.remove(first(lines, "leak_threads", is_opened));
        }),
        ("types", "type 'Event' instead of 'Token'", |lines| {
            let index = first(lines, "query_tokens", is_opened);
            if let CallEffect::Opened { object_type, .. } = &mut lines[index].call {
                *object_type = "Event".to_owned();
            }
        }),
        ("threads", "of leak_events: thread '", |lines| {
            let index = first(lines, "leak_events", is_opened);
            lines[index].tid += 4;
        }),
        ("names", "name 'Other' instead of 'LeakyProgram_Event_0'", |lines| {
            let index = first(lines, "leak_events", is_opened);
            if let CallEffect::Opened { name, .. } = &mut lines[index].call {
                *name = Some("Other".to_owned());
            }
        }),
        ("stacks", "leak_events is not on its stack", |lines| {
            let index = first(lines, "leak_events", is_opened);
            lines[index].function = "close_events".to_owned();
        }),
        ("closes, leaks and closes at exit", "fate 'leaked' instead of 'closed'", |lines| {
            lines.remove(first(lines, "close_files_unless_it_fails", is_closed));
        }),
        ("closes, leaks and closes at exit", "fate 'closed' instead of 'leaked'", |lines| {
            let index = first(lines, "leak_events", is_opened);
            let CallEffect::Opened { handle, .. } = lines[index].call else { return };
            let closed = TruthLine { call: CallEffect::Closed { handle }, ..lines[index].clone() };
            lines.insert(index + 1, TruthLine { at_us: closed.at_us + 5, ..closed });
        }),
        ("duplicates and inheritance", "no duplicate", |lines| {
            let is_duplicated = |call: &CallEffect| matches!(call, CallEffect::Duplicated { .. });
            let index = first(lines, "duplicate_into", is_duplicated);
            let line = lines[index].clone();
            let CallEffect::Duplicated { into, handle, object_type, name } = line.call else {
                return;
            };
            let call = CallEffect::Opened { handle, object_type, name };
            lines[index] = TruthLine { pid: into, call, ..line };
        }),
        ("no other handles", "of leak_events", |lines| {
            let index = first(lines, "leak_events", is_opened);
            let mut line = lines[index].clone();
            if let CallEffect::Opened { handle, .. } = &mut line.call {
                *handle = 0x4000;
            }
            lines.push(line);
        }),
        ("mapped views", "fate 'leaked' instead of 'closed'", |lines| {
            lines.retain(|line| !matches!(line.call, CallEffect::Unmapped { .. }));
        }),
        ("heap blocks", "size '7' instead of '4242'", |lines| {
            let index = first(lines, "leak_blocks", |_| true);
            if let CallEffect::Allocated { size, .. } = &mut lines[index].call {
                *size = 7;
            }
        }),
        ("committed pages", "of commit_pages is not in the trace", |lines| {
            let is_pages = |call: &CallEffect| {
                matches!(call, CallEffect::Allocated { kind: AllocationKind::Commit, .. })
            };
            lines.remove(first(lines, "commit_pages", is_pages));
        }),
    ];
    for (name, difference, change) in changes {
        let mut lines = truth();
        change(&mut lines);
        let failed = failed(&lines, FileOptions::default());
        let line = failed.lines().find(|line| line.contains(&format!("FAILED       {name}: ")));
        assert!(
            line.is_some_and(|line| line.contains(difference)),
            "{name}, {difference}:\n{failed}"
        );
    }
}

#[needs_linker]
#[test]
fn a_recording_that_lost_events_fails() {
    let failed = failed(&truth(), FileOptions { events_lost: 3, ..FileOptions::default() });
    assert!(failed.contains("lost events: events_lost 3"), "{failed}");
}

#[needs_linker]
#[test]
fn a_child_that_is_not_seen_to_exit_and_suspects_that_leak_nothing_are_named() {
    let mut lines = truth();
    lines.retain(|line| line.call != CallEffect::Exits);
    let wrong = failed(&lines, FileOptions::default());
    assert!(wrong.contains("fate 'leaked' instead of 'closed at exit'"), "{wrong}");
    let mut lines = truth();
    for line in &mut lines {
        match line.function.as_str() {
            "leak_events" => line.function = "close_events".to_owned(),
            "close_events" => line.function = "leak_events".to_owned(),
            _ => {}
        }
    }
    let wrong = failed(&lines, FileOptions::default());
    assert!(wrong.contains("close_events, which leaks nothing, is among the first"), "{wrong}");
}

#[needs_linker]
#[test]
fn a_trace_without_names_of_the_program_is_not_judged_by_its_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("leaky-program.etl");
    replay(&truth(), &LINKED.program, FileOptions::default()).write(&trace).unwrap();
    let observed = observe(&handlescope_path(), &trace, None).unwrap();
    let checks = compare(&Expectation::new(&truth()), &observed);
    let not_checked = |name: &str| {
        let check = checks.iter().find(|check| check.name == name).unwrap();
        matches!(check.outcome, CheckOutcome::NotChecked(_))
    };
    assert!(not_checked("stacks") && not_checked("suspects of .why"), "{checks:?}");
    assert!(!checks.iter().any(Check::has_failed), "{checks:?}");
}
