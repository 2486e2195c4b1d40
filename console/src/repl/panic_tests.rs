//! A test of a command that panics on a terminal. The console and its registry are the program's; only the work that
//! panics is the test's. So the program at the terminal is this test, started once more.

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;
use std::{env, thread};

use handlescope_tests::terminal::{Terminal, TerminalKey};
use tempfile::TempDir;

use super::run;
use handlescope_commands::console::Console;
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::Settings;
use handlescope_session::terminal::{ColorChoice, Messages};

/// Environment variable that is set for the program at the terminal.
const AT_TERMINAL: &str = "HANDLESCOPE_TEST_AT_TERMINAL";
const NAME: &str = "repl::panic_tests::a_panic_leaves_the_terminal_usable";
const PROMPT: &str = "handlescope> ";

#[test]
fn a_panic_leaves_the_terminal_usable() {
    if env::var_os(AT_TERMINAL).is_some() {
        return panic_between_two_prompts();
    }
    let home = TempDir::new().expect("a temporary folder");
    let mut command = Command::new(env::current_exe().expect("a running test has a path"));
    command.args(["--exact", NAME, "--nocapture"]).env(AT_TERMINAL, "1");
    command.env("HOME", home.path()).env("XDG_DATA_HOME", home.path()).env_remove("NO_COLOR");
    let mut terminal = Terminal::start(command, 100, 24);
    quit(&terminal);
    terminal.wait_for("searching");
    terminal.wait_for("this is a bug in handlescope");
    terminal.wait_for_line(PROMPT);
    // A key that edits the line shows that the terminal is still read key by key.
    terminal.send(".lisx");
    terminal.wait_for_line(&format!("{PROMPT}.lisx"));
    terminal.press(TerminalKey::Ctrl('u'));
    terminal.run(PROMPT, ".list");
    terminal.wait_for("No traces are loaded.");
    let shown = terminal.transcript();
    assert!(!shown.iter().any(|line| line.contains("searching")), "a spinner stays: {shown:#?}");
    assert!(!shown.iter().any(|line| line.contains("panicked at")), "{shown:#?}");
    assert!(!terminal.view(|view| view.is_cursor_hidden()));
    quit(&terminal);
    assert_eq!(terminal.wait_for_exit(), Some(0));
}

fn quit(terminal: &Terminal) {
    terminal.wait_for_line(PROMPT);
    terminal.send(".quit");
    terminal.press(TerminalKey::Enter);
}

/// Runs a session at the prompt, panics while the spinner turns, and runs the session again.
fn panic_between_two_prompts() {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut messages = Messages::to_stderr(&mut err, ColorChoice::Auto);
    let mut console = Console::new(Settings::default(), Cancel::default());
    run(&mut console, &mut out, &mut messages).expect("a prompt");
    let panicked = console.with_context(&mut io::stdout(), &mut messages, |context| {
        context.messages.wait("searching");
        thread::sleep(Duration::from_secs(1));
        panic!("row {}", 7)
    });
    messages.error(panicked.expect_err("a panic"));
    run(&mut console, &mut out, &mut messages).expect("a prompt");
    out.flush().expect("a terminal");
}
