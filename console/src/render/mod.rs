//! Answers as text for people and as JSON for programs.

mod json;
mod text;
mod time;

use std::io::{self, BufWriter, Write};

use crate::command::{JsonMode, ModuleArgs, ObjectRefArgs, ProcessArgs, StatsArgs};
use crate::query::{ModuleAnswer, ObjectRefAnswer, ProcessAnswer, StatsAnswer};
use crate::screen::Screen;

/// Answers gather here before they go out.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes the answer to `.dump ObjectRef`.
///
/// # Errors
/// When `out` cannot be written.
pub fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefArgs,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    match args.json {
        JsonMode::Off => text::object_ref(answer, args, screen, &mut out)?,
        mode => json::object_ref(answer, args, mode, &mut out)?,
    }
    out.flush()
}

/// Writes the answer to `.dump Process`.
///
/// # Errors
/// When `out` cannot be written.
pub fn processes(
    answers: &[ProcessAnswer<'_>],
    args: &ProcessArgs,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    match args.json {
        JsonMode::Off => text::processes(answers, screen, &mut out)?,
        mode => json::processes(answers, mode, &mut out)?,
    }
    out.flush()
}

/// Writes the answer to `.dump Module`.
///
/// # Errors
/// When `out` cannot be written.
pub fn modules(
    answers: &[ModuleAnswer<'_>],
    args: &ModuleArgs,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    match args.json {
        JsonMode::Off => text::modules(answers, screen, &mut out)?,
        mode => json::modules(answers, mode, &mut out)?,
    }
    out.flush()
}

/// Writes the answer to `.dump Stats`.
///
/// # Errors
/// When `out` cannot be written.
pub fn stats(
    answers: &[StatsAnswer<'_>],
    args: &StatsArgs,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    match args.json {
        JsonMode::Off => text::stats(answers, screen, &mut out)?,
        mode => json::stats(answers, mode, &mut out)?,
    }
    out.flush()
}

#[cfg(test)]
mod tests;
