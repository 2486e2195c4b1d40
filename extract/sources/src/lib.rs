//! Makes archives from every source of handles. Debugger text, lists of handles, minidumps and ETWAnalyzer's extracts
//! are read here; traces are read by `handlescope-extract`.
//!
//! [`extract`] selects the reader by the content of a file; [`recognize()`] recognizes texts. `htrace` and `dump` read
//! operations on handles without times, `lists` reads open handles, and `operations` makes tables of both. [`import`]
//! fills the tables from an ETWAnalyzer extract, and [`save`] writes one from an archive.

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

/// Extracts a trace, or the handles of a minidump or text, from `input` into the archive `output`. Its folder must
/// exist.
///
/// The archive appears under its name only once it is complete.
///
/// # Errors
/// If the trace cannot be read, the archive cannot be written, or `cancel` is set.
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
    let identity = SourceIdentity::new(input)
        .map_err(|source| ExtractError::Open { path: input.to_path_buf(), source })?;
    let mut found = Input::open(input, &options.limits, cancel)?;
    if dump::is_content(&mut found, input)? {
        return dump::extract(found, input, output, observer, cancel);
    }
    let open = OpenRecording::from_input(found, input, identity, &options.limits, cancel)?;
    let summary = extract_recording(open, output, options, observer, cancel)?;
    Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
}

/// A source that could not be turned into an archive.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An error that any source can have.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// A text with output of a program in an unknown format.
    #[error(
        "{}: its output of {} cannot be read, first in line {}: {}",
        Untrusted(.path), .line.of, .line.line, Untrusted(&.line.text)
    )]
    NotUnderstood { path: PathBuf, line: StrangeLine },
    /// The file starts like a minidump but is not one.
    #[error("{}: not a readable minidump: {reason} at offset {offset}", Untrusted(.path))]
    BadDump {
        path: PathBuf,
        /// Why the file is refused.
        reason: &'static str,
        /// Where the error is, in bytes from the start of the file.
        offset: u64,
    },
    /// The minidump has neither open handles nor operations on handles.
    #[error("{}: the dump has no handle data; {}", Untrusted(.path), with_handles(*.system))]
    NoHandleData {
        path: PathBuf,
        /// The operating system of the process, unless it is Windows.
        system: Option<&'static str>,
    },
}

impl SourceError {
    /// Whether a user who trusts the file could read it with a higher limit.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::Extract(error) if error.is_about_size())
    }
}

/// Tells how to write a dump with handles.
fn with_handles(system: Option<&str>) -> String {
    match system {
        None => "write it with .dump /mh FILE in WinDbg or cdb, procdump -ma, or MiniDumpWriteDump with \
                 MiniDumpWithHandleData"
            .to_owned(),
        Some(system) => format!(
            "it is from {system}; Mozilla's minidump-writer writes the open files of Linux processes, other \
             writers may not"
        ),
    }
}
