//! The last steps of a PDB's way into the cache: unpacked, checked, renamed, copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::identity::{PdbIdentity, StoreKey};
use super::partial::Received;
use super::pdb::PdbFile;
use super::pointer;
use super::report::SymbolFileError;
use super::unpack::{Packing, unpack};

/// The forms in which stores keep a file, in the order they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `NAME.pdb`
    Plain,
    /// `NAME.pd_`
    Cabinet,
    /// `file.ptr`
    Pointer,
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Cabinet, Self::Pointer];

    /// What a file of this name is called in this form.
    pub(super) fn name(self, name: &str) -> Option<String> {
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
    pub(super) fn magic(self) -> &'static [u8] {
        match self {
            Self::Plain => b"Microsoft C/C++ ",
            Self::Cabinet => b"MSCF",
            Self::Pointer => b"",
        }
    }
}

/// The folder of a file in a cache.
pub(super) fn folder(cache: &Path, key: &StoreKey) -> PathBuf {
    cache.join(&key.name).join(&key.index)
}

/// A PDB on its way.
pub(super) struct Install {
    pub(super) form: Form,
    /// Where it goes: to the first, and copies to the others.
    pub(super) caches: Vec<PathBuf>,
    pub(super) key: StoreKey,
    pub(super) pdb: PdbIdentity,
    pub(super) max_bytes: u64,
    /// Where it comes from, for messages.
    pub(super) shown: PathBuf,
}

/// A file that is checked under its temporary name.
enum Source {
    Received(Received),
    Temporary(NamedTempFile),
}

impl Install {
    /// Moves a download into the cache if it is the right PDB; otherwise nothing remains of it.
    pub(super) fn received(&self, received: Received) -> Result<PathBuf, SymbolFileError> {
        let mut source = Source::Received(received);
        if let Source::Received(received) = &source
            && received.source.encoding == "gzip"
        {
            source = self.unpacked(source, Packing::Gzip)?;
        }
        if self.form == Form::Cabinet {
            source = self.unpacked(source, Packing::Cabinet)?;
        }
        self.finish(source)
    }

    /// Unpacks a file of a store into the cache if it is the right PDB.
    pub(super) fn packed(&self, packed: &Path) -> Result<PathBuf, SymbolFileError> {
        let file = unpack(packed, Packing::Cabinet, &self.folder()?, self.max_bytes, &self.shown)?;
        self.finish(Source::Temporary(file))
    }

    fn unpacked(&self, packed: Source, packing: Packing) -> Result<Source, SymbolFileError> {
        let file = unpack(packed.path(), packing, &self.folder()?, self.max_bytes, &self.shown);
        packed.discard();
        file.map(Source::Temporary)
    }

    fn finish(&self, source: Source) -> Result<PathBuf, SymbolFileError> {
        let checked = PdbFile::open(source.path()).and_then(|file| file.verify(&self.pdb));
        if let Err(error) = checked {
            source.discard();
            return Err(error.at(self.shown.clone()));
        }
        let file = self.folder()?.join(&self.key.name);
        if let Err(error) = source.persist(&file)
            // Another session may have been faster; on Windows its file can not be replaced.
            && !file.is_file()
        {
            return Err(SymbolFileError::Io { action: "write", path: file, source: error });
        }
        for cache in self.caches.iter().skip(1) {
            // A shared cache that may only be read is usual.
            let _ = copy(&file, &folder(cache, &self.key), &self.key.name);
        }
        Ok(file)
    }

    fn folder(&self) -> Result<PathBuf, SymbolFileError> {
        let cache = self.caches.first().ok_or_else(|| SymbolFileError::Io {
            action: "keep",
            path: self.shown.clone(),
            source: io::Error::other("there is no folder for caches"),
        })?;
        Ok(folder(cache, &self.key))
    }
}

fn copy(file: &Path, folder: &Path, name: &str) -> io::Result<()> {
    let target = folder.join(name);
    if target.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut copy = NamedTempFile::new_in(folder)?;
    io::copy(&mut fs::File::open(file)?, &mut copy)?;
    persist(copy, &target)
}

/// With the rights of any new file: temporary ones are for their maker only.
fn persist(file: NamedTempFile, target: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(target)?;
    Ok(())
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::Received(received) => received.path(),
            Self::Temporary(file) => file.path(),
        }
    }

    fn discard(self) {
        match self {
            Self::Received(received) => received.discard(),
            Self::Temporary(_) => {}
        }
    }

    fn persist(self, target: &Path) -> io::Result<()> {
        match self {
            Self::Received(received) => received.persist(target),
            Self::Temporary(file) => persist(file, target),
        }
    }
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
