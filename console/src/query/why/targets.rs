//! When the processes and threads ended that handles are of.

use std::collections::HashMap;

use handlescope_model::tables::{Objects, Processes};
use handlescope_model::{ArchiveError, Numbers, TableRows, Trace};

/// Processes by their kernel address, and ends of threads.
pub(super) struct Targets {
    pointer: Numbers<u64>,
    /// `UniqueProcessKey`, the address of the process object, with lifetimes in nanoseconds. An address may
    /// be used again.
    processes: HashMap<u64, Vec<(Option<i64>, Option<i64>)>>,
}

impl Targets {
    pub(super) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let mut processes: HashMap<u64, Vec<_>> = HashMap::new();
        for process in Processes::read(trace)?.rows().filter(|process| process.key != 0) {
            processes.entry(process.key).or_default().push((process.start_ns, process.end_ns));
        }
        Ok(Self { pointer: trace.values(Objects::pointer)?, processes })
    }

    /// When the process ended that a handle, opened at a time, is of; `None` when that is not known or
    /// it did not end.
    pub(super) fn end(&self, object: usize, opened_ns: i64, _tid: Option<u32>) -> Option<i64> {
        let lifetimes = self.processes.get(&self.pointer.get(object)?)?;
        let alive = lifetimes.iter().filter(|(start, end)| {
            start.is_none_or(|start| start <= opened_ns) && end.is_none_or(|end| end >= opened_ns)
        });
        alive.filter_map(|(_, end)| *end).min()
    }
}
