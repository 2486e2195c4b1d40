//! The processes of a suspect.

use std::collections::{BTreeSet, HashMap};

use handlescope_model::ProcessIdx;

use super::suspect::SuspectProcess;
use crate::query::context::FileContext;
use crate::query::programs::Programs;

/// The processes that lose something of a group, which run one program.
pub(super) struct Owners {
    /// As far as they are known, each once.
    processes: Vec<ProcessIdx>,
    /// The id of the process, if they are one, or had one id after another.
    pub(super) pid: Option<u32>,
    /// What keeps them and no other program: a filter on processes; `None` where nothing is known of them.
    pub(super) filter: Option<String>,
}

impl Owners {
    /// Processes with their ids, as far as they are known; `by_name` the filter may be the name of the program.
    pub(super) fn new(
        owners: impl IntoIterator<Item = (Option<ProcessIdx>, Option<u32>)>,
        programs: &Programs<'_>,
        by_name: bool,
    ) -> Self {
        let (processes, pids): (BTreeSet<_>, BTreeSet<_>) = owners.into_iter().unzip();
        let processes: Vec<ProcessIdx> = processes.into_iter().flatten().collect();
        let pid = pids.first().copied().flatten().filter(|_| pids.len() == 1);
        let filter = match pid {
            Some(pid) => Some(pid.to_string()),
            None => programs.filter(&processes, by_name),
        };
        Self { processes, pid, filter }
    }

    /// The process, if it is one.
    pub(super) fn sole(&self) -> Option<ProcessIdx> {
        match self.processes.as_slice() {
            [process] => Some(*process),
            _ => None,
        }
    }

    /// The name of all: that of the program, if they are several, else that of the process, which is one of `processes`.
    pub(super) fn name(
        &self,
        file: &FileContext<'_>,
        processes: &[SuspectProcess],
        is_plain: bool,
    ) -> Option<String> {
        match self.are_several() {
            true => Some(file.processes.get(*self.processes.first()?).shown_program(is_plain)),
            false => Some(processes.first()?.process.clone()),
        }
    }

    /// Whether they have different ids.
    pub(super) fn are_several(&self) -> bool {
        self.pid.is_none() && self.processes.len() > 1
    }
}

/// The filters that keep several processes, by process.
#[derive(Default)]
pub(super) struct ProgramFilters {
    of_process: HashMap<ProcessIdx, Vec<String>>,
}

impl ProgramFilters {
    /// Of the groups that need one.
    pub(super) fn of<'o>(
        programs: &Programs<'_>,
        groups: impl Iterator<Item = &'o Owners>,
    ) -> Self {
        let several = groups.filter(|owners| owners.are_several());
        let filters: BTreeSet<&str> =
            several.filter_map(|owners| owners.filter.as_deref()).collect();
        let mut of_process: HashMap<ProcessIdx, Vec<String>> = HashMap::new();
        for filter in filters {
            for process in programs.kept_by(filter) {
                of_process.entry(process).or_default().push(filter.to_owned());
            }
        }
        Self { of_process }
    }

    /// The filters of commands that keep a process: its id, and those of programs.
    pub(super) fn keeping(
        &self,
        process: Option<ProcessIdx>,
        pid: Option<u32>,
    ) -> impl Iterator<Item = Option<String>> {
        let of_programs = process.and_then(|process| self.of_process.get(&process));
        let of_programs = of_programs.into_iter().flatten().cloned().map(Some);
        std::iter::once(pid.map(|pid| pid.to_string())).chain(of_programs)
    }
}
