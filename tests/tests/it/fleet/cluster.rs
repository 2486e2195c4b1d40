//! A generated fleet, in a dataset made by a Spark job and in one made by processes on one machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope_path};
use handlescope_tests::fleet::FleetSize;
use handlescope_tests::thorough::one_of;
use handlescope_tests::{needs_linker, needs_spark};
use serde_json::{Deserializer, Value};

use super::contents;
use super::engines::{Spark, assert_equal, console, duckdb, questions, with_descendants};

/// Number of traces in the dataset when an executor is killed.
const ADDED_BEFORE: usize = 5;

/// A generated fleet in a folder.
struct GeneratedFleet {
    shell: Shell,
    truth: Value,
    traces: Vec<PathBuf>,
}

impl GeneratedFleet {
    fn new(fleet: FleetSize) -> Self {
        let shell = Shell::new();
        let truth = fleet.write(&shell.path("fleet")).unwrap();
        let entries = fs::read_dir(shell.path("fleet/traces")).unwrap();
        let mut traces: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        traces.sort();
        assert_eq!(traces.len(), fleet.traces);
        Self { shell, truth, traces }
    }

    /// Adds the traces with two processes at a time, as `examples/fleet/README.md` shows.
    fn add_by_processes(&self, dataset: &str) -> ProgramRun {
        let symbols = self.shell.path("fleet/symbols");
        let mut command = Command::new("xargs");
        command.args(["-0", "-n", "4", "-P", "2"]).arg(handlescope_path());
        command.args(["dataset", "add", dataset, "--symbol-path"]).arg(symbols);
        command.current_dir(self.shell.path("")).env("HOME", self.shell.path(""));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("xargs starts");
        let paths: Vec<&str> = self.traces.iter().map(|path| path.to_str().unwrap()).collect();
        child.stdin.take().unwrap().write_all(paths.join("\0").as_bytes()).unwrap();
        ProgramRun::from(child.wait_with_output().unwrap())
    }

    /// Starts a job that adds the traces and a file that is not a trace, and then answers the questions.
    fn start_job(&self, spark: &Spark, dataset: &str) -> Child {
        fs::write(self.shell.path("damaged.etl"), b"no trace").unwrap();
        let mut list = File::create(self.shell.path("list")).unwrap();
        for path in self.traces.iter().chain([&self.shell.path("damaged.etl")]) {
            writeln!(list, "{}", path.display()).unwrap();
        }
        let mut command = spark.command(&self.shell, "extract_job.py");
        // On an executor, a relative name refers to the executor's own folder.
        command.arg(self.shell.path(dataset)).args(["--traces", "list", "--json", "--program"]);
        command.arg(handlescope_path()).arg("--sql").args(questions());
        command.arg("--").arg("--symbol-path").arg(self.shell.path("fleet/symbols"));
        let output = |name: &str| File::create(self.shell.path(name)).unwrap();
        command.stdout(output("answers")).stderr(output("log"));
        command.spawn().expect("Python starts")
    }
}

/// Returns the number of traces in a dataset.
fn added(dataset: &Path) -> usize {
    fs::read_dir(dataset.join("traces"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|day| fs::read_dir(day.path()).into_iter().flatten().count())
        .sum()
}

/// Kills an executor and its children as soon as the job has added some traces; returns how many it has added.
fn kill_an_executor(job: &mut Child, spark: &Spark, dataset: &Path) -> usize {
    let start = Instant::now();
    while added(dataset) < ADDED_BEFORE {
        assert!(start.elapsed() < Duration::from_secs(300), "the job adds nothing");
        assert!(job.try_wait().unwrap().is_none(), "the job ended early");
        thread::sleep(Duration::from_millis(20));
    }
    let executors = spark.executors();
    assert_eq!(executors.len(), 2, "{executors:?}");
    let family = with_descendants(executors[0]);
    // A child may exit in between, which makes `kill` fail.
    let _ =
        Command::new("kill").arg("-9").args(family.iter().map(u32::to_string)).output().unwrap();
    added(dataset)
}

/// Returns the rows of an answer as objects, by column.
fn rows(answers: &[Value], question: &str) -> Vec<Value> {
    let answer = answers.iter().find(|answer| answer["question"] == question);
    let answer = answer.unwrap_or_else(|| panic!("no answer to {question}"));
    let columns = answer["columns"].as_array().unwrap();
    let object = |row: &Value| {
        columns
            .iter()
            .map(|column| column.as_str().unwrap().to_owned())
            .zip(row.as_array().unwrap().iter().cloned())
            .collect()
    };
    answer["rows"].as_array().unwrap().iter().map(object).collect()
}

/// Asserts that the answers name the true leaks, and no other steadily leaking stack.
fn assert_known_leaks(truth: &Value, answers: &[Value]) {
    let leaks = truth["leaks"].as_array().unwrap();
    let row = |question: &str, leak: &Value| {
        let rows = rows(answers, question);
        let row = rows.iter().find(|row| row["function"] == leak["function"]);
        row.cloned().unwrap_or_else(|| panic!("{question} lacks {leak}: {rows:?}"))
    };
    for leak in leaks {
        let machines = leak["machines"].as_array().unwrap().len();
        let last = leak["builds"].as_array().unwrap().last().unwrap();
        let stack = row("leaking_stacks", leak);
        assert_eq!((&stack["type"], &stack["process"]), (&leak["type"], &leak["process"]));
        assert_eq!(stack["steady_machines"], machines, "{stack}");
        // Handles that are still open at the end of a trace look leaked, too.
        let (leaked, unreleased) = (leak["leaked"].as_f64().unwrap(), stack["unreleased"].as_f64());
        assert!((1.0..1.1).contains(&(unreleased.unwrap() / leaked)), "{stack} {leak}");
        let first = row("first_build", leak);
        assert_eq!(first["first_seen_build"], truth["builds"][0], "{first}");
        assert_eq!(first["first_steady_build"], leak["first_build"], "{first}");
        assert_eq!(first["first_steady_day"], leak["first_day"], "{first}");
        assert_eq!((&first["last_steady_build"], &first["steady_traces"]), (last, &leak["traces"]));
        assert_eq!(row("regressions", leak)["build"], leak["first_build"]);
        let fixed = row("fixed", leak);
        assert_eq!((&fixed["fixed_build"], &fixed["leaking_build"]), (&leak["fixed_in"], last));
    }
    for question in ["regressions", "fixed"] {
        assert_eq!(rows(answers, question).len(), leaks.len(), "{question}");
    }
    let steady = rows(answers, "leaking_stacks");
    let steady = steady.iter().filter(|row| row["steady_machines"] != 0).count();
    assert_eq!(steady, leaks.len());
    let builds = rows(answers, "machines_over_rate");
    assert!(!builds.is_empty());
    for row in builds {
        let leaking = leaks.iter().flat_map(|leak| leak["builds"].as_array().unwrap());
        assert!(leaking.into_iter().any(|build| *build == row["build"]), "{row}");
    }
}

#[needs_linker]
#[needs_spark]
#[test]
fn a_job_that_loses_an_executor_makes_the_dataset_that_processes_make() {
    // One trace per machine on each of ten days: 300 in all, or 60.
    let machines = 30 / one_of(5);
    let fleet = GeneratedFleet::new(FleetSize { traces: 10 * machines, machines, seed: 1 });
    let _ = fleet.add_by_processes("processes").ok();
    let by_processes = contents(&fleet.shell.path("processes"));

    let spark = Spark::new(&fleet.shell);
    let mut job = fleet.start_job(&spark, "cluster");
    let before = kill_an_executor(&mut job, &spark, &fleet.shell.path("cluster"));
    assert!(before < fleet.traces.len(), "the executor was killed too late");
    let status = job.wait().unwrap();
    let log = fs::read_to_string(fleet.shell.path("log")).unwrap();
    assert_eq!(status.code(), Some(1), "one file is no trace: {log}");
    assert!(log.contains("Lost executor"), "{log}");
    let count = fleet.traces.len();
    assert!(log.contains(&format!("{count} of {} traces are in", count + 1)), "{log}");
    assert!(log.contains("1 failed: error: TRACE: "), "{log}");
    let by_job = contents(&fleet.shell.path("cluster"));
    assert_eq!(by_job.keys().collect::<Vec<_>>(), by_processes.keys().collect::<Vec<_>>());
    for (name, content) in &by_job {
        assert!(by_processes[name] == *content, "{} differs", name.display());
    }
    let _ = fleet.shell.run(&["dataset", "check", "cluster"]).ok();

    let output = fs::read_to_string(fleet.shell.path("answers")).unwrap();
    let answers_of_spark: Vec<Value> =
        Deserializer::from_str(&output).into_iter().map(Result::unwrap).collect();
    let answers_of_duckdb = duckdb(&fleet.shell, "processes", &questions());
    assert_equal(&answers_of_spark, &answers_of_duckdb);
    assert_equal(&console(&fleet.shell, "processes", &questions()), &answers_of_duckdb);
    assert_known_leaks(&fleet.truth, &answers_of_duckdb);

    let _ = fleet.add_by_processes("processes").ok();
    assert!(contents(&fleet.shell.path("processes")) == by_processes, "adding again changes it");
    assert_incomplete_traces_do_not_count(&fleet, &answers_of_duckdb);
}

/// A trace without a part in `traces` is still being written.
fn assert_incomplete_traces_do_not_count(fleet: &GeneratedFleet, complete: &[Value]) {
    let day = fleet.shell.path("processes/traces/date=2026-10-01");
    let trace = fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(trace).unwrap();
    let incomplete = duckdb(&fleet.shell, "processes", &questions());
    // Each process of the program fills a pool, in every trace.
    let traces = |answers: &[Value]| {
        rows(answers, "leaking_stacks")
            .into_iter()
            .find(|row| row["function"] == "fleet.exe!fleet::Pool::Fill")
            .and_then(|pool| pool["traces"].as_u64())
    };
    let count = fleet.traces.len() as u64;
    assert_eq!((traces(complete), traces(&incomplete)), (Some(count), Some(count - 1)));
}
