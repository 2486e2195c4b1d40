//! Extraction of any input into an archive: its kind selects the reader.

use std::path::Path;
use std::time::Instant;

use handlescope_extract::{
    ExtractError, ExtractObserver, ExtractOptions, ExtractSummary, Input, OpenRecording,
    SourceIdentity, Spill, extract_recording,
};
use handlescope_model::Cancel;
use handlescope_model::output::folder_of;

use crate::dump;
use crate::htrace::{self, is_htrace};

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
) -> Result<ExtractSummary, ExtractError> {
    let begin = Instant::now();
    let _spill = Spill::start(folder_of(output), options.max_memory);
    if is_htrace(input, cancel)? {
        return htrace::extract(input, output, observer, cancel);
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
