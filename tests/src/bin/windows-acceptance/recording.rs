//! Records the program in each way, and compares each recording with its truth.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use handlescope_tests::acceptance::Check;

use crate::ProgramPaths;
use crate::ways::{RecordingTool, RecordingWay, WAYS};

/// Time to wait for a session to start.
const START: Duration = Duration::from_secs(5);

/// Extra seconds of `handlescope record` beyond those of the program.
const MARGIN_S: u64 = 20;

/// `live` ends when the program has more open handles than this.
const LIVE_HANDLES: u64 = 60;

/// Everything that was recorded.
#[derive(Debug, Default)]
pub struct RecordingReport {
    pub recordings: Vec<CheckedRecording>,
}

/// A recording and the result of its checks.
#[derive(Debug)]
pub struct CheckedRecording {
    pub name: String,
    pub trace: PathBuf,
    pub truth: PathBuf,
    pub result: Result<Vec<Check>, MissReason>,
}

/// Reason why nothing was compared.
#[derive(Debug)]
pub enum MissReason {
    /// Something is missing on this machine.
    NotChecked(String),
    Failed(String),
}

impl RecordingReport {
    pub fn has_failed(&self) -> bool {
        self.recordings.iter().any(CheckedRecording::has_failed)
    }
}

impl CheckedRecording {
    pub fn has_failed(&self) -> bool {
        match &self.result {
            Ok(checks) => checks.iter().any(Check::has_failed),
            Err(MissReason::Failed(_)) => true,
            Err(MissReason::NotChecked(_)) => false,
        }
    }

    /// Returns a line for each check.
    pub fn lines(&self) -> Vec<String> {
        match &self.result {
            Ok(checks) => checks.iter().map(|check| format!("{}: {check}", self.name)).collect(),
            Err(MissReason::NotChecked(reason)) => {
                vec![format!("{}: not checked: {reason}", self.name)]
            }
            Err(MissReason::Failed(reason)) => vec![format!("{}: FAILED: {reason}", self.name)],
        }
    }
}

/// Records in every way with a name that contains `only`, and watches one run with `live`.
pub fn run_all(
    programs: &ProgramPaths,
    folder: &Path,
    seconds: u64,
    only: Option<&str>,
) -> RecordingReport {
    let mut report = RecordingReport::default();
    let is_requested = |name: &str| only.is_none_or(|only| name.contains(only));
    for way in WAYS.iter().filter(|way| is_requested(way.name)) {
        let trace = folder.join(format!("{}.etl", way.name));
        let truth = folder.join(format!("{}.ndjson", way.name));
        let result = record(programs, way, &trace, &truth, seconds)
            .and_then(|()| programs.checks(&truth, &trace).map_err(MissReason::Failed));
        let recording = CheckedRecording { name: way.name.to_owned(), trace, truth, result };
        recording.lines().iter().for_each(|line| println!("{line}"));
        report.recordings.push(recording);
    }
    if is_requested("live") {
        let truth = folder.join("live.ndjson");
        let result = live(programs, &truth, seconds).map(|()| Vec::new());
        let trace = folder.join("live.etl");
        let recording = CheckedRecording { name: "live".to_owned(), trace, truth, result };
        if recording.result.is_ok() {
            println!("live: ok           lists the program while it leaks");
        }
        recording.lines().iter().for_each(|line| println!("{line}"));
        report.recordings.push(recording);
    }
    report
}

/// A running leaky-program that waits for its line.
struct Leaky {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pid: u32,
}

impl Leaky {
    fn start(programs: &ProgramPaths, truth: &Path, seconds: u64) -> Result<Self, MissReason> {
        let _ = fs::remove_file(truth);
        let mut process = Command::new(&programs.leaky)
            .arg(truth)
            .args([&seconds.to_string(), "--wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&programs.leaky, &error.to_string()))?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(failed(&programs.leaky, "no pipes"));
        };
        let mut leaky = Self { process, input, output: BufReader::new(output), pid: 0 };
        let ready = leaky.line()?;
        let pid = ready.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
        leaky.pid = pid.ok_or_else(|| failed(&programs.leaky, &ready))?;
        Ok(leaky)
    }

    fn line(&mut self) -> Result<String, MissReason> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| MissReason::Failed(error.to_string()))?;
        Ok(line.trim_end().to_owned())
    }

    /// Lets it leak until it waits with its leaks open.
    fn leak(&mut self) -> Result<(), MissReason> {
        writeln!(self.input).map_err(|error| MissReason::Failed(error.to_string()))?;
        match self.line()?.as_str() {
            "done" => Ok(()),
            line => Err(MissReason::Failed(format!("leaky-program ended early: {line}"))),
        }
    }

    /// Lets it exit.
    fn end(mut self) {
        drop(self.input);
        let _ = self.process.wait();
    }
}

/// Records the program in one way.
fn record(
    programs: &ProgramPaths,
    way: &RecordingWay,
    trace: &Path,
    truth: &Path,
    seconds: u64,
) -> Result<(), MissReason> {
    let mut leaky = Leaky::start(programs, truth, seconds)?;
    let recorded = match way.tool {
        RecordingTool::Record => with_record(programs, way, trace, seconds, &mut leaky),
        RecordingTool::Wpr => {
            with_wpr(way.options.iter().map(|word| (*word).to_owned()), trace, &mut leaky)
        }
        RecordingTool::Profile => {
            let profile = trace.with_extension("wprp");
            let mut command = Command::new(&programs.handlescope);
            command.arg("wprp").arg(&profile).arg("--force").args(way.options(leaky.pid));
            run(&mut command).map_err(MissReason::Failed).and_then(|_| {
                let start = format!("{}!Handle", profile.display());
                with_wpr([start].into_iter(), trace, &mut leaky)
            })
        }
    };
    leaky.end();
    recorded
}

fn with_record(
    programs: &ProgramPaths,
    way: &RecordingWay,
    trace: &Path,
    seconds: u64,
    leaky: &mut Leaky,
) -> Result<(), MissReason> {
    let mut command = Command::new(&programs.handlescope);
    command.arg("record").arg(trace).args(way.options(leaky.pid));
    command.args(["--force", "--duration", &(seconds + MARGIN_S).to_string()]);
    let recorder = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let recorder = recorder.map_err(|error| failed(&programs.handlescope, &error.to_string()))?;
    thread::sleep(START);
    let leaked = leaky.leak();
    let output = recorder.wait_with_output();
    let output = output.map_err(|error| MissReason::Failed(error.to_string()))?;
    if output.status.success() {
        leaked
    } else {
        Err(MissReason::Failed(last_line(&output.stderr)))
    }
}

fn with_wpr(
    profile: impl Iterator<Item = String>,
    trace: &Path,
    leaky: &mut Leaky,
) -> Result<(), MissReason> {
    if Command::new("wpr").arg("-status").output().is_err() {
        return Err(MissReason::NotChecked("wpr is not installed".to_owned()));
    }
    let start: Vec<String> = profile.flat_map(|profile| ["-start".to_owned(), profile]).collect();
    run(Command::new("wpr").args(start).arg("-filemode")).map_err(MissReason::Failed)?;
    let leaked = leaky.leak();
    run(Command::new("wpr").arg("-stop").arg(trace)).map_err(MissReason::Failed)?;
    leaked
}

/// Watches the program until it has many handles, and looks for it in the table.
fn live(programs: &ProgramPaths, truth: &Path, seconds: u64) -> Result<(), MissReason> {
    let mut leaky = Leaky::start(programs, truth, seconds)?;
    let condition = format!("pn leaky-program.exe handles > {LIVE_HANDLES}");
    let mut command = Command::new(&programs.handlescope);
    command.args(["live", "--stop-when", &condition]).stdin(Stdio::null());
    let watcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let watcher = watcher.map_err(|error| failed(&programs.handlescope, &error.to_string()))?;
    thread::sleep(START);
    let leaked = leaky.leak();
    let output = watcher.wait_with_output();
    leaky.end();
    leaked?;
    let output = output.map_err(|error| MissReason::Failed(error.to_string()))?;
    if !output.status.success() {
        return Err(MissReason::Failed(last_line(&output.stderr)));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    if table.contains("leaky-program.exe") && table.contains("leak_events") {
        Ok(())
    } else {
        Err(MissReason::Failed(format!("the table is without leak_events:\n{table}")))
    }
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
/// The last line on standard error, or on standard output if there is none.
pub fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(format!("{command:?}: {}", last_line(said)))
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim_end().lines().next_back().unwrap_or("no message").to_owned()
}

fn failed(program: &Path, reason: &str) -> MissReason {
    MissReason::Failed(format!("{}: {reason}", program.display()))
}
