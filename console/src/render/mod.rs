//! Answers as text for people, and as JSON and CSV for programs.

mod csv;
mod json;
pub(crate) mod rows;
mod style;
mod text;
pub(crate) mod time;

pub use self::style::{ObjectRefStyle, SqlFormat};

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;

use crate::cancel::Cancel;
use crate::query::StackCriteria;
use crate::query::{
    ModuleAnswer, ObjectRefAnswer, ProcessAnswer, StacksAnswer, StatsAnswer, SymbolsAnswer,
};
use crate::settings::Display;
use crate::terminal::clip::Clip;
use crate::values::JsonMode;

/// Answers gather here before they go out.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes the answer to `.dump ObjectRef`.
///
/// # Errors
/// When `out` cannot be written.
pub fn object_ref(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::object_ref(answer, args, display, &mut out)?,
        mode => json::object_ref(answer, args, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the events of the answer to `.dump ObjectRef` into a CSV file, and returns its whole path.
///
/// # Errors
/// When the file cannot be written. Then an existing one stays as it was.
pub fn csv(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    display: &Display,
    path: &Path,
) -> io::Result<PathBuf> {
    csv::write(answer, args, display, path)
}

/// Writes the answer to `.dump Process`.
///
/// # Errors
/// When `out` cannot be written.
pub fn processes(
    answers: &[ProcessAnswer<'_>],
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::processes(answers, display, &mut out)?,
        mode => json::processes(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.dump Module`.
///
/// # Errors
/// When `out` cannot be written.
pub fn modules(
    answers: &[ModuleAnswer<'_>],
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::modules(answers, display, &mut out)?,
        mode => json::modules(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.dump Version`.
///
/// # Errors
/// When `out` cannot be written.
pub fn versions(
    answers: &[ModuleAnswer<'_>],
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::versions(answers, display, &mut out)?,
        mode => json::modules(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.dump Symbols`.
///
/// # Errors
/// When `out` cannot be written.
pub fn symbols(
    answers: &[SymbolsAnswer<'_>],
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::symbols(answers, display, &mut out)?,
        mode => json::symbols(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.dump Stack`.
///
/// # Errors
/// When `out` cannot be written.
pub fn call_stacks(
    answers: &[StacksAnswer<'_>],
    criteria: &StackCriteria,
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::call_stacks(answers, criteria, display, &mut out)?,
        mode => json::call_stacks(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.dump Stats`.
///
/// # Errors
/// When `out` cannot be written.
pub fn stats(
    answers: &[StatsAnswer<'_>],
    mode: JsonMode,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = output(display, mode, out);
    match mode {
        JsonMode::Off => text::stats(answers, display, &mut out)?,
        mode => json::stats(answers, mode, &mut out)?,
    }
    out.finish()
}

/// Writes the answer to `.sql`, and returns how many of its rows are left out, which only text does.
///
/// # Errors
/// When `out` cannot be written, or `cancel` asks to stop.
pub fn sql(
    answer: &DataFrame,
    format: SqlFormat,
    command: &str,
    display: &Display,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> io::Result<usize> {
    // A table fits the screen as it is made.
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let mut left_out = 0;
    match format {
        SqlFormat::Text => left_out = text::frame(answer, display, &mut out)?,
        SqlFormat::Json(mode) => json::frame(answer, command, mode, &mut out)?,
        SqlFormat::Csv => rows::csv(answer, cancel, &mut out)?,
    }
    out.flush()?;
    Ok(left_out)
}

/// Where an answer goes: text is cut to the width of the screen if it is to be, JSON never.
fn output<'a>(
    display: &Display,
    json: JsonMode,
    out: &'a mut dyn Write,
) -> Clip<BufWriter<&'a mut dyn Write>> {
    let width = display.screen.width.filter(|_| display.clip && json == JsonMode::Off);
    Clip::new(BufWriter::with_capacity(BUFFER_BYTES, out), width)
}

#[cfg(test)]
mod tests;
