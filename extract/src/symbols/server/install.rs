//! The last steps of a PDB's way into the cache: unpacked, checked, renamed, copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use handlescope_model::output::named_in;
use tempfile::NamedTempFile;

use crate::symbols::identity::{PdbIdentity, StoreKey};
use crate::symbols::options::DownloadBudget;
use crate::symbols::path::pointer;
use crate::symbols::pdb::PdbFile;
use crate::symbols::report::SymbolFileError;
use crate::symbols::server::partial::{self, Received};
use crate::symbols::server::unpack::{Packing, unpack};

/// The forms in which stores keep a file, in the order they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::symbols) enum Form {
    /// `NAME.pdb`
    Plain,
    /// `NAME.pd_`
    Cabinet,
    /// `file.ptr`
    Pointer,
}

impl Form {
    pub(in crate::symbols) const ALL: [Self; 3] = [Self::Plain, Self::Cabinet, Self::Pointer];

    /// What a file of this name is called in this form.
    pub(in crate::symbols) fn name(self, name: &str) -> Option<String> {
        match self {
            Self::Plain => Some(name.to_owned()),
            Self::Pointer => Some(pointer::FILE_NAME.to_owned()),
            Self::Cabinet => {
                let (stem, extension) = name.rsplit_once('.')?;
                let mut extension = extension.to_owned();
                let last = extension.pop()?;
                (last != '_').then(|| format!("{stem}.{extension}_"))
            }
        }
    }

    /// How files of this form begin.
    pub(in crate::symbols) fn magic(self) -> &'static [u8] {
        match self {
            Self::Plain => b"Microsoft C/C++ ",
            Self::Cabinet => b"MSCF",
            Self::Pointer => b"",
        }
    }
}

/// The folder of a file in a cache.
pub(in crate::symbols) fn folder(cache: &Path, key: &StoreKey) -> PathBuf {
    cache.join(&key.name).join(&key.index)
}

/// A PDB on its way.
pub(in crate::symbols) struct Install {
    pub(in crate::symbols) form: Form,
    /// Where it goes: to the first, and copies to the others.
    pub(in crate::symbols) caches: Vec<PathBuf>,
    pub(in crate::symbols) key: StoreKey,
    pub(in crate::symbols) pdb: PdbIdentity,
    pub(in crate::symbols) max_bytes: u64,
    /// Of downloads; what lies in a store is none.
    pub(in crate::symbols) budget: Option<DownloadBudget>,
    /// Where it comes from, for messages.
    pub(in crate::symbols) shown: PathBuf,
}

impl Install {
    /// Moves a download into the cache if it is the right PDB; otherwise nothing remains of it.
    pub(in crate::symbols) fn received(
        &self,
        received: Received,
    ) -> Result<PathBuf, SymbolFileError> {
        let mut file = received;
        if file.source.encoding == "gzip" {
            file = self.unpacked(file, Packing::Gzip)?;
        }
        if self.form == Form::Cabinet {
            file = self.unpacked(file, Packing::Cabinet)?;
        }
        self.finish(file)
    }

    /// Unpacks a file of a store into the cache if it is the right PDB.
    pub(in crate::symbols) fn packed(&self, packed: &Path) -> Result<PathBuf, SymbolFileError> {
        self.finish(self.unpack(packed, Packing::Cabinet)?.into())
    }

    fn unpacked(&self, packed: Received, packing: Packing) -> Result<Received, SymbolFileError> {
        let file = self.unpack(packed.path(), packing);
        packed.discard();
        file.map(Received::from)
    }

    /// Unpacks into the folder of files that are not whole, where what an interruption leaves is removed.
    fn unpack(&self, packed: &Path, packing: Packing) -> Result<NamedTempFile, SymbolFileError> {
        let folder = partial::folder(self.cache()?);
        let spend = |bytes| match &self.budget {
            Some(budget) => budget.spend(bytes).map_err(io::Error::other),
            None => Ok(()),
        };
        unpack(packed, packing, &folder, self.max_bytes, &spend, &self.shown)
    }

    fn finish(&self, source: Received) -> Result<PathBuf, SymbolFileError> {
        let opened = PdbFile::open_as(source.path(), &self.shown);
        if let Err(error) = opened.and_then(|file| file.verify(&self.pdb)) {
            source.discard();
            return Err(error);
        }
        let file = folder(self.cache()?, &self.key).join(&self.key.name);
        if let Err(error) = source.persist(&file)
            // Another session may have been faster; on Windows its file can not be replaced.
            && !file.is_file()
        {
            return Err(SymbolFileError::Io { action: "write", path: file, source: error });
        }
        for cache in self.caches.iter().skip(1) {
            // A shared cache that may only be read is usual.
            let _ = copy(&file, cache, &self.key);
        }
        Ok(file)
    }

    fn cache(&self) -> Result<&Path, SymbolFileError> {
        let none = || io::Error::other("there is no folder for caches");
        let cache = self.caches.first().map(PathBuf::as_path);
        cache.ok_or_else(|| SymbolFileError::io("keep", &self.shown)(none()))
    }
}

fn copy(file: &Path, cache: &Path, key: &StoreKey) -> io::Result<()> {
    let target = folder(cache, key).join(&key.name);
    if target.exists() {
        return Ok(());
    }
    let temporary = partial::folder(cache);
    fs::create_dir_all(&temporary)?;
    let mut copy = named_in(&temporary)?;
    io::copy(&mut fs::File::open(file)?, &mut copy)?;
    Received::from(copy).persist(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compressed_name_ends_in_an_underscore() {
        let name = |name| Form::Cabinet.name(name);
        assert_eq!(name("a.pdb").as_deref(), Some("a.pd_"));
        assert_eq!(name("A.B.PDB").as_deref(), Some("A.B.PD_"));
        assert_eq!(name("ä.ö").as_deref(), Some("ä._"));
        for odd in ["a", "a.", "a.pd_"] {
            assert_eq!(name(odd), None, "{odd}");
        }
    }
}
