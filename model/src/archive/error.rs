//! What can go wrong with an archive.

use std::io;
use std::path::PathBuf;

use polars::prelude::PolarsError;

/// An archive that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be opened, created or renamed.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is not a 7z archive, or a damaged one.
    #[error("{}: not a readable handlescope archive: {reason}", .path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// What the 7z reader or writer said.
        reason: String,
    },
    /// A member is damaged or is not what its table needs.
    #[error("{}: member {member} is damaged: {reason}; extract the trace again", .path.display())]
    Member {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// What the Parquet reader said.
        reason: String,
    },
    /// A member claims to be larger than this program reads.
    #[error("{}: member {member} has {size} bytes, more than the limit of {limit}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// Its declared size, bytes.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// A member has a name that leads out of the archive, or one that another has too.
    #[error("{}: member {member:?} {reason}; the archive is refused", .path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// What is wrong with its name.
        reason: &'static str,
    },
    /// The archive holds no trace table, so it is not one of ours.
    #[error("{}: no member trace.parquet, so this is not a handlescope extract", .path.display())]
    NotAnExtract {
        /// The file.
        path: PathBuf,
    },
    /// The archive was made by a newer version.
    #[error("{}: layout version {found}, this program reads up to {supported}; use a newer handlescope", .path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// Newest version this program reads.
        supported: u32,
    },
    /// A table could not be encoded.
    #[error("table {table}: cannot be written: {source}")]
    Encode {
        /// The table.
        table: &'static str,
        /// What the Parquet writer said.
        source: PolarsError,
    },
}
