//! Checks of what a Parquet table claims, made before the decoder trusts it, and limits on an archive.
//!
//! The decoder allocates whatever memory a footer or page claims, and the process aborts if it is not available. So
//! footers and page headers are parsed here first, with no more memory than the bytes really present justify. Page
//! contents are left to the decoder.

use std::io::{self, Cursor};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use polars::prelude::PolarsError;
use polars_parquet::read::{FileMetadata, read_metadata};
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{FileMetaData, PageHeader, PageType, SchemaElement, Type, thrift};

use super::container::ContainerLimits;
use crate::guard::CaughtPanic;
use crate::noting::{PolarsReason, Reason};

/// Size of the trailer after the footer: the footer's length and the format's magic.
const TRAILER: usize = 8;

/// Footers up to this size are always accepted; larger ones must be a small fraction of the file.
const SMALL_FOOTER: u64 = 1 << 20;

/// Minimum ratio of file size to footer size. In our files it is a few hundred.
const FILE_PER_FOOTER: u64 = 4;

/// Memory allowed per byte of a header while it is read. A list entry takes eight bytes for a value of one byte.
const MEMORY_PER_BYTE: usize = 8;

/// Maximum bytes of a page header. It usually has about 30, more with statistics.
const PAGE_HEADER: usize = 64 << 10;

/// Maximum number of columns in a table, nested ones included.
const COLUMNS: usize = 1000;

/// Maximum nesting depth of columns; a list has three levels.
const DEPTH: usize = 8;

/// Reasons why a table is not decoded.
#[derive(Debug, thiserror::Error)]
pub enum TableProblem {
    #[error("it is not a Parquet file")]
    NotParquet,
    #[error("its footer is too large: {0} bytes")]
    FooterSize(u64),
    #[error("its footer cannot be read: {0}")]
    Footer(thrift::Error),
    #[error("it has too many columns: {0}")]
    Columns(usize),
    #[error("column {0} has an unsupported type")]
    ColumnType(String),
    #[error("column {0} has nulls")]
    Nulls(String),
    #[error("columns are nested too deeply")]
    Depth,
    #[error("a column is outside the table")]
    Outside,
    #[error("it cannot be read: {}", Reason(.0))]
    Read(#[from] io::Error),
    #[error("invalid page header")]
    PageHeader,
    #[error("a column is larger than {0} bytes")]
    ColumnSize(u64),
    #[error("a column has {actual} values instead of {expected}")]
    Values { actual: i64, expected: i64 },
    #[error("a column has {values} values, more than the limit of {limit}")]
    TooManyValues { values: u64, limit: u64 },
    #[error("it has {rows} rows, and had {written} when the archive was written")]
    Rows { rows: usize, written: u64 },
    /// An error of the decoder.
    #[error("{}", PolarsReason(.0))]
    Decoder(#[from] PolarsError),
    /// The decoder panics on some damaged tables.
    #[error("the Parquet decoder cannot read it")]
    Panicked(#[from] CaughtPanic),
}

/// Reads and checks the footer, with its trailer, of a table of this size.
fn checked_footer(
    size: u64,
    read: impl Fn(Range<u64>) -> Result<Vec<u8>, TableProblem>,
) -> Result<Vec<u8>, TableProblem> {
    let rest = size.checked_sub(TRAILER as u64).ok_or(TableProblem::NotParquet)?;
    let trailer = read(rest..size)?;
    let length = trailer.first_chunk().ok_or(TableProblem::NotParquet)?;
    let length = u64::from(u32::from_le_bytes(*length));
    let start = rest.checked_sub(length).ok_or(TableProblem::NotParquet)?;
    if length > SMALL_FOOTER.max(size / FILE_PER_FOOTER) {
        return Err(TableProblem::FooterSize(length));
    }
    let footer = read(start..size)?;
    let (metadata, _) = footer.split_last_chunk::<TRAILER>().ok_or(TableProblem::NotParquet)?;
    let memory = MEMORY_PER_BYTE * metadata.len() + PAGE_HEADER;
    let mut protocol = TCompactInputProtocol::new(metadata, memory);
    let metadata = FileMetaData::read_from_in_protocol(&mut protocol);
    check_schema(&metadata.map_err(TableProblem::Footer)?.schema)?;
    Ok(footer)
}

fn check_schema(schema: &[SchemaElement]) -> Result<(), TableProblem> {
    if schema.len() > COLUMNS {
        return Err(TableProblem::Columns(schema.len()));
    }
    // Number of columns still expected at each level.
    let mut open: Vec<i32> = Vec::new();
    for element in schema {
        if matches!(element.type_, Some(Type::FIXED_LEN_BYTE_ARRAY | Type::INT96)) {
            return Err(TableProblem::ColumnType(element.name.clone()));
        }
        while open.last().is_some_and(|left| *left <= 0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        open.push(element.num_children.unwrap_or_default());
        if open.len() > DEPTH {
            return Err(TableProblem::Depth);
        }
    }
    Ok(())
}

/// Checks the pages of one part of a column, which should hold `values` values. All pages of the column together may
/// unpack to `most` bytes; `left` is what remains of that.
pub fn check_pages(
    mut pages: &[u8],
    values: i64,
    left: &AtomicU64,
    most: u64,
) -> Result<(), TableProblem> {
    let mut seen = 0;
    while seen < values {
        let page = PageClaims::next(&mut pages).ok_or(TableProblem::PageHeader)?;
        seen += i64::from(page.values);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(page.unpacked.into())
        })
        .map_err(|_| TableProblem::ColumnSize(most))?;
    }
    if seen != values {
        return Err(TableProblem::Values { actual: seen, expected: values });
    }
    Ok(())
}

/// Relevant fields of a page header.
struct PageClaims {
    /// Number of values; 0 for a dictionary.
    values: u32,
    /// Unpacked size, bytes.
    unpacked: u32,
}

impl PageClaims {
    /// Reads a page header and skips the page; `None` if that is not possible.
    fn next(pages: &mut &[u8]) -> Option<Self> {
        let mut protocol = TCompactInputProtocol::new(&mut *pages, PAGE_HEADER);
        let header = PageHeader::read_from_in_protocol(&mut protocol).ok()?;
        *pages = pages.get(usize::try_from(header.compressed_page_size).ok()?..)?;
        let unpacked = u32::try_from(header.uncompressed_page_size).ok()?;
        let number = |number: i32| u32::try_from(number).ok();
        let values = match header.type_ {
            PageType::DATA_PAGE => number(header.data_page_header?.num_values)?,
            PageType::DATA_PAGE_V2 => {
                let header = header.data_page_header_v2?;
                let values = number(header.num_values)?;
                let levels = number(header.definition_levels_byte_length)?
                    .checked_add(number(header.repetition_levels_byte_length)?)?;
                let sound = levels <= unpacked
                    && number(header.num_rows)? <= values
                    && number(header.num_nulls)? <= values;
                sound.then_some(values)?
            }
            PageType::DICTIONARY_PAGE => {
                // A dictionary value takes at least a byte.
                (number(header.dictionary_page_header?.num_values)? <= unpacked).then_some(0)?
            }
            _ => return None,
        };
        Some(Self { values, unpacked })
    }
}

/// Limits on an archive, so that a hostile one cannot exhaust memory or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Limits on the sizes of members and on the cost of unpacking them.
    pub container: ContainerLimits,
    /// Maximum values in one column.
    pub values: u64,
    /// Maximum values in one column per byte of its table, applied above a million values. Each value takes up to 16
    /// bytes in memory. A table with that many rows has at least one column, the time or the address, that takes a byte
    /// per row.
    pub values_per_byte: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            container: ContainerLimits::for_members_of(16 << 30),
            values: 1 << 30,
            values_per_byte: 64,
        }
    }
}

impl ArchiveLimits {
    /// Returns the limits for a trusted source with members of this size.
    #[must_use]
    pub fn trusted_with(self, member_bytes: u64) -> Self {
        let container = self.container.trusted_with(member_bytes);
        Self { container, values_per_byte: u64::MAX, ..self }
    }
}

/// Number of values below which compression is not limited.
const SMALL_VALUES: u64 = 1 << 20;

impl ArchiveLimits {
    /// Reads and checks the metadata of a table of this size.
    pub fn checked_metadata(
        &self,
        size: u64,
        read: impl Fn(Range<u64>) -> Result<Vec<u8>, TableProblem>,
    ) -> Result<FileMetadata, TableProblem> {
        let footer = checked_footer(size, read)?;
        let metadata = read_metadata(&mut Cursor::new(footer))?;
        let mut values = metadata.num_rows as u64;
        for group in &metadata.row_groups {
            values = values.max(group.num_rows() as u64);
            for column in group.parquet_columns() {
                values = values.max(u64::try_from(column.num_values()).unwrap_or(u64::MAX));
            }
        }
        let by_size = size.saturating_mul(self.values_per_byte);
        let limit = self.values.min(by_size.max(SMALL_VALUES));
        if values > limit {
            return Err(TableProblem::TooManyValues { values, limit });
        }
        Ok(metadata)
    }

    /// Returns how many bytes the pages of one column may unpack to, for a table of this size.
    pub fn most_of_column(&self, size: u64) -> u64 {
        self.container.most_content(size)
    }
}

#[cfg(test)]
mod tests {
    use polars_parquet_format::thrift::protocol::{TCompactOutputProtocol, TOutputProtocol};
    use polars_parquet_format::{DataPageHeader, DictionaryPageHeader, Encoding};

    use super::*;

    /// A file that consists of a footer only.
    fn with_footer(footer: &[u8]) -> Vec<u8> {
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        [b"PAR1", footer, &length, b"PAR1"].concat()
    }

    fn with_schema(schema: Vec<SchemaElement>) -> Vec<u8> {
        let metadata = FileMetaData::new(1, schema, 0, vec![], None, None, None, None, None);
        let mut footer = Vec::new();
        let mut protocol = TCompactOutputProtocol::new(&mut footer);
        metadata.write_to_out_protocol(&mut protocol).unwrap();
        protocol.flush().unwrap();
        with_footer(&footer)
    }

    fn element(children: i32, kind: Option<Type>) -> SchemaElement {
        SchemaElement::new(kind, None, None, "a".to_owned(), children, None, None, None, None, None)
    }

    fn page(header: &PageHeader, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut protocol = TCompactOutputProtocol::new(&mut bytes);
        header.write_to_out_protocol(&mut protocol).unwrap();
        protocol.flush().unwrap();
        bytes.extend(content);
        bytes
    }

    /// A data page that claims this many values and unpacked bytes.
    fn data(values: i32, unpacked: i32) -> Vec<u8> {
        let encoding = Encoding::PLAIN;
        let data = DataPageHeader::new(values, encoding, Encoding::RLE, Encoding::RLE, None);
        let header =
            PageHeader::new(PageType::DATA_PAGE, unpacked, 4, None, data, None, None, None);
        page(&header, b"1234")
    }

    fn problem(pages: &[Vec<u8>], values: i64) -> Option<String> {
        let checked = check_pages(&pages.concat(), values, &AtomicU64::new(1000), 1000);
        checked.err().map(|problem| problem.to_string())
    }

    fn footer_problem(bytes: &[u8]) -> Option<String> {
        let read = |range: Range<u64>| {
            let part = bytes.get(range.start as usize..range.end as usize);
            part.map(<[u8]>::to_vec).ok_or(TableProblem::Outside)
        };
        checked_footer(bytes.len() as u64, read).err().map(|problem| problem.to_string())
    }

    #[test]
    fn a_list_in_a_footer_has_no_more_values_than_bytes() {
        let footer = [0x15, 2, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        let problem = footer_problem(&with_footer(&footer)).unwrap();
        assert!(problem.contains("its footer cannot be read"), "{problem}");
        for bytes in [&b""[..], b"PAR1", &[0xFF; 30]] {
            assert_eq!(footer_problem(bytes).as_deref(), Some("it is not a Parquet file"));
        }
    }

    #[test]
    fn columns_are_neither_too_many_nor_nested_too_deep() {
        let leaf = || element(0, Some(Type::INT32));
        let list = || vec![element(1, None), element(1, None), leaf()];
        let usual = [vec![element(3, None)], list(), vec![leaf()], list()].concat();
        assert_eq!(footer_problem(&with_schema(usual)), None);
        let deep = vec![element(1, None); 10_000];
        assert!(footer_problem(&with_schema(deep)).is_some_and(|text| text.contains("10000")));
        let deep = vec![element(1, None); 20];
        assert!(
            footer_problem(&with_schema(deep))
                .is_some_and(|text| text.contains("nested too deeply"))
        );
        let odd = vec![element(1, None), element(0, Some(Type::FIXED_LEN_BYTE_ARRAY))];
        assert!(footer_problem(&with_schema(odd)).is_some_and(|text| text.contains("type")));
    }

    #[test]
    fn pages_have_as_many_values_and_bytes_as_they_may() {
        assert_eq!(problem(&[data(3, 500), data(4, 500)], 7), None);
        for (pages, values, text) in [
            (vec![data(-1, 4)], 7, "invalid page header"),
            (vec![data(7, -4)], 7, "invalid page header"),
            (vec![data(3, 4)], 7, "invalid page header"),
            (vec![data(8, 4)], 7, "8 values instead of 7"),
            (vec![data(3, 500), data(4, 501)], 7, "larger than 1000 bytes"),
            (vec![], 1, "invalid page header"),
        ] {
            let problem = problem(&pages, values).unwrap();
            assert!(problem.contains(text), "{problem}");
        }
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_bytes() {
        let dictionary = |values| {
            let header = DictionaryPageHeader::new(values, Encoding::PLAIN, None);
            let kind = PageType::DICTIONARY_PAGE;
            page(&PageHeader::new(kind, 20, 4, None, None, None, header, None), b"1234")
        };
        assert_eq!(problem(&[dictionary(20), data(7, 4)], 7), None);
        assert!(problem(&[dictionary(21), data(7, 4)], 7).is_some());
        assert!(problem(&[dictionary(-1), data(7, 4)], 7).is_some());
    }
}
