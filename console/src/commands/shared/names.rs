//! Finding the names of all frames of a trace and storing them, so that an extract can be read where
//! no symbols are.

use std::path::Path;

use handlescope_extract::{
    ExtractObserver, SaveOptions, is_for_etwanalyzer, save, symbols::Symbolizer,
};
use handlescope_model::{Table, Trace, Untrusted, replace_table};
use indicatif::HumanBytes;

use super::watched_symbols::WatchedSymbols;
use crate::{
    cancel::Cancel,
    commands::error::CommandError,
    query::{AllNames, all_names},
    terminal::{Messages, Spinner},
    trace::{FrameNameCache, is_still_loaded},
};

/// What names are found with.
#[derive(Clone, Copy)]
pub(crate) struct NameSearch<'a> {
    /// The names that are known already.
    pub(crate) frames: &'a FrameNameCache,
    /// What finds the others.
    pub(crate) symbolizer: &'a Symbolizer,
    /// What ends the search.
    pub(crate) cancel: &'a Cancel,
}

/// Finds the names of all frames of a trace, writes them into its extract and says so in a line.
/// Without any name the extract stays as it is. What ETWAnalyzer reads of it has the names, too.
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
        if !is_still_loaded(trace)? {
            return Err(CommandError::ExtractReplaced { path: path.to_path_buf() });
        }
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
    let all = all_names(trace, frames, &names, cancel);
    spinner.stop();
    Ok(all?)
}

fn line(path: &Path, named: usize, frames: usize) -> String {
    let path = Untrusted(path);
    match named {
        0 => format!("{path}: none of {frames} frames has a name, so nothing was stored"),
        _ => format!("{path}: {named} of {frames} frames have names, stored"),
    }
}

/// Writes a trace as an archive that ETWAnalyzer reads, too, with the names of all frames that can be
/// found; returns a line about it.
///
/// # Errors
/// When the trace cannot be read or the archive not be written, or it was cancelled; then what was
/// there stays as it was.
pub(crate) fn save_for_etwanalyzer(
    trace: &Trace,
    output: &Path,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    let AllNames { named, frames, table } = found_names(trace, search, messages)?;
    let names = (named > 0).then_some(table);
    let options = SaveOptions { names, etwanalyzer: true };
    let size = write_archive(trace, output, options, search.cancel, messages)?;
    let (path, size) = (Untrusted(output), HumanBytes(size));
    Ok(format!("{path}: {size} with ETWAnalyzer's members, {named} of {frames} frames have names"))
}

pub(crate) fn write_archive(
    trace: &Trace,
    output: &Path,
    options: SaveOptions,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<u64, CommandError> {
    messages.wait("saving");
    let spinner = messages.spinner();
    let written = save(trace, output, options, &Watch(&spinner), cancel);
    spinner.stop();
    Ok(written?)
}

/// Shows beside the spinner what is written, and ends with the command.
struct Watch<'a>(&'a Spinner);

impl ExtractObserver for Watch<'_> {
    fn on_phase(&self, name: &str) {
        self.0.show(format!("writing {}", Untrusted(name)));
    }
}
