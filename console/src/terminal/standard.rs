//! Standard output and standard error. Nobody else opens them (`clippy.toml` sees to that), so that all that
//! is printed goes through what this folder has: results through [`Neutral`](super::Neutral), messages
//! through [`Messages`](super::Messages).

use std::io::{self, Stderr, Stdout};

/// Standard output.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn out() -> Stdout {
    io::stdout()
}

/// Standard error.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn error() -> Stderr {
    io::stderr()
}
