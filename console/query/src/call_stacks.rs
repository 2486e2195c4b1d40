//! `.dump Stack`: the most frequent stacks, whatever events the extract kept them for.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use handlescope_model::tables::{
    Acquisitions, Allocators, End, EventCounts, ProviderEvents, StackEvents,
};
use handlescope_model::{
    AcquisitionIdx, EventColumns, EventTimes, Numbers, ProcessIdx, StackIdx, Table, Trace,
};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::context::Source;
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::frame_names::{FrameNames, FrameStats, Frames};
use super::frame_view::ModuleBases;
use super::info::check_clock;
use super::list_answer::{FilteredList, ListAnswer, list_answers};
use super::no_match::ListSubject;
use super::stacks::{StackSet, judge};
use super::tables::{ProcessInfo, ProcessList, SelectedProcesses};
use crate::criteria::StackCriteria;
use handlescope_session::cancel::Cancel;
use handlescope_session::values::{CountRange, TimeRange};

/// Number of rows that one thread counts at a time, at least.
const ROWS_AT_ONCE: usize = 1 << 16;

/// What `.dump Stack` says about one trace.
pub type StacksAnswer<'a> = ListAnswer<'a, StackList<'a>>;

/// The stacks of one trace.
pub struct StackList<'a> {
    /// Whether the extract kept the stacks of all events that the system recorded, or only those of handle events and
    /// allocations. Stacks carried by provider events are there if the extract has these events.
    pub has_every_stack: bool,
    /// Stats of the frames in all stacks that passed.
    pub stats: FrameStats,
    /// Number of stacks that passed the filters.
    pub passed: u64,
    /// Number of times they were recorded.
    pub recorded: u64,
    /// The requested stacks among them, most frequent first.
    pub rows: Vec<ProcessStack>,
    pub frames: Frames<'a>,
    pub bases: ModuleBases,
    processes: ProcessList,
    /// The processes of all stacks that passed.
    owners: BTreeSet<ProcessIdx>,
}

/// A stack of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStack {
    /// Events with this stack.
    pub count: u64,
    /// Process id.
    pub pid: u32,
    /// Row of the process, if known.
    pub process: Option<ProcessIdx>,
    pub stack: StackIdx,
}

/// Answers `.dump Stack`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn call_stacks<'a>(
    sources: &[Source<'a>],
    args: &StackCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<StacksAnswer<'a>>, QueryError> {
    list_answers(sources, args, |source, args| StackList::new(source, args, names, cancel))
}

impl FilteredList for StackList<'_> {
    const SUBJECT: ListSubject = ListSubject::Stack;

    /// Returns the names of processes with stacks.
    fn names(&self, criterion: Criterion) -> BTreeSet<String> {
        let name = |row: &ProcessIdx| self.processes.get(*row).shown_name(false).to_owned();
        match criterion {
            Criterion::Process => self.owners.iter().map(name).collect(),
            _ => BTreeSet::new(),
        }
    }
}

impl<'a> StackList<'a> {
    fn new(
        source: &Source<'a>,
        args: &StackCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<(Self, Survivors), QueryError> {
        let trace = source.trace;
        check_clock(trace, source.path, args)?;
        let is_extracted = trace.height(Table::StackEvents)? > 0;
        let processes = ProcessList::load(trace)?;
        let frames = Frames::load(trace, names, source.frames, source.system, cancel)?;
        let mut rows = counted(trace, is_extracted, &processes, args.time, cancel)?;
        let mut survivors = Survivors::new(rows.len());
        if args.time.is_some() {
            if rows.is_empty() {
                // The number of stacks at all times matters only if no stack is in the range.
                survivors =
                    Survivors::new(counted(trace, is_extracted, &processes, None, cancel)?.len());
            }
            survivors.note(Criterion::MinMaxTime, rows.len());
        }
        for (criterion, part) in args.processes.parts() {
            let selected = SelectedProcesses::new(&processes, part);
            survivors.keep(criterion, &Some(selected), &mut rows, |selected, row| {
                selected.has(row.process, row.pid)
            });
        }
        survivors.keep(Criterion::Id, &args.ids, &mut rows, |ids, row| {
            let max = if ids.max == u64::MAX { ids.min } else { ids.max };
            CountRange { max, ..*ids }.contains(u64::from(row.stack.0))
        });
        let mut stacks = StackSet::new(frames.stacks.len());
        rows.iter().for_each(|row| stacks.add(Some(row.stack)));
        let verdicts = args.stack_filter.as_ref();
        let verdicts = verdicts.map(|filter| judge(filter, &stacks, &frames)).transpose()?;
        survivors.keep(Criterion::StackFilter, &verdicts, &mut rows, |verdicts, row| {
            verdicts.passes(Some(row.stack))
        });
        rows.sort_unstable_by_key(|row| (Reverse(row.count), row.pid, row.stack, row.process));
        let passed = rows.len() as u64;
        let owners = rows.iter().filter_map(|row| row.process).collect();
        let recorded_count = rows.iter().map(|row| row.count).sum();
        let stats = frames.stats(rows.iter().map(|row| (row.stack, row.count)));
        if let Some(top) = args.top {
            rows = rows.into_iter().skip(top.skip).take(top.take).collect();
        }
        let shown = rows.iter().map(|row| row.stack);
        if args.stacks.show || args.with_identities {
            frames.resolve(shown)?;
        } else {
            frames.resolve_representative(shown)?;
        }
        let list = Self {
            has_every_stack: is_extracted || trace.info()?.stack_fragments == 0,
            stats,
            passed,
            recorded: recorded_count,
            rows,
            frames,
            bases: ModuleBases::load(trace)?,
            processes,
            owners,
        };
        Ok((list, survivors))
    }

    /// Returns the process of a row; only the id is set if the process is unknown.
    pub fn process(&self, row: ProcessStack) -> ProcessInfo {
        self.processes.known_or_pid(row.process, row.pid)
    }
}

/// A stack as it was recorded.
struct RecordedStack {
    time_ns: Option<i64>,
    process: Option<ProcessIdx>,
    pid: Option<u32>,
    stack: StackIdx,
}

/// Counts of stacks by process, and by process id if the process is unknown.
type StackCounts = HashMap<(Option<ProcessIdx>, Option<u32>, StackIdx), u64>;

/// Counts recorded stacks.
struct StackCounter {
    /// The time in which they count; `None` for all.
    time: Option<RangeInclusive<i64>>,
    counts: StackCounts,
}

impl StackCounter {
    /// Counts the stacks of the rows of a table.
    fn add(&mut self, rows: usize, recorded: impl Fn(usize) -> Option<RecordedStack> + Sync) {
        let is_in_time = |time_ns: Option<i64>| match &self.time {
            Some(range) => time_ns.is_some_and(|ns| range.contains(&ns)),
            None => true,
        };
        let rows = (0..rows).into_par_iter().with_min_len(ROWS_AT_ONCE);
        let parts = rows.fold(StackCounts::new, |mut counts, row| {
            if let Some(RecordedStack { process, pid, stack, .. }) =
                recorded(row).filter(|recorded| is_in_time(recorded.time_ns))
            {
                let pid = pid.filter(|_| process.is_none());
                *counts.entry((process, pid, stack)).or_default() += 1;
            }
            counts
        });
        for (key, count) in parts.collect::<Vec<StackCounts>>().into_iter().flatten() {
            *self.counts.entry(key).or_default() += count;
        }
    }

    /// Counts the stacks of events, given the columns of their table.
    fn add_rows(
        &mut self,
        time_ns: &Numbers<i64>,
        process: &Numbers<ProcessIdx>,
        pid: &Numbers<u32>,
        stack: &Numbers<StackIdx>,
    ) {
        self.add(stack.len(), |row| {
            let (time_ns, process, pid) = (time_ns.get(row), process.get(row), pid.get(row));
            Some(RecordedStack { time_ns, process, pid, stack: stack.get(row)? })
        });
    }

    /// Counts the stacks of object events.
    fn add_objects(&mut self, trace: &Trace) -> Result<(), QueryError> {
        let (times, columns) = (EventTimes::load(trace)?, EventColumns::with_all(trace)?);
        let (processes, stacks, table) = (columns.processes()?, columns.stacks()?, &times.table);
        self.add(table.height(), |event| {
            let stack = stacks.get(event)?;
            // An unmap that ended several views counts once.
            if let Some(row) = table.numbering.acquisition(event).map(AcquisitionIdx::row)
                && ![table.opening(row), table.ending(row)].contains(&Some(event))
            {
                return None;
            }
            let (time_ns, process) = (times.get(event), processes.get(event));
            Some(RecordedStack { time_ns, process, pid: None, stack })
        });
        Ok(())
    }

    /// Counts the stacks that allocated and the stacks that freed, each in the process of the owner. Ends caused by a
    /// reallocation or by an event of a further part are left out, because their stack is that of another row.
    fn add_allocations(&mut self, trace: &Trace) -> Result<(), QueryError> {
        let (allocator, is_elsewhere) =
            (trace.values(Acquisitions::allocator)?, is_of_kept_events(trace)?);
        let (process, pid) = (trace.values(Allocators::process)?, trace.values(Allocators::pid)?);
        let recorded = |row: usize, time_ns, stack| {
            let owner = allocator.get(row)?.row();
            let (process, pid) = (process.get(owner), pid.get(owner));
            let is_counted = is_elsewhere.get(owner).is_some_and(|is_elsewhere| !is_elsewhere);
            is_counted.then_some(RecordedStack { time_ns, process, pid, stack })
        };
        let (opened_ns, opened_stack) =
            (trace.values(Acquisitions::opened_ns)?, trace.values(Acquisitions::opened_stack)?);
        let part_of = trace.values(Acquisitions::part_of)?;
        self.add(allocator.len(), |row| {
            let stack = opened_stack.get(row).filter(|_| part_of.get(row).is_none())?;
            recorded(row, opened_ns.get(row), stack)
        });
        let (ended_ns, ended_stack) =
            (trace.values(Acquisitions::ended_ns)?, trace.values(Acquisitions::ended_stack)?);
        let table = trace.event_table()?;
        self.add(allocator.len(), |row| {
            let stack = ended_stack.get(row).filter(|_| table.end(row) == Some(End::Freed))?;
            recorded(row, ended_ns.get(row), stack)
        });
        Ok(())
    }
}

/// Returns whether the events of each allocator are kept as provider events, which have their stacks.
fn is_of_kept_events(trace: &Trace) -> Result<Vec<bool>, QueryError> {
    let (event, provider) =
        (trace.values(ProviderEvents::event)?, trace.values(EventCounts::provider)?);
    let kinds: BTreeSet<usize> =
        (0..event.len()).filter_map(|row| Some(event.get(row)?.row())).collect();
    let kept: BTreeSet<Option<&str>> = kinds.into_iter().map(|kind| provider.get(kind)).collect();
    // A kept provider without a name may belong to any allocator.
    let is_any = kept.contains(&None);
    let names = trace.values(Allocators::provider)?;
    Ok((0..names.len())
        .map(|row| names.get(row).is_some_and(|name| is_any || kept.contains(&Some(name))))
        .collect())
}

/// Counts how often each stack was recorded in each process: stacks of every event, or else of handle events (which
/// always have a known process) and of allocations. Stacks carried by kept provider events are added.
fn counted(
    trace: &Trace,
    has_every_stack: bool,
    processes: &ProcessList,
    time: Option<TimeRange>,
    cancel: &Cancel,
) -> Result<Vec<ProcessStack>, QueryError> {
    cancel.check()?;
    let time = time.map(|range| range.nanoseconds());
    let mut counter = StackCounter { time, counts: StackCounts::new() };
    if has_every_stack {
        counter.add_rows(
            &trace.values(StackEvents::time_ns)?,
            &trace.values(StackEvents::process)?,
            &trace.values(StackEvents::pid)?,
            &trace.values(StackEvents::stack)?,
        );
    } else {
        counter.add_objects(trace)?;
        counter.add_allocations(trace)?;
    }
    counter.add_rows(
        &trace.values(ProviderEvents::time_ns)?,
        &trace.values(ProviderEvents::process)?,
        &trace.values(ProviderEvents::pid)?,
        &trace.values(ProviderEvents::stack)?,
    );
    cancel.check()?;
    let counted = counter.counts.into_iter().map(|((process, pid, stack), count)| {
        let pid = pid.unwrap_or_else(|| processes.known_or_invalid(process).pid);
        ProcessStack { count, pid, process, stack }
    });
    Ok(counted.collect())
}
