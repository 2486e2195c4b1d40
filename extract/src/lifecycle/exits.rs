//! Finds closes made by the end of a process rather than by its program, and start-rundown handles that are closed
//! later.
//!
//! When the last thread of a process exits, the kernel sweeps its handle table (`ObKillProcess` →
//! `ExSweepHandleTable`), so a leaked handle looks closed. Function names are not known here, so the sweep is
//! recognized by what it does. It is the last thing that happens to the handles of the process. It runs on one thread,
//! and always on the same kernel frames, which never appear in closes of a program that goes on. Closes after the
//! process's end event are always part of the sweep.

use hashbrown::{HashMap, HashSet};

use super::attribution::NONE;
use super::kinds::event_kind;
use super::lost_ends::closes_of_lost_ends;
use super::objects::slot;
use super::owners::EventOwners;
use super::view_exits::exit_unmaps;
use super::{Lifetimes, MissingEvents};
use crate::collect::Collector;
use crate::kernel::ProcessRow;
use crate::raw::{RowKind, UNKNOWN_ID};
use handlescope_model::rules::OPENING_HANDLES;
use handlescope_model::{Cancelled, EventKind, Poll};

/// Longest time from the last close of a sweep to the end event, if the process sweeps itself.
const SWEEP_AHEAD_NS: i64 = 2_000_000;

/// The same if another thread terminates the process: a debugger's, or any thread if the process has none.
const KILL_AHEAD_NS: i64 = 1_000_000_000;

/// Closes made by process ends, as timeline rows.
#[derive(Debug, Default)]
pub struct ExitCloses {
    of_handles: HashSet<u32>,
    of_views: HashSet<u32>,
}

impl ExitCloses {
    /// Finds these closes, unless cancelled; `order` gives the time order if it differs from the row order.
    pub fn new(lifetimes: &Lifetimes<'_>, order: Option<&[u32]>) -> Result<Self, Cancelled> {
        let Lifetimes { collected, owners, missing, clock, .. } = *lifetimes;
        let processes = &collected.processes.rows;
        if missing.is_none() && processes.iter().all(|process| process.end.is_none()) {
            return Ok(Self::default());
        }
        let mut search = ExitSearch {
            collected,
            owners,
            sweep_ahead: clock.ticks_apart(SWEEP_AHEAD_NS),
            kill_ahead: clock.ticks_apart(KILL_AHEAD_NS),
            is_coarse: clock.step > 1,
            ends: vec![ProcessEnd::default(); collected.processes.rows.len()],
            missing,
            opening: HashSet::new(),
            of_programs: HashSet::new(),
            last_of_program: None,
            of_sweeps: HashSet::new(),
            last_of_sweep: None,
            after_end: HashSet::new(),
            candidates: Vec::new(),
        };
        // Goes backwards, so that the events after a close are known.
        let mut poll = Poll::new(lifetimes.cancel);
        for row in lifetimes.rows(order).rev() {
            poll.round()?;
            search.event(row);
        }
        let (mut of_handles, frames) = search.finish();
        of_handles.extend(closes_of_lost_ends(lifetimes, order, &frames)?);
        Ok(Self { of_handles, of_views: exit_unmaps(lifetimes, order)? })
    }

    /// Returns the rows of handles, in no particular order.
    pub fn rows_of_handles(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_handles.iter().copied()
    }

    /// Whether a process end made the close in this row.
    pub fn contains(&self, row: u32) -> bool {
        self.of_handles.contains(&row) || self.of_views.contains(&row)
    }
}

/// Handle events of a process from some time until its end.
#[derive(Clone, Default)]
struct ProcessEnd {
    /// Time of the first open.
    next_open: Option<i64>,
    run: FinalRun,
}

/// The final run of closes of a process.
#[derive(Clone, Default)]
enum FinalRun {
    /// No close seen yet.
    #[default]
    Ahead,
    /// In the run: its thread, and its kernel frames if a close has a stack.
    Within { tid: u32, kernel: Option<KernelPart> },
    /// An event that does not belong to the sweep was seen.
    Over,
}

struct ExitSearch<'a> {
    collected: &'a Collector,
    owners: &'a EventOwners,
    /// [`SWEEP_AHEAD_NS`] in ticks.
    sweep_ahead: i64,
    /// [`KILL_AHEAD_NS`] in ticks.
    kill_ahead: i64,
    /// Whether the clock stays the same between two timer ticks.
    is_coarse: bool,
    /// Ends by process.
    ends: Vec<ProcessEnd>,
    missing: &'a MissingEvents,
    /// Processes and threads that open handles later, recorded if events are missing. A process whose end is missing
    /// may seem to go on as the next process with its pid, but a thread does not.
    opening: HashSet<(u32, u32)>,
    /// Kernel frames of closes after which the process still opened handles.
    of_programs: HashSet<KernelPart>,
    last_of_program: Option<KernelPart>,
    /// Kernel frames of closes after a process's end, which no program makes.
    of_sweeps: HashSet<KernelPart>,
    last_of_sweep: Option<KernelPart>,
    after_end: HashSet<u32>,
    /// Closes of the run before the end event.
    candidates: Vec<(u32, KernelPart)>,
}

impl ExitSearch<'_> {
    fn event(&mut self, row: usize) {
        let process = self.owners.process[row];
        if process == NONE {
            return;
        }
        match event_kind(self.collected.shared.timeline.kind[row]) {
            Some(kind) if OPENING_HANDLES.contains(kind) => {
                let end = &mut self.ends[process as usize];
                end.next_open = Some(self.collected.shared.timeline.time[row]);
                end.run = FinalRun::Over;
                if !self.missing.is_none() {
                    self.opening.insert((process, self.collected.shared.timeline.tid[row]));
                }
                self.hand_on(row);
            }
            Some(EventKind::HandleClose) => self.close(row, process as usize),
            _ => {}
        }
    }

    /// A close just before a duplicate may be the `DUPLICATE_CLOSE_SOURCE` of that duplicate.
    fn hand_on(&mut self, row: usize) {
        let timeline = &self.collected.shared.timeline;
        if timeline.kind[row] == RowKind::HandleDuplicate {
            let source = self.owners.duplicates[timeline.row[row] as usize].source;
            if let Some(source) = self.ends.get_mut(source as usize) {
                source.run = FinalRun::Over;
            }
        }
    }

    fn close(&mut self, row: usize, process: usize) {
        let timeline = &self.collected.shared.timeline;
        let (tid, time) = (timeline.tid[row], timeline.time[row]);
        let kernel = kernel_part(self.collected, row);
        let known = &self.collected.processes.rows[process];
        let is_after_end = |end: i64| time > end || time == end && self.is_after_end(row, known);
        let end = known.end.map(|end| (end, is_after_end(end)));
        let state = &mut self.ends[process];
        // A close that went to System because its process is unknown proves nothing about System. The comparison with
        // the previous close's frames saves most inserts.
        let is_of_process = timeline.pid[row] == known.process.pid;
        // When creating a process fails, the call sweeps what it opened and its program goes on.
        let is_sweep = self.owners.failed_closes.contains(&(row as u32));
        let goes_on = state.next_open.is_some_and(|next| {
            let by_same = || self.opening.contains(&(process as u32, tid));
            !self.missing.is_located_between(time, next) || by_same()
        });
        let is_of_program = goes_on && is_of_process && !is_sweep;
        if is_of_program && kernel != self.last_of_program {
            self.of_programs.extend(kernel);
            self.last_of_program = kernel;
        }
        let Some((end, is_after_end)) = end else { return };
        if is_after_end {
            self.after_end.insert(row as u32);
            if kernel != self.last_of_sweep {
                self.of_sweeps.extend(kernel);
                self.last_of_sweep = kernel;
            }
            state.run = FinalRun::Within { tid, kernel };
            return;
        }
        let is_by_other = self.owners.foreign.contains(&(row as u32));
        let ahead = if is_by_other { self.kill_ahead } else { self.sweep_ahead };
        match &mut state.run {
            FinalRun::Ahead if end - time <= ahead => state.run = FinalRun::Within { tid, kernel },
            FinalRun::Within { tid: same, kernel: run } if *same == tid && tid != UNKNOWN_ID => {
                match (*run, kernel) {
                    (Some(run), Some(process)) if run != process => state.run = FinalRun::Over,
                    (None, _) => *run = kernel,
                    _ => {}
                }
            }
            _ => state.run = FinalRun::Over,
        }
        // A close that lost its stack does not end the run, but the program may have made it.
        if let (FinalRun::Within { .. }, Some(kernel)) = (&state.run, kernel) {
            self.candidates.push((row as u32, kernel));
        }
    }

    /// Whether a close with the same timestamp as its process's end comes after that end. With a coarse clock the
    /// program may have closed handles at that time too. Then the order in the file decides, if both events are of one
    /// processor.
    fn is_after_end(&self, row: usize, process: &ProcessRow) -> bool {
        let timeline = &self.collected.shared.timeline;
        let is_end_after = process.end_position.map(|end| end.is_after(row, timeline));
        !self.is_coarse || is_end_after.is_some_and(|is_after| is_after == Some(false))
    }

    /// Returns the closes made by process ends, and the frames of closes.
    fn finish(self) -> (HashSet<u32>, CloseFrames) {
        let Self { of_programs, mut of_sweeps, mut after_end, candidates, .. } = self;
        for (row, kernel) in candidates {
            if of_sweeps.contains(&kernel) || !of_programs.contains(&kernel) {
                after_end.insert(row);
                of_sweeps.insert(kernel);
            }
        }
        (after_end, CloseFrames { of_sweeps, of_programs })
    }
}

/// Returns, for each start-rundown handle, whether its process later closed a handle with the same value; `order` gives
/// the time order if it differs from the row order.
///
/// Nothing else can have the value until it is closed, so the first close of the value is this handle's.
pub fn closed_start_handles(
    lifetimes: &Lifetimes<'_>,
    order: Option<&[u32]>,
) -> Result<Vec<bool>, Cancelled> {
    let Lifetimes { collected, owners, index, cancel, .. } = *lifetimes;
    let start = &collected.handles.start;
    let mut closed = vec![false; start.len()];
    let mut open: HashMap<(u32, u32), usize> = HashMap::with_capacity(start.len());
    let mut poll = Poll::new(cancel);
    for (at, handle) in start.iter().enumerate() {
        poll.round()?;
        if let Some(process) = index.find(handle.pid, handle.time) {
            open.insert((process, slot(handle.handle)), at);
        }
    }
    if open.is_empty() {
        return Ok(closed);
    }
    let timeline = &collected.shared.timeline;
    for row in lifetimes.rows(order) {
        poll.round()?;
        let process = owners.process[row];
        if timeline.kind[row] != RowKind::HandleClose || process == NONE {
            continue;
        }
        let value = slot(collected.handles.handle[timeline.row[row] as usize]);
        let of_value = open.get(&(process, value)).copied();
        if let Some(at) = of_value.filter(|at| start[*at].time <= timeline.time[row]) {
            closed[at] = true;
            open.remove(&(process, value));
        }
    }
    Ok(closed)
}

/// Id of the kernel frames of a stack. Equal frames have equal ids, because the frames of closes come from stack events
/// of one pointer size.
pub type KernelPart = u32;

/// Kernel frames of closes in the trace.
pub struct CloseFrames {
    /// Frames of closes after process end events.
    pub of_sweeps: HashSet<KernelPart>,
    /// Frames of closes after which the process went on.
    pub of_programs: HashSet<KernelPart>,
}

/// Returns the id of a close's kernel frames.
pub fn kernel_part(collected: &Collector, row: usize) -> Option<KernelPart> {
    let stacks = &collected.stacks.events;
    let parts = stacks.parts(row);
    let mut parts = parts.iter().chain(stacks.more_parts(row));
    let kernel = parts.find(|part| !part.is_user())?;
    stacks.fragments().content(*kernel)
}
