//! Where progress is drawn: standard error, with room for what the terminal itself echoes.

use std::io;

use ::console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

use super::neutral;

/// The terminal echoes Ctrl-C as `^C` after the cursor. A line as wide as the window would be pushed up by it, and then
/// could not be cleared.
const ECHO: u16 = 2;

/// Redraws per second.
const RATE: u8 = 20;

/// The terminal of standard error, reported slightly narrower than it is.
#[derive(Debug)]
struct Margin(Term);

/// Returns the terminal of standard error as a target for progress bars.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn draw_target() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Margin(Term::buffered_stderr())), RATE)
}

impl TermLike for Margin {
    fn width(&self) -> u16 {
        // One more, because a cursor after the last column is about to wrap.
        TermLike::width(&self.0).saturating_sub(ECHO + 1).max(1)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(&neutral(text))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // How the progress bar itself returns to the start of the line.
        if text == "\r" { self.0.write_str(text) } else { self.0.write_str(&neutral(text)) }
    }

    delegate! {
        fn move_cursor_up(&self, n: usize) -> io::Result<()>;
        fn move_cursor_down(&self, n: usize) -> io::Result<()>;
        fn move_cursor_right(&self, n: usize) -> io::Result<()>;
        fn move_cursor_left(&self, n: usize) -> io::Result<()>;
        fn clear_line(&self) -> io::Result<()>;
        fn flush(&self) -> io::Result<()>;
    }
}
