//! `.extract` as entered, and its options.

use std::path::PathBuf;

use handlescope_extract::StackChoice;

use crate::commands::shared::fields;
use crate::commands::shared::options::{
    Notes, SELECTION, etwanalyzer_option, force_option, ignored, ignored_everywhere,
    max_size_option, recursive_queries_option,
};
use crate::commands::shared::symbols::{SymbolArgs, symbol_options, symbol_path_option};
use crate::grammar::{Choices, Opt, OptionGroup, Take, chosen, words};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtractArgs {
    /// Files, folders and patterns.
    pub(crate) queries: Vec<String>,
    /// What ETWAnalyzer extracts and this program does not.
    pub(crate) unknown_extractors: Vec<String>,
    /// `-recursive`: look into folders below folders.
    pub(crate) recursive: bool,
    /// `-outdir`: the folder for the extracts, instead of `Extract` beside each trace.
    pub(crate) outdir: Option<PathBuf>,
    /// `-stacks`: which stacks to keep; those of handle events unless it is given.
    pub(crate) stacks: Option<StackChoice>,
    /// `-events`: providers whose single events to keep.
    pub(crate) events: Option<String>,
    /// `-resource`: events that acquire and release, in words or as the name of a file.
    pub(crate) resource: Option<String>,
    /// `-NoOverwrite`: leave traces alone that have an extract.
    pub(crate) no_overwrite: bool,
    /// `-Force`: replace a file that is no extract.
    pub(crate) force: bool,
    /// `-MaxSize`: largest trace in an archive that is unpacked, bytes.
    pub(crate) max_size: Option<u64>,
    /// `-DryRun`: only list the traces.
    pub(crate) dry_run: bool,
    /// `-symbols`: store the names of all frames.
    pub(crate) store_names: bool,
    /// `-etwanalyzer`: write what ETWAnalyzer reads, too.
    pub(crate) etwanalyzer: bool,
    /// Where symbols come from when stacks are shown.
    pub(crate) symbols: SymbolArgs,
    /// Options that were accepted without effect, each with the reason.
    pub(crate) notes: Vec<&'static str>,
}

fields!(ExtractArgs { symbols: SymbolArgs, notes: Notes });

pub(super) static OPTIONS: &[OptionGroup<ExtractArgs>] = &[
    OptionGroup { title: "Which traces", options: WHICH },
    OptionGroup { title: "What extracts hold", options: WHAT },
    OptionGroup { title: "Where extracts go", options: WHERE },
    OptionGroup { title: "Where names of functions come from", options: SYMBOLS },
    OptionGroup { title: "Known from ETWAnalyzer, without effect or refused", options: OTHERS },
];

static WHICH: &[Opt<ExtractArgs>] = &[
    Opt {
        names: &["-fd", "-filedir"],
        help: "traces: a file, a folder or a pattern",
        details: "May be given several times, or be left out in front of a file.",
        example: "-fd examples/leaky.etl",
        take: Take::Query(|args| &mut args.queries),
    },
    recursive_queries_option("-fd examples -recursive", |args| &mut args.recursive),
    Opt {
        names: &["-NoOverwrite"],
        help: "leave traces alone that have an extract",
        details: "Otherwise they are extracted again.",
        example: "-fd examples -NoOverwrite",
        take: Take::Switch(|args| &mut args.no_overwrite),
    },
    force_option("-fd examples -Force", |args| &mut args.force),
    max_size_option("-fd examples -MaxSize 100GB", |args| &mut args.max_size),
    Opt {
        names: &["-DryRun"],
        help: "only list the traces",
        details: "Nothing is written.",
        example: "-fd examples -DryRun",
        take: Take::Switch(|args| &mut args.dry_run),
    },
];

const STACKS: &Choices<StackChoice> = &[
    ("handles", "those of handle events, as usual", StackChoice::HandleEvents),
    ("all", "those of every event, CPU samples too", StackChoice::All),
];

static WHAT: &[Opt<ExtractArgs>] = &[
    Opt {
        names: &["-stacks", "--stacks"],
        help: "which call stacks to keep",
        details: "For .dump Stack. All stacks can make an extract many times larger. Those that events of \
                  providers carry themselves are kept with these events: -events.",
        example: "-fd examples/leaky.etl -stacks all",
        take: Take::Choice(|| words(STACKS), |args, place| args.stacks = chosen(STACKS, place)),
    },
    Opt {
        names: &["-events", "--events"],
        help: "providers whose single events to keep, or all",
        details: "Names or GUIDs with ; between them. Their events are kept with all fields and with the \
                  stacks that they carry, for .dump Events -ShowFields and .sql. Without it an extract \
                  has counts of all events.",
        example: "-fd examples/leaky.etl -events all",
        take: Take::Text("PROVIDERS", 1, |args| &mut args.events),
    },
    Opt {
        names: &["-resource", "--resource"],
        help: "events that acquire and release resources, besides those that are known",
        details: "As in \"Contoso.Pool/Take acquire handle=Block size=Bytes allocator=Tag\", with ; between \
                  several: the name or GUID of a provider or *, the name or id of an event, what it does, \
                  and the fields, which are else called Handle, AllocSize and Allocator. Or a .toml file \
                  that lists them. AcquireResource and ReleaseResource are always known.",
        example: "-fd examples/leaky.etl -resource \"Contoso.Pool/Take acquire handle=Block\"",
        take: Take::Text("MAPPING", 1, |args| &mut args.resource),
    },
    Opt {
        names: &["-symbols", "--symbols"],
        help: "store the names of all frames, for readers without symbols",
        details: "Names are looked up on the symbol path, as .symbolize does. Without it an \
                  extract has addresses, which get their names when stacks are shown.",
        example: "-fd examples/leaky.etl -symbols -symFolder examples/symbols",
        take: Take::Switch(|args| &mut args.store_names),
    },
    etwanalyzer_option(
        "The same archive then opens in both programs. Frames are called by the names \
         that the symbol path gives, and these are stored as by -symbols; else by \
         module and offset. The archive gets the time of the session.",
        "-fd examples/leaky.etl -etwanalyzer",
        |args| &mut args.etwanalyzer,
    ),
];

static WHERE: &[Opt<ExtractArgs>] = &[Opt {
    names: &["-outdir", "-o", "--outdir"],
    help: "folder for the extracts, instead of Extract beside each trace",
    details: "It is made if it does not exist.",
    example: "-fd examples/leaky.etl -outdir extracts",
    take: Take::Folder(|args| &mut args.outdir),
}];

static SYMBOLS: &[Opt<ExtractArgs>] = &{
    let [server, cache, folder] = symbol_options();
    [symbol_path_option(), server, cache, folder]
};

static OTHERS: &[Opt<ExtractArgs>] = &{
    let [no_color, debug, days, runs, skip, index, count] = ignored_everywhere();
    [
        ignored(
            &["-tempdir"],
            "-tempdir 1",
            1,
            "-tempdir does nothing; archives are not unpacked into a folder",
        ),
        ignored(
            &["-keepTemp"],
            "-keepTemp",
            0,
            "-keepTemp does nothing; archives are not unpacked into a folder",
        ),
        ignored(&["-nThreads"], "-nThreads 1", 1, THREADS),
        ignored(&["-pThreads"], "-pThreads 1", 1, THREADS),
        ignored(&["-Concurrency"], "-Concurrency 1", 1, THREADS),
        ignored(&["-child"], "-child", 0, "-child does nothing; everything runs in this process"),
        ignored(&["-timeLine"], "-timeLine 1", 1, "-timeLine does nothing; it is about CPU data"),
        ignored(&["-allCPU"], "-allCPU", 0, "-allCPU does nothing; it is about CPU data"),
        ignored(
            &["-extractRegion"],
            "-extractRegion 1 2",
            64,
            "-extractRegion does nothing; objects are always extracted whole, choose with -MinMaxTime",
        ),
        days,
        runs,
        skip,
        index,
        count,
        ignored(&["-NoTestRunGrouping"], "-NoTestRunGrouping", 0, SELECTION),
        no_color,
        debug,
        refused(
            &["-NoCompress"],
            "-NoCompress",
            0,
            "an extract is one archive; it cannot be several plain files",
        ),
        refused(
            &["-Indent"],
            "-Indent",
            0,
            "an extract holds tables; use -json-pretty with .dump for JSON",
        ),
        refused(
            &["-unzipOperation"],
            "-unzipOperation",
            1,
            "archives are not unpacked into a folder, so there is nothing to run a command on",
        ),
    ]
};

const THREADS: &str = "the number of threads is that of the processors; traces come one by one";

const fn refused(
    names: &'static [&'static str],
    example: &'static str,
    values: usize,
    reason: &'static str,
) -> Opt<ExtractArgs> {
    Opt {
        names,
        help: "refused",
        details: "ETWAnalyzer has it; without it the result would differ from the one that is meant.",
        example,
        take: Take::Refused(values, reason),
    }
}
