//! Finding the PDB of a module along the symbol path: local places first, then the servers.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use handlescope_model::guard::lock;

use super::downloads::{Downloads, Fetched, Wanted};
use super::folders::{Candidate, LocalFolders};
use super::identity::{PdbIdentity, StoreKey};
use super::install::{Form, Install};
use super::observer::Watch;
use super::options::SymbolizerOptions;
use super::path::{self, SymbolPath};
use super::pointer;
use super::report::SymbolFileError;

/// All places of a symbol path.
pub(super) struct Locator {
    folders: Mutex<LocalFolders>,
    downloads: Downloads,
    /// For what is found compressed in a store.
    cache: Option<PathBuf>,
    max_bytes: u64,
}

impl Locator {
    pub(super) fn new(path: &SymbolPath, options: &SymbolizerOptions) -> Self {
        Self {
            folders: Mutex::new(LocalFolders::new(path.folders())),
            downloads: Downloads::new(path, options),
            cache: path.first_cache().or_else(path::default_store),
            max_bytes: options.max_file_bytes,
        }
    }

    /// Files in the local places of the path which may be the PDB, best first.
    pub(super) fn find(&self, key: &StoreKey) -> Vec<Candidate> {
        lock(&self.folders).find(key)
    }

    /// The PDB of a candidate, unpacked into a cache if need be.
    pub(super) fn file_of(
        &self,
        candidate: &Candidate,
        key: &StoreKey,
        pdb: &PdbIdentity,
    ) -> Result<PathBuf, SymbolFileError> {
        let mut path = candidate.path.clone();
        let mut is_packed = candidate.form == Form::Cabinet;
        if candidate.form == Form::Pointer {
            path = self.target_of(candidate)?;
            is_packed = path.to_string_lossy().ends_with('_');
        }
        if !is_packed {
            return Ok(path);
        }
        let install = Install {
            form: Form::Cabinet,
            caches: self.cache.iter().cloned().collect(),
            key: key.clone(),
            pdb: pdb.clone(),
            max_bytes: self.max_bytes,
            shown: path.clone(),
        };
        install.packed(&path)
    }

    fn target_of(&self, pointer: &Candidate) -> Result<PathBuf, SymbolFileError> {
        let path = &pointer.path;
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(pointer::MAX_BYTES).read_to_end(&mut text))
            .map_err(|source| SymbolFileError::Io { action: "read", path: path.clone(), source })?;
        pointer::follow(&text, &pointer::Source::Folder)
            .map_err(|reason| SymbolFileError::Pointer { path: path.clone(), reason })
    }

    /// Whether there is a server for what is in no local place.
    pub(super) fn has_servers(&self) -> bool {
        !self.downloads.is_offline()
    }

    /// What the servers on the path have, each asked once in a session. `None` if cancelled.
    pub(super) fn download(
        &self,
        key: &StoreKey,
        pdb: &PdbIdentity,
        watch: Watch<'_>,
    ) -> Option<Arc<Fetched>> {
        self.download_all(&[(key.clone(), pdb.clone())], watch);
        self.fetched(pdb)
    }

    /// What came of an earlier download of this session.
    pub(super) fn fetched(&self, pdb: &PdbIdentity) -> Option<Arc<Fetched>> {
        self.downloads.fetched(pdb)
    }

    /// Asks for many PDBs at once.
    pub(super) fn download_all(&self, wanted: &[Wanted], watch: Watch<'_>) {
        self.downloads.fetch(wanted, watch);
    }

    /// Looks everywhere again.
    pub(super) fn forget_missing(&self) {
        lock(&self.folders).forget();
        self.downloads.forget_missing();
    }
}
