//! `handlescope dataset`: adds traces to a dataset, lists, checks and removes them, and names their functions later.

mod add;
mod args;
mod schema;

use std::collections::BTreeSet;
use std::path::Path;

use indicatif::{HumanBytes, HumanCount};

pub use self::args::{AddArgs, DatasetAction, ListArgs, RemoveArgs};
use handlescope_commands::load::note_unread;
use handlescope_commands::{CommandError, Context};
use handlescope_fleet::dataset::{CompactResult, Dataset, DatasetError, today};
use handlescope_model::Untrusted;
use handlescope_render::dataset_traces;
use handlescope_session::settings::DisplayArgs;
use handlescope_session::values::{CountedNoun, Format, JsonMode};

/// Carries out an action on a dataset.
///
/// # Errors
/// If the dataset cannot be read or changed, a trace cannot be added, or it was cancelled.
pub fn run(action: &DatasetAction, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match action {
        DatasetAction::Add(args) => add::add(args, context),
        DatasetAction::List(args) => list(args, context),
        DatasetAction::Check(args) => check(&args.folder, context),
        DatasetAction::Schema => Ok(schema::schema(context.out)?),
        DatasetAction::Symbolize(args) => add::symbolize(&args.folder, context),
        DatasetAction::Compact(args) => compact(&args.folder, context),
        DatasetAction::Remove(args) => remove(args, context),
    }
}

fn remove(args: &RemoveArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open_to_change(&args.folder)?;
    // Checks all ids first, so that a wrong one does not show up after traces were removed.
    let traces: Result<Vec<_>, _> =
        args.traces.iter().map(|id| Ok((id, dataset.stored(id)?))).collect();
    let traces = traces.map_err(|error: DatasetError| error)?;
    for (id, _) in traces.iter().filter(|(_, trace)| trace.is_none()) {
        writeln!(context.out, "{}: removed before", Untrusted(id))?;
    }
    let traces: BTreeSet<String> = traces.into_iter().filter_map(|(_, trace)| trace).collect();
    let out = &mut context.out;
    dataset.remove(&traces, context.cancel, |trace| {
        writeln!(out, "{trace}: removed")?;
        Ok::<_, CommandError>(())
    })
}

/// Merges the files of the days before today, and says how many there were and are.
///
/// # Errors
/// When the dataset cannot be changed, a file of it is not the one that was written, or it was cancelled.
fn compact(folder: &Path, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    context.messages.wait("merging");
    let dataset = Dataset::open_to_change(folder)?;
    let CompactResult { files, bytes } = dataset.compact(today(), context.cancel)?;
    if files == [0, 0] {
        writeln!(context.out, "nothing to merge")?;
        return Ok(());
    }
    let [before, after] = files;
    let [old, new] = bytes.map(HumanBytes);
    writeln!(context.out, "merged {} into {after}, {old} → {new}", CountedNoun(before, "file"))?;
    Ok(())
}

/// Compares all files of a dataset with what was written, and reports the differences.
///
/// # Errors
/// If the dataset cannot be read, anything differs, or it was cancelled.
fn check(folder: &Path, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    context.messages.wait("checking");
    let dataset = Dataset::open(folder)?;
    note_unread(&dataset, context.messages);
    let checked = dataset.check(context.cancel)?;
    checked.problems.iter().for_each(|problem| context.messages.error(problem));
    let traces = CountedNoun(checked.traces, "trace");
    let (rows, bytes) = (HumanCount(checked.rows), HumanBytes(checked.bytes));
    writeln!(context.out, "{traces}, {rows} rows, {bytes}")?;
    match checked.problems.len() {
        0 => Ok(()),
        problems => Err(CommandError::DatasetDiffers { problems: problems as u64 }),
    }
}

/// Lists the traces of a dataset by day.
///
/// # Errors
/// If the dataset or one of its traces cannot be read, or `out` cannot be written.
fn list(args: &ListArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open(&args.folder)?;
    note_unread(&dataset, context.messages);
    let traces = dataset.listed()?;
    let table = dataset_traces(&traces)?;
    let format = if args.json { Format::Json(JsonMode::Lines) } else { Format::Text };
    let display = context.session.settings.display(&DisplayArgs::default(), context.screen);
    table.write_as(format, &display, context.cancel, context.out)?;
    Ok(())
}
