//! State of a session: the loaded traces, the sources of symbols, and the symbols that are missing.

use std::collections::HashSet;
use std::path::{Path, PathBuf, absolute};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, Trace, Untrusted};
use handlescope_sources::import_sources;
use handlescope_symbols::{
    ModuleIdentity, ModuleReport, Outcome, SymbolPath, Symbolizer, SymbolizerOptions,
    symbols_beside,
};

use super::caveats::no_symbols;
use super::error::NoFile;
use super::frame_name_cache::FrameNameCache;
use super::{LoadedTrace, choose};
use crate::filter::Filter;
use crate::paths::Overwrite;
use crate::settings::{Settings, settled};
use crate::terminal::Messages;
use crate::values::listed;

/// The state between two commands.
#[derive(Default)]
pub struct Session {
    /// Settings of the output and of the search for symbols.
    pub settings: Settings,
    /// The loaded traces, in the order they were recorded ([`Session::sort_files`]). The index is the file
    /// number of the output.
    pub files: Vec<LoadedTrace>,
    /// The folder of the dataset that is loaded in place of traces.
    pub dataset: Option<PathBuf>,
    /// A trace that is shown while it is replayed, by tables that lie elsewhere: its symbols are searched as those of a
    /// loaded one.
    pub replayed: Option<PathBuf>,
    /// `--force`: outputs replace files that this program has not written.
    pub force: bool,
    /// Whether answers may go into programs of the system: at the prompt, and with `--pipes` in scripts.
    pub runs_programs: bool,
    /// Options of the search for symbols, from the first search on.
    pub symbol_options: SymbolizerOptions,
    symbolizer: OnceLock<Symbolizer>,
    symbol_notes: SymbolNotes,
}

impl Session {
    /// A session without traces.
    pub fn new(settings: Settings) -> Session {
        Session { settings, ..Session::default() }
    }

    /// Loads a dataset in place of what is loaded.
    pub fn open_dataset(&mut self, folder: PathBuf) {
        self.files.clear();
        self.dataset = Some(folder);
        self.search_beside_files();
    }

    /// The loaded traces that pass, each with its number.
    ///
    /// # Errors
    /// When none is loaded, or none is left.
    pub fn choose(
        &self,
        filters: &[Filter],
        messages: &mut Messages<'_>,
    ) -> Result<Vec<(usize, &LoadedTrace)>, NoFile> {
        match &self.dataset {
            Some(_) => Err(NoFile::Dataset),
            None => choose(&self.files, filters, messages),
        }
    }

    /// Searches for symbols also where they were saved with the loaded traces; to be called when other traces
    /// are loaded.
    pub fn search_beside_files(&mut self) {
        self.search_beside(&[]);
    }

    /// Searches for symbols also where they were saved with loaded and other traces.
    pub fn search_beside(&mut self, traces: &[PathBuf]) {
        // The current folder may change later.
        let path = |path: &PathBuf| absolute(path).unwrap_or_else(|_| path.clone());
        let loaded = self.files.iter().map(|file| &file.path);
        let mut beside: Vec<_> = loaded
            .chain(&self.replayed)
            .chain(traces)
            .flat_map(|trace| symbols_beside(&path(trace)))
            .collect();
        let mut seen = HashSet::new();
        beside.retain(|folder| seen.insert(folder.clone()));
        if beside != self.symbol_options.beside {
            self.symbol_options.beside = beside;
            self.forget_symbols();
        }
    }

    /// Puts the traces into the order they were recorded, those without a time first.
    pub fn sort_files(&mut self) {
        self.files.sort_by_cached_key(|file| {
            let info = file.trace.info().ok()?;
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
        // A dataset may be at a URL.
        let dataset = self.dataset.iter_mut().filter(|path| path.exists());
        for path in self.files.iter_mut().map(|file| &mut file.path).chain(dataset) {
            if let Ok(absolute) = absolute(&*path) {
                *path = absolute;
            }
        }
    }

    /// Files that an output with or without `-Force` may replace: no trace and no extract that is loaded,
    /// and not the trace that such an extract was made of.
    pub fn overwrite(&self, force: bool) -> Overwrite {
        let mut overwrite = Overwrite::new(force || self.force);
        for file in &self.files {
            overwrite.protect(&file.path);
            overwrite.protect_file(file.trace.path());
            import_sources(&file.path).iter().for_each(|file| overwrite.protect_file(file));
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

    /// Names the folders of the symbol path that are not there, once.
    pub fn warn_of_symbol_folders(&self, messages: &mut Messages<'_>) {
        self.symbol_notes.warn_of_folders(&self.settings.symbol_path(), messages);
    }

    /// Forgets what was found so far, as symbols are looked for elsewhere from now on.
    pub fn forget_symbols(&mut self) {
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
            file.values.forget_suspects();
        }
    }

    /// The symbolizer, which resolves addresses to names. Made when first needed, and kept: it remembers what it
    /// found.
    pub fn symbolizer(&self) -> &Symbolizer {
        self.symbolizer.get_or_init(|| {
            Symbolizer::new(self.settings.symbol_path(), self.symbol_options.clone())
        })
    }

    /// Says what is missing for names of functions, unless that was said before, and what was waited for.
    pub fn warn_of_missing_symbols(&self, messages: &mut Messages<'_>) {
        self.warn_of_symbols(true, messages);
    }

    /// As [`Self::warn_of_missing_symbols`], without the modules that have no symbols: a caveat names those that matter.
    pub fn warn_of_symbol_troubles(&self, messages: &mut Messages<'_>) {
        self.warn_of_symbols(false, messages);
    }

    fn warn_of_symbols(&self, names_missing: bool, messages: &mut Messages<'_>) {
        if let Some(symbolizer) = self.symbolizer.get() {
            let files = symbolizer.take_waited_for();
            if !files.is_empty() {
                let files = Untrusted(files.join(", "));
                messages.note(format_args!("waited for another process that downloaded {files}"));
            }
            self.symbol_notes.warn(symbolizer, messages, names_missing, |module| {
                self.files.iter().any(|file| file.frames.has_served(module))
            });
        }
    }

    /// Leaves out warnings of what is missing now: an answer has said so.
    pub fn skip_missing_symbols(&self) {
        if let Some(symbolizer) = self.symbolizer.get() {
            self.symbol_notes.skip(symbolizer);
        }
    }
}

/// Names of modules in one message at most.
const MAX_NAMES: usize = 8;

/// Warns of missing symbols, of each module once.
#[derive(Debug, Default)]
pub struct SymbolNotes {
    /// Modules of the symbolizer's report that are done with.
    seen: AtomicUsize,
    /// Whether missing folders of the symbol path were named.
    has_folders: AtomicBool,
}

impl SymbolNotes {
    /// Says why modules that were searched since the last call have no symbols.
    ///
    /// A refused file and an unreachable server get a line each, because the user can do something about
    /// them; missing modules share one, if `names_missing`. A module is served if its names came from the extract.
    pub fn warn(
        &self,
        symbolizer: &Symbolizer,
        messages: &mut Messages<'_>,
        names_missing: bool,
        is_served: impl Fn(&ModuleIdentity) -> bool,
    ) {
        let reports = symbolizer.report();
        let seen = self.seen.swap(reports.len(), Ordering::Relaxed);
        if seen == 0 && missing(&reports, &is_served).next().is_some() {
            self.warn_of_folders(symbolizer.path(), messages);
        }
        let is_left_out = |module: &ModuleIdentity| !names_missing || is_served(module);
        for text in texts(reports.get(seen..).unwrap_or_default(), is_left_out) {
            messages.warning(text);
        }
    }

    /// Names the folders of a symbol path that are not there, once.
    fn warn_of_folders(&self, path: &SymbolPath, messages: &mut Messages<'_>) {
        if self.has_folders.swap(true, Ordering::Relaxed) {
            return;
        }
        for folder in path.missing_folders() {
            let folder = Untrusted(folder);
            messages.warning(format_args!(
                "{folder}: no such folder in the symbol path; change it with .sympath or \
                 --symbol-path"
            ));
        }
    }

    /// Leaves out what was searched since the last call.
    pub fn skip(&self, symbolizer: &Symbolizer) {
        self.seen.store(symbolizer.report().len(), Ordering::Relaxed);
    }
}

/// The reports about modules without symbols whose names did not come from the extract.
fn missing<'r>(
    reports: &'r [ModuleReport],
    is_served: &impl Fn(&ModuleIdentity) -> bool,
) -> impl Iterator<Item = &'r ModuleReport> {
    reports.iter().filter(|report| !report.is_resolved() && !is_served(&report.module))
}

fn texts(reports: &[ModuleReport], is_served: impl Fn(&ModuleIdentity) -> bool) -> Vec<String> {
    if missing(reports, &is_served).any(|report| report.outcome == Outcome::NoSymbolPath) {
        return vec![
            "no symbol path is set: frames appear as module+0xOFFSET; see .help .sympath"
                .to_owned(),
        ];
    }
    let has_trouble =
        |report: &ModuleReport| !report.refused.is_empty() || !report.failures.is_empty();
    let mut texts: Vec<String> =
        reports.iter().filter(|report| has_trouble(report)).map(ModuleReport::to_string).collect();
    // A cache that cannot be written is reported once, not for each module.
    let unsaved: Vec<&ModuleReport> =
        reports.iter().filter(|report| !has_trouble(report) && report.unsaved.is_some()).collect();
    if let Some(reason) = unsaved.first().and_then(|report| report.troubles().last()) {
        let names: Vec<_> = unsaved.iter().map(|report| Untrusted(&report.module.name)).collect();
        let names = listed(&names, MAX_NAMES);
        texts.push(format!("no symbol cache: symbols of {names} cannot be kept ({reason})"));
    }
    let absent: Vec<_> = missing(reports, &is_served)
        .filter(|report| !has_trouble(report))
        .map(|report| Untrusted(&report.module.name))
        .collect();
    if !absent.is_empty() {
        texts.push(format!("{}; .dump Symbols lists why", no_symbols(&listed(&absent, MAX_NAMES))));
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::env;

    use handlescope_symbols::SearchFailure;

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

    fn report(name: &str, outcome: Outcome) -> ModuleReport {
        let module = ModuleIdentity {
            name: name.to_owned(),
            path: name.to_owned(),
            size: 0,
            timestamp: None,
            pdb: None,
        };
        ModuleReport::new(module, outcome)
    }

    #[test]
    fn modules_without_symbols_share_a_line() {
        let reports: Vec<ModuleReport> =
            (0..10).map(|n| report(&format!("m{n}.dll"), Outcome::NotFound)).collect();
        assert_eq!(
            texts(&reports, |_| false),
            ["no symbols for m0.dll, m1.dll, m2.dll, m3.dll, m4.dll, m5.dll, m6.dll, m7.dll and \
                 2 more: frames there appear as module+0xOFFSET; .dump Symbols lists why"]
        );
    }

    #[test]
    fn without_a_symbol_path_one_line_says_so() {
        let reports =
            [report("a.dll", Outcome::NoSymbolPath), report("b.dll", Outcome::NoSymbolPath)];
        let texts = texts(&reports, |_| false);
        assert_eq!(texts.len(), 1);
        assert!(texts.iter().all(|text| text.starts_with("no symbol path is set")));
    }

    #[test]
    fn nothing_is_missing_where_the_extract_has_the_names() {
        let reports = [report("a.dll", Outcome::NotFound), report("b.dll", Outcome::NoSymbolPath)];
        assert!(texts(&reports, |_| true).is_empty());
        let texts = texts(&reports, |module| module.name == "b.dll");
        assert_eq!(
            texts,
            [
                "no symbols for a.dll: frames there appear as module+0xOFFSET; .dump Symbols lists why"
            ]
        );
    }

    #[test]
    fn a_server_out_of_reach_is_named() {
        let mut silent = report("a.dll", Outcome::NotFound);
        silent.failures =
            vec![SearchFailure { location: "https://x".into(), reason: "timed out".into() }];
        let texts = texts(&[silent], |_| false);
        assert!(texts.iter().any(|text| text.contains("https://x: timed out")), "{texts:?}");
    }
}
