//! The order of the events of each object: openings and ends of its acquisitions, object events and reference changes, merged
//! by time.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::archive::{ArchiveError, Trace};
use crate::column::{Flags, Numbers};
use crate::index::{AcquisitionIdx, EventIdx, ObjectIdx, ProcessIdx, RowCount, sentinel};
use crate::rules::handle_slot;
use crate::table::Table;
use crate::tables::{
    AcquisitionKind, Acquisitions, End, EventKind, Objects, Origin, ReferenceChanges,
};

/// What an event is made of: the opening or the end of an acquisition, an object event, or a reference change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Opened,
    Ended,
    Created,
    Deleted,
    Changed,
}

/// The events of all objects, one object after the other.
#[derive(Default)]
pub struct EventOrder {
    pub parts: Vec<Part>,
    /// The row that each event is made of, of the acquisitions, of the objects, or of the reference changes.
    pub rows: Vec<u32>,
    /// The first event of each object; an extra entry is the end.
    pub first: Vec<u32>,
    /// The events that opened and ended each acquisition, or [`sentinel`].
    pub opened_at: Vec<u32>,
    pub ended_at: Vec<u32>,
    /// The events that created and ended each object, or [`sentinel`].
    pub create: Vec<u32>,
    pub destroy: Vec<u32>,
    /// Acquisitions that the rundown at the end lists, by object.
    pub listed: Vec<u32>,
    /// The first of these of each object; an extra entry is the end.
    pub first_listed: Vec<u32>,
    /// Acquisitions that the rundown at the start lists.
    pub listed_at_start: Vec<u32>,
    /// The first allocation, which is the end of handles and views.
    pub allocations: usize,
    /// Number of objects up to the last one that is not of the rundown at the start alone: these are the last ones.
    pub objects: usize,
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

/// An event of the object that is merged.
struct Merged {
    time_ns: i64,
    phase: Phase,
    row: u32,
    part: Part,
}

impl Merged {
    fn sort_key(&self) -> (i64, Phase, u32) {
        (self.time_ns, self.phase, self.row)
    }
}

impl EventOrder {
    /// Merges the events of all objects.
    pub fn new(trace: &Trace) -> Result<Self, ArchiveError> {
        let objects = trace.height(Table::Objects)?;
        let mut merger = Merger::new(trace)?;
        for object in 0..objects {
            merger.object(object)?;
        }
        let mut order = merger.order;
        order.first.push(order.rows.len() as u32);
        order.first_listed.push(order.listed.len() as u32);
        Ok(order)
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The event that opened an acquisition.
    pub fn opened(&self, acquisition: usize) -> Option<EventIdx> {
        self.opened_at.get(acquisition).copied().map(EventIdx).and_then(EventIdx::known)
    }

    /// The event that ended an acquisition; one unmap ends several views.
    pub fn ended(&self, acquisition: usize) -> Option<EventIdx> {
        self.ended_at.get(acquisition).copied().map(EventIdx).and_then(EventIdx::known)
    }

    /// The acquisition that an event opened or ended; of several views the last one.
    pub fn acquisition(&self, event: EventIdx) -> Option<AcquisitionIdx> {
        let is_of_acquisition = matches!(self.parts.get(event.row())?, Part::Opened | Part::Ended);
        is_of_acquisition.then(|| self.rows.get(event.row()).copied().map(AcquisitionIdx)).flatten()
    }
}

/// The columns that are merged, and the events so far.
struct Merger<'a> {
    trace: &'a Trace,
    first: Numbers<AcquisitionIdx>,
    count: Numbers<RowCount<AcquisitionIdx>>,
    created_ns: Numbers<i64>,
    deleted_ns: Numbers<i64>,
    kind: Numbers<u32>,
    origin: Numbers<u32>,
    end: Numbers<u32>,
    opened_ns: Numbers<i64>,
    ended_ns: Numbers<i64>,
    in_rundown: Flags,
    in_start: Flags,
    changes: Numbers<ObjectIdx>,
    changed_ns: Numbers<i64>,
    /// What says which views one event unmapped; `None` in a trace without views.
    unmaps: Option<Unmaps>,
    /// What says which handle was duplicated, once it is asked for.
    sources: Option<Sources>,
    /// The next reference change.
    change: usize,
    /// The events of the object.
    merged: Vec<Merged>,
    order: EventOrder,
}

impl<'a> Merger<'a> {
    fn new(trace: &'a Trace) -> Result<Self, ArchiveError> {
        let kind = trace.values(Acquisitions::kind)?;
        let view = AcquisitionKind::View.code();
        let height = kind.len();
        let has_views = kind.values().contains(&view);
        let allocations = kind.values().iter().position(|kind| *kind > view).unwrap_or(height);
        let order = EventOrder {
            parts: Vec::with_capacity(2 * allocations),
            rows: Vec::with_capacity(2 * allocations),
            opened_at: vec![sentinel(); allocations],
            ended_at: vec![sentinel(); allocations],
            allocations,
            ..EventOrder::default()
        };
        Ok(Self {
            trace,
            first: trace.values(Objects::first_acquisition)?,
            count: trace.values(Objects::acquisition_count)?,
            created_ns: trace.values(Objects::created_ns)?,
            deleted_ns: trace.values(Objects::deleted_ns)?,
            kind,
            origin: trace.values(Acquisitions::origin)?,
            end: trace.values(Acquisitions::end)?,
            opened_ns: trace.values(Acquisitions::opened_ns)?,
            ended_ns: trace.values(Acquisitions::ended_ns)?,
            in_rundown: trace.values(Acquisitions::in_rundown)?,
            in_start: trace.values(Acquisitions::in_start_rundown)?,
            changes: trace.values(ReferenceChanges::object)?,
            changed_ns: trace.values(ReferenceChanges::time_ns)?,
            unmaps: if has_views { Some(Unmaps::new(trace)?) } else { None },
            sources: None,
            change: 0,
            merged: Vec::new(),
            order,
        })
    }

    /// Merges the events of the next object.
    fn object(&mut self, object: usize) -> Result<(), ArchiveError> {
        let begin = self.order.rows.len() as u32;
        let first_listed = self.order.listed.len() as u32;
        self.order.first.push(begin);
        self.order.first_listed.push(first_listed);
        let start = self.first.get(object).map_or(0, AcquisitionIdx::row);
        let start = start.min(self.order.allocations);
        let count = self.count.get(object).map_or(0, |count| count.0 as usize);
        let rows = start..start.saturating_add(count).min(self.order.allocations);
        self.merged.clear();
        let aliases = self.add_acquisitions(rows.clone());
        self.add_others(object as u32);
        self.sort()?;
        for (at, event) in (begin..).zip(&self.merged) {
            self.order.parts.push(event.part);
            self.order.rows.push(event.row);
            match event.part {
                Part::Opened => self.order.opened_at[event.row as usize] = at,
                Part::Ended => self.order.ended_at[event.row as usize] = at,
                Part::Created | Part::Deleted | Part::Changed => {}
            }
        }
        // From the last one back, as each names the one after it.
        for (row, next) in aliases.into_iter().rev() {
            self.order.ended_at[row as usize] = self.order.ended_at[next as usize];
        }
        let is_of_start = !rows.is_empty()
            && self.merged.is_empty()
            && first_listed as usize == self.order.listed.len();
        if !is_of_start {
            self.order.objects = object + 1;
        }
        self.note_ends(begin);
        Ok(())
    }

    /// Adds openings and ends. Returns acquisitions that ended together with another one.
    fn add_acquisitions(&mut self, rows: Range<usize>) -> Vec<(u32, u32)> {
        let (mut aliases, mut unmapped) = (Vec::new(), HashMap::new());
        for row in rows {
            if self.in_rundown.get(row) {
                self.order.listed.push(row as u32);
            }
            if self.in_start.get(row) {
                self.order.listed_at_start.push(row as u32);
            }
            let (opened, ended) = (self.opened(row), self.ended(row));
            if let Some(time_ns) = opened {
                self.push(time_ns, Phase::Opened, row as u32, Part::Opened);
            }
            let Some(time_ns) = ended else { continue };
            // One unmap ends all views of its process, and is of the last one.
            if opened.is_some()
                && self.is_view(row)
                && let Some(unmaps) = &self.unmaps
            {
                let place = *unmapped.entry(unmaps.of(row, time_ns)).or_insert(self.merged.len());
                if let Some(before) = self.merged.get_mut(place) {
                    aliases.push((before.row, row as u32));
                    before.row = row as u32;
                    continue;
                }
            }
            let is_at_once = opened == Some(time_ns);
            let phase = if is_at_once { Phase::EndedAtOnce } else { Phase::Ended };
            self.push(time_ns, phase, row as u32, Part::Ended);
        }
        aliases
    }

    /// Adds object events and reference changes.
    fn add_others(&mut self, object: u32) {
        if let Some(time_ns) = self.created_ns.get(object as usize) {
            self.push(time_ns, Phase::Created, object, Part::Created);
        }
        if let Some(time_ns) = self.deleted_ns.get(object as usize) {
            self.push(time_ns, Phase::Deleted, object, Part::Deleted);
        }
        while let Some(of) = self.changes.get(self.change).filter(|of| of.0 <= object) {
            if of.0 == object {
                let time_ns = self.changed_ns.get(self.change).unwrap_or_default();
                self.push(time_ns, Phase::Changed, self.change as u32, Part::Changed);
            }
            self.change += 1;
        }
    }

    fn push(&mut self, time_ns: i64, phase: Phase, row: u32, part: Part) {
        self.merged.push(Merged { time_ns, phase, row, part });
    }

    fn sort(&mut self) -> Result<(), ArchiveError> {
        if self.merged.len() < 2 {
            return Ok(());
        }
        self.merged.sort_by_key(Merged::sort_key);
        let is_ended_before = |pair: &[Merged]| {
            pair[0].time_ns == pair[1].time_ns
                && pair[0].part == Part::Ended
                && pair[1].part == Part::Opened
        };
        if self.merged.windows(2).any(is_ended_before) {
            if self.sources.is_none() {
                self.sources = Some(Sources::new(self.trace)?);
            }
            if let Some(sources) = &self.sources {
                sources.put_after(&mut self.merged);
            }
        }
        Ok(())
    }

    fn is_view(&self, row: usize) -> bool {
        self.kind.get(row) == Some(AcquisitionKind::View.code())
    }

    fn origin(&self, row: usize) -> Option<Origin> {
        self.origin.get(row).and_then(Origin::from_code)
    }

    /// Time of the opening, if the trace has it.
    fn opened(&self, row: usize) -> Option<i64> {
        self.opened_ns.get(row).filter(|_| self.origin(row) != Some(Origin::Before))
    }

    /// Time of the event that ended a handle or view, if the trace has one.
    fn ended(&self, row: usize) -> Option<i64> {
        let end = self.end.get(row).and_then(End::from_code);
        self.ended_ns.get(row).filter(|_| matches!(end, Some(End::Closed | End::AtExit)))
    }

    /// Notes which of the events from `begin` on created and ended their object.
    fn note_ends(&mut self, begin: u32) {
        let mut create = (u8::MAX, sentinel());
        let (mut delete, mut unmap, mut close) = (sentinel(), sentinel(), sentinel());
        let (mut has_opened, mut has_open) = (false, false);
        for (at, event) in (begin..).zip(&self.merged) {
            let row = event.row as usize;
            let rank = match event.part {
                Part::Created => 0,
                Part::Opened => {
                    if !self.is_view(row) {
                        has_opened = true;
                        has_open |= self.ended(row).is_none();
                    }
                    match self.origin(row) {
                        Some(Origin::Duplicate | Origin::Inherit) => 2,
                        _ => 1,
                    }
                }
                Part::Deleted => {
                    delete = at;
                    continue;
                }
                Part::Ended => {
                    let end = if self.is_view(row) { &mut unmap } else { &mut close };
                    *end = at;
                    continue;
                }
                Part::Changed => continue,
            };
            if rank < create.0 {
                create = (rank, at);
            }
        }
        let close = if has_opened && !has_open { close } else { sentinel() };
        let end = [delete, unmap, close].into_iter().find(|at| *at != sentinel());
        self.order.create.push(create.1);
        self.order.destroy.push(end.unwrap_or(sentinel()));
    }
}

/// The columns that say which views one event unmapped.
struct Unmaps {
    process: Numbers<ProcessIdx>,
    tid: Numbers<u32>,
}

impl Unmaps {
    fn new(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            process: trace.values(Acquisitions::process)?,
            tid: trace.values(Acquisitions::ended_tid)?,
        })
    }

    fn of(&self, row: usize, ended_ns: i64) -> (i64, Option<ProcessIdx>, Option<u32>) {
        (ended_ns, self.process.get(row), self.tid.get(row))
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
    fn new(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            process: trace.values(Acquisitions::process)?,
            key: trace.values(Acquisitions::key)?,
            source_process: trace.values(Acquisitions::source_process)?,
            source_key: trace.values(Acquisitions::source_key)?,
        })
    }

    /// Puts closes after the duplicates that were made at the same time of what they close.
    fn put_after(&self, merged: &mut [Merged]) {
        let opened = merged.iter().filter(|event| event.part == Part::Opened);
        let sources: HashSet<_> = opened
            .filter_map(|event| {
                let row = event.row as usize;
                let slot = handle_slot(self.source_key.get(row)?);
                Some((event.time_ns, self.source_process.get(row), slot))
            })
            .collect();
        for event in merged.iter_mut().filter(|event| event.part == Part::Ended) {
            let row = event.row as usize;
            let slot = handle_slot(self.key.get(row).unwrap_or_default());
            if sources.contains(&(event.time_ns, self.process.get(row), slot)) {
                event.phase = Phase::EndedAtOnce;
            }
        }
        merged.sort_by_key(Merged::sort_key);
    }
}

/// The kind of an event.
pub fn event_kind(part: Part, origin: Option<Origin>, is_view: bool, delta: i32) -> EventKind {
    match part {
        Part::Opened => origin.and_then(Origin::event).unwrap_or(EventKind::HandleCreate),
        Part::Ended if is_view => EventKind::Unmap,
        Part::Ended => EventKind::HandleClose,
        Part::Created => EventKind::ObjectCreate,
        Part::Deleted => EventKind::ObjectDelete,
        Part::Changed if delta < 0 => EventKind::Dereference,
        Part::Changed => EventKind::Reference,
    }
}
