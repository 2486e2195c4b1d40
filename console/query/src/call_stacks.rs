//! `.dump Stack`: the most frequent stacks, whatever events the extract kept them for.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use handlescope_model::tables::{
    Acquisitions, Allocators, End, EventCounts, ProviderEvents, StackEvents,
};
use handlescope_model::{Cell, EventColumns, EventTimes, ProcessIdx, StackIdx, Table, Trace};
use polars::prelude::{
    BooleanChunked, ChunkCompareEq, Column, DataFrame, DataType, IdxCa, IntoLazy, LazyFrame, NULL,
    NewChunkedArray, PlSmallStr, PolarsResult, UnionArgs, col, concat, lit, when,
};

use super::context::Source;
use super::counts::row_counts;
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
        if args.time.is_some() {
            check_clock(trace, source.path, Criterion::MinMaxTime)?;
        }
        let is_extracted = trace.height(Table::StackEvents)? > 0;
        let recorded = recorded(trace, is_extracted)?;
        let processes = ProcessList::load(trace)?;
        let frames = Frames::load(trace, names, source.frames, cancel)?;
        let frames = frames.with_system_modules(source.system);
        let mut rows = counted(recorded.clone(), &processes, args.time, cancel)?;
        let mut survivors = Survivors::new(rows.len());
        if args.time.is_some() {
            if rows.is_empty() {
                // The number of stacks at all times matters only if no stack is in the range.
                survivors = Survivors::new(counted(recorded, &processes, None, cancel)?.len());
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
        let mut stats = FrameStats::default();
        let passed = rows.len() as u64;
        let owners = rows.iter().filter_map(|row| row.process).collect();
        let recorded_count = rows.iter().map(|row| row.count).sum();
        for row in &rows {
            stats += frames.stats(row.stack, row.count);
        }
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

/// Returns the recorded stacks: of every event, or else of handle events (which always have a known process) and of
/// allocations. Stacks carried by kept provider events are added. The pid is set only if the process is unknown.
fn recorded(trace: &Trace, has_every_stack: bool) -> Result<LazyFrame, QueryError> {
    let mut tables = if has_every_stack {
        vec![vec![
            trace.column_of(StackEvents::time_ns)?,
            trace.column_of(StackEvents::process)?,
            trace.column_of(StackEvents::stack)?,
            trace.column_of(StackEvents::pid)?,
        ]]
    } else {
        vec![of_objects(trace)?]
    };
    let carried_columns = vec![
        trace.column_of(ProviderEvents::time_ns)?,
        trace.column_of(ProviderEvents::process)?,
        trace.column_of(ProviderEvents::stack)?,
        trace.column_of(ProviderEvents::pid)?,
    ];
    tables.push(carried_columns);
    if !has_every_stack {
        tables.extend(of_allocations(trace)?);
    }
    let (process, pid, stack) =
        (StackEvents::process.name(), StackEvents::pid.name(), StackEvents::stack.name());
    let with_ids = |columns: Vec<_>| -> Result<LazyFrame, QueryError> {
        let rows = DataFrame::new_infer_height(columns)?;
        let unknown_pid = match rows.column(pid) {
            Ok(_) => when(col(process).is_null()).then(col(pid)).otherwise(lit(NULL)),
            Err(_) => lit(NULL),
        };
        let unknown_pid = unknown_pid.cast(DataType::UInt32).alias(pid);
        Ok(rows.lazy().filter(col(stack).is_not_null()).with_columns([unknown_pid]))
    };
    let tables = tables.into_iter().map(with_ids).collect::<Result<Vec<_>, _>>()?;
    Ok(concat(tables, UnionArgs::default())?)
}

/// Returns the stacks of object events.
fn of_objects(trace: &Trace) -> Result<Vec<Column>, QueryError> {
    let (times, columns) = (EventTimes::load(trace)?, EventColumns::with_all(trace)?);
    let (processes, stacks, table) = (columns.processes()?, columns.stacks()?, &times.table);
    // An unmap that ended several views counts once.
    let ending = |row| table.ending(row).filter(|end| *end == table.numbering.ending(row));
    let of_handles =
        (0..table.allocations).flat_map(|row| table.opening(row).into_iter().chain(ending(row)));
    let others = table.numbering.opening(table.allocations)..table.height();
    let events: Vec<usize> =
        of_handles.chain(others).filter(|event| stacks.get(*event).is_some()).collect();
    let events = || events.iter().copied();
    Ok(vec![
        Cell::column(StackEvents::time_ns.name(), events().map(|event| times.get(event)).collect()),
        Cell::column(
            StackEvents::process.name(),
            events().map(|event| processes.get(event)).collect(),
        ),
        Cell::column(StackEvents::stack.name(), events().map(|event| stacks.get(event)).collect()),
    ])
}

/// Returns the stacks that allocated and the stacks that freed, each in the process of the owner. Ends caused by a
/// reallocation or by an event of a further part are left out, because their stack is that of another row.
fn of_allocations(trace: &Trace) -> Result<[Vec<Column>; 2], QueryError> {
    let allocator = trace.column_of(Acquisitions::allocator)?;
    let height = trace.height(Table::Allocators)?;
    let owners = allocator.u32()?.iter().map(|row| row.filter(|row| (*row as usize) < height));
    let owners = IdxCa::from_iter_options(PlSmallStr::EMPTY, owners);
    let of_owner = |column: Column| column.take(&owners);
    let (process, pid) = (
        of_owner(trace.column_of(Allocators::process)?)?,
        of_owner(trace.column_of(Allocators::pid)?)?,
    );
    let is_elsewhere = is_of_kept_events(trace)?;
    let is_counted: BooleanChunked = owners
        .iter()
        .map(|row| {
            row.is_some_and(|row| !is_elsewhere.get(row as usize).copied().unwrap_or_default())
        })
        .map(Some)
        .collect();
    let is_first = &trace.column_of(Acquisitions::part_of)?.is_null() & &is_counted;
    let is_freed = trace.column_of(Acquisitions::end)?.u32()?.equal(End::Freed.code());
    let is_freed = &is_freed & &is_counted;
    let time_ns = PlSmallStr::from_static(StackEvents::time_ns.name());
    let stack = PlSmallStr::from_static(StackEvents::stack.name());
    let allocated = [
        trace.column_of(Acquisitions::opened_ns)?.with_name(time_ns.clone()),
        process.clone(),
        trace.column_of(Acquisitions::opened_stack)?.with_name(stack.clone()),
        pid.clone(),
    ];
    let freed = [
        trace.column_of(Acquisitions::ended_ns)?.with_name(time_ns),
        process,
        trace.column_of(Acquisitions::ended_stack)?.with_name(stack),
        pid,
    ];
    let filtered = |columns: [Column; 4], mask: &BooleanChunked| {
        columns.iter().map(|column| column.filter(mask)).collect::<PolarsResult<Vec<_>>>()
    };
    Ok([filtered(allocated, &is_first)?, filtered(freed, &is_freed)?])
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

/// Counts how often each stack was recorded in each process.
fn counted(
    mut rows: LazyFrame,
    processes: &ProcessList,
    time: Option<TimeRange>,
    cancel: &Cancel,
) -> Result<Vec<ProcessStack>, QueryError> {
    let (process, pid, stack) =
        (StackEvents::process.name(), StackEvents::pid.name(), StackEvents::stack.name());
    if let Some(range) = time.map(|range| range.nanoseconds()) {
        let time = || col(StackEvents::time_ns.name());
        rows = rows.filter(time().gt_eq(lit(*range.start())).and(time().lt_eq(lit(*range.end()))));
    }
    cancel.check()?;
    let (counted, counts) = row_counts(rows, &[process, stack, pid])?;
    cancel.check()?;
    let counts = u64::values(&counts)?;
    let stacks = StackIdx::values(counted.column(stack)?)?;
    let in_process = Option::<ProcessIdx>::values(counted.column(process)?)?;
    let pids = Option::<u32>::values(counted.column(pid)?)?;
    Ok((0..counts.len())
        .filter_map(|row| {
            let process = in_process.get(row);
            let pid = pids.get(row).unwrap_or_else(|| processes.known_or_invalid(process).pid);
            Some(ProcessStack { count: counts.get(row)?, pid, process, stack: stacks.get(row)? })
        })
        .collect())
}
