//! Processes that run the same program: the same executable and, for service hosts, the same service.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use handlescope_model::ProcessIdx;

use crate::tables::{ProcessInfo, ProcessList};

/// Groups items by key, in the order of the first item of each; items without key stay separate.
pub fn united<K: Eq + Hash, T>(items: impl IntoIterator<Item = (Option<K>, T)>) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut indexes: HashMap<K, usize> = HashMap::new();
    for (key, item) in items {
        let next = groups.len();
        let index = key.map_or(next, |key| *indexes.entry(key).or_insert(next));
        match groups.get_mut(index) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The programs of the processes of a trace.
pub struct ProgramNumbers<'a> {
    processes: &'a ProcessList,
    /// Programs by process row.
    programs: Vec<ProgramNumber>,
    /// Programs with both requested and other processes.
    in_part: HashSet<ProgramNumber>,
}

/// A number shared by all processes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProgramNumber(u32);

impl<'a> ProgramNumbers<'a> {
    pub fn new(processes: &'a ProcessList, is_requested: impl Fn(&ProcessInfo) -> bool) -> Self {
        let mut by_name: HashMap<String, ProgramNumber> = HashMap::new();
        let mut programs = Vec::with_capacity(processes.rows().len());
        let (mut requested, mut not_requested) = (HashSet::new(), HashSet::new());
        for (row, process) in (0..).zip(processes.rows()) {
            let name = process.program().map(|name| name.to_lowercase());
            let program = name.map_or(ProgramNumber(row), |name| {
                *by_name.entry(name).or_insert(ProgramNumber(row))
            });
            programs.push(program);
            let set = if is_requested(process) { &mut requested } else { &mut not_requested };
            set.insert(program);
        }
        let in_part = requested.intersection(&not_requested).copied().collect();
        Self { processes, programs, in_part }
    }

    /// Returns the program of a process; `None` if the process is unknown.
    pub fn get(&self, process: Option<ProcessIdx>) -> Option<ProgramNumber> {
        self.programs.get(process?.row()).copied()
    }

    /// Returns a filter that keeps these processes and no others of their program; `None` if all were requested.
    pub fn filter(&self, processes: &[ProcessIdx]) -> Option<String> {
        let program = self.get(processes.first().copied())?;
        let mut pids: Vec<u32> =
            processes.iter().map(|process| self.processes.get(*process).pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        self.in_part.contains(&program).then(|| pids.join(";"))
    }
}
