//! The events of objects by number, read from the rows that the events are derived from.
//!
//! The opening of the acquisition in row `n` has the number `2n` and its end `2n + 1`. Creations and deletions of
//! objects follow those of all handles and views; reference changes come last. So a mask has a place for every event,
//! and nothing has to be sorted or copied. The times are in [`EventTimes`](super::EventTimes), because few queries need
//! them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::archive::{ArchiveError, Trace};
use crate::column::{Flags, Numbers};
use crate::index::{AcquisitionIdx, EventIdx, ObjectIdx, RowCount};
use crate::key::Key;
use crate::table::Table;
use crate::tables::{
    AcquisitionKind, Acquisitions, ClosedUnseen, End, EventKind, Objects, Origin, ReferenceChanges,
};

/// Handles and views whose states one thread determines at a time.
const STATES_AT_ONCE: usize = 1 << 16;

/// What an event is: the opening or end of an acquisition, an object event, or a reference change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPart {
    Opened,
    Ended,
    Created,
    Deleted,
    Changed,
}

/// Maps event numbers to rows.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// The first number after the openings and ends.
    acquisitions: usize,
    /// The first number after the object events.
    objects: usize,
}

impl Numbering {
    /// Returns what an event is, and its row among the acquisitions, the objects or the reference changes.
    #[inline]
    pub fn part(self, event: usize) -> (EventPart, usize) {
        let of_pair = |number: usize, first, second| {
            (if number.is_multiple_of(2) { first } else { second }, number / 2)
        };
        if event < self.acquisitions {
            of_pair(event, EventPart::Opened, EventPart::Ended)
        } else if event < self.objects {
            of_pair(event - self.acquisitions, EventPart::Created, EventPart::Deleted)
        } else {
            (EventPart::Changed, event - self.objects)
        }
    }

    /// Returns the number of an acquisition's opening, whether or not the trace has it.
    #[inline]
    pub fn opening(self, acquisition: usize) -> usize {
        2 * acquisition
    }

    /// Returns the number of an acquisition's end, whether or not the trace has it.
    #[inline]
    pub fn ending(self, acquisition: usize) -> usize {
        2 * acquisition + 1
    }

    /// Returns the acquisition that an event opened or ended; if it ended several views, the last one.
    #[inline]
    pub fn acquisition(self, event: usize) -> Option<AcquisitionIdx> {
        (event < self.acquisitions).then(|| AcquisitionIdx::from_row(event / 2))
    }

    fn creation(self, object: usize) -> usize {
        self.acquisitions + 2 * object
    }
}

/// The events of the objects of a trace.
pub struct EventTable {
    first: Numbers<AcquisitionIdx>,
    count: Numbers<RowCount<AcquisitionIdx>>,
    created_ns: Numbers<i64>,
    deleted_ns: Numbers<i64>,
    has_object_events: bool,
    /// For each acquisition, the code of how it began.
    origin: Arc<[u8]>,
    /// For each acquisition, the code of how it ended.
    end: Arc<[u8]>,
    /// For each acquisition, the facts that most queries need.
    states: Vec<AcquisitionState>,
    changed: Numbers<ObjectIdx>,
    delta: Numbers<i32>,
    pub numbering: Numbering,
    /// Row of the first allocation, which ends the handles and views.
    pub allocations: usize,
    /// Number of objects, not counting the last ones, which only the rundown at the start lists.
    pub objects: usize,
    /// Views unmapped together with others, each mapped to the last of these, which owns the event.
    unmapped_with: HashMap<u32, u32>,
}

/// Facts about a handle or view, as flags. Most queries need only these, and there may be tens of millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcquisitionState(u8);

impl AcquisitionState {
    /// The trace has the event that opened it.
    const OPENED: u8 = 1;
    /// The trace has the event that ended it.
    const ENDED: u8 = 1 << 1;
    /// It is a view.
    const VIEW: u8 = 1 << 2;
    /// It was duplicated or inherited.
    const COPY: u8 = 1 << 3;
    /// Nothing ended it.
    const OPEN: u8 = 1 << 4;
    /// It is the program's own handle or view, and only the end of its process ended it.
    const AT_EXIT: u8 = 1 << 5;
    /// The trace lost its close.
    const UNSEEN: u8 = 1 << 6;
    /// The rundown at the end lists it.
    const LISTED: u8 = 1 << 7;

    #[inline]
    fn has(self, flags: u8) -> bool {
        self.0 & flags != 0
    }

    /// Whether the trace has the event that opened it.
    #[inline]
    pub fn is_opened(self) -> bool {
        self.has(Self::OPENED)
    }

    /// Whether the trace has an event that ended it.
    #[inline]
    pub fn is_ended(self) -> bool {
        self.has(Self::ENDED)
    }

    #[inline]
    pub fn is_view(self) -> bool {
        self.has(Self::VIEW)
    }

    /// Whether it was duplicated or inherited.
    #[inline]
    pub fn is_copy(self) -> bool {
        self.has(Self::COPY)
    }

    /// Whether the trace has its opening and nothing ended it.
    #[inline]
    pub fn is_leaked(self) -> bool {
        self.0 & (Self::OPENED | Self::OPEN) == Self::OPENED | Self::OPEN
    }

    /// Whether the trace has its opening and only the end of its process ended it.
    #[inline]
    pub fn is_closed_at_exit(self) -> bool {
        self.0 & (Self::OPENED | Self::AT_EXIT) == Self::OPENED | Self::AT_EXIT
    }

    /// Whether the trace has its opening but lost its close.
    #[inline]
    pub fn is_closed_unseen(self) -> bool {
        self.0 & (Self::OPENED | Self::UNSEEN) == Self::OPENED | Self::UNSEEN
    }

    /// Whether the rundown at the end lists it.
    #[inline]
    pub fn is_listed(self) -> bool {
        self.has(Self::LISTED)
    }
}

impl EventTable {
    /// Reads the columns that say which events there are.
    ///
    /// # Errors
    /// If one of them is damaged.
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let kind = trace.codes(Acquisitions::kind)?;
        let is_view = |kind: u8| u32::from(kind) == AcquisitionKind::View.code();
        let is_allocation = |kind: &u8| u32::from(*kind) > AcquisitionKind::View.code();
        let allocations = kind.iter().position(is_allocation).unwrap_or(kind.len());
        let (created_ns, deleted_ns) =
            (trace.values(Objects::created_ns)?, trace.values(Objects::deleted_ns)?);
        let has_object_events = created_ns.has_any() || deleted_ns.has_any();
        let objects = trace.height(Table::Objects)?;
        let acquisitions = 2 * allocations;
        let of_objects = if has_object_events { 2 * objects } else { 0 };
        let mut table = Self {
            first: trace.values(Objects::first_acquisition)?,
            count: trace.values(Objects::acquisition_count)?,
            created_ns,
            deleted_ns,
            has_object_events,
            origin: trace.codes(Acquisitions::origin)?,
            end: trace.codes(Acquisitions::end)?,
            states: Vec::new(),
            changed: trace.changes(ReferenceChanges::object)?,
            delta: trace.changes(ReferenceChanges::delta)?,
            numbering: Numbering { acquisitions, objects: acquisitions + of_objects },
            allocations,
            objects,
            unmapped_with: HashMap::new(),
        };
        let in_rundown = trace.values(Acquisitions::in_rundown)?;
        // An event has a time. A converted trace may have closes without one.
        let is_before =
            |code: &u8| !Origin::from_code((*code).into()).is_some_and(Origin::is_in_trace);
        let is_open = |code: &u8| u32::from(*code) == End::Open.code();
        let opened_ns = times_unless(trace, Acquisitions::opened_ns, &table.origin, is_before)?;
        let ended_ns = times_unless(trace, Acquisitions::ended_ns, &table.end, is_open)?;
        let has = |times: &Option<Numbers<i64>>, row: usize| {
            times.as_ref().is_none_or(|times| times.get(row).is_some())
        };
        let has_time = |row: usize| (has(&opened_ns, row), has(&ended_ns, row));
        let kinds = kind.get(..allocations).unwrap_or_default();
        let states = kinds.par_iter().enumerate().with_min_len(STATES_AT_ONCE);
        table.states = states
            .map(|(row, kind)| table.find_state(row, is_view(*kind), &in_rundown, has_time(row)))
            .collect();
        if kinds.iter().any(|kind| is_view(*kind)) {
            table.unmapped_with = table.unmapped_together(trace)?;
        }
        while table.objects > 0 && table.is_of_start(ObjectIdx::from_row(table.objects - 1)) {
            table.objects -= 1;
        }
        Ok(table)
    }

    fn find_state(
        &self,
        row: usize,
        is_view: bool,
        in_rundown: &Flags,
        (has_opening, has_end): (bool, bool),
    ) -> AcquisitionState {
        let (origin, end) = (self.origin(row), self.end(row));
        let is_closed = matches!(end, Some(End::Closed | End::AtExit));
        let flags = [
            (origin.is_some_and(Origin::is_in_trace) && has_opening, AcquisitionState::OPENED),
            (is_closed && has_end, AcquisitionState::ENDED),
            (is_view, AcquisitionState::VIEW),
            (matches!(origin, Some(Origin::Duplicate | Origin::Inherit)), AcquisitionState::COPY),
            (end == Some(End::Open), AcquisitionState::OPEN),
            (
                end == Some(End::AtExit) && origin != Some(Origin::Inherit),
                AcquisitionState::AT_EXIT,
            ),
            (end.is_some_and(|end| end.unseen().is_some()), AcquisitionState::UNSEEN),
            (in_rundown.get(row), AcquisitionState::LISTED),
        ];
        AcquisitionState(
            flags.into_iter().filter(|(is, _)| *is).fold(0, |state, (_, flag)| state | flag),
        )
    }

    /// Returns the facts about a handle or view.
    #[inline]
    pub fn state(&self, acquisition: usize) -> AcquisitionState {
        self.states.get(acquisition).copied().unwrap_or(AcquisitionState(0))
    }

    /// Returns the facts about all handles and views, by row.
    pub fn states(&self) -> &[AcquisitionState] {
        &self.states
    }

    /// Whether an object is known only from the rundown at the start: it lists handles of the object, but nothing
    /// happens to them.
    fn is_of_start(&self, object: ObjectIdx) -> bool {
        !self.acquisitions(object).is_empty()
            && self.events(object).next().is_none()
            && self.listed(object).next().is_none()
    }

    /// Returns the count of event numbers, not all of which stand for events.
    pub fn height(&self) -> usize {
        self.numbering.objects + self.changed.len()
    }

    /// Returns the rows of an object's handles and views.
    #[inline]
    pub fn acquisitions(&self, object: ObjectIdx) -> Range<usize> {
        let first = self.first.get(object.row()).map_or(0, AcquisitionIdx::row);
        let first = first.min(self.allocations);
        let count = self.count.get(object.row()).map_or(0, |count| count.0 as usize);
        first..first.saturating_add(count).min(self.allocations)
    }

    /// Iterates over the rows of an object's handles that the rundown at the end lists.
    #[inline]
    pub fn listed(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        self.acquisitions(object).filter(|row| self.state(*row).is_listed())
    }

    /// Iterates over the events of an object, in no particular order.
    #[inline]
    pub fn events(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        let rows = self.acquisitions(object);
        let (first, end) = (self.numbering.opening(rows.start), self.numbering.opening(rows.end));
        let others = self.has_other_events().then(|| self.other_events(object));
        (first..end).filter(|event| self.is_event(*event)).chain(others.into_iter().flatten())
    }

    /// Whether there are any events other than openings and ends.
    pub fn has_other_events(&self) -> bool {
        self.has_object_events || !self.changed.is_empty()
    }

    /// Whether the number of an opening or an end stands for an event.
    #[inline]
    fn is_event(&self, number: usize) -> bool {
        let (state, is_ending) = (self.state(number / 2), !number.is_multiple_of(2));
        if !is_ending {
            return state.is_opened();
        }
        // One unmap may end several views and counts as the event of the last one. Most traces have no views.
        if self.unmapped_with.is_empty() {
            state.is_ended()
        } else {
            state.is_ended() && !self.unmapped_with.contains_key(&((number / 2) as u32))
        }
    }

    fn other_events(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        self.creation(object).into_iter().chain(self.deletion(object)).chain(self.changes(object))
    }

    fn creation(&self, object: ObjectIdx) -> Option<usize> {
        let is_there = self.has_object_events && self.created_ns.get(object.row()).is_some();
        is_there.then(|| self.numbering.creation(object.row()))
    }

    /// Returns the reference changes of an object, in order.
    pub fn changes(&self, object: ObjectIdx) -> Range<usize> {
        let first_from = |object: u32| {
            let (mut from, mut to) = (0, self.changed.len());
            while from < to {
                let middle = from.midpoint(to);
                if self.changed.get(middle).is_some_and(|of| of.0 < object) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            from
        };
        if self.changed.is_empty() {
            return 0..0;
        }
        let first = self.numbering.objects;
        first + first_from(object.0)..first + first_from(object.0.saturating_add(1))
    }

    /// Returns how a handle or view began; `None` for a code of a later version.
    #[inline]
    pub fn origin(&self, acquisition: usize) -> Option<Origin> {
        self.origin.get(acquisition).and_then(|code| Origin::from_code((*code).into()))
    }

    /// Returns how a handle or view ended; `None` for a code of a later version.
    #[inline]
    pub fn end(&self, acquisition: usize) -> Option<End> {
        self.end.get(acquisition).and_then(|code| End::from_code((*code).into()))
    }

    /// Returns the event that opened a handle or view, if the trace has it.
    #[inline]
    pub fn opening(&self, acquisition: usize) -> Option<usize> {
        self.state(acquisition).is_opened().then(|| self.numbering.opening(acquisition))
    }

    /// Returns the event that ended a handle or view, if the trace has one; one unmap may end several views.
    #[inline]
    pub fn ending(&self, acquisition: usize) -> Option<usize> {
        if !self.state(acquisition).is_ended() {
            return None;
        }
        // Most traces have no views.
        let last = if self.unmapped_with.is_empty() {
            None
        } else {
            self.unmapped_with.get(&(acquisition as u32))
        };
        Some(self.numbering.ending(last.map_or(acquisition, |last| *last as usize)))
    }

    /// Returns the kind of an event.
    pub fn kind(&self, event: usize) -> Option<EventKind> {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => Some(match self.state(row) {
                state if state.is_copy() => EventKind::HandleDuplicate,
                state if state.is_view() => EventKind::Map,
                _ => EventKind::HandleCreate,
            }),
            (EventPart::Ended, row) if self.state(row).is_view() => Some(EventKind::Unmap),
            (EventPart::Ended, _) => Some(EventKind::HandleClose),
            (EventPart::Created, _) => Some(EventKind::ObjectCreate),
            (EventPart::Deleted, _) => Some(EventKind::ObjectDelete),
            (EventPart::Changed, row) => Some(if self.delta.get(row)? < 0 {
                EventKind::Dereference
            } else {
                EventKind::Reference
            }),
        }
    }

    /// Returns the change of the reference count.
    pub fn delta(&self, event: usize) -> Option<i32> {
        match self.numbering.part(event) {
            (EventPart::Changed, row) => self.delta.get(row),
            _ => None,
        }
    }

    /// Returns the event that ended what an event opened.
    pub fn closing(&self, event: usize) -> Option<usize> {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => self.ending(row),
            _ => None,
        }
    }

    /// Whether nothing in the trace closes what an event opened, and nothing shows that it was closed.
    #[inline]
    pub fn is_leaked(&self, event: usize) -> bool {
        let (part, row) = self.numbering.part(event);
        part == EventPart::Opened && self.state(row).is_leaked()
    }

    /// Whether a close or unmap happened because the process ended; or, for an opening, whether only that closed it.
    #[inline]
    pub fn is_closed_at_exit(&self, event: usize) -> bool {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => self.state(row).is_closed_at_exit(),
            (EventPart::Ended, row) => self.end(row) == Some(End::AtExit),
            _ => false,
        }
    }

    /// Returns the evidence that what an event opened was closed, if the trace lost the close itself.
    #[inline]
    pub fn closed_unseen(&self, event: usize) -> Option<ClosedUnseen> {
        match self.numbering.part(event) {
            (EventPart::Opened, row) => self.end(row)?.unseen(),
            _ => None,
        }
    }

    /// Returns the event that created an object: its creation, else its first map or create, else its first duplicate.
    /// Rows of an object are in the order of their openings.
    pub fn create_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        self.create_event_of(object, |_| true)
    }

    /// Returns the event that created an object, considering only events for which `is_left` holds.
    pub fn create_event_of(
        &self,
        object: ObjectIdx,
        is_left: impl Fn(usize) -> bool,
    ) -> Option<EventIdx> {
        if let Some(creation) = self.creation(object).filter(|creation| is_left(*creation)) {
            return Some(EventIdx::from_row(creation));
        }
        let mut copy = None;
        for row in self.acquisitions(object) {
            let Some(opening) = self.opening(row).filter(|opening| is_left(*opening)) else {
                continue;
            };
            if !self.state(row).is_copy() {
                return Some(EventIdx::from_row(opening));
            }
            copy = copy.or(Some(EventIdx::from_row(opening)));
        }
        copy
    }

    /// Whether the trace shows the end of an object: its deletion, an unmap, or the closing of all its handles.
    pub fn has_destroy_event(&self, object: ObjectIdx) -> bool {
        if self.deletion(object).is_some() {
            return true;
        }
        let (mut has_opened, mut has_open, mut has_unmap) = (false, false, false);
        for row in self.acquisitions(object) {
            let state = self.state(row);
            if state.is_view() {
                has_unmap |= state.is_ended();
            } else if state.is_opened() {
                has_opened = true;
                has_open |= !state.is_ended();
            }
        }
        has_unmap || has_opened && !has_open
    }

    /// Returns the deletion of an object, if the trace has it.
    pub fn deletion(&self, object: ObjectIdx) -> Option<usize> {
        let is_there = self.has_object_events && self.deleted_ns.get(object.row()).is_some();
        is_there.then(|| self.numbering.creation(object.row()) + 1)
    }

    /// Finds views that a single unmap of their process ended together, and maps each to the last of them.
    fn unmapped_together(&self, trace: &Trace) -> Result<HashMap<u32, u32>, ArchiveError> {
        let process = trace.values(Acquisitions::process)?;
        let tid = trace.values(Acquisitions::ended_tid)?;
        let ended_ns = trace.values(Acquisitions::ended_ns)?;
        let mut unmapped_with = HashMap::new();
        for object in (0..self.objects).map(ObjectIdx::from_row) {
            let rows = self.acquisitions(object);
            if rows.len() < 2 || !self.state(rows.start).is_view() {
                continue;
            }
            let mut last: HashMap<_, u32> = HashMap::new();
            let is_unmapped =
                |row: &usize| self.opening(*row).is_some() && self.ending(*row).is_some();
            let unmaps = |row: usize| (ended_ns.get(row), process.get(row), tid.get(row));
            for row in rows.clone().filter(is_unmapped) {
                last.insert(unmaps(row), row as u32);
            }
            for row in rows.filter(is_unmapped) {
                let last = last.get(&unmaps(row)).filter(|last| **last != row as u32);
                unmapped_with.extend(last.map(|last| (row as u32, *last)));
            }
        }
        Ok(unmapped_with)
    }
}

/// Reads the times, unless exactly the acquisitions with certain codes lack one, as in every recorded trace.
fn times_unless(
    trace: &Trace,
    times: Key<Acquisitions, Option<i64>>,
    codes: &[u8],
    has_none: impl Fn(&u8) -> bool,
) -> Result<Option<Numbers<i64>>, ArchiveError> {
    let without = codes.iter().filter(|code| has_none(code)).count() as u64;
    if trace.null_count(times)? == Some(without) { Ok(None) } else { trace.values(times).map(Some) }
}
