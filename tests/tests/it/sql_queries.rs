//! `.sql` gives DuckDB's answer, or says that it has none.

use std::path::Path;
use std::process::Command;

use handlescope_tests::binary::{Shell, handlescope_path, sample_symbols};
use handlescope_tests::needs_duckdb;
use serde_json::{Deserializer, Value};

/// Number of queries that may have no answer. A higher number means that a query is now refused that had an answer.
const MOST_REFUSED: usize = 200;

/// Returns the outcome of each query on a trace or a dataset.
fn results(shell: &Shell, kind: &str, target: &Path) -> Vec<Value> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let output = Command::new(python)
        .arg(tests.join("python/sql_queries.py"))
        .arg(kind)
        .args([handlescope_path().as_path(), target])
        .arg(tests.join("fixtures/sql-queries.sql"))
        .env("HOME", shell.path(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect()
}

fn assert_equal_or_refused(results: &[Value]) {
    let of = |result: &str| -> Vec<&Value> {
        results.iter().filter(|query| query["result"] == result).collect()
    };
    assert_eq!(of("different"), Vec::<&Value>::new());
    let refused = of("refused");
    assert!(results.len() >= 880, "{} queries", results.len());
    assert!(refused.len() <= MOST_REFUSED, "{} refused: {refused:#?}", refused.len());
    assert_eq!(of("equal").len() + refused.len(), results.len());
    for query in refused {
        let reason = query["reason"].as_str().unwrap();
        let has_tree =
            ["Span(", "Ident", "Some(", "{ ", "\n"].iter().any(|part| reason.contains(part));
        assert!(!reason.is_empty() && !has_tree, "{query}");
    }
}

/// `HANDLESCOPE_PYTHON` names an interpreter with the package `duckdb`; CI provides one.
#[needs_duckdb]
#[test]
fn queries_over_a_trace_have_the_answers_of_duckdb_or_none() {
    let shell = Shell::new();
    assert_equal_or_refused(&results(&shell, "trace", &shell.path("leaky.etl")));
}

#[needs_duckdb]
#[test]
fn queries_over_a_dataset_have_the_answers_of_duckdb_or_none() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = ["--symbol-path", symbols.to_str().unwrap()];
    let _ = shell.run(&[&["dataset", "add", "fleet", "leaky.etl"], &symbols[..]].concat()).ok();
    assert_equal_or_refused(&results(&shell, "dataset", &shell.path("fleet")));
}
