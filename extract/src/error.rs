//! Errors of an extraction.

use std::io;
use std::path::PathBuf;

use handlescope_model::{
    ArchiveError, Cancelled, ContainerError, ForeignContent, Reason, Untrusted,
};

/// Why an extraction failed. Damage inside a trace is not a failure; it is counted as a warning.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The source cannot be opened.
    #[error("{}: cannot open: {}", Untrusted(.path), Reason(.source))]
    Open { path: PathBuf, source: io::Error },
    /// The source can no longer be read.
    #[error("{}: cannot read: {}", Untrusted(.path), Reason(.source))]
    Read { path: PathBuf, source: io::Error },
    /// The source has changed since reading began.
    #[error(
        "{}: changed while it was read; extract it again when nothing writes to it",
        Untrusted(.path)
    )]
    Changed { path: PathBuf },
    /// The file does not start like an `.etl` file.
    #[error("{}: not an .etl trace: {reason} at offset {offset}", Untrusted(.path))]
    NotATrace {
        path: PathBuf,
        /// Why the file is refused.
        reason: &'static str,
        /// Offset of the error, in bytes from the start of the file.
        offset: u64,
    },
    /// A minidump where only a trace will do, because a dump has no session events.
    #[error("{}: a minidump cannot be redacted or replayed; load it: handlescope {}", Untrusted(.path), Untrusted(.path))]
    OnlyLoaded { path: PathBuf },
    /// The file is empty, a text, or a known file of another program.
    #[error("{}: {}{}", Untrusted(.path), its(.member.as_deref()), .content.instead_of("a trace"))]
    Foreign {
        path: PathBuf,
        /// Name of the member, if the file is an archive.
        member: Option<String>,
        content: ForeignContent,
    },
    /// The archive contains no trace.
    #[error("{}: {held}", Untrusted(.path))]
    NoTraceIn {
        path: PathBuf,
        /// Description of the content found instead.
        held: String,
    },
    /// The trace is in an archive that cannot be unpacked, or is refused.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The archive has several traces, none with the archive's name.
    #[error(
        "{}: the archive has {traces} {extension} files, none with its own name; unpack the one you want",
        Untrusted(.path)
    )]
    WhichTrace {
        path: PathBuf,
        traces: usize,
        /// Extension of the traces, such as `.etl`.
        extension: &'static str,
    },
    /// The trace has more events of one table than row numbers can count.
    #[error("{}: too many handle events: {rows}", Untrusted(.path))]
    TooLarge { path: PathBuf, rows: usize },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The extract cannot be written.
    #[error(transparent)]
    Output(#[from] ArchiveError),
}

/// Names the member of an archive, as a prefix to what it is.
fn its(member: Option<&str>) -> String {
    member.map_or_else(String::new, |member| format!("its {} ", Untrusted(member)))
}

impl ExtractError {
    /// Whether a user who trusts the file can read it by raising a limit.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::Container(error) if error.is_about_size())
    }
}
