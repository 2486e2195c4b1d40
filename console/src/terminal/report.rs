//! What is printed beside commands: by the reader of the command line, and when the program panics.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::{self, Write};

use ::console::strip_ansi_codes;
use handlescope_model::{Untrusted, guard, is_harmful};

use super::{Neutral, Screen, standard};

/// Prints what clap says: help to standard output, errors to standard error.
///
/// # Errors
/// When it cannot be written.
pub fn print_usage(message: &clap::Error, screen: Screen) -> io::Result<()> {
    let mut text = message.render().ansi().to_string();
    // What it repeats of the command line may break lines, too.
    for word in std::env::args_os().map(|word| word.to_string_lossy().into_owned()) {
        for part in [Some(&*word), word.split_once('=').map(|(_, value)| value)] {
            let Some(part) = part.filter(|part| part.contains(is_harmful)) else { continue };
            text = text.replace(part, &Untrusted(part).to_string());
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

/// Lets panics be reported as ever, but with nothing in the report that a terminal would obey.
pub fn report_panics() {
    guard::report_panics(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = Backtrace::capture();
        let trace = Some(trace).filter(|trace| trace.status() == BacktraceStatus::Captured);
        let trace = trace.map_or_else(String::new, |trace| format!("{trace}\n"));
        let text = format!("\nthread '{name}' {panic}\n{trace}");
        // An error cannot be reported any more.
        let _ = Neutral::terminal(standard::error(), true).write_all(text.as_bytes());
    });
}
