//! `handlescope live` on a replayed trace: the table, once and on a terminal, what is saved from it, and when it ends.

use std::collections::BTreeMap;

use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::folders::copy_folder;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;

/// Replays the sample.
fn replay(shell: &Shell, options: &[&str]) -> ProgramRun {
    let symbols = sample_symbols();
    let symbols = symbols.to_str().expect("the path is text");
    let first = ["live", "--symbol-path", symbols, "--replay", "leaky.etl"];
    shell.run(&[&first[..], options].concat())
}

/// Returns the rows of the table: open, opened, growth, process, type, and what opened them.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    stdout.lines().skip(2).map(|line| line.split_whitespace().collect()).collect()
}

/// Sums up what is open, by process.
fn open(stdout: &str) -> BTreeMap<&str, u64> {
    let mut open = BTreeMap::new();
    for row in rows(stdout) {
        *open.entry(row[3]).or_default() += row[0].parse::<u64>().expect("a number");
    }
    open
}

#[test]
fn a_pipe_gets_the_open_handles_at_the_end_by_process_type_and_stack() {
    let run = replay(&Shell::new(), &[]).ok();
    let mut lines = run.stdout.lines();
    let first = lines.next().expect("a first line");
    assert!(first.starts_with("leaky.etl  ") && first.ends_with("  0 lost  ended"), "{first}");
    let titles: Vec<_> = lines.next().expect("titles").split_whitespace().collect();
    assert_eq!(titles.join(" "), "Open Opened Growth Process Type Opened by");
    assert_eq!(
        rows(&run.stdout),
        [
            [
                "8",
                "56",
                "balanced",
                "leaky.exe(7316)",
                "Event",
                "leaky.exe!leaky::EventCache::GetOrCreate"
            ],
            [
                "6",
                "6",
                "short",
                "leaky.exe(7316)",
                "Thread",
                "leaky.exe!leaky::ThreadPool::StartWorker"
            ],
            ["5", "24", "short", "leaky.exe(7316)", "Event", "leaky.exe!leaky::Session::Connect"],
        ]
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn symbols_beside_the_trace_need_no_symbol_path() {
    let shell = Shell::new();
    copy_folder(&sample_symbols(), &shell.path("leaky.etl.NGENPDB"));
    let run = shell.run(&["live", "--replay", "leaky.etl"]).ok();
    let expected = replay(&Shell::new(), &[]).ok();
    assert_eq!(rows(&run.stdout), rows(&expected.stdout));
    let without = Shell::new().run(&["live", "--replay", "leaky.etl"]).ok();
    assert!(without.stdout.contains("leaky.exe+0x"), "{without:?}");
}

#[test]
fn it_ends_at_the_event_with_which_a_process_has_too_many_handles() {
    let shell = Shell::new();
    for above in [1, 5, 10, 18] {
        let condition = format!("pn leaky.exe handles > {above}");
        let run = replay(&shell, &["--stop-when", &condition]).ok();
        assert_eq!(open(&run.stdout)["leaky.exe(7316)"], above + 1, "{}", run.stdout);
        let handles = above + 1;
        let said = format!("ended: leaky.exe(7316) has {handles} handles open, more than {above}");
        assert_eq!(run.stderr.lines().last(), Some(said.as_str()));
    }
    for never in ["pn leaky.exe handles > 999", "pn other.exe handles > 1"] {
        let run = replay(&shell, &["--stop-when", never]).ok();
        assert_eq!(
            (open(&run.stdout)["leaky.exe(7316)"], run.stderr.as_str()),
            (19, ""),
            "{never}"
        );
    }
}

/// Writes a ten-minute trace in which handles are opened at the beginning. Three are opened by a program with process,
/// type and module named only by records at the end. Two are opened by a process that nothing names, and one by an
/// unknown process.
fn write_named_at_the_end(shell: &Shell) {
    const MS: i64 = 1_000_000;
    let mut trace = TraceBuilder::new();
    trace.process(700, "server.exe");
    trace.object_type(16, "Event");
    trace.module(700, r"\Device\HarddiskVolume3\server.exe", 0x7ff0_0000, 0x10_0000);
    for (number, pid) in (1..).zip([0, 700, 999, 700, 700, 999]) {
        let (object, handle) = (0xffff_8100_0000_0000 + u64::from(number) * 0x100, number * 4);
        trace.create_handle(i64::from(number) * MS, (pid, 1), object, handle, 16);
        trace.stack(&[], &[0x7ff0_1000]);
    }
    trace.end(600_000 * MS).write(shell.path("server.etl")).unwrap();
}

#[test]
fn names_from_records_at_the_end_apply_to_earlier_events_and_the_others_are_shown_or_counted() {
    let shell = Shell::new();
    write_named_at_the_end(&shell);
    let arguments = ["live", "--replay", "server.etl"];
    let whole = shell.run(&arguments).ok();
    let stop = &["--stop-when", "pn server.exe handles > 2"];
    let stopped = shell.run(&[&arguments[..], stop].concat()).ok();
    for (run, nameless) in [(whole, 2), (stopped, 1)] {
        // The stack of the handle at which it stopped would have come next.
        assert_eq!(rows(&run.stdout)[0][3..], ["server.exe(700)", "Event", "server.exe+0x1000"]);
        let counted = BTreeMap::from([("server.exe(700)", 3), ("unknown(999)", nameless)]);
        assert_eq!(open(&run.stdout), counted);
        let said = "  1 of unknown processes not shown  ended\n";
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
}

#[needs_data]
#[test]
fn a_trace_without_handles_says_so() {
    let trace = SharedTrace::open("real/slow-ppt-2011");
    let etl = trace.etl().to_str().expect("the path is text");
    let run = Shell::new().run(&["live", "--replay", etl]).ok();
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.stdout);
    assert!(run.stderr.contains("no handle events"), "{}", run.stderr);
}

#[test]
fn a_file_that_cannot_be_replayed_is_an_error_and_wrong_values_are_wrong_usage() {
    let shell = Shell::new();
    let run = shell.run(&["live", "--replay", "none.etl"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("error: none.etl: cannot open: "), "{}", run.stderr);
    std::fs::write(shell.path("text.etl"), "no trace").unwrap();
    let run = shell.run(&["live", "--replay", "text.etl"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("not a trace"), "{}", run.stderr);
    for options in [
        &["--replay", "leaky.etl", "--speed", "0"][..],
        &["--replay", "leaky.etl", "--speed", "fast"],
        &["--replay", "leaky.etl", "--window", "0"],
        &["--replay", "leaky.etl", "--dry-run"],
        &["--speed", "2"],
        &["--replay", "leaky.etl", "--stop-when", "handles > 5"],
    ] {
        let run = shell.run(&[&["live"][..], options].concat());
        assert_eq!(run.status, Some(2), "{options:?}: {}", run.stderr);
    }
    for (minutes, reason) in [
        ("0", "must be at least 1"),
        ("ten", "'ten' is not a whole number"),
        ("1.5", "'1.5' is not a whole number"),
        ("5000000000", "'5000000000' is too large"),
    ] {
        let run = shell.run(&["live", "--replay", "leaky.etl", "--window", minutes]);
        assert_eq!(run.status, Some(2), "{minutes}: {}", run.stderr);
        assert!(run.stderr.contains(reason), "{minutes}: {}", run.stderr);
    }
}

#[cfg(unix)]
mod on_a_terminal {
    use handlescope_tests::terminal::{Terminal, TerminalKey};

    use super::*;

    fn watched(shell: &Shell, options: &[&str]) -> Terminal {
        let symbols = sample_symbols();
        let symbols = symbols.to_str().expect("the path is text");
        let first = ["live", "--symbol-path", symbols, "--replay", "leaky.etl"];
        Terminal::spawn(140, 24, &[&first[..], options].concat(), &shell.path(""))
    }

    fn has_row(terminal: &Terminal, words: &str) {
        terminal.wait_until(words, |view| {
            view.lines()
                .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").contains(words))
        });
    }

    /// Returns the answer about a file, without its name.
    fn answer(shell: &Shell, file: &str, question: &str) -> String {
        let run = shell.run(&[file, "-c", question]).ok();
        run.stdout.replace("leaky.live.json7z", "leaky.etl").replace("leaky.live", "leaky")
    }

    #[test]
    fn the_table_fills_and_what_is_saved_answers_as_the_extract_of_the_trace_does() {
        let shell = Shell::new();
        let mut terminal = watched(&shell, &["--speed", "4"]);
        terminal.wait_for("leaky.etl  ");
        terminal.wait_for("ended");
        has_row(&terminal, "8 56 balanced leaky.exe(7316) Event leaky.exe!leaky::EventCache");
        has_row(&terminal, "6 6 short leaky.exe(7316) Thread leaky.exe!leaky::ThreadPool");
        has_row(&terminal, "5 24 short leaky.exe(7316) Event leaky.exe!leaky::Session::Connect");
        terminal.send("s");
        terminal.wait_for("saved leaky.live.json7z");
        terminal.send("s");
        terminal.wait_for("saved leaky.live-2.json7z");
        terminal.send("q");
        assert_eq!(terminal.wait_for_exit(), Some(0));
        for question in [
            ".dump ObjectRef -ShowStack",
            ".dump ObjectRef -Leak -LeakAtExit -ShowStack -json",
            ".dump Process",
            ".dump Module",
            ".why",
        ] {
            let expected = answer(&shell, "leaky.etl", question);
            assert!(!expected.is_empty());
            assert_eq!(answer(&shell, "leaky.live.json7z", question), expected, "{question}");
        }
    }

    #[test]
    fn names_are_there_long_before_the_records_that_say_them() {
        let shell = Shell::new();
        write_named_at_the_end(&shell);
        let arguments = ["live", "--replay", "server.etl"];
        let mut terminal = Terminal::spawn(140, 24, &arguments, &shell.path(""));
        has_row(&terminal, "3 3 short server.exe(700) Event server.exe+0x1000");
        terminal.wait_for("1 of unknown processes not shown  running");
        terminal.send("q");
        assert_eq!(terminal.wait_for_exit(), Some(0));
    }

    #[test]
    fn keys_sort_and_show_why() {
        let shell = Shell::new();
        let mut terminal = watched(&shell, &["--speed", "50"]);
        terminal.wait_for("ended");
        has_row(&terminal, "8 56 balanced");
        terminal.send("t");
        // The threads come after all events.
        terminal.wait_until("sorted by type", |view| {
            let text: Vec<String> = view.lines().map(|line| line.to_string()).collect();
            let row = |words: &str| text.iter().position(|line| line.contains(words));
            row("ThreadPool::StartWorker") > row("Session::Connect")
                && row("Session::Connect").is_some()
        });
        terminal.send("w");
        terminal.wait_for("Race: two threads");
        assert!(terminal.view(|view| view.lines().any(|line| *line == *"leaky.etl")));
        terminal.wait_for("q back");
        terminal.press(TerminalKey::Escape);
        // Sent together with Ctrl-C, Escape would become another key.
        terminal.wait_until("the table", |view| !view.lines().any(|line| line.contains("q back")));
        terminal.press(TerminalKey::Ctrl('c'));
        assert_eq!(terminal.wait_for_exit(), Some(0));
    }

    #[test]
    fn a_small_screen_counts_what_is_below_scrolls_and_marks_what_is_sorted_or_cut() {
        let shell = Shell::new();
        let arguments = ["live", "--replay", "leaky.etl", "--speed", "50"];
        let mut terminal = Terminal::spawn(60, 6, &arguments, &shell.path(""));
        terminal.wait_for("ended");
        has_row(&terminal, "8 56 balanced leaky.exe(7316) Event");
        terminal.view(|view| assert!(view.lines().any(|line| line.contains('…')), "{view}"));
        terminal.wait_for("Open ▼");
        terminal.wait_for("+ 2 more");
        terminal.wait_for("g growth  p process  t…");
        terminal.press(TerminalKey::Down);
        terminal.wait_until("the last two rows", |view| {
            let lines: Vec<String> = view.lines().collect();
            lines[2].contains(" 6 short") && lines[3].contains(" 24 short")
        });
        terminal.press(TerminalKey::Up);
        terminal.wait_for("+ 2 more");
        terminal.send("t");
        terminal.wait_for("Type ▲");
        terminal.send("q");
        assert_eq!(terminal.wait_for_exit(), Some(0));
    }

    #[test]
    fn it_can_be_left_while_it_runs() {
        let shell = Shell::new();
        let mut terminal = watched(&shell, &["--speed", "0.01"]);
        terminal.wait_for("running");
        terminal.send("q");
        assert_eq!(terminal.wait_for_exit(), Some(0));
    }
}
