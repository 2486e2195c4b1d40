//! How much of an archive is believed.

use std::io::Cursor;
use std::path::Path;

use polars::prelude::{ParquetReader, PolarsResult, SerReader};
use sevenz_rust::ArchiveEntry;

use super::ArchiveError;

/// What an archive may not exceed, so that a hostile one costs neither all memory nor all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Size of one member, unpacked, bytes.
    pub member_bytes: u64,
    /// Memory a decoder of the archive may ask for, bytes.
    pub decoder_bytes: u64,
    /// Values in one column.
    pub values: u64,
    /// Values in one column for each byte of the table. Columns of one value have some hundreds.
    pub values_per_byte: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            member_bytes: 16 << 30,
            decoder_bytes: 2 << 30,
            values: 1 << 30,
            values_per_byte: 4096,
        }
    }
}

/// Columns with fewer values may be compressed as well as they like.
const SMALL_VALUES: u64 = 1 << 20;

impl ArchiveLimits {
    /// Refuses a member that claims to be larger than is read.
    pub(super) fn check_size(&self, path: &Path, entry: &ArchiveEntry) -> Result<(), ArchiveError> {
        if entry.size <= self.member_bytes {
            return Ok(());
        }
        Err(ArchiveError::TooLarge {
            path: path.to_path_buf(),
            member: entry.name.clone(),
            size: entry.size,
            limit: self.member_bytes,
        })
    }

    /// What is wrong with how many values a table claims to have, if there is something.
    pub(super) fn check_values(&self, bytes: &[u8]) -> PolarsResult<Option<String>> {
        let mut reader = ParquetReader::new(Cursor::new(bytes));
        let mut most = reader.num_rows()? as u64;
        for group in &reader.get_metadata()?.row_groups {
            for column in group.parquet_columns() {
                most = most.max(u64::try_from(column.num_values()).unwrap_or(u64::MAX));
            }
        }
        let by_size = (bytes.len() as u64).saturating_mul(self.values_per_byte);
        let limit = self.values.min(by_size.max(SMALL_VALUES));
        Ok((most > limit).then(|| format!("{most} values in a column, more than {limit}")))
    }
}
