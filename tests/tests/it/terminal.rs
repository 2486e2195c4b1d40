//! The program in a terminal, as a user sees it.

use std::fs;
use std::process::Command;

use handlescope_tests::bench::{LargeTrace, write_large_trace};
use handlescope_tests::binary::{Shell, handlescope, sample_symbols};
use handlescope_tests::terminal::{ScreenView, Terminal, TerminalKey};
use vt100::Color;

const PROMPT: &str = "leaky.etl> ";

const TABLES: [&str; 4] = [
    ".list",
    ".dump Process",
    ".dump ObjectRef -ShowTotal Process",
    ".dump ObjectRef -Leak -ShowStack -pn leaky",
];

/// The colour of words without a meaning.
const RED: Color = Color::Idx(131);

/// Starts the program on the sample, and waits for its first prompt.
fn open_sample(shell: &Shell, columns: u16) -> Terminal {
    open_with(shell, columns, &[])
}

fn open_with(shell: &Shell, columns: u16, options: &[&str]) -> Terminal {
    let symbols = sample_symbols();
    let symbols = symbols.to_str().expect("the path is text");
    let arguments = [&["--symbol-path", symbols, "leaky.etl"], options].concat();
    let terminal = Terminal::spawn(columns, 24, &arguments, &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal
}

/// Returns the output of a command without a terminal.
fn piped(shell: &Shell, command: &str) -> Vec<String> {
    let symbols = sample_symbols();
    let symbols = symbols.to_str().expect("the path is text");
    let ended = shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", command]).ok();
    ended.stdout.lines().map(str::to_owned).collect()
}

/// Returns the words of a line, without the separators of columns and rows, which a terminal draws, and without the
/// date, which a terminal shows only once.
fn words(line: &str) -> Vec<&str> {
    let is_drawn = |word: &str| {
        matches!(word, ":" | "2026-02-10") || word.chars().all(|char| "─=".contains(char))
    };
    line.split_whitespace().filter(|word| !is_drawn(word)).collect()
}

/// Returns the lines between the command and the next prompt.
fn shown<'a>(transcript: &'a [String], command: &str) -> &'a [String] {
    let line = format!("{PROMPT}{command}");
    let at = transcript.iter().position(|shown| *shown == line);
    let at = at.unwrap_or_else(|| panic!("no {line} in {transcript:#?}"));
    let rest = &transcript[at + 1..];
    let end = rest.iter().position(|line| line.starts_with(PROMPT.trim_end()));
    &rest[..end.unwrap_or(rest.len())]
}

fn assert_no_garbage(terminal: &Terminal) {
    assert_eq!(terminal.not_understood(), Vec::<String>::new());
    for line in terminal.transcript() {
        let is_odd = |char: char| char.is_control() || char == char::REPLACEMENT_CHARACTER;
        assert!(!line.contains(is_odd) && !line.contains("[0m"), "{line:?}");
    }
}

fn assert_ends(mut terminal: Terminal) {
    assert_eq!(terminal.wait_for_exit(), Some(0));
}

#[test]
fn a_wide_terminal_shows_what_a_pipe_gets() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 200);
    for command in TABLES {
        terminal.run(PROMPT, command);
    }
    assert_no_garbage(&terminal);
    let transcript = terminal.transcript();
    for command in TABLES {
        let shown = shown(&transcript, command);
        for line in
            piped(&shell, command).iter().filter(|line| line.len() < 180 && !words(line).is_empty())
        {
            // The start of the recording may come before the name of the trace.
            let is_it = |shown: &String| words(shown) == words(line) || shown.ends_with(line);
            assert!(shown.iter().any(is_it), "{command}: no {line:?} in {shown:#?}");
        }
    }
    assert_drawn(&transcript);
}

/// Asserts that tables have a fitting line below their head.
fn assert_drawn(transcript: &[String]) {
    for command in &TABLES[..3] {
        let lines = shown(transcript, command);
        let below = lines.iter().position(|line| line.starts_with('─'));
        let below = below.unwrap_or_else(|| panic!("{command}: no line in {lines:#?}"));
        let widths = [below, below - 1, below + 1].map(|line| lines[line].chars().count());
        assert!(widths[0] > widths[1] && widths[0] > widths[2], "{command}: {lines:#?}");
    }
}

#[test]
fn a_narrow_terminal_shows_every_row_of_a_table_and_breaks_no_value() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 80);
    for command in TABLES {
        terminal.run(PROMPT, command);
    }
    assert_no_garbage(&terminal);
    let transcript = terminal.transcript();
    for command in &TABLES[..3] {
        let (shown, piped) = (shown(&transcript, command), piped(&shell, command));
        for line in piped.iter().filter(|line| !words(line).is_empty()) {
            // Paths may be broken; numbers, names and times may not. Columns without room are named.
            let words_of_all = |word: &&str| word.len() <= 20 && *command != ".dump Process";
            for word in words(line).into_iter().filter(words_of_all) {
                let bare = |word: &str| word.trim_end_matches(',').to_owned();
                let is_it = |shown: &String| words(shown).iter().any(|own| bare(own) == bare(word));
                assert!(shown.iter().any(is_it), "{command}: no {word:?} in {shown:#?}");
            }
        }
        assert!(!shown.iter().any(|line| line.starts_with("row ")), "{shown:#?}");
    }
    let leaks = shown(&transcript, TABLES[3]);
    let objects = |lines: &[String]| lines.iter().filter(|line| line.starts_with("Id: ")).count();
    assert_eq!(objects(leaks), objects(&piped(&shell, TABLES[3])), "{leaks:#?}");
    assert!(leaks.iter().any(|line| line == "    leaky.exe!leaky::ThreadPool::StartWorker"));
}

#[test]
fn tab_completes_a_command_an_option_and_a_path() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("second trace.etl")).expect("a copy");
    let terminal = open_sample(&shell, 80);
    terminal.send(".du");
    terminal.wait_for_line("leaky.etl> .du");
    terminal.press(TerminalKey::Tab);
    terminal.wait_for_line("leaky.etl> .dump ");
    terminal.send("ObjectRef -Over");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -Over");
    terminal.press(TerminalKey::Tab);
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -Overlapped ");
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    terminal.send(".load sec");
    terminal.wait_for_line("leaky.etl> .load sec");
    terminal.press(TerminalKey::Tab);
    terminal.wait_for_line("leaky.etl> .load \"second trace.etl\" ");
    terminal.enter("second trace.etl> ");
}

#[test]
fn the_history_is_there_in_this_session_and_in_the_next() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 80);
    terminal.run(PROMPT, ".dump Process");
    terminal.run(PROMPT, ".list");
    assert_history_has_both(&terminal);
    terminal.send(".quit\r");
    assert_ends(terminal);

    let terminal = open_sample(&shell, 80);
    for line in [".quit", ".dump Process", ".list"] {
        terminal.press(TerminalKey::Up);
        terminal.wait_for_line(&format!("{PROMPT}{line}"));
    }
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    assert_found(&terminal);
}

fn assert_history_has_both(terminal: &Terminal) {
    terminal.press(TerminalKey::Up);
    terminal.wait_for_line("leaky.etl> .list");
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    assert_found(terminal);
}

/// Asserts that the older line can be searched for and taken.
fn assert_found(terminal: &Terminal) {
    terminal.press(TerminalKey::Ctrl('r'));
    terminal.wait_for("match for ''");
    terminal.send("Proc");
    terminal.wait_until("the line that was searched for", |view| {
        view.lines().any(|line| line.contains("(match for 'Proc') .dump Process"))
    });
    terminal.press(TerminalKey::Enter);
    terminal.wait_for_line("leaky.etl> .dump Process");
    terminal.enter(PROMPT);
}

#[test]
fn an_unknown_option_is_red_before_enter_and_a_known_one_is_not() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 80);
    terminal.send(".dump ObjectRef -Leak -Laek");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -Leak -Laek");
    terminal.wait_until("a red -Laek", |view| view.color("-Laek") == Some(RED));
    let known = terminal.view(|view| view.color("-Leak"));
    assert!(known.is_some_and(|color| color != RED && color != Color::Default), "{known:?}");
}

#[test]
fn ctrl_c_clears_the_line_and_ctrl_d_leaves() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 80);
    terminal.send(".nonsense");
    terminal.wait_for_line("leaky.etl> .nonsense");
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    terminal.run(PROMPT, ".list");
    assert!(!terminal.transcript().iter().any(|line| line.contains("unknown command")));
    terminal.press(TerminalKey::Ctrl('d'));
    assert_ends(terminal);
}

#[test]
fn an_error_keeps_the_session() {
    let shell = Shell::new();
    let terminal = open_sample(&shell, 80);
    terminal.run(PROMPT, ".dump ObjectRef -Laek");
    terminal.wait_for("unknown option -Laek");
    terminal.run(PROMPT, ".list");
    terminal.send(".quit\r");
    assert_ends(terminal);
}

#[test]
fn a_session_with_both_outputs_in_files_has_its_prompt_on_the_terminal() {
    let shell = Shell::new();
    let mut terminal = redirected(&shell, "> o.txt 2> e.txt");
    terminal.run(PROMPT, ".list");
    terminal.press(TerminalKey::Ctrl('d'));
    assert_eq!(terminal.wait_for_exit(), Some(0));
    let text = |name: &str| fs::read_to_string(shell.path(name)).unwrap();
    assert!(
        text("o.txt").contains(" leaky.etl ") && !text("o.txt").contains('>'),
        "{}",
        text("o.txt")
    );
    assert!(text("e.txt").contains("loaded leaky.etl"), "{}", text("e.txt"));
}

/// Starts the program on the sample, with the shell redirecting its outputs.
fn redirected(shell: &Shell, redirections: &str) -> Terminal {
    let program = shell.command(&["leaky.etl"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" \"$@\" {redirections}")]);
    command.arg(program.get_program()).args(program.get_args());
    command.current_dir(shell.path(""));
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Terminal::start(command, 80, 24)
}

#[test]
fn a_session_with_one_output_in_a_file_has_its_prompt_on_the_terminal_and_only_text_in_the_file() {
    for arrow in [">", "2>"] {
        let shell = Shell::new();
        let mut terminal = redirected(&shell, &format!("{arrow} o.txt"));
        terminal.run(PROMPT, ".list");
        terminal.send(".sql SELECT\r");
        terminal.wait_for_line("  ");
        terminal.send("1 AS one\r");
        terminal.run(PROMPT, ".nothing");
        terminal.press(TerminalKey::Ctrl('d'));
        assert_eq!(terminal.wait_for_exit(), Some(0));
        let (text, screen) =
            (fs::read_to_string(shell.path("o.txt")).unwrap(), terminal.transcript());
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let [results, messages] = match arrow {
            ">" => [text, screen.join("\n")],
            _ => [screen.join("\n"), text],
        };
        assert!(results.contains(" leaky.etl") && results.contains("one\n"), "{results}");
        assert!(messages.contains("error: unknown command .nothing"), "{messages}");
    }
}

#[test]
fn without_colors_there_are_none() {
    let shell = Shell::new();
    let commands = [".dump ObjectRef -Laek", ".dump ObjectRef -Leak -ShowStack", ".list"];
    let use_it = |terminal: &Terminal| {
        terminal.wait_for_line(PROMPT);
        for command in commands {
            terminal.run(PROMPT, command);
        }
        terminal.send(".");
        terminal.press(TerminalKey::Tab);
        terminal.wait_for(".unload");
    };

    let terminal = open_sample(&shell, 80);
    use_it(&terminal);
    assert_ne!(terminal.colored(), Vec::<String>::new(), "usually there are colours");

    let terminal = open_with(&shell, 80, &["--color", "never"]);
    use_it(&terminal);
    assert_eq!(terminal.colored(), Vec::<String>::new());

    let mut command = handlescope(&shell.path(""));
    command.arg("leaky.etl").env("NO_COLOR", "1");
    let terminal = Terminal::start(command, 80, 24);
    use_it(&terminal);
    assert_eq!(terminal.colored(), Vec::<String>::new());
}

#[test]
fn a_hint_is_there_only_in_a_color_in_which_it_is_not_taken_for_typed_text() {
    let shell = Shell::new();
    let hinted = format!("{PROMPT}.dump KIND [OPTION…]");
    let terminal = open_sample(&shell, 80);
    terminal.send(".dump ");
    terminal.wait_for(&hinted);
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = handlescope(&shell.path(""));
        command.arg("leaky.etl").env(name, value);
        let terminal = Terminal::start(command, 80, 24);
        terminal.wait_for_line(PROMPT);
        terminal.send(".dump ");
        terminal.wait_for_line(&format!("{PROMPT}.dump "));
        assert!(!terminal.transcript().contains(&hinted), "{name}");
        assert_eq!(terminal.colored(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn ctrl_c_cancels_a_query_and_keeps_the_session() {
    const PROMPT: &str = "large.etl> ";
    let shell = Shell::new();
    let trace =
        LargeTrace { handle_events: 300_000, distinct_stacks: 100, ..LargeTrace::default() };
    write_large_trace(&shell.path("large.etl"), &trace).expect("the trace can be written");
    let _ = shell.run(&["extract", "large.etl"]).ok();

    let terminal = Terminal::spawn(80, 24, &["large.etl"], &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal.send(".dump ObjectRef");
    terminal.wait_for_line("large.etl> .dump ObjectRef");
    // The output is far more than a terminal holds.
    let is_in_the_middle = |view: &ScreenView<'_>| {
        view.lines().all(|line| !line.contains(PROMPT.trim_end()))
            && view.lines().any(|line| line.starts_with("Id: "))
    };
    let busy = "objects on all of the screen";
    terminal.press_while_busy(TerminalKey::Enter, busy, is_in_the_middle, TerminalKey::Ctrl('c'));
    terminal.wait_for("cancelled");
    terminal.run(PROMPT, ".list");
    terminal.send(".quit\r");
    assert_ends(terminal);
}
