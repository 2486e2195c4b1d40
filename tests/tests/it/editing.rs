//! The line editor in a terminal: completion with values of the loaded trace, hints, and history.

use handlescope_tests::binary::Shell;
use handlescope_tests::terminal::{Terminal, TerminalKey};
use vt100::Color;

const PROMPT: &str = "leaky.etl> ";

fn open(shell: &Shell) -> Terminal {
    let terminal = Terminal::spawn(80, 40, &["leaky.etl"], &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal
}

/// Types a text after the prompt and waits until it appears.
fn type_in(terminal: &Terminal, text: &str) {
    terminal.wait_for_line(PROMPT);
    terminal.send(text);
    terminal.wait_for_line(&format!("{PROMPT}{text}"));
}

/// Checks what Tab completes `typed` to.
fn completed(terminal: &Terminal, typed: &str, expected: &str) {
    type_in(terminal, typed);
    terminal.press(TerminalKey::Tab);
    terminal.wait_for_line(&format!("{PROMPT}{expected}"));
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
}

#[test]
fn tab_completes_values_of_the_trace() {
    let shell = Shell::new();
    let terminal = open(&shell);
    for (typed, expected) in [
        (".dump ObjectRef -pn expl", ".dump ObjectRef -pn explorer.exe "),
        (".dump ObjectRef -pn leaky;!expl", ".dump ObjectRef -pn leaky;!explorer.exe "),
        (".dump ObjectRef -pn 731", ".dump ObjectRef -pn 7316 "),
        (".dump ObjectRef -Type sec", ".dump ObjectRef -Type Section "),
        (r".dump ObjectRef -ObjectName \reg", r".dump ObjectRef -ObjectName \REGISTRY\"),
        (".dump ObjectRef -sf ntd", ".dump ObjectRef -sf ntdll.dll!* "),
        (".dump Process -fd lea", ".dump Process -fd leaky.etl "),
        (".timefmt utct", ".timefmt UTCTime "),
    ] {
        completed(&terminal, typed, expected);
    }
}

#[test]
fn aliases_are_completed_and_hinted_as_what_they_stand_for() {
    let shell = Shell::new();
    let terminal = open(&shell);
    terminal.run(PROMPT, ".alias leaks = .dump ObjectRef -Leak");
    for (typed, expected) in [
        (".lea", ".leaks "),
        (".leaks -pn expl", ".leaks -pn explorer.exe "),
        (".alias mine = .leaks -Typ", ".alias mine = .leaks -Type "),
        (".help lea", ".help leaks "),
        (".config time-f", ".config time-format "),
    ] {
        completed(&terminal, typed, expected);
    }
    type_in(&terminal, ".leaks -MinMaxTime ");
    terminal.wait_for(".leaks -MinMaxTime SECONDS [MAX]");
}

#[test]
fn colours_that_are_switched_off_are_off_at_the_next_prompt() {
    let shell = Shell::new();
    let terminal = open(&shell);
    let assert_color = |line: &str, color: Color| {
        type_in(&terminal, line);
        terminal.wait_until("the colour", |view| view.color(line) == Some(color));
        terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    };
    assert_color(".list", Color::Idx(63));
    terminal.run(PROMPT, ".config color never");
    assert_color(".unload", Color::Default);
    terminal.run(PROMPT, ".config color auto");
    assert_color(".schema", Color::Idx(63));
}

#[test]
fn tab_completes_names_of_snapshots() {
    let shell = Shell::new();
    let terminal = open(&shell);
    terminal.run(PROMPT, ".snapshot warm 0.5s");
    terminal.run(PROMPT, ".snapshot \"after login\" 1s");
    for (typed, expected) in [
        (".diff wa", ".diff warm "),
        (".diff warm af", ".diff warm \"after login\" "),
        (".dump Diff -To wa", ".dump Diff -To warm "),
        (".snapshot wa", ".snapshot warm "),
    ] {
        completed(&terminal, typed, expected);
    }
}

#[test]
fn tab_completes_ids_of_suspects_once_they_were_named_until_symbols_change_them() {
    let shell = Shell::new();
    let terminal = open(&shell);
    let id = {
        let why = shell.run(&["why", "leaky.etl", "-json"]).ok();
        let document: serde_json::Value = serde_json::from_str(&why.stdout).unwrap();
        document["suspects"][0]["id"].as_str().unwrap().to_owned()
    };
    let typed = |command: &str| format!("{command} -Suspect {}", &id[..3]);
    let whole = |command: &str| format!("{command} -Suspect {id} ");
    completed(&terminal, &typed(".diff"), &typed(".diff"));
    terminal.run(PROMPT, ".why > a.txt");
    for command in [".dump ObjectRef", ".diff", ".plot"] {
        completed(&terminal, &typed(command), &whole(command));
    }
    terminal.run(PROMPT, ".sympath -retry");
    completed(&terminal, &typed(".diff"), &typed(".diff"));
}

#[test]
fn an_option_hints_at_its_value_and_a_bad_value_is_red() {
    let shell = Shell::new();
    let terminal = open(&shell);
    type_in(&terminal, ".dump ObjectRef -MinMaxTime ");
    terminal.wait_for(".dump ObjectRef -MinMaxTime SECONDS [MAX]");
    terminal.send("5x ");
    terminal.wait_until("a red 5x", |view| view.color("5x") == Some(Color::Idx(131)));
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    type_in(&terminal, ".timefmt nonsense ");
    terminal.wait_until("a red word", |view| view.color("nonsense") == Some(Color::Idx(131)));
}

#[test]
fn a_line_is_remembered_once_and_blank_ones_never() {
    let shell = Shell::new();
    let terminal = open(&shell);
    for line in [".clip", ".list", " .list", "   ", ""] {
        terminal.run(PROMPT, line);
    }
    for remembered in [".list", ".clip"] {
        terminal.press(TerminalKey::Up);
        terminal.wait_for_line(&format!("{PROMPT}{remembered}"));
    }
}

#[test]
fn a_console_finds_what_another_one_that_still_runs_has_run() {
    let shell = Shell::new();
    let first = open(&shell);
    first.run(PROMPT, ".timedigits 3");
    let second = open(&shell);
    second.run(PROMPT, ".list");
    // After the next line, the first console also has what the second one ran.
    first.run(PROMPT, ".sffn");
    for remembered in [".sffn", ".list", ".timedigits 3"] {
        first.press(TerminalKey::Up);
        first.wait_for_line(&format!("{PROMPT}{remembered}"));
    }
}

#[test]
fn a_long_message_breaks_between_words() {
    let shell = Shell::new();
    let terminal = open(&shell);
    terminal.run(PROMPT, ".dump ObjectRef -TimeFmt nonsense");
    let transcript = terminal.transcript();
    let at = transcript.iter().position(|line| line.starts_with("error: "));
    let error = &transcript[at.expect("an error")..];
    assert!(error[0].len() <= 80 && error[1].starts_with("  "), "{error:#?}");
    let words = |lines: &[String]| -> Vec<String> {
        lines.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect()
    };
    let piped = shell.run(&["leaky.etl", "-c", ".dump ObjectRef -TimeFmt nonsense"]);
    let error = words(error).join(" ");
    for line in piped.stderr.lines().filter(|line| line.contains("nonsense")) {
        let message = line.split("nonsense: ").last().unwrap_or_default();
        assert!(error.contains(message), "{message} is not in {error}");
    }
}
