//! The search for the symbols of a module; it searches for each PDB and image once per session.
//!
//! If many modules are resolved at once, their PDBs are downloaded before the first frame is resolved.

use std::fs::File;
use std::hash::Hash;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use handlescope_model::guard::lock;
use handlescope_model::{Cancelled, PageWatch};
use rustc_hash::{FxHashMap, FxHashSet};

use super::identity::{ImageIdentity, ModuleIdentity, PdbIdentity, StoreKey};
use super::local::{FileCandidate, LocalFolders};
use super::module::{CodeAddress, ModuleSymbols, SymcacheNames};
use super::options::{SearchWatch, SymbolizerOptions};
use super::path::{self, SymbolPath};
use super::pdb::pe::ExportTable;
use super::pdb::symcache::{FileStamp, SymcacheStore, Symcaches};
use super::pdb::{Conversion, PdbFile};
use super::pointer::{self, PointerError};
use super::report::{ModuleReport, SearchNotes, SearchOutcome, SymbolFileError, SymbolOrigin};
use super::server::download_lock::Semaphore;
use super::server::install::{FileForm, Install};
use super::server::{self, Downloads};

/// Maximum bytes of PDBs that are converted at the same time, unless a single one is larger. A conversion takes about
/// four times the size of its PDB.
const CONVERTED_AT_ONCE: u64 = 512 << 20;

/// Sources of symbols and the results so far.
///
/// Calls from several threads run in parallel; they wait for each other only if they want the same file.
pub struct Search {
    is_empty: bool,
    pub folders: Mutex<LocalFolders>,
    /// Folders that no pointer may lead out of.
    pub closed: Vec<PathBuf>,
    pub downloads: Downloads,
    /// Folder for unpacking files that a store has compressed.
    pub cache: Option<PathBuf>,
    pub max_bytes: u64,
    whole_up_to: u64,
    pub store: SymcacheStore,
    /// Whether the symcaches are in a cache folder of the path and so are themselves on the path.
    pub store_is_on_path: bool,
    conversions: Semaphore,
    /// Results by identity of the PDB, because modules at several paths may share one.
    pub pdbs: Slots<PdbIdentity>,
    pub images: Slots<ImageIdentity>,
}

/// The result of the search for a file. If there are no symbols, the outcome says why.
#[derive(Clone)]
pub struct SearchResult {
    pub symbols: Option<Arc<ModuleSymbols>>,
    outcome: SearchOutcome,
    origin: Option<SymbolOrigin>,
    notes: SearchNotes,
    unsaved: Option<Arc<SymbolFileError>>,
    /// Whether no further parts of the PDB can be read.
    is_final: bool,
}

/// Limits of a search.
#[derive(Clone, Copy)]
pub struct SearchLimits<'a> {
    /// Whether servers may be asked.
    pub may_download: bool,
    pub watch: SearchWatch<'a>,
}

/// Why a search ended without a result; a later call continues from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStop {
    Cancelled,
    /// Only servers are left, and the limits forbid asking them.
    NeedsServer,
}

impl From<Cancelled> for SearchStop {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Searches in progress or done, by what is searched for.
pub struct Slots<K>(Mutex<FxHashMap<K, Arc<Mutex<SearchProgress>>>>);

/// Progress of a search.
#[derive(Clone, Default)]
pub enum SearchProgress {
    #[default]
    New,
    /// No local folder has the file.
    OnlyServersLeft(SearchResult),
    Done(SearchResult),
}

impl Search {
    pub fn new(path: &SymbolPath, options: SymbolizerOptions) -> Self {
        let path_cache = path.first_cache().filter(|_| options.symcache_folder.is_none());
        let store_is_on_path = path_cache.is_some();
        let downloads = Downloads::new(path, &options);
        let beside = options.beside.iter().cloned();
        let closed = beside.clone().chain(options.closed_folders.clone()).collect();
        let usual: Vec<_> = options
            .usual_caches
            .iter()
            .filter(|cache| cache.is_dir())
            .map(|cache| (cache.clone(), false))
            .collect();
        let unpacked = path.first_cache().or_else(|| options.symcache_folder.clone());
        let folder = options.symcache_folder.or(path_cache).or_else(path::platform_cache);
        Self {
            is_empty: path.is_empty() && options.beside.is_empty() && usual.is_empty(),
            folders: Mutex::new(LocalFolders::new(
                beside.map(|folder| (folder, true)).chain(path.folders()).chain(usual).collect(),
            )),
            closed,
            downloads,
            cache: unpacked.or_else(path::default_store),
            max_bytes: options.max_file_bytes,
            whole_up_to: options.whole_pdb_bytes,
            store: SymcacheStore::new(folder),
            store_is_on_path,
            conversions: Semaphore::new(CONVERTED_AT_ONCE),
            pdbs: Slots::default(),
            images: Slots::default(),
        }
    }

    /// Returns the symbols of a module, from its PDB or else its image.
    pub fn symbols(
        &self,
        module: &ModuleIdentity,
        addresses: &[CodeAddress],
        limits: SearchLimits<'_>,
    ) -> Result<SearchResult, SearchStop> {
        if self.is_empty {
            return Ok(SearchResult::nothing(SearchOutcome::NoSymbolPath));
        }
        let pdb = match &module.pdb {
            Some(pdb) => self.pdb(pdb, &instructions(module, addresses), limits)?,
            None => SearchResult::nothing(SearchOutcome::NoPdbIdentity),
        };
        Ok(match ImageIdentity::new(module).filter(|_| pdb.symbols.is_none()) {
            Some(image) => pdb.or(self.image(&image)),
            None => pdb,
        })
    }

    /// Returns the report on a module so far.
    pub fn report(&self, module: &ModuleIdentity) -> ModuleReport {
        let pdb = match &module.pdb {
            _ if self.is_empty => SearchResult::nothing(SearchOutcome::NoSymbolPath),
            Some(pdb) => {
                self.pdbs.known(pdb).unwrap_or(SearchResult::nothing(SearchOutcome::NotFound))
            }
            None => SearchResult::nothing(SearchOutcome::NoPdbIdentity),
        };
        let image = ImageIdentity::new(module).filter(|_| pdb.symbols.is_none());
        let result = match image.and_then(|image| self.images.known(&image)) {
            Some(image) => pdb.or(image),
            None => pdb,
        };
        let SearchResult { outcome, origin, notes, unsaved, .. } = result;
        let SearchNotes { refused, failures, missing, skipped } = notes;
        let report = ModuleReport::new(module.clone(), outcome);
        ModuleReport { refused, failures, missing, skipped, origin, unsaved, ..report }
    }

    /// Searches for a PDB in the order given in the crate documentation.
    fn pdb(
        &self,
        pdb: &PdbIdentity,
        addresses: &[u32],
        limits: SearchLimits<'_>,
    ) -> Result<SearchResult, SearchStop> {
        let slot = self.pdbs.slot(pdb);
        let mut progress = lock(&slot);
        let Some(key) = StoreKey::new(pdb) else {
            let result = SearchResult::nothing(SearchOutcome::UnusableName);
            *progress = SearchProgress::Done(result.clone());
            return Ok(result);
        };
        let request = PdbRequest { key: &key, pdb, addresses, limits };
        loop {
            let next = match &mut *progress {
                SearchProgress::Done(result) if result.may_grow_by_search(addresses) => {
                    let mut next = self.find(&request)?;
                    if let SearchProgress::Done(result) = &mut next {
                        result.is_final = true;
                    }
                    next
                }
                SearchProgress::Done(result) => {
                    self.extend(&request, result);
                    return Ok(result.clone());
                }
                SearchProgress::New => self.find(&request)?,
                SearchProgress::OnlyServersLeft(_) if !limits.may_download => {
                    return Err(SearchStop::NeedsServer);
                }
                SearchProgress::OnlyServersLeft(result) => {
                    self.download(&request, result.clone())?
                }
            };
            *progress = next;
        }
    }

    /// Converts the parts of a PDB at further addresses. If that fails, their functions stay unknown.
    fn extend(&self, request: &PdbRequest<'_>, result: &mut SearchResult) {
        let SearchOutcome::Resolved { file, .. } = result.outcome.clone() else { return };
        if result.covers(request.addresses) || result.is_final {
            return;
        }
        if let Err(error) = self.load(&file, request, result)
            && !request.limits.watch.cancel.is_cancelled()
        {
            result.notes.refused.push(Arc::new(error));
            result.is_final = true;
        }
    }

    /// Searches the local places.
    fn find(&self, request: &PdbRequest<'_>) -> Result<SearchProgress, Cancelled> {
        let mut result = SearchResult::nothing(SearchOutcome::NotFound);
        for candidate in self.local(request.key) {
            if self.take(&candidate, request, &mut result)? {
                self.note_download(request.pdb, &mut result);
                return Ok(SearchProgress::Done(result));
            }
        }
        if self.store_is_on_path
            && let Some((symcaches, path)) = self.store.open(request.key, request.pdb)
        {
            result.succeed(symcaches, path, true);
            result.origin = Some(SymbolOrigin::Symcache);
        }
        if self.downloads.is_offline() || result.covers(request.addresses) {
            return Ok(SearchProgress::Done(result));
        }
        Ok(SearchProgress::OnlyServersLeft(result))
    }

    /// Adds the notes of an earlier download in this session, because a file in a cache may come from it.
    fn note_download(&self, pdb: &PdbIdentity, result: &mut SearchResult) {
        let Some(fetched) = self.downloads.fetched(pdb) else { return };
        result.notes.extend(&fetched.notes);
        if let (Some((path, address)), SearchOutcome::Resolved { file, .. }) =
            (&fetched.file, &result.outcome)
            && path == file
        {
            result.origin = Some(SymbolOrigin::Server(address.clone()));
        }
    }

    /// Asks the servers.
    fn download(
        &self,
        request: &PdbRequest<'_>,
        mut result: SearchResult,
    ) -> Result<SearchProgress, Cancelled> {
        let PdbRequest { key, pdb, limits, .. } = *request;
        let downloads = &self.downloads;
        downloads.fetch(&[(key.clone(), pdb.clone())], limits.watch);
        let fetched = downloads.fetched(pdb).ok_or(Cancelled)?;
        result.notes.extend(&fetched.notes);
        if let Some((path, address)) = fetched.file.clone() {
            let origin = SymbolOrigin::Server(address);
            // A pointer may have led to a compressed file.
            let form = FileForm::from_target(&path);
            let candidate = FileCandidate { path, form, member: None, origin };
            self.take(&candidate, request, &mut result)?;
        }
        result.is_final = result.origin == Some(SymbolOrigin::Symcache);
        Ok(SearchProgress::Done(result))
    }

    /// Uses a file if it is the right PDB; otherwise notes why not. Returns whether it is used.
    fn take(
        &self,
        candidate: &FileCandidate,
        request: &PdbRequest<'_>,
        result: &mut SearchResult,
    ) -> Result<bool, Cancelled> {
        let PdbRequest { key, pdb, limits, .. } = *request;
        limits.watch.cancel.check()?;
        let file = self.file_of(candidate, key, pdb);
        match file.and_then(|file| self.load(&file, request, result)) {
            Ok(()) => {
                result.origin = Some(candidate.origin.clone());
                if let (Some(member), SearchOutcome::Resolved { file, .. }) =
                    (&candidate.member, &mut result.outcome)
                {
                    *file = candidate.path.join(member);
                }
                Ok(true)
            }
            Err(_) if limits.watch.cancel.is_cancelled() => Err(Cancelled),
            Err(error) => {
                result.notes.refused.push(Arc::new(error));
                Ok(false)
            }
        }
    }

    fn load(
        &self,
        file: &Path,
        request: &PdbRequest<'_>,
        result: &mut SearchResult,
    ) -> Result<(), SymbolFileError> {
        let PdbRequest { key, pdb, addresses, limits } = *request;
        let stamp = FileStamp::new(file).map_err(SymbolFileError::io("read", file))?;
        let stored = self.store.open(key, pdb).map(|(symcaches, _)| symcaches);
        let known: Vec<_> = [stored, result.symcaches().cloned()]
            .into_iter()
            .flatten()
            .filter(|symcaches| symcaches.source.size == stamp.size)
            .collect();
        let opened = PdbFile::open(file)?;
        // A build may overwrite the PDB while it is read.
        let watch = PageWatch::start();
        let unless_changed = |read: Result<_, SymbolFileError>| {
            if watch.has_lost() || FileStamp::new(file).ok() != Some(stamp) {
                return Err(SymbolFileError::Changed { path: file.to_owned() });
            }
            read
        };
        // A copy of the same PDB is just as good, but a changed file must prove its identity.
        if known.first().is_none_or(|symcaches| symcaches.source != stamp) {
            unless_changed(opened.verify(pdb).map(|()| Vec::new()))?;
        }
        if let Some(symcaches) = known.iter().find(|symcaches| symcaches.cover(addresses)) {
            result.succeed(symcaches.clone(), file.to_owned(), true);
            return Ok(());
        }
        let known = known.into_iter().next().unwrap_or(Symcaches::none_of(stamp));
        let added = {
            let _permit = self.conversions.acquire(stamp.size);
            let (covered, whole_up_to) = (&known.ranges(), self.whole_up_to);
            let request = Conversion { addresses, covered, whole_up_to };
            unless_changed(opened.to_symcaches(&request, limits.watch.cancel))?
        };
        let (symcaches, error) = self.store.save(key, known.with(&added, stamp));
        result.unsaved = error.map(Arc::new);
        result.succeed(symcaches, file.to_owned(), false);
        Ok(())
    }

    /// Finds the exports of an image in a local folder; servers are not asked for images.
    fn image(&self, image: &ImageIdentity) -> SearchResult {
        let slot = self.images.slot(image);
        let mut progress = lock(&slot);
        if let SearchProgress::Done(result) = &*progress {
            return result.clone();
        }
        let mut result = SearchResult::nothing(SearchOutcome::NotFound);
        let files = StoreKey::from_image(image).map(|key| self.local(&key));
        for FileCandidate { path, form, member, origin } in files.unwrap_or_default() {
            if form != FileForm::Plain || member.is_some() {
                continue;
            }
            match ExportTable::open(&path, image) {
                Ok(exports) => {
                    result.symbols = Some(Arc::new(ModuleSymbols::Exports(exports)));
                    result.outcome = SearchOutcome::ResolvedFromExports { file: path };
                    result.origin = Some(origin);
                    break;
                }
                Err(error) => result.notes.refused.push(Arc::new(error)),
            }
        }
        *progress = SearchProgress::Done(result.clone());
        result
    }

    /// Downloads the PDBs of modules that are in no local place.
    pub fn prepare<'a>(
        &self,
        modules: impl IntoIterator<Item = &'a ModuleIdentity>,
        watch: SearchWatch<'_>,
    ) {
        if self.downloads.is_offline() {
            return;
        }
        let requests: Vec<_> =
            self.remote(modules).take_while(|_| !watch.cancel.is_cancelled()).collect();
        if !watch.cancel.is_cancelled() {
            self.downloads.fetch(&requests, watch);
        }
    }

    /// Returns the PDBs of modules, each once, that are in no local place.
    fn remote<'a>(
        &self,
        modules: impl IntoIterator<Item = &'a ModuleIdentity>,
    ) -> impl Iterator<Item = server::PdbRequest> {
        let mut seen = FxHashSet::default();
        modules.into_iter().filter_map(move |module| {
            let pdb = module.pdb.as_ref().filter(|pdb| seen.insert(*pdb))?;
            let key = StoreKey::new(pdb).filter(|key| self.needs_server(key, pdb))?;
            Some((key, pdb.clone()))
        })
    }

    /// Returns the number of PDBs that servers would be asked for because they may have them.
    pub fn downloadable<'a>(&self, modules: impl IntoIterator<Item = &'a ModuleIdentity>) -> usize {
        self.remote(modules).filter(|(key, _)| self.downloads.may_have(key)).count()
    }

    /// Lets failed searches be repeated.
    pub fn forget_missing(&self) {
        self.pdbs.forget_missing();
        self.images.forget_missing();
        lock(&self.folders).forget();
        self.downloads.forget_missing();
    }

    fn needs_server(&self, key: &StoreKey, pdb: &PdbIdentity) -> bool {
        match &*lock(&self.pdbs.slot(pdb)) {
            SearchProgress::New => !self.is_local(key, pdb),
            SearchProgress::OnlyServersLeft(_) => true,
            SearchProgress::Done(_) => false,
        }
    }

    /// Whether the PDB is in a local place, or a symcache can replace it.
    fn is_local(&self, key: &StoreKey, pdb: &PdbIdentity) -> bool {
        let stored = self.store.open(key, pdb).map(|(symcaches, _)| symcaches);
        if stored.as_ref().is_some_and(Symcaches::are_whole) && self.store_is_on_path {
            return true;
        }
        self.local(key).iter().any(|candidate| {
            let Ok(file) = self.file_of(candidate, key, pdb) else { return false };
            let stamp = FileStamp::new(&file).ok();
            let was_converted =
                stored.as_ref().is_some_and(|symcaches| Some(symcaches.source) == stamp);
            was_converted || PdbFile::open(&file).and_then(|file| file.verify(pdb)).is_ok()
        })
    }

    /// Returns the files in local places that may be the PDB or image, best first.
    fn local(&self, key: &StoreKey) -> Vec<FileCandidate> {
        let mut candidates = lock(&self.folders).find(key);
        candidates.retain(|candidate| self.stays(candidate, &candidate.path));
        candidates
    }

    /// Whether a file is inside the folder where it was found, if that folder is closed.
    fn stays(&self, candidate: &FileCandidate, file: &Path) -> bool {
        self.closed_folder(candidate).is_none_or(|folder| {
            let (file, folder) = (file.canonicalize(), folder.canonicalize());
            file.is_ok_and(|file| folder.is_ok_and(|folder| file.starts_with(folder)))
        })
    }

    /// Returns the closed folder where a candidate was found, if any.
    fn closed_folder(&self, candidate: &FileCandidate) -> Option<&PathBuf> {
        let SymbolOrigin::Folder(origin) = &candidate.origin else { return None };
        self.closed.iter().find(|folder| *folder == origin)
    }

    /// Returns the PDB of a candidate, unpacked into a cache if necessary.
    fn file_of(
        &self,
        candidate: &FileCandidate,
        key: &StoreKey,
        pdb: &PdbIdentity,
    ) -> Result<PathBuf, SymbolFileError> {
        let mut path = candidate.path.clone();
        if let Some(member) = &candidate.member {
            return lock(&self.folders).packed.unpack(&path, member, key, self.max_bytes);
        }
        let mut form = candidate.form;
        if form == FileForm::Pointer {
            path = self.target_of(candidate)?;
            form = FileForm::from_target(&path);
        }
        if form == FileForm::Plain {
            return Ok(path);
        }
        let install = Install {
            form: FileForm::Cabinet,
            caches: self.cache.iter().cloned().collect(),
            key: key.clone(),
            pdb: pdb.clone(),
            max_bytes: self.max_bytes,
            budget: None,
            shown: path.clone(),
        };
        install.packed(&path)
    }

    /// Returns the file that a candidate points to.
    fn target_of(&self, candidate: &FileCandidate) -> Result<PathBuf, SymbolFileError> {
        let path = &candidate.path;
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(pointer::MAX_BYTES).read_to_end(&mut text))
            .map_err(SymbolFileError::io("read", path))?;
        let source = match self.closed_folder(candidate) {
            Some(_) => pointer::Source::Server { hosts: &[] },
            None => pointer::Source::Folder,
        };
        let target = pointer::follow(&text, &source).and_then(|target| {
            let stays = self.stays(candidate, &target);
            if stays { Ok(target) } else { Err(PointerError::Outside) }
        });
        target.map_err(|reason| SymbolFileError::Pointer { path: path.clone(), reason })
    }
}

/// A PDB to search for.
struct PdbRequest<'a> {
    key: &'a StoreKey,
    pdb: &'a PdbIdentity,
    /// Instructions whose functions are requested.
    addresses: &'a [u32],
    limits: SearchLimits<'a>,
}

/// Returns the instructions whose functions are needed for the addresses: the one before each address, and the one at
/// it unless it is a return address.
fn instructions(module: &ModuleIdentity, addresses: &[CodeAddress]) -> Vec<u32> {
    let inside = addresses.iter().filter(|address| module.size == 0 || address.rva < module.size);
    let both = inside.flat_map(|address| {
        let at = Some(address.rva).filter(|_| !address.is_return);
        [address.rva.checked_sub(1), at]
    });
    // Neither a range of addresses nor an image contains the last address.
    both.flatten().filter_map(|rva| u32::try_from(rva).ok()).filter(|rva| *rva < u32::MAX).collect()
}

impl SearchResult {
    fn nothing(outcome: SearchOutcome) -> Self {
        let notes = SearchNotes::default();
        Self { symbols: None, outcome, origin: None, notes, unsaved: None, is_final: false }
    }

    /// Returns the symcaches, if a PDB was found.
    fn symcaches(&self) -> Option<&Symcaches> {
        match self.symbols.as_deref() {
            Some(ModuleSymbols::Symcache(names)) => Some(&names.symcaches),
            _ => None,
        }
    }

    /// Whether the symcaches cover these addresses.
    fn covers(&self, addresses: &[u32]) -> bool {
        self.symcaches().is_some_and(|symcaches| symcaches.cover(addresses))
    }

    /// Whether there are only symcaches, of other parts, so that it is worth searching for the PDB itself again.
    fn may_grow_by_search(&self, addresses: &[u32]) -> bool {
        self.origin == Some(SymbolOrigin::Symcache) && !self.is_final && !self.covers(addresses)
    }

    fn succeed(&mut self, symcaches: Symcaches, file: PathBuf, was_converted: bool) {
        let names = SymcacheNames::new(symcaches, Some(file.clone()));
        self.symbols = Some(Arc::new(ModuleSymbols::Symcache(names)));
        self.outcome = SearchOutcome::Resolved { file, was_converted };
    }

    /// Combines the failed search for the PDB with that for the image. If both failed, the outcome is that of the PDB,
    /// because the user should look for it.
    fn or(mut self, image: Self) -> Self {
        self.notes.extend(&image.notes);
        if image.symbols.is_some() {
            (self.symbols, self.outcome, self.origin) =
                (image.symbols, image.outcome, image.origin);
        }
        self
    }
}

impl<K: Clone + Eq + Hash> Slots<K> {
    pub fn slot(&self, key: &K) -> Arc<Mutex<SearchProgress>> {
        lock(&self.0).entry(key.clone()).or_default().clone()
    }

    /// Resets all searches that found nothing.
    pub fn forget_missing(&self) {
        for slot in lock(&self.0).values() {
            let mut progress = lock(slot);
            if !progress.is_resolved() {
                *progress = SearchProgress::New;
            }
        }
    }

    /// Returns the result so far of a search that was started.
    fn known(&self, key: &K) -> Option<SearchResult> {
        let slot = lock(&self.0).get(key)?.clone();
        match &*lock(&slot) {
            SearchProgress::Done(result) | SearchProgress::OnlyServersLeft(result) => {
                Some(result.clone())
            }
            SearchProgress::New => None,
        }
    }
}

impl SearchProgress {
    /// Whether symbols were found already.
    pub fn is_resolved(&self) -> bool {
        matches!(self, Self::Done(result) if result.symbols.is_some())
    }
}

impl<K> Default for Slots<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Symbolizer;
    use crate::fixture::TestPdb;

    fn write(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    #[test]
    fn nothing_leads_out_of_a_closed_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let (folder, outside) = (home.path().join("plain"), home.path().join("outside/a.pdb"));
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        // A fresh cache each time, because symcaches of one search would serve the next.
        let is_resolved_with = |closed_folders: &[PathBuf]| {
            let cache = tempfile::tempdir().expect("a folder");
            let options = SymbolizerOptions {
                symcache_folder: Some(cache.path().to_owned()),
                closed_folders: closed_folders.to_vec(),
                ..SymbolizerOptions::default()
            };
            let path = SymbolPath::parse(&folder.to_string_lossy());
            let chains = Symbolizer::new(path, options).resolve(&pdb.module("a.pdb"), &[0x1000]);
            chains.iter().any(|chain| !chain.is_empty())
        };
        let closed = [folder.clone()];
        write(&outside, &pdb.bytes());
        write(&folder.join("a.pdb"), &pdb.bytes());
        assert!(is_resolved_with(&closed), "what lies in the folder");
        fs::remove_file(folder.join("a.pdb")).expect("a file");
        let pointer = folder.join(pdb.store_path("a.pdb")).with_file_name("file.ptr");
        write(&pointer, format!("PATH:{}", outside.to_string_lossy()).as_bytes());
        assert!(is_resolved_with(&[]) && !is_resolved_with(&closed), "a pointer");
        fs::remove_dir_all(folder.join("a.pdb")).expect("a folder");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, folder.join("a.pdb")).expect("a link");
            assert!(is_resolved_with(&[]) && !is_resolved_with(&closed), "a link");
        }
    }
}
