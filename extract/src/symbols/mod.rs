//! From module and address to function name.
//!
//! Symbolication is late: the extract stores modules and relative addresses (RVAs), and names are
//! looked up when they are shown. A [`Symbolizer`] takes the modules' identities as the trace knows
//! them and resolves batches of RVAs:
//!
//! ```
//! use handlescope_extract::symbols::{
//!     ModuleIdentity, PdbIdentity, SymbolPath, Symbolizer, SymbolizerOptions,
//! };
//!
//! let guid = "0155fe84-c000-1eb1-57c6-858e85d46b4c".parse()?;
//! let module = ModuleIdentity {
//!     name: "ntdll.dll".to_owned(),
//!     path: r"C:\Windows\System32\ntdll.dll".to_owned(),
//!     size: 0x1f_0000,
//!     timestamp: None,
//!     pdb: Some(PdbIdentity { name: "ntdll.pdb".to_owned(), guid, age: 1 }),
//! };
//! let path = SymbolPath::parse("examples/symbols");
//! let symbolizer = Symbolizer::new(path, SymbolizerOptions::default());
//! for frame in symbolizer.resolve(&module, &[0x1350, 0x1720]).into_iter().flatten() {
//!     println!("{}!{}+{:#x}", module.name, frame.function, frame.offset);
//! }
//! # Ok::<(), uuid::Error>(())
//! ```
//!
//! For each module, the first that is there wins:
//!
//! 1. a PDB in a local place of the symbol path: a cache, a store or a plain folder;
//! 2. a symcache in the path's cache folder, although its PDB is gone;
//! 3. a PDB from a server, which only a path with `srv*…*https://…` asks. What a server does not
//!    have is remembered for some days; what broke off is continued.
//!
//! A PDB counts only if its own GUID and age are those in the trace, wherever it was found. It is
//! converted to a symcache, which is kept and serves the next session as long as the PDB stays the
//! same file.
//!
//! Nothing here prints or panics. What happened is in [`Symbolizer::report`].

#[cfg(test)]
mod download_tests;
mod downloads;
#[cfg(test)]
mod fixture;
mod folders;
mod identity;
mod install;
mod locate;
mod missing;
mod module;
mod names;
mod observer;
mod partial;
mod path;
mod pdb;
mod pointer;
mod prepare;
mod report;
#[cfg(test)]
mod server_tests;
mod sources;
mod symcache;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
mod transfer;
mod types;
mod unpack;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

pub use self::identity::{ModuleIdentity, PdbIdentity};
pub use self::module::ResolvedFrame;
pub use self::observer::{DownloadEnd, NoSymbolObserver, SymbolObserver};
pub use self::path::SymbolPath;
pub use self::report::{MissingAt, ModuleReport, Origin, Outcome, SearchFailure, SymbolFileError};
pub use self::sources::{ServerChoice, SymbolSources, SymbolSourcesError};

use self::folders::Candidate;
use self::identity::StoreKey;
use self::install::Form;
use self::locate::Locator;
use self::module::ModuleSymbols;
use self::pdb::PdbFile;
use self::report::SearchNotes;
use self::symcache::{FileStamp, SymcacheStore};

/// Resolves addresses of modules along a symbol path, and remembers what it found.
///
/// Calls from several threads are served one after the other. Not to be used from within a tokio
/// runtime, as it runs one for downloads.
pub struct Symbolizer {
    path: SymbolPath,
    state: Mutex<State>,
}

/// What is not in the symbol path.
#[derive(Clone, Debug)]
pub struct SymbolizerOptions {
    /// Folder for converted symcaches; by default the first cache folder of the symbol path, else
    /// `handlescope` in the platform's cache folder.
    pub symcache_folder: Option<PathBuf>,
    /// How long a server may make no progress.
    pub download_timeout: Duration,
    /// The largest file that is downloaded or unpacked, in bytes.
    pub max_file_bytes: u64,
    /// How long a server is not asked again for what it did not have.
    pub missing_for: Duration,
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self {
            symcache_folder: None,
            download_timeout: Duration::from_secs(20),
            max_file_bytes: 4 << 30,
            missing_for: Duration::from_hours(7 * 24),
        }
    }
}

struct State {
    search: Search,
    /// By identity of the PDB, as modules at several paths may share one.
    found: FxHashMap<PdbIdentity, Found>,
    /// In the order they were first asked for.
    asked: Vec<ModuleIdentity>,
}

/// Where symbols come from.
struct Search {
    locator: Locator,
    store: SymcacheStore,
    /// The symcaches lie in a cache folder of the path and so are on the path themselves.
    store_is_on_path: bool,
}

/// What the search for a PDB ended in. Without symbols, the outcome says why.
struct Found {
    symbols: Option<ModuleSymbols>,
    outcome: Outcome,
    origin: Option<Origin>,
    notes: SearchNotes,
    unsaved: Option<Arc<SymbolFileError>>,
}

impl Symbolizer {
    /// Looks nothing up yet.
    pub fn new(path: SymbolPath, options: SymbolizerOptions) -> Self {
        let own_cache = path.first_cache().filter(|_| options.symcache_folder.is_none());
        let store_is_on_path = own_cache.is_some();
        let locator = Locator::new(&path, &options);
        let folder = options.symcache_folder.or(own_cache).or_else(path::platform_cache);
        let search = Search { locator, store: SymcacheStore::new(folder), store_is_on_path };
        let state = State { search, found: FxHashMap::default(), asked: Vec::new() };
        Self { path, state: Mutex::new(state) }
    }

    /// The path that symbols are looked for on.
    pub fn path(&self) -> &SymbolPath {
        &self.path
    }

    /// The function at each of the module's RVAs, in their order; `None` where nothing is known.
    ///
    /// The first call for a module finds and converts its PDB, which may take seconds, or download
    /// it, which may take minutes; [`Symbolizer::prepare`] downloads many at once. Later ones only
    /// look names up, and a failure is remembered.
    pub fn resolve(&self, module: &ModuleIdentity, rvas: &[u64]) -> Vec<Option<ResolvedFrame>> {
        let mut state = self.state();
        if !state.asked.contains(module) {
            state.asked.push(module.clone());
        }
        let State { search, found, .. } = &mut *state;
        let Some(pdb) = module.pdb.as_ref().filter(|_| !self.path.is_empty()) else {
            return vec![None; rvas.len()];
        };
        let found = found.entry(pdb.clone()).or_insert_with(|| search.symbols_of(pdb));
        match &mut found.symbols {
            Some(symbols) => symbols.resolve(rvas, module.size),
            None => vec![None; rvas.len()],
        }
    }

    /// What happened to every module asked for so far, in the order of asking.
    pub fn report(&self) -> Vec<ModuleReport> {
        let state = self.state();
        state.asked.iter().map(|module| self.report_of(module, &state.found)).collect()
    }

    fn report_of(
        &self,
        module: &ModuleIdentity,
        found: &FxHashMap<PdbIdentity, Found>,
    ) -> ModuleReport {
        let reason =
            if module.pdb.is_none() { Outcome::NoPdbIdentity } else { Outcome::NoSymbolPath };
        let unsearched = Found::nothing(reason);
        let found = module.pdb.as_ref().and_then(|pdb| found.get(pdb)).unwrap_or(&unsearched);
        ModuleReport {
            module: module.clone(),
            outcome: found.outcome.clone(),
            refused: found.notes.refused.clone(),
            failures: found.notes.failures.clone(),
            missing: found.notes.missing.clone(),
            skipped: found.notes.skipped.clone(),
            origin: found.origin.clone(),
            unsaved: found.unsaved.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Search {
    /// The search order of the module documentation.
    fn symbols_of(&mut self, pdb: &PdbIdentity) -> Found {
        let Some(key) = StoreKey::new(pdb) else { return Found::nothing(Outcome::UnusableName) };
        let mut found = Found::nothing(Outcome::NotFound);
        let candidates = self.locator.find(&key);
        // Of a server that failed before another one delivered.
        let earlier = self.locator.fetched(pdb);
        found.notes.extend(&earlier.map(|fetched| fetched.notes.clone()).unwrap_or_default());
        for candidate in &candidates {
            if self.take(candidate, &key, pdb, &mut found) {
                return found;
            }
        }
        if self.store_is_on_path
            && let Some(stored) = self.store.open(&key, pdb)
        {
            found.succeed(stored.bytes, stored.path, true);
            found.origin = Some(Origin::Symcache);
            return found;
        }
        let was_asked = self.locator.fetched(pdb).is_some();
        let fetched = self.locator.download(&key, pdb);
        if !was_asked {
            found.notes.extend(&fetched.notes);
        }
        if let Some((path, address)) = fetched.file.clone() {
            let origin = Origin::Server(address);
            let candidate = Candidate { path, form: Form::Plain, origin };
            self.take(&candidate, &key, pdb, &mut found);
        }
        found
    }

    /// Uses a file if it is the right PDB; otherwise notes why not.
    fn take(
        &self,
        candidate: &Candidate,
        key: &StoreKey,
        pdb: &PdbIdentity,
        found: &mut Found,
    ) -> bool {
        let file = self.locator.file_of(candidate, key, pdb);
        match file.and_then(|file| self.load(&file, key, pdb, found)) {
            Ok(()) => found.origin = Some(candidate.origin.clone()),
            Err(error) => found.notes.refused.push(Arc::new(error)),
        }
        found.symbols.is_some()
    }

    fn load(
        &self,
        file: &Path,
        key: &StoreKey,
        pdb: &PdbIdentity,
        found: &mut Found,
    ) -> Result<(), SymbolFileError> {
        let stamp = FileStamp::of(file).map_err(|source| SymbolFileError::Io {
            action: "read",
            path: file.to_owned(),
            source,
        })?;
        let stored = self.store.open(key, pdb).filter(|stored| stored.source.size == stamp.size);
        if let Some(stored) = stored {
            // A copy of the same PDB will do, but another file in its place has to show its identity.
            if stored.source != stamp {
                PdbFile::open(file)?.verify(pdb)?;
            }
            found.succeed(stored.bytes, file.to_owned(), true);
            return Ok(());
        }
        let opened = PdbFile::open(file)?;
        opened.verify(pdb)?;
        let (bytes, error) = self.store.save(key, opened.to_symcache()?, stamp);
        found.unsaved = error.map(Arc::new);
        found.succeed(bytes, file.to_owned(), false);
        Ok(())
    }
}

impl Found {
    fn nothing(outcome: Outcome) -> Self {
        Self { symbols: None, outcome, origin: None, notes: SearchNotes::default(), unsaved: None }
    }

    fn succeed(
        &mut self,
        bytes: symbolic::common::ByteView<'static>,
        file: PathBuf,
        was_converted: bool,
    ) {
        self.symbols = Some(ModuleSymbols::new(bytes));
        self.outcome = Outcome::Resolved { file, was_converted };
    }
}
