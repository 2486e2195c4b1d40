//! The identity of an image file, from its headers: a few reads of bounded size, however large it is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use goblin::pe::debug::{
    CODEVIEW_PDB70_MAGIC, IMAGE_DEBUG_DIRECTORY_SIZE, IMAGE_DEBUG_TYPE_CODEVIEW,
};
use goblin::pe::header::{Header, SIZEOF_COFF_HEADER, SIZEOF_PE_MAGIC};
use goblin::pe::options::ParseOptions;
use goblin::pe::utils::find_offset;
use handlescope_model::guard::quietly;

/// Bytes in which the headers lie; those of drivers with a large stub need 4 KiB.
const HEADER_BYTES: usize = 16 << 10;
/// Windows loads no more.
const MOST_SECTIONS: u16 = 96;
/// Linkers write less than ten.
const MOST_ENTRIES: usize = 64;
/// A record with a GUID and the path of a PDB; Windows has paths of 32,767 characters, builds have not.
const RECORD_BYTES: usize = 24 + 2048;

/// What an image file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageFile {
    pub(super) timestamp: u32,
    pub(super) checksum: u32,
    /// Size of the image when it is mapped, bytes.
    pub(super) size: u32,
    pub(super) pdb: Option<Pdb>,
}

/// The PDB that belongs to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pdb {
    /// As it stands on disk: the first three groups little-endian.
    pub(super) guid: [u8; 16],
    pub(super) age: u32,
    /// Name, mostly a path of the build machine, without terminator.
    pub(super) name: Vec<u8>,
}

impl ImageFile {
    /// Reads a file; `None` when it cannot be read or is not an image.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        // The parser calculates with what a damaged file says.
        quietly(|| Self::read(&mut file)).ok()?
    }

    fn read(file: &mut (impl Read + Seek)) -> Option<Self> {
        let bytes = read_at(file, 0, HEADER_BYTES).ok()?;
        let header = Header::parse(&bytes).ok()?;
        let optional = header.optional_header?;
        let mut found = Self {
            timestamp: header.coff_header.time_date_stamp,
            checksum: optional.windows_fields.check_sum,
            size: optional.windows_fields.size_of_image,
            pdb: None,
        };
        let Some(directory) = optional.data_directories.get_debug_table() else {
            return Some(found);
        };
        let entries = (directory.size as usize / IMAGE_DEBUG_DIRECTORY_SIZE).min(MOST_ENTRIES);
        let at = offset(&bytes, &header, directory.virtual_address)?;
        let entries = read_at(file, at, entries * IMAGE_DEBUG_DIRECTORY_SIZE).ok()?;
        found.pdb = entries
            .chunks_exact(IMAGE_DEBUG_DIRECTORY_SIZE)
            .filter(|entry| u32_at(entry, 12) == Some(IMAGE_DEBUG_TYPE_CODEVIEW))
            .find_map(|entry| {
                let (size, at) = (u32_at(entry, 16)?, u32_at(entry, 24)?);
                let size = RECORD_BYTES.min(size as usize);
                Pdb::parse(&read_at(file, at.into(), size).ok()?)
            });
        Some(found)
    }
}

impl Pdb {
    /// An RSDS record; `None` when it is another one, or its name does not end.
    fn parse(record: &[u8]) -> Option<Self> {
        let rest = record.strip_prefix(&CODEVIEW_PDB70_MAGIC.to_le_bytes())?;
        let (guid, rest) = rest.split_first_chunk()?;
        let (age, rest) = rest.split_first_chunk()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let name = rest.get(..end)?.to_vec();
        Some(Self { guid: *guid, age: u32::from_le_bytes(*age), name })
    }
}

/// Where an address of the image lies in the file.
fn offset(bytes: &[u8], header: &Header<'_>, rva: u32) -> Option<u64> {
    let coff = &header.coff_header;
    if coff.number_of_sections > MOST_SECTIONS {
        return None;
    }
    let mut at = usize::try_from(header.dos_header.pe_pointer).ok()?
        + SIZEOF_PE_MAGIC
        + SIZEOF_COFF_HEADER
        + usize::from(coff.size_of_optional_header);
    let sections = coff.sections(bytes, &mut at).ok()?;
    let alignment = header.optional_header?.windows_fields.file_alignment;
    let rva = usize::try_from(rva).ok()?;
    find_offset(rva, &sections, alignment, &ParseOptions::default()).map(|at| at as u64)
}

/// Up to so many bytes at an offset; fewer where the file ends.
fn read_at(file: &mut (impl Read + Seek), at: u64, size: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(size as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;
    use std::path::PathBuf;

    use symbolic::debuginfo::pe::PeObject;

    use super::*;

    fn sample() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bin");
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn an_image_names_the_pdb_that_other_readers_find() {
        for path in sample() {
            let bytes = fs::read(&path).unwrap();
            let expected = PeObject::parse(&bytes).unwrap().debug_id();
            let found = ImageFile::open(&path).unwrap();
            let pdb = found.pdb.unwrap();
            let guid = uuid::Uuid::from_bytes_le(pdb.guid);
            assert_eq!((guid, pdb.age), (expected.uuid(), expected.appendix()), "{path:?}");
            assert!(pdb.name.ends_with(b".pdb"), "{path:?}");
            let header = Header::parse(&bytes).unwrap();
            let size = header.optional_header.unwrap().windows_fields.size_of_image;
            assert_eq!((found.timestamp, found.size), (header.coff_header.time_date_stamp, size));
        }
    }

    #[test]
    fn what_is_cut_or_damaged_is_unknown_and_no_panic() {
        let bytes = fs::read(sample().pop().unwrap()).unwrap();
        let whole = ImageFile::read(&mut Cursor::new(&bytes)).unwrap();
        for end in (0..bytes.len()).step_by(37) {
            let cut = quietly(|| ImageFile::read(&mut Cursor::new(&bytes[..end]))).ok().flatten();
            assert!(cut.is_none_or(|cut| cut.pdb.is_none() || cut == whole), "{end}");
        }
        for at in 0..1024.min(bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xFF;
            let _ = quietly(|| ImageFile::read(&mut Cursor::new(&damaged)));
        }
        let mut text = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut text, b"MZ no image").unwrap();
        assert_eq!(ImageFile::open(text.path()), None);
        assert_eq!(ImageFile::open(Path::new("/nowhere.dll")), None);
    }
}
