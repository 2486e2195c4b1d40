//! What can go wrong with writing an extract.

use std::io;
use std::path::PathBuf;

use handlescope_model::{ArchiveError, Cancelled, Reason, Untrusted};

/// An extract that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// A member could not be written.
    #[error("{}: cannot write {}: {}", Untrusted(.path), Untrusted(.member), Reason(.source))]
    Write { path: PathBuf, member: String, source: io::Error },
    /// A member would be larger than ETWAnalyzer reads.
    #[error(
        "{}: {member} would have {limit} bytes or more, which ETWAnalyzer cannot read; without \
         --etwanalyzer, the trace is written as tables only",
        Untrusted(.path)
    )]
    TooLarge {
        path: PathBuf,
        member: String,
        /// The size from which on it is too large.
        limit: u64,
    },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The trace cannot be read, or the archive cannot be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}
