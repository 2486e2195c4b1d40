//! Archives from every source of handles: text of `!htrace`, minidumps and extracts of ETWAnalyzer are read here, traces by
//! `handlescope-extract`.
//!
//! [`extract`] selects the reader by the content of a file. `htrace` and `dump` read operations on handles without times,
//! of which `operations` makes the tables. [`import`] fills the tables from an extract of ETWAnalyzer, and [`save`] writes
//! one from an archive.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod dump;
mod error;
mod etwanalyzer;
mod htrace;
mod operations;
mod text;

use std::path::Path;
use std::time::Instant;

pub use self::dump::is_dump;
pub use self::error::SourceError;
pub use self::etwanalyzer::{
    ImportError, ImportLimits, SaveError, SaveOptions, import, import_sources, is_for_etwanalyzer,
    save,
};
pub use self::htrace::is_htrace;
use handlescope_extract::{
    ExtractError, ExtractObserver, ExtractOptions, ExtractSummary, Input, OpenRecording,
    SourceIdentity, Spill, extract_recording,
};
use handlescope_model::Cancel;
use handlescope_model::output::folder_of;

/// Extracts the trace `input`, or the handles of a minidump or of a text of `!htrace`, into the archive `output`, whose folder must exist.
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
    if is_htrace(input, cancel)? {
        return Ok(htrace::extract(input, output, observer, cancel)?);
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
