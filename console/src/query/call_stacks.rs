//! `.dump Stack`: the most frequent stacks, of whatever events the extract keeps them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use handlescope_model::tables::{Events, StackEvents, TraceInfo};
use handlescope_model::{ArchiveError, Numbers, ProcessIdx, StackIdx, Table, Trace};

use super::error::QueryError;
use super::frame_figures::FrameFigures;
use super::frame_names::{FrameNames, Frames, ModuleBases};
use super::info::trace_info;
use super::source::Source;
use super::stacks::{StackSet, StackVerdicts};
use super::tables::{ProcessInfo, ProcessList};
use crate::cancel::Cancel;
use crate::cancel::Poll;
use crate::query::StackCriteria;

/// The stacks of one trace.
pub struct StacksAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Its number in the session.
    pub index: usize,
    /// About the trace.
    pub info: TraceInfo,
    /// Whether stacks of every event were kept, or else of handle events only.
    pub has_every_stack: bool,
    /// What the frames of all stacks that passed are.
    pub figures: FrameFigures,
    /// How many stacks passed the filters.
    pub passed: u64,
    /// How often they were recorded.
    pub recorded: u64,
    /// Those that were asked for of them, the most frequent first.
    pub rows: Vec<StackRow>,
    pub(crate) frames: Frames<'a>,
    pub(crate) bases: ModuleBases,
    processes: ProcessList,
}

/// A stack of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRow {
    /// Events with this stack.
    pub count: u64,
    /// Process id.
    pub pid: u32,
    /// Row of the process, if it is known.
    pub process: Option<ProcessIdx>,
    /// Row of the stack.
    pub stack: StackIdx,
}

/// Answers `.dump Stack`, one answer for each trace.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn call_stacks<'a>(
    sources: &[Source<'a>],
    args: &StackCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<StacksAnswer<'a>>, QueryError> {
    sources.iter().map(|source| StacksAnswer::new(source, args, names, cancel)).collect()
}

/// The columns of recorded stacks: those of every event, or else those of handle events.
struct Recorded {
    time: Numbers<i64>,
    process: Numbers<ProcessIdx>,
    /// Missing for handle events, whose process is always known.
    pid: Option<Numbers<u32>>,
    stack: Numbers<StackIdx>,
}

impl Recorded {
    fn load(trace: &Trace, has_every_stack: bool) -> Result<Self, ArchiveError> {
        Ok(match has_every_stack {
            true => Self {
                time: trace.values(StackEvents::time_ns)?,
                process: trace.values(StackEvents::process)?,
                pid: Some(trace.values(StackEvents::pid)?),
                stack: trace.values(StackEvents::stack)?,
            },
            false => Self {
                time: trace.values(Events::time_ns)?,
                process: trace.values(Events::process)?,
                pid: None,
                stack: trace.values(Events::stack)?,
            },
        })
    }
}

impl<'a> StacksAnswer<'a> {
    fn new(
        source: &Source<'a>,
        args: &StackCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        let trace = source.trace;
        let info = trace_info(trace)?;
        let is_extracted = trace.height(Table::StackEvents)? > 0;
        let recorded = Recorded::load(trace, is_extracted)?;
        let processes = ProcessList::load(trace)?;
        let frames = Frames::load(trace, names, source.frames, cancel)?;
        let mut rows = counted(&recorded, &processes, args, cancel)?;
        if let Some(filter) = &args.stack_filter {
            let mut stacks = StackSet::new(frames.stacks.len());
            rows.iter().for_each(|row| stacks.add(Some(row.stack)));
            let verdicts = StackVerdicts::of(filter, &stacks, &frames)?;
            rows.retain(|row| verdicts.passes(Some(row.stack)));
        }
        rows.sort_unstable_by_key(|row| (Reverse(row.count), row.pid, row.stack));
        let mut figures = FrameFigures::default();
        let passed = rows.len() as u64;
        let recorded_count = rows.iter().map(|row| row.count).sum();
        for row in &rows {
            figures += frames.figures(row.stack, row.count);
        }
        if let Some(top) = args.top {
            rows = rows.into_iter().skip(top.skip).take(top.take).collect();
        }
        let shown = rows.iter().map(|row| row.stack);
        if args.stacks.show || args.for_programs {
            frames.resolve(shown)?;
        } else {
            frames.resolve_innermost(shown)?;
        }
        Ok(Self {
            path: source.path,
            index: source.index,
            has_every_stack: is_extracted || info.stack_fragments == 0,
            info,
            figures,
            passed,
            recorded: recorded_count,
            rows,
            frames,
            bases: ModuleBases::load(trace)?,
            processes,
        })
    }

    /// The process of a row; of an unknown one, only the id is known.
    pub fn process(&self, row: StackRow) -> ProcessInfo {
        match row.process {
            Some(process) => self.processes.get(process).clone(),
            None => ProcessInfo { pid: row.pid, ..self.processes.invalid().clone() },
        }
    }
}

/// How often each stack was recorded in each process.
fn counted(
    recorded: &Recorded,
    processes: &ProcessList,
    args: &StackCriteria,
    cancel: &Cancel,
) -> Result<Vec<StackRow>, QueryError> {
    let mut poll = Poll::new(cancel);
    let passes: Option<Vec<bool>> = args
        .process
        .as_ref()
        .map(|filter| processes.rows().iter().map(|p| p.is_meant_by(filter, false)).collect());
    let passes = |process: Option<ProcessIdx>, pid: u32| match (&passes, &args.process, process) {
        (Some(rows), _, Some(row)) => rows.get(row.row()).copied().unwrap_or_default(),
        (_, Some(filter), None) => filter.matches("", pid),
        _ => true,
    };
    let range = args.time.map(|range| range.nanoseconds());
    let mut rows: HashMap<(Option<ProcessIdx>, u32, StackIdx), u64> = HashMap::new();
    for (event, time) in recorded.time.values().iter().enumerate() {
        poll.round()?;
        let Some(stack) = recorded.stack.get(event) else { continue };
        if range.as_ref().is_some_and(|range| !range.contains(time)) {
            continue;
        }
        let process = recorded.process.get(event);
        let pid = match &recorded.pid {
            Some(pid) => pid.get(event).unwrap_or_default(),
            None => processes.known_or_invalid(process).pid,
        };
        *rows.entry((process, pid, stack)).or_default() += 1;
    }
    Ok(rows
        .into_iter()
        .filter(|((process, pid, _), _)| passes(*process, *pid))
        .map(|((process, pid, stack), count)| StackRow { count, pid, process, stack })
        .collect())
}
