//! Finding the PDB of a module along the symbol path: local places first, then the servers.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Mutex;

use handlescope_model::guard::lock;

use super::downloads::Downloads;
use super::folders::{Candidate, LocalFolders};
use super::identity::{PdbIdentity, StoreKey};
use super::install::{Form, Install};
use super::options::SymbolizerOptions;
use super::path::{self, SymbolPath};
use super::pointer;
use super::report::SymbolFileError;

/// All places of a symbol path.
pub(super) struct Locator {
    folders: Mutex<LocalFolders>,
    pub(super) downloads: Downloads,
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
            .map_err(SymbolFileError::io("read", path))?;
        pointer::follow(&text, &pointer::Source::Folder)
            .map_err(|reason| SymbolFileError::Pointer { path: path.clone(), reason })
    }

    /// Looks everywhere again.
    pub(super) fn forget_missing(&self) {
        lock(&self.folders).forget();
        self.downloads.forget_missing();
    }
}
