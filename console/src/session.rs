//! What a session knows: the loaded traces, and where symbols come from.

use std::{
    path::{PathBuf, absolute},
    sync::{Arc, OnceLock},
};

use handlescope_extract::symbols::{SymbolPath, Symbolizer, SymbolizerOptions};
use handlescope_model::Trace;

use crate::{query::FrameMemory, repl::TraceValues, settings::Settings};

/// A loaded trace.
pub struct LoadedTrace {
    /// The file as it was named: an extract, or the trace that was extracted.
    pub path: PathBuf,
    /// Its tables.
    pub trace: Arc<Trace>,
    /// The names of its frames that were found so far.
    pub frames: FrameMemory,
    /// What it offers for completion.
    pub values: Arc<TraceValues>,
}

impl LoadedTrace {
    /// A trace of which nothing was asked yet.
    pub fn new(path: PathBuf, trace: Trace) -> LoadedTrace {
        let trace = Arc::new(trace);
        let values = Arc::new(TraceValues::new(Arc::clone(&trace)));
        LoadedTrace { path, trace, frames: FrameMemory::default(), values }
    }
}

/// The state between two commands.
#[derive(Default)]
pub struct Session {
    /// How it prints.
    pub settings: Settings,
    files: Vec<LoadedTrace>,
    symbol_path: Option<String>,
    symbolizer: OnceLock<Symbolizer>,
}

impl Session {
    /// A session without traces. Without a symbol path, that of the environment counts.
    pub fn new(symbol_path: Option<String>) -> Session {
        Session { symbol_path, ..Session::default() }
    }

    /// The loaded traces, in the order they were named. The index is the file number of the output.
    pub fn files(&self) -> &[LoadedTrace] {
        &self.files
    }

    /// Replaces the loaded traces.
    pub fn load(&mut self, files: Vec<LoadedTrace>) {
        self.files = files;
    }

    /// Adds traces behind those that are loaded.
    pub fn add(&mut self, mut files: Vec<LoadedTrace>) {
        self.files.append(&mut files);
    }

    /// Makes the paths of loaded traces independent of the current folder, which is about to change.
    pub fn settle_paths(&mut self) {
        for file in &mut self.files {
            if let Ok(absolute) = absolute(&file.path) {
                file.path = absolute;
            }
        }
    }

    /// Forgets the traces for which `wanted` is false.
    pub fn retain(&mut self, wanted: impl FnMut(&LoadedTrace) -> bool) {
        self.files.retain(wanted);
    }

    /// Where symbols are looked for: what was set here, else `_NT_SYMBOL_PATH`, else nowhere.
    pub fn symbol_path(&self) -> SymbolPath {
        match &self.symbol_path {
            Some(path) => SymbolPath::parse(path),
            None => SymbolPath::from_environment().unwrap_or_default(),
        }
    }

    /// Sets where symbols are looked for, and forgets what was found so far.
    pub fn set_symbol_path(&mut self, path: String) {
        self.symbol_path = Some(path);
        self.symbolizer = OnceLock::new();
        for file in &mut self.files {
            file.frames = FrameMemory::default();
        }
    }

    /// What resolves addresses to names. Made when first needed, and kept: it remembers what it
    /// found.
    pub fn symbolizer(&self) -> &Symbolizer {
        self.symbolizer
            .get_or_init(|| Symbolizer::new(self.symbol_path(), SymbolizerOptions::default()))
    }

    /// The symbolizer, if anything has asked for it.
    pub fn used_symbolizer(&self) -> Option<&Symbolizer> {
        self.symbolizer.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_was_set_wins_and_starts_a_new_symbolizer() {
        let mut session = Session::new(Some("a".into()));
        assert_eq!(session.symbolizer().path().to_string(), "a");
        session.set_symbol_path("b;c".into());
        assert!(session.used_symbolizer().is_none());
        assert_eq!(session.symbolizer().path().to_string(), "b;c");
    }
}
