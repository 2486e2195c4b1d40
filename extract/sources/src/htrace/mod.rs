//! Text of a debugger (WinDbg, cdb, ntsd, kd) with the output of `!htrace` → the tables of a trace.
//!
//! Line by line: `grammar` and `frame` read a line, `parser` puts lines together to entries and steps,
//! `history` steps to one history, in which each event counts once, and `tables` makes objects of it.
//! Data that the text does not have stays unknown: times (there is an order only), types and names of objects, and
//! mostly the programs.

mod differences;
mod frame;
mod grammar;
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

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use self::grammar::Statement;
use self::parser::Parser;
use self::tables::Entries;
use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::{
    ExtractError, ExtractObserver, ExtractSummary, NoObserver, SourceIdentity,
};
use handlescope_model::rules::is_exit_function;
use handlescope_model::{ArchiveWriter, Cancel, open_file};

use crate::operations::{Entry, Handles, Tables, event_counts, stack_events};
use crate::text::{Lines, Progress, may_be_text, utf8};

/// Beginning of the names of kinds of events.
const SOURCE: &str = "htrace";

/// Bytes at the start by which a text is recognized.
const START: u64 = 1 << 10;

/// Lines after which a request to stop is looked for.
const LINES_PER_CHECK: u64 = 1 << 10;

/// Whether a file is a text with an entry of `!htrace`, or with the word that `-diff` has none. A text without either is
/// read to its end.
///
/// # Errors
/// When it cannot be read, or `cancel` asks to stop.
pub fn is_htrace(path: &Path, cancel: &Cancel) -> Result<bool, ExtractError> {
    let file = open_file(path).map_err(|source| opened(path, source))?;
    has_output(file, cancel).map_err(|source| unreadable(path, source, cancel))
}

fn has_output(mut file: File, cancel: &Cancel) -> io::Result<bool> {
    let mut start = Vec::new();
    (&mut file).take(START).read_to_end(&mut start)?;
    if !may_be_text(&start) {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(0))?;
    let progress = Rc::new(Progress::new(&NoObserver, cancel));
    let mut lines = Lines::new(utf8(file, Rc::clone(&progress))?);
    while let Some((line, _)) = lines.next()? {
        let statement = Statement::parse(&line.text);
        if matches!(statement, Some(Statement::Entry { .. } | Statement::SincePrevious { .. })) {
            return Ok(true);
        }
        if line.number.is_multiple_of(LINES_PER_CHECK) {
            progress.check()?;
        }
    }
    Ok(false)
}

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

fn opened(path: &Path, source: io::Error) -> ExtractError {
    ExtractError::Open { path: path.to_path_buf(), source }
}

/// A text that could not be read completely.
fn unreadable(path: &Path, source: io::Error, cancel: &Cancel) -> ExtractError {
    match cancel.check() {
        Err(cancelled) => ExtractError::Cancelled(cancelled),
        Ok(()) => ExtractError::Read { path: path.to_path_buf(), source },
    }
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
    let text = utf8(file, Rc::clone(&progress)).map_err(unreadable)?;
    parse(text, &progress).map_err(unreadable)
}

/// The entries of a text in UTF-8.
fn parse(text: impl Read, progress: &Progress<'_>) -> io::Result<(Entries, Diagnostics)> {
    let mut lines = Lines::new(text);
    let mut parser = Parser::default();
    let mut bytes = 0;
    while let Some((line, length)) = lines.next()? {
        parser.line(&line);
        bytes += length;
        if line.number.is_multiple_of(LINES_PER_CHECK) {
            progress.check()?;
            progress.add(std::mem::take(&mut bytes));
        }
    }
    progress.add(bytes);
    let (entries, mut findings) = parser.finish();
    findings.add(WarningKind::LossyText, progress.replaced.get(), None);
    Ok((entries, findings))
}

/// The handles, of which process exit closed those whose stacks say so.
fn handles(entries: &Entries, findings: &mut Diagnostics) -> Handles {
    let history: Vec<&Entry> = entries.history.events().collect();
    Handles::of(&history, |stack| entries.has_function(stack, is_exit_function), None, findings)
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
        handles,
        stacks,
        stack_events,
        frames,
        symbols,
        event_counts,
        warnings: tables::warnings(&findings),
        ..Tables::default()
    };
    tables.write(writer)
}
