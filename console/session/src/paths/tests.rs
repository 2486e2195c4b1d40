//! Tests file names, and which files names, folders and patterns stand for.

use std::fs;
use std::path::Path;

use super::*;

fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "").expect("a file");
    }
    folder
}

fn walked(folder: &Path, query: &str, recursive: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let expanded = expand(&folder.join(query).to_string_lossy(), recursive, &mut problems);
    assert!(problems.is_empty(), "{query}: {problems:?}");
    expanded
        .files
        .iter()
        .map(|path| path.strip_prefix(folder).expect("in it"))
        .map(|path| path.to_string_lossy().replace('\\', "/"))
        .collect()
}

fn files(folder: &Path, query: &str) -> Vec<String> {
    walked(folder, query, false)
}

fn problem(folder: &Path, query: &str) -> ExpandError {
    let mut problems = Vec::new();
    let expanded = expand(&folder.join(query).to_string_lossy(), false, &mut problems);
    assert!(expanded.files.is_empty(), "{query}: {expanded:?}");
    problems.remove(0)
}

#[test]
fn wildcards_find_traces_and_extracts_in_order() {
    let folder = folder(&["b.etl", "A.ETL", "a2.json7z", "ab.zip", "a.txt", "c.etl"]);
    fs::create_dir(folder.path().join("d.etl")).expect("a folder");
    for (pattern, expected) in [
        ("*.etl", vec!["A.ETL", "b.etl", "c.etl"]),
        ("?.etl", vec!["A.ETL", "b.etl", "c.etl"]),
        ("A*", vec!["A.ETL", "a2.json7z", "ab.zip"]),
        ("*b.*;!*.zip", vec!["b.etl"]),
        ("b.etl;c.*", vec!["b.etl", "c.etl"]),
        ("*;!b.etl;!a*", vec!["c.etl"]),
    ] {
        assert_eq!(files(folder.path(), pattern), expected, "{pattern}");
    }
}

#[test]
fn a_pattern_is_compared_with_the_name_and_with_the_path_and_so_is_what_it_excludes() {
    let folder = folder(&["old/leak.json7z", "new/leak.json7z", "new/other.json7z"]);
    for pattern in ["l*.json7z", "*l*k.json7z", "*new*leak.json7z"] {
        let matches = walked(folder.path(), pattern, true);
        assert!(matches.contains(&"new/leak.json7z".to_owned()), "{pattern}: {matches:?}");
    }
    assert_eq!(
        walked(folder.path(), "*leak*;!*old*", true),
        ["new/leak.json7z"],
        "an exclusion sees folders"
    );
}

#[test]
#[cfg(unix)]
fn a_file_that_is_really_called_so_is_no_pattern() {
    let folder = folder(&["a*.etl", "ab.etl"]);
    assert_eq!(files(folder.path(), "a*.etl"), ["a*.etl"]);
}

#[test]
fn a_folder_stands_for_what_lies_in_it_and_in_its_extract_folder() {
    let folder = folder(&[
        "b.etl",
        "a.txt",
        "Extract/c.json7z",
        "Extract/deep/d.json7z",
        "below/e.etl",
        "below/Extract/e.json7z",
    ]);
    assert_eq!(files(folder.path(), "."), ["Extract/c.json7z", "b.etl"]);
    assert_eq!(
        walked(folder.path(), ".", true),
        ["Extract/c.json7z", "Extract/deep/d.json7z", "b.etl", "below/e.etl"]
    );
}

#[test]
fn a_trace_its_archive_and_its_extract_are_one() {
    let folder = folder(&[
        "a.etl",
        "a.etl.zip",
        "a.json7z",
        "Extract/a.json7z",
        "b.7z",
        "b.json7z",
        "c.json7z",
        "below/a.etl",
    ]);
    assert_eq!(files(folder.path(), "."), ["a.etl", "b.7z", "c.json7z"]);
    assert_eq!(files(folder.path(), "*.json7z"), ["a.json7z", "b.json7z", "c.json7z"]);
    assert_eq!(walked(folder.path(), ".", true).len(), 4, "another folder, another trace");
}

#[test]
fn the_extension_of_an_extract_may_be_missing_or_be_that_of_etw_analyzer() {
    let folder = folder(&["a.json7z", "b.json", "b.json7z", "Extract/c.json7z"]);
    assert_eq!(files(folder.path(), "a"), ["a.json7z"]);
    assert_eq!(files(folder.path(), "a.json"), ["a.json7z"]);
    assert_eq!(files(folder.path(), "b.json"), ["b.json"]);
    assert_eq!(files(folder.path(), "c.json"), ["Extract/c.json7z"]);
    assert_eq!(files(folder.path(), "c.json7z"), ["Extract/c.json7z"]);
}

#[test]
fn a_mistyped_name_never_stands_for_its_folder() {
    let folder = folder(&["leaky.etl", "other.etl"]);
    let error = problem(folder.path(), "laeky.etl").to_string();
    let nearest = folder.path().join("leaky.etl").display().to_string();
    let message = format!("file not found, did you mean {nearest}?");
    assert!(error.ends_with(&message), "{error}");
}

#[test]
fn a_quotation_mark_that_windows_took_into_the_name_is_explained() {
    let folder = folder(&["a.etl"]);
    let error = problem(folder.path(), "My Traces\" -c .list").to_string();
    assert!(error.ends_with("\" makes it part of the name: leave the \\ out"), "{error}");
}

#[test]
fn a_path_without_a_file_is_refused_with_the_reason() {
    let folder = folder(&["a.etl", "empty/x.txt"]);
    let error = |query: &str| problem(folder.path(), query);
    assert!(matches!(error("b.etl"), ExpandError::Missing { .. }));
    assert!(matches!(error("b*.etl"), ExpandError::NothingMatches { .. }));
    assert!(matches!(error("*/a.etl"), ExpandError::WildcardInFolder { .. }));
    assert!(matches!(error("empty"), ExpandError::NothingIn { .. }));
    assert!(matches!(error("no/*.etl"), ExpandError::Unreadable { .. }));
}

#[test]
#[cfg(unix)]
fn links_to_folders_are_not_followed() {
    let folder = folder(&["a/a.etl"]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("a/up")).expect("a link");
    assert_eq!(walked(folder.path(), ".", true), ["a/a.etl"]);
}

#[test]
fn a_name_that_is_too_long_for_an_extract_is_cut_and_stays_unique() {
    let short = |end: &str| shortened(format!("{}{end}", "é".repeat(120)).into());
    let (first, second) = (short("1"), short("2"));
    assert_ne!(first, second);
    for name in [first, second] {
        assert!(name.len() <= MAX_NAME_LENGTH && name.to_string_lossy().starts_with("éé"));
        assert_eq!(shortened(name.clone()), name);
    }
    let longest = OsString::from("a".repeat(MAX_NAME_LENGTH));
    assert_eq!(shortened(longest.clone()), longest);
}
