//! The cache of converted PDBs, so that each PDB is parsed only once.
//!
//! A file `symcache-vN/NAME.pdb/INDEX/NAME.symcache` in our cache folder has the symcaches of a PDB: a single one for
//! the whole PDB, or several for a large one, each covering a requested part. N is symbolic's format version. The bytes
//! of each symcache start at a multiple of eight; they are followed by (little endian):
//!
//! | content                                                                                  | bytes  |
//! |------------------------------------------------------------------------------------------|--------|
//! | the ranges of addresses that symcaches answer for: start and end of each                 | 4 + 4  |
//! | for each symcache its size and its number of ranges                                      | 8 + 8  |
//! | magic `HSYMC002`                                                                         | 8      |
//! | number of symcaches                                                                      | 8      |
//! | size of the PDB in bytes                                                                 | 8      |
//! | modification time of the PDB, ns since 1970                                              | 8      |
//! | checksum of everything before, so that a damaged file is noticed                         | 8      |
//!
//! Files are written under a temporary name and renamed, never changed, because they may be mapped at any time.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use handlescope_model::OutputFile;
use rustc_hash::FxHasher;
use symbolic::common::ByteView;
use symbolic::symcache::{SYMCACHE_VERSION, SourceLocation, SymCache};

use super::ranges::Ranges;
use crate::identity::{PdbIdentity, StoreKey, private_folder};
use crate::report::SymbolFileError;

/// Must change whenever the layout or the names stored in symcaches change.
const MAGIC: &[u8; 8] = b"HSYMC002";
const FOOTER: usize = 40;

/// A symcache of a PDB or of a part of it.
pub struct PartSymcache {
    pub bytes: Vec<u8>,
    /// The addresses it covers.
    pub ranges: Ranges,
}

/// The symcaches of a PDB.
#[derive(Clone)]
pub struct Symcaches {
    bytes: ByteView<'static>,
    parts: Vec<(Range<usize>, Ranges)>,
    /// The PDB they were made from.
    pub source: FileStamp,
}

/// The folder for all symcaches; without one they are kept in memory.
pub struct SymcacheStore {
    folder: Option<PathBuf>,
}

/// A fingerprint that shows whether a PDB is still the file that was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    pub size: u64,
    pub modified_ns: u64,
}

impl FileStamp {
    pub fn new(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let age = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = age.and_then(|age| u64::try_from(age.as_nanos()).ok()).unwrap_or(0);
        Ok(Self { size: metadata.len(), modified_ns })
    }
}

impl SymcacheStore {
    pub fn new(folder: Option<PathBuf>) -> Self {
        let version = format!("symcache-v{SYMCACHE_VERSION}");
        Self { folder: folder.map(|cache| private_folder(&cache).join(version)) }
    }

    /// Returns the symcaches of a PDB and their file, if it exists and is intact.
    pub fn open(&self, key: &StoreKey, pdb: &PdbIdentity) -> Option<(Symcaches, PathBuf)> {
        let path = self.path(key)?;
        let symcaches = Symcaches::parse(ByteView::open(&path).ok()?)?;
        symcaches.are_of(pdb).then_some((symcaches, path))
    }

    /// Stores symcaches and maps them; if they cannot be stored, keeps using those in memory.
    pub fn save(
        &self,
        key: &StoreKey,
        symcaches: Symcaches,
    ) -> (Symcaches, Option<SymbolFileError>) {
        let Some(path) = self.path(key) else { return (symcaches, None) };
        match write(&path, &symcaches.bytes) {
            Ok(bytes) => (Symcaches { bytes, ..symcaches }, None),
            Err(source) => (symcaches, Some(SymbolFileError::Io { action: "write", path, source })),
        }
    }

    fn path(&self, key: &StoreKey) -> Option<PathBuf> {
        let stem = Path::new(&key.name).with_extension("symcache");
        Some(self.folder.as_ref()?.join(&key.name).join(&key.index).join(stem))
    }
}

impl Symcaches {
    /// Creates an empty set of symcaches.
    pub fn none_of(source: FileStamp) -> Self {
        Self { bytes: ByteView::from_vec(Vec::new()), parts: Vec::new(), source }
    }

    /// Adds symcaches of further parts of the PDB, whose stamp is now `source`.
    pub fn with(&self, added: &[PartSymcache], source: FileStamp) -> Self {
        let known = self
            .parts
            .iter()
            .filter_map(|(place, ranges)| Some((self.bytes.get(place.clone())?, ranges)));
        let added = added.iter().map(|part| (&*part.bytes, &part.ranges));
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        for (symcache, ranges) in known.chain(added) {
            let start = bytes.len();
            bytes.extend(symcache);
            parts.push((start..bytes.len(), ranges.clone()));
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        for (_, ranges) in &parts {
            let ends = ranges.iter().flat_map(|range| [range.start, range.end]);
            bytes.extend(ends.flat_map(u32::to_le_bytes));
        }
        let sizes = parts.iter().flat_map(|(place, ranges)| [place.len(), ranges.iter().len()]);
        bytes.extend(sizes.flat_map(|size| (size as u64).to_le_bytes()));
        bytes.extend(MAGIC);
        for field in [parts.len() as u64, source.size, source.modified_ns] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        Self { bytes: ByteView::from_vec(bytes), parts, source }
    }

    /// Parses what [`Symcaches::with`] wrote; `None` if it is something else or damaged.
    fn parse(bytes: ByteView<'static>) -> Option<Self> {
        let (rest, footer) = bytes.split_last_chunk::<FOOTER>()?;
        let field = |at: usize| number(footer.get(at..at + 8)?);
        let (checked, _) = bytes.split_last_chunk::<8>()?;
        if !footer.starts_with(MAGIC) || field(32)? != checksum(checked) {
            return None;
        }
        let source = FileStamp { size: field(16)?, modified_ns: field(24)? };
        let table_size = usize::try_from(field(8)?).ok()?.checked_mul(16)?;
        let (rest, table) = rest.split_at_checked(rest.len().checked_sub(table_size)?)?;
        let sizes: Vec<usize> = table
            .chunks_exact(8)
            .map(|size| number(size)?.try_into().ok())
            .collect::<Option<_>>()?;
        let sizes = sizes.as_chunks::<2>().0;
        let ranges_size = sizes
            .iter()
            .try_fold(0_usize, |sum, [_, ranges]| sum.checked_add(ranges.checked_mul(8)?))?;
        let mut ends = rest.get(rest.len().checked_sub(ranges_size)?..)?.chunks_exact(8);
        let (mut parts, mut start) = (Vec::new(), 0_usize);
        for [size, ranges] in sizes {
            let end = start.checked_add(*size)?;
            let ranges = ends.by_ref().take(*ranges).filter_map(|ends| {
                let ends = number(ends)?;
                Some(ends as u32..(ends >> 32) as u32)
            });
            parts.push((start..end, ranges.collect()));
            start = end.next_multiple_of(8);
        }
        Some(Self { bytes, parts, source })
    }

    fn are_of(&self, pdb: &PdbIdentity) -> bool {
        self.parsed().all(|symcache| {
            symcache.is_some_and(|symcache| {
                symcache.is_latest() && symcache.debug_id() == pdb.debug_id()
            })
        })
    }

    fn parsed(&self) -> impl Iterator<Item = Option<SymCache<'_>>> {
        let bytes = self.parts.iter().map(|(place, _)| self.bytes.get(place.clone()));
        bytes.map(|bytes| SymCache::parse(bytes?).ok())
    }

    /// Opens all symcaches for looking up addresses.
    pub fn lookup(&self) -> Lookup<'_> {
        let ranges = self.parts.iter().map(|(_, ranges)| ranges);
        Lookup(
            self.parsed().zip(ranges).filter_map(|(part, ranges)| Some((part?, ranges))).collect(),
        )
    }

    /// Returns the addresses that the symcaches cover.
    pub fn ranges(&self) -> Ranges {
        self.parts.iter().flat_map(|(_, ranges)| ranges.iter().cloned()).collect()
    }

    /// Whether the symcaches cover these addresses.
    pub fn cover(&self, addresses: &[u32]) -> bool {
        let is_covered =
            |&address: &u32| self.parts.iter().any(|(_, ranges)| ranges.contains(address.into()));
        addresses.iter().all(is_covered)
    }

    /// Whether the symcaches cover the whole PDB.
    pub fn are_whole(&self) -> bool {
        self.parts.iter().any(|(_, ranges)| *ranges == Ranges::all())
    }
}

/// Parsed symcaches and the addresses that each covers.
pub struct Lookup<'s>(Vec<(SymCache<'s>, &'s Ranges)>);

impl<'s> Lookup<'s> {
    /// Returns the functions at an address, innermost first.
    pub fn at(&self, rva: u64) -> impl Iterator<Item = SourceLocation<'s, '_>> {
        let part = self.0.iter().find(|(_, ranges)| ranges.contains(rva));
        part.into_iter().flat_map(move |(symcache, _)| symcache.lookup(rva))
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<ByteView<'static>> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut file = OutputFile::beside(path)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    ByteView::open(path)
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
