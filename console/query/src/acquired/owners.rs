//! The processes of a suspect.

use std::collections::BTreeSet;

use handlescope_model::ProcessIdx;

use super::group::AcquisitionOwner;
use super::programs::ProgramNumbers;
use crate::tables::ProcessList;

/// The processes that leak something of a group; all run the same program.
pub struct LeakOwners {
    /// Known processes, each once.
    processes: Vec<ProcessIdx>,
    /// Whether they count as a single process, even if other processes run its program.
    by_process: bool,
    /// The process id, if there is one process or all had the same id one after the other.
    pub pid: Option<u32>,
    /// A process filter that keeps them and no others of their program, if the others were not requested.
    pub filter: Option<String>,
}

impl LeakOwners {
    /// Collects processes with their ids, as far as known; no filter is needed if `by_process`.
    pub fn new(
        owners: impl IntoIterator<Item = AcquisitionOwner>,
        programs: &ProgramNumbers<'_>,
        by_process: bool,
    ) -> Self {
        let (processes, pids): (BTreeSet<_>, BTreeSet<_>) = owners.into_iter().unzip();
        let processes: Vec<ProcessIdx> = processes.into_iter().flatten().collect();
        let pid = pids.first().copied().flatten().filter(|_| pids.len() == 1);
        let filter = programs.filter(&processes).filter(|_| !by_process);
        Self { processes, pid, by_process, filter }
    }

    /// Returns the process, if there is only one.
    pub fn sole(&self) -> Option<ProcessIdx> {
        match self.processes.as_slice() {
            [process] => Some(*process),
            _ => None,
        }
    }

    /// Returns the name of the program, if there are several.
    pub fn program(&self, processes: &ProcessList, is_plain: bool) -> Option<String> {
        let first = self.processes.first().filter(|_| self.are_several())?;
        Some(processes.get(*first).shown_program(is_plain))
    }

    /// Whether there are several with different ids.
    fn are_several(&self) -> bool {
        self.pid.is_none() && self.processes.len() > 1
    }

    /// Returns the parts of an id that tell them from the owners of other suspects: their program, if known and unless
    /// they count as a single process.
    pub fn identity(&self, processes: &ProcessList) -> Vec<String> {
        let first = self.processes.first().map(|row| processes.get(*row));
        let program = first.and_then(|process| process.program()).filter(|_| !self.by_process);
        if let Some(program) = program {
            return vec!["program".to_owned(), program.to_lowercase()];
        }
        let start_ns =
            self.processes.iter().map(|row| processes.get(*row).start_ns).min().flatten();
        let name = first.map_or_else(String::new, |process| process.name.to_lowercase());
        let text = |number: Option<i64>| number.map(|it| it.to_string()).unwrap_or_default();
        vec!["process".to_owned(), name, text(self.pid.map(i64::from)), text(start_ns)]
    }
}
