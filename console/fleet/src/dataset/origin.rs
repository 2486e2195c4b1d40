//! Where the rows of a trace come from: its machine, the builds of its programs, its times.

use std::sync::Arc;

use handlescope_extract::SourceIdentity;
use handlescope_model::stable_hash::identity_of;
use handlescope_model::tables::{ModuleLoads, Modules, Processes, TraceInfo, TraceInfos};
use handlescope_model::{ArchiveError, ModuleIdx, ProcessIdx, Trace};
use handlescope_symbols::ModuleIdentity;

use serde::{Deserialize, Serialize};

use super::column::Utc;
use super::tables::{Build, Owner, Place};
use handlescope_query::{build_id, module_identities, session_start_us, start_us};

/// Facts that the user gave for a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLabels {
    /// Machine, instead of the one that the trace names.
    pub machine: Option<String>,
    /// Build of the programs, instead of the versions of their executables.
    pub build: Option<String>,
}

/// Where the rows of a trace come from.
pub struct Origin {
    pub info: Arc<TraceInfo>,
    pub machine: Option<String>,
    given_build: Option<Build>,
    /// Executable module of each process, if the trace has it.
    executables: Vec<Option<ModuleIdx>>,
    /// Builds of the modules.
    builds: Vec<Option<Build>>,
    /// Build identities of the modules.
    pub build_ids: Vec<Option<String>>,
}

impl Origin {
    pub fn new(trace: &Trace, given: &TraceLabels) -> Result<Self, ArchiveError> {
        let info = trace.info()?;
        let versions = trace.values(Modules::file_version)?;
        let modules = module_identities(trace)?;
        let version = |module: usize| Build::from_file_version(versions.get(module)?);
        Ok(Self {
            machine: given.machine.clone().or_else(|| info.computer.clone()),
            given_build: given.build.as_deref().map(Build::new),
            executables: executables(trace, &modules)?,
            builds: (0..modules.len()).map(version).collect(),
            build_ids: modules.iter().map(build_id).collect(),
            info,
        })
    }

    /// Converts a time of the trace.
    pub fn utc(&self, ns: i64) -> Option<Utc> {
        // Rounds down, also before the session start.
        Some(Utc(start_us(&self.info)?.saturating_add(ns.div_euclid(1_000))))
    }

    /// Converts a time of the trace to seconds since session start; `None` if times are only an order.
    pub fn seconds(&self, ns: i64) -> Option<f64> {
        self.info.has_clock().then(|| seconds(ns))
    }

    /// Returns the time that decides the day of the trace: its session start, or else the time of its file.
    pub fn day_us(&self) -> i64 {
        let of_file = self.info.source_modified_ns.map(|ns| ns / 1_000);
        session_start_us(&self.info).or(of_file).unwrap_or_default()
    }

    /// Returns machine and build of a process.
    pub fn place(&self, process: Option<ProcessIdx>) -> Place<'_> {
        let executable = process.and_then(|process| self.executable(process));
        let build = executable.and_then(|module| self.builds.get(module.row())?.as_ref());
        Place { machine: self.machine.as_deref(), build: self.given_build.as_ref().or(build) }
    }

    /// Returns the owner of what a process acquired.
    pub fn owner<'t>(
        &'t self,
        row: Option<ProcessIdx>,
        name: &'t str,
        pid: Option<u32>,
    ) -> Owner<'t> {
        Owner { place: self.place(row), name, row, pid }
    }

    /// Returns the executable module of a process.
    pub fn executable(&self, process: ProcessIdx) -> Option<ModuleIdx> {
        self.executables.get(process.row()).copied().flatten()
    }
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the id of a trace: the hash of its source's content, so that a trace and its extract have the same id. If an
/// extract does not have that hash, uses the hash of its tables.
pub fn trace_id(trace: &Trace) -> Result<String, ArchiveError> {
    let contents = trace.values(TraceInfos::source_content)?;
    let content = contents.get(0).filter(|content| super::is_id(content));
    Ok(content.map_or_else(|| identity_of([trace.id().as_bytes()]), str::to_ascii_lowercase))
}

/// Returns the trace id of a source that is not extracted yet.
pub fn source_id(source: &SourceIdentity) -> String {
    source.content.to_ascii_lowercase()
}

/// Finds the executable module of each process: the first one loaded into it that has its name.
fn executables(
    trace: &Trace,
    modules: &[ModuleIdentity],
) -> Result<Vec<Option<ModuleIdx>>, ArchiveError> {
    let names = trace.values(Processes::name)?;
    let mut executables = vec![None; names.len()];
    let (module, process) =
        (trace.values(ModuleLoads::module)?, trace.values(ModuleLoads::process)?);
    for load in 0..module.len() {
        let Some((module, process)) = module.get(load).zip(process.get(load)) else { continue };
        let Some(slot) = executables.get_mut(process.row()) else { continue };
        let name = modules.get(module.row()).map(|module| module.name.as_str());
        if slot.is_none()
            && name.is_some_and(|name| name.eq_ignore_ascii_case(names.text(process.row())))
        {
            *slot = Some(module);
        }
    }
    Ok(executables)
}
