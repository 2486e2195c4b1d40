//! Names of frames, with signs of life while they are fetched.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use handlescope_extract::symbols::{
    CodeAddress, FrameChain, ModuleIdentity, ModuleReport, PdbIdentity, SymbolObserver, Symbolizer,
};
use handlescope_model::Untrusted;
use indicatif::HumanBytes;

use crate::{
    cancel::Cancel,
    query::{FrameNames, SymbolReports},
    terminal::Spinner,
};

/// A symbolizer whose downloads show beside the spinner of the command, and end with it.
pub(crate) struct WatchedSymbols<'a> {
    symbolizer: &'a Symbolizer,
    spinner: Spinner,
    cancel: &'a Cancel,
    /// Downloads so far.
    planned: AtomicUsize,
    ended: AtomicUsize,
}

impl<'a> WatchedSymbols<'a> {
    pub(crate) fn new(symbolizer: &'a Symbolizer, spinner: Spinner, cancel: &'a Cancel) -> Self {
        let (planned, ended) = Default::default();
        WatchedSymbols { symbolizer, spinner, cancel, planned, ended }
    }

    /// Reports the download of one file of many.
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
}

impl SymbolReports for WatchedSymbols<'_> {
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
        self.spinner.show(format!("waiting for another process that downloads {name}"));
    }

    fn progress(&self, pdb: &PdbIdentity, bytes: u64, total: Option<u64>) {
        let of = total.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
        self.show(pdb, &format!(" {}{of}", HumanBytes(bytes)));
    }

    fn finished(&self, pdb: &PdbIdentity) {
        self.ended.fetch_add(1, Relaxed);
        self.show(pdb, "");
    }

    fn resolved(&self, _module: &ModuleIdentity, done: usize, of: usize) {
        self.spinner.show(format!("reading symbols, {done} of {of} modules done"));
    }
}
