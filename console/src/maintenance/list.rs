//! `dataset list`: the traces of a dataset.

use super::args::ListArgs;
use handlescope_commands::load::note_unread;
use handlescope_commands::{CommandError, Context};
use handlescope_fleet::dataset::Dataset;
use handlescope_render::dataset_traces;
use handlescope_session::settings::DisplayArgs;
use handlescope_session::values::{Format, JsonMode};

/// Lists the traces of a dataset, by day.
///
/// # Errors
/// When the dataset or a trace of it cannot be read, or `out` cannot be written.
pub fn list(args: &ListArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open(&args.folder)?;
    note_unread(&dataset, context.messages);
    let traces = dataset.listed()?;
    let table = dataset_traces(&traces)?;
    let format = if args.json { Format::Json(JsonMode::Lines) } else { Format::Text };
    let display = context.session.settings.display(&DisplayArgs::default(), context.screen);
    table.write_as(format, &display, context.cancel, context.out)?;
    Ok(())
}
