//! What a session knows: the loaded traces, and where symbols come from.

use std::{
    collections::HashSet,
    path::{Path, PathBuf, absolute},
    sync::OnceLock,
};

use handlescope_extract::import_sources;
use handlescope_extract::symbols::{
    ModuleIdentity, SymbolPath, Symbolizer, SymbolizerOptions, symbols_beside,
};
use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, TableRows, Trace, Untrusted};

use super::{frame_name_cache::FrameNameCache, loaded::LoadedTrace, symbol_notes::SymbolNotes};
use crate::{
    paths::Overwrite,
    settings::{Settings, settled},
    terminal::Messages,
};

/// The state between two commands.
#[derive(Default)]
pub struct Session {
    /// How it prints, and where symbols are looked for.
    pub settings: Settings,
    /// The loaded traces, in the order they were recorded ([`Session::sort_files`]). The index is the file
    /// number of the output.
    pub files: Vec<LoadedTrace>,
    /// A trace that is shown while it is replayed, by tables that lie elsewhere: its symbols are searched as those of a
    /// loaded one.
    pub replayed: Option<PathBuf>,
    /// `--force`: outputs replace files that this program has not written.
    pub force: bool,
    /// How symbols are searched for, from the first search on.
    pub symbol_options: SymbolizerOptions,
    symbolizer: OnceLock<Symbolizer>,
    symbol_notes: SymbolNotes,
}

impl Session {
    /// A session without traces.
    pub fn new(settings: Settings) -> Session {
        Session { settings, ..Session::default() }
    }

    /// Searches for symbols also where they were saved with the loaded traces; to be called when other traces
    /// are loaded.
    pub fn search_beside_files(&mut self) {
        self.search_beside(&[]);
    }

    /// Searches for symbols also where they were saved with loaded and other traces.
    pub(crate) fn search_beside(&mut self, others: &[PathBuf]) {
        // Whatever the current folder will be.
        let path = |path: &PathBuf| absolute(path).unwrap_or_else(|_| path.clone());
        let loaded = self.files.iter().map(|file| &file.path);
        let mut beside: Vec<_> = loaded
            .chain(&self.replayed)
            .chain(others)
            .flat_map(|trace| symbols_beside(&path(trace)))
            .collect();
        let mut seen = HashSet::new();
        beside.retain(|place| seen.insert(place.clone()));
        if beside != self.symbol_options.beside {
            self.symbol_options.beside = beside;
            self.forget_symbols();
        }
    }

    /// Puts the traces into the order they were recorded, those without a time first.
    pub fn sort_files(&mut self) {
        self.files.sort_by_cached_key(|file| {
            let info = TraceInfos::read(&*file.trace).ok()?.row(0)?;
            let from_ns = info.recorded_ns().map_or(0, |time| *time.start());
            Some(info.session_start_filetime.saturating_add(from_ns / 100))
        });
    }

    /// Reads an extract again that has changed on disk.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn reload(&mut self, index: usize) -> Result<(), ArchiveError> {
        if let Some(file) = self.files.get_mut(index) {
            let trace = Trace::open_within(file.trace.path(), file.trace.limits())?;
            let (path, temporary) = (std::mem::take(&mut file.path), file.temporary.take());
            let snapshots = std::mem::take(&mut file.snapshots);
            *file = LoadedTrace { snapshots, temporary, ..LoadedTrace::new(path, trace) };
        }
        Ok(())
    }

    /// Makes the paths of loaded traces independent of the current folder, which is about to change.
    pub fn settle_paths(&mut self) {
        for file in &mut self.files {
            if let Ok(absolute) = absolute(&file.path) {
                file.path = absolute;
            }
        }
    }

    /// Which files an output with or without `-Force` may replace: no trace and no extract that is loaded,
    /// and not the trace that such an extract was made of.
    pub(crate) fn overwrite(&self, force: bool) -> Overwrite {
        let mut overwrite = Overwrite::new(force || self.force);
        for file in &self.files {
            overwrite.protect(&file.path);
            overwrite.protect_file(file.trace.path());
            import_sources(&file.path).iter().for_each(|part| overwrite.protect_file(part));
            if let Ok(paths) = file.trace.values(TraceInfos::source_path)
                && let Some(source) = paths.get(0)
            {
                overwrite.protect_file(Path::new(source));
            }
        }
        overwrite
    }

    /// Sets where symbols are looked for. Relative folders are those of the folder that is the current one now.
    pub fn set_symbol_path(&mut self, path: &SymbolPath) {
        self.settings.session.symbol_path = Some(settled(path));
        self.forget_symbols();
    }

    /// Forgets what was found so far, as symbols are looked for elsewhere from now on.
    pub(crate) fn forget_symbols(&mut self) {
        self.symbolizer = OnceLock::new();
        self.forget_names();
    }

    /// Looks again for symbols that were not found, also on servers that did not have them.
    pub fn retry_symbols(&mut self) {
        self.symbolizer().forget_missing();
        self.forget_names();
    }

    fn forget_names(&mut self) {
        self.symbol_notes = SymbolNotes::default();
        for file in &mut self.files {
            file.frames = FrameNameCache::default();
        }
    }

    /// What resolves addresses to names. Made when first needed, and kept: it remembers what it
    /// found.
    pub fn symbolizer(&self) -> &Symbolizer {
        let make = || Symbolizer::new(self.settings.symbol_path(), self.symbol_options.clone());
        self.symbolizer.get_or_init(make)
    }

    /// Says what is missing for names of functions, unless that was said before, and what was waited for.
    pub(crate) fn warn_of_missing_symbols(&self, messages: &mut Messages<'_>) {
        if let Some(symbolizer) = self.symbolizer.get() {
            let files = symbolizer.take_waited_for();
            if !files.is_empty() {
                let files = Untrusted(files.join(", "));
                messages.note(format_args!("waited for another process that downloaded {files}"));
            }
            let is_served = |module: &ModuleIdentity| {
                self.files.iter().any(|file| file.frames.has_served(module))
            };
            self.symbol_notes.warn(symbolizer, messages, is_served);
        }
    }

    /// Leaves out warnings of what is missing now: an answer has said so.
    pub(crate) fn skip_missing_symbols(&self) {
        if let Some(symbolizer) = self.symbolizer.get() {
            self.symbol_notes.skip(symbolizer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::settings::Choices;

    #[test]
    fn the_path_that_was_set_wins_and_starts_a_new_symbolizer() {
        let symbol_path = Some(SymbolPath::parse("/a"));
        let command_line = Choices { symbol_path, ..Choices::default() };
        let mut session = Session::new(Settings { command_line, ..Settings::default() });
        assert_eq!(session.symbolizer().path().to_string(), "/a");
        session.set_symbol_path(&SymbolPath::parse("/b;c"));
        assert!(session.symbolizer.get().is_none());
        let folder = env::current_dir().expect("a folder").join("c");
        assert_eq!(session.symbolizer().path().to_string(), format!("/b;{}", folder.display()));
    }
}
