//! `handlescope dataset`: traces added to a dataset, listed, checked, removed, and named later.

mod add;
mod args;
mod check;
mod list;
mod schema;
mod symbolize;

pub use self::args::{AddArgs, CheckArgs, DatasetAction, ListArgs, RemoveArgs, SymbolizeArgs};

use crate::commands::{CommandError, Context};
use crate::dataset::Dataset;

/// Carries out an action on a dataset.
///
/// # Errors
/// When the dataset cannot be read or changed, a trace cannot be added, or it was cancelled.
pub fn run(action: &DatasetAction, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    match action {
        DatasetAction::Add(args) => add::add(args, context),
        DatasetAction::List(args) => list::list(args, context),
        DatasetAction::Check(args) => check::check(&args.folder, context),
        DatasetAction::Schema => Ok(schema::schema(context.out)?),
        DatasetAction::Symbolize(args) => symbolize::symbolize(&args.folder, context),
        DatasetAction::Remove(args) => remove(args, context),
    }
}

fn remove(args: &RemoveArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open_to_change(&args.folder)?;
    for id in &args.traces {
        context.cancel.check()?;
        let trace = dataset.stored(id)?;
        dataset.remove(&trace)?;
        writeln!(context.out, "{trace}: removed")?;
    }
    Ok(())
}
