//! `dataset check`: whether the files of a dataset are those that were written.

use std::path::Path;

use indicatif::{HumanBytes, HumanCount};

use handlescope_commands::load::note_unread;
use handlescope_commands::{CommandError, Context};
use handlescope_fleet::dataset::Dataset;
use handlescope_session::values::Counted;

/// Compares all files of a dataset with what was written, and names what differs.
///
/// # Errors
/// When the dataset cannot be read, anything differs, or it was cancelled.
pub fn check(folder: &Path, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    context.messages.wait("checking");
    let dataset = Dataset::open(folder)?;
    note_unread(&dataset, context.messages);
    let checked = dataset.check(context.cancel)?;
    checked.problems.iter().for_each(|problem| context.messages.error(problem));
    let traces = Counted(checked.traces, "trace");
    let (rows, bytes) = (HumanCount(checked.rows), HumanBytes(checked.bytes));
    writeln!(context.out, "{traces}, {rows} rows, {bytes}")?;
    match checked.problems.len() {
        0 => Ok(()),
        problems => Err(CommandError::DatasetDiffers { problems: problems as u64 }),
    }
}
