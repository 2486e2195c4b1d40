//! What `.dump` can dump, and the options that several kinds share.

use super::{Doc, Example, KindSpec, Opt, OptionGroup, Take, Texts, object_ref, stack, views};
use crate::command::{
    JsonMode, ModuleArgs, ObjectRefArgs, ProcessArgs, SqlArgs, StackArgs, StatsArgs, SymbolsArgs,
    entry,
};
use crate::filter::Filter;

/// All kinds, in the order of the help.
pub static KINDS: &[KindSpec] = &[
    KindSpec {
        name: "ObjectRef",
        summary: "kernel objects with their handles, references, mappings and stacks",
        details: "Prints every object that passes all filters, with its events, and a line of \
                  totals. An object's id is the same in every query.",
        examples: object_ref::EXAMPLES,
        groups: || views(object_ref::GROUPS),
        parse: entry::dump_object_ref,
    },
    KindSpec {
        name: "Process",
        summary: "processes with their start, end and command line",
        details: "One row per lifetime: a pid that is used again is another process.",
        examples: &[
            Example { goal: "all processes", line: ".dump Process" },
            Example { goal: "one program", line: ".dump Process -pn leaky" },
        ],
        groups: || views(PROCESS),
        parse: entry::dump_process,
    },
    KindSpec {
        name: "Module",
        summary: "modules with their versions, symbol identities and load addresses",
        details: "One row per image; the JSON output also lists where and when each was loaded.",
        examples: &[
            Example { goal: "all modules", line: ".dump Module" },
            Example { goal: "what one program loaded", line: ".dump Module -pn leaky" },
        ],
        groups: || views(MODULE),
        parse: entry::dump_module,
    },
    KindSpec {
        name: "Version",
        summary: "modules with version, product and description, by the processes that loaded them",
        details: "Modules that the same processes loaded stand together, under the names of these.",
        examples: &[
            Example { goal: "All modules", line: ".dump Version" },
            Example { goal: "One module", line: ".dump Version -Dll leaky.exe" },
        ],
        groups: || views(MODULE),
        parse: entry::dump_version,
    },
    KindSpec {
        name: "Stack",
        summary: "call stacks by how often they were recorded",
        details: "The most frequent stacks first, each process by itself. They are those of handle \
                  events, unless the trace was extracted with -stacks all: then those of every \
                  event, CPU samples too.",
        examples: stack::EXAMPLES,
        groups: || views(stack::GROUPS),
        parse: entry::dump_stack,
    },
    KindSpec {
        name: "Symbols",
        summary: "what became of the search for the symbols of each module, and why",
        details: "Looks for the names of all frames of the trace, and lists the modules that they \
                  lie in: how many distinct frames, how many with a name, the PDB that the trace \
                  asks for, and where it was found or why not. What misses most comes first. \
                  Nothing is downloaded unless a server is named; see .sympath.",
        examples: &[
            Example { goal: "what is missing?", line: ".dump Symbols" },
            Example { goal: "one module", line: ".dump Symbols -Dll leaky.exe" },
        ],
        groups: || views(SYMBOLS),
        parse: entry::dump_symbols,
    },
    KindSpec {
        name: "Stats",
        summary: "what is in the traces: machine, clock, events by kind, losses",
        details: "Shows also what could not be decoded or attributed; nothing is dropped silently.",
        examples: &[Example { goal: "is the trace complete?", line: ".dump Stats" }],
        groups: || views(STATS),
        parse: entry::dump_stats,
    },
];

/// Options of `.dump Process`.
pub(crate) static PROCESS: &[OptionGroup<ProcessArgs>] = &[
    OptionGroup {
        title: "Which processes",
        options: &[Opt {
            doc: Doc {
                names: &["-pn", "-ProcessName"],
                help: "processes of this name or pid",
                details: "The name may go without .exe; a number is a pid; ! in front excludes.",
                example: "-pn leaky;!4",
            },
            take: Take::Processes(|args| &mut args.process),
        }],
    },
    OptionGroup { title: SCRIPTS, options: COMMON_PROCESS },
];

/// Options of `.dump Module`.
pub(crate) static MODULE: &[OptionGroup<ModuleArgs>] = &[
    OptionGroup {
        title: "Which modules",
        options: &[
            Opt {
                doc: Doc {
                    names: &["-pn", "-ProcessName"],
                    help: "modules that these processes loaded",
                    details: "The name may go without .exe; a number is a pid; ! in front excludes. \
                          Kernel modules belong to every process.",
                    example: "-pn leaky",
                },
                take: Take::Processes(|args| &mut args.process),
            },
            Opt { doc: DLL, take: Take::Filter(Texts::Other, |args| &mut args.name) },
        ],
    },
    OptionGroup { title: SCRIPTS, options: COMMON_MODULE },
];

/// Options of `.dump Symbols`.
pub(crate) static SYMBOLS: &[OptionGroup<SymbolsArgs>] = &[
    OptionGroup {
        title: "Which modules",
        options: &[Opt { doc: DLL, take: Take::Filter(Texts::Other, |args| &mut args.name) }],
    },
    OptionGroup { title: SCRIPTS, options: COMMON_SYMBOLS },
];

/// `-Dll`
const DLL: Doc = Doc {
    names: &["-Dll", "-md"],
    help: "modules of this name",
    details: "The file name with its extension, as in ntdll.dll.",
    example: "-Dll leaky.exe;kernel*",
};

/// Options of `.dump Stats`.
pub(crate) static STATS: &[OptionGroup<StatsArgs>] =
    &[OptionGroup { title: SCRIPTS, options: COMMON_STATS }];

/// The heading of options for scripts.
pub(super) const SCRIPTS: &str = "Files and documents";

static COMMON_PROCESS: &[Opt<ProcessArgs>] = &common_options();
static COMMON_MODULE: &[Opt<ModuleArgs>] = &common_options();
static COMMON_SYMBOLS: &[Opt<SymbolsArgs>] = &common_options();
static COMMON_STATS: &[Opt<StatsArgs>] = &common_options();

/// What the arguments of every kind have.
pub(super) trait CommonArgs {
    /// `-json`
    fn json(&mut self) -> &mut JsonMode;
    /// `-fd`
    fn files(&mut self) -> &mut Vec<Filter>;
}

macro_rules! common_args {
    ($($args:ty),*) => {$(
        impl CommonArgs for $args {
            fn json(&mut self) -> &mut JsonMode {
                &mut self.json
            }

            fn files(&mut self) -> &mut Vec<Filter> {
                &mut self.files
            }
        }
    )*};
}

common_args!(ObjectRefArgs, ProcessArgs, ModuleArgs, StackArgs, SymbolsArgs, StatsArgs, SqlArgs);

/// The options that every kind has.
pub(super) const fn common_options<A: CommonArgs>() -> [Opt<A>; 3] {
    [files_option(), json_option(), json_pretty_option()]
}

/// `-fd`
pub(super) const fn files_option<A: CommonArgs>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-fd", "-filedir"],
            help: "only loaded files with such a path",
            details: "Compared with the whole path and with the file name. Given twice, both must \
                      fit. Outside of the console, it names the files to load.",
            example: "-fd *leaky*",
        },
        take: Take::Filters(Texts::LoadedFiles, |args| args.files()),
    }
}

/// `-json`
pub(super) const fn json_option<A: CommonArgs>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json"],
            help: "print one JSON document, one line per element",
            details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
            example: "-json",
        },
        take: Take::Set(|args| *args.json() = JsonMode::Lines),
    }
}

/// `-json-pretty`
pub(super) const fn json_pretty_option<A: CommonArgs>() -> Opt<A> {
    Opt {
        doc: Doc {
            names: &["-json-pretty"],
            help: "print the same JSON document indented",
            details: "For reading; the content is that of -json.",
            example: "-json-pretty",
        },
        take: Take::Set(|args| *args.json() = JsonMode::Pretty),
    }
}
