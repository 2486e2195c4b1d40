//! `docs/etwanalyzer.md` is true: the tests it names exist. `documented/` runs its commands.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/etwanalyzer.md")).unwrap()
}

/// Returns the rows of the defect table: the number, and the cell about handlescope.
fn defects(document: &str) -> Vec<(u32, String)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.parse().ok()?;
        Some((number, cells.nth(1)?.to_owned()))
    };
    document.lines().filter_map(row).collect()
}

/// Returns the tests that a text names as `path::name`.
fn named_tests(text: &str) -> Vec<(&str, &str)> {
    text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(".rs::")).collect()
}

#[test]
fn every_defect_is_there_with_a_test_or_a_reason() {
    let document = document();
    let defects = defects(&document);
    let numbers: Vec<u32> = defects.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=26).collect::<Vec<u32>>());
    for (number, ours) in defects {
        let has_reason = ours.contains("Cannot arise: ");
        assert!(has_reason || !named_tests(&ours).is_empty(), "defect {number}: {ours}");
    }
}

#[test]
fn every_test_the_document_names_is_in_the_sources() {
    for (path, name) in named_tests(&document()) {
        let path = format!("{path}.rs");
        let source =
            fs::read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(source.contains(&format!("fn {name}(")), "{path} has no {name}");
        let (before, _) = source.split_once(&format!("fn {name}(")).unwrap();
        let attributes = before.rsplit("\n\n").next().unwrap();
        assert!(attributes.contains("#[test]"), "{path}::{name} is not a test");
    }
}
