//! Storing the names of all frames in an extract, so that it can be read where no symbols are.

use std::path::Path;

use handlescope_extract::{is_for_etwanalyzer, symbols::Symbolizer};
use handlescope_model::{Table, Trace, replace_table};

use super::WatchedSymbols;
use crate::{cancel::Cancel, commands::CommandError, query::{AllNames, Source, all_names}, save::save_for_etwanalyzer, terminal::Messages, trace::FrameNameCache};

/// What names are found with.
#[derive(Clone, Copy)]
pub(crate) struct NameSearch<'a> {
    /// The names that are known already.
    pub(crate) frames: &'a FrameNameCache,
    /// Who finds the others.
    pub(crate) symbolizer: &'a Symbolizer,
    /// What ends the search.
    pub(crate) cancel: &'a Cancel,
}

/// Finds the names of all frames of a trace, writes them into its extract and says so in a line.
/// Without any name the extract stays as it is. What ETWAnalyzer reads of it tells the names, too.
///
/// # Errors
/// When the extract cannot be read or written, or it was cancelled; then it stays as it was.
pub(crate) fn store_names(
    trace: &Trace,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    let path = trace.path();
    if is_for_etwanalyzer(trace) {
        return save_for_etwanalyzer(trace, path, search, messages);
    }
    let AllNames { named, frames, table } = found_names(trace, search, messages)?;
    if named > 0 {
        replace_table(path, Table::Symbols, table.into_frame(), &trace.limits().container)?;
    }
    Ok(line(path, named, frames))
}

/// Finds the names of all frames of a trace.
///
/// # Errors
/// When the trace cannot be read, or it was cancelled.
pub(crate) fn found_names(
    trace: &Trace,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<AllNames, CommandError> {
    let NameSearch { frames, symbolizer, cancel } = search;
    messages.wait("searching");
    let spinner = messages.spinner();
    let names = WatchedSymbols::new(symbolizer, spinner.clone(), cancel);
    let all = all_names(&Source { path: trace.path(), index: 0, trace, frames }, &names, cancel);
    spinner.stop();
    Ok(all?)
}

fn line(path: &Path, named: usize, frames: usize) -> String {
    let path = path.display();
    match named {
        0 => format!("{path}: none of {frames} frames has a name, so nothing was stored"),
        _ => format!("{path}: {named} of {frames} frames have names, stored"),
    }
}
