//! Finds names of frames and shows progress meanwhile. Also finds the names of all frames of a trace and stores them,
//! so that an extract can be read where there are no symbols.

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use handlescope_extract::ExtractObserver;
use handlescope_model::{Table, Trace, Untrusted, replace_table};
use handlescope_sources::{SaveOptions, is_for_etwanalyzer, save};
use handlescope_symbols::{
    CodeAddress, FrameChain, ModuleIdentity, ModuleReport, PdbIdentity, SymbolObserver, Symbolizer,
};
use indicatif::HumanBytes;

use crate::error::CommandError;
use handlescope_query::{AllNames, FrameNames, all_names};
use handlescope_session::cancel::Cancel;
use handlescope_session::terminal::{Messages, Spinner};
use handlescope_session::trace::{FrameNameCache, is_still_loaded};

/// A symbolizer that shows its downloads next to the command's spinner, and stops with the command.
pub struct WatchedSymbols<'a> {
    symbolizer: &'a Symbolizer,
    spinner: Spinner,
    cancel: &'a Cancel,
    /// Number of downloads so far.
    planned: AtomicUsize,
    ended: AtomicUsize,
}

impl<'a> WatchedSymbols<'a> {
    pub fn new(symbolizer: &'a Symbolizer, spinner: Spinner, cancel: &'a Cancel) -> Self {
        let (planned, ended) = Default::default();
        WatchedSymbols { symbolizer, spinner, cancel, planned, ended }
    }

    /// Shows the download of one of several files.
    fn show(&self, pdb: &PdbIdentity, size: &str) {
        let (planned, ended) = (self.planned.load(Relaxed), self.ended.load(Relaxed));
        let name = Untrusted(pdb.file_name());
        self.spinner.show(format!("downloading symbols, {ended} of {planned} done: {name}{size}"));
    }
}

impl FrameNames for WatchedSymbols<'_> {
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<CodeAddress>)]) -> Vec<Vec<FrameChain>> {
        self.symbolizer.resolve_all(requests, self, self.cancel)
    }

    fn reports(&self) -> Vec<ModuleReport> {
        self.symbolizer.report()
    }
}

impl SymbolObserver for WatchedSymbols<'_> {
    fn planned(&self, files: usize) {
        self.planned.fetch_add(files, Relaxed);
    }

    fn started(&self, pdb: &PdbIdentity) {
        self.show(pdb, "");
    }

    fn waiting(&self, pdb: &PdbIdentity) {
        let name = Untrusted(pdb.file_name());
        self.spinner.show(format!("waiting for another process to download {name}"));
    }

    fn progress(&self, pdb: &PdbIdentity, bytes: u64, total: Option<u64>) {
        let total_text =
            total.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
        self.show(pdb, &format!(" {}{total_text}", HumanBytes(bytes)));
    }

    fn finished(&self, pdb: &PdbIdentity) {
        self.ended.fetch_add(1, Relaxed);
        self.show(pdb, "");
    }

    fn resolved(&self, _module: &ModuleIdentity, done: usize, total: usize) {
        self.spinner.show(format!("reading symbols, {done} of {total} modules done"));
    }
}

/// Everything needed to search for names.
#[derive(Clone, Copy)]
pub struct NameSearch<'a> {
    /// The names that are already known.
    pub frames: &'a FrameNameCache,
    /// Finds the other names.
    pub symbolizer: &'a Symbolizer,
    /// Stops the search.
    pub cancel: &'a Cancel,
}

/// Finds the names of all frames of a trace, writes them into its extract, and returns a line about it. Without any
/// name the extract stays unchanged. The part that ETWAnalyzer reads gets the names, too.
///
/// # Errors
/// If the extract cannot be read or written, or it was cancelled; the extract is then unchanged.
pub fn store_names(
    trace: &Trace,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    let path = trace.path();
    if is_for_etwanalyzer(trace) {
        return save_for_etwanalyzer(trace, path, search, messages);
    }
    let AllNames { named, frames, table } = find_names(trace, search, messages)?;
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
/// If the trace cannot be read, or it was cancelled.
fn find_names(
    trace: &Trace,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<AllNames, CommandError> {
    let NameSearch { frames, symbolizer, cancel } = search;
    messages.wait("searching");
    let spinner = messages.spinner();
    let symbols = WatchedSymbols::new(symbolizer, spinner.clone(), cancel);
    let names = all_names(trace, frames, &symbols, cancel);
    spinner.stop();
    Ok(names?)
}

fn line(path: &Path, named: usize, frames: usize) -> String {
    let path = Untrusted(path);
    match named {
        0 => format!("{path}: none of {frames} frames has a name, so nothing was stored"),
        _ => format!("{path}: {named} of {frames} frames have names, stored"),
    }
}

/// Writes a trace as an archive that ETWAnalyzer can also read, with the names of all frames that can be found; returns
/// a line about it.
///
/// # Errors
/// If the trace cannot be read or the archive cannot be written, or it was cancelled; an existing file is then
/// unchanged.
pub fn save_for_etwanalyzer(
    trace: &Trace,
    output: &Path,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    let AllNames { named, frames, table } = find_names(trace, search, messages)?;
    let names = (named > 0).then_some(table);
    let options = SaveOptions { names, etwanalyzer: true };
    let size = write_archive(trace, output, options, search.cancel, messages)?;
    let (path, size) = (Untrusted(output), HumanBytes(size));
    Ok(format!("{path}: {size} with ETWAnalyzer's members, {named} of {frames} frames have names"))
}

pub fn write_archive(
    trace: &Trace,
    output: &Path,
    options: SaveOptions,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<u64, CommandError> {
    messages.wait("saving");
    let spinner = messages.spinner();
    let written = save(trace, output, options, &ExtractProgress(&spinner), cancel);
    spinner.stop();
    Ok(written?)
}

/// Shows what is being written next to the spinner, and stops with the command.
struct ExtractProgress<'a>(&'a Spinner);

impl ExtractObserver for ExtractProgress<'_> {
    fn on_phase(&self, name: &str) {
        self.0.show(format!("writing {}", Untrusted(name)));
    }
}
