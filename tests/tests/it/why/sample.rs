//! The sample, and the command line.

use handlescope_tests::binary::{Shell, sample_symbols};
use serde_json::Value;

#[test]
fn the_sample_has_three_leaks_with_lines_and_causes() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = shell.run(&["why", "leaky.etl", "--symbol-path", symbols.to_str().unwrap()]).ok();
    insta::assert_snapshot!(run.stdout);
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
