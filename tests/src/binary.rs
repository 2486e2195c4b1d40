//! Runs the `handlescope` program the way a user does.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::Value;
use tempfile::TempDir;

use crate::scenario::TraceBuilder;

/// Returns the path of the built program, beside the folder of the test programs.
///
/// # Panics
/// If it was not built; `cargo test --workspace` builds it.
#[must_use]
pub fn handlescope_path() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let name = format!("handlescope{}", env::consts::EXE_SUFFIX);
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no {name} beside {}: build it first", test.display()))
}

/// Returns the path of the sample trace, `examples/leaky.etl`.
#[must_use]
pub fn sample_trace() -> PathBuf {
    examples().join("leaky.etl")
}

/// Returns the folder with the symbols of the sample trace.
#[must_use]
pub fn sample_symbols() -> PathBuf {
    examples().join("symbols")
}

/// Returns the script of the leak hunt in the sample trace.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn sample_hunt() -> String {
    fs::read_to_string(examples().join("leak-hunt.txt")).expect("the script can be read")
}

/// Returns the folder `examples`.
#[must_use]
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// A temporary folder with a copy of the sample trace, for consecutive runs.
#[derive(Debug)]
pub struct Shell {
    folder: TempDir,
}

impl Shell {
    /// Makes a folder that holds `leaky.etl`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it makes a folder and copies a file")]
    pub fn new() -> Self {
        let shell = Self { folder: tempfile::tempdir().expect("a temporary folder can be made") };
        fs::copy(sample_trace(), shell.path("leaky.etl")).expect("the sample can be copied");
        shell
    }

    /// Returns the path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command with these arguments that runs in the folder, without input.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = handlescope(self.folder.path());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs the program.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> ProgramRun {
        self.command(arguments).output().expect("the program starts").into()
    }

    /// Returns the kinds of `.dump` that its help lists, each with its options.
    ///
    /// # Panics
    /// If the help lists none.
    #[must_use]
    pub fn kinds(&self) -> Vec<DumpKind> {
        let help = self.run(&["-c", ".help .dump"]).ok().stdout;
        let lines = help.lines().skip_while(|line| *line != "Kinds").skip(1);
        let kinds: Vec<DumpKind> = lines
            .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next())
            .map(|name| self.kind(name))
            .collect();
        assert!(!kinds.is_empty(), "{help}");
        kinds
    }

    fn kind(&self, name: &str) -> DumpKind {
        let help = self.run(&["-c", &format!(".help {name}")]).ok().stdout;
        let usages = help.lines().filter_map(|line| line.strip_prefix("  -"));
        let words =
            usages.flat_map(|usage| usage.split("  ").next().unwrap_or_default().split(", "));
        let options = words.map(|usage| format!("-{}", usage.trim_start_matches('-'))).collect();
        DumpKind { name: name.to_owned(), options }
    }

    /// Runs the program with a script as its standard input.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn script(&self, arguments: &[&str], script: &str) -> ProgramRun {
        run_script(&mut self.command(arguments), script)
    }

    /// Runs a line in `sh`, which finds the program, with this input.
    ///
    /// # Panics
    /// If `sh` cannot be started.
    #[must_use]
    pub fn line(&self, line: &str, input: &str) -> ProgramRun {
        let program = handlescope_path();
        let path = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().expect("it is in a folder").display());
        let mut command = clean(Command::new("sh"), self.folder.path());
        command.args(["-c", line]).env("PATH", path).env("PROFILE", self.path("profile.ps1"));
        run_script(&mut command, input)
    }
}

/// A kind of `.dump`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpKind {
    pub name: String,
    /// Options with all their names, as the help writes them: `-TopN N [SKIP]`.
    pub options: Vec<String>,
}

impl DumpKind {
    /// Returns commands that print this kind: as text, and in each format it has.
    #[must_use]
    pub fn in_every_format(&self) -> Vec<String> {
        let name = &self.name;
        let mut commands = vec![format!(".dump {name}")];
        for option in ["-json", "-json-pretty", "-ndjson"] {
            if self.options.iter().any(|usage| usage == option) {
                commands.push(format!(".dump {name} {option}"));
            }
        }
        for option in ["-csv", "-parquet"] {
            let with_file = |usage: &String| usage.split_whitespace().next() == Some(option);
            if self.options.iter().any(with_file) {
                commands.push(format!(".dump {name} {option} {name}.{}", &option[1..]));
            }
        }
        commands
    }
}

/// Runs the program with a script as its input on a trace, which it finds as `trace.etl`.
///
/// # Panics
/// If the trace cannot be written or the program cannot be started.
#[must_use]
pub fn run_over(trace: &TraceBuilder, script: &str) -> ProgramRun {
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    trace.write(home.path().join("trace.etl")).expect("the trace can be written");
    run_script(handlescope(home.path()).arg("trace.etl"), script)
}

/// Output and exit status of a run of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
}

impl ProgramRun {
    /// Returns the run if it ended with status 0.
    ///
    /// # Panics
    /// If it did not; the message shows both streams.
    #[must_use]
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for ProgramRun {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status.code(),
        }
    }
}

/// Returns a command for the program in a clean environment: no symbol path, no colours, and configuration and caches
/// in `home`.
#[must_use]
pub fn handlescope(home: &Path) -> Command {
    clean(Command::new(handlescope_path()), home)
}

fn clean(mut command: Command, home: &Path) -> Command {
    command
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("NO_COLOR")
        .env("PAGER", "")
        // The servers of tests are on this machine and must not go through a proxy.
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("LOCALAPPDATA", home.join("local"))
        .current_dir(home);
    command
}

/// Returns the exit status of a program that should end by itself.
///
/// # Panics
/// If it still runs after a minute. It is ended first, so that no other test waits for it.
#[track_caller]
pub fn ended(program: &mut Child) -> ExitStatus {
    let status = ended_within(program, Duration::from_secs(60));
    status.expect("the program can be waited for").expect("the program ends")
}

/// Returns the exit status of a program, or `None` if it ran for too long and was ended.
///
/// # Errors
/// If it cannot be waited for or ended.
pub fn ended_within(program: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < longest {
        if let Some(status) = program.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(2));
    }
    program.kill()?;
    program.wait()?;
    Ok(None)
}

/// Runs a program with a script as its standard input.
///
/// # Panics
/// If the program cannot be started.
#[must_use]
pub fn run_script(command: &mut Command, script: &str) -> ProgramRun {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let script = script.to_owned();
    // A program that stops at an error closes its input; the test judges that.
    let writer = thread::spawn(move || drop(stdin.write_all(script.as_bytes())));
    let output = child.wait_with_output().expect("the program ends");
    let _ = writer.join();
    output.into()
}

/// Returns the frames of a stack in a document, one `module!function` per line.
#[must_use]
pub fn stack_text(document: &Value, id: &Value) -> String {
    let frame = |frame: &Value| match (&frame["module"], &frame["function"], &frame["rva"]) {
        (Value::String(module), Value::String(function), _) => format!("{module}!{function}"),
        (Value::String(module), _, Value::String(rva)) => format!("{module}+{rva}"),
        _ => "<UnknownMethod>".to_owned(),
    };
    let frames = document["stacks"][id.to_string()].as_array();
    frames.into_iter().flatten().map(frame).collect::<Vec<_>>().join("\n")
}
