//! `dataset symbolize`: names of functions for stacks that have none, from the kept extracts.

use std::path::Path;

use super::add::{open_alone, with_source};
use handlescope_commands::{CommandError, Context};
use handlescope_fleet::dataset::Dataset;
use handlescope_session::values::Counted;

/// Makes the rows of traces again that have stacks without symbols, and replaces them where names were found.
///
/// # Errors
/// When the dataset cannot be read or written, or it was cancelled; traces that are done stay so.
pub fn symbolize(folder: &Path, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::open_to_change(folder)?;
    let (mut changed, mut unchanged, mut without) = (0_u64, 0_u64, 0_u64);
    for listed in dataset.listed()? {
        context.cancel.check()?;
        if listed.stacks_without_symbols == 0 {
            continue;
        }
        let Some(extract) = dataset.extract(&listed.partition.trace)? else {
            without += 1;
            continue;
        };
        open_alone(&extract.path, context)?;
        let partition = &listed.partition;
        let result = with_source(context, |source, names, cancel| {
            dataset.symbolize(source, partition, names, cancel)
        })?;
        match result {
            Some(_) => {
                changed += 1;
                writeln!(context.out, "{}: names were found", partition.short())?;
            }
            None => unchanged += 1,
        }
    }
    let (changed, unchanged) = (Counted(changed, "trace"), Counted(unchanged, "trace"));
    writeln!(context.out, "{changed} with more names, {unchanged} as before")?;
    if without > 0 {
        let without = Counted(without, "trace");
        context.messages.warning(format_args!(
            "{without} without extract in the dataset: add the traces again, after dataset remove"
        ));
    }
    context.session.warn_of_missing_symbols(context.messages);
    Ok(())
}
