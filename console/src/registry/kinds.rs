//! What `.dump` can dump, and the options that several kinds share.

use super::output::{row_options, table_options};
use super::{Doc, Example, KindSpec, Opt, OptionGroup, Take, Texts, object_ref, stack, views};
use crate::command::{
    ModuleArgs, ObjectRefArgs, ProcessArgs, SqlArgs, StackArgs, StatsArgs, SymbolsArgs, entry,
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
    OptionGroup { title: ROWS, options: &row_options("-SortBy start_ns") },
    OptionGroup { title: SCRIPTS, options: &table_options() },
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
    OptionGroup { title: ROWS, options: &row_options("-SortBy path") },
    OptionGroup { title: SCRIPTS, options: &table_options() },
];

/// Options of `.dump Symbols`.
pub(crate) static SYMBOLS: &[OptionGroup<SymbolsArgs>] = &[
    OptionGroup {
        title: "Which modules",
        options: &[Opt { doc: DLL, take: Take::Filter(Texts::Other, |args| &mut args.name) }],
    },
    OptionGroup { title: ROWS, options: &row_options("-SortBy frames") },
    OptionGroup { title: SCRIPTS, options: &table_options() },
];

/// `-Dll`
const DLL: Doc = Doc {
    names: &["-Dll", "-md"],
    help: "modules of this name",
    details: "The file name with its extension, as in ntdll.dll.",
    example: "-Dll leaky.exe;kernel*",
};

/// Options of `.dump Stats`.
pub(crate) static STATS: &[OptionGroup<StatsArgs>] = &[
    OptionGroup { title: ROWS, options: &row_options("-SortBy count") },
    OptionGroup { title: SCRIPTS, options: &table_options() },
];

/// The heading of options for scripts.
pub(super) const SCRIPTS: &str = "Files and documents";

/// What the arguments of every kind have.
pub(super) trait CommonArgs {
    /// `-fd`
    fn files(&mut self) -> &mut Vec<Filter>;
}

macro_rules! common_args {
    ($($args:ty),*) => {$(
        impl CommonArgs for $args {
            fn files(&mut self) -> &mut Vec<Filter> {
                &mut self.files
            }
        }
    )*};
}

common_args!(ObjectRefArgs, ProcessArgs, ModuleArgs, StackArgs, SymbolsArgs, StatsArgs, SqlArgs);

/// The heading of options about rows.
pub(super) const ROWS: &str = "Which rows, in which order";

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
