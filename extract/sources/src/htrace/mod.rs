//! Reads the output of `!htrace` or `!handle` in a debugger's text (WinDbg, cdb, ntsd, kd) into the tables of a trace.
//!
//! `grammar` and `frame` parse a line of `!htrace`, and `handle` one of `!handle`. `parser` combines lines into entries
//! and steps, `history` combines steps into one history where each event counts once, and `tables` makes objects from
//! it.
//! Data missing from the text stays unknown: times (only the order is known), types and names of objects without
//! `!handle`, and usually the programs.

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
use self::parser::HtraceParser;
use self::tables::Entries;
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary};
use handlescope_model::Cancel;
use handlescope_model::rules::is_exit_function;
use handlescope_model::tables::TraceInfo;

use crate::operations::{
    OperationEntry, OperationHandles, OperationTables, event_counts, stack_events,
};
use crate::text::{Lines, ReadProgress, TextFile, each_line, line_warnings};

/// Prefix of the names of event kinds.
const SOURCE: &str = "htrace";

/// Reads the text `input` and writes the archive `output`, whose folder must exist.
///
/// # Errors
/// If the text cannot be read or changed meanwhile, the archive cannot be written, or `cancel` is set.
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

/// Parses the lines of a text into entries.
fn parse(
    lines: Lines<impl Read>,
    progress: &ReadProgress<'_>,
) -> io::Result<(Entries, Diagnostics)> {
    let mut parser = HtraceParser::default();
    each_line(lines, progress, |line| parser.line(line))?;
    let (entries, mut findings) = parser.finish();
    findings.add(WarningKind::LossyText, progress.replaced.get(), None);
    Ok((entries, findings))
}

/// Returns the handles. A close counts as process exit if its stack shows that.
fn handles(entries: &Entries, findings: &mut Diagnostics) -> OperationHandles {
    let history: Vec<&OperationEntry> = entries.history.events().collect();
    let is_exit = |stack| entries.has_function(stack, is_exit_function);
    OperationHandles::new(&history, is_exit, entries.open_list(), findings)
}

/// Returns the tables of the entries; `source` tells where they come from.
fn tables(source: TraceInfo, mut entries: Entries, mut findings: Diagnostics) -> OperationTables {
    let handles = handles(&entries, &mut findings);
    let history: Vec<&OperationEntry> = entries.history.events().collect();
    let event_counts = event_counts(&history, SOURCE);
    let processes = entries.process_table();
    let stack_events = stack_events(&history, &processes.pid);
    let (stacks, modules) = (entries.stack_table(), entries.module_table());
    let info = tables::info(source, &entries);
    let (frames, symbols) = entries.take_frames();
    OperationTables {
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
        ..OperationTables::default()
    }
}
