//! Errors of reading a source.

use std::path::PathBuf;

use handlescope_extract::ExtractError;
use handlescope_model::Untrusted;

/// A source whose handles did not become an archive.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Whatever the source is.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// The file starts like a minidump and is none.
    #[error("{}: not a minidump that can be read: {reason} at offset {offset}", Untrusted(.path))]
    BadDump {
        path: PathBuf,
        /// Reason that the file is refused.
        reason: &'static str,
        /// Offset of the error, bytes from the start of the file.
        offset: u64,
    },
    /// The minidump has neither the open handles nor operations on handles.
    #[error("{}: the dump has no handle data; {}", Untrusted(.path), with_handles(*.system))]
    NoHandleData {
        path: PathBuf,
        /// The system of the process, if it is not Windows.
        system: Option<&'static str>,
    },
}

impl SourceError {
    /// Whether a higher limit lets a user who trusts the file read it.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::Extract(error) if error.is_about_size())
    }
}

/// Advice how to write a dump with handles.
fn with_handles(system: Option<&str>) -> String {
    match system {
        None => "write it with .dump /mh FILE in WinDbg or cdb, procdump -ma, or MiniDumpWriteDump with \
                 MiniDumpWithHandleData"
            .to_owned(),
        Some(system) => format!(
            "it is of {system}; Mozilla's minidump-writer writes the open files of processes of Linux, other \
             writers may write none"
        ),
    }
}
