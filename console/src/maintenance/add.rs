//! `dataset add`: adds traces one after another, and goes on if one fails. `dataset symbolize`: finds function names
//! for stacks of added traces that have none.

use std::collections::HashSet;
use std::path::Path;

use indicatif::HumanBytes;

use super::args::AddArgs;
use handlescope_commands::shared::names::WatchedSymbols;
use handlescope_commands::{CommandError, Context};
use handlescope_extract::SourceIdentity;
use handlescope_fleet::dataset::{
    AddOptions, AddResult, Dataset, DatasetError, TraceLabels, source_id,
};
use handlescope_model::Untrusted;
use handlescope_query::Source;
use handlescope_session::paths::{Access, expand, is_extract};
use handlescope_session::trace::{LoadArgs, Loading, NoFile};
use handlescope_session::values::CountedNoun;

/// Adds traces to a dataset, and creates the dataset if it does not exist.
///
/// # Errors
/// If the dataset cannot be created, or if a trace could not be added. The error comes after all other traces were
/// added.
pub fn add(args: &AddArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let dataset = Dataset::create(&args.folder)?;
    let options = AddOptions {
        given: TraceLabels { machine: args.machine.clone(), build: args.build.clone() },
        without_extracts: args.no_extracts,
    };
    let (mut files, mut failed) = (0, 0);
    let mut seen = HashSet::new();
    for query in &args.traces {
        let mut problems = Vec::new();
        let expanded = expand(query, args.recursive, &mut problems);
        files += problems.len();
        failed += problems.len();
        problems.iter().for_each(|problem| context.messages.error(problem));
        for path in expanded.files {
            context.cancel.check()?;
            if !seen.insert(path.clone()) {
                continue;
            }
            files += 1;
            match add_file(&dataset, &path, &options, context) {
                Ok(added) => report(&path, &added, context)?,
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => {
                    context.messages.error(error);
                    failed += 1;
                }
            }
        }
    }
    if failed > 0 {
        return Err(CommandError::NotAdded { failed, files });
    }
    Ok(())
}

/// Adds the trace in a file. Recognizes a trace that the dataset already has by its content, before extracting it.
fn add_file(
    dataset: &Dataset,
    path: &Path,
    options: &AddOptions,
    context: &mut Context<'_, '_>,
) -> Result<AddResult, CommandError> {
    if !is_extract(path)
        && let Ok(source) = SourceIdentity::new(path)
        && let Some(partition) = dataset.find(&source_id(&source))?
    {
        return Ok(AddResult::before(partition));
    }
    open_alone(path, context)?;
    with_source(context, |source, names, cancel| dataset.add(source, options, names, cancel))
}

/// Opens a file in place of the loaded ones, without writing anything next to it.
fn open_alone(path: &Path, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let access = Access { read_only: true, ..Access::default() };
    let query = path.to_string_lossy().into_owned();
    let args = LoadArgs { access, ..LoadArgs::replacing(vec![query]) };
    context.session.files.clear();
    let cancel = context.cancel;
    let loading =
        context.messages.without_notes(|messages| Loading::run(&args, &[], cancel, messages));
    let Loading { files, errors, .. } = loading?;
    if !errors.is_empty() {
        return Err(CommandError::Load { errors });
    }
    context.session.files = files;
    context.session.search_beside_files();
    Ok(())
}

/// Runs `work` on the loaded trace, with function names.
fn with_source<T>(
    context: &mut Context<'_, '_>,
    work: impl FnOnce(
        &Source<'_>,
        &WatchedSymbols<'_>,
        &handlescope_session::cancel::Cancel,
    ) -> Result<T, DatasetError>,
) -> Result<T, CommandError> {
    let Context { session, cancel, messages, .. } = context;
    messages.wait("adding");
    let file = session.files.first().ok_or(NoFile::NothingLoaded)?;
    let source = Source {
        path: &file.path,
        index: 0,
        trace: &file.trace,
        frames: &file.frames,
        system: session.settings.system_modules(),
    };
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    Ok(work(&source, &names, cancel)?)
}

fn report(
    path: &Path,
    added: &AddResult,
    context: &mut Context<'_, '_>,
) -> Result<(), CommandError> {
    let (id, date) = (added.partition.short(), added.partition.date);
    let path = Untrusted(path);
    if added.was_there {
        writeln!(context.out, "{id}: {path}: already there, {date}")?;
    } else {
        let acquisitions = CountedNoun(added.acquisitions, "acquisition");
        let bytes = HumanBytes(added.bytes);
        writeln!(context.out, "{id}: {path}: {date}, {acquisitions}, {bytes}")?;
    }
    context.session.warn_of_missing_symbols(context.messages);
    Ok(())
}

/// Recreates the rows of traces that have stacks without symbols, and replaces them if names were found.
///
/// # Errors
/// If the dataset cannot be read or written, or it was cancelled; finished traces stay changed.
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
        let found = with_source(context, |source, names, cancel| {
            dataset.symbolize(source, partition, names, cancel)
        })?;
        if found {
            changed += 1;
            writeln!(context.out, "{}: found names", partition.short())?;
        } else {
            unchanged += 1;
        }
    }
    let (changed, unchanged) = (CountedNoun(changed, "trace"), CountedNoun(unchanged, "trace"));
    writeln!(context.out, "{changed} with more names, {unchanged} as before")?;
    if without > 0 {
        let without = CountedNoun(without, "trace");
        context.messages.warning(format_args!(
            "{without} without an extract in the dataset: remove and add the traces again"
        ));
    }
    context.session.warn_of_missing_symbols(context.messages);
    Ok(())
}
