//! Tests of which loaded traces a filter selects.

use handlescope_query::fixture::{Fixture, SavedTrace};
use std::path::Path;

use handlescope_session::filter::Filter;
use handlescope_session::terminal::{Messages, Screen};
use handlescope_session::trace::{LoadedTrace, choose, filter_of, passes};

fn loaded(paths: &[&str]) -> Vec<LoadedTrace> {
    let loaded = |path: &&str| {
        let SavedTrace { trace, .. } = Fixture::new().save();
        LoadedTrace::new(path.into(), trace)
    };
    paths.iter().map(loaded).collect()
}

/// Returns the indexes of the files that the filters select, or the error; and the messages.
fn selected(paths: &[&str], filters: &[&str]) -> (Result<Vec<usize>, String>, String) {
    let files = loaded(paths);
    let filters: Vec<_> = filters.iter().map(|f| Filter::new(f).expect("a filter")).collect();
    let mut written = Vec::new();
    let mut messages = Messages::new(&mut written, Screen::PLAIN);
    let result = choose(&files, &filters, &mut messages);
    let indexes = result.map(|files| files.into_iter().map(|(index, _)| index).collect());
    (indexes.map_err(|error| error.to_string()), String::from_utf8(written).expect("text"))
}

#[test]
fn files_that_are_left_keep_their_numbers_and_all_filters_must_match() {
    let files = ["a/one.json7z", "a/two.json7z", "b/two.json7z"];
    assert_eq!(selected(&files, &["two.json7z"]), (Ok(vec![1, 2]), String::new()));
    assert_eq!(selected(&files, &["two*", "b/*"]), (Ok(vec![2]), String::new()));
    assert_eq!(selected(&files, &[]), (Ok(vec![0, 1, 2]), String::new()));
}

#[test]
fn the_filter_of_a_file_chooses_no_other() {
    let paths = ["two.json7z", "a/two.json7z", "b/one;1.json7z", "b/one\"1.json7z", "!-x.json7z"];
    let files = loaded(&paths);
    let filters: Vec<String> =
        (0..paths.len()).map(|index| filter_of(&files, index).expect("it is loaded")).collect();
    assert!(Path::new(&filters[0]).is_absolute(), "{filters:?}");
    assert_eq!(filters[1], "a/two.json7z");
    assert!(filters[2].ends_with("one?1.json7z"), "{filters:?}");
    for (index, filter) in filters.iter().enumerate() {
        let indexes = selected(&paths, &[filter]).0.expect("it chooses");
        // A path that no filter can name exactly is selected together with similar ones.
        let expected = if index == 2 || index == 3 { vec![2, 3] } else { vec![index] };
        assert_eq!(indexes, expected, "{filter}");
    }
    assert_eq!(filter_of(&files, paths.len()), None);
}

#[test]
fn a_filter_that_leaves_nothing_or_everything_is_reported() {
    let (error, _) = selected(&["one.json7z"], &["three*", "!x"]);
    let written = "-fd three* -fd !x matches no loaded file; .list shows what is loaded";
    assert_eq!(error, Err(written.to_owned()));
    let (all, note) = selected(&["one.json7z", "two.json7z"], &["*.json7z"]);
    assert_eq!(all, Ok(vec![0, 1]));
    assert_eq!(note, "note: -fd *.json7z did not leave out any file\n");
    assert_eq!(selected(&["one.json7z"], &["one*"]), (Ok(vec![0]), String::new()));
}

#[test]
fn a_file_is_found_by_its_path_and_by_its_name() {
    let file = Path::new("old/runs/leak.json7z");
    for (filter, expected) in [
        ("leak.json7z", true),
        ("*leak*", true),
        ("old/runs/leak.json7z", true),
        ("*/runs/*", true),
        ("runs", false),
        ("leak", false),
        ("!*/runs/*", false),
        ("!leak.json7z", false),
        ("!LEAK*", false),
        ("!leak", true),
        ("!*leak.json7z", false),
        ("leak*;!*old*", false),
        ("", true),
    ] {
        let filter = Filter::new(filter).expect("a filter");
        assert_eq!(passes(&filter, file), expected, "{}", filter.text());
    }
    // Absolute, because folders around the current one count.
    let elsewhere = Filter::new("leak*;!*/new/*").expect("a filter");
    assert!(passes(&elsewhere, Path::new("/old/runs/leak.json7z")));
    assert!(!passes(&elsewhere, Path::new("/new/runs/leak.json7z")));
    let full_path = std::env::current_dir().expect("a folder").join(file);
    let filter = Filter::new(&full_path.to_string_lossy()).expect("a filter");
    assert!(passes(&filter, file));
}
