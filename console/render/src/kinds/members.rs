//! The members of JSON documents with their types and meanings: the tables of `docs/dump-json.md`.

use std::fmt;

use super::{
    diff::{DIFF_KIND_MEMBERS, DIFF_MEMBERS, point_columns, trace_columns},
    event_counts::{EVENTS_MEMBERS, PROVIDER_MEMBERS, event_columns},
    events::{object_columns, object_event_columns},
    fleet::{
        FLEET_DIFF_MEMBERS, FLEET_GROUPS_MEMBERS, FLEET_WHY_MEMBERS, fleet_diff_columns,
        fleet_group_columns, fleet_why_columns,
    },
    frame::QUERY_MEMBERS,
    groups::{GROUPS_MEMBERS, group_columns},
    module::{MODULES_MEMBERS, module_columns},
    object_ref::{GUI_HANDLE_MEMBERS, NOT_CLOSED_MEMBERS, OBJECT_REF_MEMBERS, TOTALS_MEMBERS},
    process::{PROCESSES_MEMBERS, process_columns},
    resource::{
        RESOURCE_GROUPS_MEMBERS, RESOURCE_MEMBERS, leak_columns, resource_columns, total_columns,
    },
    stack::{STACKS_MEMBERS, stack_columns},
    stats::{STATS_MEMBERS, property_columns, trace_facts},
    symbols::{SYMBOLS_MEMBERS, symbol_columns},
    why::{WHY_MEMBERS, why_columns},
};
use crate::json::{CAVEAT_MEMBERS, FILE_MEMBERS, FRAME_MEMBERS, Meanings, NO_MATCH_MEMBERS};
use crate::table::MemberMeaning;
use handlescope_query::{Domain, GroupCriteria, ResourceColumn, ResourceCriteria};
use handlescope_session::values::TimeFormat;

/// The members of a document, or of the rows of one of its lists.
pub struct MemberTable {
    /// Commands that print the document, separated by commas.
    commands: &'static str,
    /// Lists of the rows, separated by commas; empty for the document itself.
    lists: &'static str,
    members: Vec<MemberMeaning>,
}

// Commands over a dataset.
const FLEET_WHY: &str = ".why over a dataset";
const FLEET_GROUPS: &str = ".dump ObjectRef over a dataset";
const FLEET_DIFF: &str = ".diff -build over a dataset";

/// Returns all tables in the order of the page.
pub fn member_tables() -> Vec<MemberTable> {
    let groups = GroupCriteria { buckets: Some(1), ..GroupCriteria::default() };
    let by = Some(vec![ResourceColumn::Process]);
    let allocations = ResourceCriteria { by, buckets: Some(1), ..ResourceCriteria::default() };
    let diff = |domain| [point_columns(domain).members(), trace_columns(domain).members()].concat();
    let document = |commands, members: Meanings| MemberTable::of_meanings(commands, "", members);
    let part = MemberTable::of_meanings;
    let rows = MemberTable::of_columns;
    vec![
        document(".dump ObjectRef", OBJECT_REF_MEMBERS),
        part(".dump ObjectRef", "files", FILE_MEMBERS),
        part(".dump ObjectRef", "totals, files.totals", TOTALS_MEMBERS),
        part(".dump ObjectRef", "caveats", CAVEAT_MEMBERS),
        part(".dump ObjectRef", "no_match", NO_MATCH_MEMBERS),
        part(".dump ObjectRef", "gui_handles", GUI_HANDLE_MEMBERS),
        part(".dump ObjectRef", "not_closed", NOT_CLOSED_MEMBERS),
        rows(".dump ObjectRef", "objects", object_columns().members()),
        rows(".dump ObjectRef", "objects.events", object_event_columns().members()),
        part(".dump ObjectRef", "stacks", FRAME_MEMBERS),
        document(".dump ObjectRef -GroupBy", GROUPS_MEMBERS),
        rows(".dump ObjectRef -GroupBy", "groups", group_columns(&groups, true).members()),
        document(".dump Why", WHY_MEMBERS),
        rows(".dump Why", "suspects", why_columns().members()),
        document(".dump Process", PROCESSES_MEMBERS),
        rows(".dump Process", "processes", process_columns(TimeFormat::default()).members()),
        document(".dump Module, .dump Version", MODULES_MEMBERS),
        rows(".dump Module, .dump Version", "modules", module_columns().members()),
        document(".dump Stack", STACKS_MEMBERS),
        rows(".dump Stack", "stacks", stack_columns(false).members()),
        document(".dump Diff", DIFF_MEMBERS),
        rows(".dump Diff", "groups", diff(Domain::Handles)),
        document(".dump Diff -Kind", DIFF_KIND_MEMBERS),
        rows(".dump Diff -Kind", "groups", diff(Domain::Allocations)),
        document(".dump Resource", RESOURCE_MEMBERS),
        rows(".dump Resource", "totals", total_columns().members()),
        rows(".dump Resource", "leaked, closed_at_exit", leak_columns().members()),
        document(".dump Resource -GroupBy", RESOURCE_GROUPS_MEMBERS),
        rows(".dump Resource -GroupBy", "groups", resource_columns(&allocations, false).members()),
        document(".dump Symbols", SYMBOLS_MEMBERS),
        rows(".dump Symbols", "symbols", symbol_columns().members()),
        document(".dump Events", EVENTS_MEMBERS),
        part(".dump Events", "providers", PROVIDER_MEMBERS),
        rows(".dump Events", "providers.events", event_columns().members()),
        document(".dump Stats", STATS_MEMBERS),
        rows(".dump Stats", "properties", property_columns().members()),
        rows(".dump Stats", "files", trace_facts().members()),
        document(".sql", QUERY_MEMBERS),
        document(FLEET_WHY, FLEET_WHY_MEMBERS),
        rows(FLEET_WHY, "suspects", fleet_why_columns().members()),
        document(FLEET_GROUPS, FLEET_GROUPS_MEMBERS),
        rows(FLEET_GROUPS, "groups", fleet_group_columns(&[], true).members()),
        document(FLEET_DIFF, FLEET_DIFF_MEMBERS),
        rows(FLEET_DIFF, "groups", fleet_diff_columns().members()),
    ]
}

impl fmt::Display for MemberTable {
    /// Writes the table in Markdown: a line for each meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_types = self.members.iter().any(|member| !member.kind.is_empty());
        f.write_str(if has_types {
            "| Member | Type | Value |\n|---|---|---|\n"
        } else {
            "| Member | Value |\n|---|---|\n"
        })?;
        let has_one_meaning = |a: &MemberMeaning, b: &MemberMeaning| a.meaning == b.meaning;
        for members in self.members.chunk_by(has_one_meaning) {
            let names: Vec<&str> = members.iter().map(|member| member.names).collect();
            let meaning = members.first().map_or("", |member| member.meaning);
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
    fn of_meanings(commands: &'static str, lists: &'static str, meanings: Meanings) -> Self {
        let members =
            meanings.iter().map(|&(names, meaning)| MemberMeaning::of_meaning(names, meaning));
        Self { commands, lists, members: members.collect() }
    }

    /// Two sets of columns may share some.
    fn of_columns(
        commands: &'static str,
        lists: &'static str,
        columns: Vec<MemberMeaning>,
    ) -> Self {
        let mut members: Vec<MemberMeaning> = Vec::new();
        for member in columns {
            let is_same = |known: &&mut MemberMeaning| {
                (known.names, known.meaning) == (member.names, member.meaning)
            };
            match members.iter_mut().find(is_same) {
                Some(known) if member.kind.ends_with('?') => *known = member,
                Some(_) => {}
                None => members.push(member),
            }
        }
        Self { commands, lists, members }
    }

    /// Names of the members, each as often as it is described.
    pub fn described(&self) -> Vec<&'static str> {
        self.members.iter().flat_map(|member| member.names.split(", ")).collect()
    }

    /// Returns the headings of the table on the page: that of the document, and that of the list in it.
    pub fn headings(&self) -> (String, String) {
        (in_code(self.commands), in_code(self.lists))
    }
}

/// Puts each of some names between backticks.
fn in_code(names: &str) -> String {
    let names = names.split(", ").filter(|name| !name.is_empty());
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
