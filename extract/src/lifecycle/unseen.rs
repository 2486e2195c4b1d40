//! Finds handles and views that were closed although the trace lost the close.
//!
//! A value refers to one handle until that handle is closed. So three things show that a handle was closed. Its process
//! opens the same value again, or closes it for another object. The sweep at the process's end does not close it. The
//! rundown at the end of the trace does not list it. This counts only if events may be missing between the open and the
//! evidence. Otherwise the close would be there, and a handle without a close stays leaked.
//!
//! A sweep or rundown that may lack events proves nothing. It is known to be complete only if another event follows its
//! end: missing events often start right after the last event that was read of it, and the file may end there.

use handlescope_model::rules::{OPENING, WITH_HANDLE, is_kernel_handle};
use handlescope_model::tables::ClosedUnseen;
use handlescope_model::{Cancelled, EventKind, Poll};
use hashbrown::{HashMap, HashSet};

use super::Lifetimes;
use super::attribution::NONE;
use super::exits::ExitCloses;
use super::kinds::event_kind;
use super::lost_ends::{Presence, presences};
use super::objects::slot;
use super::owners::view_pid;
use crate::collect::Collector;
use crate::raw::{RowKind, UNKNOWN_ID};

/// Close that is not in the trace; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenClose {
    pub evidence: ClosedUnseen,
    /// Last time it was known to be open.
    pub after: i64,
    /// First time it was known to be closed.
    pub before: i64,
}

/// Holder of a handle or view: a row of the processes table, or the pid of an unknown process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Process(u32),
    Pid(u32),
}

/// Handle value or view address, which a process has at most once at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OpenSlot {
    Handle(Holder, u32),
    /// Pid and start address.
    View(u32, u64),
}

/// Effect of an event on earlier opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseEffect {
    /// None, except on the event's own object.
    None,
    /// The handle or view opened in this row had been closed before.
    ClosedBefore(u32),
    /// It closes the handle or view opened in this row, even if the object is complete.
    Closes(u32),
}

/// Open slots while events are followed in time order, and the missing closes inferred so far.
pub struct Reuses<'a> {
    lifetimes: Lifetimes<'a>,
    /// For each process, whether it may have ended unseen, so that later events with its pid belong to another one.
    may_have_ended: Vec<bool>,
    /// First event of each thread of these processes.
    threads: HashMap<(u32, u32), i64>,
    /// Row that opened each slot.
    open: HashMap<OpenSlot, u32>,
    closed_before: HashMap<u32, i64>,
}

impl<'a> Reuses<'a> {
    pub fn new(lifetimes: Lifetimes<'a>) -> Self {
        let presences = presences(&lifetimes);
        let processes = lifetimes.collected.processes.rows.iter().zip(&presences);
        let may_have_ended = processes
            .map(|(process, presence)| process.end.is_none() && *presence == Presence::Gone);
        Self {
            may_have_ended: may_have_ended.collect(),
            threads: HashMap::new(),
            lifetimes,
            open: HashMap::new(),
            closed_before: HashMap::new(),
        }
    }

    /// Handles the next event; `process` is the process whose handle a close ends.
    pub fn event(&mut self, row: usize, process: u32) -> ReuseEffect {
        let timeline = &self.lifetimes.collected.shared.timeline;
        let Some(kind) = event_kind(timeline.kind[row]) else { return ReuseEffect::None };
        let Some(slot) = self.lifetimes.slot(kind, row, process) else { return ReuseEffect::None };
        if self.may_have_ended.get(process as usize) == Some(&true) {
            self.threads.entry((process, timeline.tid[row])).or_insert(timeline.time[row]);
        }
        match kind {
            // From now on, only the right child has the value, and that may be another one.
            EventKind::HandleDuplicate
                if self.lifetimes.owners.doubtful.contains(&(row as u32)) =>
            {
                self.open.entry(slot).or_insert(row as u32);
                ReuseEffect::None
            }
            EventKind::HandleCreate | EventKind::HandleDuplicate | EventKind::Map => {
                let before = self.open.insert(slot, row as u32);
                before.map_or(ReuseEffect::None, |before| self.reuse(before, row))
            }
            EventKind::HandleClose => {
                let Some(&opened) = self.open.get(&slot) else { return ReuseEffect::None };
                if address(self.lifetimes.collected, row)
                    == address(self.lifetimes.collected, opened as usize)
                {
                    self.open.remove(&slot);
                    return if self.is_lossy(opened, row) {
                        ReuseEffect::Closes(opened)
                    } else {
                        ReuseEffect::None
                    };
                }
                let effect = self.reuse(opened, row);
                if effect != ReuseEffect::None {
                    self.open.remove(&slot);
                }
                effect
            }
            EventKind::Unmap => {
                self.open.remove(&slot);
                ReuseEffect::None
            }
            _ => ReuseEffect::None,
        }
    }

    /// Notes that the handle or view a row opened is closed. It counts only if the close may be missing; otherwise
    /// later evidence does not count either.
    fn reuse(&mut self, opened: u32, row: usize) -> ReuseEffect {
        if !self.is_of_one_process(opened, row) {
            return ReuseEffect::None;
        }
        self.closed_before.insert(opened, self.lifetimes.collected.shared.timeline.time[row]);
        if self.is_lossy(opened, row) {
            ReuseEffect::ClosedBefore(opened)
        } else {
            ReuseEffect::None
        }
    }

    /// Whether a later event belongs to the process that opened the handle, shown by a thread that already existed
    /// then.
    fn is_of_one_process(&self, opened: u32, row: usize) -> bool {
        let Lifetimes { collected, owners, .. } = &self.lifetimes;
        let timeline = &collected.shared.timeline;
        let process = owners.process[row];
        self.may_have_ended.get(process as usize) != Some(&true)
            || self
                .threads
                .get(&(process, timeline.tid[row]))
                .is_some_and(|first| *first <= timeline.time[opened as usize])
    }

    fn is_lossy(&self, opened: u32, row: usize) -> bool {
        let time = &self.lifetimes.collected.shared.timeline.time;
        self.lifetimes.missing.times.is_between(time[opened as usize], time[row])
    }

    /// Returns the rows of closed handles and views, each with the raw time of the evidence.
    pub fn into_closed(self) -> HashMap<u32, i64> {
        self.closed_before
    }
}

impl Lifetimes<'_> {
    /// Returns the slot that an event opens or closes; `None` if unknown.
    fn slot(&self, kind: EventKind, row: usize, process: u32) -> Option<OpenSlot> {
        let Self { collected, owners, .. } = *self;
        let Collector { handles, duplicates, views, shared, .. } = collected;
        let timeline = &shared.timeline;
        let at = timeline.row[row] as usize;
        match kind {
            EventKind::HandleCreate | EventKind::HandleClose => {
                let value = handles.handle[at];
                let is_of_process =
                    is_kernel_handle(value.into()) || process != owners.process[row];
                let holder = if is_of_process || owners.foreign.contains(&(row as u32)) {
                    Holder::Process(process)
                } else {
                    holder(collected, process, timeline.pid[row])?
                };
                Some(OpenSlot::Handle(holder, slot(value)))
            }
            // It belongs to no process of the trace.
            EventKind::HandleDuplicate if owners.failed.contains_key(&(row as u32)) => None,
            EventKind::HandleDuplicate => {
                let duplicate = &duplicates.rows[at];
                let holder = match owners.duplicates[at].inherited_by {
                    NONE if is_kernel_handle(duplicate.target_handle.into()) => {
                        Holder::Process(process)
                    }
                    // The child is unknown, and the value belongs to the parent's handle.
                    NONE if duplicate.is_inherited() || duplicate.target_pid == 0 => return None,
                    NONE => holder(collected, process, duplicate.target_pid)?,
                    child => Holder::Process(child),
                };
                Some(OpenSlot::Handle(holder, slot(duplicate.target_handle)))
            }
            EventKind::Map | EventKind::Unmap => {
                Some(OpenSlot::View(view_pid(collected, row, process), views.rows[at].base))
            }
            _ => None,
        }
    }
}

/// Returns the holder. The event may have been given to a process with another pid; then the holder is the event's pid.
fn holder(collected: &Collector, process: u32, pid: u32) -> Option<Holder> {
    let known = collected.processes.rows.get(process as usize);
    if known.is_some_and(|known| known.process.pid == pid) {
        Some(Holder::Process(process))
    } else {
        Some(Holder::Pid(pid)).filter(|_| pid != UNKNOWN_ID)
    }
}

/// Returns the kernel address of the object of a create, duplicate, close or rundown event.
fn address(collected: &Collector, row: usize) -> u64 {
    let Collector { handles, duplicates, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    match shared.timeline.kind[row] {
        RowKind::HandleDuplicate => duplicates.rows[at].object,
        _ => handles.object[at],
    }
}

/// Closes inferred without an event.
pub struct UnseenCloses<'a> {
    lifetimes: Lifetimes<'a>,
    closed_before: HashMap<u32, i64>,
    handles_at_end: EndRundown,
    views_at_end: EndRundown,
    sweeps: Sweeps,
}

impl<'a> UnseenCloses<'a> {
    /// Infers closes from reused values, process ends and the end rundown, unless cancelled. `closed_before` has the
    /// time of the evidence by row.
    pub fn new(
        closed_before: HashMap<u32, i64>,
        lifetimes: Lifetimes<'a>,
        exits: &ExitCloses,
    ) -> Result<Self, Cancelled> {
        Ok(Self {
            handles_at_end: EndRundown::for_handles(&lifetimes)?,
            views_at_end: EndRundown::for_views(&lifetimes),
            sweeps: Sweeps::new(&lifetimes, exits)?,
            closed_before,
            lifetimes,
        })
    }

    /// Whether the handle or view of a row was closed before another event by a close that is missing.
    pub fn is_closed_before(&self, opened: u32, row: u32) -> bool {
        let time = &self.lifetimes.collected.shared.timeline.time;
        let missing = &self.lifetimes.missing.times;
        self.closed_before.get(&opened).is_some_and(|closed| {
            *closed <= time[row as usize] && missing.is_between(time[opened as usize], *closed)
        })
    }

    /// Returns the evidence that the handle opened in a row was closed, if the trace has no close of it.
    pub fn of(&self, row: usize) -> Option<UnseenClose> {
        if self.lifetimes.missing.is_none() {
            return None;
        }
        let timeline = &self.lifetimes.collected.shared.timeline;
        let kind = event_kind(timeline.kind[row]).filter(|kind| OPENING.contains(*kind))?;
        let opened = timeline.time[row];
        let (evidence, latest) = match self.closed_before.get(&(row as u32)) {
            Some(time) => (ClosedUnseen::Reused, *time),
            None => {
                let slot = self.lifetimes.slot(kind, row, self.lifetimes.owners.process[row])?;
                let rundown = match slot {
                    OpenSlot::Handle(..) => &self.handles_at_end,
                    OpenSlot::View(..) => &self.views_at_end,
                };
                let object = || address(self.lifetimes.collected, row);
                match self.sweeps.start_of(slot) {
                    Some(start) => (ClosedUnseen::ProcessEnded, start),
                    None => (ClosedUnseen::NotInRundown, rundown.without(slot, opened, object)?),
                }
            }
        };
        let (after, before) = self.lifetimes.missing.times.within(opened, latest)?;
        Some(UnseenClose { evidence, after, before })
    }
}

/// Longest time a sweep is known to take. If no event says that a sweep is over, it is over if the trace goes on for
/// longer than this, and for longer than the sweep took.
const LONGEST_SWEEP_NS: i64 = 50_000_000;

/// Complete sweeps of handle tables at process ends.
#[derive(Default)]
struct Sweeps {
    /// Raw time, by process, from which on all of its handle events are present: its last handle event before the
    /// sweep.
    starts: HashMap<u32, i64>,
}

impl Sweeps {
    fn new(lifetimes: &Lifetimes<'_>, exits: &ExitCloses) -> Result<Self, Cancelled> {
        let Lifetimes { collected, owners, missing, cancel, .. } = *lifetimes;
        if missing.is_none() {
            return Ok(Self::default());
        }
        let timeline = &collected.shared.timeline;
        let mut poll = Poll::new(cancel);
        // First and last close of each sweep.
        let mut swept: HashMap<u32, (i64, i64)> = HashMap::new();
        for row in exits.rows_of_handles() {
            poll.round()?;
            let time = timeline.time[row as usize];
            let (first, last) = swept.entry(owners.process[row as usize]).or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
        }
        if swept.is_empty() {
            return Ok(Self::default());
        }
        let listed = collected.processes.rows.iter().filter_map(|process| process.listed);
        let mut last_event = listed.max().unwrap_or(i64::MIN);
        let mut starts: HashMap<u32, i64> = HashMap::new();
        for row in 0..timeline.len() {
            poll.round()?;
            last_event = last_event.max(timeline.time[row]);
            let kind = event_kind(timeline.kind[row]).filter(|kind| WITH_HANDLE.contains(*kind));
            let Some((first, _)) = kind.and_then(|_| swept.get(&owners.process[row])) else {
                continue;
            };
            let time = timeline.time[row];
            if time <= *first && !exits.contains(row as u32) {
                let start = starts.entry(owners.process[row]).or_insert(time);
                *start = time.max(*start);
            }
        }
        let ends = swept_ends(lifetimes, &swept);
        let longest = lifetimes.clock.ticks_apart(LONGEST_SWEEP_NS);
        starts.retain(|process, start| {
            let end = ends.get(process).copied().or_else(|| {
                let (first, last) = swept.get(process)?;
                let is_over = last_event.saturating_sub(*last) > longest.max(last - first);
                is_over.then_some(i64::MAX)
            });
            // A gap that touches the sweep may have hidden a part of it.
            end.is_some_and(|end| !missing.times.is_between(*start, end))
        });
        Ok(Self { starts })
    }

    /// Returns the time from which on all handle events of the slot's process are present, up to the end of its sweep.
    fn start_of(&self, slot: OpenSlot) -> Option<i64> {
        match slot {
            OpenSlot::Handle(Holder::Process(process), _) => self.starts.get(&process).copied(),
            OpenSlot::Handle(Holder::Pid(_), _) | OpenSlot::View(..) => None,
        }
    }
}

/// Returns, for each swept process, a time at which its sweep was over. Images are unloaded after the sweep, and only
/// then may the pid be reused. A process without such events has no entry.
fn swept_ends(lifetimes: &Lifetimes<'_>, swept: &HashMap<u32, (i64, i64)>) -> HashMap<u32, i64> {
    let processes = &lifetimes.collected.processes.rows;
    // By pid, because image events say no more.
    let mut of_pid: HashMap<u32, Vec<(u32, i64)>> = HashMap::new();
    for (process, (_, last)) in swept {
        if let Some(row) = processes.get(*process as usize) {
            let last = row.end.map_or(*last, |end| end.max(*last));
            of_pid.entry(row.process.pid).or_default().push((*process, last));
        }
    }
    of_pid.values_mut().for_each(|list| list.sort_unstable_by_key(|(_, last)| *last));
    let images = lifetimes.collected.images.rows.iter();
    let unloads = images.filter_map(|image| Some((image.pid, image.unload?)));
    let starts = processes.iter().filter_map(|row| Some((row.process.pid, row.start?)));
    let mut ends: HashMap<u32, i64> = HashMap::new();
    for (pid, time) in unloads.chain(starts) {
        let Some(list) = of_pid.get(&pid) else { continue };
        // Belongs to the last sweep before this time.
        let before = list.partition_point(|(_, last)| *last < time);
        if let Some((process, _)) = before.checked_sub(1).and_then(|at| list.get(at)) {
            let end = ends.entry(*process).or_insert(time);
            *end = time.min(*end);
        }
    }
    ends
}

/// Handles open at the end, if nothing of the rundown is missing.
#[derive(Default)]
struct EndRundown {
    /// Raw times of the rundown's first and last event.
    span: Option<(i64, i64)>,
    /// Holders covered by the rundown, even if it lists nothing of theirs.
    holders: HashSet<Holder>,
    /// Open slots. Handles come with their object.
    open: HashMap<OpenSlot, u64>,
}

/// Longest pause of the thread that writes a rundown. Within it, earlier events of the rundown may be missing.
const RUNDOWN_PAUSE_NS: i64 = 500_000;

impl EndRundown {
    fn for_handles(lifetimes: &Lifetimes<'_>) -> Result<Self, Cancelled> {
        let Lifetimes { collected, owners, missing, cancel, .. } = *lifetimes;
        let mut rundown = Self::default();
        if missing.is_none() {
            return Ok(rundown);
        }
        let timeline = &collected.shared.timeline;
        let mut poll = Poll::new(cancel);
        for row in 0..timeline.len() {
            poll.round()?;
            if timeline.kind[row] != RowKind::HandleAtEnd {
                continue;
            }
            let handle = slot(collected.handles.handle[timeline.row[row] as usize]);
            let listed = holder(collected, owners.process[row], timeline.pid[row])
                .map(|holder| (holder, OpenSlot::Handle(holder, handle)));
            rundown.event(timeline.time[row], listed, address(collected, row));
        }
        let mut rundown = rundown.if_whole(lifetimes);
        // Live processes are listed after the handles.
        let start = rundown.span.map(|(start, _)| start);
        let processes = (0..).zip(&collected.processes.rows);
        let alive = processes.filter(|(_, row)| row.end.is_none() && row.listed >= start);
        rundown.holders.extend(alive.map(|(row, _)| Holder::Process(row)));
        Ok(rundown)
    }

    fn for_views(lifetimes: &Lifetimes<'_>) -> Self {
        let mut rundown = Self::default();
        if !lifetimes.missing.is_none() {
            for view in &lifetimes.collected.views.at_end {
                let listed = (Holder::Pid(view.pid), OpenSlot::View(view.pid, view.base));
                rundown.event(view.time, Some(listed), 0);
            }
        }
        rundown.if_whole(lifetimes)
    }

    /// Adds an event of the rundown, and what it lists if its process is known.
    fn event(&mut self, time: i64, listed: Option<(Holder, OpenSlot)>, object: u64) {
        let (start, end) = self.span.get_or_insert((time, time));
        (*start, *end) = (time.min(*start), time.max(*end));
        if let Some((holder, slot)) = listed {
            self.holders.insert(holder);
            self.open.insert(slot, object);
        }
    }

    fn if_whole(self, lifetimes: &Lifetimes<'_>) -> Self {
        let Some((start, end)) = self.span else { return self };
        // Processes are listed after handles and views, so the first process marks their end; without one, the trace's
        // end does.
        let after = lifetimes
            .collected
            .processes
            .rows
            .iter()
            .filter_map(|row| row.listed.filter(|listed| *listed > end))
            .min();
        let pause = lifetimes.clock.ticks_apart(RUNDOWN_PAUSE_NS);
        let (from, to) = (start.saturating_sub(pause), after.unwrap_or(i64::MAX));
        if lifetimes.missing.is_certain_between(from, to) { Self::default() } else { self }
    }

    /// Returns the time at which the rundown ended, if it does not list what was opened earlier.
    fn without(&self, slot: OpenSlot, opened: i64, object: impl Fn() -> u64) -> Option<i64> {
        let (start, end) = self.span?;
        let (holder, is_open) = match slot {
            OpenSlot::Handle(holder, _) => (holder, self.open.get(&slot) == Some(&object())),
            OpenSlot::View(pid, _) => (Holder::Pid(pid), self.open.contains_key(&slot)),
        };
        let is_closed = self.holders.contains(&holder) && opened < start && !is_open;
        is_closed.then_some(end)
    }
}
