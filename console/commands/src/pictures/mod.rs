//! Code shared by commands that draw pictures of handles; handles are selected as for `.dump ObjectRef`.

mod allocations;
pub mod flame;
pub mod plot;
mod plot_of_fleet;
pub mod report;
mod report_of_fleet;

use std::path::{Path, PathBuf};

use super::dump::object_ref::ObjectRefArgs;
use super::shared::fields;
use super::shared::ignore::IgnoreArgs;
use super::shared::options::{files_option, force_option};
use super::shared::{note_allocations, write_caveats};
use super::{CommandError, DumpContext, EnteredLine, OverDataset, ParsedArgs, SharedArgs};
use handlescope_fleet::{FleetChoice, GrowthAxis};
use handlescope_query::{
    self as query, GroupColumn, GroupCriteria, ObjectRefAnswer, ProcessCriteria,
};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{LOADED_FILES, SWITCH};
use handlescope_session::grammar::{GroupView, Opt, OptionGroup, ParseError, Token, parse};
use handlescope_session::paths::{has_extension, with_home};

/// The arguments of a command that draws.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PictureArgs {
    /// The file to write, if one was named.
    pub file: Option<PathBuf>,
    pub handles: ObjectRefArgs,
    /// The other options.
    pub options: PictureOptions,
}

/// Options other than those that select handles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PictureOptions {
    /// The files to query, and whether a file may be replaced.
    pub shared: SharedArgs,
    /// `-GroupBy`: the column that groups handles.
    pub by: Option<GroupColumn>,
    /// `-TopN`: number of groups to show separately.
    pub top: Option<u64>,
    /// `-Kind`: allocations of these kinds instead of handles.
    pub kind: Option<Filter>,
    /// `-Count`: allocations by number instead of bytes.
    pub by_count: bool,
    /// `-Ignore` and `-Ignored`: known leaks, for a page.
    pub ignore: IgnoreArgs,
    /// `-Over`: the time axis of a dataset's picture.
    pub axis: Option<GrowthAxis>,
    /// `-Bytes`: bytes of a dataset's allocations instead of handles.
    pub of_bytes: bool,
    /// `-Traces`: number of traces of a dataset that get a page.
    pub traces: Option<u64>,
}

fields!(PictureOptions { ignore: IgnoreArgs });
fields!(PictureArgs {
    handles.of_fleet.choice: FleetChoice,
    handles.criteria.creator: ProcessCriteria,
    options.ignore: IgnoreArgs,
});

/// Options that select handles.
type Filters = &'static [OptionGroup<ObjectRefArgs>];

/// Returns the options of such a command under their headings: those that select handles, then its own.
fn groups(filters: Filters, options: &'static [OptionGroup<PictureOptions>]) -> Vec<GroupView> {
    GroupView::with_shared(GroupView::all(filters), GroupView::all(options))
}

/// Parses a file and options.
fn parse(
    entered: &EnteredLine<'_>,
    filters: Filters,
    options: &'static [OptionGroup<PictureOptions>],
) -> Result<PictureArgs, ParseError> {
    let (handles, mut picture_options, words) =
        parse::options_and_words(&entered.help(), entered.tokens, filters, options)?;
    let file = file(entered, &words)?;
    picture_options.shared.text = entered.line.to_owned();
    Ok(PictureArgs { file, handles, options: picture_options })
}

/// Parses a file and options of a command over a dataset.
fn parse_over_dataset(
    command: &OverDataset<PictureArgs>,
    entered: &EnteredLine<'_>,
) -> ParsedArgs<PictureArgs> {
    let (mut args, words): (PictureArgs, _) = entered.options_and_words(command.options)?;
    args.file = file(entered, &words)?;
    args.options.shared.text = entered.line.to_owned();
    let shared = args.options.shared.clone();
    Ok((args, shared))
}

/// Returns the file that a line names.
fn file(entered: &EnteredLine<'_>, words: &[&Token]) -> Result<Option<PathBuf>, ParseError> {
    let file = entered.at_most_one(words, "one file, in quotes if its name has spaces")?;
    Ok(file.as_deref().map(with_home))
}

/// Refuses a file with another extension, and one that exists unless it may be replaced.
fn check_file(
    path: &Path,
    extensions: &[&str],
    endings: &'static str,
    dump: &DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    if !has_extension(path, extensions) {
        return Err(CommandError::PictureName { path: path.to_owned(), endings });
    }
    dump.overwrite().replacing(path)?;
    Ok(())
}

/// Options about the files to query, and whether a file may be replaced.
static FILES: &[Opt<PictureOptions>] = &[
    files_option(&(LOADED_FILES, |args, filter| args.shared.files.push(filter))),
    force_option("leaks.svg -Force", &(SWITCH, |args, ()| args.shared.output.force = true)),
];

/// Queries groups of the selected handles, and reports what makes the answer incomplete.
fn ask<'a>(
    handles: &ObjectRefArgs,
    groups: GroupCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<ObjectRefAnswer<'a>, CommandError> {
    let criteria = handles.criteria.with_groups(groups).narrowed_to_leaks_of_suspect();
    let answer = query::object_ref(dump.sources, &criteria, dump.names, dump.cancel)?;
    for file in &answer.files {
        write_caveats(file, dump.session, dump.messages);
        note_allocations(file, dump.messages)?;
    }
    Ok(answer)
}
