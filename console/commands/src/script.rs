//! Runs commands from `-c`, from a pipe, or from typed or pasted lines.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use handlescope_model::Reason;

use crate::Flow;
use crate::console::Console;
use crate::registry::REGISTRY;
use crate::sql::{is_complete, is_unfinished};
use handlescope_session::cancel::Cancelled;
use handlescope_session::grammar::{Arguments, Token, split};
use handlescope_session::terminal::Messages;

/// Maximum length of a script line in bytes.
const MAX_LINE_LENGTH: u64 = 1 << 20;

/// How a script in UTF-16 (little-endian) starts.
const UTF16_MARK: &[u8] = b"\xFF\xFE";

/// One command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptStep {
    /// Where the command is, as in `line 1` of a script or `command 1` of the command line.
    pub position: String,
    /// The command; a query may have several lines.
    pub line: String,
}

/// Returns the commands after `-c`.
pub fn commands(lines: &[String]) -> impl Iterator<Item = io::Result<ScriptStep>> {
    lines.iter().enumerate().map(|(index, line)| {
        Ok(ScriptStep { position: format!("command {}", index + 1), line: line.clone() })
    })
}

/// Returns the commands of a script, one per line. A query continues (`is_query_open`), at most until the next command.
pub fn steps(input: impl BufRead) -> impl Iterator<Item = io::Result<ScriptStep>> {
    let mut lines = lines(input).peekable();
    std::iter::from_fn(move || {
        let mut step = match lines.next()? {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        while is_query_open(&step.line) {
            let next =
                lines.next_if(|next| next.as_ref().is_ok_and(|next| !starts_command(&next.line)));
            let Some(Ok(next)) = next else { break };
            step.line.extend(["\n", &next.line]);
        }
        Some(Ok(step))
    })
}

/// Whether the next line still belongs to a query: neither `;`, nor an empty line, nor options after it have ended it.
pub fn is_query_open(text: &str) -> bool {
    is_query(text, is_unfinished)
}

/// Whether a line is a query that passes `is_so`, and its last line is not empty.
fn is_query(text: &str, is_so: impl Fn(&str, &[Token]) -> bool) -> bool {
    let tokens = split(text);
    let Some((first, arguments)) = tokens.split_first() else { return false };
    let takes_query = REGISTRY
        .command_of_line(&first.text)
        .is_some_and(|command| matches!(command.signature().arguments, Arguments::Sql));
    let last = text.rsplit('\n').next().unwrap_or_default();
    !last.trim().is_empty() && takes_query && is_so(text, arguments)
}

/// Whether the last command is a query that still needs typing. When typing, a complete query ends with its line; in a
/// script, the next line might continue it. An empty line also ends a query.
pub fn is_waiting(text: &str) -> bool {
    let is_line_empty = text.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let is_open =
        |line: &str, tokens: &[Token]| is_unfinished(line, tokens) && !is_complete(line, tokens);
    let last = steps(text.as_bytes()).last();
    !is_line_empty && last.and_then(Result::ok).is_some_and(|step| is_query(&step.line, is_open))
}

/// Whether a line is a comment, or starts like a command or alias with a dot and a letter.
fn starts_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    // No line of a query starts like this. The name is not checked, because earlier lines may define aliases.
    first.starts_with('#')
        || first
            .strip_prefix('.')
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Returns the lines of a script. Ignores a byte order mark at the start and CR LF at line ends, which Windows likes to
/// write. Reads UTF-16 as PowerShell 5 writes it with `>`.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<ScriptStep>> {
    let (mut number, mut is_utf16) = (0, false);
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        let mut rest = input.by_ref().take(MAX_LINE_LENGTH + 1);
        match rest.read_until(b'\n', &mut bytes) {
            Err(error) => return Some(Err(error)),
            Ok(0) => return None,
            Ok(_) => number += 1,
        }
        is_utf16 |= number == 1 && bytes.starts_with(UTF16_MARK);
        if is_utf16 && let Err(error) = read_line_of_utf16(&mut rest, &mut bytes) {
            return Some(Err(error));
        }
        if bytes.len() as u64 > MAX_LINE_LENGTH {
            let message = format!("line {number} is longer than {MAX_LINE_LENGTH} bytes");
            return Some(Err(io::Error::new(ErrorKind::InvalidData, message)));
        }
        let line = if is_utf16 {
            let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<_>>()).into()
        } else {
            String::from_utf8_lossy(&bytes)
        };
        let line = line.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&line);
        let line = line.trim_end_matches(['\r', '\n']).to_owned();
        Some(Ok(ScriptStep { position: format!("line {number}"), line }))
    })
}

/// Reads on to the end of a UTF-16 line, because the byte of a line end also occurs in other characters.
fn read_line_of_utf16(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !(bytes.ends_with(b"\n\0") && bytes.len().is_multiple_of(2)) {
        let is_half = bytes.len() % 2 == 1;
        let read = if is_half {
            input.take(1).read_to_end(bytes)?
        } else {
            input.read_until(b'\n', bytes)?
        };
        if read == 0 {
            break;
        }
    }
    Ok(())
}

/// The outcome of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptOutcome {
    /// Every command worked, or the reader of the output stopped reading.
    Worked,
    /// A comparison found that something got worse.
    Worse,
    /// A comparison cannot tell whether something got worse, because events were lost.
    Undecided,
    /// A command failed.
    Failed,
    /// The user pressed Ctrl-C.
    Cancelled,
}

/// Options for running a script.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// Whether to continue after a command fails.
    pub keep_going: bool,
    /// Whether to print each command first, as a comment.
    pub echo: bool,
}

/// Runs a script to its end, to a `.quit`, or to the first failing command unless failures are to be skipped. Reports
/// every failure with its position. Ctrl-C always ends it.
pub fn run(
    console: &mut Console,
    steps: impl Iterator<Item = io::Result<ScriptStep>>,
    options: RunOptions,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> ScriptOutcome {
    let mut outcome = ScriptOutcome::Worked;
    for step in steps {
        // A signal arrived between two commands, or while waiting for the next one.
        if console.cancel.is_cancelled() {
            return cancelled(messages);
        }
        let ScriptStep { position, line } = match step {
            Ok(step) => step,
            Err(error) => {
                messages.error(format_args!("cannot read the commands: {}", Reason(&error)));
                return ScriptOutcome::Failed;
            }
        };
        if options.echo {
            echo(&line, messages);
        }
        match console.run(&line, out, messages) {
            Ok(Flow::Continue) => {}
            Ok(Flow::Worse) if outcome != ScriptOutcome::Failed => outcome = ScriptOutcome::Worse,
            Ok(Flow::Undecided) if outcome == ScriptOutcome::Worked => {
                outcome = ScriptOutcome::Undecided;
            }
            Ok(Flow::Worse | Flow::Undecided) => {}
            Ok(Flow::Quit) => break,
            Err(error) if error.is_broken_pipe() => break,
            Err(error) if error.is_cancelled() => {
                let _ = out.flush();
                return cancelled(messages);
            }
            Err(error) => {
                let _ = out.flush();
                let line = line.trim().replace('\n', " ");
                messages.error(format_args!("{position}: {line}: {error}"));
                outcome = ScriptOutcome::Failed;
                if !options.keep_going {
                    break;
                }
            }
        }
    }
    if console.cancel.is_cancelled() { cancelled(messages) } else { outcome }
}

/// Prints a command as a comment, unless it is a comment already.
fn echo(line: &str, messages: &mut Messages<'_>) {
    let lines = line.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines.filter(|line| !line.starts_with('#')) {
        messages.note(format_args!("# {line}"));
    }
}

fn cancelled(messages: &mut Messages<'_>) -> ScriptOutcome {
    messages.note(Cancelled);
    ScriptOutcome::Cancelled
}

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_session::cancel::Cancel;
    use handlescope_session::settings::Settings;
    use handlescope_session::terminal::Screen;

    /// Returns outcome, standard output and standard error of a script.
    fn run_script(script: &str, keep_going: bool) -> (ScriptOutcome, String, String) {
        run_script_with(script, RunOptions { keep_going, echo: false })
    }

    fn run_script_with(script: &str, options: RunOptions) -> (ScriptOutcome, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(Settings::colorless(), Cancel::default());
        let outcome = run(
            &mut console,
            steps(script.as_bytes()),
            options,
            &mut out,
            &mut Messages::new(&mut err, Screen::PLAIN),
        );
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (outcome, text(out), text(err))
    }

    #[test]
    fn a_script_in_utf_16_has_the_same_lines() {
        // U+0A0A and U+010A contain the byte of a line end.
        let script = "\u{feff}# ä \u{a0a} \u{10a}\r\n.list\r\n\r\n# 😀";
        let utf16: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let read = |bytes: &[u8]| -> Vec<ScriptStep> {
            lines(bytes).map(|line| line.expect("read")).collect()
        };
        assert_eq!(read(&utf16), read(script.as_bytes()));
        assert_eq!(read(&utf16).len(), 4);
    }

    #[test]
    fn the_first_failure_ends_a_script_and_says_where_and_why() {
        let (outcome, out, err) = run_script("# a comment\n\n.dump ObjectRef -Foo\n.list\n", false);
        assert_eq!(outcome, ScriptOutcome::Failed);
        assert_eq!(out, "");
        assert_eq!(
            err,
            "error: line 3: .dump ObjectRef -Foo: unknown option -Foo; .help ObjectRef lists the \
             options\n"
        );
    }

    #[test]
    fn keep_going_runs_on_and_still_fails() {
        let (outcome, out, err) = run_script("nonsense\n.list\nnonsense\n", true);
        assert_eq!(outcome, ScriptOutcome::Failed);
        assert_eq!(out, "No traces are loaded.\n");
        assert!(err.contains("line 1: nonsense:") && err.contains("line 3: nonsense:"), "{err}");
    }

    #[test]
    fn commands_are_echoed_as_comments_and_comments_are_not() {
        let script = "# a note\n\n  .list\n.sql SELECT 1,\n 2;\n";
        let (_, out, err) = run_script_with(script, RunOptions { keep_going: false, echo: true });
        assert_eq!(out, "No traces are loaded.\n");
        assert!(
            err.starts_with("# .list\n# .sql SELECT 1,\n# 2;\nerror: line 4: .sql SELECT 1,"),
            "{err}"
        );
    }

    #[test]
    fn a_query_goes_on_until_something_ends_it() {
        let of = |script: &str| -> Vec<(String, String)> {
            steps(script.as_bytes())
                .map(|step| step.expect("a step"))
                .map(|ScriptStep { position, line }| (position, line))
                .collect()
        };
        let count = |line: &str| of(line).len();
        let joined = of("\n.sql SELECT type,\r\n  count(*)\nFROM leaks;\n.list\n");
        assert_eq!(
            joined[1],
            ("line 2".into(), ".sql SELECT type,\n  count(*)\nFROM leaks;".into())
        );
        assert_eq!(joined[2], ("line 5".into(), ".list".into()));
        assert_eq!(count(".sql\nSELECT 1\nFROM leaks\n\n"), 1);
        assert_eq!(count(".sql SELECT 1\n\nnonsense"), 2, "after an empty line");
        assert_eq!(count(".sql SELECT 1\n.list\n"), 2, "in front of a command");
        assert_eq!(count(".sql SELECT 1\n.leaks\n"), 2, "in front of an alias");
        assert_eq!(count(".sql SELECT 1 +\n.5\n"), 1, "a number");
        assert_eq!(count(".sql SELECT 1\n# note\n"), 2, "in front of a comment");
        for ended in ["SELECT 1;", "SELECT 1 -json", "SHOW TABLES", "DESC leaks", "leaks", "-help"]
        {
            assert_eq!(count(&format!(".sql {ended}\nFROM leaks")), 2, "{ended}");
        }
        assert_eq!(count(".sql SELECT 1 > a.csv\nFROM leaks"), 2);
        assert_eq!(count(".sql -json SELECT 1\nFROM leaks\n -csv"), 1, "options follow the query");
        assert_eq!(count(".list\nFROM leaks"), 2);
    }

    #[test]
    fn a_query_without_traces_fails() {
        let (outcome, _, err) = run_script(".dump Stats -json", false);
        assert_eq!(outcome, ScriptOutcome::Failed);
        assert!(err.contains("no trace is loaded; load one with .load FILE"), "{err}");
    }

    #[test]
    fn quit_and_the_end_of_input_are_no_failures() {
        assert_eq!(run_script("", false), (ScriptOutcome::Worked, String::new(), String::new()));
        assert_eq!(run_script("  .quit\nnonsense\n", false).0, ScriptOutcome::Worked);
    }

    #[test]
    fn windows_line_ends_and_marks_do_not_count() {
        let steps: Vec<ScriptStep> =
            lines("\u{feff}.list\r\n.quit".as_bytes()).map(|step| step.expect("a step")).collect();
        assert_eq!(
            steps,
            [
                ScriptStep { position: "line 1".into(), line: ".list".into() },
                ScriptStep { position: "line 2".into(), line: ".quit".into() },
            ]
        );
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        struct ClosedPipe;
        impl Write for ClosedPipe {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut err = Vec::new();
        let mut console = Console::new(Settings::colorless(), Cancel::default());
        let steps = lines(".help\nnonsense\n".as_bytes());
        let mut messages = Messages::new(&mut err, Screen::PLAIN);
        let outcome =
            run(&mut console, steps, RunOptions::default(), &mut ClosedPipe, &mut messages);
        assert_eq!(outcome, ScriptOutcome::Worked);
        assert!(err.is_empty());
    }

    #[test]
    fn a_cancelled_script_does_nothing_more() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let cancel = Cancel::default();
        let mut console = Console::new(Settings::colorless(), cancel.clone());
        let mut messages = Messages::new(&mut err, Screen::PLAIN);
        let steps = lines(".list\n.list\n".as_bytes()).inspect(|step| {
            if step.as_ref().is_ok_and(|step| step.position == "line 2") {
                cancel.cancel();
            }
        });
        let options = RunOptions { keep_going: true, echo: false };
        let outcome = run(&mut console, steps, options, &mut out, &mut messages);
        assert_eq!(outcome, ScriptOutcome::Cancelled);
        assert_eq!(out, b"No traces are loaded.\n");
        assert_eq!(err, b"cancelled\n");
    }

    #[test]
    fn a_query_waits_for_its_end_and_nothing_else_does() {
        for text in [
            ".sql SELECT a",
            "sql SELECT a",
            ".sql",
            ".list\n.sql SELECT type,\n count(*)",
            ".SQL -json",
        ] {
            assert!(is_waiting(text), "{text:?}");
        }
        let ended = [
            ".sql SELECT 1",
            ".sql SELECT a;",
            ".sql SELECT a\n",
            ".sql SELECT a -csv",
            ".sql SELECT a\nFROM leaks",
            ".sql SELECT a FROM leaks WHERE = 1",
            ".sql SELECT a FROM leaks | sort",
        ];
        for text in ["", ".list", "nonsense", ".sql SHOW TABLES", ".sql SELECT 1\n.list"]
            .into_iter()
            .chain(ended)
        {
            assert!(!is_waiting(text), "{text:?}");
        }
    }
}
