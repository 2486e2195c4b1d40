//! How much of an archive is believed.

use std::io::Cursor;

use polars::prelude::{ParquetReader, SerReader};
use polars_io::parquet::read::FileMetadata;

use super::claims::{Chunk, TableProblem, check_footer, check_pages};
use super::container::ContainerLimits;

/// What an archive may not exceed, so that a hostile one costs neither all memory nor all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Sizes of members, and what unpacking them may cost.
    pub container: ContainerLimits,
    /// Values in one column.
    pub values: u64,
    /// Values in one column for each byte of its table, once there are a million. Each has up to 16
    /// bytes in memory. Tables of so many rows have a column at least, the time or the address, that
    /// takes a byte for each.
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
    /// For an archive from a source that is trusted with members of a size.
    #[must_use]
    pub fn trusted_with(self, member_bytes: u64) -> Self {
        let container = self.container.trusted_with(member_bytes);
        Self { container, values_per_byte: u64::MAX, ..self }
    }
}

/// Columns with fewer values may be compressed as well as they like.
const SMALL_VALUES: u64 = 1 << 20;

impl ArchiveLimits {
    /// Checks what a table claims.
    pub(super) fn check_table(&self, bytes: &[u8]) -> Result<(), TableProblem> {
        check_footer(bytes)?;
        let mut reader = ParquetReader::new(Cursor::new(bytes));
        let mut values = reader.num_rows()? as u64;
        for group in &reader.get_metadata()?.row_groups {
            values = values.max(group.num_rows() as u64);
            for column in group.parquet_columns() {
                values = values.max(u64::try_from(column.num_values()).unwrap_or(u64::MAX));
            }
        }
        let by_size = (bytes.len() as u64).saturating_mul(self.values_per_byte);
        let limit = self.values.min(by_size.max(SMALL_VALUES));
        if values > limit {
            return Err(TableProblem::TooManyValues { values, limit });
        }
        Ok(())
    }

    /// Checks what the pages of a column claim.
    pub(super) fn check_column(
        &self,
        bytes: &[u8],
        metadata: &FileMetadata,
        column: &str,
    ) -> Result<(), TableProblem> {
        let groups = metadata.row_groups.iter();
        let chunks = groups.flat_map(|group| group.columns_under_root_iter(column)).flatten();
        let chunks =
            chunks.map(|chunk| Chunk { range: chunk.byte_range(), values: chunk.num_values() });
        check_pages(bytes, chunks, self.container.most_content(bytes.len() as u64))
    }
}
