//! What can go wrong with reading an ETWAnalyzer extract.

use std::io;
use std::path::PathBuf;

use handlescope_model::ArchiveError;

/// An ETWAnalyzer extract that could not be read, or not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be opened.
    #[error("{}: cannot open: {source}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is neither of the two forms of an extract.
    #[error("{}: an extract neither of handlescope nor of ETWAnalyzer: {reason}", .path.display())]
    NotAnExtract {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// The archive cannot be read.
    #[error("{}: cannot unpack: {reason}", .path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What the unpacker said.
        reason: String,
    },
    /// A member cannot be unpacked: cut off, damaged, or not what the archive says.
    #[error("{}: member {member} cannot be unpacked: {reason}", .path.display())]
    Member {
        /// The archive.
        path: PathBuf,
        /// The member.
        member: String,
        /// What is wrong.
        reason: String,
    },
    /// A member has a name that leads out of the archive, or one that another has too.
    #[error("{}: member {member:?} {reason}; the archive is refused", .path.display())]
    Name {
        /// The archive.
        path: PathBuf,
        /// The member.
        member: String,
        /// What is wrong with its name.
        reason: &'static str,
    },
    /// A member is, or claims to be, larger than is read.
    #[error("{}: member {member} has {size} bytes, more than the limit of {limit}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// Its size, bytes; at least.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// A member is no JSON, or not the JSON it should be.
    #[error("{}: member {member}, line {line}, column {column}: {reason}", .path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// The line, counted from 1. ETWAnalyzer writes one line only.
        line: usize,
        /// The byte in the line, counted from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A member cannot be read.
    #[error("{}: member {member} cannot be read: {reason}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The member.
        member: String,
        /// Why.
        reason: String,
    },
    /// The observer asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The converted extract cannot be written.
    #[error(transparent)]
    Output(#[from] ArchiveError),
}
