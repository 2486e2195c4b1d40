//! The sample, and the command line.

use std::fs;

use handlescope_tests::binary::{Shell, examples, sample_symbols};
use serde_json::Value;

#[test]
fn the_sample_has_three_leaks_with_lines_and_causes() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = shell.run(&["why", "leaky.etl", "--symbol-path", symbols.to_str().unwrap()]).ok();
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn the_readme_shows_what_the_longer_sample_says() {
    let shell = Shell::new();
    let (symbols, trace) = (sample_symbols(), examples().join("server.etl"));
    fs::create_dir(shell.path("examples")).unwrap();
    fs::copy(trace, shell.path("examples/server.etl")).unwrap();
    let symbols = ["--symbol-path", symbols.to_str().unwrap()];
    let run = shell.run(&[&["why", "examples/server.etl"], &symbols[..]].concat()).ok();
    let readme = fs::read_to_string(examples().join("../README.md")).unwrap();
    assert!(readme.contains(run.stdout.trim_end()), "{}", run.stdout);
}

#[test]
fn the_command_line_takes_files_between_options() {
    let shell = Shell::new();
    let first = shell.run(&["why", "-pn", "leaky", "leaky.etl", "-json"]).ok().stdout;
    let second = shell.run(&["why", "leaky.etl", "-json", "-pn", "leaky"]).ok().stdout;
    assert_eq!(first, second);
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["kind"], "Why");
    assert_eq!(document["suspects"][0]["rank"], 1);
}
