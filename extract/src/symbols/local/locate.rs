//! Files in the local places of the symbol path, which are searched before the servers.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use handlescope_model::guard::lock;

use crate::symbols::identity::{PdbIdentity, StoreKey};
use crate::symbols::local::folders::Candidate;
use crate::symbols::path::pointer::{self, PointerError};
use crate::symbols::report::{Origin, SymbolFileError};
use crate::symbols::search::Search;
use crate::symbols::server::install::{Form, Install};

impl Search {
    /// Files in the local places of the path which may be the PDB or image, best first.
    pub(in crate::symbols) fn local(&self, key: &StoreKey) -> Vec<Candidate> {
        let mut found = lock(&self.folders).find(key);
        found.retain(|candidate| self.stays(candidate, &candidate.path));
        found
    }

    /// Whether a file lies in the folder in which it was found, if nothing leads out of that.
    fn stays(&self, candidate: &Candidate, file: &Path) -> bool {
        let real = || {
            Some((file.canonicalize().ok()?, self.closed_folder(candidate)?.canonicalize().ok()?))
        };
        self.closed_folder(candidate).is_none()
            || real().is_some_and(|(file, folder)| file.starts_with(folder))
    }

    /// The folder out of which nothing leads in which a candidate was found.
    fn closed_folder(&self, candidate: &Candidate) -> Option<&PathBuf> {
        let Origin::Folder(found) = &candidate.origin else { return None };
        self.closed.iter().find(|folder| *folder == found)
    }

    /// The PDB of a candidate, unpacked into a cache if need be.
    pub(in crate::symbols) fn file_of(
        &self,
        candidate: &Candidate,
        key: &StoreKey,
        pdb: &PdbIdentity,
    ) -> Result<PathBuf, SymbolFileError> {
        let mut path = candidate.path.clone();
        if let Some(member) = &candidate.member {
            return lock(&self.folders).packed.unpack(&path, member, key, self.max_bytes);
        }
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
            budget: None,
            shown: path.clone(),
        };
        install.packed(&path)
    }

    /// The file that a candidate points to.
    fn target_of(&self, candidate: &Candidate) -> Result<PathBuf, SymbolFileError> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::symbols::fixture::TestPdb;
    use crate::symbols::{SymbolPath, Symbolizer, SymbolizerOptions};

    fn write(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    #[test]
    fn nothing_leads_out_of_a_closed_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let (folder, outside) = (home.path().join("plain"), home.path().join("outside/a.pdb"));
        let pdb = TestPdb::new(&[(0x1000, "Work")]);
        // Symcaches of one search would serve the next one.
        let is_found = |closed_folders: &[PathBuf]| {
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
        assert!(is_found(&closed), "what lies in the folder");
        fs::remove_file(folder.join("a.pdb")).expect("a file");
        let pointer = folder.join(pdb.store_path("a.pdb")).with_file_name("file.ptr");
        write(&pointer, format!("PATH:{}", outside.to_string_lossy()).as_bytes());
        assert!(is_found(&[]) && !is_found(&closed), "a pointer");
        fs::remove_dir_all(folder.join("a.pdb")).expect("a folder");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, folder.join("a.pdb")).expect("a link");
            assert!(is_found(&[]) && !is_found(&closed), "a link");
        }
    }
}
