//! The events of objects by number, read from the rows that they are made of.
//!
//! The opening of the acquisition in row `n` has the number `2n` and its end `2n + 1`; the creation and the deletion of objects
//! come after those of all handles and views, and reference changes last. So a mask has a place for every event, and nothing has
//! to be sorted or copied; [`EventTable::in_order`] merges the events of one object by time.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::archive::{ArchiveError, Trace};
use crate::column::{Flags, Numbers};
use crate::index::{AcquisitionIdx, EventIdx, ObjectIdx, ProcessIdx, RowCount};
use crate::rules::handle_slot;
use crate::table::Table;
use crate::tables::{
    AcquisitionKind, Acquisitions, ClosedUnseen, End, EventKind, Objects, Origin, ReferenceChanges,
};

/// Handles and views whose states one thread finds at a time.
const STATES_AT_ONCE: usize = 1 << 16;

/// What an event is: the opening or the end of an acquisition, an object event, or a reference change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Opened,
    Ended,
    Created,
    Deleted,
    Changed,
}

/// Which numbers stand for which events.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// The first number after openings and ends.
    acquisitions: usize,
    /// The first number after object events.
    objects: usize,
}

impl Numbering {
    /// What an event is, and the row of the acquisitions, the objects or the reference changes that it is made of.
    #[inline]
    pub fn part(self, event: usize) -> (Part, usize) {
        let of_pair = |number: usize, first, second| {
            (if number.is_multiple_of(2) { first } else { second }, number / 2)
        };
        if event < self.acquisitions {
            of_pair(event, Part::Opened, Part::Ended)
        } else if event < self.objects {
            of_pair(event - self.acquisitions, Part::Created, Part::Deleted)
        } else {
            (Part::Changed, event - self.objects)
        }
    }

    /// The number of the opening of an acquisition, whether the trace has it or not.
    #[inline]
    pub fn opening(self, acquisition: usize) -> usize {
        2 * acquisition
    }

    /// The number of the end of an acquisition, whether the trace has it or not.
    #[inline]
    pub fn ending(self, acquisition: usize) -> usize {
        2 * acquisition + 1
    }

    /// The acquisition that an event opened or ended; of several views the last one.
    #[inline]
    pub fn acquisition(self, event: usize) -> Option<AcquisitionIdx> {
        (event < self.acquisitions).then(|| AcquisitionIdx::of(event / 2))
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
    origin: Numbers<u32>,
    end: Numbers<u32>,
    /// What there is to know of each handle and view, by row.
    states: Vec<State>,
    opened_ns: Numbers<i64>,
    ended_ns: Numbers<i64>,
    changed: Numbers<ObjectIdx>,
    changed_ns: Numbers<i64>,
    delta: Numbers<i32>,
    pub numbering: Numbering,
    /// The first allocation, which is the end of handles and views.
    pub allocations: usize,
    /// Number of objects up to the last one that is not of the rundown at the start alone: these are the last ones.
    pub objects: usize,
    /// Views that were unmapped together with others, each with the last of these, which has the event.
    unmapped_with: HashMap<u32, u32>,
    sources: OnceLock<Option<Sources>>,
}

/// Facts about a handle or view, as flags: most questions need only these, and there may be tens of millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(u8);

impl State {
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
    /// It is the program's own, and only the end of its process ended it.
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

    /// Whether the trace has its opening, and nothing ended it.
    #[inline]
    pub fn is_leaked(self) -> bool {
        self.0 & (Self::OPENED | Self::OPEN) == Self::OPENED | Self::OPEN
    }

    /// Whether the trace has its opening, and only the end of its process ended it.
    #[inline]
    pub fn is_closed_at_exit(self) -> bool {
        self.0 & (Self::OPENED | Self::AT_EXIT) == Self::OPENED | Self::AT_EXIT
    }

    /// Whether the trace has its opening, and lost its close.
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

/// What comes first at one time: the creation of an object, an end, an opening, an end of what is opened then, a reference
/// change, the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Created,
    Ended,
    Opened,
    EndedAtOnce,
    Changed,
    Deleted,
}

/// Place of an event among those of its object.
type Place = (i64, Phase, usize);

impl EventTable {
    /// Reads the columns that say which events there are.
    ///
    /// # Errors
    /// When one of them is damaged.
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let kind = trace.values(Acquisitions::kind)?;
        let view = AcquisitionKind::View.code();
        let first_allocation = kind.values().iter().position(|kind| *kind > view);
        let allocations = first_allocation.unwrap_or(kind.len());
        let (created_ns, deleted_ns) =
            (trace.values(Objects::created_ns)?, trace.values(Objects::deleted_ns)?);
        let has_object_events = created_ns.has_any() || deleted_ns.has_any();
        let objects = trace.height(Table::Objects)?;
        let acquisitions = 2 * allocations;
        let of_objects = if has_object_events { 2 * objects } else { 0 };
        let has_views = kind.values().get(..allocations).unwrap_or_default().contains(&view);
        let mut table = Self {
            first: trace.values(Objects::first_acquisition)?,
            count: trace.values(Objects::acquisition_count)?,
            created_ns,
            deleted_ns,
            has_object_events,
            origin: trace.values(Acquisitions::origin)?,
            end: trace.values(Acquisitions::end)?,
            states: Vec::new(),
            opened_ns: trace.values(Acquisitions::opened_ns)?,
            ended_ns: trace.values(Acquisitions::ended_ns)?,
            changed: trace.values(ReferenceChanges::object)?,
            changed_ns: trace.values(ReferenceChanges::time_ns)?,
            delta: trace.values(ReferenceChanges::delta)?,
            numbering: Numbering { acquisitions, objects: acquisitions + of_objects },
            allocations,
            objects,
            unmapped_with: HashMap::new(),
            sources: OnceLock::new(),
        };
        let in_rundown = trace.values(Acquisitions::in_rundown)?;
        let states = (0..allocations).into_par_iter().with_min_len(STATES_AT_ONCE);
        table.states = states
            .map(|row| table.find_state(row, kind.get(row) == Some(view), &in_rundown))
            .collect();
        if has_views {
            table.unmapped_with = table.unmapped_together(trace)?;
        }
        while table.objects > 0 && table.is_of_start(ObjectIdx::of(table.objects - 1)) {
            table.objects -= 1;
        }
        Ok(table)
    }

    fn find_state(&self, row: usize, is_view: bool, in_rundown: &Flags) -> State {
        let (origin, end) = (self.origin(row), self.end(row));
        let is_closed = matches!(end, Some(End::Closed | End::AtExit));
        let is_copy = matches!(origin, Some(Origin::Duplicate | Origin::Inherit));
        let is_in_trace = origin.is_some_and(Origin::is_in_trace);
        let flags = [
            (is_in_trace && self.opened_ns.get(row).is_some(), State::OPENED),
            // An imported extract may say that something was closed, and have no event of it.
            (is_closed && self.ended_ns.get(row).is_some(), State::ENDED),
            (is_view, State::VIEW),
            (is_copy, State::COPY),
            (end == Some(End::Open), State::OPEN),
            (end == Some(End::AtExit) && origin != Some(Origin::Inherit), State::AT_EXIT),
            (end.is_some_and(|end| end.unseen().is_some()), State::UNSEEN),
            (in_rundown.get(row), State::LISTED),
        ];
        State(flags.into_iter().filter(|(is, _)| *is).fold(0, |state, (_, flag)| state | flag))
    }

    /// What there is to know of a handle or view.
    #[inline]
    pub fn state(&self, acquisition: usize) -> State {
        self.states.get(acquisition).copied().unwrap_or(State(0))
    }

    /// Whether only the rundown at the start lists the handles of an object, and nothing happens to them.
    fn is_of_start(&self, object: ObjectIdx) -> bool {
        !self.acquisitions(object).is_empty()
            && self.events(object).next().is_none()
            && self.listed(object).next().is_none()
    }

    /// Number of numbers, of which not all stand for events.
    pub fn height(&self) -> usize {
        self.numbering.objects + self.changed.len()
    }

    /// Rows of the handles and views of an object.
    #[inline]
    pub fn acquisitions(&self, object: ObjectIdx) -> Range<usize> {
        let first = self.first.get(object.row()).map_or(0, AcquisitionIdx::row);
        let first = first.min(self.allocations);
        let count = self.count.get(object.row()).map_or(0, |count| count.0 as usize);
        first..first.saturating_add(count).min(self.allocations)
    }

    /// Rows of the handles of an object that the rundown at the end lists.
    #[inline]
    pub fn listed(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        self.acquisitions(object).filter(|row| self.state(*row).is_listed())
    }

    /// The events of an object, in no order.
    #[inline]
    pub fn events(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        let rows = self.acquisitions(object);
        let (first, end) = (self.numbering.opening(rows.start), self.numbering.opening(rows.end));
        let has_others = self.has_object_events || !self.changed.is_empty();
        let others = has_others.then(|| self.other_events(object));
        (first..end).filter(|event| self.is_event(*event)).chain(others.into_iter().flatten())
    }

    /// Whether the number of an opening or an end stands for an event.
    #[inline]
    fn is_event(&self, number: usize) -> bool {
        let (state, is_ending) = (self.state(number / 2), !number.is_multiple_of(2));
        match is_ending {
            false => state.is_opened(),
            // One unmap ends several views, and is of the last one. Most traces have no views.
            true if self.unmapped_with.is_empty() => state.is_ended(),
            true => state.is_ended() && !self.unmapped_with.contains_key(&((number / 2) as u32)),
        }
    }

    fn other_events(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        self.creation(object).into_iter().chain(self.deletion(object)).chain(self.changes(object))
    }

    fn creation(&self, object: ObjectIdx) -> Option<usize> {
        let is_there = self.has_object_events && self.created_ns.get(object.row()).is_some();
        is_there.then(|| self.numbering.creation(object.row()))
    }

    fn deletion(&self, object: ObjectIdx) -> Option<usize> {
        let is_there = self.has_object_events && self.deleted_ns.get(object.row()).is_some();
        is_there.then(|| self.numbering.creation(object.row()) + 1)
    }

    /// The reference changes of an object, in their order.
    pub fn changes(&self, object: ObjectIdx) -> Range<usize> {
        let first_from = |object: u32| {
            let (mut from, mut to) = (0, self.changed.len());
            while from < to {
                let middle = from.midpoint(to);
                match self.changed.get(middle).is_some_and(|of| of.0 < object) {
                    true => from = middle + 1,
                    false => to = middle,
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

    /// How a handle or view began; `None` for a code of a later version.
    #[inline]
    pub fn origin(&self, acquisition: usize) -> Option<Origin> {
        self.origin.get(acquisition).and_then(Origin::from_code)
    }

    /// How a handle or view ended; `None` for a code of a later version.
    #[inline]
    pub fn end(&self, acquisition: usize) -> Option<End> {
        self.end.get(acquisition).and_then(End::from_code)
    }

    /// The event that opened a handle or view, if the trace has it.
    #[inline]
    pub fn opening(&self, acquisition: usize) -> Option<usize> {
        self.state(acquisition).is_opened().then(|| self.numbering.opening(acquisition))
    }

    /// The event that ended a handle or view, if the trace has one; one unmap ends several views.
    #[inline]
    pub fn ending(&self, acquisition: usize) -> Option<usize> {
        if !self.state(acquisition).is_ended() {
            return None;
        }
        // Most traces have no views.
        let last = match self.unmapped_with.is_empty() {
            true => None,
            false => self.unmapped_with.get(&(acquisition as u32)),
        };
        Some(self.numbering.ending(last.map_or(acquisition, |last| *last as usize)))
    }

    /// The kind of an event.
    pub fn kind(&self, event: usize) -> Option<EventKind> {
        match self.numbering.part(event) {
            (Part::Opened, row) => Some(match self.state(row) {
                state if state.is_copy() => EventKind::HandleDuplicate,
                state if state.is_view() => EventKind::Map,
                _ => EventKind::HandleCreate,
            }),
            (Part::Ended, row) if self.state(row).is_view() => Some(EventKind::Unmap),
            (Part::Ended, _) => Some(EventKind::HandleClose),
            (Part::Created, _) => Some(EventKind::ObjectCreate),
            (Part::Deleted, _) => Some(EventKind::ObjectDelete),
            (Part::Changed, row) => Some(match self.delta.get(row)? < 0 {
                true => EventKind::Dereference,
                false => EventKind::Reference,
            }),
        }
    }

    /// The time of an event, nanoseconds since session start; only an order in a trace without a clock.
    #[inline]
    pub fn time_ns(&self, event: usize) -> Option<i64> {
        match self.numbering.part(event) {
            (Part::Opened, row) => self.opened_ns.get(row),
            (Part::Ended, row) => self.ended_ns.get(row),
            (Part::Created, row) => self.created_ns.get(row),
            (Part::Deleted, row) => self.deleted_ns.get(row),
            (Part::Changed, row) => self.changed_ns.get(row),
        }
    }

    /// The latest time of any event.
    pub fn last_ns(&self) -> Option<i64> {
        let last = |times: &Numbers<i64>, rows: usize| times.iter().take(rows).flatten().max();
        let times = [&self.opened_ns, &self.ended_ns];
        let of_pairs = times.into_iter().filter_map(|times| last(times, self.allocations));
        let others = [&self.created_ns, &self.deleted_ns, &self.changed_ns];
        of_pairs.chain(others.into_iter().filter_map(|times| last(times, usize::MAX))).max()
    }

    /// Change of the reference count.
    pub fn delta(&self, event: usize) -> Option<i32> {
        match self.numbering.part(event) {
            (Part::Changed, row) => self.delta.get(row),
            _ => None,
        }
    }

    /// The event that ended what an event opened.
    pub fn closing(&self, event: usize) -> Option<usize> {
        match self.numbering.part(event) {
            (Part::Opened, row) => self.ending(row),
            _ => None,
        }
    }

    /// Whether nothing in the trace closes what an event opened, and nothing shows that it was closed.
    #[inline]
    pub fn is_leaked(&self, event: usize) -> bool {
        let (part, row) = self.numbering.part(event);
        part == Part::Opened && self.state(row).is_leaked()
    }

    /// Whether the end of the process made a close or unmap, or was all that closed what an event opened.
    #[inline]
    pub fn is_closed_at_exit(&self, event: usize) -> bool {
        match self.numbering.part(event) {
            (Part::Opened, row) => self.state(row).is_closed_at_exit(),
            (Part::Ended, row) => self.end(row) == Some(End::AtExit),
            _ => false,
        }
    }

    /// Evidence of the close of what an event opened, where the trace lost the close.
    #[inline]
    pub fn closed_unseen(&self, event: usize) -> Option<ClosedUnseen> {
        match self.numbering.part(event) {
            (Part::Opened, row) => self.end(row)?.unseen(),
            _ => None,
        }
    }

    /// The latest time at which what an event opened can have been closed, where the trace lost the close.
    pub fn closed_before_ns(&self, event: usize) -> Option<i64> {
        self.closed_unseen(event)?;
        self.ended_ns.get(event / 2)
    }

    /// The event that created an object: its creation, else its first map or create, else its first duplicate.
    pub fn create_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        if let Some(creation) = self.creation(object) {
            return Some(EventIdx::of(creation));
        }
        let rows = self.acquisitions(object);
        if rows.len() == 1 {
            return self.opening(rows.start).map(EventIdx::of);
        }
        let openings =
            rows.filter_map(|row| Some((self.state(row).is_copy(), row, self.opening(row)?)));
        let first = openings.min_by_key(|(is_copy, row, opening)| {
            (*is_copy, self.time_ns(*opening).unwrap_or_default(), *row)
        });
        first.map(|(.., opening)| EventIdx::of(opening))
    }

    /// The event that ended an object: its deletion, else its last unmap, else the last close when all handles are closed.
    pub fn destroy_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        if let Some(deletion) = self.deletion(object) {
            return Some(EventIdx::of(deletion));
        }
        let rows = self.acquisitions(object);
        if rows.len() == 1 {
            let state = self.state(rows.start);
            let is_end = state.is_ended() && (state.is_opened() || state.is_view());
            return is_end.then(|| EventIdx::of(self.numbering.ending(rows.start)));
        }
        let (mut unmap, mut close) = (None, None);
        let (mut has_opened, mut has_open) = (false, false);
        for row in rows {
            let (state, ending) = (self.state(row), self.ending(row));
            let is_view = state.is_view();
            if !is_view && state.is_opened() {
                has_opened = true;
                has_open |= ending.is_none();
            }
            if let Some(ending) = ending {
                let last: &mut Option<(Place, usize)> =
                    if is_view { &mut unmap } else { &mut close };
                *last = (*last).max(Some((self.place(ending, object), ending)));
            }
        }
        let close = close.filter(|_| has_opened && !has_open);
        unmap.or(close).map(|(_, ending)| EventIdx::of(ending))
    }

    /// The place of an event among those of its object.
    fn place(&self, event: usize, object: ObjectIdx) -> Place {
        let time_ns = self.time_ns(event).unwrap_or_default();
        let (part, row) = self.numbering.part(event);
        let phase = match part {
            Part::Opened => Phase::Opened,
            Part::Ended => {
                let opened_ns = self.opening(row).and_then(|opening| self.time_ns(opening));
                if opened_ns == Some(time_ns) { Phase::EndedAtOnce } else { Phase::Ended }
            }
            Part::Created => Phase::Created,
            Part::Deleted => Phase::Deleted,
            Part::Changed => Phase::Changed,
        };
        let row = if part == Part::Created || part == Part::Deleted { object.row() } else { row };
        (time_ns, phase, row)
    }

    /// Puts the events of an object, in the order in which they happened, behind those that are there.
    pub fn in_order(&self, trace: &Trace, object: ObjectIdx, events: &mut Vec<usize>) {
        let first = events.len();
        events.extend(self.events(object));
        let Some(added) = events.get_mut(first..).filter(|added| added.len() > 1) else { return };
        added.sort_by_cached_key(|event| self.place(*event, object));
        let is_ended_before = |pair: &[usize]| {
            let is = |event: usize| self.numbering.part(event).0;
            self.time_ns(pair[0]) == self.time_ns(pair[1])
                && is(pair[0]) == Part::Ended
                && is(pair[1]) == Part::Opened
        };
        if added.windows(2).any(is_ended_before)
            && let Some(sources) = self.sources.get_or_init(|| Sources::load(trace).ok())
        {
            self.put_after(sources, object, added);
        }
    }

    /// Puts closes after the duplicates that were made at the same time of what they close.
    fn put_after(&self, sources: &Sources, object: ObjectIdx, events: &mut [usize]) {
        let numbering = self.numbering;
        let copied: HashSet<_> = events
            .iter()
            .filter(|event| numbering.part(**event).0 == Part::Opened)
            .filter_map(|event| {
                let (_, row) = numbering.part(*event);
                let slot = handle_slot(sources.source_key.get(row)?);
                Some((self.time_ns(*event), sources.source_process.get(row), slot))
            })
            .collect();
        events.sort_by_cached_key(|event| {
            let (time_ns, mut phase, place) = self.place(*event, object);
            let (part, row) = numbering.part(*event);
            if part == Part::Ended {
                let slot = handle_slot(sources.key.get(row).unwrap_or_default());
                if copied.contains(&(Some(time_ns), sources.process.get(row), slot)) {
                    phase = Phase::EndedAtOnce;
                }
            }
            (time_ns, phase, place)
        });
    }

    /// Views that one unmap of their process ended together, each with the last of them.
    fn unmapped_together(&self, trace: &Trace) -> Result<HashMap<u32, u32>, ArchiveError> {
        let process = trace.values(Acquisitions::process)?;
        let tid = trace.values(Acquisitions::ended_tid)?;
        let mut unmapped_with = HashMap::new();
        for object in (0..self.objects).map(ObjectIdx::of) {
            let rows = self.acquisitions(object);
            if rows.len() < 2 || !self.state(rows.start).is_view() {
                continue;
            }
            let mut last: HashMap<_, u32> = HashMap::new();
            let is_unmapped =
                |row: &usize| self.opening(*row).is_some() && self.ending(*row).is_some();
            let unmaps = |row: usize| (self.ended_ns.get(row), process.get(row), tid.get(row));
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

/// The columns that say which handle was duplicated.
struct Sources {
    process: Numbers<ProcessIdx>,
    key: Numbers<u64>,
    source_process: Numbers<ProcessIdx>,
    source_key: Numbers<u64>,
}

impl Sources {
    fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            process: trace.values(Acquisitions::process)?,
            key: trace.values(Acquisitions::key)?,
            source_process: trace.values(Acquisitions::source_process)?,
            source_key: trace.values(Acquisitions::source_key)?,
        })
    }
}
