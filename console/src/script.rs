//! Commands from `-c` or from a pipe.

use std::io::{self, BufRead, Write};

use crate::{cancel::Cancelled, commands::Flow, console::Console, terminal::Messages};

/// One command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it stands, as in `line 1` of a script or `command 1` of the command line.
    pub place: String,
    /// The command.
    pub line: String,
}

/// The commands behind `-c`.
pub fn commands(lines: &[String]) -> impl Iterator<Item = io::Result<Step>> {
    let step = |(index, line): (usize, &String)| {
        Ok(Step { place: format!("command {}", index + 1), line: line.clone() })
    };
    lines.iter().enumerate().map(step)
}

/// The lines of a script. A byte order mark in front and CR LF at the ends, which Windows likes to
/// write, do not count.
pub fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<Step>> {
    let mut number = 0;
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        match input.read_until(b'\n', &mut bytes) {
            Err(error) => return Some(Err(error)),
            Ok(0) => return None,
            Ok(_) => number += 1,
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&line);
        let line = line.trim_end_matches(['\r', '\n']).to_owned();
        Some(Ok(Step { place: format!("line {number}"), line }))
    })
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every command worked, or the reader of the output had enough.
    Worked,
    /// A command failed.
    Failed,
    /// The user pressed Ctrl-C.
    Cancelled,
}

/// Runs a script up to its end, a `.quit`, or the first command that fails; with `keep_going` past
/// those that fail. Every failure is reported with its place. Ctrl-C ends it in any case.
pub fn run(
    console: &mut Console,
    steps: impl Iterator<Item = io::Result<Step>>,
    keep_going: bool,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Outcome {
    let mut outcome = Outcome::Worked;
    for step in steps {
        // Between two commands, or while waiting for the next one.
        if console.cancel.is_cancelled() {
            return cancelled(messages);
        }
        let Step { place, line } = match step {
            Ok(step) => step,
            Err(error) => {
                messages.error(format_args!("cannot read the commands: {error}"));
                return Outcome::Failed;
            }
        };
        match console.run(&line, out, messages) {
            Ok(Flow::Continue) => {}
            Ok(Flow::Quit) => break,
            Err(error) if error.is_broken_pipe() => break,
            Err(error) if error.is_cancelled() => {
                let _ = out.flush();
                return cancelled(messages);
            }
            Err(error) => {
                let _ = out.flush();
                messages.error(format_args!("{place}: {}: {error}", line.trim()));
                outcome = Outcome::Failed;
                if !keep_going {
                    break;
                }
            }
        }
    }
    if console.cancel.is_cancelled() { cancelled(messages) } else { outcome }
}

fn cancelled(messages: &mut Messages<'_>) -> Outcome {
    messages.note(Cancelled);
    Outcome::Cancelled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::terminal::{ColorChoice, Screen};

    /// Outcome, standard output and standard error of a script.
    fn played(script: &str, keep_going: bool) -> (Outcome, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(None, ColorChoice::Never, Cancel::default());
        let outcome = run(
            &mut console,
            lines(script.as_bytes()),
            keep_going,
            &mut out,
            &mut Messages::new(&mut err, Screen::PLAIN),
        );
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (outcome, text(out), text(err))
    }

    #[test]
    fn the_first_failure_ends_a_script_and_says_where_and_why() {
        let (outcome, out, err) = played("# a comment\n\n.dump ObjectRef -Foo\n.list\n", false);
        assert_eq!(outcome, Outcome::Failed);
        assert_eq!(out, "");
        assert_eq!(
            err,
            "error: line 3: .dump ObjectRef -Foo: unknown option -Foo; .help ObjectRef lists the \
             options\n"
        );
    }

    #[test]
    fn keep_going_runs_on_and_still_fails() {
        let (outcome, out, err) = played("nonsense\n.list\nnonsense\n", true);
        assert_eq!(outcome, Outcome::Failed);
        assert_eq!(out, "No traces are loaded.\n");
        assert!(err.contains("line 1: nonsense:") && err.contains("line 3: nonsense:"), "{err}");
    }

    #[test]
    fn a_query_without_traces_fails() {
        let (outcome, _, err) = played(".dump Stats -json", false);
        assert_eq!(outcome, Outcome::Failed);
        assert!(err.contains("no trace is loaded; load one with .load FILE"), "{err}");
    }

    #[test]
    fn quit_and_the_end_of_input_are_no_failures() {
        assert_eq!(played("", false), (Outcome::Worked, String::new(), String::new()));
        assert_eq!(played("  .quit\nnonsense\n", false).0, Outcome::Worked);
    }

    #[test]
    fn windows_line_ends_and_marks_do_not_count() {
        let steps: Vec<Step> =
            lines("\u{feff}.list\r\n.quit".as_bytes()).map(|step| step.expect("a step")).collect();
        assert_eq!(
            steps,
            [
                Step { place: "line 1".into(), line: ".list".into() },
                Step { place: "line 2".into(), line: ".quit".into() },
            ]
        );
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut err = Vec::new();
        let mut console = Console::new(None, ColorChoice::Never, Cancel::default());
        let steps = lines(".help\nnonsense\n".as_bytes());
        let mut messages = Messages::new(&mut err, Screen::PLAIN);
        assert_eq!(run(&mut console, steps, false, &mut Closed, &mut messages), Outcome::Worked);
        assert!(err.is_empty());
    }

    #[test]
    fn a_cancelled_script_does_nothing_more() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let cancel = Cancel::default();
        let mut console = Console::new(None, ColorChoice::Never, cancel.clone());
        let mut messages = Messages::new(&mut err, Screen::PLAIN);
        let steps = lines(".list\n.list\n".as_bytes()).inspect(|step| {
            if step.as_ref().is_ok_and(|step| step.place == "line 2") {
                cancel.cancel();
            }
        });
        let outcome = run(&mut console, steps, true, &mut out, &mut messages);
        assert_eq!(outcome, Outcome::Cancelled);
        assert_eq!(out, b"No traces are loaded.\n");
        assert_eq!(err, b"cancelled\n");
    }
}
