//! `dataset list`: the traces of a dataset.

use super::args::ListArgs;
use crate::commands::load::note_unread;
use crate::commands::{CommandError, Context};
use crate::dataset::Dataset;
use crate::render::dataset_traces;
use crate::settings::DisplayArgs;
use crate::values::{Format, JsonMode};

/// Lists the traces of a dataset, by day.
///
/// # Errors
/// When the dataset or a trace of it cannot be read, or `out` cannot be written.
pub(super) fn list(args: &ListArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open(&args.folder)?;
    note_unread(&dataset, context.messages);
    let traces = dataset.listed()?;
    let table = dataset_traces(&traces)?;
    let format = if args.json { Format::Json(JsonMode::Lines) } else { Format::Text };
    let display = context.session.settings.display(&DisplayArgs::default(), context.screen);
    table.write_as(format, &display, context.cancel, context.out)?;
    Ok(())
}
