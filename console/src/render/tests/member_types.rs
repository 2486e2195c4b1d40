//! The types of members on the page about documents are those of the columns that declare them.

use std::{env, fs};

use crate::{
    query::{Domain, GroupCriteria, ResourceColumn::Process, ResourceCriteria},
    render::{
        event_columns, group_columns, kinds::object_event_columns, module_columns, object_columns,
        point_columns, process_columns, resource_columns, stack_columns, symbol_columns,
        trace_columns, trace_facts, why_columns,
    },
    values::TimeFormat,
};

const PAGE: &str = include_str!("../../../../docs/dump-json.md");

/// Members with their types.
type Members = Vec<(&'static str, &'static str)>;

/// The members of the rows of documents: command, name of the rows, members.
fn declared() -> Vec<(&'static str, &'static str, Members)> {
    let groups = GroupCriteria { buckets: Some(1), ..GroupCriteria::default() };
    let allocations =
        ResourceCriteria { by: Some(vec![Process]), buckets: Some(1), ..Default::default() };
    let diff = |domain| [point_columns(domain).members(), trace_columns(domain).members()].concat();
    let (points, allocated) = (diff(Domain::Handles), diff(Domain::Allocations));
    vec![
        (".dump ObjectRef", "objects", object_columns().members()),
        (".dump ObjectRef", "objects.events", object_event_columns().members()),
        (".dump ObjectRef -GroupBy", "groups", group_columns(&groups, true).members()),
        (".dump Why", "suspects", why_columns().members()),
        (".dump Process", "processes", process_columns(TimeFormat::default()).members()),
        (".dump Module", "modules", module_columns().members()),
        (".dump Stack", "stacks", stack_columns(false).members()),
        (".dump Diff", "groups", points),
        (".dump Diff -Kind", "groups", allocated),
        (".dump Resource -GroupBy", "groups", resource_columns(&allocations, false).members()),
        (".dump Symbols", "symbols", symbol_columns().members()),
        (".dump Events", "providers.events", event_columns().members()),
        (".dump Stats", "files", trace_facts().members()),
    ]
}

/// A row of a table with the types of its members in the second cell.
fn typed(row: &str, members: &Members) -> String {
    let names = row.split('|').nth(1).unwrap_or_default();
    let mut types: Vec<&str> = Vec::new();
    for (_, kind) in members.iter().filter(|(name, _)| is_named(names, name)) {
        if !types.contains(kind) {
            types.push(kind);
        }
    }
    let types = format!(" {} ", types.join(", ")).replace("  ", " ");
    let cells = row.split('|').enumerate();
    let cells = cells.map(|(index, cell)| if index == 2 { types.as_str() } else { cell });
    cells.collect::<Vec<_>>().join("|")
}

#[test]
fn types_on_the_page_are_those_that_are_declared() {
    let declared = declared();
    let (mut section, mut members) = ("", None);
    let page = PAGE.lines().map(|line| {
        if let Some(heading) = line.strip_prefix("## ") {
            (section, members) = (heading, None);
        } else if let Some(heading) = line.strip_prefix("### ") {
            let mut tables = declared.iter();
            let table = tables
                .find(|(command, rows, _)| is_named(section, command) && is_named(heading, rows));
            members = table.map(|(.., members)| members);
        }
        match members {
            Some(members) if line.starts_with("| `") => typed(line, members) + "\n",
            _ => line.to_owned() + "\n",
        }
    });
    let page: String = page.collect();
    if env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dump-json.md");
        fs::write(path, &page).expect("the page can be written");
    } else {
        assert_eq!(PAGE.replace("\r\n", "\n"), page, "INSTA_UPDATE=always writes the types");
    }
}

/// Whether a text has a name between backticks.
fn is_named(text: &str, name: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(|code| code == name)
}
