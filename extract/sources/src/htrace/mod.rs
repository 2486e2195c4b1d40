//! Text of a debugger (WinDbg, cdb, ntsd, kd) with the output of `!htrace` or `!handle` → the tables of a trace.
//!
//! Line by line: `grammar` and `frame` read a line of `!htrace`, `handle` one of `!handle`, `parser` puts lines together to entries and steps,
//! `history` steps to one history, in which each event counts once, and `tables` makes objects of it.
//! Data that the text does not have stays unknown: times (there is an order only), types and names of objects without
//! `!handle`, and mostly the programs.

mod differences;
mod frame;
mod grammar;
mod handle;
mod history;
mod output;
mod parser;
#[cfg(test)]
mod session_tests;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod window;

use std::io::{self, Read};
use std::path::Path;

pub use self::grammar::Statement;
pub use self::handle::HandleOutput;
use self::parser::Parser;
use self::tables::Entries;
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary};
use handlescope_model::Cancel;
use handlescope_model::rules::is_exit_function;
use handlescope_model::tables::TraceInfo;

use crate::operations::{Entry, Handles, Tables, event_counts, stack_events};
use crate::text::{Lines, Progress, TextFile, each_line, line_warnings};

/// Beginning of the names of kinds of events.
const SOURCE: &str = "htrace";

/// Reads the text `input` and writes the archive `output`, whose folder must exist.
///
/// # Errors
/// When the text cannot be read or was changed meanwhile, the archive cannot be written, or `cancel` asks to stop.
pub fn extract(
    input: &Path,
    output: &Path,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, ExtractError> {
    let file = TextFile { path: input, observer, cancel };
    file.extract(output, parse, |(entries, findings), source| {
        let rows = entries.history.len();
        if u32::try_from(rows).is_err() {
            return Err(ExtractError::TooLarge { path: input.to_path_buf(), rows });
        }
        Ok(tables(source, entries, findings))
    })
}

/// The entries of the lines of a text.
fn parse(lines: Lines<impl Read>, progress: &Progress<'_>) -> io::Result<(Entries, Diagnostics)> {
    let mut parser = Parser::default();
    each_line(lines, progress, |line| parser.line(line))?;
    let (entries, mut findings) = parser.finish();
    findings.add(WarningKind::LossyText, progress.replaced.get(), None);
    Ok((entries, findings))
}

/// The handles, of which process exit closed those whose stacks say so.
fn handles(entries: &Entries, findings: &mut Diagnostics) -> Handles {
    let history: Vec<&Entry> = entries.history.events().collect();
    let is_exit = |stack| entries.has_function(stack, is_exit_function);
    Handles::of(&history, is_exit, entries.open_list(), findings)
}

/// The tables of the entries; `source` says where they come from.
fn tables(source: TraceInfo, mut entries: Entries, mut findings: Diagnostics) -> Tables {
    let handles = handles(&entries, &mut findings);
    let history: Vec<&Entry> = entries.history.events().collect();
    let event_counts = event_counts(&history, SOURCE);
    let processes = entries.process_table();
    let stack_events = stack_events(&history, &processes.pid);
    let (stacks, modules) = (entries.stack_table(), entries.module_table());
    let info = tables::info(source, &entries);
    let (frames, symbols) = entries.take_frames();
    Tables {
        info,
        processes,
        modules,
        object_types: entries.open.types(),
        names: entries.open.names(),
        handles,
        stacks,
        stack_events,
        frames,
        symbols,
        event_counts,
        warnings: line_warnings(&findings),
        ..Tables::default()
    }
}
