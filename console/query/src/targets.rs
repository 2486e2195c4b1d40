//! The processes and threads that handles refer to.
//!
//! The unique key of a process is the address of its object. Threads have no key: the handle of a new thread is opened by
//! the call that starts it, immediately before the start. In a dump the object has the name of its process or thread.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use handlescope_model::rules::NamedTarget;
use handlescope_model::tables::{
    Acquisitions, Losses, Names, Objects, Origin, Thread, Threads, TraceInfo,
};
use handlescope_model::{
    ArchiveError, EventTable, NameIdx, Numbers, ObjectIdx, ProcessIdx, RowSet, Sparse, Table,
    TableRows, Trace,
};

use super::frame_names::FrameNames;
use super::processes::{AllProcesses, Parents};
use super::start_functions::{ThreadStart, start_functions};
use super::tables::{ProcessInfo, TypeNames};
use handlescope_session::trace::knows_losses;

/// Type of the objects that processes are.
pub const PROCESS: &str = "Process";

/// Type of the objects that threads are.
pub const THREAD: &str = "Thread";

/// Maximum time from making the handle of a new thread to the start of the thread: both are made by the call that
/// creates it.
const START_NS: i64 = 20_000;

/// Processes with one key that are looked at: an address is of one at a time, but starts and ends may be missing.
const SAME_KEY: usize = 16;

/// A process or thread that handles refer to. Times are nanoseconds since session start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The process, or the process of the thread.
    pub process: ProcessInfo,
    /// Row of the process among [`AllProcesses`]; `None` if a dump names it.
    pub row: Option<usize>,
    /// Thread id; `None` for a process.
    pub tid: Option<u32>,
    /// Start; `None` when it was there before the trace, or that is unknown.
    pub start_ns: Option<i64>,
    pub end: TargetEnd,
    /// Exit code of a process that has ended, where it is known.
    pub exit_code: Option<i32>,
    /// The process that started it. Of one that the trace does not have, only the id is known.
    pub started_by: Option<ProcessInfo>,
    /// The function that a thread was started with, as `app.exe!Worker::run`, where it is known.
    pub start_function: Option<String>,
    /// Where that is.
    pub start: Option<ThreadStart>,
    /// Whether nothing is missing in the trace, so that a process without a start was there before it.
    pub is_complete: bool,
}

/// Whether a process or thread has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetEnd {
    /// At this time, negative before the session start.
    At(i64),
    /// It has ended, and nothing says when.
    Ended,
    /// The trace has no end of it and lacks nothing.
    Running,
    /// Its end may be missing.
    Unknown,
}

impl TargetEnd {
    /// Time of the end, where it is known.
    pub fn time_ns(self) -> Option<i64> {
        match self {
            Self::At(time) => Some(time),
            _ => None,
        }
    }

    pub fn has_ended(self) -> bool {
        matches!(self, Self::At(_) | Self::Ended)
    }

    /// Word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::At(_) | Self::Ended => "ended",
            Self::Running => "running",
            Self::Unknown => "unknown",
        }
    }
}

impl Target {
    /// A process of which only the id is known.
    pub fn with_pid(pid: u32) -> Self {
        Self {
            process: ProcessInfo::with_pid(pid),
            row: None,
            tid: None,
            start_ns: None,
            end: TargetEnd::Unknown,
            exit_code: None,
            started_by: None,
            start_function: None,
            start: None,
            is_complete: false,
        }
    }
}

/// What handles to some objects refer to.
#[derive(Debug, Default)]
pub struct Targets {
    targets: Vec<Target>,
    /// Places of targets.
    of_object: HashMap<ObjectIdx, usize>,
}

impl Targets {
    /// Finds the targets of some objects.
    ///
    /// # Errors
    /// When the archive is damaged.
    pub fn load(
        trace: &Trace,
        objects: &Arc<RowSet>,
        types: &TypeNames,
    ) -> Result<Self, ArchiveError> {
        let type_id = trace.values_at(Objects::type_id, objects)?;
        let of_type = |name: &str| -> Vec<ObjectIdx> {
            let is_meant =
                |row: &usize| type_id.get(*row).is_some_and(|type_id| types.get(type_id) == name);
            objects.iter().filter(is_meant).map(ObjectIdx::from_row).collect()
        };
        let (processes, threads) = (of_type(PROCESS), of_type(THREAD));
        if processes.is_empty() && threads.is_empty() {
            return Ok(Self::default());
        }
        if trace.info()?.is_dump() {
            return Self::from_names(trace, objects, processes.into_iter().chain(threads));
        }
        let rows = RowSet::new(
            trace.height(Table::Objects)?,
            processes.iter().chain(&threads).map(|object| object.row()),
        );
        let all = AllProcesses::load(trace)?;
        let known = KnownTargets::load(trace, &all)?;
        let opened = HandleOpenings::load(trace, &rows)?;
        let pointer = trace.values_at(Objects::pointer, objects)?;
        let of_process = processes.iter().filter_map(|object| {
            let life = opened.life(*object);
            Some((*object, HandleTarget::Process(known.process(pointer.get(object.row())?, life)?)))
        });
        let of_thread = threads.iter().filter_map(|object| {
            let (opened_ns, tid) = opened.creation(*object)?;
            Some((*object, HandleTarget::Thread(known.thread(opened_ns, tid)?)))
        });
        let found = of_process.chain(of_thread).map(|(object, target)| (object, target, target));
        Ok(Self::distinct(found, |target| known.target(target)))
    }

    /// Makes one target for each key, from the facts of the first object that refers to it.
    fn distinct<K: Eq + Hash, F>(
        found: impl Iterator<Item = (ObjectIdx, K, F)>,
        target: impl Fn(F) -> Target,
    ) -> Self {
        let mut distinct = Self::default();
        let mut places: HashMap<K, usize> = HashMap::new();
        for (object, key, facts) in found {
            let place = *places.entry(key).or_insert_with(|| {
                distinct.targets.push(target(facts));
                distinct.targets.len() - 1
            });
            distinct.of_object.insert(object, place);
        }
        distinct
    }

    /// Reads the targets of a dump from the names of objects. It says nothing of starts.
    fn from_names(
        trace: &Trace,
        objects: &Arc<RowSet>,
        meant: impl Iterator<Item = ObjectIdx>,
    ) -> Result<Self, ArchiveError> {
        let name: Sparse<_> = trace.values_at(Objects::name, objects)?;
        let names = trace.values(Names::name)?;
        let found = meant.filter_map(|object| {
            let name: NameIdx = name.get(object.row())?;
            let named = NamedTarget::parse(names.get(name.row())?)?;
            Some((object, (named.pid, named.tid), named))
        });
        Ok(Self::distinct(found, |named| Target {
            tid: named.tid,
            end: named.exit_code.map_or(TargetEnd::Running, |_| TargetEnd::Ended),
            exit_code: named.exit_code.filter(|_| named.tid.is_none()),
            ..Target::with_pid(named.pid)
        }))
    }

    /// Finds the names of the functions that threads were started with.
    ///
    /// # Errors
    /// When the archive is damaged.
    pub fn name_functions(
        &mut self,
        trace: &Trace,
        names: &dyn FrameNames,
    ) -> Result<(), ArchiveError> {
        let started = || self.targets.iter().filter_map(|target| target.start);
        let functions = start_functions(trace, names, &started().collect::<Vec<_>>())?;
        let started = self.targets.iter_mut().filter(|target| target.start.is_some());
        for (target, function) in started.zip(functions) {
            target.start_function = function;
        }
        Ok(())
    }

    /// The process or thread that handles to an object refer to; `None` if it is unknown, or the object is neither.
    pub fn of_object(&self, object: ObjectIdx) -> Option<&Target> {
        self.targets.get(self.place(object)?)
    }

    /// The place of that among all targets.
    pub fn place(&self, object: ObjectIdx) -> Option<usize> {
        self.of_object.get(&object).copied()
    }

    /// The target at a place.
    pub fn at(&self, place: usize) -> Option<&Target> {
        self.targets.get(place)
    }
}

/// What a handle was found to refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HandleTarget {
    /// Row of a process, or, behind all of these, of a zombie.
    Process(usize),
    /// Row of a thread.
    Thread(usize),
}

/// The time during which handles to an object are open without a break, so that its address is not used again. From
/// `i64::MIN` on if they are older than the trace, and to `i64::MAX` if one is open at the end.
#[derive(Debug, Clone, Copy)]
struct OpenTime {
    first_ns: i64,
    last_ns: i64,
}

/// The openings and ends of the handles to some objects.
struct HandleOpenings {
    table: Arc<EventTable>,
    opened_ns: Sparse<Numbers<i64>>,
    opened_tid: Sparse<Numbers<u32>>,
    ended_ns: Sparse<Numbers<i64>>,
}

impl HandleOpenings {
    fn load(trace: &Trace, objects: &RowSet) -> Result<Self, ArchiveError> {
        let table = trace.event_table()?;
        let rows = objects.iter().flat_map(|row| table.acquisitions(ObjectIdx::from_row(row)));
        let rows = Arc::new(RowSet::new(trace.height(Table::Acquisitions)?, rows));
        Ok(Self {
            opened_ns: trace.values_at(Acquisitions::opened_ns, &rows)?,
            opened_tid: trace.values_at(Acquisitions::opened_tid, &rows)?,
            ended_ns: trace.values_at(Acquisitions::ended_ns, &rows)?,
            table,
        })
    }

    fn life(&self, object: ObjectIdx) -> OpenTime {
        let rows = || self.table.acquisitions(object);
        let first = rows().map(|row| self.opened_ns.get(row).unwrap_or(i64::MIN)).min();
        let last = rows().map(|row| self.ended_ns.get(row).unwrap_or(i64::MAX)).max();
        OpenTime { first_ns: first.unwrap_or(i64::MIN), last_ns: last.unwrap_or(i64::MAX) }
    }

    /// Time and thread of the first create of a handle.
    fn creation(&self, object: ObjectIdx) -> Option<(i64, u32)> {
        let rows = self.table.acquisitions(object);
        rows.filter(|row| self.table.origin(*row) == Some(Origin::Create))
            .filter_map(|row| Some((self.opened_ns.get(row)?, self.opened_tid.get(row)?)))
            .min()
    }
}

/// The processes and threads that a trace knows.
struct KnownTargets<'a> {
    all: &'a AllProcesses,
    info: Arc<TraceInfo>,
    /// Rows of processes and zombies by key, in the order of their starts. An address may be used again.
    by_key: HashMap<u64, Vec<usize>>,
    parents: Parents<'a>,
    /// The threads whose start the trace has.
    threads: Vec<Thread>,
    /// Places of the threads that a thread started, with their starts, in order.
    by_creator: HashMap<u32, Vec<(i64, usize)>>,
    is_complete: bool,
}

impl<'a> KnownTargets<'a> {
    fn load(trace: &Trace, all: &'a AllProcesses) -> Result<Self, ArchiveError> {
        let info = trace.info()?;
        let mut by_key: HashMap<u64, Vec<usize>> = HashMap::new();
        for (row, process) in all.rows.iter().enumerate().filter(|(_, process)| process.key != 0) {
            by_key.entry(process.key).or_default().push(row);
        }
        by_key.values_mut().for_each(|rows| rows.sort_by_key(|row| all.rows[*row].start_ns));
        // A coarser clock does not show which thread a handle refers to.
        let is_exact = info.clock_step_ns().is_none_or(|step| step <= START_NS);
        let mut by_creator: HashMap<u32, Vec<(i64, usize)>> = HashMap::new();
        let mut threads = Vec::new();
        for thread in Threads::read(trace)?.rows().filter(|_| is_exact) {
            let (Some(creator), Some(start_ns)) = (thread.creator_tid, thread.start_ns) else {
                continue;
            };
            by_creator.entry(creator).or_default().push((start_ns, threads.len()));
            threads.push(thread);
        }
        by_creator.values_mut().for_each(|started| started.sort_unstable());
        let parents = Parents::new(&all.rows);
        let losses = Losses::read(trace)?;
        let is_complete = knows_losses(trace)? && losses.rows().next().is_none();
        Ok(Self { all, info, by_key, parents, threads, by_creator, is_complete })
    }

    /// The row of the process with a key that handles refer to.
    fn process(&self, key: u64, life: OpenTime) -> Option<usize> {
        let rows = self.by_key.get(&key)?;
        let start = |row: &usize| self.all.rows[*row].start_ns;
        let started = rows.partition_point(|row| start(row).is_none_or(|it| it <= life.first_ns));
        let (before, after) = rows.split_at(started);
        let mut latest = before.iter().rev().take(SAME_KEY).copied();
        let there = latest.find(|row| self.there_until(*row) >= life.first_ns);
        // The event of the start comes late, and an object with a handle keeps its address.
        let next = || after.first().filter(|row| start(row) <= Some(life.last_ns)).copied();
        // A handle to a process that has ended: if nothing is missing, no other one has the address.
        let ended = || before.last().filter(|_| self.is_complete).copied();
        there.or_else(next).or_else(ended)
    }

    /// The last time at which a process is known to be in memory.
    fn there_until(&self, row: usize) -> i64 {
        let end_ns = self.all.rows[row].end_ns;
        end_ns.max(self.all.listed_ns[row]).filter(|_| self.has_ended(row)).unwrap_or(i64::MAX)
    }

    fn has_ended(&self, row: usize) -> bool {
        self.all.rows[row].end_ns.is_some() || self.all.listed_ns[row].is_some()
    }

    /// The place of the thread whose handle a thread opened at a time, by starting it.
    fn thread(&self, opened_ns: i64, creator: u32) -> Option<usize> {
        let started = self.by_creator.get(&creator)?;
        let next = started.partition_point(|(start_ns, _)| *start_ns < opened_ns);
        let (start_ns, thread) = *started.get(next)?;
        (start_ns.saturating_sub(opened_ns) <= START_NS).then_some(thread)
    }

    fn target(&self, found: HandleTarget) -> Target {
        match found {
            HandleTarget::Process(row) => self.process_target(row),
            HandleTarget::Thread(place) => self.thread_target(place),
        }
    }

    fn process_target(&self, row: usize) -> Target {
        let process = &self.all.rows[row];
        let (parent, pid) = (self.parents.of_row(row), process.parent_pid);
        let end = match process.end_ns {
            Some(end_ns) => TargetEnd::At(end_ns),
            None if self.has_ended(row) => TargetEnd::Ended,
            None => self.no_end(),
        };
        Target {
            process: self.known(row),
            row: Some(row),
            tid: None,
            start_ns: process.start_ns,
            end,
            exit_code: process.exit_code.filter(|_| end.has_ended()),
            started_by: self.known_or_pid(parent, Some(pid).filter(|pid| *pid != 0)),
            is_complete: self.is_complete,
            ..Target::with_pid(process.pid)
        }
    }

    fn thread_target(&self, place: usize) -> Target {
        let thread = &self.threads[place];
        let row = thread.process.map(ProcessIdx::row);
        let creator =
            thread.creator_pid.and_then(|pid| self.parents.at(pid, thread.start_ns, None));
        let start = || {
            let (process, address) = row.zip(thread.start_address)?;
            Some(ThreadStart { process, time_ns: thread.start_ns?, address })
        };
        Target {
            process: self.known_or_pid(row, Some(thread.pid)).unwrap_or_default(),
            row,
            tid: Some(thread.tid),
            start_ns: thread.start_ns,
            end: thread.end_ns.map_or(self.no_end(), TargetEnd::At),
            started_by: self.known_or_pid(creator, thread.creator_pid),
            start: start(),
            is_complete: self.is_complete,
            ..Target::with_pid(thread.pid)
        }
    }

    fn no_end(&self) -> TargetEnd {
        if self.is_complete { TargetEnd::Running } else { TargetEnd::Unknown }
    }

    fn known(&self, row: usize) -> ProcessInfo {
        ProcessInfo::new(self.all.rows[row].clone(), &self.info)
    }

    fn known_or_pid(&self, row: Option<usize>, pid: Option<u32>) -> Option<ProcessInfo> {
        let row = row.filter(|row| *row < self.all.rows.len());
        row.map(|row| self.known(row)).or_else(|| pid.map(ProcessInfo::with_pid))
    }
}
