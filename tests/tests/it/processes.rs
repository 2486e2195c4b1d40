//! `.dump Process`: which processes it lists, in which order, and with which time format.

use handlescope_tests::allocations;
use handlescope_tests::binary::run_over;
use handlescope_tests::scenario::TraceBuilder;

const MS: i64 = 1_000_000;

/// Builds a service that starts a worker, which starts two processes of its own, and a later program with the worker's
/// pid.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(600, "service.exe").parent(500);
    trace.process(900, "worker.exe").parent(600).started(10 * MS).ended(40 * MS);
    trace.process(800, "first.exe").parent(900).started(20 * MS).command_line("first.exe --one");
    trace.process(700, "second.exe").parent(900).started(30 * MS).ended(35 * MS);
    trace.process(900, "again.exe").parent(600).started(50 * MS);
    trace.process(950, "third.exe").parent(900).started(60 * MS);
    trace
}

/// Returns the names that a command lists, in order.
fn names(options: &str) -> Vec<String> {
    let text = run_over(&trace(), &format!(".dump Process {options} -csv\n")).ok().stdout;
    let column = |line: &str| line.split(',').nth(3).unwrap_or_default().to_owned();
    text.lines().skip(1).map(column).collect()
}

#[test]
fn processes_are_chosen_by_command_line_parent_start_and_end() {
    assert_eq!(names("-CmdLine *--one*"), ["first.exe"]);
    assert_eq!(names("-Parent worker"), ["second.exe", "first.exe"]);
    assert_eq!(names("-Parent again"), ["third.exe"]);
    assert_eq!(names("-Parent 900"), ["second.exe", "first.exe", "third.exe"]);
    // Only the pid is known of a parent outside the trace.
    assert_eq!(names("-Parent 500"), ["service.exe"]);
    assert_eq!(
        names("-NewProcess 1 -pn !third"),
        ["second.exe", "first.exe", "worker.exe", "again.exe"]
    );
    assert_eq!(names("-NewProcess 2"), ["first.exe", "again.exe", "third.exe"]);
    assert_eq!(names("-NewProcess -1"), ["second.exe", "worker.exe"]);
    assert_eq!(names("-NewProcess 0"), ["System", "service.exe"]);
}

#[test]
fn processes_are_ordered_by_time_as_a_tree_or_by_a_column() {
    let by_start = ["worker.exe", "first.exe", "second.exe", "again.exe", "third.exe"];
    assert_eq!(names("-NewProcess 1 -SortBy Time"), by_start);
    assert_eq!(names("-NewProcess -1 -SortBy stoptime"), ["second.exe", "worker.exe"]);
    assert_eq!(names("-NewProcess 2 -SortBy Default"), ["first.exe", "again.exe", "third.exe"]);
    assert_eq!(names("-NewProcess 2 -SortBy name"), ["again.exe", "first.exe", "third.exe"]);
    let text =
        run_over(&trace(), ".dump Process -SortBy Tree -TimeFmt s -TimeDigits 3\n").ok().stdout;
    insta::assert_snapshot!(text);
    let wrong = run_over(&trace(), ".dump Process -SortBy Tre\n");
    assert_eq!(wrong.status, Some(1), "{}", wrong.stderr);
    for part in ["did you mean Tree?", "; other orders are Default, Time, StopTime, Tree\n"] {
        assert!(wrong.stderr.contains(part), "{part}: {}", wrong.stderr);
    }
}

#[test]
fn times_are_printed_as_the_option_says_or_else_the_session() {
    let run = |line: &str| run_over(&trace(), &format!("{line}\n")).ok().stdout;
    let local = run(".dump Process -pn worker");
    assert!(local.contains(":30.010000  2025-07-21 13:13:30.040000"), "{local}");
    let seconds = run(".timefmt s 3\n.dump Process -pn worker");
    assert!(seconds.contains("Start [s]  End [s]"), "{seconds}");
    assert!(seconds.contains(" 0.010 ") && seconds.contains(" 0.040 "), "{seconds}");
    let option = run(".timefmt s 3\n.dump Process -pn worker -TimeFmt UTCTime");
    assert!(option.contains(":13:30.010  "), "{option}");
    // Files have numbers, whatever the format.
    let csv = run(".timefmt UTC\n.dump Process -pn worker -csv");
    assert!(csv.contains(",10000000,40000000,"), "{csv}");
    let json = run(".dump Process -pn worker -TimeFmt UTC -json");
    assert!(json.contains(r#""start_ns":10000000,"end_ns":40000000"#), "{json}");
}

#[test]
fn filters_on_processes_mean_the_same_of_handles_allocations_and_stacks() {
    let answer = |trace: &TraceBuilder, command: &str| {
        let run = run_over(trace, &format!("{command} -csv\n"));
        assert_eq!(run.status, Some(0), "{command}: {}", run.stderr);
        run.stdout
    };
    // One program with its own pid, command line and start; each option selects only that one.
    let mut trace = allocations::trace();
    let allocating = ["-pn tool", "-CmdLine *--once*", "-NewProcess 1", "-NewProcess 1 -pn 800"];
    trace.process(810, "other.exe");
    for (pid, value) in [(800, 0x10), (810, 0x20)] {
        let object = 0xFFFF_8000_0000_1000 + u64::from(pid) * 0x100;
        trace.create_handle(6 * MS, (pid, pid + 1), object, value, 1).stack(&[], &[0x2000_0010]);
    }
    let commands = [
        ".why",
        ".dump Resource",
        ".dump Resource -GroupBy end",
        ".dump Stack",
        ".diff -From 0s -To 50ms",
    ];
    for command in commands {
        let all = answer(&trace, command);
        let chosen = allocating.map(|option| answer(&trace, &format!("{command} {option}")));
        assert!(chosen[0].lines().count() > 1 && chosen[0] != all, "{command}: {}", chosen[0]);
        for (option, chosen_by) in allocating.iter().zip(&chosen) {
            assert_eq!(chosen_by, &chosen[0], "{command} {option}");
        }
    }
    let nothing = run_over(&trace, ".dump Resource -pn tool -CmdLine once\n");
    let said = "none of 4 allocations passes -CmdLine once, did you mean -CmdLine *once*?";
    assert!(nothing.stderr.contains(said), "{}", nothing.stderr);
}
