//! Processes that have ended but are still in memory, and what keeps them there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use handlescope_model::tables::{Acquisitions, End, Objects, Process};
use handlescope_model::{ArchiveError, ObjectIdx, ProcessIdx, RowSet, StackIdx, Table, Trace};

use super::counts::most_frequent;
use super::criteria::ProcessCriteria;
use super::processes::AllProcesses;
use super::tables::{ProcessList, TypeNames};
use super::targets::{PROCESS, Targets};

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

/// The processes that a trace shows to be zombies: those that its rundowns list, and those that have ended and to which a
/// handle is open.
pub struct KnownZombies {
    /// All processes; behind them those that only handles of a dump name.
    pub all: AllProcesses,
    /// Rows of the zombies.
    pub zombies: BTreeSet<usize>,
    /// Rows of open handles to zombies, ascending, with the rows of these.
    handles: Vec<(usize, usize)>,
}

impl KnownZombies {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let all = AllProcesses::load(trace)?;
        let zombies: BTreeSet<usize> =
            (0..all.rows.len()).filter(|row| all.listed_ns[*row].is_some()).collect();
        let may_have_any = !zombies.is_empty()
            || all.rows.iter().any(|process| process.end_ns.is_some())
            || trace.info()?.is_dump();
        let mut known = Self { all, zombies, handles: Vec::new() };
        let types = TypeNames::load(trace)?;
        if may_have_any && types.names().any(|name| name == PROCESS) {
            known.add_targets(trace, &types)?;
        }
        Ok(known)
    }

    /// Adds the ended processes to which handles are open.
    fn add_targets(&mut self, trace: &Trace, types: &TypeNames) -> Result<(), ArchiveError> {
        let (table, type_id) = (trace.event_table()?, trace.values(Objects::type_id)?);
        let is_open = |row: &usize| table.end(*row) == Some(End::Open);
        let open = |object: usize| table.acquisitions(ObjectIdx::from_row(object)).filter(is_open);
        let is_meant = |object: &usize| {
            type_id.get(*object).is_some_and(|id| types.get(id) == PROCESS)
                && open(*object).next().is_some()
        };
        let height = trace.height(Table::Objects)?;
        let objects = Arc::new(RowSet::new(height, (0..height).filter(is_meant)));
        let targets = Targets::load(trace, &objects, types)?;
        let rows = objects.iter().flat_map(open);
        let rows = Arc::new(RowSet::new(trace.height(Table::Acquisitions)?, rows));
        let owner = trace.values_at(Acquisitions::process, &rows)?;
        let mut named: HashMap<u32, usize> = HashMap::new();
        for object in objects.iter() {
            let target = targets.of_object(ObjectIdx::from_row(object));
            let Some(target) = target.filter(|target| target.end.has_ended()) else { continue };
            // With its end, a process has no handles any more, whatever closes the trace lacks.
            let has_ended = |owner: ProcessIdx| {
                self.all.rows.get(owner.row()).is_some_and(|process| process.end_ns.is_some())
            };
            let handles: Vec<usize> =
                open(object).filter(|row| !owner.get(*row).is_some_and(has_ended)).collect();
            if handles.is_empty() {
                continue;
            }
            let zombie = target.row.unwrap_or_else(|| {
                *named.entry(target.process.pid).or_insert_with(|| {
                    let (pid, exit_code) = (target.process.pid, target.exit_code);
                    self.all.rows.push(Process { pid, exit_code, ..Process::default() });
                    self.all.listed_ns.push(None);
                    self.all.rows.len() - 1
                })
            });
            self.zombies.insert(zombie);
            self.handles.extend(handles.into_iter().map(|row| (row, zombie)));
        }
        self.handles.sort_unstable();
        Ok(())
    }

    /// Counts the zombies by program, if their rows are chosen.
    pub fn count(&self, is_chosen: impl Fn(usize) -> bool) -> ZombieSummary {
        let chosen = self.zombies.iter().filter(|row| is_chosen(**row));
        ZombieSummary::from_names(chosen.map(|row| self.all.rows[*row].name.clone()))
    }
}

impl ZombieSummary {
    /// Counts the zombies that are, or are kept by, the chosen processes, and finds the open handles to them.
    /// `plain`: whether processes go by the names of their executables.
    pub fn load(
        trace: &Trace,
        processes: &ProcessList,
        chosen: &ProcessCriteria,
        plain: bool,
    ) -> Result<Self, ArchiveError> {
        let mut known = KnownZombies::load(trace)?;
        let is_chosen = |row| chosen.matches(processes.known_or_invalid(row), plain);
        let rows = known.handles.iter().map(|(row, _)| *row);
        let rows = Arc::new(RowSet::new(trace.height(Table::Acquisitions)?, rows));
        let owner = trace.values_at(Acquisitions::process, &rows)?;
        let stack = trace.values_at(Acquisitions::opened_stack, &rows)?;
        known.handles.retain(|(row, _)| is_chosen(owner.get(*row)));
        let mut by_owner: BTreeMap<Option<ProcessIdx>, Vec<(usize, usize)>> = BTreeMap::new();
        for (row, zombie) in &known.handles {
            by_owner.entry(owner.get(*row)).or_default().push((*row, *zombie));
        }
        let zombies_of = |handles: &[(usize, usize)]| -> BTreeSet<usize> {
            handles.iter().map(|(_, zombie)| *zombie).collect()
        };
        let held = zombies_of(&known.handles);
        let mut summary =
            known.count(|row| held.contains(&row) || is_chosen(Some(ProcessIdx::from_row(row))));
        summary.held = held.len() as u64;
        let holders = by_owner.into_iter().map(|(owner, handles)| {
            let process = processes.known_or_invalid(owner);
            let stacks = handles.iter().filter_map(|(row, _)| stack.get(*row));
            ZombieHolder {
                process: process.shown_label(plain),
                pid: process.known_pid(),
                zombies: zombies_of(&handles).len() as u64,
                handles: handles.len() as u64,
                create_stack: most_frequent(stacks).first().map(|(stack, _)| *stack),
                program: process.name.clone(),
            }
        });
        summary.holders = holders.collect();
        summary.holders.sort_by_key(|holder| std::cmp::Reverse((holder.zombies, holder.handles)));
        Ok(summary)
    }

    /// Counts zombies by the names of their programs.
    pub fn from_names(names: impl Iterator<Item = String>) -> Self {
        let programs = most_frequent(names);
        let count = programs.iter().map(|(_, count)| count).sum();
        Self { count, programs, ..Self::default() }
    }
}
