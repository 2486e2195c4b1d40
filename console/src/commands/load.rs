//! `.load` and `.load+`

use super::shared::groups;
use super::shared::options::{max_size_option, recursive_queries_option};
use super::{Command, CommandError, Context, Entered, Signature};
use crate::grammar::{Arguments, Opt, OptionGroup, ParseError, Take};
use crate::trace::{LoadArgs, Loading};

pub(crate) struct Load;

impl Command for Load {
    type Args = LoadArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".load"],
        group: groups::FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load traces, replacing the loaded ones",
        details: "QUERY is an extract (.json7z), a trace (.etl, also inside a .zip or .7z), a \
             minidump with handle data (.dmp, written by procdump -ma or .dump /mh), a folder of these, or a file name pattern like *leak*;!*old*. A trace is extracted \
             first; the extract is kept as Extract/NAME.json7z beside it and reused as long as \
             the trace has the same size, time and content. A trace and its extract are loaded \
             once. Extracts of ETWAnalyzer (.json7z, or .json with its companions) are loaded, \
             too, and converted once into the cache folder. If a folder or pattern finds a trace \
             that has only such an extract, the extract is loaded; name the trace to extract it. \
             A text file of WinDbg, cdb or kd with the output of !htrace (.logopen session.log) \
             is loaded when it is named, whatever its extension: opens and closes with their \
             stacks, in order, but without times, types and names. A minidump has the open handles with \
             types and names, and stacks only if handle tracing or Application Verifier was on. Files that cannot be loaded \
             are reported (at most three of a folder) and the rest is loaded; if none can be \
             loaded, the session does not change.",
        examples: &[
            ".load examples/leaky.etl",
            ".load -r examples",
            ".load \"C:\\traces\\my trace.etl\" Extract/*.json7z",
        ],
    };
    const OPTIONS: &'static [OptionGroup<LoadArgs>] = OPTIONS;

    fn parse(entered: &Entered<'_>) -> Result<LoadArgs, ParseError> {
        load_args(entered)
    }

    fn run(args: LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        load(&args, context)
    }
}

pub(crate) struct LoadMore;

impl Command for LoadMore {
    type Args = LoadArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".load+"],
        group: groups::FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load more traces",
        details: "QUERY is written as for .load. Traces that are already loaded stay.",
        examples: &[".load+ examples/leaky.etl"],
    };
    const OPTIONS: &'static [OptionGroup<LoadArgs>] = OPTIONS;

    fn parse(entered: &Entered<'_>) -> Result<LoadArgs, ParseError> {
        load_args(entered).map(|args| LoadArgs { append: true, ..args })
    }

    fn run(args: LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        load(&args, context)
    }
}

fn load_args(entered: &Entered<'_>) -> Result<LoadArgs, ParseError> {
    let (args, words) = entered.options_and_words(OPTIONS)?;
    if words.is_empty() {
        return Err(
            entered.missing("at least one file, folder or pattern; .unload empties the session")
        );
    }
    let queries = words.into_iter().map(|word| word.text.clone()).collect();
    Ok(LoadArgs { queries, ..args })
}

/// Loads traces in place of those that are loaded, or beside them. As long as none can be loaded,
/// the session stays as it is.
///
/// # Errors
/// Names every file that could not be loaded. When it was cancelled, the loaded traces stay as they
/// were.
pub(crate) fn load(args: &LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let Context { session, cancel, messages, .. } = context;
    let loaded = if args.append { &session.files[..] } else { &[] };
    let Loading { files, errors, .. } = Loading::run(args, loaded, cancel, messages)?;
    if files.len() > 1 {
        messages.note(format_args!("loaded {} files", files.len()));
    }
    if args.append {
        session.files.extend(files);
    } else if !files.is_empty() {
        session.files = files;
    }
    if !args.as_named {
        session.sort_files();
    }
    session.search_beside_files();
    if errors.is_empty() { Ok(()) } else { Err(CommandError::Load { errors }) }
}

static OPTIONS: &[OptionGroup<LoadArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        recursive_queries_option("-r examples", |args| &mut args.recursive),
        Opt {
            names: &["-All"],
            help: "read all tables at once",
            details: "By default a table is read by the first query that needs it.",
            example: "-All examples",
            take: Take::Switch(|args| &mut args.all),
        },
        max_size_option("-MaxSize 20GB examples", |args| &mut args.max_size),
        Opt {
            names: &["-fd", "-filedir"],
            help: "optional in front of a QUERY",
            details: "Accepted because ETWAnalyzer has it; it has no effect.",
            example: "-fd examples",
            take: Take::Set(|_| ()),
        },
    ],
}];
