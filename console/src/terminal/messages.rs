//! Messages beside the results: on standard error, so that results can be piped.

use std::{fmt::Display, io::Write, path::Path};

use super::{neutral::neutral_lines, screen::is_dumb, theme::Role};
use crate::cancel::writing;
use crate::terminal::{Activity, ColorChoice, Progress, Screen, Spinner, wrapped};

/// Where messages go, with nothing in them that a terminal would obey. A message that cannot be written is lost, which is not a failure.
pub struct Messages<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
    follows: Option<ColorChoice>,
    spinner: Spinner,
    activity: Activity,
}

impl<'a> Messages<'a> {
    /// Messages to `out`, in the manner of `screen`.
    pub fn new(out: &'a mut dyn Write, screen: Screen) -> Messages<'a> {
        Messages {
            out,
            screen,
            follows: None,
            spinner: Spinner::default(),
            activity: Activity::default(),
        }
    }

    /// Messages that show in `activity` how far a file is.
    pub(crate) fn with_activity(self, activity: Activity) -> Messages<'a> {
        Messages { activity, ..self }
    }

    /// Messages to `out`, which is standard error, as wide as its window at any time.
    pub fn to_stderr(out: &'a mut dyn Write, color: ColorChoice) -> Messages<'a> {
        let screen = Screen::stderr(color);
        Messages { follows: Some(color), ..Messages::new(out, screen) }
    }

    /// Uses colours in another way from now on, where it is decided by a [`ColorChoice`].
    pub(crate) fn set_color(&mut self, color: ColorChoice) {
        self.follows = self.follows.map(|_| color);
    }

    /// Shows a spinner from now on, on a terminal and if it takes long.
    pub(crate) fn wait(&self, message: &'static str) {
        if self.is_watched() {
            self.spinner.start(message);
        }
    }

    /// The spinner, for those who write beside it.
    pub(crate) fn spinner(&self) -> Spinner {
        self.spinner.clone()
    }

    /// A progress bar for one file.
    pub(crate) fn progress(&self, file: &Path) -> Progress {
        Progress::new(file, self.is_watched(), &self.activity)
    }

    /// Whether messages go to a terminal that can draw a progress bar.
    pub fn is_watched(&self) -> bool {
        self.screen.is_terminal() && !is_dumb()
    }

    pub fn note(&mut self, text: impl Display) {
        self.write(Role::Plain, "", text);
    }

    /// A warning: the results may be wrong or incomplete.
    pub fn warning(&mut self, text: impl Display) {
        self.write(Role::Warning, "warning: ", text);
    }

    pub fn error(&mut self, text: impl Display) {
        self.write(Role::Error, "error: ", text);
    }

    fn write(&mut self, role: Role, label: &str, text: impl Display) {
        let screen = self.follows.map_or(self.screen, Screen::stderr);
        let text = format!("{label}{text}");
        let text = wrapped(&neutral_lines(&text), screen.width);
        // A long word behind the label begins the next line, so that no space is between them.
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
