//! The small tables, loaded as a whole: processes, object types, and information about the trace.

use std::collections::HashMap;

use handlescope_model::tables::{ObjectTypes, Process, Processes, TraceInfo};
use handlescope_model::{
    ArchiveError, FILE_MAPPING_NAME, FILE_MAPPING_TYPE, ProcessIdx, TableRows, Trace, TypeId,
    UNKNOWN_TYPE_NAME,
};

use super::criteria::ProcessCriteria;
use super::pretty_names::{hosted_service, is_service_host, pretty_name};
use handlescope_session::filter::ProcessFilter;

/// Name printed for an unknown process, as in ETWAnalyzer.
const INVALID: &str = "Invalid";

/// Owner of GDI and USER handles that every process may use and none owns.
const PUBLIC: &str = "public";

/// Name printed for a process if the source does not name its program.
const UNKNOWN: &str = "unknown";

/// One lifetime of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Executable, such as `cmd.exe`.
    pub name: String,
    /// A name that says more than the executable, if there is one.
    pub pretty_name: Option<&'static str>,
    /// Command line; empty if unknown.
    pub command_line: String,
    /// Nanoseconds since session start; `None` if the process started before the trace.
    pub start_ns: Option<i64>,
    /// Nanoseconds since session start; `None` if it outlived the trace.
    pub end_ns: Option<i64>,
    /// Whether it comes from a source without a clock, which may lack program name and process id.
    pub is_of_text: bool,
    /// Whether that source is debugger text, which has hexadecimal process ids.
    pub has_hex_pid: bool,
}

impl ProcessInfo {
    /// Makes a process from a row of a trace.
    pub fn new(process: Process, info: &TraceInfo) -> Self {
        let is_of_text = !info.has_clock();
        Self {
            pid: process.pid,
            pretty_name: pretty_name(&process.name, &process.command_line),
            name: process.name,
            command_line: process.command_line,
            start_ns: process.start_ns,
            end_ns: process.end_ns,
            is_of_text,
            has_hex_pid: is_of_text && !info.is_of_one_moment(),
        }
    }

    /// A process of which only the id is known.
    pub fn with_pid(pid: u32) -> Self {
        Self { pid, is_of_text: true, ..Self::default() }
    }

    /// Returns the owner of handles that every process may use.
    fn public() -> Self {
        Self { name: PUBLIC.to_owned(), ..Self::default() }
    }

    /// Returns the process id; `None` if the source has neither the id nor the name.
    pub fn known_pid(&self) -> Option<u32> {
        Some(self.pid).filter(|pid| *pid != 0 || !self.is_of_text || self.known_name().is_some())
    }

    /// Returns the name of the executable; `None` if the source does not have it.
    pub fn known_name(&self) -> Option<&str> {
        Some(self.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the name for display: the better one if there is one, unless `plain` names are wanted.
    pub fn shown_name(&self, plain: bool) -> &str {
        self.pretty_name.filter(|_| !plain).or(self.known_name()).unwrap_or(UNKNOWN)
    }

    /// Returns `name(pid)` for display.
    pub fn shown_label(&self, plain: bool) -> String {
        match self.known_pid() {
            // An unknown name says nothing.
            Some(pid) if self.is_of_text && self.known_name().is_none() => {
                if self.has_hex_pid {
                    format!("process 0x{pid:x}")
                } else {
                    format!("process {pid}")
                }
            }
            Some(pid) => format!("{}({pid})", self.shown_name(plain)),
            None => self.shown_name(plain).to_owned(),
        }
    }

    /// Returns the program it runs: the executable and, for a service host, the hosted service; `None` if unknown.
    pub fn program(&self) -> Option<String> {
        let name = self.known_name()?;
        if !is_service_host(name) {
            return Some(name.to_owned());
        }
        let service = hosted_service(&self.command_line)?;
        Some(format!("{name} {service}"))
    }

    /// Returns the program for display: the better name of the process if there is one, unless `plain` names are
    /// wanted.
    pub fn shown_program(&self, plain: bool) -> String {
        match self.pretty_name.filter(|_| !plain) {
            Some(name) => name.to_owned(),
            None => self.program().unwrap_or_else(|| self.shown_name(plain).to_owned()),
        }
    }

    /// Whether a filter matches this process by either of its names; with `plain`, only by the executable.
    pub fn matches(&self, filter: &ProcessFilter, plain: bool) -> bool {
        let pretty = self.pretty_name.filter(|_| !plain);
        filter.matches_any(pretty.into_iter().chain([self.name.as_str()]), self.pid)
    }

    /// Returns ` +` if it started in the trace, ` -` if it ended in it, ` +-` for both, or nothing.
    pub fn marks(&self) -> &'static str {
        match (self.start_ns, self.end_ns) {
            (None, None) => "",
            (Some(_), None) => " +",
            (None, Some(_)) => " -",
            (Some(_), Some(_)) => " +-",
        }
    }
}

/// The processes of a trace by row.
#[derive(Debug)]
pub struct ProcessList {
    rows: Vec<ProcessInfo>,
    invalid: ProcessInfo,
}

impl ProcessList {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let info = trace.info()?;
        let processes = Processes::read(trace)?;
        let rows = processes.rows().map(|process| ProcessInfo::new(process, &info));
        let invalid = ProcessInfo { name: INVALID.to_owned(), ..ProcessInfo::default() };
        Ok(Self { rows: rows.collect(), invalid })
    }

    /// Returns the process of a row; `Invalid(0)` if the row does not exist.
    pub fn get(&self, row: ProcessIdx) -> &ProcessInfo {
        self.rows.get(row.row()).unwrap_or(&self.invalid)
    }

    /// Returns the process of a row, or `Invalid(0)` if none is known.
    pub fn known_or_invalid(&self, row: Option<ProcessIdx>) -> &ProcessInfo {
        row.map_or(&self.invalid, |row| self.get(row))
    }

    /// Returns the process of a row; only the id is set if the process is unknown.
    pub fn known_or_pid(&self, row: Option<ProcessIdx>, pid: u32) -> ProcessInfo {
        row.map_or_else(|| ProcessInfo { pid, ..self.invalid.clone() }, |row| self.get(row).clone())
    }

    /// Returns the owner of allocations; without process and with id 0, these are public.
    pub fn owner(&self, row: Option<ProcessIdx>, pid: Option<u32>) -> ProcessInfo {
        match (row, pid) {
            (None, Some(0)) => ProcessInfo::public(),
            (row, pid) => self.known_or_pid(row, pid.unwrap_or_default()),
        }
    }

    /// Returns every process.
    pub fn rows(&self) -> &[ProcessInfo] {
        &self.rows
    }

    /// Computes a value for every process, once for all its events.
    pub fn each<'a, T>(&'a self, of: impl Fn(&'a ProcessInfo) -> T) -> PerProcess<T> {
        PerProcess { rows: self.rows.iter().map(&of).collect(), invalid: of(&self.invalid) }
    }
}

/// A value for each process of a trace, by row.
#[derive(Debug)]
pub struct PerProcess<T> {
    rows: Vec<T>,
    invalid: T,
}

impl<T> PerProcess<T> {
    /// Returns the value for the process of a row, or for `Invalid(0)` if none is known.
    pub fn get(&self, row: Option<ProcessIdx>) -> &T {
        row.and_then(|row| self.rows.get(row.row())).unwrap_or(&self.invalid)
    }
}

/// Processes selected by criteria, each tested once.
pub struct SelectedProcesses {
    criteria: ProcessCriteria,
    verdicts: Vec<bool>,
}

impl SelectedProcesses {
    pub fn new(processes: &ProcessList, criteria: ProcessCriteria) -> Self {
        let verdicts = processes.rows().iter().map(|process| criteria.matches(process, false));
        Self { verdicts: verdicts.collect(), criteria }
    }

    /// Whether the process of a row is selected; if it is unknown, only its id is tested.
    pub fn has(&self, row: Option<ProcessIdx>, pid: u32) -> bool {
        match row {
            Some(row) => self.verdicts.get(row.row()).copied().unwrap_or_default(),
            None => self.criteria.matches(&ProcessInfo { pid, ..ProcessInfo::default() }, false),
        }
    }

    /// Whether the owner of allocations is selected; see [`ProcessList::owner`].
    pub fn has_owner(&self, row: Option<ProcessIdx>, pid: Option<u32>) -> bool {
        match (row, pid) {
            (None, Some(0)) => self.criteria.matches(&ProcessInfo::public(), false),
            (row, pid) => self.has(row, pid.unwrap_or_default()),
        }
    }
}

/// The names of the object types of a trace.
#[derive(Debug)]
pub struct TypeNames(HashMap<TypeId, String>);

impl TypeNames {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let ObjectTypes { type_id, name } = ObjectTypes::read(trace)?;
        let mut by_id: HashMap<TypeId, String> = type_id.into_iter().zip(name).collect();
        by_id.entry(FILE_MAPPING_TYPE).or_insert_with(|| FILE_MAPPING_NAME.to_owned());
        Ok(Self(by_id))
    }

    /// Returns the names of all types.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Returns the name of a type; `UnknownType` for an id that no event named.
    pub fn get(&self, type_id: TypeId) -> &str {
        self.0.get(&type_id).map_or(UNKNOWN_TYPE_NAME, String::as_str)
    }
}
