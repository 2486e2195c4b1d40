//! When the processes and threads ended that handles are of.

use std::collections::HashMap;

use handlescope_model::tables::{Objects, Processes, Threads};
use handlescope_model::{ArchiveError, Numbers, ObjectIdx, TableRows, Trace};

use crate::query::trace_info;

/// How long after the handle of a new thread was made the thread starts at most: both are made by the call
/// that creates it.
const START_NS: i64 = 20_000;

/// Start and end of a process in nanoseconds, where they are known.
type Lifetime = (Option<i64>, Option<i64>);

/// Processes by their kernel address, and threads by who started them.
pub(super) struct Targets {
    pointer: Numbers<u64>,
    /// `UniqueProcessKey`, the address of the process object, with lifetimes. An address may
    /// be used again.
    processes: HashMap<u64, Vec<Lifetime>>,
    /// Start and end of the threads that a thread started, in nanoseconds, by start.
    threads: HashMap<u32, Vec<(i64, Option<i64>)>>,
}

impl Targets {
    pub(super) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let mut processes: HashMap<u64, Vec<_>> = HashMap::new();
        for process in Processes::read(trace)?.rows().filter(|process| process.key != 0) {
            processes.entry(process.key).or_default().push((process.start_ns, process.end_ns));
        }
        let mut threads: HashMap<u32, Vec<_>> = HashMap::new();
        // A clock that stands still for longer does not say which thread a handle is of.
        let is_exact = trace_info(trace)?.clock_step_ns().is_none_or(|step| step <= START_NS);
        for thread in Threads::read(trace)?.rows().filter(|_| is_exact) {
            if let (Some(creator), Some(start)) = (thread.creator_tid, thread.start_ns) {
                threads.entry(creator).or_default().push((start, thread.end_ns));
            }
        }
        threads.values_mut().for_each(|started| started.sort_unstable());
        Ok(Self { pointer: trace.values(Objects::pointer)?, processes, threads })
    }

    /// When the process ended that a handle, opened at a time, is of; `None` when that is not known or
    /// it did not end.
    pub(super) fn process_end(&self, object: ObjectIdx, opened_ns: i64) -> Option<i64> {
        let lifetimes = self.processes.get(&self.pointer.get(object.row())?)?;
        let alive = lifetimes.iter().filter(|(start, end)| {
            start.is_none_or(|start| start <= opened_ns) && end.is_none_or(|end| end >= opened_ns)
        });
        alive.filter_map(|(_, end)| *end).min()
    }

    /// When the thread ended whose handle a thread made at a time, by starting it; `None` when that is
    /// not known or it did not end.
    pub(super) fn thread_end(&self, opened_ns: i64, creator: u32) -> Option<i64> {
        let started = self.threads.get(&creator)?;
        let next = started.get(started.partition_point(|(start, _)| *start < opened_ns))?;
        let (start, end) = *next;
        end.filter(|_| start.saturating_sub(opened_ns) <= START_NS)
    }
}
