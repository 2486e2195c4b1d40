//! The scripts in `examples/fleet`, and the engines that they run.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use handlescope_tests::binary::{Run, Shell, examples};
use serde_json::{Deserializer, Value, json};

/// A cluster of two workers with a core and 1 GiB each.
const CLUSTER: &str = "--master local-cluster[2,1,1024] --conf spark.ui.enabled=false \
    --conf spark.ui.showConsoleProgress=false --conf spark.sql.shuffle.partitions=1 \
    --conf spark.sql.adaptive.enabled=false pyspark-shell";

/// Java starts many programs that each run for seconds: half of their time would go to its optimizing compiler.
const JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// The questions about fleets, by name.
pub fn questions() -> Vec<PathBuf> {
    let entries = fs::read_dir(examples().join("fleet")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    files
}

/// Answers of an engine: a document for each question.
pub fn answers(run: Run) -> Vec<Value> {
    Deserializer::from_str(&run.ok().stdout).into_iter().map(Result::unwrap).collect()
}

/// The Python interpreter with a script of `examples/fleet`.
fn python(shell: &Shell, script: &str) -> Command {
    let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let mut command = Command::new(&python);
    command.arg(examples().join("fleet").join(script)).current_dir(shell.path(""));
    command.env("HOME", shell.path("")).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command.env("PYSPARK_PYTHON", python);
    command
}

/// What DuckDB answers to questions over a dataset.
pub fn duckdb(shell: &Shell, dataset: &str, questions: &[PathBuf]) -> Vec<Value> {
    let mut command = python(shell, "questions.py");
    command.arg(dataset).args(questions).arg("--json");
    answers(command.output().expect("Python starts").into())
}

/// What the console answers to questions over a dataset.
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

/// Spark in a folder of its own, where its workers write.
pub struct Spark {
    pub home: PathBuf,
}

impl Spark {
    pub fn new(shell: &Shell) -> Self {
        let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
        let print = "import pyspark; print(pyspark.__path__[0])";
        let run = Command::new(python).args(["-c", print]).output().expect("Python starts");
        let installed = Run::from(run).ok().stdout;
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

    /// A script of `examples/fleet`, in a cluster of two workers.
    pub fn command(&self, shell: &Shell, script: &str) -> Command {
        let mut command = python(shell, script);
        command.env("SPARK_HOME", &self.home).env("SPARK_LOCAL_IP", "127.0.0.1");
        command.env("PYSPARK_SUBMIT_ARGS", CLUSTER).env("JAVA_TOOL_OPTIONS", JAVA);
        command
    }

    /// Process ids of the executors that run.
    pub fn executors(&self) -> Vec<u32> {
        let home = self.home.to_str().expect("a path of text");
        // A process may end in between.
        let command = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_executor = |pid: &u32| {
            let command = String::from_utf8_lossy(&command(pid)).into_owned();
            command.contains(home) && command.contains("CoarseGrainedExecutorBackend")
        };
        processes().into_iter().filter(is_executor).collect()
    }
}

/// A process and all that it started, which runs.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in front, in brackets, may have spaces.
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

/// Ids of all processes.
fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Asserts that an engine has the answers of another one.
pub fn assert_equal(answers: &[Value], expected: &[Value]) {
    assert_eq!(answers.len(), expected.len());
    for (answer, expected) in answers.iter().zip(expected) {
        let rows = |answer: &Value| answer["rows"].as_array().unwrap().clone();
        let mut rows = rows(answer).into_iter().zip(rows(expected));
        let differing = rows.find(|(row, expected)| row != expected);
        assert!(answer == expected, "{}: {differing:?}", answer["question"]);
    }
}
