//! Tests that the page about the members of documents is what the program prints.

use std::{collections::BTreeSet, env, fs};

use handlescope_render::{MemberPage, member_tables};

const PAGE: &str = include_str!("../../../../../docs/reference/json.md");

#[test]
fn the_page_is_the_one_that_is_printed() {
    let page = MemberPage.to_string();
    if env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
        fs::write(path, &page).expect("the page can be written");
    } else {
        assert_eq!(PAGE.replace("\r\n", "\n"), page, "INSTA_UPDATE=always writes the page");
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
