//! Handles and views whose closes are among the events that a trace lost.
//!
//! A handle value is of one handle until it is closed. So a handle was closed when its process opens the
//! same value again, or closes it for another object; when the sweep of its handle table at its end does not close it; and
//! when the rundown at the end of the trace does not list it. This is looked at only where events may be missing between
//! the open and that evidence: elsewhere the close would be there, and a handle without a close stays leaked.
//!
//! A sweep or rundown of which events may be missing shows nothing. That it was whole needs an event that comes after its
//! end: the events that are missing often begin with the last event that was read of it, and the file may end there.

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

/// A close that is not in the trace; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenClose {
    pub evidence: ClosedUnseen,
    /// Last time at which it was known to be open.
    pub after: i64,
    /// First time at which it was known to be closed.
    pub before: i64,
}

/// Holder of a handle or view: a row of the processes, or the pid of an unknown process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Process(u32),
    Pid(u32),
}

/// Slot of which a process has at most one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    Handle(Holder, u32),
    /// The pid and the first address.
    View(u32, u64),
}

/// Effect of an event on earlier opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// No effect beyond its object.
    None,
    /// The handle or view opened by the event of this row had been closed before.
    ClosedBefore(u32),
    /// It closes the handle or view that the event of this row opened, even if the object is complete.
    Closes(u32),
}

/// State of open slots while events are followed in time order, and the unobserved closes inferred
/// so far.
pub struct Reuses<'a> {
    lifetimes: Lifetimes<'a>,
    /// Whether each process may have ended unseen, so that later events with its pid are of another one.
    may_have_ended: Vec<bool>,
    /// First event of each thread of these processes.
    threads: HashMap<(u32, u32), i64>,
    /// Row of the open of each slot.
    open: HashMap<Slot, u32>,
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

    /// Takes the next event; `process` has the handle of a close.
    pub fn event(&mut self, row: usize, process: u32) -> Effect {
        let timeline = &self.lifetimes.collected.shared.timeline;
        let Some(kind) = event_kind(timeline.kind[row]) else { return Effect::None };
        let Some(slot) = self.lifetimes.slot(kind, row, process) else { return Effect::None };
        if self.may_have_ended.get(process as usize) == Some(&true) {
            self.threads.entry((process, timeline.tid[row])).or_insert(timeline.time[row]);
        }
        match kind {
            // Only the child that it was for has the value from now on.
            EventKind::HandleDuplicate
                if self.lifetimes.owners.doubtful.contains(&(row as u32)) =>
            {
                self.open.entry(slot).or_insert(row as u32);
                Effect::None
            }
            EventKind::HandleCreate | EventKind::HandleDuplicate | EventKind::Map => {
                let before = self.open.insert(slot, row as u32);
                before.map_or(Effect::None, |before| self.reuse(before, row))
            }
            EventKind::HandleClose => {
                let Some(&opened) = self.open.get(&slot) else { return Effect::None };
                if address(self.lifetimes.collected, row)
                    == address(self.lifetimes.collected, opened as usize)
                {
                    self.open.remove(&slot);
                    return match self.is_lossy(opened, row) {
                        true => Effect::Closes(opened),
                        false => Effect::None,
                    };
                }
                let effect = self.reuse(opened, row);
                if effect != Effect::None {
                    self.open.remove(&slot);
                }
                effect
            }
            EventKind::Unmap => {
                self.open.remove(&slot);
                Effect::None
            }
            _ => Effect::None,
        }
    }

    /// Notes that the handle or view that a row opened is closed. That counts only if its close may be missing; later evidence
    /// does not count then either.
    fn reuse(&mut self, opened: u32, row: usize) -> Effect {
        if !self.is_of_one_process(opened, row) {
            return Effect::None;
        }
        self.closed_before.insert(opened, self.lifetimes.collected.shared.timeline.time[row]);
        match self.is_lossy(opened, row) {
            true => Effect::ClosedBefore(opened),
            false => Effect::None,
        }
    }

    /// Whether the process that opened a handle is the one of a later event: a thread that was there before shows it.
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

    /// Raw time of the evidence for each row whose handle or view is closed.
    pub fn into_closed(self) -> HashMap<u32, i64> {
        self.closed_before
    }
}

impl Lifetimes<'_> {
    /// Slot that an event opens or closes; `None` if it is not known.
    fn slot(&self, kind: EventKind, row: usize, process: u32) -> Option<Slot> {
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
                Some(Slot::Handle(holder, slot(value)))
            }
            // It is of no process of the trace.
            EventKind::HandleDuplicate if owners.failed.contains_key(&(row as u32)) => None,
            EventKind::HandleDuplicate => {
                let duplicate = &duplicates.rows[at];
                let holder = match owners.duplicates[at].inherited_by {
                    NONE if is_kernel_handle(duplicate.target_handle.into()) => {
                        Holder::Process(process)
                    }
                    // The child is not known: the value is of a handle of the parent.
                    NONE if duplicate.is_inherited() || duplicate.target_pid == 0 => return None,
                    NONE => holder(collected, process, duplicate.target_pid)?,
                    child => Holder::Process(child),
                };
                Some(Slot::Handle(holder, slot(duplicate.target_handle)))
            }
            EventKind::Map | EventKind::Unmap => {
                Some(Slot::View(view_pid(collected, row, process), views.rows[at].base))
            }
            _ => None,
        }
    }
}

/// The holder by the process that an event was given to, which may be another one than its pid says.
fn holder(collected: &Collector, process: u32, pid: u32) -> Option<Holder> {
    let known = collected.processes.rows.get(process as usize);
    match known.is_some_and(|known| known.process.pid == pid) {
        true => Some(Holder::Process(process)),
        false => Some(Holder::Pid(pid)).filter(|_| pid != UNKNOWN_ID),
    }
}

/// The kernel address of the object of a create, duplicate, close or rundown.
fn address(collected: &Collector, row: usize) -> u64 {
    let Collector { handles, duplicates, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    match shared.timeline.kind[row] {
        RowKind::HandleDuplicate => duplicates.rows[at].object,
        _ => handles.object[at],
    }
}

/// Unobserved closes.
pub struct UnseenCloses<'a> {
    lifetimes: Lifetimes<'a>,
    closed_before: HashMap<u32, i64>,
    handles_at_end: EndRundown,
    views_at_end: EndRundown,
    sweeps: Sweeps,
}

impl<'a> UnseenCloses<'a> {
    /// Infers closes from reused handles (`closed_before` has the time of the evidence by row), from the ends of processes, and from the rundown at the
    /// end, unless asked to stop.
    pub fn new(
        closed_before: HashMap<u32, i64>,
        lifetimes: Lifetimes<'a>,
        exits: &ExitCloses,
    ) -> Result<Self, Cancelled> {
        Ok(Self {
            handles_at_end: EndRundown::of_handles(&lifetimes)?,
            views_at_end: EndRundown::of_views(&lifetimes),
            sweeps: Sweeps::new(&lifetimes, exits)?,
            closed_before,
            lifetimes,
        })
    }

    /// Whether the handle or view of a row is known to be closed before another event, by a close that
    /// is missing.
    pub fn is_closed_before(&self, opened: u32, row: u32) -> bool {
        let time = &self.lifetimes.collected.shared.timeline.time;
        let missing = &self.lifetimes.missing.times;
        self.closed_before.get(&opened).is_some_and(|closed| {
            *closed <= time[row as usize] && missing.is_between(time[opened as usize], *closed)
        })
    }

    /// Evidence for the close of the handle opened by a row, if the trace has no close of it.
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
                    Slot::Handle(..) => &self.handles_at_end,
                    Slot::View(..) => &self.views_at_end,
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

/// Longest time that a sweep is known to take. Where no event says that a sweep is over, it is if the trace goes on for
/// longer than this, and for longer than the sweep took.
const LONGEST_SWEEP_NS: i64 = 50_000_000;

/// The sweeps of handle tables that ended processes left, of which nothing is missing.
#[derive(Default)]
struct Sweeps {
    /// Raw time, by process, from which on all of its handle events are present: the last one
    /// before the sweep.
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
        // First and last close of each.
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
            // A hole that touches the sweep may have held a part of it.
            end.is_some_and(|end| !missing.times.is_between(*start, end))
        });
        Ok(Self { starts })
    }

    /// Time from which on all handle events of the slot's process are present, up to the end of its
    /// sweep.
    fn start_of(&self, slot: Slot) -> Option<i64> {
        match slot {
            Slot::Handle(Holder::Process(process), _) => self.starts.get(&process).copied(),
            Slot::Handle(Holder::Pid(_), _) | Slot::View(..) => None,
        }
    }
}

/// For each swept process a time at which its sweep was over: images are unloaded after it, and then the pid may be
/// given again. A process has none without such events.
fn swept_ends(lifetimes: &Lifetimes<'_>, swept: &HashMap<u32, (i64, i64)>) -> HashMap<u32, i64> {
    let processes = &lifetimes.collected.processes.rows;
    // By pid, because images say no more.
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
        // Of the sweep before it, which the next one of the pid does not precede.
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
    /// Raw times of its first and last event.
    span: Option<(i64, i64)>,
    /// Holders whose handles and views it lists, even if there are none.
    holders: HashSet<Holder>,
    /// Open slots, with the objects of handles.
    open: HashMap<Slot, u64>,
}

/// Longest pause of the thread that writes a rundown, for which its first event need not be the first one that was read.
const RUNDOWN_PAUSE_NS: i64 = 500_000;

impl EndRundown {
    fn of_handles(lifetimes: &Lifetimes<'_>) -> Result<Self, Cancelled> {
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
            let listed = holder(collected, owners.process[row], timeline.pid[row]);
            let listed = listed.map(|holder| (holder, Slot::Handle(holder, handle)));
            rundown.event(timeline.time[row], listed, address(collected, row));
        }
        let mut rundown = rundown.if_whole(lifetimes);
        // Processes that are alive are listed after the handles.
        let start = rundown.span.map(|(start, _)| start);
        let processes = (0..).zip(&collected.processes.rows);
        let alive = processes.filter(|(_, row)| row.end.is_none() && row.listed >= start);
        rundown.holders.extend(alive.map(|(row, _)| Holder::Process(row)));
        Ok(rundown)
    }

    fn of_views(lifetimes: &Lifetimes<'_>) -> Self {
        let mut rundown = Self::default();
        if !lifetimes.missing.is_none() {
            for view in &lifetimes.collected.views.at_end {
                let listed = (Holder::Pid(view.pid), Slot::View(view.pid, view.base));
                rundown.event(view.time, Some(listed), 0);
            }
        }
        rundown.if_whole(lifetimes)
    }

    /// Adds what an event lists, if its process is known.
    fn event(&mut self, time: i64, listed: Option<(Holder, Slot)>, object: u64) {
        let (start, end) = self.span.get_or_insert((time, time));
        (*start, *end) = (time.min(*start), time.max(*end));
        if let Some((holder, slot)) = listed {
            self.holders.insert(holder);
            self.open.insert(slot, object);
        }
    }

    fn if_whole(self, lifetimes: &Lifetimes<'_>) -> Self {
        let Some((start, end)) = self.span else { return self };
        // Processes are listed after handles and views, so that the first of them ends these; else the trace does.
        let processes = lifetimes.collected.processes.rows.iter();
        let after = processes.filter_map(|row| row.listed.filter(|listed| *listed > end)).min();
        let pause = lifetimes.clock.ticks_apart(RUNDOWN_PAUSE_NS);
        let (from, to) = (start.saturating_sub(pause), after.unwrap_or(i64::MAX));
        match lifetimes.missing.is_certain_between(from, to) {
            true => Self::default(),
            false => self,
        }
    }

    /// Time at which the rundown ended, if it does not list an earlier open.
    fn without(&self, slot: Slot, opened: i64, object: impl Fn() -> u64) -> Option<i64> {
        let (start, end) = self.span?;
        let (holder, is_open) = match slot {
            Slot::Handle(holder, _) => (holder, self.open.get(&slot) == Some(&object())),
            Slot::View(pid, _) => (Holder::Pid(pid), self.open.contains_key(&slot)),
        };
        let is_closed = self.holders.contains(&holder) && opened < start && !is_open;
        is_closed.then_some(end)
    }
}
