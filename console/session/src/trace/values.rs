//! Values a loaded trace offers for completion: its processes, object types, names, modules, allocators, and the
//! suspects that answers named.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use handlescope_model::tables::{Allocators, Modules, Names, ObjectTypes, Processes, ResourceKind};
use handlescope_model::{ArchiveError, Columns, Key, TableRows, Trace, guard::lock};

use crate::values::SuspectId;

/// Values of one trace, read on first use and kept.
///
/// A table that cannot be read offers nothing; the query will report what is wrong with it.
#[derive(Debug)]
pub struct TraceValues {
    trace: Arc<Trace>,
    processes: OnceLock<Vec<(String, u32)>>,
    types: OnceLock<Vec<String>>,
    names: OnceLock<Vec<String>>,
    modules: OnceLock<Vec<String>>,
    allocators: OnceLock<Vec<(String, ResourceKind)>>,
    suspects: Mutex<Vec<NamedSuspect>>,
}

/// A suspect named by an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSuspect {
    pub id: SuspectId,
    /// Type, process, and number of handles or allocations the program did not close or free.
    pub description: String,
}

impl TraceValues {
    /// Creates the values without reading anything yet.
    pub fn new(trace: Arc<Trace>) -> TraceValues {
        TraceValues {
            trace,
            processes: OnceLock::new(),
            types: OnceLock::new(),
            names: OnceLock::new(),
            modules: OnceLock::new(),
            allocators: OnceLock::new(),
            suspects: Mutex::default(),
        }
    }

    /// Name and pid of every process, without duplicates, sorted by name.
    pub fn processes(&self) -> &[(String, u32)] {
        self.processes.get_or_init(|| read_processes(&self.trace).unwrap_or_default())
    }

    /// Names of object types, without duplicates, sorted.
    pub fn types(&self) -> &[String] {
        self.types.get_or_init(|| self.texts(ObjectTypes::name))
    }

    /// Names of objects, without duplicates, sorted.
    pub fn names(&self) -> &[String] {
        self.names.get_or_init(|| self.texts(Names::name))
    }

    /// File names of modules, without duplicates, sorted.
    pub fn modules(&self) -> &[String] {
        self.modules.get_or_init(|| self.texts(Modules::name))
    }

    /// Names of allocators with their kinds, without duplicates, sorted.
    pub fn allocators(&self) -> &[(String, ResourceKind)] {
        self.allocators.get_or_init(|| read_allocators(&self.trace).unwrap_or_default())
    }

    /// The suspects that answers named, those of the last answer first. Completion does not search for suspects itself,
    /// because that takes as long as an answer.
    pub fn suspects(&self) -> Vec<NamedSuspect> {
        lock(&self.suspects).clone()
    }

    /// Adds the suspects of an answer.
    pub fn note_suspects(&self, mut named: Vec<NamedSuspect>) {
        let mut suspects = lock(&self.suspects);
        suspects.retain(|known| named.iter().all(|suspect| suspect.id != known.id));
        named.append(&mut suspects);
        *suspects = named;
    }

    /// Forgets the suspects, because their ids change with the names of functions.
    pub fn forget_suspects(&self) {
        lock(&self.suspects).clear();
    }

    /// Returns the distinct texts of a column.
    fn texts<C: Columns>(&self, key: Key<C, String>) -> Vec<String> {
        let Ok(column) = self.trace.values(key) else { return Vec::new() };
        let texts: BTreeSet<&str> =
            column.iter().flatten().filter(|text| !text.is_empty()).collect();
        texts.into_iter().map(str::to_owned).collect()
    }
}

fn read_processes(trace: &Trace) -> Result<Vec<(String, u32)>, ArchiveError> {
    let Processes { name, pid, .. } = Processes::read(trace)?;
    let processes: BTreeSet<(String, u32)> = name.into_iter().zip(pid).collect();
    Ok(processes.into_iter().collect())
}

fn read_allocators(trace: &Trace) -> Result<Vec<(String, ResourceKind)>, ArchiveError> {
    let Allocators { name, kind, .. } = Allocators::read(trace)?;
    let kinds = kind.into_iter().map(ResourceKind::from_code);
    let allocators: BTreeSet<(String, ResourceKind)> =
        name.into_iter().zip(kinds).filter_map(|(name, kind)| Some((name, kind?))).collect();
    Ok(allocators.into_iter().collect())
}

/// Returns the pids of each program, by name.
pub fn programs(values: &[Arc<TraceValues>]) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut programs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (name, pid) in values.iter().flat_map(|values| values.processes()) {
        programs.entry(name).or_default().insert(*pid);
    }
    programs
}
