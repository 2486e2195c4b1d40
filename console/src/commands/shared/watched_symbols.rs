//! Names of frames, with signs of life while they are fetched.

use std::sync::{Mutex, MutexGuard};

use handlescope_extract::symbols::{
    FrameChain, ModuleIdentity, ModuleReport, PdbIdentity, SymbolObserver, Symbolizer,
};
use handlescope_model::guard::lock;
use indicatif::HumanBytes;

use crate::{
    cancel::Cancel,
    query::{FrameNames, SymbolReports},
    terminal::{Clean, Spinner},
};

/// A symbolizer whose downloads show beside the spinner of the command, and end with it.
pub(crate) struct WatchedSymbols<'a> {
    symbolizer: &'a Symbolizer,
    spinner: Spinner,
    cancel: &'a Cancel,
    downloads: Mutex<Downloads>,
}

/// How far the downloads are.
#[derive(Default)]
struct Downloads {
    planned: usize,
    ended: usize,
}

impl<'a> WatchedSymbols<'a> {
    pub(crate) fn new(symbolizer: &'a Symbolizer, spinner: Spinner, cancel: &'a Cancel) -> Self {
        WatchedSymbols { symbolizer, spinner, cancel, downloads: Mutex::default() }
    }

    fn downloads(&self) -> MutexGuard<'_, Downloads> {
        lock(&self.downloads)
    }

    /// Tells about the download of one file of many.
    fn show(&self, pdb: &PdbIdentity, size: &str) {
        let Downloads { planned, ended } = *self.downloads();
        let name = Clean(pdb.file_name());
        self.spinner.show(format!("downloading symbols, {ended} of {planned} done: {name}{size}"));
    }
}

impl FrameNames for WatchedSymbols<'_> {
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<u64>)]) -> Vec<Vec<FrameChain>> {
        self.symbolizer.resolve_all(requests, self, self.cancel)
    }
}

impl SymbolReports for WatchedSymbols<'_> {
    fn reports(&self) -> Vec<ModuleReport> {
        self.symbolizer.report()
    }
}

impl SymbolObserver for WatchedSymbols<'_> {
    fn planned(&self, files: usize) {
        self.downloads().planned += files;
    }

    fn started(&self, pdb: &PdbIdentity) {
        self.show(pdb, "");
    }

    fn progress(&self, pdb: &PdbIdentity, bytes: u64, total: Option<u64>) {
        let of = total.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
        self.show(pdb, &format!(" {}{of}", HumanBytes(bytes)));
    }

    fn finished(&self, pdb: &PdbIdentity) {
        self.downloads().ended += 1;
        self.show(pdb, "");
    }

    fn resolved(&self, _module: &ModuleIdentity, done: usize, of: usize) {
        self.spinner.show(format!("reading symbols, {done} of {of} modules done"));
    }
}
