//! Storing the names of all frames in an extract, so that it can be read where no symbols are.

use std::path::Path;

use handlescope_extract::symbols::Symbolizer;
use handlescope_model::{Table, Trace, replace_table};

use super::WatchedSymbols;
use crate::{
    cancel::Cancel,
    error::CommandError,
    messages::Messages,
    query::{AllNames, FrameMemory, Source, all_names},
};

/// Finds the names of all frames of a trace, writes them into its extract and says so in a line.
/// Without any name the extract stays as it is.
///
/// # Errors
/// When the extract cannot be read or written, or it was cancelled; then it stays as it was.
pub(crate) fn store_names(
    trace: &Trace,
    frames: &FrameMemory,
    symbolizer: &Symbolizer,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    messages.wait("searching");
    let spinner = messages.spinner();
    let names = WatchedSymbols::new(symbolizer, spinner.clone(), cancel);
    let path = trace.path();
    let all = all_names(&Source { path, index: 0, trace, frames }, &names, cancel);
    spinner.stop();
    let AllNames { named, frames, table } = all?;
    if named > 0 {
        replace_table(path, Table::Symbols, table.into_frame(), &trace.limits().container)?;
    }
    Ok(line(path, named, frames))
}

fn line(path: &Path, named: usize, frames: usize) -> String {
    let path = path.display();
    match named {
        0 => format!("{path}: none of {frames} frames has a name, so nothing was stored"),
        _ => format!("{path}: {named} of {frames} frames have names, stored"),
    }
}
