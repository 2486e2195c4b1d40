//! The arguments of `.extract` and their options.

use std::path::PathBuf;

use handlescope_extract::StackChoice;

use crate::shared::options::{
    Idle, Notes, SELECTION, etwanalyzer_option, force_option, ignored, ignored_everywhere,
    max_size_option, recursive_queries_option,
};
use crate::shared::symbols::{SymbolArgs, symbol_options};
use crate::shared::{fields, groups};
use handlescope_session::grammar::value::{
    FOLDER, NUMBER, QUERY, SIZE, SWITCH, TEXT, ValueKind, WORD,
};
use handlescope_session::grammar::{Opt, OptionGroup, Take, WordChoices, choice, to, words};
use handlescope_session::values::ValueError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractArgs {
    /// Files, folders and patterns.
    pub queries: Vec<String>,
    /// ETWAnalyzer extractors that this program does not have.
    pub unknown_extractors: Vec<String>,
    /// `-recursive`: include subfolders.
    pub recursive: bool,
    /// `-outdir`: the folder for the extracts, instead of `Extract` beside each trace.
    pub outdir: Option<PathBuf>,
    /// `-stacks`: which stacks to keep; by default those of handle events.
    pub stacks: Option<StackChoice>,
    /// `-events`: providers to keep single events of.
    pub events: Option<String>,
    /// `-resource`: events that acquire and release, as text or as a file name.
    pub resource: Option<String>,
    /// `-NoOverwrite`: skip traces that have an extract.
    pub no_overwrite: bool,
    /// `-Force`: replace a file that is not an extract.
    pub force: bool,
    /// `-MaxSize`: maximum size of a trace unpacked from an archive, in bytes.
    pub max_size: Option<u64>,
    /// `-MaxMemory`: memory limit in bytes.
    pub max_memory: Option<u64>,
    /// `-Concurrency`: number of threads for each trace.
    pub threads: Option<u64>,
    /// `-DryRun`: only list the traces.
    pub dry_run: bool,
    /// `-symbols`: store the names of all frames.
    pub store_names: bool,
    /// `-etwanalyzer`: also write what ETWAnalyzer reads.
    pub etwanalyzer: bool,
    /// Sources of symbols for the stacks that are shown.
    pub symbols: SymbolArgs,
    /// Options that were accepted without effect, each with the reason.
    pub notes: Vec<&'static str>,
}

fields!(ExtractArgs { symbols: SymbolArgs, notes: Notes });

pub static OPTIONS: &[OptionGroup<ExtractArgs>] = &[
    OptionGroup { title: "Which traces", options: WHICH },
    OptionGroup { title: "What is extracted", options: CONTENT },
    OptionGroup { title: "Where extracts are written", options: WHERE },
    OptionGroup { title: "Symbols", options: &symbol_options() },
    OptionGroup { title: groups::LIMITS, options: LIMITS },
    OptionGroup { title: "For ETWAnalyzer compatibility", options: COMPATIBILITY },
];

static WHICH: &[Opt<ExtractArgs>] = &[
    Opt {
        names: &["-fd", "-filedir"],
        help: "traces: a file, a folder or a pattern",
        details: "May be given several times, or left out: a file name is enough.",
        example: "-fd examples/leaky.etl",
        take: to(&(QUERY, |args, query| args.queries.push(query))),
    },
    recursive_queries_option(
        "-fd examples -recursive",
        &(SWITCH, |args, ()| args.recursive = true),
    ),
    Opt {
        names: &["-NoOverwrite"],
        help: "skip traces that have an extract",
        details: "By default they are extracted again.",
        example: "-fd examples -NoOverwrite",
        take: to(&(SWITCH, |args, ()| args.no_overwrite = true)),
    },
    force_option("-fd examples -Force", &(SWITCH, |args, ()| args.force = true)),
    max_size_option(
        "-fd examples -MaxSize 100GB",
        &(SIZE, |args, bytes| args.max_size = Some(bytes)),
    ),
    Opt {
        names: &["-DryRun"],
        help: "only list the traces",
        details: "Nothing is written.",
        example: "-fd examples -DryRun",
        take: to(&(SWITCH, |args, ()| args.dry_run = true)),
    },
];

const STACKS: &WordChoices<StackChoice> = &[
    ("handles", "those of handle events (default)", StackChoice::HandleEvents),
    ("all", "those of every event, CPU samples too", StackChoice::All),
];

static CONTENT: &[Opt<ExtractArgs>] = &[
    Opt {
        names: &["-stacks", "--stacks"],
        help: "which call stacks to keep",
        details: "For .dump Stack. Keeping all stacks can make an extract many times larger. \
             Provider events keep their own stacks: -events.",
        example: "-fd examples/leaky.etl -stacks all",
        take: to(&(ValueKind { words: || words(STACKS), ..WORD }, |args, index| {
            args.stacks = choice(STACKS, index);
        })),
    },
    Opt {
        names: &["-events", "--events"],
        help: "providers whose single events to keep, or all",
        details: "Names or GUIDs separated by ;. Their events are kept with all fields and \
             stacks, for .dump Events -ShowFields and .sql. By default an extract has only counts \
             of events.",
        example: "-fd examples/leaky.etl -events all",
        take: to(&(ValueKind { placeholder: "PROVIDERS", ..TEXT }, |args, text| {
            args.events = Some(text);
        })),
    },
    Opt {
        names: &["-resource", "--resource"],
        help: "further events that acquire and release resources",
        details: "For example \"Contoso.Pool/Take acquire handle=Block size=Bytes \
             allocator=Tag\", several separated by ;: provider name, GUID or *; event name or id; \
             what it does; and its fields, by default Handle, AllocSize and Allocator. Or a .toml \
             file that lists them. AcquireResource and ReleaseResource are always included.",
        example: "-fd examples/leaky.etl -resource \"Contoso.Pool/Take acquire handle=Block\"",
        take: to(&(ValueKind { placeholder: "MAPPING", ..TEXT }, |args, text| {
            args.resource = Some(text);
        })),
    },
    Opt {
        names: &["-symbols", "--symbols"],
        help: "store the names of all frames, for readers without symbols",
        details: "Names are looked up on the symbol path, as by .symbolize. By default an extract \
             has addresses, which are resolved when stacks are shown.",
        example: "-fd examples/leaky.etl -symbols -symFolder examples/symbols",
        take: to(&(SWITCH, |args, ()| args.store_names = true)),
    },
    etwanalyzer_option(
        "The archive then opens in both programs. Frames have the names that the symbol path \
         gives, stored as by -symbols, or else module and offset. The file time is set to the \
         session's.",
        "-fd examples/leaky.etl -etwanalyzer",
        &(SWITCH, |args, ()| args.etwanalyzer = true),
    ),
];

static WHERE: &[Opt<ExtractArgs>] = &[Opt {
    names: &["-outdir", "-o", "--outdir"],
    help: "folder for the extracts, instead of Extract beside each trace",
    details: "Created if it does not exist.",
    example: "-fd examples/leaky.etl -outdir extracts",
    take: to(&(FOLDER, |args, folder| args.outdir = Some(folder))),
}];

static LIMITS: &[Opt<ExtractArgs>] = &[
    Opt {
        names: &["-MaxMemory", "--max-memory"],
        help: "memory limit; the rest goes to temporary files",
        details: "1 GiB by default, at least 256 MiB. What does not fit is kept in files beside \
             the extract, which are deleted at the end. Units: KB, KiB, MB, MiB, GB, GiB.",
        example: "-fd examples/leaky.etl -MaxMemory 512MiB",
        take: to(&(SIZE, |args, bytes| args.max_memory = Some(bytes))),
    },
    Opt {
        names: &["-Concurrency", "--threads"],
        help: "threads per trace",
        details: "By default one for each processor. The extract is the same.",
        example: "-fd examples/leaky.etl -Concurrency 1",
        take: to(&(NUMBER, |args, number| args.threads = Some(number))),
    },
];

static COMPATIBILITY: &[Opt<ExtractArgs>] = &{
    let [no_color, debug, days, runs, skip, index, count] = ignored_everywhere();
    [
        ignored(
            &["-tempdir"],
            "-tempdir 1",
            &Idle(1, "-tempdir does nothing; archives are not unpacked into a folder"),
        ),
        ignored(
            &["-keepTemp"],
            "-keepTemp",
            &Idle(0, "-keepTemp does nothing; archives are not unpacked into a folder"),
        ),
        ignored(&["-nThreads"], "-nThreads 1", &Idle(1, THREADS)),
        ignored(&["-pThreads"], "-pThreads 1", &Idle(1, THREADS)),
        ignored(
            &["-child"],
            "-child",
            &Idle(0, "-child does nothing; everything runs in this process"),
        ),
        ignored(
            &["-timeLine"],
            "-timeLine 1",
            &Idle(1, "-timeLine does nothing; it is about CPU data"),
        ),
        ignored(&["-allCPU"], "-allCPU", &Idle(0, "-allCPU does nothing; it is about CPU data")),
        ignored(
            &["-extractRegion"],
            "-extractRegion 1 2",
            &Idle(
                64,
                "-extractRegion does nothing; objects are always extracted whole, choose with -MinMaxTime",
            ),
        ),
        days,
        runs,
        skip,
        index,
        count,
        ignored(&["-NoTestRunGrouping"], "-NoTestRunGrouping", &Idle(0, SELECTION)),
        no_color,
        debug,
        refused(
            &["-NoCompress"],
            "-NoCompress",
            &RejectedValues(0, "an extract is one archive; it cannot be several plain files"),
        ),
        refused(
            &["-Indent"],
            "-Indent",
            &RejectedValues(0, "an extract holds tables; use -json-pretty with .dump for JSON"),
        ),
        refused(
            &["-unzipOperation"],
            "-unzipOperation",
            &RejectedValues(
                1,
                "archives are not unpacked into a folder, so there is nothing to run a command on",
            ),
        ),
    ]
};

const THREADS: &str =
    "traces are extracted one by one in this process; -Concurrency sets the threads of each";

/// Takes at most this many values, always rejects them, and says why.
struct RejectedValues(usize, &'static str);

impl Take<ExtractArgs> for RejectedValues {
    fn value(&self) -> ValueKind<()> {
        Take::<ExtractArgs>::value(&Idle(self.0, self.1))
    }

    fn apply(&self, _: &mut ExtractArgs, _: &[&str]) -> Result<(), ValueError> {
        Err(ValueError::Refused { reason: self.1 })
    }
}

const fn refused(
    names: &'static [&'static str],
    example: &'static str,
    refused: &'static RejectedValues,
) -> Opt<ExtractArgs> {
    Opt {
        names,
        help: "refused",
        details: "Refused, because the result would differ from ETWAnalyzer's.",
        example,
        take: refused,
    }
}
