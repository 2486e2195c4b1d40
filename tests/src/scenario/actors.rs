//! The threads of a scenario that log events, with their processors, and the starts of its processes.

use std::collections::HashMap;

use super::specs::{ProcessSpec, ThreadSpec};

/// A thread on a processor; can be made from `(pid, tid)` and `(pid, tid, cpu)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Processor.
    pub cpu: u16,
}

impl Caller {
    /// Creates a caller on processor 0.
    #[must_use]
    pub fn new(pid: u32, tid: u32) -> Self {
        Self { pid, tid, cpu: 0 }
    }

    /// Moves the thread to another processor.
    #[must_use]
    pub fn on(self, cpu: u16) -> Self {
        Self { cpu, ..self }
    }
}

impl From<(u32, u32)> for Caller {
    fn from((pid, tid): (u32, u32)) -> Self {
        Self::new(pid, tid)
    }
}

impl From<(u32, u32, u16)> for Caller {
    fn from((pid, tid, cpu): (u32, u32, u16)) -> Self {
        Self { pid, tid, cpu }
    }
}

/// Threads and starts, by process id.
#[derive(Debug, Clone, Default)]
pub struct ThreadActors {
    /// Raw times and ids of the threads that logged events, in order.
    acts: HashMap<u32, Vec<(i64, u32)>>,
    /// The first declared thread of each process.
    declared: HashMap<u32, u32>,
    /// Start times of the processes in nanoseconds, in order.
    starts: HashMap<u32, Vec<i64>>,
}

impl ThreadActors {
    pub fn new(acts: &[(i64, Caller)], threads: &[ThreadSpec], processes: &[ProcessSpec]) -> Self {
        let mut actors = Self::default();
        for (time, caller) in acts.iter().filter(|(_, caller)| caller.tid != 0) {
            actors.acts.entry(caller.pid).or_default().push((*time, caller.tid));
        }
        for thread in threads {
            actors.declared.entry(thread.pid).or_insert(thread.tid);
        }
        for process in processes {
            actors.starts.entry(process.record.pid).or_default().extend(process.started);
        }
        actors.acts.values_mut().for_each(|acts| acts.sort_by_key(|(time, _)| *time));
        actors.starts.values_mut().for_each(|starts| starts.sort_unstable());
        actors
    }

    /// Returns the thread of a process that last acted up to a raw time, or any thread if there is none.
    pub fn last_thread(&self, pid: u32, until: i64) -> u32 {
        let acts = self.acts.get(&pid).map_or(&[][..], Vec::as_slice);
        let acted = acts.partition_point(|(time, _)| *time <= until);
        let last = acted.checked_sub(1).map(|last| acts[last].1);
        let declared = || self.declared.get(&pid).copied();
        last.or_else(declared).unwrap_or(if pid == 0 { 0 } else { pid + 4 })
    }

    /// Returns the first start of a pid after a time.
    pub fn next_start(&self, pid: u32, ns: i64) -> Option<i64> {
        let starts = self.starts.get(&pid)?;
        starts.get(starts.partition_point(|start| *start <= ns)).copied()
    }
}
