//! The state of a session: loaded traces, symbol sources, and missing symbols.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf, absolute};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, Trace, Untrusted};
use handlescope_sources::import_sources;
use handlescope_symbols::{
    ModuleIdentity, ModuleReport, SymbolPath, Symbolizer, SymbolizerOptions, symbols_beside,
};

use super::caveats::{Caveat, CaveatKind, FILTER_FAILS, no_symbols};
use super::error::NoFile;
use super::frame_name_cache::FrameNameCache;
use super::{LoadedTrace, choose};
use crate::filter::Filter;
use crate::paths::Overwrite;
use crate::settings::{FILE_NAME, SettingKey, SettingSource, Settings, SymbolDownload, settled};
use crate::terminal::Messages;
use crate::values::{CountedNoun, listed};

/// The state between two commands.
#[derive(Default)]
pub struct Session {
    /// Settings of the output and of the search for symbols.
    pub settings: Settings,
    /// The loaded traces, in the order recorded ([`Session::sort_files`]). The index is the file number in the output.
    pub files: Vec<LoadedTrace>,
    /// The folder of the dataset loaded in place of traces.
    pub dataset: Option<PathBuf>,
    /// A trace being replayed, with its tables elsewhere. Its symbols are searched like those of a loaded one.
    pub replayed: Option<PathBuf>,
    /// `--force`: outputs may replace files this program did not write.
    pub force: bool,
    /// Whether answers may be piped to other programs: at the prompt, and in scripts with `--pipes`.
    pub runs_programs: bool,
    /// Options of the symbol search, from the first search on.
    pub symbol_options: SymbolizerOptions,
    /// Whether the prompt offers to download symbols, so that no warning is needed before.
    pub offers_symbols: bool,
    /// Whether they were offered, or mentioned in a warning.
    has_offered: AtomicBool,
    symbolizer: OnceLock<Symbolizer>,
    symbol_notes: SymbolNotes,
}

/// What Microsoft's symbol server could add.
pub struct SymbolOffer {
    /// Number of modules it may have symbols of.
    pub modules: usize,
    /// The symbol path including that server.
    pub path: SymbolPath,
}

impl Session {
    /// Creates a session without traces.
    pub fn new(settings: Settings) -> Session {
        Session { settings, ..Session::default() }
    }

    /// Loads a dataset in place of what is loaded.
    pub fn open_dataset(&mut self, folder: PathBuf) {
        self.files.clear();
        self.dataset = Some(folder);
        self.search_beside_files();
    }

    /// Returns the loaded traces that pass, each with its number.
    ///
    /// # Errors
    /// If none is loaded, or none passes.
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

    /// Also searches for symbols saved beside the loaded traces. Call it whenever other traces are loaded.
    pub fn search_beside_files(&mut self) {
        self.search_beside(&[]);
    }

    /// Also searches for symbols saved beside loaded and other traces.
    pub fn search_beside(&mut self, traces: &[PathBuf]) {
        // The current folder may change later.
        let path = |path: &PathBuf| absolute(path).unwrap_or_else(|_| path.clone());
        let mut beside: Vec<_> = self
            .files
            .iter()
            .map(|file| &file.path)
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

    /// Sorts the traces by when they were recorded, those without a time first.
    pub fn sort_files(&mut self) {
        self.files.sort_by_cached_key(|file| {
            let info = file.trace.info().ok()?;
            let from_ns = info.recorded_ns().map_or(0, |time| *time.start());
            Some(info.session_start_filetime.saturating_add(from_ns / 100))
        });
    }

    /// Rereads an extract that changed on disk.
    ///
    /// # Errors
    /// If it cannot be read.
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

    /// Returns which files an output may replace, with or without `-Force`: never a loaded trace or extract, nor the
    /// trace that a loaded extract was made from.
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

    /// Sets where to look for symbols. Relative folders are relative to the current folder of this moment.
    pub fn set_symbol_path(&mut self, path: &SymbolPath) {
        self.settings.session.symbol_path = Some(settled(path));
        self.forget_symbols();
    }

    /// Warns once about problems of the symbol path.
    pub fn warn_of_symbol_path(&self, messages: &mut Messages<'_>) {
        self.symbol_notes.warn_of_path(&self.settings, messages);
    }

    /// Forgets what was found so far, because symbols are now searched elsewhere.
    pub fn forget_symbols(&mut self) {
        self.symbolizer = OnceLock::new();
        self.forget_names();
    }

    /// Searches again for symbols that were not found, also on servers that did not have them.
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

    /// Returns the symbolizer, which resolves addresses to names. It is created on first use and kept, because it
    /// remembers what it found.
    pub fn symbolizer(&self) -> &Symbolizer {
        self.symbolizer.get_or_init(|| {
            Symbolizer::new(self.settings.symbol_path(), self.symbol_options.clone())
        })
    }

    /// Reports which symbols are missing, each once, and what was waited for.
    pub fn warn_of_missing_symbols(&self, messages: &mut Messages<'_>) {
        let Some(symbolizer) = self.symbolizer.get() else { return };
        let files = symbolizer.take_waited_for();
        if !files.is_empty() {
            let files = Untrusted(files.join(", "));
            messages.note(format_args!("waited for another process to download {files}"));
        }
        let reports = symbolizer.report();
        let absent = self.symbol_notes.warn(&reports, self, messages);
        if absent.is_empty() {
            return;
        }
        let offer = self.symbol_offer();
        let is_new = offer.is_none() || !self.has_offered.load(Ordering::Relaxed);
        let has_filter = self.symbol_notes.has_filter.swap(false, Ordering::Relaxed);
        if (self.offers_symbols && offer.is_some() && is_new) || !(is_new || has_filter) {
            return;
        }
        self.has_offered.fetch_or(offer.is_some(), Ordering::Relaxed);
        let clause = if has_filter { FILTER_FAILS } else { "" };
        let remedy = match offer.filter(|_| !self.offers_symbols) {
            Some(SymbolOffer { modules, .. }) => {
                let modules = CountedNoun(modules as u64, "module");
                format!("--symserver ms downloads symbols of {modules} from Microsoft")
            }
            None => ".dump Symbols lists why".to_owned(),
        };
        let absent = no_symbols(&listed(&absent, MAX_NAMES));
        messages.warning(format_args!("{absent}{clause}; {remedy}"));
    }

    /// Notes that a filter of the command could not match functions; the warning about missing symbols mentions it.
    pub fn note_caveats(&self, caveats: &[Caveat]) {
        if caveats.iter().any(|caveat| caveat.kind == CaveatKind::FilterLacksSymbols) {
            self.symbol_notes.has_filter.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the offer to download missing symbols; `None` if no download can help, and from the second call on.
    pub fn take_symbol_offer(&self) -> Option<SymbolOffer> {
        if !self.offers_symbols || self.has_offered.load(Ordering::Relaxed) {
            return None;
        }
        let offer = self.symbol_offer()?;
        self.has_offered.store(true, Ordering::Relaxed);
        Some(offer)
    }

    /// Returns what Microsoft's symbol server could add; `None` if a server is named, or downloads are off.
    fn symbol_offer(&self) -> Option<SymbolOffer> {
        let path = self.settings.symbol_path();
        if path.has_servers() || self.settings.symbol_download() == SymbolDownload::Never {
            return None;
        }
        let reports = self.symbolizer.get()?.report();
        let modules: Vec<ModuleIdentity> =
            missing(&reports, self).map(|report| report.module.clone()).collect();
        let path = path.with_microsoft();
        let modules =
            Symbolizer::new(path.clone(), self.symbol_options.clone()).downloadable(&modules);
        (modules > 0).then_some(SymbolOffer { modules, path })
    }

    /// Whether names in a module came from the extract.
    fn has_served(&self, module: &ModuleIdentity) -> bool {
        self.files.iter().any(|file| file.frames.has_served(module))
    }

    /// Suppresses warnings about what is missing now, because an answer already said so.
    pub fn skip_missing_symbols(&self) {
        if let Some(symbolizer) = self.symbolizer.get() {
            self.symbol_notes.skip(symbolizer);
        }
    }
}

/// Maximum number of module names in one message.
const MAX_NAMES: usize = 8;

/// Warns about missing symbols, once per module.
#[derive(Debug, Default)]
pub struct SymbolNotes {
    /// How many modules of the symbolizer's report were dealt with.
    seen: AtomicUsize,
    /// Whether problems of the symbol path were reported.
    has_path: AtomicBool,
    /// Whether a filter of the command needs missing symbols.
    has_filter: AtomicBool,
}

impl SymbolNotes {
    /// Warns about what went wrong in the searches since the last call. Returns the modules that simply have no
    /// symbols: from these searches, or from all if a filter needs them.
    ///
    /// A refused file and an unreachable server get a line each, because the user can do something about them.
    fn warn<'r>(
        &self,
        reports: &'r [ModuleReport],
        session: &Session,
        messages: &mut Messages<'_>,
    ) -> Vec<Untrusted<&'r String>> {
        let seen = self.seen.swap(reports.len(), Ordering::Relaxed);
        if seen == 0 && !reports.is_empty() {
            self.warn_of_path(&session.settings, messages);
        }
        let new = reports.get(seen..).unwrap_or_default();
        troubles(new).into_iter().for_each(|text| messages.warning(text));
        let all = self.has_filter.load(Ordering::Relaxed);
        let absent = missing(if all { reports } else { new }, session);
        let mut absent: Vec<&ModuleReport> = absent.filter(|report| !has_trouble(report)).collect();
        // Several threads search, so the order of the reports varies.
        absent.sort_by_key(|report| (Reverse(report.requested), &report.module.name));
        absent.into_iter().map(|report| Untrusted(&report.module.name)).collect()
    }

    /// Warns once about problems of the symbol path, and says where it was set.
    fn warn_of_path(&self, settings: &Settings, messages: &mut Messages<'_>) {
        if self.has_path.swap(true, Ordering::Relaxed) {
            return;
        }
        let (_, source) = settings.value(SettingKey::SymbolPath);
        for problem in settings.symbol_path().problems() {
            match source {
                SettingSource::Environment => {
                    messages.warning(format_args!("_NT_SYMBOL_PATH: {problem}"));
                }
                SettingSource::File => messages.warning(format_args!("{FILE_NAME}: {problem}")),
                SettingSource::Session | SettingSource::CommandLine | SettingSource::Usual => {
                    messages.warning(problem);
                }
            }
        }
    }

    /// Skips what was searched since the last call.
    pub fn skip(&self, symbolizer: &Symbolizer) {
        self.seen.store(symbolizer.report().len(), Ordering::Relaxed);
    }
}

/// Returns the reports about modules without symbols, unless the extract had their names.
fn missing<'r>(
    reports: &'r [ModuleReport],
    session: &Session,
) -> impl Iterator<Item = &'r ModuleReport> {
    reports.iter().filter(|report| !report.is_resolved() && !session.has_served(&report.module))
}

fn has_trouble(report: &ModuleReport) -> bool {
    !report.refused.is_empty() || !report.failures.is_empty()
}

/// Describes what went wrong in searches, even if symbols were found in the end.
fn troubles(reports: &[ModuleReport]) -> Vec<String> {
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
    texts
}

#[cfg(test)]
mod tests {
    use std::env;

    use handlescope_symbols::{PdbIdentity, SearchFailure, SearchOutcome};

    use super::*;
    use crate::settings::SettingChoices;
    use crate::terminal::Screen;

    #[test]
    fn the_path_that_was_set_wins_and_starts_a_new_symbolizer() {
        let symbol_path = Some(SymbolPath::parse("/a"));
        let command_line = SettingChoices { symbol_path, ..SettingChoices::default() };
        let mut session = Session::new(Settings { command_line, ..Settings::default() });
        assert_eq!(session.symbolizer().path().to_string(), "/a");
        session.set_symbol_path(&SymbolPath::parse("/b;c"));
        assert!(session.symbolizer.get().is_none());
        let folder = env::current_dir().expect("a folder").join("c");
        assert_eq!(session.symbolizer().path().to_string(), format!("/b;{}", folder.display()));
    }

    fn module(name: &str, pdb: Option<PdbIdentity>) -> ModuleIdentity {
        let (name, path) = (name.to_owned(), name.to_owned());
        ModuleIdentity { name, path, size: 0, timestamp: None, pdb }
    }

    fn pdb(name: &str) -> Option<PdbIdentity> {
        let guid = "b5d4d7f1-0c0e-4a6e-9d3b-6b1f1f0f9e57".parse().expect("a guid");
        Some(PdbIdentity { name: name.to_owned(), guid, age: 1 })
    }

    /// Returns the warnings after searching symbols of more modules.
    fn warned(session: &Session, modules: &[ModuleIdentity]) -> String {
        for module in modules {
            session.symbolizer().resolve(module, &[0x10]);
        }
        let mut out = Vec::new();
        session.warn_of_missing_symbols(&mut Messages::new(&mut out, Screen::PLAIN));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn modules_without_symbols_share_a_line() {
        let modules: Vec<_> = (0..10).map(|n| module(&format!("m{n}.dll"), None)).collect();
        assert_eq!(
            warned(&Session::default(), &modules),
            "warning: no symbols for m0.dll, m1.dll, m2.dll, m3.dll, m4.dll, m5.dll, m6.dll, \
             m7.dll and 2 more: frames there appear as module+0xOFFSET; .dump Symbols lists why\n"
        );
    }

    #[test]
    fn one_warning_names_the_server_that_may_have_symbols() {
        let session = Session::default();
        let modules =
            [module("a.dll", pdb("a.pdb")), module("b.dll", pdb("b.pdb")), module("c.dll", None)];
        assert_eq!(
            warned(&session, &modules),
            "warning: no symbols for a.dll, b.dll, c.dll: frames there appear as \
             module+0xOFFSET; --symserver ms downloads symbols of 2 modules from Microsoft\n"
        );
        assert_eq!(warned(&session, &[module("d.dll", pdb("d.pdb"))]), "");
    }

    #[test]
    fn a_filter_without_symbols_is_said_for_every_command() {
        let session = Session::default();
        let caveat = Caveat::for_missing_symbols(&["a.dll".to_owned()]);
        for _ in 0..2 {
            session.note_caveats(caveat.as_slice());
            let text = warned(&session, &[module("a.dll", pdb("a.pdb"))]);
            assert!(
                text.contains("the filter on stacks cannot match functions there; --symserver")
            );
            assert_eq!(warned(&session, &[]), "");
        }
    }

    #[test]
    fn the_prompt_offers_once_what_no_setting_refuses() {
        let session = |download: &str| {
            let mut settings = Settings::default();
            settings.in_file.set(SettingKey::SymbolDownload, Some(download)).expect(download);
            Session { offers_symbols: true, ..Session::new(settings) }
        };
        let modules = [module("a.dll", pdb("a.pdb")), module("b.dll", None)];
        let asks = session("ask");
        assert!(asks.take_symbol_offer().is_none(), "nothing is missing yet");
        assert_eq!(warned(&asks, &modules), "", "the prompt says it");
        let offer = asks.take_symbol_offer().expect("an offer");
        assert_eq!((offer.modules, offer.path.servers().len()), (1, 1));
        assert!(asks.take_symbol_offer().is_none());

        let never = session("never");
        assert!(warned(&never, &modules).ends_with("; .dump Symbols lists why\n"));
        assert!(never.take_symbol_offer().is_none());

        let none = session("ask");
        assert!(warned(&none, &modules[1..]).contains("no symbols for b.dll"));
        assert!(none.take_symbol_offer().is_none(), "no server can have it");
        assert!(session("always").settings.symbol_path().has_servers());
    }

    #[test]
    fn nothing_is_missing_where_the_extract_has_the_names() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/layout-9.json7z");
        let trace = Trace::open(Path::new(golden)).expect("an extract");
        let file = LoadedTrace::new(golden.into(), trace);
        file.frames.note_served(&module("a.dll", None));
        let session = Session { files: vec![file], ..Session::default() };
        assert_eq!(warned(&session, &[module("a.dll", None)]), "");
        assert!(warned(&session, &[module("b.dll", None)]).contains("no symbols for b.dll:"));
    }

    #[test]
    fn a_server_out_of_reach_is_named() {
        let mut silent = ModuleReport::new(module("a.dll", None), SearchOutcome::NotFound);
        silent.failures =
            vec![SearchFailure { location: "https://x".into(), reason: "timed out".into() }];
        let texts = troubles(&[silent]);
        assert!(texts.iter().any(|text| text.contains("https://x: timed out")), "{texts:?}");
    }

    #[test]
    fn a_problem_of_the_symbol_path_is_said_once_with_its_source() {
        let path = Some(SymbolPath::parse("srv*"));
        let environment = SettingChoices { symbol_path: path, ..SettingChoices::default() };
        let session = Session::new(Settings { environment, ..Settings::default() });
        let text = warned(&session, &[module("a.dll", None)]);
        assert!(text.starts_with("warning: _NT_SYMBOL_PATH: srv* names no server"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!warned(&session, &[module("b.dll", None)]).contains("srv*"));
    }
}
