//! What `.dump` can dump, and the options that several kinds share.

use super::{Doc, Example, KindSpec, Opt, OptionGroup, Take, object_ref, views};
use crate::command::{JsonMode, ModuleArgs, ObjectRefArgs, ProcessArgs, StatsArgs, entry};

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
            Example { goal: "All processes", line: ".dump Process" },
            Example { goal: "One program", line: ".dump Process -pn leaky" },
        ],
        groups: || views(PROCESS),
        parse: entry::dump_process,
    },
    KindSpec {
        name: "Module",
        summary: "modules with their versions, symbol identities and load addresses",
        details: "One row per image; the JSON output also lists where and when each was loaded.",
        examples: &[
            Example { goal: "All modules", line: ".dump Module" },
            Example { goal: "What one program loaded", line: ".dump Module -pn leaky" },
        ],
        groups: || views(MODULE),
        parse: entry::dump_module,
    },
    KindSpec {
        name: "Stats",
        summary: "what is in the traces: machine, clock, events by kind, losses",
        details: "Shows also what could not be decoded or attributed; nothing is dropped silently.",
        examples: &[Example { goal: "Is the trace complete?", line: ".dump Stats" }],
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
    OptionGroup { title: SCRIPTS, options: JSON_PROCESS },
];

/// Options of `.dump Module`.
pub(crate) static MODULE: &[OptionGroup<ModuleArgs>] = &[
    OptionGroup {
        title: "Which modules",
        options: &[Opt {
            doc: Doc {
                names: &["-pn", "-ProcessName"],
                help: "modules that these processes loaded",
                details: "The name may go without .exe; a number is a pid; ! in front excludes. \
                          Kernel modules belong to every process.",
                example: "-pn leaky",
            },
            take: Take::Processes(|args| &mut args.process),
        }],
    },
    OptionGroup { title: SCRIPTS, options: JSON_MODULE },
];

/// Options of `.dump Stats`.
pub(crate) static STATS: &[OptionGroup<StatsArgs>] =
    &[OptionGroup { title: SCRIPTS, options: JSON_STATS }];

/// The heading of options for scripts.
pub(super) const SCRIPTS: &str = "For scripts";

static JSON_PROCESS: &[Opt<ProcessArgs>] = &json_options();
static JSON_MODULE: &[Opt<ModuleArgs>] = &json_options();
static JSON_STATS: &[Opt<StatsArgs>] = &json_options();

/// Arguments that have a [`JsonMode`].
pub(super) trait HasJson {
    /// The field.
    fn json(&mut self) -> &mut JsonMode;
}

impl HasJson for ObjectRefArgs {
    fn json(&mut self) -> &mut JsonMode {
        &mut self.json
    }
}

impl HasJson for ProcessArgs {
    fn json(&mut self) -> &mut JsonMode {
        &mut self.json
    }
}

impl HasJson for ModuleArgs {
    fn json(&mut self) -> &mut JsonMode {
        &mut self.json
    }
}

impl HasJson for StatsArgs {
    fn json(&mut self) -> &mut JsonMode {
        &mut self.json
    }
}

/// The options that every kind has.
pub(super) const fn json_options<A: HasJson>() -> [Opt<A>; 2] {
    [
        Opt {
            doc: Doc {
                names: &["-json"],
                help: "print one JSON document, one line per element",
                details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
                example: "-json",
            },
            take: Take::Set(|args| *args.json() = JsonMode::Lines),
        },
        Opt {
            doc: Doc {
                names: &["-json-pretty"],
                help: "print the same JSON document indented",
                details: "For reading; the content is that of -json.",
                example: "-json-pretty",
            },
            take: Take::Set(|args| *args.json() = JsonMode::Pretty),
        },
    ]
}
