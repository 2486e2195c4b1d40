//! Sends answers that are longer than the screen through the user's pager.

use std::env;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

use console::measure_text_width;
use terminal_size::{Height, Width, terminal_size_of};

use super::{is_dumb, standard};
use crate::cancel::waiting_for;

/// The pager if the environment names none.
const USUAL: &str = "less";

/// Settings of the default pager, unless the environment has its own. It quits at once if everything fits on one
/// screen, passes colours on, leaves the text on the screen, and quits on Ctrl-C like the command. The text is UTF-8 in
/// any locale.
const SETTINGS: [(&str, &str); 2] = [("LESS", "FRXK"), ("LESSCHARSET", "utf-8")];

/// An output that waits until an answer is complete or longer than the screen; in the latter case a pager shows it.
/// [`Write::flush`] ends an answer, and returns once the user has left the pager.
pub struct PagedOutput<'a> {
    out: &'a mut dyn Write,
    /// The program with its arguments; `None` if everything goes to `out` directly.
    command: Option<Vec<String>>,
    screen: PageSize,
    held: Vec<u8>,
    /// Where the unfinished line starts in the held bytes.
    line_start: usize,
    /// Screen lines used by the lines before it.
    lines: usize,
    pager: Option<Child>,
    was_left: bool,
}

/// Columns and lines of the screen.
#[derive(Clone, Copy, Default)]
struct PageSize {
    columns: usize,
    lines: usize,
}

impl PageSize {
    /// Returns how many screen lines a line takes.
    fn lines_of(self, line: &[u8]) -> usize {
        let width = measure_text_width(&String::from_utf8_lossy(line));
        width.div_ceil(self.columns.max(1)).max(1)
    }
}

impl<'a> PagedOutput<'a> {
    /// Creates an output to `out`, which is a terminal if `is_on`.
    pub fn new(out: &'a mut dyn Write, is_on: bool) -> Self {
        let size = terminal_size_of(standard::out()).filter(|_| is_on && !is_dumb());
        let screen = size.map_or(PageSize::default(), |(Width(columns), Height(lines))| PageSize {
            columns: columns.into(),
            lines: lines.into(),
        });
        Self::with(out, size.and_then(|_| command(env::var("PAGER").ok().as_deref())), screen)
    }

    fn with(out: &'a mut dyn Write, command: Option<Vec<String>>, screen: PageSize) -> Self {
        Self {
            out,
            command,
            screen,
            held: Vec::new(),
            line_start: 0,
            lines: 0,
            pager: None,
            was_left: false,
        }
    }

    /// Whether the user left the pager before everything was written, which is not a failure.
    pub fn was_left(&self) -> bool {
        self.was_left
    }

    /// Starts the pager with what is held. Without a pager, everything goes to the terminal.
    fn start(&mut self) -> io::Result<()> {
        self.out.flush()?;
        let words = self.command.as_deref().and_then(<[String]>::split_first);
        self.pager = words.and_then(|(program, arguments)| {
            let mut command = Command::new(program);
            let unset = SETTINGS.into_iter().filter(|(name, _)| env::var_os(name).is_none());
            command.envs(unset).args(arguments).stdin(Stdio::piped()).spawn().ok()
        });
        if self.pager.is_none() {
            self.command = None;
        }
        let held = std::mem::take(&mut self.held);
        self.write_all(&held)
    }
}

/// Whether the environment asks for no pager: PAGER is set but empty.
pub fn refuses_pager() -> bool {
    env::var("PAGER").is_ok_and(|pager| command(Some(&pager)).is_none())
}

/// Splits a pager's command line into words; `None` if it is empty.
fn command(pager: Option<&str>) -> Option<Vec<String>> {
    let words: Vec<String> = pager.unwrap_or(USUAL).split_whitespace().map(str::to_owned).collect();
    Some(words).filter(|words| !words.is_empty())
}

impl Write for PagedOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(pager) = &mut self.pager {
            let write = |pager: &mut Child| pager.stdin.as_mut().map(|input| input.write(bytes));
            let written =
                waiting_for(pager, write).unwrap_or_else(|| Err(ErrorKind::BrokenPipe.into()));
            self.was_left |=
                written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
            return written;
        }
        if self.command.is_none() {
            return self.out.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        let rest = self.held.get(self.line_start..).unwrap_or_default();
        let lines = rest.split_inclusive(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| line.strip_suffix(b"\n")) {
            self.line_start += line.len() + 1;
            self.lines += self.screen.lines_of(line);
        }
        if self.lines >= self.screen.lines {
            self.start()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        (self.lines, self.line_start) = (0, 0);
        if let Some(mut pager) = self.pager.take() {
            // Closes the pager's input.
            drop(pager.stdin.take());
            waiting_for(&mut pager, Child::wait)?;
            return Ok(());
        }
        self.out.write_all(&std::mem::take(&mut self.held))?;
        self.out.flush()
    }
}

impl Drop for PagedOutput<'_> {
    /// Shows what an answer wrote before it failed.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: PageSize = PageSize { columns: 20, lines: 3 };

    fn paged(out: &mut Vec<u8>, pager: &str) -> (bool, io::Result<()>) {
        let mut paged = PagedOutput::with(out, command(Some(pager)), SCREEN);
        let written = (0..100_000).try_for_each(|line| writeln!(paged, "{line}"));
        let written = written.and_then(|()| paged.flush());
        (paged.was_left(), written)
    }

    #[test]
    fn an_answer_that_fits_the_screen_is_passed_on_when_it_is_complete() {
        let mut out = Vec::new();
        let mut paged = PagedOutput::with(&mut out, command(None), SCREEN);
        paged.write_all(b"one\ntwo\n").expect("held");
        assert_eq!(paged.held, b"one\ntwo\n");
        paged.flush().expect("written");
        drop(paged);
        assert_eq!(out, b"one\ntwo\n");
    }

    #[test]
    fn a_line_that_is_wider_than_the_screen_counts_as_the_lines_that_it_takes() {
        for (text, lines) in [
            ("\n", 1),
            ("01234567890123456789\n", 1),
            ("0123456789", 0),
            ("01234567890123456789x\n", 2),
            ("日本日本日本日本日本x\n", 2),
            ("\u{1b}[31m01234567890123456789\u{1b}[0m\n", 1),
        ] {
            let mut out = Vec::new();
            let screen = PageSize { lines: 9, ..SCREEN };
            let mut paged = PagedOutput::with(&mut out, command(None), screen);
            // A line may come in pieces.
            text.bytes().for_each(|byte| paged.write_all(&[byte]).expect("held"));
            assert_eq!(paged.lines, lines, "{text:?}");
        }
    }

    #[test]
    fn without_a_pager_that_starts_a_long_answer_is_passed_on() {
        for pager in ["", "no-such-program-of-that-name -x"] {
            let mut out = Vec::new();
            let (was_left, written) = paged(&mut out, pager);
            written.expect("written");
            assert!(!was_left && out.starts_with(b"0\n1\n") && out.ends_with(b"99999\n"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pager_that_is_left_ends_the_answer() {
        let mut out = Vec::new();
        let (was_left, written) = paged(&mut out, "true");
        assert_eq!(written.expect_err("left").kind(), ErrorKind::BrokenPipe);
        assert!(was_left && out.is_empty());
    }
}
