//! Messages go to standard error, so that results can be piped. Also prints what the command-line parser says, and
//! panics.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use ::console::strip_ansi_codes;
use handlescope_model::{Untrusted, guard, is_harmful};

use super::neutral::neutral_lines;
use super::theme::Role;
use super::{
    Activity, ColorChoice, Neutral, Progress, Screen, Spinner, is_dumb, standard, wrapped,
};
use crate::cancel::writing;

/// Writes messages, neutralized so that they cannot control the terminal. A message that cannot be written is dropped;
/// that is not a failure.
pub struct Messages<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
    follows: Option<ColorChoice>,
    spinner: Spinner,
    activity: Activity,
    /// Whether notes are left out.
    has_no_notes: bool,
    /// Warnings already given that hold for all answers.
    said: HashSet<String>,
}

impl<'a> Messages<'a> {
    /// Creates messages that go to `out`, in the style of `screen`.
    pub fn new(out: &'a mut dyn Write, screen: Screen) -> Messages<'a> {
        Messages {
            out,
            screen,
            follows: None,
            spinner: Spinner::default(),
            activity: Activity::default(),
            has_no_notes: false,
            said: HashSet::new(),
        }
    }

    /// Suppresses notes during `work`, while its progress is reported in another way.
    pub fn without_notes<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.has_no_notes, true);
        let result = work(self);
        self.has_no_notes = before;
        result
    }

    /// Also shows the progress of a file in `activity`.
    pub fn with_activity(self, activity: Activity) -> Messages<'a> {
        Messages { activity, ..self }
    }

    /// Creates messages that go to standard error, which `out` is. They follow the width of its window.
    pub fn to_stderr(out: &'a mut dyn Write, color: ColorChoice) -> Messages<'a> {
        let screen = Screen::stderr(color);
        Messages { follows: Some(color), ..Messages::new(out, screen) }
    }

    /// Changes the choice of colours, for messages created with a [`ColorChoice`].
    pub fn set_color(&mut self, color: ColorChoice) {
        self.follows = self.follows.map(|_| color);
    }

    /// Shows a spinner from now on, if on a terminal and once it takes long.
    pub fn wait(&self, message: &'static str) {
        if self.is_watched() {
            self.spinner.start(message);
        }
    }

    /// Returns the spinner, for code that writes beside it.
    pub fn spinner(&self) -> Spinner {
        self.spinner.clone()
    }

    /// Creates a progress bar for one file.
    pub fn progress(&self, file: &Path) -> Progress {
        Progress::new(file, self.is_watched(), &self.activity)
    }

    /// Whether messages go to a terminal that can draw a progress bar.
    pub fn is_watched(&self) -> bool {
        self.screen.is_terminal() && !is_dumb()
    }

    pub fn note(&mut self, text: impl Display) {
        if !self.has_no_notes {
            self.write(Role::Plain, "", text);
        }
    }

    /// Warns that the results may be wrong or incomplete.
    pub fn warning(&mut self, text: impl Display) {
        self.write(Role::Warning, "warning: ", text);
    }

    /// Warns, only once, about something that affects all answers.
    pub fn caveat(&mut self, text: String) {
        if !self.said.contains(&text) {
            self.warning(&text);
            self.said.insert(text);
        }
    }

    pub fn error(&mut self, text: impl Display) {
        self.write(Role::Error, "error: ", text);
    }

    fn write(&mut self, role: Role, label: &str, text: impl Display) {
        let screen = self.follows.map_or(self.screen, Screen::stderr);
        let text = format!("{label}{text}");
        let text = wrapped(&neutral_lines(&text), screen.width);
        // A long word after the label moves to the next line, without a space.
        let (label, text) = text.split_at(label.trim_end().len());
        let out = &mut self.out;
        self.spinner.aside(|| {
            let _ = writing(|| {
                writeln!(out, "{}{text}", screen.paint(role, label))?;
                out.flush()
            });
        });
    }
}

/// Prints clap's messages: help to standard output, errors to standard error.
///
/// # Errors
/// If writing fails.
pub fn print_usage(message: &clap::Error, screen: Screen) -> io::Result<()> {
    let mut text = message.render().ansi().to_string();
    // The words of the command line that clap quotes may contain harmful characters, too, and break lines.
    for word in std::env::args_os().map(|word| word.to_string_lossy().into_owned()) {
        for repeated in [Some(&*word), word.split_once('=').map(|(_, value)| value)] {
            let Some(repeated) = repeated.filter(|r| r.contains(is_harmful)) else { continue };
            text = text.replace(repeated, &Untrusted(repeated).to_string());
        }
    }
    let text = if screen.color { Cow::from(text) } else { strip_ansi_codes(&text) };
    let write = |out: &mut dyn Write| {
        Neutral::terminal(&mut *out, true).write_all(text.as_bytes())?;
        out.flush()
    };
    if message.use_stderr() {
        write(&mut standard::error())
    } else {
        write(&mut standard::results())
    }
}

/// Reports panics as usual, but neutralized so that the report cannot control the terminal.
pub fn report_panics() {
    guard::report_panics(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = Backtrace::capture();
        let trace = Some(trace).filter(|trace| trace.status() == BacktraceStatus::Captured);
        let trace = trace.map_or_else(String::new, |trace| format!("{trace}\n"));
        let text = format!("\nthread '{name}' {panic}\n{trace}");
        // There is nowhere left to report an error.
        let _ = Neutral::terminal(standard::error(), true).write_all(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(width: Option<usize>, text: &str) -> String {
        let mut out = Vec::new();
        Messages::new(&mut out, Screen { width, color: false }).error(text);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_message_cannot_talk_to_the_terminal() {
        let text = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\nnext";
        assert_eq!(printed(None, text), "error: a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}b\nnext\n");
    }

    #[test]
    fn messages_are_wrapped_on_a_terminal_and_whole_in_a_pipe() {
        assert_eq!(printed(Some(20), "one two three four"), "error: one two three\n  four\n");
        assert_eq!(printed(None, "one two three four"), "error: one two three four\n");
        let path = "folder/of-a-long-name.etl";
        let text = format!("{path}: file not found");
        assert_eq!(printed(Some(20), &text), format!("error:\n  {path}:\n  file not found\n"));
    }
}
