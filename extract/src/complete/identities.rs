//! Reads the identities of a trace's image files from the files themselves.
//!
//! The identity comes from the file's headers: a few reads of bounded size, however large the file. The records are
//! those a merge by Windows writes: classic events with the time of their image event.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use goblin::pe::debug::{
    CODEVIEW_PDB70_MAGIC, IMAGE_DEBUG_DIRECTORY_SIZE, IMAGE_DEBUG_TYPE_CODEVIEW,
};
use goblin::pe::header::{Header, SIZEOF_COFF_HEADER, SIZEOF_PE_MAGIC};
use goblin::pe::options::ParseOptions;
use goblin::pe::utils::find_offset;
use handlescope_model::guard::quietly;

use crate::etl::{Event, EventId, frame};
use crate::kernel::{IDENTITY_GUID, ImagePayload};

/// Finds an image's file by its path in the trace.
pub type Locate<'a> = &'a mut dyn FnMut(&str) -> Option<PathBuf>;

/// Maximum number of files looked for; systems have a few thousand.
const MAX_FILES: usize = 1 << 16;

/// Creates the records of images.
pub struct Identities<'a> {
    locate: Locate<'a>,
    /// Identities read from files, by path in the trace (UTF-16).
    files: HashMap<Box<[u8]>, IdentityRequest>,
    /// Records of the last event; the memory is reused for each event.
    records: Vec<Vec<u8>>,
}

/// A file, and whether it turned out to be an image's file.
struct IdentityRequest {
    file: Option<ImageFileIdentity>,
    is_right: bool,
}

impl<'a> Identities<'a> {
    pub fn new(locate: Locate<'a>) -> Self {
        Self { locate, files: HashMap::new(), records: Vec::new() }
    }

    /// Returns the records that belong between an event and the bytes `behind` it; none if the trace already has them.
    pub fn of(&mut self, event: &Event<'_>, behind: &[u8]) -> &[Vec<u8>] {
        self.records.clear();
        let Some(image) = ImagePayload::decode(event).filter(|_| !is_identity(behind, event.time))
        else {
            return &[];
        };
        if let Some(file) = self.file(&image) {
            let id = image_id(event, &image, file);
            let pdb = match &file.pdb {
                Some(pdb) => rsds(event, &image, pdb),
                None => no_debug_data(event, &image),
            };
            self.records = vec![id, pdb];
        }
        &self.records
    }

    /// Returns how many image files were identified, and how many were not.
    pub fn counts(&self) -> (u64, u64) {
        let identified = self.files.values().filter(|request| request.is_right).count() as u64;
        (identified, self.files.len() as u64 - identified)
    }

    /// Returns the identity from an image's file, if that is the file that was mapped.
    fn file(&mut self, image: &ImagePayload<'_>) -> Option<&ImageFileIdentity> {
        if !self.files.contains_key(image.path) {
            if self.files.len() >= MAX_FILES {
                return None;
            }
            let file = (self.locate)(&image.path()).and_then(|path| ImageFileIdentity::open(&path));
            self.files.insert(image.path.into(), IdentityRequest { file, is_right: false });
        }
        let request = self.files.get_mut(image.path)?;
        let file = request.file.as_ref().filter(|file| is_of(file, image))?;
        request.is_right = true;
        Some(file)
    }
}

/// Whether an image was mapped from a file: programs are replaced while they run.
fn is_of(file: &ImageFileIdentity, image: &ImagePayload<'_>) -> bool {
    let pages = |size: u64| size.div_ceil(0x1000);
    match image {
        ImagePayload { timestamp: 1.., .. } => image.timestamp == file.timestamp,
        // Rundowns have no timestamp.
        ImagePayload { checksum: 1.., .. } => image.checksum == file.checksum,
        ImagePayload { size, .. } => pages(*size) == pages(file.size.into()),
    }
}

/// Whether the bytes begin with an identity record of an image at this time.
fn is_identity(bytes: &[u8], time: i64) -> bool {
    frame(bytes, time).is_ok_and(|framed| {
        let is_record = matches!(framed.event.id, EventId::Classic { guid: IDENTITY_GUID, .. });
        is_record && framed.event.time == time
    })
}

/// Bytes that contain the headers; drivers with a large stub need 4 KiB.
const HEADER_BYTES: usize = 16 << 10;
/// Maximum number of sections; Windows loads no more.
const MAX_SECTIONS: u16 = 96;
/// Maximum number of debug entries; linkers write fewer than ten.
const MAX_ENTRIES: usize = 64;
/// Size of a record with a GUID and the path of a PDB. Windows allows paths of 32,767 characters, but builds do not
/// have them.
const RECORD_BYTES: usize = 24 + 2048;

/// Identity found in an image file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFileIdentity {
    pub timestamp: u32,
    pub checksum: u32,
    /// Size of the mapped image in bytes.
    pub size: u32,
    pub pdb: Option<ImagePdb>,
}

/// PDB of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePdb {
    /// Bytes in their on-disk form: the first three groups are little-endian.
    pub guid: [u8; 16],
    pub age: u32,
    /// Name, usually a path on the build machine, without terminator.
    pub name: Vec<u8>,
}

impl ImageFileIdentity {
    /// Reads a file; `None` if it cannot be read or is not an image.
    pub fn open(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        // The parser may panic on the numbers in a damaged file.
        quietly(|| Self::read(&mut file)).ok()?
    }

    fn read(file: &mut (impl Read + Seek)) -> Option<Self> {
        let bytes = read_at(file, 0, HEADER_BYTES).ok()?;
        let header = Header::parse(&bytes).ok()?;
        let optional = header.optional_header?;
        let mut image_file = Self {
            timestamp: header.coff_header.time_date_stamp,
            checksum: optional.windows_fields.check_sum,
            size: optional.windows_fields.size_of_image,
            pdb: None,
        };
        let Some(directory) = optional.data_directories.get_debug_table() else {
            return Some(image_file);
        };
        let entries = (directory.size as usize / IMAGE_DEBUG_DIRECTORY_SIZE).min(MAX_ENTRIES);
        let at = offset(&bytes, &header, directory.virtual_address)?;
        let entries = read_at(file, at, entries * IMAGE_DEBUG_DIRECTORY_SIZE).ok()?;
        image_file.pdb = entries
            .chunks_exact(IMAGE_DEBUG_DIRECTORY_SIZE)
            .filter(|entry| u32_at(entry, 12) == Some(IMAGE_DEBUG_TYPE_CODEVIEW))
            .find_map(|entry| {
                let (size, at) = (u32_at(entry, 16)?, u32_at(entry, 24)?);
                let size = RECORD_BYTES.min(size as usize);
                ImagePdb::parse(&read_at(file, at.into(), size).ok()?)
            });
        Some(image_file)
    }
}

impl ImagePdb {
    /// Decodes an RSDS record; `None` for records of other kinds and for names without terminator.
    fn parse(record: &[u8]) -> Option<Self> {
        let rest = record.strip_prefix(&CODEVIEW_PDB70_MAGIC.to_le_bytes())?;
        let (guid, rest) = rest.split_first_chunk()?;
        let (age, rest) = rest.split_first_chunk()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let name = rest.get(..end)?.to_vec();
        Some(Self { guid: *guid, age: u32::from_le_bytes(*age), name })
    }
}

/// Converts an address in the image to a file offset.
fn offset(bytes: &[u8], header: &Header<'_>, rva: u32) -> Option<u64> {
    let coff = &header.coff_header;
    if coff.number_of_sections > MAX_SECTIONS {
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

/// Reads up to `size` bytes at an offset; fewer at the end of the file.
fn read_at(file: &mut (impl Read + Seek), at: u64, size: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(size as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Returns the name by which Windows opens an image's file; `None` if unknown.
///
/// Devices are opened below `\\?\GLOBALROOT`, which does not depend on drive letters. `system_root` is the Windows
/// folder, such as `C:\Windows`: images loaded at boot have paths without a volume.
pub fn image_file_name(path: &str, system_root: &str) -> Option<String> {
    if let Some(path) = path.strip_prefix(r"\??\") {
        return Some(format!(r"\\?\{path}"));
    }
    let (first, rest) = path.strip_prefix('\\')?.split_once('\\')?;
    match first.to_ascii_lowercase().as_str() {
        "" => None,
        "device" => Some(format!(r"\\?\GLOBALROOT{path}")),
        "systemroot" => Some(format!(r"{system_root}\{rest}")),
        _ => Some(format!("{}{path}", system_root.get(..2)?)),
    }
}

/// Size of a classic event's header in bytes.
const HEADER: usize = 48;

const VERSION: u16 = 2;

const IMAGE_ID: u8 = 0;
const NO_DEBUG_DATA: u8 = 32;
const RSDS: u8 = 36;

/// Creates the record with the file's size and timestamp. The name in its version resource is not read, and stays
/// empty.
pub fn image_id(event: &Event<'_>, image: &ImagePayload<'_>, file: &ImageFileIdentity) -> Vec<u8> {
    let mut record = IdentityRecord::new(event, IMAGE_ID);
    record.pointer(image.base);
    record.pointer(file.size.into());
    record.add(&image.pid.to_le_bytes());
    record.add(&file.timestamp.to_le_bytes());
    record.add(&[0, 0]);
    record.finish()
}

/// Creates the record with the PDB of an image.
pub fn rsds(event: &Event<'_>, image: &ImagePayload<'_>, pdb: &ImagePdb) -> Vec<u8> {
    let mut record = IdentityRecord::new(event, RSDS);
    record.pointer(image.base);
    record.add(&image.pid.to_le_bytes());
    record.add(&pdb.guid);
    record.add(&pdb.age.to_le_bytes());
    record.add(&pdb.name);
    record.add(&[0]);
    record.finish()
}

/// Creates the record of an image that names no PDB.
pub fn no_debug_data(event: &Event<'_>, image: &ImagePayload<'_>) -> Vec<u8> {
    let mut record = IdentityRecord::new(event, NO_DEBUG_DATA);
    record.pointer(image.base);
    record.add(&image.pid.to_le_bytes());
    record.finish()
}

/// Record under construction.
struct IdentityRecord {
    bytes: Vec<u8>,
    pointer_size: usize,
}

impl IdentityRecord {
    /// Begins a record with the process, thread, time and pointer size of an event.
    fn new(event: &Event<'_>, opcode: u8) -> Self {
        let kind = if event.pointer_size == 8 { 20 } else { 10 };
        let id = |id: Option<u32>| id.unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(HEADER + 128);
        bytes.extend([0, 0, kind, 0xC0, opcode, 0]);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(id(event.tid));
        bytes.extend(id(event.pid));
        bytes.extend(event.time.to_le_bytes());
        bytes.extend(IDENTITY_GUID.0);
        bytes.extend([0; 8]);
        Self { bytes, pointer_size: event.pointer_size }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn pointer(&mut self, value: u64) {
        let bytes = value.to_le_bytes();
        self.add(bytes.get(..self.pointer_size).unwrap_or(&bytes));
    }

    /// Returns the record with its size filled in, which comes first.
    fn finish(mut self) -> Vec<u8> {
        let size = (self.bytes.len() as u16).to_le_bytes();
        if let Some(field) = self.bytes.first_chunk_mut() {
            *field = size;
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;

    use symbolic::debuginfo::pe::PeObject;

    use super::*;

    fn sample() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bin");
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn the_pdb_of_an_image_is_that_of_other_readers() {
        for path in sample() {
            let bytes = fs::read(&path).unwrap();
            let expected = PeObject::parse(&bytes).unwrap().debug_id();
            let image_file = ImageFileIdentity::open(&path).unwrap();
            let pdb = image_file.pdb.unwrap();
            let guid = uuid::Uuid::from_bytes_le(pdb.guid);
            assert_eq!((guid, pdb.age), (expected.uuid(), expected.appendix()), "{path:?}");
            assert!(pdb.name.ends_with(b".pdb"), "{path:?}");
            let header = Header::parse(&bytes).unwrap();
            let size = header.optional_header.unwrap().windows_fields.size_of_image;
            assert_eq!(
                (image_file.timestamp, image_file.size),
                (header.coff_header.time_date_stamp, size)
            );
        }
    }

    #[test]
    fn a_cut_or_damaged_file_is_unknown_and_no_panic() {
        let bytes = fs::read(sample().pop().unwrap()).unwrap();
        let whole = ImageFileIdentity::read(&mut Cursor::new(&bytes)).unwrap();
        for end in (0..bytes.len()).step_by(37) {
            let cut =
                quietly(|| ImageFileIdentity::read(&mut Cursor::new(&bytes[..end]))).ok().flatten();
            assert!(cut.is_none_or(|cut| cut.pdb.is_none() || cut == whole), "{end}");
        }
        for at in 0..1024.min(bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xFF;
            let _ = quietly(|| ImageFileIdentity::read(&mut Cursor::new(&damaged)));
        }
        let mut text = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut text, b"MZ no image").unwrap();
        assert_eq!(ImageFileIdentity::open(text.path()), None);
        assert_eq!(ImageFileIdentity::open(Path::new("/nowhere.dll")), None);
    }

    #[test]
    fn every_kind_of_path_of_the_kernel_has_a_name_that_opens_it() {
        for (path, expected) in [
            (
                r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll",
                Some(r"\\?\GLOBALROOT\Device\HarddiskVolume3\Windows\System32\ntdll.dll"),
            ),
            (r"\SystemRoot\system32\ntoskrnl.exe", Some(r"C:\Windows\system32\ntoskrnl.exe")),
            (
                r"\Device\Mup\server\share\a.dll",
                Some(r"\\?\GLOBALROOT\Device\Mup\server\share\a.dll"),
            ),
            (r"\??\D:\drivers\a.sys", Some(r"\\?\D:\drivers\a.sys")),
            (r"\Windows\System32\smss.exe", Some(r"C:\Windows\System32\smss.exe")),
            (r"ntdll.dll", None),
            ("", None),
            (r"\SystemRoot", None),
            (r"\\server\a.dll", None),
        ] {
            assert_eq!(image_file_name(path, r"C:\Windows").as_deref(), expected, "{path}");
        }
    }
}
