//! Checks of a PDB before the parser trusts it.
//!
//! The parser allocates memory first and only then looks whether there is that much to read. A single number in a
//! damaged PDB would end the program, because a failed allocation cannot be caught.
//!
//! The names of inlined functions, and the parameters of all others, are assembled from type records that refer to each
//! other. The formatter follows these references without a limit. In a damaged PDB, a pointer to itself would take all
//! memory, and a procedure that returns itself would overflow the stack. A type record refers only to earlier ones
//! ("The PDB TPI and IPI Streams" in LLVM's documentation: a stream is topologically sorted), so cycles are easy to
//! rule out. Even without cycles, a few records can spell a name of any length if each names the previous one twice.
//!
//! Scopes of functions are read recursively too, so their nesting must be limited.

use self::pdb::{FallibleIterator, IdData, StreamIndex, TypeData, TypeIndex};
use symbolic::debuginfo::pdb::{PdbObject, pdb};
use thiserror::Error;

use super::msf::MAGIC;

/// Impossible sizes in a PDB.
#[derive(Debug, Error)]
pub enum BoundsError {
    #[error("the stream directory is not in the file")]
    NoDirectory,
    #[error("the stream directory is cut off")]
    CutDirectory,
    #[error("the streams are larger than the file")]
    LargeStreams,
    #[error("there are more type records than bytes for them")]
    ManyRecords,
    #[error("a list of types is longer than its record")]
    LongList,
}

/// The size of a stream that does not exist.
const ABSENT: u32 = u32::MAX;
const TYPES: StreamIndex = StreamIndex(2);
const IDS: StreamIndex = StreamIndex(4);
const LF_ARGLIST: u16 = 0x1201;
const LF_SUBSTR_LIST: u16 = 0x1604;

/// Fails if the streams are much larger than the file, because then they share pages and a small file expands to any
/// amount of data. Only the first stream, an old directory, may share pages with other streams. After "The MSF File
/// Format" in LLVM's documentation.
pub fn check_streams(file: &[u8]) -> Result<(), BoundsError> {
    if !file.starts_with(MAGIC) {
        return Ok(());
    }
    let directory = directory(file).ok_or(BoundsError::NoDirectory)?;
    let count = u32_at(&directory, 0).unwrap_or(0);
    let mut rest = 2 * file.len() as u64;
    for stream in 0..count as usize {
        let size = u32_at(&directory, 4 + 4 * stream).ok_or(BoundsError::CutDirectory)?;
        let size = if size == ABSENT { 0 } else { u64::from(size) };
        rest = rest.checked_sub(size).ok_or(BoundsError::LargeStreams)?;
    }
    Ok(())
}

/// Returns the number of streams of a file that has a directory.
pub fn stream_count(file: &[u8]) -> u32 {
    directory(file).and_then(|directory| u32_at(&directory, 0)).unwrap_or(0)
}

/// Returns the directory, gathered from its pages.
fn directory(file: &[u8]) -> Option<Vec<u8>> {
    let page_size = u32_at(file, 32)? as usize;
    let size = u32_at(file, 44)? as usize;
    if page_size == 0 || size > file.len() {
        return None;
    }
    let page = |number: u32| {
        let at = page_size.checked_mul(number as usize)?;
        // The last page of a file may be cut off.
        file.get(at..file.len().min(at.checked_add(page_size)?))
    };
    let mut directory = Vec::with_capacity(size);
    let pages = size.div_ceil(page_size);
    let list_pages = (4 * pages).div_ceil(page_size);
    for list_page in 0..list_pages {
        let list = page(u32_at(file, 52 + 4 * list_page)?)?;
        for entry in list.chunks_exact(4).take(pages) {
            if directory.len() < size {
                directory.extend_from_slice(page(u32_at(entry, 0)?)?);
            }
        }
    }
    directory.truncate(size);
    (directory.len() == size).then_some(directory)
}

/// Fails if a list in the type records has more elements than bytes allow, or if there are too many records.
pub fn check_counts(object: &PdbObject<'_>) -> Result<(), BoundsError> {
    let mut file = object.inner().write();
    for index in [TYPES, IDS] {
        // Missing or unreadable streams are left to the parser.
        let Ok(Some(stream)) = file.raw_stream(index) else { continue };
        let bytes = stream.as_slice();
        let header = |field: usize| u32_at(bytes, 4 * field).unwrap_or(0);
        let (size, first, end) = (header(1), header(2), header(3));
        // Even the shortest record has a length and a kind.
        if end.saturating_sub(first) as usize > bytes.len() / 4 {
            return Err(BoundsError::ManyRecords);
        }
        check_lists(bytes.get(size as usize..).unwrap_or_default())?;
    }
    Ok(())
}

fn check_lists(mut records: &[u8]) -> Result<(), BoundsError> {
    while let Some(length) = u16_at(records, 0) {
        let end = 2 + usize::from(length);
        let Some(record) = records.get(2..end) else { break };
        if matches!(u16_at(record, 0), Some(LF_ARGLIST | LF_SUBSTR_LIST))
            && u32_at(record, 2).is_some_and(|count| count as usize > record.len() / 4)
        {
            return Err(BoundsError::LongList);
        }
        records = records.get(end..).unwrap_or_default();
    }
    Ok(())
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

// The re-export `pdb` is hidden from symbolic's documentation, but there is no other way to its records.

/// Reasons to stop reading a PDB.
#[derive(Debug, Error)]
pub enum CheckError {
    #[error("type record {record:#x} refers to the later record {target:#x}")]
    LaterRecord { record: u32, target: u32 },
    #[error("type record {record:#x} has an unterminated string")]
    EndlessText { record: u32 },
    #[error("scopes are nested too deeply")]
    EndlessScopes,
    #[error(transparent)]
    Unreadable(#[from] pdb::Error),
}

/// Maximum text of a type; several times what compilers allow for a name.
const MAX_TYPE_BYTES: u32 = 256 << 10;
/// Text that a type adds to its parts, such as ` const *`.
const RECORD_TEXT: u32 = 16;
/// Maximum nesting of types; a thread's stack suffices for this many.
const MAX_TYPE_DEPTH: u32 = 256;
/// Maximum nesting of functions and blocks, likewise.
const MAX_SCOPE_DEPTH: usize = 512;

/// Size of a type's text.
#[derive(Clone, Copy, Default)]
struct TextLength {
    length: u32,
    depth: u32,
}

/// Fails on the first reference to a later record, or if the records cannot be walked.
pub fn check_types(object: &PdbObject<'_>) -> Result<(), CheckError> {
    let mut file = object.inner().write();
    let types = file.type_information()?;
    let mut records = types.iter();
    // For every record, from the first index on.
    let mut texts: Vec<TextLength> = Vec::new();
    let mut first = None;
    while let Some(record) = records.next()? {
        let index = record.index().0;
        let first = *first.get_or_insert(index);
        // The formatter does not follow records of an unknown kind either.
        let Ok(data) = record.parse() else {
            texts.push(TextLength::default());
            continue;
        };
        let name = data.name().map_or(0, |name| u32::try_from(name.len()).unwrap_or(u32::MAX));
        let mut text = TextLength { length: name.saturating_add(RECORD_TEXT), depth: 0 };
        for target in references(&data) {
            ensure_earlier(target.0, index)?;
            let inner = target
                .0
                .checked_sub(first)
                .and_then(|at| texts.get(at as usize))
                .copied()
                .unwrap_or_default();
            text.length = text.length.saturating_add(inner.length);
            text.depth = text.depth.max(inner.depth + 1);
        }
        if text.length > MAX_TYPE_BYTES || text.depth > MAX_TYPE_DEPTH {
            return Err(CheckError::EndlessText { record: index });
        }
        texts.push(text);
    }
    let ids = file.id_information()?;
    let mut records = ids.iter();
    while let Some(record) = records.next()? {
        if let Ok(IdData::Function(function)) = record.parse()
            && let Some(scope) = function.scope
        {
            ensure_earlier(scope.0, record.index().0)?;
        }
    }
    Ok(())
}

/// Fails if scopes are nested deeper than any compiler writes them.
pub fn check_scopes(object: &PdbObject<'_>) -> Result<(), CheckError> {
    let mut file = object.inner().write();
    let debug_information = file.debug_information()?;
    let mut modules = debug_information.modules()?;
    while let Some(module) = modules.next()? {
        let Some(module) = file.module_info(&module)? else { continue };
        let mut symbols = module.symbols()?;
        let mut depth = 0_usize;
        while let Some(symbol) = symbols.next()? {
            if symbol.starts_scope() {
                depth += 1;
            } else if symbol.ends_scope() {
                depth = depth.saturating_sub(1);
            }
            if depth > MAX_SCOPE_DEPTH {
                return Err(CheckError::EndlessScopes);
            }
        }
    }
    Ok(())
}

/// Returns the references that the formatter follows.
fn references(data: &TypeData<'_>) -> Vec<TypeIndex> {
    match data {
        TypeData::Pointer(pointer) => vec![pointer.underlying_type],
        TypeData::Modifier(modifier) => vec![modifier.underlying_type],
        TypeData::Enumeration(enumeration) => vec![enumeration.underlying_type],
        TypeData::Array(array) => vec![array.element_type],
        TypeData::Bitfield(bitfield) => vec![bitfield.underlying_type],
        TypeData::ArgumentList(list) => list.arguments.clone(),
        TypeData::Procedure(procedure) => {
            procedure.return_type.into_iter().chain([procedure.argument_list]).collect()
        }
        TypeData::MemberFunction(method) => {
            let class = [method.return_type, method.class_type, method.argument_list];
            method.this_pointer_type.into_iter().chain(class).collect()
        }
        _ => Vec::new(),
    }
}

fn ensure_earlier(target: u32, record: u32) -> Result<(), CheckError> {
    // The highest bit marks a reference into another module's table.
    if target < record || target & 0x8000_0000 != 0 {
        return Ok(());
    }
    Err(CheckError::LaterRecord { record, target })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::TestPdb;

    #[test]
    fn streams_that_share_pages_are_refused() {
        let intact = TestPdb::new(&[(0x1010, "NtOpen")]).bytes();
        assert!(check_streams(&intact).is_ok());
        // The header has the page that lists the pages of the directory.
        let number = |at| u32_at(&intact, at).expect("a number") as usize;
        let page_size = number(32);
        let size_of_stream_2 = number(number(52) * page_size) * page_size + 4 + 4 * 2;
        assert_eq!(u32_at(&intact, size_of_stream_2), Some(56));
        for size in [2 * intact.len() as u32, 1 << 31, ABSENT - 1] {
            let mut bytes = intact.clone();
            bytes[size_of_stream_2..size_of_stream_2 + 4].copy_from_slice(&size.to_le_bytes());
            assert!(check_streams(&bytes).is_err(), "{size:#x}");
        }
    }

    #[test]
    fn a_list_of_types_fits_into_its_record() {
        let list = |count: u32| {
            let mut record = vec![14, 0, 0x01, 0x12];
            record.extend(count.to_le_bytes());
            record.extend([0; 8]);
            record
        };
        assert!(check_lists(&list(2)).is_ok());
        assert!(check_lists(&[list(2), list(2)].concat()).is_ok());
        assert!(check_lists(&list(0xf000_0000)).is_err());
    }
}
