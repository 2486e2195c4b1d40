//! Ends of the processes and threads that handles refer to.

use std::collections::HashMap;
use std::sync::Arc;

use handlescope_model::tables::{Objects, Processes, Threads};
use handlescope_model::{
    ArchiveError, Numbers, ObjectIdx, ProcessIdx, RowSet, Sparse, TableRows, Trace,
};

/// Maximum time from creating the handle of a new thread to the start of the thread: one call does both.
const START_NS: i64 = 20_000;

/// A process or thread that a handle refers to and that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub target: Target,
    /// When it ended, nanoseconds since session start.
    pub end_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Process(ProcessIdx),
    /// A thread by its id.
    Thread(u32),
}

/// Start and end of a process in nanoseconds, if known.
struct Lifetime {
    process: ProcessIdx,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

/// A thread by its id, with its start and end in nanoseconds.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    start_ns: i64,
    end_ns: Option<i64>,
    tid: u32,
}

/// Processes by kernel address, and threads by who started them.
pub struct Targets {
    /// Addresses of the objects that handles refer to.
    pointer: Sparse<Numbers<u64>>,
    /// Process lifetimes by `UniqueProcessKey`, the address of the process object. An address may be reused.
    processes: HashMap<u64, Vec<Lifetime>>,
    /// The threads started by each thread, in order of start.
    threads: HashMap<u32, Vec<Started>>,
}

impl Targets {
    /// Loads the ends, and the addresses of `objects`.
    pub fn load(trace: &Trace, objects: &Arc<RowSet>) -> Result<Self, ArchiveError> {
        let mut processes: HashMap<u64, Vec<_>> = HashMap::new();
        let table = Processes::read(trace)?;
        let rows = (0..).map(ProcessIdx).zip(table.rows());
        for (row, process) in rows.filter(|(_, process)| process.key != 0) {
            let (start_ns, end_ns) = (process.start_ns, process.end_ns);
            let lifetime = Lifetime { process: row, start_ns, end_ns };
            processes.entry(process.key).or_default().push(lifetime);
        }
        let mut threads: HashMap<u32, Vec<_>> = HashMap::new();
        // A coarser clock does not show which thread a handle refers to.
        let is_exact = trace.info()?.clock_step_ns().is_none_or(|step| step <= START_NS);
        for thread in Threads::read(trace)?.rows().filter(|_| is_exact) {
            if let (Some(creator), Some(start_ns)) = (thread.creator_tid, thread.start_ns) {
                let started = Started { start_ns, end_ns: thread.end_ns, tid: thread.tid };
                threads.entry(creator).or_default().push(started);
            }
        }
        threads.values_mut().for_each(|started| started.sort_unstable());
        Ok(Self { pointer: trace.values_at(Objects::pointer, objects)?, processes, threads })
    }

    /// Returns the ended process that a handle opened at `opened_ns` refers to; `None` if unknown or still running.
    pub fn ended_process(&self, object: ObjectIdx, opened_ns: i64) -> Option<Ended> {
        let lifetimes = self.processes.get(&self.pointer.get(object.row())?)?;
        let alive = lifetimes.iter().filter(|lifetime| {
            lifetime.start_ns.is_none_or(|start| start <= opened_ns)
                && lifetime.end_ns.is_none_or(|end| end >= opened_ns)
        });
        let ended = alive.filter_map(|lifetime| {
            Some(Ended { target: Target::Process(lifetime.process), end_ns: lifetime.end_ns? })
        });
        ended.min_by_key(|ended| ended.end_ns)
    }

    /// Returns the ended thread whose start by `creator` opened the handle; `None` if unknown or still running.
    pub fn ended_thread(&self, opened_ns: i64, creator: u32) -> Option<Ended> {
        let started = self.threads.get(&creator)?;
        let next = started.partition_point(|thread| thread.start_ns < opened_ns);
        let thread = started.get(next)?;
        let is_opened_here = thread.start_ns.saturating_sub(opened_ns) <= START_NS;
        let end_ns = thread.end_ns.filter(|_| is_opened_here)?;
        Some(Ended { target: Target::Thread(thread.tid), end_ns })
    }
}
