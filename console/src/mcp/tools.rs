use std::path::Path;
use std::sync::Arc;

use rmcp::model::{Tool as Described, ToolAnnotations};
use serde_json::{Map, Value, json, to_value};

use super::answer::Answer;
use super::error::ToolError;
use super::input::{Input, Inputs, Shape, option, own, schema};
use super::resources::meaning;
use crate::grammar::OptionSpec;
use crate::query::{GroupCriteria, ResourceCriteria};
use crate::registry::REGISTRY;
use crate::render::{
    Columns, RowOf, group_columns, object_columns, resource_columns, stack_columns, trace_facts,
    why_columns,
};
use crate::sql::{Relation, RelationColumn};

pub(super) struct Tool {
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) work: Work,
    /// The member of the document that is answered page by page.
    pub(super) rows: &'static str,
    /// The members of a row that are always there.
    row: fn() -> Members,
    inputs: &'static [Input],
}

/// Names of members and their types of JSON schema, with `?` for those that may be null.
type Members = Vec<(&'static str, &'static str)>;

/// The work of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Load,
    /// Prints a kind of `.dump`; only the rows of the page are `windowed` by `-TopN`, if that counts rows.
    Dump {
        kind: &'static str,
        windowed: bool,
    },
    Sql,
    Schema,
}

/// Maximum number of rows in one answer.
const MAX_ROWS: u64 = 1000;

/// Number of rows in one answer by default.
pub(super) const USUAL_ROWS: usize = 50;

pub(super) const TOP: &str = "top";
pub(super) const CURSOR: &str = "cursor";

/// Arguments of every tool that answers page by page.
static PAGE: [Input; 2] = [
    own(
        TOP,
        || Shape::Number(MAX_ROWS),
        "Maximum number of rows, 50 by default; fewer if they are large.",
    ),
    own(
        CURSOR,
        || Shape::Text,
        "The `next` of the previous answer, with the same arguments, for more rows.",
    ),
];

const FILES: Input = Input {
    about: "Only loaded traces whose path matches this filter, like *leaky*; all by default.",
    ..option("files", "-fd")
};

/// Every tool, in the order of its use.
pub(super) static TOOLS: &[Tool] = &[
    Tool {
        name: "load",
        about: "Loads traces (.etl, also in .zip or .7z), extracts (.json7z) or logs with the output of !htrace; \
                the other tools query what is loaded. A trace is extracted first, which takes a minute for some \
                gigabytes. Warnings name what limits the answers.",
        work: Work::Load,
        rows: "files",
        row: || file_columns().members(),
        inputs: &[
            own(
                "paths",
                || Shape::Texts,
                "Files, or folders of such files, below the server's roots; a relative path starts at a \
                 root.",
            )
            .required(),
            own("append", || Shape::Flag, "Keep loaded traces instead of replacing them."),
            own("recursive", || Shape::Flag, "Include subfolders."),
            own(
                "symbols",
                || Shape::Texts,
                "Folders with PDB files below the server's roots, for names of functions.",
            ),
        ],
    },
    Tool {
        name: "why",
        about: "Lists what leaks, worst first, how fast and why: groups of one program, type and \
             create stack with how they grow, the function that opens them, and the causes that \
             the events prove. Begin here. Its id, as suspect of objects, groups or allocations, \
             shows what a group lost.",
        work: Work::Dump { kind: "Why", windowed: true },
        rows: "suspects",
        row: || why_columns().members(),
        inputs: &[option("process", "-pn"), option("type", "-Type"), option("race_window", "-RaceWindow"), option("by_process", "-ByProcess"), FILES],
    },
    Tool {
        name: "groups",
        about: "Counts handles in groups of one or several columns, those that leak most first: \
             created, closed, leaked, open at the end.",
        work: Work::Dump { kind: "ObjectRef", windowed: false },
        rows: "groups",
        row: || group_columns(&GroupCriteria::default(), true).members(),
        inputs: &[
            option("by", "-GroupBy").required(),
            option("process", "-RelatedProcess"),
            option("type", "-Type"),
            option("name", "-ObjectName"),
            option("stack_filter", "-StackFilter"),
            option("create_stack", "-CreateStack"),
            option("suspect", "-Suspect"),
            option("leak", "-Leak"),
            option("leak_at_exit", "-LeakAtExit"),
            option("time", "-MinMaxTime"),
            option("min_count", "-MinCount"),
            option("fold_stack", "-FoldStack"),
            option("stack_from", "-StackFrom"),
            option("show_time", "-ShowTime"),
            FILES,
        ],
    },
    Tool {
        name: "objects",
        about: "Lists kernel objects with all events of their handles, references and mappings, and the stacks of \
                the events.",
        work: Work::Dump { kind: "ObjectRef", windowed: true },
        rows: "objects",
        row: || object_columns().members(),
        inputs: &[
            option("process", "-RelatedProcess"),
            option("creator", "-pn"),
            option("type", "-Type"),
            option("name", "-ObjectName"),
            option("pointer", "-Object"),
            option("handle", "-Handle"),
            option("ids", "-MinMaxId"),
            option("stack_filter", "-StackFilter"),
            option("create_stack", "-CreateStack"),
            option("suspect", "-Suspect"),
            option("leak", "-Leak"),
            option("leak_at_exit", "-LeakAtExit"),
            option("time", "-MinMaxTime"),
            option("stacks", "-ShowStack"),
            option("sort_by", "-SortBy"),
            FILES,
        ],
    },
    Tool {
        name: "allocations",
        about: "Counts allocations in groups of one or several columns, those that leak most \
             bytes first: heap blocks, virtual memory, GDI and USER handles, and other resources \
             that events acquire and release. With leak, only leaked ones. With stacks, the \
             frames of the stacks.",
        work: Work::Dump { kind: "Resource", windowed: false },
        rows: "groups",
        row: allocation_members,
        inputs: &[
            option("by", "-GroupBy").required(),
            option("kind", "-Kind"),
            option("process", "-pn"),
            option("allocator", "-Allocator"),
            option("size", "-MinMaxSize"),
            option("time", "-MinMaxTime"),
            option("create_stack", "-CreateStack"),
            option("free_stack", "-FreeStack"),
            option("suspect", "-Suspect"),
            option("leak", "-Leak"),
            option("leak_at_exit", "-LeakAtExit"),
            option("stacks", "-ShowStack"),
            option("show_time", "-ShowTime"),
            option("sort_by", "-SortBy"),
            FILES,
        ],
    },
    Tool {
        name: "stack",
        about: "Shows the frames of one stack by its number in objects, groups or why; without a number, lists \
                stacks by how often they were recorded. With several traces loaded choose one with files, here and \
                there, because numbers count through all traces that are queried.",
        work: Work::Dump { kind: "Stack", windowed: false },
        rows: "stacks",
        row: || stack_columns(false).members(),
        inputs: &[
            Input {
                shape: Some(|| Shape::Index),
                about: "The number of a stack.",
                ..option("id", "-Id")
            },
            option("process", "-pn"),
            option("stack_filter", "-StackFilter"),
            FILES,
        ],
    },
    Tool {
        name: "sql",
        about: "Answers a query in SQL over the tables of the loaded traces; schema lists tables and columns. \
                leaks and handles have a row for each handle, resource_leaks and allocations one for each allocation, \
                provider_values one for each value of a kept event, \
                with names instead of row numbers.",
        work: Work::Sql,
        rows: "rows",
        row: Vec::new,
        inputs: &[
            own(
                "query",
                || Shape::Text,
                "SELECT …, in the SQL of polars: joins, groups, WITH, window functions. Names of \
                 columns are in lower case.",
            )
            .required(),
            FILES,
        ],
    },
    Tool {
        name: "schema",
        about: "Describes the tables and views of sql: columns, types, units and meanings. Needs no trace.",
        work: Work::Schema,
        rows: "tables",
        row: || relation_columns().members(),
        inputs: &[own(
            "tables",
            || Shape::Words(Relation::all().map(Relation::name).collect()),
            "Only these; all by default.",
        )],
    },
    Tool {
        name: "stats",
        about: "Describes each loaded trace: machine, clock, events by kind, losses and damage.",
        work: Work::Dump { kind: "Stats", windowed: false },
        rows: "files",
        row: || trace_facts().members(),
        inputs: &[FILES],
    },
];

impl Tool {
    pub(super) fn named(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// When its schema does not allow it.
    pub(super) fn read<'a>(
        &self,
        arguments: &'a Map<String, Value>,
    ) -> Result<Inputs<'a>, ToolError> {
        Inputs::read(&self.inputs(), |input| self.option_of(input), arguments)
    }

    /// Describes the tool for the protocol.
    pub(super) fn described(&self, read_only: bool) -> Described {
        let input = schema(&self.inputs(), |input| self.option_of(input));
        // A load may keep extracts; everything else only reads.
        let is_writing = !read_only && matches!(self.work, Work::Load);
        let annotations =
            ToolAnnotations::new().read_only(!is_writing).destructive(false).open_world(false);
        Described::new(self.name, self.about, Arc::new(input))
            .with_raw_output_schema(Arc::new(self.output()))
            .with_annotations(annotations)
    }

    /// The answer of rows that are no document of a command.
    pub(super) fn answer<'a, R: 'a>(
        &self,
        columns: Columns<'a, R>,
        rows: impl Iterator<Item = R>,
        skip: usize,
    ) -> serde_json::Result<Answer> {
        let members = columns.in_document();
        let rows = rows.map(|row| to_value(RowOf(&members, &row)));
        let rows = rows.collect::<serde_json::Result<Vec<Value>>>()?;
        Ok(Answer::of(Map::from_iter([(self.rows.to_owned(), rows.into())]), self.rows, skip))
    }

    /// Whether it answers page by page. Loading again would be another answer.
    pub(super) fn is_paged(&self) -> bool {
        !matches!(self.work, Work::Load)
    }

    fn inputs(&self) -> Vec<&'static Input> {
        let page: &[Input] = if self.is_paged() { &PAGE } else { &[] };
        self.inputs.iter().chain(page).collect()
    }

    fn option_of(&self, input: &Input) -> Option<&'static dyn OptionSpec> {
        let Work::Dump { kind, .. } = self.work else { return None };
        REGISTRY.kind(kind)?.option(input.option?)
    }

    /// The schema of a row with its members, and perhaps others.
    fn row_schema(&self) -> Value {
        let members = (self.row)();
        let schema = |(name, kind): &(&'static str, &'static str)| {
            let mut schema = match kind.strip_suffix('?') {
                Some(kind) => json!({"type": [kind, "null"]}),
                None => json!({"type": kind}),
            };
            if let Some(meaning) = self.meaning(name) {
                schema["description"] = meaning.into();
            }
            ((*name).to_owned(), schema)
        };
        let properties: Map<String, Value> = members.iter().map(schema).collect();
        let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// Returns the meaning of a member of a row.
    fn meaning(&self, member: &str) -> Option<&'static str> {
        let Work::Dump { kind, .. } = self.work else { return None };
        let grouped = if self.rows == "groups" { " -GroupBy" } else { "" };
        meaning(&format!(".dump {kind}{grouped}"), self.rows, member)
    }

    /// The schema of its answers.
    fn output(&self) -> Map<String, Value> {
        let rows = json!({
            "type": "array",
            "items": self.row_schema(),
            "description": "The rows of this page.",
        });
        let document = json!({
            "type": "object",
            "properties": {(self.rows): rows},
            "required": [self.rows],
            "description": "The JSON document of the command, as docs/dump-json.md describes it.",
        });
        let about = |schema: Value, text: &str| {
            let mut schema = schema;
            schema["description"] = text.into();
            schema
        };
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let output = json!({
            "type": "object",
            "properties": {
                "document": document,
                "total": about(json!({"type": "integer", "minimum": 0}), "Number of rows in all."),
                "next": about(
                    json!({"type": ["string", "null"]}),
                    "The cursor of the next page; null on the last one.",
                ),
                "truncated": about(
                    json!({"type": "boolean"}),
                    "Whether there are more rows than this answer holds.",
                ),
                "warnings": about(texts, "What limits the answer, and notes."),
            },
            "required": ["document", "total", "next", "truncated", "warnings"],
            "additionalProperties": false,
        });
        match output {
            Value::Object(output) => output,
            _ => Map::new(),
        }
    }
}

/// Columns about a loaded file, with its number.
pub(super) fn file_columns<'a>() -> Columns<'a, (u32, &'a Path)> {
    let mut columns = Columns::default();
    columns.add("file", |(file, _)| *file);
    columns.add("path", |(_, path): &(_, &Path)| path.to_string_lossy().into_owned());
    columns
}

/// Columns about a table or view.
pub(super) fn relation_columns<'a>() -> Columns<'a, Relation<'a>> {
    let mut columns = Columns::<Relation<'a>>::default();
    columns.add("name", |relation| relation.name());
    columns.add("is_view", |relation| matches!(relation, Relation::View(_)));
    columns.add("meaning", |relation| relation.doc());
    let described = |column: RelationColumn| {
        json!({
            "name": column.name,
            "type": column.type_text(),
            "unit": column.unit,
            "meaning": column.doc,
        })
    };
    columns.nest("columns", "array", move |relation| {
        relation.columns().into_iter().map(described).collect::<Vec<_>>()
    });
    columns
}

/// The members of groups of allocations, whatever they have in common.
fn allocation_members() -> Members {
    let criteria = ResourceCriteria { by: Some(Vec::new()), ..ResourceCriteria::default() };
    resource_columns(&criteria, false).members()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_made_for_the_rows_of_a_page_only() {
        let with_commands =
            TOOLS.iter().filter(|tool| (tool.row)().iter().any(|(name, _)| *name == "command"));
        let kinds: Vec<_> = with_commands
            .map(|tool| match tool.work {
                Work::Dump { kind, windowed } => (kind, windowed),
                work => panic!("{work:?} makes commands"),
            })
            .collect();
        assert_eq!(kinds, [("Why", true)]);
    }

    #[test]
    fn every_member_of_a_row_of_dump_has_its_meaning() {
        let is_dump = |tool: &&Tool| matches!(tool.work, Work::Dump { .. });
        for tool in TOOLS.iter().filter(is_dump) {
            for (member, _) in (tool.row)() {
                assert!(tool.meaning(member).is_some(), "{}: {member}", tool.name);
            }
        }
    }
}
