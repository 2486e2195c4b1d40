//! Handles and views whose closes are among the events that a trace lost.
//!
//! A handle value means one handle until it is closed. So what a process opened was closed when the process opens the
//! same value again, or closes it for another object; when the process ended; and when the rundown at the end does not list
//! it. This is looked at only where events may be missing between the open and that evidence: elsewhere the close would
//! be there, and what has none stays leaked.

use handlescope_model::rules::{LossTimes, OPENING};
use handlescope_model::tables::ClosedUnseen;
use handlescope_model::{Cancel, Cancelled, EventKind, Poll};
use hashbrown::{HashMap, HashSet};

use super::attribution::{EXIT_GRACE_NS, NONE};
use super::kinds::event_kind;
use super::owners::{EventOwners, view_pid};
use crate::collect::Collector;
use crate::etl::{Clock, EventLoss};
use crate::raw::{RowKind, UNKNOWN_ID};

/// What is missing of the events of a trace; times are raw.
pub struct MissingEvents<'a> {
    all: &'a [EventLoss],
    times: LossTimes,
}

impl<'a> MissingEvents<'a> {
    pub fn new(all: &'a [EventLoss]) -> Self {
        Self { all, times: LossTimes::new(all.iter().map(|loss| loss.span)) }
    }

    /// Whether nothing is.
    pub(super) fn is_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether events of some processors may be missing from one time to another.
    fn is_between(&self, from: i64, to: i64, processors: &HashSet<u16>) -> bool {
        let is_there =
            |processor: Option<u16>| processor.is_none_or(|own| processors.contains(&own));
        let of_these = self.all.iter().filter(|loss| !loss.is_doubtful && is_there(loss.processor));
        LossTimes::new(of_these.map(|loss| loss.span)).is_between(from, to)
    }
}

/// A close that is not in the trace; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenClose {
    pub evidence: ClosedUnseen,
    /// It was still open then.
    pub after: i64,
    /// It was closed then at the latest.
    pub before: i64,
}

/// Whose handle or view something is: a row of the processes, or the pid of a process that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Process(u32),
    Pid(u32),
}

/// What a process has only one of at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Handle(Holder, u32),
    /// The pid and the first address.
    View(u32, u64),
}

/// What an event means for what was opened before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing that its object does not show.
    None,
    /// What the event of this row opened was closed before.
    ClosedBefore(u32),
    /// It closes what the event of this row opened, whatever became of the object since.
    Closes(u32),
}

/// What is open while events are followed in time order, and what is known to be closed though no event says so.
pub struct Reuses<'a> {
    collected: &'a Collector,
    owners: &'a EventOwners,
    missing: &'a MissingEvents<'a>,
    /// The row that opened what is there.
    open: HashMap<Place, u32>,
    closed_before: HashMap<u32, i64>,
}

impl<'a> Reuses<'a> {
    pub(super) fn new(
        collected: &'a Collector,
        owners: &'a EventOwners,
        missing: &'a MissingEvents<'a>,
    ) -> Self {
        Self { collected, owners, missing, open: HashMap::new(), closed_before: HashMap::new() }
    }

    /// Takes the next event.
    pub(super) fn event(&mut self, row: usize) -> Effect {
        let timeline = &self.collected.shared.timeline;
        let Some(kind) = event_kind(timeline.kind[row]) else { return Effect::None };
        let Some(place) = self.place(kind, row) else { return Effect::None };
        match kind {
            EventKind::HandleCreate | EventKind::HandleDuplicate | EventKind::Map => {
                let before = self.open.insert(place, row as u32);
                before.map_or(Effect::None, |before| self.reuse(before, row))
            }
            EventKind::HandleClose => {
                let Some(&opened) = self.open.get(&place) else { return Effect::None };
                if address(self.collected, row) == address(self.collected, opened as usize) {
                    self.open.remove(&place);
                    return match self.is_lossy(opened, row) {
                        true => Effect::Closes(opened),
                        false => Effect::None,
                    };
                }
                let effect = self.reuse(opened, row);
                if effect != Effect::None {
                    self.open.remove(&place);
                }
                effect
            }
            EventKind::Unmap => {
                self.open.remove(&place);
                Effect::None
            }
            _ => Effect::None,
        }
    }

    /// Notes that what a row opened is no longer there. That counts only if its close may be missing; later evidence
    /// does not count then either.
    fn reuse(&mut self, opened: u32, row: usize) -> Effect {
        self.closed_before.insert(opened, self.collected.shared.timeline.time[row]);
        match self.is_lossy(opened, row) {
            true => Effect::ClosedBefore(opened),
            false => Effect::None,
        }
    }

    fn is_lossy(&self, opened: u32, row: usize) -> bool {
        let time = &self.collected.shared.timeline.time;
        self.missing.times.is_between(time[opened as usize], time[row])
    }

    fn place(&self, kind: EventKind, row: usize) -> Option<Place> {
        let Self { collected, owners, .. } = *self;
        place(collected, owners, kind, row)
    }

    /// For each row that opened what is no longer there, the raw time of the event that shows it.
    pub(super) fn into_closed(self) -> HashMap<u32, i64> {
        self.closed_before
    }
}

/// Where what an event opens or closes is; `None` where that is not known.
fn place(
    collected: &Collector,
    owners: &EventOwners,
    kind: EventKind,
    row: usize,
) -> Option<Place> {
    let Collector { handles, duplicates, views, shared, .. } = collected;
    let timeline = &shared.timeline;
    let at = timeline.row[row] as usize;
    match kind {
        EventKind::HandleCreate | EventKind::HandleClose => {
            let holder = holder(collected, owners.process[row], timeline.pid[row])?;
            Some(Place::Handle(holder, handles.handle[at]))
        }
        EventKind::HandleDuplicate => {
            let duplicate = &duplicates.rows[at];
            let holder = match owners.duplicates[at].inherited_by {
                // The child is not known: the value is that of a handle of the parent.
                NONE if duplicate.is_inherited() => return None,
                NONE => {
                    let pid = Some(duplicate.target_pid).filter(|pid| *pid != 0);
                    holder(collected, owners.process[row], pid.unwrap_or(timeline.pid[row]))?
                }
                child => Holder::Process(child),
            };
            Some(Place::Handle(holder, duplicate.target_handle))
        }
        EventKind::Map | EventKind::Unmap => {
            Some(Place::View(view_pid(collected, row, owners.process[row]), views.rows[at].base))
        }
        _ => None,
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

/// What was closed unseen.
pub struct UnseenCloses<'a> {
    collected: &'a Collector,
    owners: &'a EventOwners,
    missing: &'a MissingEvents<'a>,
    closed_before: HashMap<u32, i64>,
    rundown: EndRundown,
    /// [`EXIT_GRACE_NS`] in ticks.
    grace: i64,
}

impl<'a> UnseenCloses<'a> {
    /// From what was opened again, and from the rundown at the end, unless asked to stop.
    pub fn new(
        reuses: Option<Reuses<'a>>,
        collected: &'a Collector,
        owners: &'a EventOwners,
        missing: &'a MissingEvents<'a>,
        clock: &Clock,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        Ok(Self {
            rundown: EndRundown::new(collected, owners, missing, cancel)?,
            closed_before: reuses.map(Reuses::into_closed).unwrap_or_default(),
            collected,
            owners,
            missing,
            grace: clock.ticks_apart(EXIT_GRACE_NS),
        })
    }

    /// Whether what the event of a row opened is known to be closed before another event, by a close that
    /// is missing.
    pub(super) fn is_closed_before(&self, opened: u32, row: u32) -> bool {
        let time = &self.collected.shared.timeline.time;
        let is_missing = |closed| self.missing.times.is_between(time[opened as usize], closed);
        let closed = self.closed_before.get(&opened);
        closed.is_some_and(|closed| *closed <= time[row as usize] && is_missing(*closed))
    }

    /// How what a row opened was closed, if the trace has no close of it.
    pub fn of(&self, row: usize) -> Option<UnseenClose> {
        if self.missing.is_none() {
            return None;
        }
        let timeline = &self.collected.shared.timeline;
        let kind = event_kind(timeline.kind[row]).filter(|kind| OPENING.contains(*kind))?;
        let opened = timeline.time[row];
        let (evidence, latest) = match self.closed_before.get(&(row as u32)) {
            Some(time) => (ClosedUnseen::Reused, *time),
            None => {
                let place = place(self.collected, self.owners, kind, row)?;
                match self.end_of(place, row) {
                    Some(end) => (ClosedUnseen::ProcessEnded, end.saturating_add(self.grace)),
                    None => {
                        let object = |row| address(self.collected, row);
                        (
                            ClosedUnseen::NotInRundown,
                            self.rundown.without(place, opened, || object(row))?,
                        )
                    }
                }
            }
        };
        let (after, before) = self.missing.times.within(opened, latest)?;
        Some(UnseenClose { evidence, after, before })
    }

    /// The end of the process that something is of, if that was seen.
    fn end_of(&self, place: Place, row: usize) -> Option<i64> {
        let process = match place {
            Place::Handle(Holder::Process(process), _) => process,
            Place::Handle(Holder::Pid(_), _) => return None,
            Place::View(..) => self.owners.process[row],
        };
        let known = self.collected.processes.rows.get(process as usize)?;
        let is_of_pid = |pid| known.process.pid == pid;
        match place {
            Place::View(pid, _) if !is_of_pid(pid) => None,
            _ => known.end,
        }
    }
}

/// The handles that were open at the end, if nothing of the rundown is missing: one thread writes it, so that it is
/// whole where the processors that have it miss nothing of the time.
#[derive(Default)]
struct EndRundown {
    /// Raw time of its first event.
    start: i64,
    /// The last event of each process.
    ends: HashMap<Holder, i64>,
    /// The objects of the handles.
    objects: HashMap<(Holder, u32), u64>,
}

/// What kernel handles have and their numbers in the handle table of System do not.
const KERNEL_HANDLE: u32 = 0x8000_0000;

impl EndRundown {
    fn new(
        collected: &Collector,
        owners: &EventOwners,
        missing: &MissingEvents<'_>,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let timeline = &collected.shared.timeline;
        let mut rundown = Self { start: i64::MAX, ..Self::default() };
        if missing.is_none() {
            return Ok(rundown);
        }
        let mut end = i64::MIN;
        let mut processors = HashSet::new();
        let mut poll = Poll::new(cancel);
        for row in 0..timeline.len() {
            poll.round()?;
            if timeline.kind[row] != RowKind::HandleAtEnd {
                continue;
            }
            let time = timeline.time[row];
            processors.insert(timeline.processor[row]);
            (rundown.start, end) = (rundown.start.min(time), end.max(time));
            let Some(holder) = holder(collected, owners.process[row], timeline.pid[row]) else {
                continue;
            };
            let last = rundown.ends.entry(holder).or_insert(time);
            *last = time.max(*last);
            let handle = collected.handles.handle[timeline.row[row] as usize];
            rundown.objects.insert((holder, handle), address(collected, row));
        }
        if missing.is_between(rundown.start, end, &processors) {
            return Ok(Self { start: i64::MAX, ..Self::default() });
        }
        Ok(rundown)
    }

    /// When the rundown of a process had come to its end without a handle that was opened before it.
    fn without(&self, place: Place, opened: i64, object: impl Fn() -> u64) -> Option<i64> {
        let Place::Handle(holder, value) = place else { return None };
        let end = *self.ends.get(&holder)?;
        let is_listed = |value| self.objects.get(&(holder, value)) == Some(&object());
        let is_open = is_listed(value) || is_listed(value & !KERNEL_HANDLE);
        (opened < self.start && !is_open).then_some(end)
    }
}
