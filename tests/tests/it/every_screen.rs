//! Every command, kind, help page and one-shot on screens of several widths, in a locale without UTF-8, and on a
//! terminal that understands only text.

use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use handlescope_tests::binary::{Shell, sample_symbols};
use handlescope_tests::terminal::Terminal;

/// Height of a screen that fits everything a run prints.
const LINES: u16 = 4_000;

/// Screen widths and environment variables.
const SCREENS: [(u16, &[(&str, &str)]); 5] =
    [(60, &[]), (80, &[]), (200, &[]), (80, &[("LC_ALL", "C")]), (80, &[("TERM", "dumb")])];

/// Returns the first words of the help lines with this indentation.
fn names<'a>(help: &'a str, indent: &str) -> impl Iterator<Item = &'a str> {
    help.lines()
        .filter_map(move |line| line.strip_prefix(indent))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
}

/// Returns console commands: each kind, each help page, and each command without required argument, except those that
/// exit, unload or clear the screen.
fn questions(shell: &Shell) -> Vec<String> {
    let help = shell.run(&["-c", ".help"]).ok().stdout;
    let kinds: Vec<String> = shell.kinds().into_iter().map(|kind| kind.name).collect();
    let (list, more) = help.split_once("\nMore\n").expect("a list of more help");
    let topics = more.lines().filter_map(|line| line.split_whitespace().nth(1));
    let pages = names(list, "  ").chain(kinds.iter().map(String::as_str)).chain(topics);
    let bare = list.lines().filter_map(|line| {
        let usage = line.strip_prefix("  .")?.split("  ").next()?;
        let (name, arguments) = usage.split_once(' ').unwrap_or((usage, ""));
        let is_asked = !["quit", "unload", "cls", "help"].contains(&name);
        (is_asked && (arguments.is_empty() || arguments.starts_with('['))).then_some(name)
    });
    let mut questions = vec![".help".to_owned()];
    questions.extend(pages.map(|page| format!(".help {page}")));
    questions.extend(bare.map(|name| format!(".{name}")));
    questions.extend(kinds.iter().map(|kind| match kind.as_str() {
        // A narrow screen drops columns of these.
        "Process" | "Module" | "Symbols" => format!(".dump {kind} -Columns all"),
        _ => format!(".dump {kind}"),
    }));
    questions.push(
        ".dump ObjectRef -pn leaky -GroupBy Process,Type,Name -ShowTime -Columns all".to_owned(),
    );
    questions
}

/// Groups the console commands into a few runs, and adds a run for each subcommand's help.
fn runs(shell: &Shell, questions: &[String]) -> Vec<Vec<String>> {
    let mut runs = vec![vec!["--help".to_owned()]];
    for part in questions.chunks(20) {
        let lines = part.iter().flat_map(|line| ["-c", line]);
        let words = ["--symbol-path", "symbols", "leaky.etl"].into_iter().chain(lines);
        runs.push(words.map(str::to_owned).collect());
    }
    let usage = shell.run(&["--help"]).ok().stdout;
    let (_, subcommands) = usage.split_once("Commands:\n").expect("subcommands");
    let (subcommands, _) = subcommands.split_once("\n\n").expect("other sections");
    let help = names(subcommands, "  ").map(|name| vec![name.to_owned(), "--help".to_owned()]);
    runs.extend(help);
    for line in ["dump ObjectRef -fd leaky.etl -Leak", "why leaky.etl", "dump Nonsense", "live"] {
        runs.push(line.split(' ').map(str::to_owned).collect());
    }
    runs.push(vec!["folder/".repeat(30)]);
    runs
}

fn command(shell: &Shell, arguments: &[String], environment: &[(&str, &str)]) -> Command {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = shell.command(&arguments);
    command.envs(environment.iter().copied());
    command
}

/// Returns numbers, names and identities in a line, which are read and copied as a whole.
fn whole_words(line: &str) -> impl Iterator<Item = &str> {
    let is_guid = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    let is_number =
        |word: &str| word.chars().all(|char| char.is_ascii_digit() || ".,:".contains(char));
    let is_name = |word: &str| {
        word.len() <= 20 && word.chars().all(|char| char.is_ascii_alphanumeric() || char == '.')
    };
    let words = line.split_whitespace().map(|word| word.trim_end_matches([',', ';', ':', '.']));
    words.filter(move |word| is_guid(word) || is_number(word) || is_name(word))
}

/// Returns the faults of a screen, given the text that a pipe gets.
fn faults(terminal: &Terminal, piped: &str) -> Vec<String> {
    let lines = terminal.transcript();
    let mut faults = terminal.not_understood();
    if lines.len() > LINES.into() {
        faults.push("the screen is too small for the test".to_owned());
    }
    if lines.iter().all(String::is_empty) {
        faults.push("nothing is shown".to_owned());
    }
    // A path longer than a line stays whole, so that it can be copied.
    let too_wide = terminal.too_wide().into_iter().filter(|line| line.trim().contains(' '));
    faults.extend(too_wide.map(|line| format!("too wide: {line}")));
    for line in &lines {
        const GARBLED: [&str; 4] = ["\\u{1b}", "[0m", "[38;", "\u{fffd}"];
        const TWICE: [&str; 2] = ["error: error", "warning: warning"];
        let is_in = |text: &&str| line.contains(*text);
        if GARBLED.iter().chain(&TWICE).any(is_in) {
            faults.push(format!("garbled, or said twice: {line}"));
        }
    }
    let shown: HashSet<&str> = lines.iter().flat_map(|line| whole_words(line)).collect();
    // Only a pipe gets the headings of a table without rows.
    let is_row =
        |line: &&str| line.starts_with(' ') || line.contains(|char: char| char.is_ascii_digit());
    let broken =
        piped.lines().filter(is_row).flat_map(whole_words).filter(|word| !shown.contains(word));
    faults.extend(broken.map(|word| format!("broken, or not there: {word}")));
    faults
}

#[test]
fn nothing_is_garbled_too_wide_broken_or_said_twice() {
    let shell = Shell::new();
    // The path of the clone stays off the screen.
    symlink(sample_symbols(), shell.path("symbols")).unwrap();
    let questions = questions(&shell);
    assert!(questions.len() > 50, "{questions:?}");
    let mut all = Vec::new();
    for arguments in runs(&shell, &questions) {
        let piped = command(&shell, &arguments, &[]).output().expect("the program starts");
        let piped = String::from_utf8(piped.stdout).expect("text");
        for (columns, environment) in SCREENS {
            let command = command(&shell, &arguments, environment);
            let mut terminal = Terminal::start(command, columns, LINES);
            let _ = terminal.wait_for_exit();
            let mut faults = faults(&terminal, &piped);
            if environment.contains(&("TERM", "dumb")) {
                let colored = terminal.colored().into_iter();
                faults.extend(colored.map(|text| format!("coloured: {text}")));
            }
            let place = format!("{columns} {environment:?} {}", arguments[arguments.len() - 1]);
            all.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}
