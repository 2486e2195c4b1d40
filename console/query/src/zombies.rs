//! Processes that have ended but are still in memory, and what keeps them there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use handlescope_model::tables::{Acquisitions, End, Objects, Zombies};
use handlescope_model::{
    ArchiveError, ObjectIdx, ProcessIdx, RowSet, StackIdx, TableRows, Trace, TypeId,
};

use super::tables::{ProcessList, TypeNames};

/// The object type of processes.
pub const PROCESS: &str = "Process";

/// The zombies of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZombieSummary {
    /// Number of zombies.
    pub count: u64,
    /// Number of zombies by program name, most frequent first.
    pub programs: Vec<(String, u64)>,
    /// Number of zombies kept by open handles in the trace.
    pub held: u64,
    /// The processes with these handles; those that keep the most zombies come first.
    pub holders: Vec<ZombieHolder>,
}

/// A process with open handles to zombies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZombieHolder {
    /// `name.exe(pid)`.
    pub process: String,
    pub pid: Option<u32>,
    /// Number of zombies it keeps.
    pub zombies: u64,
    /// Number of its open handles to them.
    pub handles: u64,
    /// The stack that opened most of these handles; `None` if all are older than the trace.
    pub create_stack: Option<StackIdx>,
    /// The program, for the frames of stacks.
    pub program: String,
}

/// A process's open handles to zombies.
#[derive(Default)]
struct OpenHandles {
    keys: BTreeSet<u64>,
    count: u64,
    stacks: BTreeMap<StackIdx, u64>,
}

impl ZombieSummary {
    /// Counts the zombies and finds the open handles to them: the key of a process is the address of its object. With
    /// `plain`, processes are shown by executable name.
    pub fn load(
        trace: &Trace,
        processes: &ProcessList,
        types: &TypeNames,
        plain: bool,
    ) -> Result<Self, ArchiveError> {
        let Some(mut summary) = Self::counted(trace)? else { return Ok(Self::default()) };
        let keys: BTreeSet<u64> = Zombies::read(trace)?.key.into_iter().collect();
        let (pointer, type_id) = (trace.values(Objects::pointer)?, trace.values(Objects::type_id)?);
        let is_process = |id: Option<TypeId>| id.is_some_and(|id| types.get(id) == PROCESS);
        let mut objects: HashMap<ObjectIdx, u64> = HashMap::new();
        for (row, (pointer, id)) in pointer.iter().zip(type_id.iter()).enumerate() {
            if let Some(key) = pointer.filter(|key| *key != 0 && keys.contains(key))
                && is_process(id)
            {
                objects.insert(ObjectIdx::of(row), key);
            }
        }
        if objects.is_empty() {
            return Ok(summary);
        }
        let object = trace.values(Acquisitions::object)?;
        let end = trace.codes(Acquisitions::end)?;
        let open = object.iter().zip(end.iter()).enumerate().filter_map(|(row, (object, end))| {
            let is_open = End::from_code((*end).into()) == Some(End::Open);
            Some((row, *objects.get(&object.filter(|_| is_open)?)?))
        });
        let open: Vec<(usize, u64)> = open.collect();
        let rows = std::sync::Arc::new(RowSet::new(end.len(), open.iter().map(|(row, _)| *row)));
        let owner = trace.values_at(Acquisitions::process, &rows)?;
        let stack = trace.values_at(Acquisitions::opened_stack, &rows)?;
        let mut by_owner: BTreeMap<Option<ProcessIdx>, OpenHandles> = BTreeMap::new();
        for (row, key) in &open {
            let handles = by_owner.entry(owner.get(*row)).or_default();
            handles.keys.insert(*key);
            handles.count += 1;
            if let Some(stack) = stack.get(*row) {
                *handles.stacks.entry(stack).or_default() += 1;
            }
        }
        summary.held = open.iter().map(|(_, key)| key).collect::<BTreeSet<_>>().len() as u64;
        let holders = by_owner.into_iter().map(|(owner, handles)| {
            let process = processes.known_or_invalid(owner);
            ZombieHolder {
                process: process.shown_label(plain),
                pid: process.known_pid(),
                zombies: handles.keys.len() as u64,
                handles: handles.count,
                // The first one if several are equally frequent.
                create_stack: handles
                    .stacks
                    .into_iter()
                    .rev()
                    .max_by_key(|(_, count)| *count)
                    .map(|(stack, _)| stack),
                program: process.name.clone(),
            }
        });
        summary.holders = holders.collect();
        summary.holders.sort_by_key(|holder| std::cmp::Reverse((holder.zombies, holder.handles)));
        Ok(summary)
    }

    /// Counts the zombies; `None` if there are none.
    pub fn counted(trace: &Trace) -> Result<Option<Self>, ArchiveError> {
        let names = Zombies::read(trace)?.name;
        Ok((!names.is_empty()).then(|| Self::of_names(names)))
    }

    /// Counts zombies by program name.
    pub fn of_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut programs: BTreeMap<String, u64> = BTreeMap::new();
        for name in names {
            *programs.entry(name).or_default() += 1;
        }
        let mut programs: Vec<(String, u64)> = programs.into_iter().collect();
        programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let count = programs.iter().map(|(_, count)| count).sum();
        Self { count, programs, ..Self::default() }
    }
}
