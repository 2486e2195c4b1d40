//! Every kind of Parquet file, filtered by the engines that read them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::{allocations, needs_pandas, needs_spark};

/// Commands that write rows to files.
const ANSWERS: [&str; 8] = [
    ".dump ObjectRef -Leak -parquet objects.parquet",
    ".dump ObjectRef -GroupBy process,type -parquet groups.parquet",
    ".dump Process -parquet processes.parquet",
    ".dump Module -parquet modules.parquet",
    ".dump Stack -parquet stacks.parquet",
    ".why -parquet why.parquet",
    ".dump Stats -parquet stats.parquet",
    ".sql SELECT l.*, s.text AS frames FROM leaks l JOIN stacks s ON s.row = l.opened_stack -parquet sql.parquet",
];

/// The same for a dataset.
const OF_DATASET: [&str; 3] = [
    ".why -parquet fleet-why.parquet",
    ".dump ObjectRef -parquet fleet-groups.parquet",
    ".sql SELECT * FROM acquisitions -parquet fleet-sql.parquet",
];

fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(parquet_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Writes each kind of Parquet file: dataset parts, tables and answers.
fn written() -> (Shell, Vec<PathBuf>) {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let _ = shell.run(&["dataset", "add", "fleet", "leaky.etl", "memory.etl"]).ok();
    let lines = [&[".export tables"], &ANSWERS[..]].concat().join("\n") + "\n";
    let _ = shell.script(&["leaky.etl"], &lines).ok();
    let _ = shell.script(&["fleet"], &(OF_DATASET.join("\n") + "\n")).ok();
    let _ = shell.run(&["memory.etl", "-c", ".dump Resource -parquet resources.parquet"]).ok();
    let files = parquet_files(&shell.path(""));
    // Parts of eight tables for two traces, then tables, views and answers.
    let expected = 2 * 8 + 26 + 5 + ANSWERS.len() + OF_DATASET.len() + 1;
    assert_eq!(files.len(), expected, "{files:?}");
    (shell, files)
}

/// Returns the number of filters that an engine compared.
fn compared(engine: &str) -> usize {
    let (shell, files) = written();
    let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/parquet_readers.py");
    let mut command = Command::new(python);
    command.arg(script).arg(engine).args(files).current_dir(shell.path("")).stdin(Stdio::null());
    command.env("HOME", shell.path("")).env("SPARK_LOCAL_IP", "127.0.0.1");
    let run = ProgramRun::from(command.output().expect("Python starts")).ok();
    run.stdout.trim().parse().unwrap_or_else(|_| panic!("{run:?}"))
}

#[needs_pandas]
#[test]
fn pyarrow_pandas_and_duckdb_filter_every_text_column() {
    let compared = compared("arrow");
    assert!(compared > 300, "{compared}");
}

#[needs_pandas]
#[needs_spark]
#[test]
fn spark_filters_text_columns_of_every_file() {
    let compared = compared("spark");
    assert!(compared > 60, "{compared}");
}
