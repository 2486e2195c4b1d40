//! Extracting traces: where extracts go, whether one is up to date, and what is said about it.

mod command;
mod import;
mod paths;
mod report;

use std::path::Path;

use handlescope_extract::{ExtractError, ExtractOptions, ExtractSummary, extract};

pub use command::{StoreNames, Tally, extract_files};
pub(crate) use import::imported;
pub(crate) use paths::{Freshness, beside, freshness, in_cache, prepare_folder, side_by_side};
pub(crate) use report::{line, lost};

use crate::{cancel::Cancel, messages::Messages, progress::Progress};

/// Extracts one trace, with a progress bar, and warns of what was counted while reading.
pub(crate) fn run(
    input: &Path,
    output: &Path,
    options: ExtractOptions,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<ExtractSummary, ExtractError> {
    let summary = {
        let progress = Progress::new(input, messages.is_watched(), cancel);
        extract(input, output, options, &progress)?
    };
    report::warn(input, &summary, messages);
    Ok(summary)
}
