//! Ends of the processes that own handles.

use handlescope_model::tables::Processes;
use handlescope_model::{ArchiveError, Numbers, ProcessIdx, Trace};

use crate::tables::ProcessList;

/// NTSTATUS values with which Windows ends a process that goes wrong, by their meaning in MS-ERREF, section 2.3.1, and
/// those of runtimes: an uncaught exception of C++ (`0xE0000000 | 'msc'`) or of .NET (`0xE0000000 | 'CCR'`).
const CRASHES: [(u32, &str); 13] = [
    (0x8000_0003, "breakpoint"),
    (0xC000_0005, "access violation"),
    (0xC000_0006, "in-page error"),
    (0xC000_001D, "illegal instruction"),
    (0xC000_0025, "noncontinuable exception"),
    (0xC000_0094, "integer division by zero"),
    (0xC000_00FD, "stack overflow"),
    (0xC000_0374, "heap corruption"),
    (0xC000_0409, "fail fast"),
    (0xC000_041D, "unhandled exception in a callback"),
    (0xC000_0420, "assertion failure"),
    (0xE06D_7363, "uncaught C++ exception"),
    (0xE043_4352, "uncaught .NET exception"),
];

/// Exit codes of processes, and which had the pid of another later.
pub struct OwnerEnds {
    pub exit_code: Numbers<i32>,
    /// The next process with the same pid, by row.
    pub next: Vec<Option<ProcessIdx>>,
}

impl OwnerEnds {
    pub fn load(trace: &Trace, processes: &ProcessList) -> Result<Self, ArchiveError> {
        let rows = processes.rows();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| (rows[*row].pid, rows[*row].start_ns));
        let mut next = vec![None; rows.len()];
        for pair in order.windows(2).filter(|pair| rows[pair[0]].pid == rows[pair[1]].pid) {
            next[pair[0]] = Some(ProcessIdx::of(pair[1]));
        }
        Ok(Self { exit_code: trace.values(Processes::exit_code)?, next })
    }

    /// Exit status of a crash and what it means.
    pub fn crash(&self, process: ProcessIdx) -> Option<(u32, &'static str)> {
        let code = self.exit_code.get(process.row())?.cast_unsigned();
        CRASHES.into_iter().find(|(status, _)| *status == code)
    }
}
