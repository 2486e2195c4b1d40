//! The tables of members on the page about documents are those that the program declares.

use std::{collections::BTreeSet, env, fs};

use handlescope_render::{MemberTable, member_tables};

const PAGE: &str = include_str!("../../../../../docs/dump-json.md");

/// Texts between backticks.
fn code(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_headed(table: &MemberTable, document: &str, list: &str) -> bool {
    let (documents, lists) = table.headings();
    code(&documents) == code(document) && code(&lists) == code(list)
}

#[test]
fn tables_on_the_page_are_those_that_are_declared() {
    let mut tables = member_tables();
    let (mut document, mut list, mut page) = ("", "", String::new());
    let mut is_table = false;
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            (document, list) = (heading, "");
        } else if let Some(heading) = line.strip_prefix("### ") {
            list = heading;
        }
        let was_table = std::mem::replace(&mut is_table, line.starts_with('|'));
        match (was_table, is_table) {
            (false, true) => {
                let index = tables.iter().position(|table| is_headed(table, document, list));
                let index = index.unwrap_or_else(|| panic!("{document} {list} is not declared"));
                page += &tables.remove(index).to_string();
            }
            (true, true) => {}
            (_, false) => page += &format!("{line}\n"),
        }
    }
    let missing: Vec<_> = tables.iter().map(MemberTable::headings).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    if env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dump-json.md");
        fs::write(path, &page).expect("the page can be written");
    } else {
        assert_eq!(PAGE.replace("\r\n", "\n"), page, "INSTA_UPDATE=always writes the tables");
    }
}

#[test]
fn every_member_has_one_meaning() {
    for table in member_tables() {
        let (described, headings) = (table.described(), table.headings());
        let distinct: BTreeSet<_> = described.iter().copied().collect();
        assert_eq!(distinct.len(), described.len(), "{headings:?}: {described:?}");
    }
}
