//! The published traces in a dataset: Spark, DuckDB and the console return equal rows, and count what the console
//! counts in each trace.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use handlescope_tests::binary::Shell;
use handlescope_tests::data::shared_data;
use handlescope_tests::{needs_data, needs_spark};
use serde_json::{Deserializer, Value};

use super::engines::{Spark, answers, assert_equal, console, duckdb, questions};

/// Query for the handles and views of a trace, like `counts.sql`.
const HANDLES: &str = "SELECT process, kind, type, COUNT(*) AS acquired, \
    SUM(CASE WHEN leaked THEN 1 ELSE 0 END) AS leaked, \
    SUM(CASE WHEN at_exit THEN 1 ELSE 0 END) AS at_exit, 0 AS bytes FROM handles \
    GROUP BY process, kind, type";

/// Query for the allocations of a trace.
const ALLOCATIONS: &str = "SELECT process, kind, kind AS type, COUNT(*) AS acquired, \
    SUM(CASE WHEN \"end\" = 'open' THEN 1 ELSE 0 END) AS leaked, \
    SUM(CASE WHEN at_exit THEN 1 ELSE 0 END) AS at_exit, SUM(size) AS bytes FROM allocations \
    GROUP BY process, kind";

const COLUMNS: [&str; 7] = ["process", "kind", "type", "acquired", "leaked", "at_exit", "bytes"];

/// Copies the archives of the published traces, because extracts are written beside them.
fn published(shell: &Shell) -> Vec<PathBuf> {
    let folders = ["real", "synthetic"].map(|name| fs::read_dir(shared_data().join(name)).unwrap());
    let mut copies = Vec::new();
    for entry in folders.into_iter().flatten().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let is_archive = [".7z", ".zip", ".etl"].iter().any(|ending| name.ends_with(ending));
        if is_archive && !name.contains(".pdbs.") {
            fs::copy(entry.path(), shell.path(&name)).unwrap();
            copies.push(shell.path(&name));
        }
    }
    copies.sort();
    copies
}

/// Returns the rows that the console counts in a trace.
fn counted_by_console(shell: &Shell, trace: &Path) -> BTreeSet<String> {
    let commands = [HANDLES, ALLOCATIONS].map(|query| format!(".sql {query} -json"));
    let trace = trace.to_str().unwrap();
    let run = shell.run(&[trace, "-c", &commands[0], "-c", &commands[1]]).ok();
    Deserializer::from_str(&run.stdout)
        .into_iter::<Value>()
        .map(Result::unwrap)
        .flat_map(|document| document["rows"].as_array().unwrap().clone())
        .map(|row| Value::from(COLUMNS.map(|column| row[column].clone()).to_vec()).to_string())
        .collect()
}

/// Returns the rows of an answer for a trace, without the trace name in front.
fn counted_in_dataset(answer: &Value, trace: Option<&str>) -> BTreeSet<String> {
    answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_array().unwrap())
        .filter(|row| trace.is_some_and(|trace| row[0] == trace))
        .map(|row| Value::from(row[1..].to_vec()).to_string())
        .collect()
}

/// Returns the dataset's name for the trace in an archive, if anything was acquired in it.
fn source<'a>(answer: &'a Value, archive: &Path) -> Option<&'a str> {
    let name = archive.file_name()?.to_str()?;
    answer["rows"]
        .as_array()?
        .iter()
        .filter_map(|row| row[0].as_str())
        .find(|source| name.starts_with(source.strip_suffix(".etl").unwrap_or(source)))
}

#[needs_data]
#[needs_spark]
#[test]
fn engines_have_equal_rows_and_count_what_the_console_counts_in_each_trace() {
    let shell = Shell::new();
    let traces = published(&shell);
    let mut add = vec!["dataset", "add", "fleet"];
    add.extend(traces.iter().map(|path| path.to_str().unwrap()));
    let _ = shell.run(&add).ok();

    let counts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fleet/counts.sql");
    let queries = [questions(), vec![counts]].concat();
    let by_duckdb = duckdb(&shell, "fleet", &queries);
    let spark = Spark::new(&shell);
    let mut command = spark.command(&shell, "questions.py");
    command.arg(shell.path("fleet")).args(&queries).args(["--json", "--engine", "spark"]);
    let by_spark = answers(command.output().unwrap().into());
    assert_equal(&by_spark, &by_duckdb);
    assert_equal(&console(&shell, "fleet", &queries), &by_duckdb);

    let answer = by_duckdb.last().unwrap();
    let mut rows = 0;
    for trace in traces {
        let in_dataset = counted_in_dataset(answer, source(answer, &trace));
        assert_eq!(in_dataset, counted_by_console(&shell, &trace), "{}", trace.display());
        rows += in_dataset.len();
    }
    // There are no rows of other traces.
    assert_eq!(rows, answer["rows"].as_array().unwrap().len());
    assert!(rows > 100, "{rows}");
}
