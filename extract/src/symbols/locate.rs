//! Files in the local places of the symbol path, which are searched before the servers.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use handlescope_model::guard::lock;

use super::folders::Candidate;
use super::identity::{PdbIdentity, StoreKey};
use super::install::{Form, Install};
use super::pointer;
use super::report::SymbolFileError;
use super::search::Search;

impl Search {
    /// Files in the local places of the path which may be the PDB or image, best first.
    pub(super) fn local(&self, key: &StoreKey) -> Vec<Candidate> {
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
            path = target_of(candidate)?;
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
}

fn target_of(pointer: &Candidate) -> Result<PathBuf, SymbolFileError> {
    let path = &pointer.path;
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(pointer::MAX_BYTES).read_to_end(&mut text))
        .map_err(SymbolFileError::io("read", path))?;
    pointer::follow(&text, &pointer::Source::Folder)
        .map_err(|reason| SymbolFileError::Pointer { path: path.clone(), reason })
}
