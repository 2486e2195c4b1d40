//! `.load` and `.load+`

use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;

use super::shared::groups;
use super::shared::options::{max_size_option, recursive_queries_option};
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_fleet::dataset::{Dataset, LocalFile};
use handlescope_session::grammar::value::{SIZE, SWITCH};
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::paths::with_home;
use handlescope_session::terminal::Messages;
use handlescope_session::trace::{LoadArgs, LoadedTrace, Loading};
use handlescope_session::values::CountedNoun;

pub struct Load;

impl Command for Load {
    type Args = LoadArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".load"],
        group: groups::FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load traces, replacing the loaded ones",
        details: "QUERY is an extract (.json7z), a trace (.etl, also inside a .zip, .7z, .cab or \
             .diagsession), a minidump with handle data (.dmp, written by procdump -ma or .dump \
             /mh), a folder of these, or a file name pattern like *leak*;!*old*. A trace is \
             extracted first; the extract is kept as Extract/NAME.json7z beside it and reused as \
             long as the trace has the same size, time and content. A trace and its extract are \
             loaded once. Extracts of ETWAnalyzer (.json7z, or .json with its companions) are \
             loaded, too, and converted once into the cache folder. If a folder or pattern finds a \
             trace that has only such an extract, the extract is loaded; name the trace to extract \
             it. A text file of WinDbg, cdb or kd with the output of !htrace (.logopen session.log) \
             is loaded when it is named, whatever its extension: opens and closes with their \
             stacks, in order, but without times, and with types and names if !handle 0 f is in it, \
             too. The output of !handle alone, of Sysinternals handle.exe -a, -s or -v, and a \
             handle list of System Informer as CSV are lists of open handles; .diff compares two of \
             them. A minidump has the open handles with types and names, and stacks only if handle \
             tracing or Application Verifier was on. Files that cannot be loaded are reported (at \
             most three of a folder) and the rest is loaded; if none can be loaded, the session \
             does not change. A folder made by dataset add is loaded as a dataset, in place of \
             traces: .help lists its commands. Then QUERY may also be the id of one of its traces, \
             or the start of an id, to load the extract of that trace.",
        examples: &Example::lines([
            ".load examples/leaky.etl",
            ".load -r examples",
            ".load \"C:\\traces\\my trace.etl\" Extract/*.json7z",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<LoadArgs>] = OPTIONS;

    fn parse(entered: &EnteredLine<'_>) -> Result<LoadArgs, ParseError> {
        load_args(entered)
    }

    fn run(args: LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        load(&args, context)
    }
}

pub struct LoadMore;

impl Command for LoadMore {
    type Args = LoadArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".load+"],
        group: groups::FILES,
        usage: "QUERY…",
        arguments: Arguments::Files,
        summary: "load more traces",
        details: "QUERY is written as for .load. Traces that are already loaded stay.",
        examples: &Example::lines([".load+ examples/leaky.etl"]),
    };
    const OPTIONS: &'static [OptionGroup<LoadArgs>] = OPTIONS;

    fn parse(entered: &EnteredLine<'_>) -> Result<LoadArgs, ParseError> {
        load_args(entered).map(|args| LoadArgs { append: true, ..args })
    }

    fn run(args: LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        load(&args, context)
    }
}

fn load_args(entered: &EnteredLine<'_>) -> Result<LoadArgs, ParseError> {
    let (args, words) = entered.options_and_words(OPTIONS)?;
    if words.is_empty() {
        return Err(
            entered.missing("at least one file, folder or pattern; .unload empties the session")
        );
    }
    let queries = words.into_iter().map(|word| word.text.clone()).collect();
    Ok(LoadArgs { queries, ..args })
}

/// Loads traces instead of, or in addition to, the loaded ones. The session does not change unless at least one can be
/// loaded.
///
/// # Errors
/// Names every file that could not be loaded. If it was cancelled, the loaded traces stay unchanged.
pub fn load(args: &LoadArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if let Some(folder) = dataset_folder(args) {
        return load_dataset(folder, args, context);
    }
    let (args, mut extracts) = match &context.session.dataset {
        Some(folder) => with_extracts(folder, args)?,
        None => (args.clone(), Vec::new()),
    };
    let args = &args;
    let Context { session, cancel, messages, .. } = context;
    let loaded = if args.append { &session.files[..] } else { &[] };
    let Loading { mut files, errors, .. } = Loading::run(args, loaded, cancel, messages)?;
    for file in &mut files {
        if let Some(index) = extracts.iter().position(|extract| extract.path == file.path) {
            file.keep(extracts.swap_remove(index).copy);
        }
    }
    if !files.is_empty()
        && let Some(folder) = session.dataset.take()
    {
        let folder = Untrusted(&folder);
        messages.note(format_args!("unloaded the dataset {folder}; .load {folder} loads it again"));
    }
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
    } else if are_dumps(&session.files)? {
        // Dumps contain the time when they were written.
        let named: Vec<PathBuf> = session.files.iter().map(|file| file.path.clone()).collect();
        session.sort_files();
        let first = session.files.first().filter(|first| named.first() != Some(&first.path));
        if let Some(first) = first {
            let first = Untrusted(&first.path);
            messages.note(format_args!("note: {first} is older, so it is the dump before"));
        }
    }
    session.search_beside_files();
    if errors.is_empty() { Ok(()) } else { Err(CommandError::Load { errors }) }
}

/// Whether all files are minidumps.
fn are_dumps(files: &[LoadedTrace]) -> Result<bool, CommandError> {
    for file in files {
        if !file.trace.info()?.is_dump() {
            return Ok(false);
        }
    }
    Ok(!files.is_empty())
}

/// Returns the first query that is a dataset.
fn dataset_folder(args: &LoadArgs) -> Option<PathBuf> {
    args.queries.iter().map(|query| with_home(query)).find(|path| Dataset::is_at(path))
}

/// Loads a dataset; nothing else can be loaded with it.
fn load_dataset(
    folder: PathBuf,
    args: &LoadArgs,
    context: &mut Context<'_, '_>,
) -> Result<(), CommandError> {
    args.access.check(&folder)?;
    if args.append || args.queries.len() > 1 {
        return Err(CommandError::DatasetBeside { folder });
    }
    let dataset = Dataset::open(&folder)?;
    let traces = CountedNoun(dataset.traces()?.len() as u64, "trace");
    let shown = Untrusted(&folder);
    context.messages.note(format_args!("loaded the dataset {shown} of {traces}"));
    note_unread(&dataset, context.messages);
    context.session.open_dataset(folder);
    Ok(())
}

/// Notes what is not read from a dataset of a newer version.
pub fn note_unread(dataset: &Dataset, messages: &mut Messages<'_>) {
    if let Some(unread) = dataset.unread() {
        messages.note(format_args!("note: {unread}"));
    }
}

/// Replaces trace ids of the loaded dataset in the arguments by paths of their extracts; also returns these extracts.
fn with_extracts(
    folder: &Path,
    args: &LoadArgs,
) -> Result<(LoadArgs, Vec<LocalFile>), CommandError> {
    let dataset = Dataset::open(folder)?;
    let is_id =
        |query: &str| !query.is_empty() && query.bytes().all(|digit| digit.is_ascii_hexdigit());
    let (mut queries, mut extracts) = (Vec::new(), Vec::new());
    for query in &args.queries {
        if !is_id(query) || with_home(query).exists() {
            queries.push(query.clone());
            continue;
        }
        let trace = dataset.named(query)?.trace;
        let Some(extract) = dataset.extract(&trace)? else {
            return Err(CommandError::NoExtract { trace });
        };
        queries.push(extract.path.to_string_lossy().into_owned());
        extracts.push(extract);
    }
    Ok((LoadArgs { queries, append: false, ..args.clone() }, extracts))
}

static OPTIONS: &[OptionGroup<LoadArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        recursive_queries_option("-r examples", &(SWITCH, |args, ()| args.recursive = true)),
        Opt {
            names: &["-All"],
            help: "read all tables at once",
            details: "By default a table is read by the first query that needs it.",
            example: "-All examples",
            take: to(&(SWITCH, |args, ()| args.all = true)),
        },
        max_size_option(
            "-MaxSize 20GB examples",
            &(SIZE, |args, bytes| args.max_size = Some(bytes)),
        ),
        Opt {
            names: &["-fd", "-filedir"],
            help: "optional in front of a QUERY",
            details: "Accepted because ETWAnalyzer has it; it has no effect.",
            example: "-fd examples",
            take: to(&(SWITCH, |_, ()| ())),
        },
    ],
}];
