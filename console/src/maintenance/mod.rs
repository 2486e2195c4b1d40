//! `handlescope dataset`: traces added to a dataset, listed, checked, removed, and named later.

mod add;
mod args;
mod check;
mod list;
mod schema;
mod symbolize;

pub use self::args::{AddArgs, CheckArgs, DatasetAction, ListArgs, RemoveArgs, SymbolizeArgs};

use handlescope_model::Untrusted;

use handlescope_commands::{CommandError, Context};
use handlescope_fleet::dataset::{Dataset, DatasetError};

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
    // No id may turn out to be wrong once traces are gone.
    let traces: Result<Vec<_>, _> =
        args.traces.iter().map(|id| Ok((id, dataset.stored(id)?))).collect();
    for (id, trace) in traces.map_err(|error: DatasetError| error)? {
        context.cancel.check()?;
        match trace {
            Some(trace) => {
                dataset.remove(&trace)?;
                writeln!(context.out, "{trace}: removed")?;
            }
            None => writeln!(context.out, "{}: removed before", Untrusted(id))?,
        }
    }
    Ok(())
}
