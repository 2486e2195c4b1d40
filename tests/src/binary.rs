//! The `handlescope` program, run the way a user runs it.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The built program, which lies beside the folder of the test programs.
///
/// # Panics
/// When it was not built: `cargo test --workspace` builds it.
#[must_use]
pub fn handlescope_path() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let name = format!("handlescope{}", env::consts::EXE_SUFFIX);
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no {name} beside {}: build it first", test.display()))
}

/// What a run of the program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit status; `None` when a signal ended it.
    pub status: Option<i32>,
}

impl Run {
    /// The run, if it ended with status 0.
    ///
    /// # Panics
    /// When it did not; the message shows both streams.
    #[must_use]
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status.code(),
        }
    }
}

/// The program with these arguments, in an environment of its own: no symbol path, no colours, and
/// caches in `home`.
#[must_use]
pub fn handlescope(home: &Path) -> Command {
    let mut command = Command::new(handlescope_path());
    command
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("NO_COLOR")
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("LOCALAPPDATA", home.join("local"))
        .current_dir(home);
    command
}

/// Runs a program with a script as its standard input.
///
/// # Panics
/// When the program cannot be started.
#[must_use]
pub fn run_script(command: &mut Command, script: &str) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let script = script.to_owned();
    // A program that stops at an error closes its input; that is for the test to judge.
    let writer = std::thread::spawn(move || drop(stdin.write_all(script.as_bytes())));
    let output = child.wait_with_output().expect("the program ends");
    let _ = writer.join();
    output.into()
}
