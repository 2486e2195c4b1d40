//! Damages traces and extracts by seed and runs the program on each, with limits on memory and time. Every run has to
//! end with an answer or an error.

use std::error::Error;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, thread};

use clap::Parser;
use handlescope_tests::binary::{ended_within, handlescope, sample_trace};
use handlescope_tests::corrupt;

/// Damages traces and extracts by seeds and runs the program over each.
#[derive(Debug, Parser)]
struct CorruptionOptions {
    /// Damaged traces
    #[arg(long, default_value_t = 5_000)]
    traces: u64,
    /// Damaged extracts, half of them with ETWAnalyzer's members
    #[arg(long, default_value_t = 2_000)]
    archives: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Another trace than the sample
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Addresses that each run may have, MiB
    #[arg(long, default_value_t = 1_000)]
    memory: u64,
    /// Seconds that each run may take
    #[arg(long, default_value_t = 10)]
    time: u64,
    /// Runs at once
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

/// Commands to run on each file.
const QUESTIONS: [&str; 4] = [
    ".dump Stats",
    ".dump ObjectRef -Leak -ShowStack -json",
    ".dump Stack -TopN 5",
    ".sql SELECT count(*) FROM leaks",
];

/// Outcomes of all runs.
#[derive(Debug, Default)]
struct Figures {
    answered: u64,
    refused: u64,
    /// Files and seeds whose runs ended in any other way, with the reason.
    failed: Vec<String>,
    longest: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = CorruptionOptions::parse();
    let trace = fs::read(options.trace.clone().unwrap_or_else(sample_trace))?;
    let folder = tempfile::tempdir()?;
    let archives = extracts(folder.path(), &trace)?;
    let originals = |case: u64| match case.checked_sub(options.traces) {
        None => ("bad.etl", &trace),
        Some(archive) => ("bad.json7z", &archives[(archive % 2) as usize]),
    };
    let next = Mutex::new(0..options.traces + options.archives);
    let figures = Mutex::new(Figures::default());
    thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| {
                while let Some(case) = next.lock().unwrap().next() {
                    let (name, original) = originals(case);
                    one(&options, case, name, original, &figures).expect("files can be written");
                }
            });
        }
    });
    let Figures { answered, refused, failed, longest } = figures.into_inner()?;
    println!("{answered} answered, {refused} refused, {} failed", failed.len());
    println!("longest run {:.2} s", longest.as_secs_f64());
    failed.iter().for_each(|failure| println!("{failure}"));
    if failed.is_empty() { Ok(()) } else { Err("some runs neither answered nor refused".into()) }
}

/// Makes an extract of the trace, and one with ETWAnalyzer's members.
fn extracts(folder: &Path, trace: &[u8]) -> Result<[Vec<u8>; 2], Box<dyn Error>> {
    fs::write(folder.join("good.etl"), trace)?;
    let names = ["own.json7z", "theirs.json7z"];
    let script = format!(".save {}\n.save {} -etwanalyzer\n", names[0], names[1]);
    let run = handlescope_tests::binary::run_script(handlescope(folder).arg("good.etl"), &script);
    let _ = run.ok();
    Ok([fs::read(folder.join(names[0]))?, fs::read(folder.join(names[1]))?])
}

/// Runs the program on one damaged file.
fn one(
    options: &CorruptionOptions,
    case: u64,
    name: &str,
    original: &[u8],
    figures: &Mutex<Figures>,
) -> Result<(), Box<dyn Error>> {
    let seed = options.seed + case;
    let folder = tempfile::tempdir()?;
    let mut bad = original.to_vec();
    let damage = corrupt::damage(&mut bad, seed);
    fs::write(folder.path().join(name), bad)?;
    let begin = Instant::now();
    let problem = run(options, folder.path(), name)?;
    let mut figures = figures.lock().unwrap();
    figures.longest = figures.longest.max(begin.elapsed());
    match problem {
        Ok(0) => figures.answered += 1,
        Ok(_) => figures.refused += 1,
        Err(reason) => figures.failed.push(format!("{name}, seed {seed}, {damage:?}: {reason}")),
    }
    Ok(())
}

/// Runs the program once; returns the exit status, or what is wrong with how it ended.
fn run(
    options: &CorruptionOptions,
    folder: &Path,
    name: &str,
) -> Result<Result<i32, String>, Box<dyn Error>> {
    let program = handlescope(folder);
    let mut command = Command::new("sh");
    let limit = format!("ulimit -v {}; exec \"$@\"", options.memory << 10);
    command.args(["-c", &limit, "sh"]).arg(program.get_program()).args(["--keep-going", name]);
    command.args(QUESTIONS.iter().flat_map(|question| ["-c", question]));
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(folder).stdin(Stdio::null());
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let mut child =
        command.stdout(fs::File::create(&out)?).stderr(fs::File::create(&err)?).spawn()?;
    let Some(status) = ended_within(&mut child, Duration::from_secs(options.time))? else {
        return Ok(Err(format!("takes longer than {} s", options.time)));
    };
    let mut text = Vec::new();
    for path in [&out, &err] {
        fs::File::open(path)?.read_to_end(&mut text)?;
    }
    let text = String::from_utf8_lossy(&text);
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    Ok(match (status.code(), status.signal()) {
        (_, Some(signal)) => Err(format!("signal {signal}")),
        (Some(0 | 1), _) if text.contains("panicked") || text.contains("this is a bug") => {
            Err("a panic".into())
        }
        (Some(0 | 1), _) if text.contains(is_control) => Err("control characters".into()),
        (Some(code @ (0 | 1)), _) => Ok(code),
        (code, _) => Err(format!("status {code:?}")),
    })
}
