//! Many modules at once: their PDBs are there before the first frame is resolved.

use std::path::Path;

use handlescope_model::guard::lock;
use rustc_hash::FxHashSet;

use super::identity::{ModuleIdentity, PdbIdentity, StoreKey};
use super::observer::Watch;
use super::pdb::PdbFile;
use super::pdb::symcache::FileStamp;
use super::search::{Progress, Search};

impl Search {
    /// Downloads the PDBs of modules that are in no local place of the path.
    pub(super) fn prepare<'a>(
        &self,
        modules: impl IntoIterator<Item = &'a ModuleIdentity>,
        watch: Watch<'_>,
    ) {
        if self.downloads.is_offline() {
            return;
        }
        let mut seen = FxHashSet::default();
        let mut wanted = Vec::new();
        for pdb in modules.into_iter().filter_map(|module| module.pdb.as_ref()) {
            if watch.cancel.is_cancelled() {
                return;
            }
            if seen.insert(pdb)
                && let Some(key) = StoreKey::new(pdb)
                && self.needs_server(&key, pdb)
            {
                wanted.push((key, pdb.clone()));
            }
        }
        self.downloads.fetch(&wanted, watch);
    }

    /// Looks again for what was not found.
    pub(super) fn forget_missing(&self) {
        self.pdbs.forget_missing();
        self.images.forget_missing();
        lock(&self.folders).forget();
        self.downloads.forget_missing();
    }

    fn needs_server(&self, key: &StoreKey, pdb: &PdbIdentity) -> bool {
        match &*lock(&self.pdbs.slot(pdb)) {
            Progress::New => !self.is_local(key, pdb),
            Progress::OnlyServersLeft(_) => true,
            Progress::Done(_) => false,
        }
    }

    /// Whether the PDB is in a local place, or its symcache serves instead.
    fn is_local(&self, key: &StoreKey, pdb: &PdbIdentity) -> bool {
        let stored = self.store.open(key, pdb).map(|stored| stored.source);
        if stored.is_some() && self.store_is_on_path {
            return true;
        }
        let is_right = |file: &Path| {
            let stamp = FileStamp::of(file).ok();
            let was_converted = stamp.is_some() && stamp == stored;
            was_converted || PdbFile::open(file).and_then(|file| file.verify(pdb)).is_ok()
        };
        let candidates = self.local(key);
        candidates
            .iter()
            .any(|candidate| self.file_of(candidate, key, pdb).is_ok_and(|file| is_right(&file)))
    }
}
