//! Archives from every source of handles: text of debuggers, lists of handles, minidumps and extracts of ETWAnalyzer are
//! read here, traces by `handlescope-extract`.
//!
//! [`extract`] selects the reader by the content of a file; [`recognize()`] knows texts. `htrace` and `dump` read
//! operations on handles without times, `lists` handles that are open, and `operations` makes tables of both. [`import`] fills
//! the tables from an extract of ETWAnalyzer, and [`save`] writes one from an archive.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod dump;
mod etwanalyzer;
mod htrace;
mod lists;
mod operations;
mod recognize;
mod text;

use std::path::{Path, PathBuf};
use std::time::Instant;

pub use self::dump::is_dump;
pub use self::etwanalyzer::{
    ImportError, ImportLimits, SaveError, SaveOptions, import, import_sources, is_for_etwanalyzer,
    save,
};
pub use self::recognize::{StrangeLine, TextContent, recognize};
use handlescope_extract::{
    ExtractError, ExtractObserver, ExtractOptions, ExtractSummary, Input, OpenRecording,
    SourceIdentity, Spill, extract_recording,
};
use handlescope_model::output::folder_of;
use handlescope_model::{Cancel, Untrusted};

/// Extracts the trace `input`, or the handles of a minidump or of a text, into the archive `output`, whose folder must exist.
///
/// The archive appears under its name only when it is complete.
///
/// # Errors
/// When the trace cannot be read, the archive cannot be written, or `cancel` asks to stop.
pub fn extract(
    input: &Path,
    output: &Path,
    options: ExtractOptions,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<ExtractSummary, SourceError> {
    let begin = Instant::now();
    let _spill = Spill::start(folder_of(output), options.max_memory);
    match recognize(input, cancel)? {
        TextContent::Debugger => return Ok(htrace::extract(input, output, observer, cancel)?),
        TextContent::List => return Ok(lists::extract(input, output, observer, cancel)?),
        TextContent::NotUnderstood(line) => {
            return Err(SourceError::NotUnderstood { path: input.to_path_buf(), line });
        }
        TextContent::NoHandles | TextContent::Other => {}
    }
    let identity = SourceIdentity::of(input)
        .map_err(|source| ExtractError::Open { path: input.to_path_buf(), source })?;
    let mut found = Input::open(input, &options.limits, cancel)?;
    if dump::is_content(&mut found, input)? {
        return dump::extract(found, input, output, observer, cancel);
    }
    let open = OpenRecording::from_input(found, input, identity, &options.limits, cancel)?;
    let summary = extract_recording(open, output, options, observer, cancel)?;
    Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
}

/// A source whose handles did not become an archive.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Whatever the source is.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// A text with output of a program whose shape is not known.
    #[error(
        "{}: its output of {} is not understood, first in line {}: {}",
        Untrusted(.path), .line.of, .line.line, Untrusted(&.line.text)
    )]
    NotUnderstood { path: PathBuf, line: StrangeLine },
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
