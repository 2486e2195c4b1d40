//! Installs a downloaded PDB in the cache: unpacks it within limits, checks, renames and copies it.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use cab::Cabinet;
use flate2::read::MultiGzDecoder;
use handlescope_model::guard::quietly;
use handlescope_model::output::named_in;
use handlescope_model::unpack::{CopyError, UnpackWatch, copy_at_most};
use tempfile::NamedTempFile;

use crate::identity::{PdbIdentity, StoreKey, TWO_TIERS};
use crate::options::DownloadBudget;
use crate::pdb::PdbFile;
use crate::pointer;
use crate::report::SymbolFileError;
use crate::server::partial::{self, ReceivedFile};

/// The forms in which stores keep a file, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// `NAME.pdb`
    Plain,
    /// `NAME.pd_`
    Cabinet,
    /// `file.ptr`
    Pointer,
}

impl FileForm {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Cabinet, Self::Pointer];

    /// Returns the name of a file in this form.
    pub fn name(self, name: &str) -> Option<String> {
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

    /// Returns the form of the file that a pointer leads to.
    pub fn from_target(path: &Path) -> Self {
        if path.to_string_lossy().ends_with('_') { Self::Cabinet } else { Self::Plain }
    }

    /// Returns the magic bytes of files in this form.
    pub fn magic(self) -> &'static [u8] {
        match self {
            Self::Plain => b"Microsoft C/C++ ",
            Self::Cabinet => b"MSCF",
            Self::Pointer => b"",
        }
    }
}

/// Returns the folder of a file in a cache, which may have two tiers.
pub fn folder(cache: &Path, key: &StoreKey) -> PathBuf {
    let root = if cache.join(TWO_TIERS).is_file() {
        cache.join(key.first_tier())
    } else {
        cache.to_owned()
    };
    root.join(&key.name).join(&key.index)
}

/// A PDB being installed.
pub struct Install {
    pub form: FileForm,
    /// Folders to store the PDB in: the first gets the file, the others get copies.
    pub caches: Vec<PathBuf>,
    pub key: StoreKey,
    pub pdb: PdbIdentity,
    pub max_bytes: u64,
    /// Download budget; `None` for a file in a store.
    pub budget: Option<DownloadBudget>,
    /// Where the file came from, for messages.
    pub shown: PathBuf,
}

impl Install {
    /// Moves a download into the cache if it is the right PDB; otherwise removes it.
    pub fn received(&self, received: ReceivedFile) -> Result<PathBuf, SymbolFileError> {
        let mut file = received;
        if file.source.encoding == "gzip" {
            file = self.unpacked(file, Packing::Gzip)?;
        }
        if self.form == FileForm::Cabinet {
            file = self.unpacked(file, Packing::Cabinet)?;
        }
        self.finish(file)
    }

    /// Unpacks a store's file into the cache if it is the right PDB.
    pub fn packed(&self, packed: &Path) -> Result<PathBuf, SymbolFileError> {
        self.finish(self.unpack(packed, Packing::Cabinet)?.into())
    }

    fn unpacked(
        &self,
        packed: ReceivedFile,
        packing: Packing,
    ) -> Result<ReceivedFile, SymbolFileError> {
        let file = self.unpack(packed.path(), packing);
        packed.discard();
        file.map(ReceivedFile::from)
    }

    /// Unpacks into the folder for partial files, where remains of interrupted sessions are cleaned up.
    fn unpack(&self, packed: &Path, packing: Packing) -> Result<NamedTempFile, SymbolFileError> {
        let folder = partial::folder(self.cache()?);
        let spend = |bytes| match &self.budget {
            Some(budget) => budget.spend(bytes).map_err(io::Error::other),
            None => Ok(()),
        };
        unpack(packed, packing, &folder, self.max_bytes, &spend, &self.shown)
    }

    fn finish(&self, source: ReceivedFile) -> Result<PathBuf, SymbolFileError> {
        let opened = PdbFile::open_as(source.path(), &self.shown);
        if let Err(error) = opened.and_then(|file| file.verify(&self.pdb)) {
            source.discard();
            return Err(error);
        }
        let file = folder(self.cache()?, &self.key).join(&self.key.name);
        if let Err(error) = source.persist(&file)
            // Another session may have finished first; on Windows its file cannot be replaced.
            && !file.is_file()
        {
            return Err(SymbolFileError::Io { action: "write", path: file, source: error });
        }
        for cache in self.caches.iter().skip(1) {
            // Shared caches are often read-only, so failures are ignored.
            let _ = copy(&file, cache, &self.key);
        }
        Ok(file)
    }

    fn cache(&self) -> Result<&Path, SymbolFileError> {
        self.caches.first().map(PathBuf::as_path).ok_or_else(|| {
            let error = io::Error::other("there is no folder for caches");
            SymbolFileError::io("keep", &self.shown)(error)
        })
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
    ReceivedFile::from(copy).persist(&target)
}

/// Maximum expansion of content larger than [`SMALL`]. PDBs compress to a fifth; anything beyond this limit is meant to
/// fill the disk.
const MAX_RATIO: u64 = 100;
const SMALL: u64 = 1 << 26;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A cabinet with one file, as made by `compress.exe` and `symstore /compress`.
    Cabinet,
    /// A server's `Content-Encoding`.
    Gzip,
}

/// Unpacks a file to a temporary file in `folder`. Errors call the file `shown`.
pub fn unpack(
    packed: &Path,
    packing: Packing,
    folder: &Path,
    max_bytes: u64,
    watch: UnpackWatch<'_>,
    shown: &Path,
) -> Result<NamedTempFile, SymbolFileError> {
    let input = File::open(packed).map_err(SymbolFileError::io("read", shown))?;
    let size = input.metadata().map_err(SymbolFileError::io("read", shown))?.len();
    let limit = max_bytes.min((size.saturating_mul(MAX_RATIO)).max(SMALL));
    fs::create_dir_all(folder).map_err(SymbolFileError::io("write", folder))?;
    let mut output = named_in(folder).map_err(SymbolFileError::io("write", folder))?;
    let input = BufReader::new(input);
    // The cab crate trusts the indexes in a cabinet and panics on a damaged one.
    let result = quietly(|| match packing {
        Packing::Cabinet => from_cabinet(input, &mut output, limit, watch),
        Packing::Gzip => {
            copy_expected(&mut MultiGzDecoder::new(input), &mut output, limit, None, watch)
        }
    });
    match result {
        Ok(Ok(())) => Ok(output),
        Ok(Err(CopyError::TooLong)) => Err(SymbolFileError::TooLarge { path: shown.into(), limit }),
        Ok(Err(CopyError::Write(source))) => Err(SymbolFileError::io("write", folder)(source)),
        Ok(Err(CopyError::Read(source))) => Err(damaged(shown, source)),
        Ok(Err(CopyError::Stopped(source))) => {
            Err(source.downcast().unwrap_or_else(|source| damaged(shown, source)))
        }
        Err(_) => Err(damaged(shown, "the cabinet cannot be read")),
    }
}

fn damaged(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> SymbolFileError {
    SymbolFileError::Malformed { path: path.to_owned(), source: source.into() }
}

fn from_cabinet(
    input: impl Read + Seek,
    output: &mut impl Write,
    limit: u64,
    watch: UnpackWatch<'_>,
) -> Result<(), CopyError> {
    let mut cabinet = Cabinet::new(input).map_err(CopyError::Read)?;
    let file = cabinet.folder_entries().flat_map(|folder| folder.file_entries()).next();
    let Some((name, size)) = file.map(|file| (file.name().to_owned(), file.uncompressed_size()))
    else {
        return Err(CopyError::Read(io::Error::other("the cabinet is empty")));
    };
    let size = u64::from(size);
    if size > limit {
        return Err(CopyError::TooLong);
    }
    // The name is only a key into the cabinet, never a file name.
    let mut file = cabinet.read_file(&name).map_err(CopyError::Read)?;
    copy_expected(&mut file, output, limit, Some(size), watch)
}

fn copy_expected(
    input: &mut impl Read,
    output: &mut impl Write,
    limit: u64,
    expected: Option<u64>,
    watch: UnpackWatch<'_>,
) -> Result<(), CopyError> {
    let copied = copy_at_most(limit, input, output, watch)?;
    if expected.is_some_and(|expected| expected != copied) {
        return Err(CopyError::Read(io::ErrorKind::UnexpectedEof.into()));
    }
    output.flush().map_err(CopyError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestPdb, cabinet, gzip};

    #[test]
    fn the_compressed_name_ends_in_an_underscore() {
        let name = |name| FileForm::Cabinet.name(name);
        assert_eq!(name("a.pdb").as_deref(), Some("a.pd_"));
        assert_eq!(name("A.B.PDB").as_deref(), Some("A.B.PD_"));
        assert_eq!(name("ä.ö").as_deref(), Some("ä._"));
        for odd in ["a", "a.", "a.pd_"] {
            assert_eq!(name(odd), None, "{odd}");
        }
    }

    fn unpacked(bytes: &[u8], packing: Packing, max: u64) -> Result<Vec<u8>, SymbolFileError> {
        let folder = tempfile::tempdir().expect("temporary folder");
        let packed = folder.path().join("a.pd_");
        fs::write(&packed, bytes).expect("packed file");
        let file = unpack(
            &packed,
            packing,
            &folder.path().join("out"),
            max,
            &|_| Ok(()),
            Path::new("a.pd_"),
        )?;
        Ok(fs::read(file.path()).expect("unpacked file"))
    }

    #[test]
    fn both_packings_give_back_the_file() {
        let pdb = TestPdb::new(&[(0x1010, "a")]).bytes();
        let is_same = |bytes: &[u8], packing| {
            unpacked(bytes, packing, u64::MAX).is_ok_and(|bytes| bytes == pdb)
        };
        assert!(is_same(&cabinet("x.pdb", &pdb), Packing::Cabinet));
        assert!(is_same(&cabinet("../../x.pdb", &pdb), Packing::Cabinet));
        assert!(is_same(&gzip(&pdb), Packing::Gzip));
    }

    #[test]
    fn more_than_the_limit_and_more_than_a_pdb_can_shrink_is_refused() {
        let is_refused = |result| matches!(result, Err(SymbolFileError::TooLarge { .. }));
        let zeros = vec![0; 5000];
        for (bytes, packing) in
            [(cabinet("a", &zeros), Packing::Cabinet), (gzip(&zeros), Packing::Gzip)]
        {
            assert!(is_refused(unpacked(&bytes, packing, 4999)));
            assert!(unpacked(&bytes, packing, 5000).is_ok());
        }
        let bomb = vec![0; 70 << 20];
        for (bytes, packing) in
            [(cabinet("a", &bomb), Packing::Cabinet), (gzip(&bomb), Packing::Gzip)]
        {
            assert!(is_refused(unpacked(&bytes, packing, u64::MAX)), "{packing:?}");
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_a_panic() {
        let pdb = TestPdb::new(&[(0x1010, "a"), (0x1020, "b")]).bytes();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..1000 {
            let packing = if round % 2 == 0 { Packing::Cabinet } else { Packing::Gzip };
            let mut bytes = match packing {
                Packing::Cabinet => cabinet("a.pdb", &pdb),
                Packing::Gzip => gzip(&pdb),
            };
            for _ in 0..=round % 5 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
                // Most errors are detected in the header.
                let len = if round % 3 == 0 { bytes.len() } else { bytes.len().min(80) };
                let at = (random >> 33) as usize % len;
                match round % 7 {
                    0 => bytes.truncate(at + 1),
                    1 => bytes[at] = 0xff,
                    _ => bytes[at] ^= 1 << (random >> 20 & 7),
                }
            }
            if let Err(error) = unpacked(&bytes, packing, 1 << 20) {
                assert!(!matches!(error, SymbolFileError::Io { .. }), "round {round}: {error}");
            }
        }
    }
}
