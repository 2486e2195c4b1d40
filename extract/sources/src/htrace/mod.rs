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
use std::rc::Rc;
use std::time::Instant;

pub use self::grammar::Statement;
pub use self::handle::HandleOutput;
use self::parser::Parser;
use self::tables::Entries;
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary, SourceIdentity};
use handlescope_model::rules::is_exit_function;
use handlescope_model::{ArchiveWriter, Cancel, open_file};

use crate::operations::{Entry, Handles, Tables, event_counts, stack_events};
use crate::text::{Lines, Progress, each_line, line_warnings, lines, opened, unreadable};

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
    let begin = Instant::now();
    let identity = SourceIdentity::of(input).map_err(|source| opened(input, source))?;
    observer.on_started(identity.size);
    let (entries, findings) = read(input, observer, cancel)?;
    if SourceIdentity::of(input).map_err(|source| opened(input, source))? != identity {
        return Err(ExtractError::Changed { path: input.to_path_buf() });
    }
    let rows = entries.history.len();
    if u32::try_from(rows).is_err() {
        return Err(ExtractError::TooLarge { path: input.to_path_buf(), rows });
    }
    observer.on_phase("writing");
    let writer = ArchiveWriter::create(output)?.stopped_by(cancel);
    let summary = write(writer, input, &identity, entries, findings);
    // Tables that were not written because of it report another error.
    let summary = summary.map_err(|error| cancel.check().err().map_or(error, Into::into))?;
    Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
}

/// The entries of a text, and its anomalies by line.
fn read(
    input: &Path,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<(Entries, Diagnostics), ExtractError> {
    let progress = Rc::new(Progress::new(observer, cancel));
    let unreadable = |source| unreadable(input, source, cancel);
    let file = open_file(input).map_err(|source| opened(input, source))?;
    let lines = lines(file, &progress).map_err(unreadable)?;
    parse(lines, &progress).map_err(unreadable)
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

fn write(
    writer: ArchiveWriter,
    input: &Path,
    identity: &SourceIdentity,
    mut entries: Entries,
    mut findings: Diagnostics,
) -> Result<ExtractSummary, ExtractError> {
    let handles = handles(&entries, &mut findings);
    let history: Vec<&Entry> = entries.history.events().collect();
    let event_counts = event_counts(&history, SOURCE);
    let processes = entries.process_table();
    let stack_events = stack_events(&history, &processes.pid);
    let (stacks, modules) = (entries.stack_table(), entries.module_table());
    let info = tables::info(input, identity, &entries);
    let (frames, symbols) = entries.take_frames();
    let tables = Tables {
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
    };
    tables.write(writer)
}
