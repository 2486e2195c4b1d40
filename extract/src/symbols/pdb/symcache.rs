//! The cache of converted PDBs, so that every PDB is parsed only once.
//!
//! A symcache lies at `symcache-vN/NAME.pdb/INDEX/NAME.symcache` in our cache folder; N is
//! symbolic's format version. This program appends a footer to symbolic's bytes:
//!
//! | offset from the end | content (little endian)                             |
//! |---------------------|-----------------------------------------------------|
//! | -32                 | magic `HSYMC001`                                    |
//! | -24                 | size of the PDB in bytes                            |
//! | -16                 | modification time of the PDB, ns since 1970         |
//! | -8                  | checksum of everything before, so that a damaged file is noticed |
//!
//! Files are written under a temporary name and renamed, never changed, because they may be mapped at any time.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use handlescope_model::OutputFile;
use rustc_hash::FxHasher;
use symbolic::common::ByteView;
use symbolic::symcache::{SYMCACHE_VERSION, SymCache};

use crate::symbols::identity::{PdbIdentity, StoreKey, private_folder};
use crate::symbols::report::SymbolFileError;

/// Changes whenever the footer or the names that are put into a symcache change.
const MAGIC: &[u8; 8] = b"HSYMC001";
const FOOTER: usize = 32;

/// The folder of all symcaches; without one, they are kept in memory.
pub(in crate::symbols) struct SymcacheStore {
    folder: Option<PathBuf>,
}

/// A valid symcache of the right PDB.
pub(in crate::symbols) struct StoredSymcache {
    pub(in crate::symbols) path: PathBuf,
    pub(in crate::symbols) bytes: ByteView<'static>,
    /// The PDB it was made from.
    pub(in crate::symbols) source: FileStamp,
}

/// Fingerprint that shows whether a PDB is still the file that was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::symbols) struct FileStamp {
    pub(in crate::symbols) size: u64,
    pub(in crate::symbols) modified_ns: u64,
}

impl FileStamp {
    pub(in crate::symbols) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let age = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = age.and_then(|age| u64::try_from(age.as_nanos()).ok()).unwrap_or(0);
        Ok(Self { size: metadata.len(), modified_ns })
    }
}

impl SymcacheStore {
    pub(in crate::symbols) fn new(folder: Option<PathBuf>) -> Self {
        let version = format!("symcache-v{SYMCACHE_VERSION}");
        Self { folder: folder.map(|cache| private_folder(&cache).join(version)) }
    }

    /// The symcache of a PDB, if there is one and it is intact.
    pub(in crate::symbols) fn open(
        &self,
        key: &StoreKey,
        pdb: &PdbIdentity,
    ) -> Option<StoredSymcache> {
        let path = self.path(key)?;
        let bytes = ByteView::open(&path).ok()?;
        let source = read_footer(&bytes)?;
        let symcache = SymCache::parse(&bytes).ok()?;
        let is_right = symcache.is_latest() && symcache.debug_id() == pdb.debug_id();
        is_right.then_some(StoredSymcache { path, bytes, source })
    }

    /// Stores a new symcache and maps it; uses the bytes in memory if it cannot be stored.
    pub(in crate::symbols) fn save(
        &self,
        key: &StoreKey,
        symcache: Vec<u8>,
        source: FileStamp,
    ) -> (ByteView<'static>, Option<SymbolFileError>) {
        let Some(path) = self.path(key) else { return (ByteView::from_vec(symcache), None) };
        match write(&path, &symcache, source) {
            Ok(bytes) => (bytes, None),
            Err(source) => {
                let error = SymbolFileError::Io { action: "write", path, source };
                (ByteView::from_vec(symcache), Some(error))
            }
        }
    }

    fn path(&self, key: &StoreKey) -> Option<PathBuf> {
        let stem = Path::new(&key.name).with_extension("symcache");
        Some(self.folder.as_ref()?.join(&key.name).join(&key.index).join(stem))
    }
}

fn write(path: &Path, symcache: &[u8], source: FileStamp) -> io::Result<ByteView<'static>> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut file = OutputFile::beside(path)?;
    file.write_all(symcache)?;
    file.write_all(&footer(symcache, source))?;
    file.persist(path)?;
    ByteView::open(path)
}

fn footer(symcache: &[u8], source: FileStamp) -> [u8; FOOTER] {
    let mut footer = [0; FOOTER];
    let fields = [
        *MAGIC,
        source.size.to_le_bytes(),
        source.modified_ns.to_le_bytes(),
        checksum(symcache, source).to_le_bytes(),
    ];
    for (slot, field) in footer.chunks_exact_mut(8).zip(fields) {
        slot.copy_from_slice(&field);
    }
    footer
}

/// The stamp from an intact footer.
fn read_footer(bytes: &[u8]) -> Option<FileStamp> {
    let (symcache, stored_footer) = bytes.split_last_chunk::<FOOTER>()?;
    let field = |at: usize| stored_footer.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let source = FileStamp { size: field(8)?, modified_ns: field(16)? };
    (*stored_footer == footer(symcache, source)).then_some(source)
}

fn checksum(symcache: &[u8], source: FileStamp) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(symcache);
    hasher.write_u64(source.size);
    hasher.write_u64(source.modified_ns);
    hasher.finish()
}
