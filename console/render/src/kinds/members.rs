//! The members of JSON documents with their types and meanings: `docs/reference/json.md`.

use std::fmt;

use super::{
    diff::{diff_document, point_columns, trace_columns},
    event_counts::{event_columns, event_document, provider_columns},
    events::{object_columns, object_event_columns},
    fleet::{
        fleet_diff_columns, fleet_diff_document, fleet_group_columns, fleet_group_document,
        fleet_why_columns, fleet_why_document,
    },
    frame::query_document,
    groups::{group_document, group_members},
    module::{module_columns, module_document},
    object_ref::{gui_handle_columns, not_closed_columns, object_ref_document},
    process::{process_columns, process_document},
    resource::{
        leak_columns, resource_document, resource_group_document, resource_group_members,
        total_columns,
    },
    stack::{stack_columns, stack_document},
    stats::{property_columns, property_document, stats_document, trace_facts},
    symbols::{symbol_columns, symbol_document},
    why::{why_columns, why_document},
};
use crate::no_match::no_match_columns;
use crate::table::MemberMeaning;
use crate::traces::{caveat_columns, file_columns, frame_columns, totals_columns};
use handlescope_query::Domain;
use handlescope_session::values::TimeFormat;

/// The members of a document, or of the rows of one of its lists.
pub struct MemberTable {
    /// Commands that print the document, separated by commas.
    commands: &'static str,
    /// Names of the lists that contain the rows, separated by commas; empty for the document itself.
    lists: &'static str,
    /// Further notes, in Markdown.
    note: &'static str,
    members: Vec<MemberMeaning>,
}

// Commands over a dataset.
const FLEET_WHY: &str = ".why over a dataset";
const FLEET_GROUPS: &str = ".dump ObjectRef over a dataset";
const FLEET_DIFF: &str = ".diff -build over a dataset";

/// Returns all tables in the order of the page.
pub fn member_tables() -> Vec<MemberTable> {
    let diff = |domain| [point_columns(domain).members(), trace_columns(domain).members()].concat();
    let rows = MemberTable::new;
    let document = |commands, members: Vec<MemberMeaning>| {
        let members = members.into_iter().map(|member| MemberMeaning { kind: "", ..member });
        rows(commands, "", members.collect())
    };
    let stats_members = [stats_document().members(), property_document().members()].concat();
    vec![
        document(".dump ObjectRef", object_ref_document().members()),
        rows(".dump ObjectRef", "files", file_columns().members()),
        rows(".dump ObjectRef", "totals, files.totals", totals_columns().members()).with_note("All \
             are integers.\n\n\
             The creation of an object is its object create event, else its first map or handle \
             create, else its first duplicate. If `-MinMaxTime` or `-StackFilter` removes that \
             event, the first remaining one takes its place. The end of an object is its object \
             delete event, else its last unmap, else its last close if all handles are closed. If \
             that event is removed, the object has no end. `-Leak` and `-Handle` remove events, but \
             never the creation or the end. So with `-Leak` plus `-MinMaxTime` or `-StackFilter`, \
             `objects` also contains objects where only the creation or end passes. These have no \
             leaked event."),
        rows(".dump ObjectRef", "caveats", caveat_columns().members()),
        rows(".dump ObjectRef", "no_match", no_match_columns().members()),
        rows(".dump ObjectRef", "gui_handles", gui_handle_columns().members()).with_note("GDI and USER handles. `.dump Resource -Kind gdi;user` lists their stacks. Options that \
             apply only to kernel objects omit these handles; `-Leak` and `-LeakAtExit` do not."),
        rows(".dump ObjectRef", "not_closed", not_closed_columns().members()).with_note("Counts handles of the objects that passed. `counted` names which handles:\n\n\
             * `\"open_at_end\"`: handles in the rundown at the end of the trace, even if the filters \
                                                                             removed their events;\n\
             * `\"open_by_events_and_start\"`: in a trace without that rundown, handles that events \
             opened, or that the rundown at the start lists, and nothing closed;\n\
             * `\"open_by_events\"`: the same without a rundown at the start; handles older than the \
                                                                             trace are unknown;\n\
             * `\"leaked\"`: with `-Leak`, the handles and views that it prints;\n\
             * `\"closed_at_exit\"`: with `-LeakAtExit`, the handles that it prints;\n\
                                                                             * `\"leaked_or_closed_at_exit\"`: with both."),
        rows(".dump ObjectRef", "objects", object_columns().members()).with_note("Ordered by file, then by creation, with objects without one first, then by id.\n\n\
             All members except `events` describe the object before the filters."),
        rows(".dump ObjectRef", "objects.events", object_event_columns().members()),
        rows(".dump ObjectRef", "stacks", frame_columns().members()).with_note("The names are stack numbers, the values are lists of frames, innermost (kernel) first. \
             Numbers are valid within the document; with several files the numbers of the second file \
                                                                    continue those of the first.\n\n\
             Inlined functions are frames of their own, before the function they are inlined into. \
                                                                    They share its `rva` and `address`.\n\n\
             The console prints `module!function`, else `module+rva`, else `<UnknownMethod>`, and \
             stack filters match that text. The console marks inlined functions with ` [inlined]`, \
                                                                    which filters ignore."),
        document(".dump ObjectRef -GroupBy", group_document().members()).with_note("The groups of the innermost column, in tree order. Their numbers add up to `totals`, \
             except `objects`: an object with handles in several groups counts in each."),
        rows(".dump ObjectRef -GroupBy", "groups", group_members()),
        document(".dump Why", why_document().members()).with_note("`.why` writes the same document."),
        rows(".dump Why", "suspects", why_columns().members()),
        document(".dump Process", process_document().members()),
        rows(".dump Process", "processes", process_columns(TimeFormat::default()).members()),
        document(".dump Module, .dump Version", module_document().members()),
        rows(".dump Module, .dump Version", "modules", module_columns().members()).with_note("With `-pn` only the loads of matching processes are listed, and modules without such a \
             load are omitted. Kernel modules count as loaded by `System(4)`."),
        document(".dump Stack", stack_document().members()).with_note("The frame counts cover every recorded occurrence of every stack that passed the filters, \
                                                           over all traces, even if `-TopN` lists fewer stacks."),
        rows(".dump Stack", "stacks", stack_columns(false).members()),
        document(".dump Diff", diff_document::<usize>(Domain::Handles).members()).with_note("`.diff` and `handlescope diff` write the same document. `files`, `stacks`, `caveats` and \
             `no_match`, and their members, are those of `.dump ObjectRef`. [diff.md](diff.md) \
                                                        explains the numbers."),
        rows(".dump Diff", "groups", diff(Domain::Handles)),
        document(".dump Diff -Kind", diff_document::<usize>(Domain::Allocations).members()).with_note("`stacks`, `caveats` and `no_match`, and their members, are those of `.dump ObjectRef`. \
                                                                   [diff.md](diff.md#allocations) explains the numbers."),
        rows(".dump Diff -Kind", "groups", diff(Domain::Allocations)),
        document(".dump Resource", resource_document().members()).with_note("[resources.md](resources.md) explains what is counted, and how."),
        rows(".dump Resource", "totals", total_columns().members()).with_note("Byte counts are signed, because events may contain negative sizes. `alloc_bytes` is the \
             sum of `freed_bytes`, `replaced_bytes`, `destroyed_bytes`, `closed_at_exit_bytes` and \
                                                                               `leaked_bytes`."),
        rows(".dump Resource", "leaked, closed_at_exit", leak_columns().members()),
        document(".dump Resource -GroupBy", resource_group_document().members()).with_note("`-ShowTotal` writes the same document."),
        rows(".dump Resource -GroupBy", "groups", resource_group_members()).with_note("Their numbers add up to the totals, with one exception: a call, or an allocation that \
             ended in parts, counts in each of its groups."),
        document(".dump Symbols", symbol_document().members()).with_note("Looks up the names of all frames."),
        rows(".dump Symbols", "symbols", symbol_columns().members()),
        document(".dump Events", event_document().members()),
        rows(".dump Events", "providers", provider_columns().members()),
        rows(".dump Events", "providers.events", event_columns().members()).with_note("With `-SortBy`, `providers` has one element per run of consecutive rows of one provider. \
             With `-ShowFields` or `-Stack` the document contains single events instead: \
                                                                                       [events.md](events.md#single-events)."),
        document(".dump Stats", stats_members),
        rows(".dump Stats", "properties", property_columns().members()),
        rows(".dump Stats", "files", trace_facts().members()).with_note("The `kind` of an event is `hook:1120` for kernel events (group and type, four lower-case \
             hex digits), `classic:{guid}:{opcode}` for other classic events, and \
             `manifest:{guid}:{id}` for manifest and TraceLogging events."),
        document(".sql", query_document().members()).with_note("`.sql SELECT … -json` writes one document in the same layout:\n\n\
             The values are those of the query. Numbers are plain numbers, even beyond 2^53, unless \
             the query formats them with `hex(x)`. Lists are arrays, numbers that JSON cannot \
             represent (infinity) are `null`, and dates are texts. Addresses, kernel keys and handles \
             are texts like `\"0xC0\"` in every table and view; `number(x)` makes numbers of them. \
                                                   [tables.md](reference/tables.md) describes every table and view."),
        document(FLEET_WHY, fleet_why_document().members()).with_note("While a dataset is loaded, `.why -json` and `.dump Why -json` write:"),
        rows(FLEET_WHY, "suspects", fleet_why_columns().members()),
        document(FLEET_GROUPS, fleet_group_document().members()),
        rows(FLEET_GROUPS, "groups", fleet_group_columns(&[], true).members()),
        document(FLEET_DIFF, fleet_diff_document().members()),
        rows(FLEET_DIFF, "groups", fleet_diff_columns().members()),
    ]
}

/// The page about the members of documents, in Markdown.
pub struct MemberPage;

impl fmt::Display for MemberPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = "# Members of JSON documents\n\nPrinted by `handlescope schema --members`. \
                        [dump-json.md](dump-json.md) says what all documents have in common.\n"
            .to_owned();
        let mut document = "";
        for table in member_tables() {
            if table.commands != document {
                page += &format!("\n## {}\n", in_code(table.commands));
                document = table.commands;
            }
            if !table.lists.is_empty() {
                page += &format!("\n### {}\n", in_code(table.lists));
            }
            if !table.note.is_empty() {
                page += &format!("\n{}\n", table.note);
            }
            page += &format!("\n{table}");
        }
        // Other pages are one folder up.
        f.write_str(&page.replace(".md](", ".md](../"))
    }
}

impl fmt::Display for MemberTable {
    /// Writes the table in Markdown, one line for each meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_types = self.members.iter().any(|member| !member.kind.is_empty());
        f.write_str(if has_types {
            "| Member | Type | Value |\n|---|---|---|\n"
        } else {
            "| Member | Value |\n|---|---|\n"
        })?;
        // Columns of rows keep their order.
        let is_untyped = |member: &&MemberMeaning| member.kind.is_empty();
        let mut lines: Vec<Vec<&MemberMeaning>> = Vec::new();
        for member in &self.members {
            let last = lines.len().saturating_sub(1);
            let line = lines.iter().enumerate().position(|(index, line)| {
                let can_join = index == last || line.iter().chain([&member]).all(is_untyped);
                can_join && line.iter().all(|other| other.meaning == member.meaning)
            });
            match line.and_then(|line| lines.get_mut(line)) {
                Some(line) => line.push(member),
                None => lines.push(vec![member]),
            }
        }
        for members in lines {
            let meaning = members.first().map_or("", |member| member.meaning);
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            let mut types = Vec::new();
            for member in members {
                if !types.contains(&member.kind) {
                    types.push(member.kind);
                }
            }
            let types = match (has_types, types.join(", ")) {
                (false, _) => String::new(),
                (true, types) if types.is_empty() => " |".to_owned(),
                (true, types) => format!(" {types} |"),
            };
            writeln!(f, "| {} |{types} {meaning} |", in_code(&names.join(", ")))?;
        }
        Ok(())
    }
}

impl MemberTable {
    /// Drops duplicates, because two sets of columns may share some.
    fn new(commands: &'static str, lists: &'static str, columns: Vec<MemberMeaning>) -> Self {
        let mut members: Vec<MemberMeaning> = Vec::new();
        for member in columns {
            let is_same = |known: &&mut MemberMeaning| {
                (&known.name, known.meaning) == (&member.name, member.meaning)
            };
            match members.iter_mut().find(is_same) {
                Some(known) if member.kind.ends_with('?') => *known = member,
                Some(_) => {}
                None => members.push(member),
            }
        }
        Self { commands, lists, note: "", members }
    }

    fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// Returns the names of the members; one with several descriptions occurs several times.
    pub fn described(&self) -> Vec<&str> {
        self.members.iter().map(|member| member.name.as_str()).collect()
    }

    /// Returns the headings of the table on the page: the document's, and that of the list in it.
    pub fn headings(&self) -> (String, String) {
        (in_code(self.commands), in_code(self.lists))
    }
}

/// Puts backticks around each name in a list.
fn in_code(names: &str) -> String {
    names
        .split(", ")
        .filter(|name| !name.is_empty())
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
