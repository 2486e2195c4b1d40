//! The tools: the work of each, its arguments, and how its rows are briefed.

use std::sync::Arc;

use rmcp::model::{Tool as Described, ToolAnnotations};
use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value, to_value};

use super::answer::{AnswerPage, MAX_BYTES};
use super::error::ToolError;
use super::input::{InputShape, Inputs, ToolInput, argument, option, schema};
use super::output;
use super::rows::{file_columns, relation_columns};
use super::window::{MemberNames, PagePosition, PageWindow};
use handlescope_commands::AnyCommand;
use handlescope_commands::registry::registry;
use handlescope_render::{
    Columns, Depth, MemberMeaning, RowOf, diff_document_members, diff_group_members,
    fleet_diff_columns, fleet_diff_document, fleet_group_columns, fleet_group_document,
    fleet_why_columns, fleet_why_document, group_document, group_members, object_columns,
    object_ref_document, query_document, resource_group_document, resource_group_members,
    stack_columns, stack_document, stats_document, symbol_columns, symbol_document, trace_facts,
    why_columns, why_document,
};
use handlescope_session::grammar::OptionSpec;

pub struct Tool {
    pub name: &'static str,
    about: &'static str,
    pub work: ToolWork,
    /// The member of the document that is answered page by page, and the list of its rows that may continue.
    pub names: MemberNames,
    /// Its rows over traces.
    rows: RowSpec,
    /// Its rows over a dataset; `None` where it answers over traces only.
    over_dataset: Option<RowSpec>,
    /// Size of an answer by default, bytes.
    pub bytes: usize,
    inputs: &'static [ToolInput],
}

/// The rows of an answer, and the document around them.
#[derive(Clone, Copy)]
pub struct RowSpec {
    pub brief: Brief,
    /// Members of the document, if it is one of a command.
    pub document: fn() -> Vec<MemberMeaning>,
    /// Members of the rows; those of `sql` are the columns of its query.
    pub members: fn() -> Vec<MemberMeaning>,
}

/// The work of a tool.
#[derive(Debug, Clone, Copy)]
pub enum ToolWork {
    Load,
    Dump { kind: &'static str, paging: Paging },
    Sql,
    Schema,
}

/// Which rows of a kind of `.dump` are printed for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// All of them; the document is kept for the next page.
    Document,
    /// Only those of the page, with an option that counts rows, and the member that counts what it leaves out.
    Window { option: &'static str, left_out: &'static str },
}

/// Rows of an answer, and what is left of them unless the details are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brief {
    /// All members that have a value.
    Rows,
    /// Members of a query, of which zeros say something.
    Values,
    Suspects,
    /// Groups that differ, counted by their states.
    Compared,
    Tables,
}

/// Maximum number of rows in one answer.
const MAX_ROWS: u64 = 1000;

/// Number of rows in one answer by default.
pub const USUAL_ROWS: usize = 50;

/// Smallest size of an answer that may be requested, bytes.
const MIN_BYTES: u64 = 1 << 10;

/// Sizes of answers by default, bytes: of suspects, which are read first; of rows with stacks or events; of others.
const BRIEF: usize = 4 << 10;
const PAGE: usize = 8 << 10;
const USUAL: usize = 16 << 10;

pub const TOP: &str = "top";
pub const CURSOR: &str = "cursor";
pub const SIZE: &str = "max_bytes";
pub const DETAIL: &str = "detail";
pub const ALL: &str = "all";
pub const FILES: &str = "files";

/// Pages of the innermost groups.
const INNERMOST: Paging = Paging::Window { option: "-Rows", left_out: "rows" };

/// Arguments of every tool that answers page by page.
static PAGED: [ToolInput; 3] = [
    argument(TOP, || InputShape::Number { least: 1, most: MAX_ROWS }, "maximum rows"),
    argument(
        SIZE,
        || InputShape::Number { least: MIN_BYTES, most: MAX_BYTES as u64 },
        "maximum bytes of the answer",
    ),
    argument(CURSOR, || InputShape::Text, "from `next`"),
];

const OF_FILES: ToolInput = option(FILES, "-fd", "only traces whose path matches");
const LEAK: ToolInput = option("leak", "-Leak", "only what is never closed");
const LEAK_AT_EXIT: ToolInput =
    option("leak_at_exit", "-LeakAtExit", "only what process exit closes");
const SUSPECT: ToolInput = option("suspect", "-Suspect", "id from why");
const STACK_FILTER: ToolInput = option(
    "stack_filter",
    "-StackFilter",
    "only events with a matching line module!function in the stack",
);
const CREATE_STACK: ToolInput =
    option("create_stack", "-CreateStack", "opened on a stack with a matching line");
const TIME: ToolInput = option("time", "-MinMaxTime", "since session start: \"1.5s\", \"20ms\"");
const TYPE: ToolInput = option("type", "-Type", "filter: Event, Thread, File, Section…");
const NAME: ToolInput = option("name", "-ObjectName", "filter on object names");
const FOLD_STACK: ToolInput = option("fold_stack", "-FoldStack", "leave out frames that match");
const STACK_FROM: ToolInput = option("stack_from", "-StackFrom", "begin stacks at the first match");
const RELATED: ToolInput =
    option("process", "-RelatedProcess", "processes that use it: name or pid").over_dataset("-pn");
const OWNER: ToolInput = option("process", "-pn", "owner: name or pid; ! excludes");
const SHOW_TIME: ToolInput =
    option("show_time", "-ShowTime", "counts in this many parts of the trace")
        .with_shape(|| InputShape::Number { least: 1, most: 1000 });
const STACKS: ToolInput = option("stacks", "-ShowStack", "with stacks");
const SORT_BY: ToolInput = option("sort_by", "-SortBy", "a member of the rows");
const MACHINE: ToolInput = option("machine", "-machine", "for a dataset: only these machines");
const BUILD: ToolInput = option("build", "-build", "for a dataset: only these builds");
const DAY: ToolInput = option("day", "-day", "for a dataset: days FROM..TO, UTC");
const DETAILS: ToolInput = argument(DETAIL, || InputShape::Flag, "with stacks");

/// Every tool, in the order of its use.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "load",
        about: "Loads traces (.etl, also zipped), extracts (.json7z), !htrace logs, handle.exe \
                lists or minidumps; or a dataset, a folder about many traces, for why, diff, \
                groups, sql and schema. Extraction takes about a minute per gigabyte. Tells whether \
                frames have names, and what limits answers.",
        work: ToolWork::Load,
        names: MemberNames { rows: "files", list: None },
        rows: RowSpec {
            brief: Brief::Rows,
            document: Vec::new,
            members: || file_columns().members(),
        },
        over_dataset: None,
        bytes: USUAL,
        inputs: &[
            argument(
                "paths",
                || InputShape::Texts,
                "files or folders below the server's roots, or ids of traces of the loaded dataset",
            )
            .required(),
            argument("append", || InputShape::Flag, "keep loaded traces"),
            argument("recursive", || InputShape::Flag, "include subfolders"),
            argument("symbols", || InputShape::Texts, "folders with PDBs"),
        ],
    },
    Tool {
        name: "why",
        about: "Lists what leaks, worst first: how much, how fast, in which process and function, \
                why, and the program's calls. Start here.",
        work: ToolWork::Dump { kind: "Why", paging: Paging::Document },
        names: MemberNames { rows: "suspects", list: None },
        rows: RowSpec {
            brief: Brief::Suspects,
            document: || why_document().members(),
            members: || why_columns().members(),
        },
        over_dataset: Some(RowSpec {
            brief: Brief::Rows,
            document: || fleet_why_document().members(),
            members: || fleet_why_columns().members(),
        }),
        bytes: BRIEF,
        inputs: &[
            OWNER,
            option("type", "-Type", "filter: Event, heap…"),
            option("min_leaked", "-MinLeaked", "only suspects that leaked at least this many"),
            option("since", "-Since", "only what was opened from this time on: \"2s\""),
            SUSPECT,
            option("by_process", "-ByProcess", "judge each process separately"),
            option("by_stack", "-ByStack", "judge each create stack separately"),
            option("race_window", "-RaceWindow", "default \"1ms\""),
            argument(ALL, || InputShape::Flag, "include small suspects"),
            argument(
                DETAIL,
                || InputShape::Flag,
                "include whole stacks, stacks that close, object ids",
            ),
            MACHINE,
            BUILD,
            DAY,
            OF_FILES,
        ],
    },
    Tool {
        name: "diff",
        about: "Compares two loaded traces, the earlier with the later: what leaks more, beyond \
                chance. For one trace, or with from or to: what was opened after one point \
                in time and is still open at another. For a dataset: two builds.",
        work: ToolWork::Dump { kind: "Diff", paging: Paging::Document },
        names: MemberNames { rows: "groups", list: None },
        rows: RowSpec {
            brief: Brief::Compared,
            document: diff_document_members,
            members: diff_group_members,
        },
        over_dataset: Some(RowSpec {
            brief: Brief::Compared,
            document: || fleet_diff_document().members(),
            members: || fleet_diff_columns().members(),
        }),
        bytes: PAGE,
        inputs: &[
            option("from", "-From", "\"0.5s\"; default: start"),
            option("to", "-To", "default: end"),
            option("kind", "-Kind", "allocations instead: heap, commit, …"),
            OWNER,
            TYPE,
            SUSPECT,
            option("builds", "-build", "for a dataset: before and after")
                .with_shape(|| InputShape::Pair),
            MACHINE,
            DAY,
            DETAILS,
            OF_FILES,
        ],
    },
    Tool {
        name: "objects",
        about: "Lists kernel objects with the events of their handles: opened, duplicated, closed, \
                by whom and when.",
        work: ToolWork::Dump {
            kind: "ObjectRef",
            paging: Paging::Window { option: "-TopN", left_out: "objects" },
        },
        names: MemberNames { rows: "objects", list: Some("events") },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || object_ref_document().members(),
            members: || object_columns().members(),
        },
        over_dataset: None,
        bytes: PAGE,
        inputs: &[
            option("ids", "-Id", "these objects").with_shape(|| InputShape::Indices),
            SUSPECT,
            RELATED,
            option("creator", "-pn", "process that created it"),
            TYPE,
            NAME,
            option("pointer", "-Object", "kernel address: 0x…"),
            option("handle", "-Handle", "value: 0xC0;0xC4"),
            STACK_FILTER,
            CREATE_STACK,
            LEAK,
            LEAK_AT_EXIT,
            TIME,
            STACKS,
            SORT_BY,
            OF_FILES,
        ],
    },
    Tool {
        name: "groups",
        about: "Counts handles by columns, most leaked first.",
        work: ToolWork::Dump { kind: "ObjectRef", paging: INNERMOST },
        names: MemberNames { rows: "groups", list: None },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || group_document().members(),
            members: group_members,
        },
        over_dataset: Some(RowSpec {
            brief: Brief::Rows,
            document: || fleet_group_document().members(),
            members: || fleet_group_columns(&[], true).members(),
        }),
        bytes: PAGE,
        inputs: &[
            option("by", "-GroupBy", "columns").required(),
            RELATED,
            TYPE,
            NAME,
            STACK_FILTER,
            CREATE_STACK,
            SUSPECT,
            LEAK,
            LEAK_AT_EXIT,
            TIME,
            option("min_count", "-MinCount", "minimum handles of a group"),
            FOLD_STACK,
            STACK_FROM,
            SHOW_TIME,
            option(
                "min_leaked",
                "-MinLeaked",
                "for a dataset: only groups that leaked at least this many",
            ),
            MACHINE,
            BUILD,
            DAY,
            OF_FILES,
        ],
    },
    Tool {
        name: "allocations",
        about: "Counts heap blocks, virtual memory, GDI and USER handles and other resources by columns, most leaked \
                bytes first.",
        work: ToolWork::Dump {
            kind: "Resource",
            paging: Paging::Window { option: "-TopN", left_out: "groups" },
        },
        names: MemberNames { rows: "groups", list: None },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || resource_group_document().members(),
            members: resource_group_members,
        },
        over_dataset: None,
        bytes: PAGE,
        inputs: &[
            option("by", "-GroupBy", "columns").required(),
            option("kind", "-Kind", "heap, commit, reserve, gdi, user, …"),
            OWNER,
            option("allocator", "-Allocator", "heap address or name"),
            option("size", "-MinMaxSize", "bytes of each"),
            TIME,
            option("create_stack", "-CreateStack", "allocated on a stack with a matching line"),
            option("free_stack", "-FreeStack", "freed on a stack with a matching line"),
            SUSPECT,
            LEAK,
            LEAK_AT_EXIT,
            STACKS,
            SHOW_TIME,
            SORT_BY,
            OF_FILES,
        ],
    },
    Tool {
        name: "stack",
        about: "Lists the frames of one stack, by its number in other answers (with the same \
                `files`), or all stacks, most frequent first.",
        work: ToolWork::Dump {
            kind: "Stack",
            paging: Paging::Window { option: "-TopN", left_out: "stacks" },
        },
        names: MemberNames { rows: "stacks", list: Some("frames") },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || stack_document().members(),
            members: || stack_columns(false).members(),
        },
        over_dataset: None,
        bytes: PAGE,
        inputs: &[
            option("id", "-Id", "number").with_shape(|| InputShape::Index),
            OWNER,
            option("stack_filter", "-StackFilter", "with a matching line"),
            OF_FILES,
        ],
    },
    Tool {
        name: "symbols",
        about: "Lists modules: whether their frames have names, from where, or why not.",
        work: ToolWork::Dump { kind: "Symbols", paging: Paging::Document },
        names: MemberNames { rows: "symbols", list: None },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || symbol_document().members(),
            members: || symbol_columns().members(),
        },
        over_dataset: None,
        bytes: PAGE,
        inputs: &[argument(DETAIL, || InputShape::Flag, "include paths and PDB ids"), OF_FILES],
    },
    Tool {
        name: "sql",
        about: "Answers SQL (SELECT of polars) over the loaded traces. Views: acquisitions (one row \
                per handle, mapped view and allocation), and its parts leaks, handles, allocations \
                and open_handles; schema lists the tables.",
        work: ToolWork::Sql,
        names: MemberNames { rows: "rows", list: None },
        rows: RowSpec {
            brief: Brief::Values,
            document: || query_document().members(),
            members: Vec::new,
        },
        over_dataset: Some(RowSpec {
            brief: Brief::Values,
            document: || query_document().members(),
            members: Vec::new,
        }),
        bytes: USUAL,
        inputs: &[
            argument("query", || InputShape::Text, "SELECT … FROM leaks").required(),
            OF_FILES,
        ],
    },
    Tool {
        name: "schema",
        about: "Lists tables and views of sql; with `tables`, their columns.",
        work: ToolWork::Schema,
        names: MemberNames { rows: "tables", list: Some("columns") },
        rows: RowSpec {
            brief: Brief::Tables,
            document: Vec::new,
            members: || relation_columns().members(),
        },
        over_dataset: Some(RowSpec {
            brief: Brief::Tables,
            document: Vec::new,
            members: || relation_columns().members(),
        }),
        bytes: PAGE,
        inputs: &[argument("tables", || InputShape::Texts, "names")],
    },
    Tool {
        name: "stats",
        about: "Lists facts about each trace: machine, clock, losses.",
        work: ToolWork::Dump { kind: "Stats", paging: Paging::Document },
        names: MemberNames { rows: "files", list: Some("events") },
        rows: RowSpec {
            brief: Brief::Rows,
            document: || stats_document().members(),
            members: || trace_facts().members(),
        },
        over_dataset: None,
        bytes: PAGE,
        inputs: &[argument(DETAIL, || InputShape::Flag, "include counts of events"), OF_FILES],
    },
];

impl RowSpec {
    /// Names of the members of rows that an answer leaves out.
    pub fn left_out(&self, has_detail: bool) -> Vec<String> {
        let depth = if has_detail { Depth::Detail } else { Depth::Brief };
        (self.members)()
            .into_iter()
            .filter(|member| member.depth > depth)
            .map(|member| member.name)
            .collect()
    }

    /// Names of the members of documents that an answer leaves out.
    pub fn left_out_of_document(&self) -> Vec<String> {
        (self.document)()
            .into_iter()
            .filter(|member| member.depth == Depth::Programs)
            .map(|member| member.name)
            .collect()
    }
}

impl Tool {
    pub fn named(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// When its schema does not allow it.
    pub fn read<'a>(&self, arguments: &'a Map<String, Value>) -> Result<Inputs<'a>, ToolError> {
        Inputs::read(&self.inputs(), |input| self.options_of(input), arguments)
    }

    /// Describes the tool for the protocol; the schema of its answers only if these have a structure.
    pub fn described(&self, read_only: bool, has_structure: bool) -> Described {
        let input = schema(&self.inputs(), |input| self.options_of(input));
        // A load may keep extracts; everything else only reads.
        let is_writing = !read_only && matches!(self.work, ToolWork::Load);
        let described = Described::new(self.name, self.about, Arc::new(input))
            .with_annotations(ToolAnnotations::new().read_only(!is_writing));
        if has_structure {
            described.with_raw_output_schema(Arc::new(output::schema(self)))
        } else {
            described
        }
    }

    /// The rows of an answer; `None` where the tool does not answer over a dataset.
    pub fn rows(&self, over_dataset: bool) -> Option<RowSpec> {
        if over_dataset { self.over_dataset } else { Some(self.rows) }
    }

    /// The answer of rows that are no document of a command.
    pub fn answer<'a, R: 'a>(
        &self,
        columns: Columns<'a, R>,
        rows: impl Iterator<Item = R>,
        at: PagePosition,
        count: usize,
    ) -> serde_json::Result<AnswerPage> {
        let members = columns.in_document();
        let rows = rows
            .map(|row| to_value(RowOf(&members, &row)))
            .collect::<serde_json::Result<Vec<Value>>>()?;
        let document = Value::Object(Map::from_iter([(self.names.rows.to_owned(), rows.into())]));
        let part = PageWindow { names: self.names, first: at, count, counts: None };
        let part = part.deserialize(document)?;
        let total = part.total;
        Ok(AnswerPage::new(part, self.names, at, total))
    }

    /// Whether it answers page by page. Loading again would be another answer.
    pub fn is_paged(&self) -> bool {
        !matches!(self.work, ToolWork::Load)
    }

    /// Whether its rows have lines of their own for the text.
    pub fn has_lines(&self) -> bool {
        self.rows.brief == Brief::Suspects
    }

    /// Whether its rows are about the loaded traces.
    pub fn is_about_traces(&self) -> bool {
        !matches!(self.work, ToolWork::Load | ToolWork::Schema)
    }

    /// Names of its arguments, each with the option of the command line that it stands for.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.inputs().into_iter().filter_map(|input| Some((input.option?, input.name)))
    }

    fn inputs(&self) -> Vec<&'static ToolInput> {
        let page: &[ToolInput] = if self.is_paged() { &PAGED } else { &[] };
        self.inputs.iter().chain(page).collect()
    }

    /// The options that an argument stands for, over traces and over a dataset.
    fn options_of(&self, input: &ToolInput) -> Vec<&'static dyn OptionSpec> {
        let option = |over_dataset| self.kind(over_dataset)?.option(input.option(over_dataset)?);
        [false, true].into_iter().filter_map(option).collect()
    }

    /// The kind of `.dump` that answers.
    pub fn kind(&self, over_dataset: bool) -> Option<&'static dyn AnyCommand> {
        let ToolWork::Dump { kind, .. } = self.work else { return None };
        registry(over_dataset).kind(kind)
    }

    /// Refuses arguments that mean nothing for what is loaded.
    ///
    /// # Errors
    /// Names the first, and those that are there.
    pub fn check(&self, inputs: &Inputs<'_>, over_dataset: bool) -> Result<(), ToolError> {
        let is_there = |input: &ToolInput| match self.work {
            _ if input.name == FILES => !over_dataset,
            ToolWork::Dump { .. } if input.option.is_some() => self
                .kind(over_dataset)
                .zip(input.option(over_dataset))
                .is_some_and(|(kind, option)| kind.option(option).is_some()),
            _ => true,
        };
        let Some(refused) = inputs.given().find(|input| !is_there(input)) else { return Ok(()) };
        let known: Vec<&str> = self
            .inputs()
            .into_iter()
            .filter(|input| is_there(input))
            .map(|input| input.name)
            .collect();
        let loaded = if over_dataset { "a dataset" } else { "traces" };
        Err(ToolError::NotOver { name: refused.name, loaded, known: known.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_tools_is_small_and_speaks_of_arguments() {
        let list = |has_structure: bool| {
            let tools = TOOLS.iter().map(|tool| tool.described(true, has_structure));
            serde_json::to_string(&tools.collect::<Vec<_>>()).expect("JSON")
        };
        // Few clients show the schemas of answers to their models.
        let (text, with_output) = (list(false), list(true));
        assert!(text.len() < 12 << 10, "{} bytes", text.len());
        assert!(with_output.len() < 28 << 10, "{} bytes", with_output.len());
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let is_option = word.starts_with('-') && word.len() > 2;
            assert!(!is_option, "{word}");
        }
    }

    #[test]
    fn every_argument_of_an_option_has_it() {
        for tool in TOOLS {
            for input in tool.inputs().into_iter().filter(|input| input.option.is_some()) {
                let is_shared = input.name == FILES && matches!(tool.work, ToolWork::Sql);
                assert!(
                    is_shared || !tool.options_of(input).is_empty(),
                    "{}: {}",
                    tool.name,
                    input.name
                );
            }
        }
    }
}
