//! Errors of reading an ETWAnalyzer extract, and limits for files from elsewhere.

use std::io;
use std::path::PathBuf;

use handlescope_model::{
    ArchiveError, Cancelled, ContainerError, ContainerLimits, Reason, Untrusted,
};

use super::super::record::TOO_MUCH;

/// An ETWAnalyzer extract that could not be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be opened.
    #[error("{}: cannot open: {}", Untrusted(.path), Reason(.source))]
    Open { path: PathBuf, source: io::Error },
    /// The file is neither form of an extract.
    #[error("{}: not an extract of handlescope or ETWAnalyzer: {reason}", Untrusted(.path))]
    NotAnExtract {
        path: PathBuf,
        /// Why the file is refused.
        reason: &'static str,
    },
    /// The archive cannot be unpacked or is refused.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// A member is not JSON, or not the expected JSON.
    #[error("{}: member {}, line {line}, column {column}: {reason}", Untrusted(.path), Untrusted(.member))]
    Json {
        path: PathBuf,
        member: String,
        /// The line, counted from 1. ETWAnalyzer writes everything on one line.
        line: usize,
        /// The byte in the line, counted from 1.
        column: usize,
        /// Why the member is refused.
        reason: String,
    },
    /// The records of a member would take too much memory.
    #[error("{}: member {}: {TOO_MUCH}", Untrusted(.path), Untrusted(.member))]
    TooMuch { path: PathBuf, member: String },
    /// A member cannot be read.
    #[error("{}: member {} cannot be read: {reason}", Untrusted(.path), Untrusted(.member))]
    Read { path: PathBuf, member: String, reason: String },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The converted extract cannot be written.
    #[error(transparent)]
    Output(#[from] ArchiveError),
}

impl ImportError {
    /// Whether a user who trusts the file could read it with a higher limit.
    pub fn is_about_size(&self) -> bool {
        match self {
            Self::Container(error) => error.is_about_size(),
            error => matches!(error, Self::TooMuch { .. }),
        }
    }
}

/// Size of the largest member that is read. ETWAnalyzer itself cannot write 2 GiB.
const MEMBER_BYTES: u64 = 4 << 30;

/// Limits for an extract, so that a hostile one cannot exhaust memory or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportLimits {
    /// Sizes of members, and what unpacking them may cost.
    pub container: ContainerLimits,
    /// Memory limit for lists of records in bytes, in addition to [`Self::record_bytes_per_byte`].
    pub record_bytes: u64,
    /// Additional memory limit for lists of records, per byte of the file.
    pub record_bytes_per_byte: u64,
    /// Longest string in a member, bytes.
    pub string_bytes: u64,
    /// How deep objects and lists may be nested. ETWAnalyzer nests fewer than ten levels.
    pub depth: u32,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            container: ContainerLimits::for_members_of(MEMBER_BYTES),
            record_bytes: 128 << 20,
            record_bytes_per_byte: 32,
            string_bytes: 16 << 20,
            depth: 64,
        }
    }
}
