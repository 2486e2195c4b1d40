//! What is told to the user beside the results: on standard error, so that results can be piped.

use std::{fmt::Display, io::Write};

use nu_ansi_term::{Color, Style};

use crate::screen::Screen;

/// Where messages go. A message that cannot be written is lost, and that is no failure.
pub struct Messages<'a> {
    out: &'a mut dyn Write,
    screen: Screen,
}

impl<'a> Messages<'a> {
    /// Messages to `out`, in the manner of `screen`.
    pub fn new(out: &'a mut dyn Write, screen: Screen) -> Messages<'a> {
        Messages { out, screen }
    }

    /// Whether somebody watches, so that a progress bar makes sense.
    pub fn is_watched(&self) -> bool {
        self.screen.is_terminal()
    }

    /// Tells something.
    pub fn note(&mut self, text: impl Display) {
        self.write(Style::new(), "", text);
    }

    /// Tells something that may spoil the results.
    pub fn warning(&mut self, text: impl Display) {
        self.write(Color::Yellow.bold(), "warning: ", text);
    }

    /// Tells what failed.
    pub fn error(&mut self, text: impl Display) {
        self.write(Color::Red.bold(), "error: ", text);
    }

    fn write(&mut self, style: Style, label: &str, text: impl Display) {
        let _ = writeln!(self.out, "{}{text}", self.screen.paint(style, label));
        let _ = self.out.flush();
    }
}
