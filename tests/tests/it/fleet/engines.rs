//! The scripts in `examples/fleet`, and the engines they run.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use handlescope_tests::binary::{ProgramRun, Shell, examples};
use serde_json::{Deserializer, Value, json};

/// A cluster of two workers with one core and 1 GiB each.
const CLUSTER: &str = "--master local-cluster[2,1,1024] --conf spark.ui.enabled=false \
    --conf spark.ui.showConsoleProgress=false --conf spark.sql.shuffle.partitions=1 \
    --conf spark.sql.adaptive.enabled=false pyspark-shell";

/// Java runs many programs for a few seconds each; its optimizing compiler would take half of that time.
const JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// Returns the questions about fleets, sorted by name.
pub fn questions() -> Vec<PathBuf> {
    let entries = fs::read_dir(examples().join("fleet")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    files
}

/// Returns the answers of an engine: a document for each question.
pub fn answers(run: ProgramRun) -> Vec<Value> {
    Deserializer::from_str(&run.ok().stdout).into_iter().map(Result::unwrap).collect()
}

/// Returns a command that runs a script of `examples/fleet` with the Python interpreter.
fn python(shell: &Shell, script: &str) -> Command {
    let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let mut command = Command::new(&python);
    command.arg(examples().join("fleet").join(script)).current_dir(shell.path(""));
    command.env("HOME", shell.path("")).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command.env("PYSPARK_PYTHON", python);
    command
}

/// Returns DuckDB's answers to questions on a dataset.
pub fn duckdb(shell: &Shell, dataset: &str, questions: &[PathBuf]) -> Vec<Value> {
    let mut command = python(shell, "questions.py");
    command.arg(dataset).args(questions).arg("--json");
    answers(command.output().expect("Python starts").into())
}

/// Returns the console's answers to questions on a dataset.
pub fn console(shell: &Shell, dataset: &str, questions: &[PathBuf]) -> Vec<Value> {
    let answer = |file: &PathBuf| {
        let run = shell.run(&[dataset, "-c", &format!(".sql \"{}\" -json", file.display())]).ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let columns = document["columns"].as_array().unwrap();
        let row = |row: &Value| {
            let value = |column: &Value| row[column.as_str().unwrap()].clone();
            columns.iter().map(value).collect::<Value>()
        };
        let rows: Value = document["rows"].as_array().unwrap().iter().map(row).collect();
        json!({ "question": file.file_stem().unwrap().to_str(), "columns": columns, "rows": rows })
    };
    questions.iter().map(answer).collect()
}

/// Spark in its own folder, where its workers write.
pub struct Spark {
    pub home: PathBuf,
}

impl Spark {
    pub fn new(shell: &Shell) -> Self {
        let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
        let print = "import pyspark; print(pyspark.__path__[0])";
        let run = Command::new(python).args(["-c", print]).output().expect("Python starts");
        let installed = ProgramRun::from(run).ok().stdout;
        let home = shell.path("spark");
        fs::create_dir(&home).unwrap();
        for entry in fs::read_dir(Path::new(installed.trim())).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name != "work") {
                symlink(&path, home.join(path.file_name().unwrap())).unwrap();
            }
        }
        Self { home }
    }

    /// Returns a command that runs a script of `examples/fleet` in a cluster of two workers.
    pub fn command(&self, shell: &Shell, script: &str) -> Command {
        let mut command = python(shell, script);
        command.env("SPARK_HOME", &self.home).env("SPARK_LOCAL_IP", "127.0.0.1");
        command.env("PYSPARK_SUBMIT_ARGS", CLUSTER).env("JAVA_TOOL_OPTIONS", JAVA);
        command
    }

    /// Returns the process ids of the running executors.
    pub fn executors(&self) -> Vec<u32> {
        let home = self.home.to_str().expect("a path of text");
        // A process may exit in between.
        let command = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_executor = |pid: &u32| {
            let command = String::from_utf8_lossy(&command(pid)).into_owned();
            command.contains(home) && command.contains("CoarseGrainedExecutorBackend")
        };
        processes().into_iter().filter(is_executor).collect()
    }
}

/// Returns a process and all its running descendants.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it, in parentheses, may contain spaces.
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(next) = family.get(at).copied() {
        family.extend(processes().into_iter().filter(|child| parent(child) == Some(next)));
        at += 1;
    }
    family
}

/// Returns the ids of all processes.
fn processes() -> Vec<u32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Asserts that an engine gives the same answers as another one.
pub fn assert_equal(answers: &[Value], expected: &[Value]) {
    assert_eq!(answers.len(), expected.len());
    for (answer, expected) in answers.iter().zip(expected) {
        let rows = |answer: &Value| answer["rows"].as_array().unwrap().clone();
        let differing =
            rows(answer).into_iter().zip(rows(expected)).find(|(row, expected)| row != expected);
        assert!(answer == expected, "{}: {differing:?}", answer["question"]);
    }
}
