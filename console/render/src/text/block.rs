//! Suspects as blocks of lines, of a trace or of a dataset.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;

/// Indentation that aligns the following lines with the text after the rank.
pub const INDENT: &str = "   ";

/// Writes the block of a suspect: a heading, and lines that continue on the next one if the screen is too narrow.
pub struct BlockWriter<'w> {
    pub display: &'w Display,
    pub out: &'w mut dyn Write,
}

impl BlockWriter<'_> {
    /// Writes the first line, about a suspect of this rank.
    pub fn heading(&mut self, rank: usize, amount: &str, name: &str) -> io::Result<()> {
        let heading = self.painted(Role::Heading, &format!("{rank}  {amount}   {name}"));
        writeln!(self.out, "{heading}")
    }

    /// Writes a line below the heading.
    pub fn line(&mut self, role: Role, text: &str) -> io::Result<()> {
        let text = self.painted(role, text);
        writeln!(self.out, "{INDENT}{text}")
    }

    /// Writes a line that a narrow screen cuts.
    pub fn short_line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{INDENT}{text}")
    }

    /// Writes calls in one line; an arrow stays on the line of its function.
    pub fn calls(&mut self, calls: &str) -> io::Result<()> {
        let calls = self.painted(Role::Heading, calls);
        let calls = calls.replace(&format!("← {}", self.display.line_break()), "← ");
        writeln!(self.out, "{INDENT}{calls}")
    }

    fn painted(&self, role: Role, text: &str) -> String {
        let text = self.display.whole(&Untrusted(text).to_string());
        self.display.screen.paint(role, text).to_string()
    }
}
