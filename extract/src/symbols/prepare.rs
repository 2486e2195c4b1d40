//! Many modules at once: their PDBs are there before the first frame is resolved.

use rustc_hash::FxHashSet;

use super::downloads::Wanted;
use super::observer::SymbolObserver;
use super::{FileStamp, Path};
use super::{ModuleIdentity, PdbFile, PdbIdentity, Search, State, StoreKey, Symbolizer};

impl Symbolizer {
    /// Downloads the PDBs of modules that are in no local place of the path, several at a time.
    ///
    /// [`Symbolizer::resolve`] finds them then, and asks no server for what is missing. It works
    /// without, but downloads one by one. Cancelled downloads are continued by the next call.
    pub fn prepare(&self, modules: &[ModuleIdentity], observer: &dyn SymbolObserver) {
        let (wanted, downloads) = {
            let mut state = self.state();
            let downloads = state.search.locator.downloads();
            if downloads.is_offline() {
                return;
            }
            (state.not_at_hand(modules, observer), downloads)
        };
        if !wanted.is_empty() && !observer.is_cancelled() {
            downloads.fetch(&wanted, observer);
        }
    }

    /// Looks again for what was not found, also on servers that did not have it or gave no answer,
    /// in this session and before.
    pub fn forget_missing(&self) {
        let mut state = self.state();
        state.found.retain(|_, found| found.symbols.is_some());
        state.search.locator.forget_missing();
    }
}

impl State {
    fn not_at_hand(
        &mut self,
        modules: &[ModuleIdentity],
        observer: &dyn SymbolObserver,
    ) -> Vec<Wanted> {
        let mut seen = FxHashSet::default();
        let mut wanted = Vec::new();
        for pdb in modules.iter().filter_map(|module| module.pdb.as_ref()) {
            if self.found.contains_key(pdb) || !seen.insert(pdb) || observer.is_cancelled() {
                continue;
            }
            if let Some(key) = StoreKey::new(pdb)
                && !self.search.is_at_hand(&key, pdb)
            {
                wanted.push((key, pdb.clone()));
            }
        }
        wanted
    }
}

impl Search {
    /// Whether the PDB is in a local place, or its symcache serves instead.
    fn is_at_hand(&mut self, key: &StoreKey, pdb: &PdbIdentity) -> bool {
        let stored = self.store.open(key, pdb).map(|stored| stored.source);
        if stored.is_some() && self.store_is_on_path {
            return true;
        }
        let is_right = |file: &Path| {
            let stamp = FileStamp::of(file).ok();
            let was_converted = stamp.is_some() && stamp == stored;
            was_converted || PdbFile::open(file).and_then(|file| file.verify(pdb)).is_ok()
        };
        let candidates = self.locator.find(key);
        candidates.iter().any(|candidate| {
            self.locator.file_of(candidate, key, pdb).is_ok_and(|file| is_right(&file))
        })
    }
}
