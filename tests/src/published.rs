//! Published traces with their symbols.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{handlescope, run_script};
use crate::data::SharedTrace;

/// A published trace with its symbols, ready to be queried.
pub struct PublishedTrace {
    home: TempDir,
    pdbs: TempDir,
    name: String,
}

impl PublishedTrace {
    /// Copies a trace from the folder of published traces.
    ///
    /// # Panics
    /// If it is missing or cannot be copied.
    #[must_use]
    pub fn open(name: &str) -> Self {
        Self::in_folder("synthetic", name)
    }

    /// Copies the small trace of a known fault.
    ///
    /// # Panics
    /// If it is missing or cannot be copied.
    #[must_use]
    pub fn fault(name: &str) -> Self {
        Self::in_folder("faults", name)
    }

    fn in_folder(folder: &str, name: &str) -> Self {
        let trace = SharedTrace::open(&format!("{folder}/{name}"));
        let home = tempfile::tempdir().unwrap();
        let name = format!("{name}.etl");
        fs::copy(trace.etl(), home.path().join(&name)).unwrap();
        Self { home, pdbs: trace.pdbs(), name }
    }

    /// Returns the output of a command.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn ask(&self, line: &str) -> String {
        self.ask_with(line, &[])
    }

    /// Like [`Self::ask`], with extra environment variables.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn ask_with(&self, line: &str, variables: &[(&str, &str)]) -> String {
        let mut program = handlescope(self.home.path());
        program.envs(variables.iter().copied());
        let symbols = self.pdbs.path().join("symbols");
        let symbols = if symbols.is_dir() { &symbols } else { self.pdbs.path() };
        program.arg("--symbol-path").arg(symbols).arg(&self.name);
        run_script(&mut program, &format!("{line}\n")).ok().stdout
    }

    /// Returns the content of the file that a command writes.
    ///
    /// # Panics
    /// If it fails, or there is no such file.
    #[must_use]
    pub fn picture(&self, line: &str, file: &str) -> String {
        let _ = self.ask(line);
        fs::read_to_string(self.home.path().join(file)).unwrap()
    }

    /// Returns the answer of `.why`.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    pub fn why(&self) -> Value {
        serde_json::from_str(&self.ask(".why -json")).unwrap()
    }
}
