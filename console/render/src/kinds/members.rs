//! The members of JSON documents with their types and meanings: the tables of `docs/dump-json.md`.

use std::collections::BTreeSet;
use std::fmt;

use super::{
    diff::{
        DIFF_GROUP_MEMBERS, DIFF_KIND_GROUP_MEMBERS, DIFF_KIND_MEMBERS, DIFF_MEMBERS,
        point_columns, trace_columns,
    },
    event_counts::{EVENT_COUNT_MEMBERS, EVENTS_MEMBERS, PROVIDER_MEMBERS, event_columns},
    events::{EVENT_MEMBERS, OBJECT_MEMBERS, object_columns, object_event_columns},
    fleet::{
        FLEET_DIFF_GROUP_MEMBERS, FLEET_DIFF_MEMBERS, FLEET_GROUP_MEMBERS, FLEET_GROUPS_MEMBERS,
        FLEET_SUSPECT_MEMBERS, FLEET_WHY_MEMBERS, fleet_diff_columns, fleet_group_columns,
        fleet_why_columns,
    },
    frame::QUERY_MEMBERS,
    groups::{GROUP_MEMBERS, GROUPS_MEMBERS, group_columns},
    module::{MODULE_MEMBERS, MODULES_MEMBERS, module_columns},
    object_ref::{GUI_HANDLE_MEMBERS, NOT_CLOSED_MEMBERS, OBJECT_REF_MEMBERS, TOTALS_MEMBERS},
    process::{PROCESS_MEMBERS, PROCESSES_MEMBERS, process_columns},
    resource::{
        RESOURCE_GROUP_MEMBERS, RESOURCE_GROUPS_MEMBERS, RESOURCE_LEAK_MEMBERS, RESOURCE_MEMBERS,
        RESOURCE_TOTALS_MEMBERS, leak_columns, resource_columns, total_columns,
    },
    stack::{STACK_MEMBERS, STACKS_MEMBERS, stack_columns},
    stats::{PROPERTY_MEMBERS, STATS_MEMBERS, TRACE_MEMBERS, trace_facts},
    symbols::{SYMBOL_MEMBERS, SYMBOLS_MEMBERS, symbol_columns},
    why::{SUSPECT_MEMBERS, WHY_MEMBERS, why_columns},
};
use crate::json::{CAVEAT_MEMBERS, FILE_MEMBERS, FRAME_MEMBERS, Meanings, NO_MATCH_MEMBERS};
use handlescope_query::{Domain, GroupCriteria, ResourceColumn, ResourceCriteria};
use handlescope_session::values::TimeFormat;

/// The members of a document, or of the rows of one of its lists.
pub struct MemberTable {
    /// Commands that print the document, separated by commas.
    commands: &'static str,
    /// Lists of the rows, separated by commas; empty for the document itself.
    lists: &'static str,
    meanings: Meanings,
    /// Types of the members that are declared as columns.
    types: Vec<(&'static str, &'static str)>,
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
    let table = |commands, lists, meanings, types| MemberTable { commands, lists, meanings, types };
    vec![
        table(".dump ObjectRef", "", OBJECT_REF_MEMBERS, vec![]),
        table(".dump ObjectRef", "files", FILE_MEMBERS, vec![]),
        table(".dump ObjectRef", "totals, files.totals", TOTALS_MEMBERS, vec![]),
        table(".dump ObjectRef", "caveats", CAVEAT_MEMBERS, vec![]),
        table(".dump ObjectRef", "no_match", NO_MATCH_MEMBERS, vec![]),
        table(".dump ObjectRef", "gui_handles", GUI_HANDLE_MEMBERS, vec![]),
        table(".dump ObjectRef", "not_closed", NOT_CLOSED_MEMBERS, vec![]),
        table(".dump ObjectRef", "objects", OBJECT_MEMBERS, object_columns().members()),
        table(".dump ObjectRef", "objects.events", EVENT_MEMBERS, object_event_columns().members()),
        table(".dump ObjectRef", "stacks", FRAME_MEMBERS, vec![]),
        table(".dump ObjectRef -GroupBy", "", GROUPS_MEMBERS, vec![]),
        table(
            ".dump ObjectRef -GroupBy",
            "groups",
            GROUP_MEMBERS,
            group_columns(&groups, true).members(),
        ),
        table(".dump Why", "", WHY_MEMBERS, vec![]),
        table(".dump Why", "suspects", SUSPECT_MEMBERS, why_columns().members()),
        table(".dump Process", "", PROCESSES_MEMBERS, vec![]),
        table(
            ".dump Process",
            "processes",
            PROCESS_MEMBERS,
            process_columns(TimeFormat::default()).members(),
        ),
        table(".dump Module, .dump Version", "", MODULES_MEMBERS, vec![]),
        table(".dump Module, .dump Version", "modules", MODULE_MEMBERS, module_columns().members()),
        table(".dump Stack", "", STACKS_MEMBERS, vec![]),
        table(".dump Stack", "stacks", STACK_MEMBERS, stack_columns(false).members()),
        table(".dump Diff", "", DIFF_MEMBERS, vec![]),
        table(".dump Diff", "groups", DIFF_GROUP_MEMBERS, diff(Domain::Handles)),
        table(".dump Diff -Kind", "", DIFF_KIND_MEMBERS, vec![]),
        table(".dump Diff -Kind", "groups", DIFF_KIND_GROUP_MEMBERS, diff(Domain::Allocations)),
        table(".dump Resource", "", RESOURCE_MEMBERS, vec![]),
        table(".dump Resource", "totals", RESOURCE_TOTALS_MEMBERS, total_columns().members()),
        table(
            ".dump Resource",
            "leaked, closed_at_exit",
            RESOURCE_LEAK_MEMBERS,
            leak_columns().members(),
        ),
        table(".dump Resource -GroupBy", "", RESOURCE_GROUPS_MEMBERS, vec![]),
        table(
            ".dump Resource -GroupBy",
            "groups",
            RESOURCE_GROUP_MEMBERS,
            resource_columns(&allocations, false).members(),
        ),
        table(".dump Symbols", "", SYMBOLS_MEMBERS, vec![]),
        table(".dump Symbols", "symbols", SYMBOL_MEMBERS, symbol_columns().members()),
        table(".dump Events", "", EVENTS_MEMBERS, vec![]),
        table(".dump Events", "providers", PROVIDER_MEMBERS, vec![]),
        table(".dump Events", "providers.events", EVENT_COUNT_MEMBERS, event_columns().members()),
        table(".dump Stats", "", STATS_MEMBERS, vec![]),
        table(".dump Stats", "properties", PROPERTY_MEMBERS, vec![]),
        table(".dump Stats", "files", TRACE_MEMBERS, trace_facts().members()),
        table(".sql", "", QUERY_MEMBERS, vec![]),
        table(FLEET_WHY, "", FLEET_WHY_MEMBERS, vec![]),
        table(FLEET_WHY, "suspects", FLEET_SUSPECT_MEMBERS, fleet_why_columns().members()),
        table(FLEET_GROUPS, "", FLEET_GROUPS_MEMBERS, vec![]),
        table(
            FLEET_GROUPS,
            "groups",
            FLEET_GROUP_MEMBERS,
            fleet_group_columns(&[], true).members(),
        ),
        table(FLEET_DIFF, "", FLEET_DIFF_MEMBERS, vec![]),
        table(FLEET_DIFF, "groups", FLEET_DIFF_GROUP_MEMBERS, fleet_diff_columns().members()),
    ]
}

impl fmt::Display for MemberTable {
    /// Writes the table in Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_types = !self.types.is_empty();
        f.write_str(if has_types {
            "| Member | Type | Value |\n|---|---|---|\n"
        } else {
            "| Member | Value |\n|---|---|\n"
        })?;
        for (names, meaning) in self.meanings {
            let types =
                if has_types { format!(" {} |", self.types_of(names)) } else { String::new() };
            writeln!(f, "| {} |{} {meaning} |", in_code(names), types.replace("  ", " "))?;
        }
        Ok(())
    }
}

impl MemberTable {
    /// Returns the distinct types of some members; none of members of members.
    fn types_of(&self, names: &str) -> String {
        let mut types = Vec::new();
        for name in names.split(", ") {
            let declared = self.types.iter().filter(|(declared, _)| *declared == name);
            for (_, kind) in declared {
                if !types.contains(kind) {
                    types.push(kind);
                }
            }
        }
        types.join(", ")
    }

    /// Names of the members that are declared as columns.
    pub fn declared(&self) -> BTreeSet<&'static str> {
        self.types.iter().map(|(name, _)| *name).collect()
    }

    /// Names of the members that have a meaning.
    pub fn described(&self) -> Vec<&'static str> {
        self.meanings.iter().flat_map(|(names, _)| names.split(", ")).collect()
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
