//! Which processes run one program: the same executable and, of hosts of services, the same service.

use std::collections::HashMap;
use std::hash::Hash;

use handlescope_model::ProcessIdx;

use super::tables::ProcessList;
use crate::filter::{ProcessFilter, word};

/// Puts what has one key together, in the order of the first of each; what has none stays by itself.
pub(crate) fn united<K: Eq + Hash, T>(
    all: impl IntoIterator<Item = (Option<K>, T)>,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for (key, one) in all {
        let next = groups.len();
        let place = key.map_or(next, |key| *places.entry(key).or_insert(next));
        match groups.get_mut(place) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// The programs of the processes of a trace.
pub(crate) struct Programs<'a> {
    processes: &'a ProcessList,
    /// By row of the processes.
    programs: Vec<Program>,
    /// How many programs processes of an executable run, by its name in lower case.
    of_executable: HashMap<String, usize>,
}

/// A number that all processes of a program have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Program(u32);

impl<'a> Programs<'a> {
    pub(crate) fn of(processes: &'a ProcessList) -> Self {
        let mut known: HashMap<String, Program> = HashMap::new();
        let mut of_executable: HashMap<String, usize> = HashMap::new();
        let mut programs = Vec::with_capacity(processes.rows().len());
        for (row, process) in (0..).zip(processes.rows()) {
            let name = process.program().map(|name| name.to_lowercase());
            let program =
                name.map_or(Program(row), |name| *known.entry(name).or_insert(Program(row)));
            if program == Program(row) {
                *of_executable.entry(process.name.to_lowercase()).or_default() += 1;
            }
            programs.push(program);
        }
        Self { processes, programs, of_executable }
    }

    /// The program of a process; `None` where the process is unknown.
    pub(crate) fn get(&self, process: Option<ProcessIdx>) -> Option<Program> {
        self.programs.get(process?.row()).copied()
    }

    /// The filter that keeps some processes of one program, and none of another: where that is enough, and `by_name`
    /// it may be, the name of the executable.
    pub(crate) fn filter(&self, processes: &[ProcessIdx], by_name: bool) -> Option<String> {
        let name = &self.processes.get(*processes.first()?).name;
        if by_name && self.of_executable.get(&name.to_lowercase()) == Some(&1) {
            return Some(word(name));
        }
        let mut pids: Vec<u32> =
            processes.iter().map(|process| self.processes.get(*process).pid).collect();
        pids.sort_unstable();
        pids.dedup();
        Some(pids.iter().map(u32::to_string).collect::<Vec<_>>().join(";"))
    }

    /// The processes that a value of [`Self::filter`] keeps.
    pub(crate) fn kept_by(&self, filter: &str) -> impl Iterator<Item = ProcessIdx> {
        let filter = ProcessFilter::new(filter).ok();
        (0..).map(ProcessIdx).zip(self.processes.rows()).filter_map(move |(row, process)| {
            filter.as_ref().is_some_and(|filter| process.is_meant_by(filter, false)).then_some(row)
        })
    }
}
