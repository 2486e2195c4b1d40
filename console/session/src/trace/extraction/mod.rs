//! Extracts traces: where extracts go, whether they are up to date, and what is reported about them.

mod freshness;
mod import;
mod mappings;
mod paths;
mod report;

use std::path::Path;

use handlescope_extract::{ExtractOptions, ExtractSummary};
use handlescope_model::Trace;
use handlescope_sources::SourceError;
use handlescope_sources::extract;
use tempfile::TempDir;

pub use freshness::{Freshness, differing_trace, freshness, is_foreign};
pub use import::imported;
pub use mappings::{MappingsError, mappings};
pub use paths::{
    ExtractLocation, MadeFolders, beside, file_name, for_session, for_want_of_cache, in_cache,
    kept, prepare_folder, side_by_side,
};
pub use report::{line, warn};

use crate::cancel::Cancel;
use crate::terminal::Messages;

/// Returns the default options of an extraction; a size trusted by the user raises the limits.
pub fn options(max_size: Option<u64>) -> ExtractOptions {
    let usual = ExtractOptions::default();
    let limits = max_size.map_or(usual.limits, |size| usual.limits.trusted_with(size));
    ExtractOptions { limits, ..usual }
}

/// An opened extract, and the line about it if it was just made.
pub struct OpenedExtract {
    pub trace: Trace,
    pub line: Option<String>,
    /// Folder of its tables, when they are kept for this session only.
    pub temporary: Option<TempDir>,
}

impl OpenedExtract {
    /// An extract that already existed.
    pub fn found(trace: Trace) -> OpenedExtract {
        OpenedExtract { trace, line: None, temporary: None }
    }
}

/// Extracts one trace, with a progress bar.
pub fn run(
    input: &Path,
    output: &Path,
    options: ExtractOptions,
    cancel: &Cancel,
    messages: &Messages<'_>,
) -> Result<ExtractSummary, SourceError> {
    let progress = messages.progress(input);
    extract(input, output, options, &progress, cancel)
}
