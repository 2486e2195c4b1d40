//! When the events of objects happened, and their order within an object.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use super::numbered::{EventPart, EventTable};
use crate::archive::{ArchiveError, Trace};
use crate::column::{Numbers, RowSet, Sparse};
use crate::index::{EventIdx, ObjectIdx, ProcessIdx};
use crate::rules::handle_slot;
use crate::table::Table;
use crate::tables::{Acquisitions, Objects, ReferenceChanges};

/// The times of the events of an [`EventTable`].
pub struct EventTimes {
    pub table: Arc<EventTable>,
    opened_ns: Sparse<Numbers<i64>>,
    ended_ns: Sparse<Numbers<i64>>,
    created_ns: Numbers<i64>,
    deleted_ns: Numbers<i64>,
    changed_ns: Numbers<i64>,
    sources: OnceLock<Option<Sources>>,
}

/// The order of events at the same time: the creation of an object, an end, an opening, the end of something opened at
/// that time, a reference change, the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Created,
    Ended,
    Opened,
    EndedAtOnce,
    Changed,
    Deleted,
}

/// Sort key of an event among those of its object.
type ObjectOrder = (i64, Phase, usize);

impl EventTimes {
    /// Reads the times of all events.
    ///
    /// # Errors
    /// If one of the columns is damaged.
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let rows = RowSet::all(trace.height(Table::Acquisitions)?);
        Self::from_rows(trace, &Arc::new(rows))
    }

    /// Reads the times of the events of some acquisitions, and of all other events.
    ///
    /// # Errors
    /// If one of the columns is damaged.
    pub fn from_rows(trace: &Trace, rows: &Arc<RowSet>) -> Result<Self, ArchiveError> {
        Ok(Self {
            table: trace.event_table()?,
            opened_ns: trace.values_at(Acquisitions::opened_ns, rows)?,
            ended_ns: trace.values_at(Acquisitions::ended_ns, rows)?,
            created_ns: trace.values(Objects::created_ns)?,
            deleted_ns: trace.values(Objects::deleted_ns)?,
            changed_ns: trace.changes(ReferenceChanges::time_ns)?,
            sources: OnceLock::new(),
        })
    }

    /// Returns the time of an event in nanoseconds since session start; in a trace without a clock it is only an order.
    #[inline]
    pub fn get(&self, event: usize) -> Option<i64> {
        match self.table.numbering.part(event) {
            (EventPart::Opened, row) => self.opened_ns.get(row),
            (EventPart::Ended, row) => self.ended_ns.get(row),
            (EventPart::Created, row) => self.created_ns.get(row),
            (EventPart::Deleted, row) => self.deleted_ns.get(row),
            (EventPart::Changed, row) => self.changed_ns.get(row),
        }
    }

    /// Returns the latest time of the events that were read.
    pub fn last_ns(&self) -> Option<i64> {
        let rows = || 0..self.table.allocations;
        let opened = rows().filter_map(|row| self.opened_ns.get(row));
        let ended = rows().filter_map(|row| self.ended_ns.get(row));
        let others = [&self.created_ns, &self.deleted_ns, &self.changed_ns];
        let others = others.into_iter().filter_map(|times| times.iter().flatten().max());
        opened.chain(ended).chain(others).max()
    }

    /// Returns the latest time at which what an event opened can have been closed, if the trace lost the close.
    pub fn closed_before_ns(&self, event: usize) -> Option<i64> {
        self.table.closed_unseen(event)?;
        self.ended_ns.get(event / 2)
    }

    /// Returns the event that ended an object: its deletion, else its last unmap, else the last close if all handles
    /// are closed.
    pub fn destroy_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        let table = &self.table;
        if let Some(deletion) = table.deletion(object) {
            return Some(EventIdx::from_row(deletion));
        }
        let rows = table.acquisitions(object);
        if !table.has_destroy_event(object) {
            return None;
        }
        if rows.len() == 1 {
            return table.ending(rows.start).map(EventIdx::from_row);
        }
        let endings = rows.filter_map(|row| Some((table.state(row).is_view(), table.ending(row)?)));
        let last = endings.max_by_key(|(is_view, event)| (*is_view, self.place(*event, object)));
        last.map(|(_, ending)| EventIdx::from_row(ending))
    }

    /// Returns the sort key of an event among those of its object.
    fn place(&self, event: usize, object: ObjectIdx) -> ObjectOrder {
        let time_ns = self.get(event).unwrap_or_default();
        let (part, row) = self.table.numbering.part(event);
        let phase = match part {
            EventPart::Opened => Phase::Opened,
            EventPart::Ended => {
                let opened_ns = self.table.opening(row).and_then(|opening| self.get(opening));
                if opened_ns == Some(time_ns) { Phase::EndedAtOnce } else { Phase::Ended }
            }
            EventPart::Created => Phase::Created,
            EventPart::Deleted => Phase::Deleted,
            EventPart::Changed => Phase::Changed,
        };
        let row = if part == EventPart::Created || part == EventPart::Deleted {
            object.row()
        } else {
            row
        };
        (time_ns, phase, row)
    }

    /// Appends the events of an object to `events` in the order in which they happened.
    pub fn in_order(&self, trace: &Trace, object: ObjectIdx, events: &mut Vec<usize>) {
        let first = events.len();
        events.extend(self.table.events(object));
        let Some(added) = events.get_mut(first..).filter(|added| added.len() > 1) else { return };
        added.sort_by_cached_key(|event| self.place(*event, object));
        let is_ended_before = |pair: &[usize]| {
            let is = |event: usize| self.table.numbering.part(event).0;
            self.get(pair[0]) == self.get(pair[1])
                && is(pair[0]) == EventPart::Ended
                && is(pair[1]) == EventPart::Opened
        };
        if added.windows(2).any(is_ended_before)
            && let Some(sources) = self.sources.get_or_init(|| Sources::load(trace).ok())
        {
            self.put_after(sources, object, added);
        }
    }

    /// Moves closes after duplicates that were made from the closed handle at the same time.
    fn put_after(&self, sources: &Sources, object: ObjectIdx, events: &mut [usize]) {
        let numbering = self.table.numbering;
        let copied: HashSet<_> = events
            .iter()
            .filter(|event| numbering.part(**event).0 == EventPart::Opened)
            .filter_map(|event| {
                let (_, row) = numbering.part(*event);
                let slot = handle_slot(sources.source_key.get(row)?);
                Some((self.get(*event), sources.source_process.get(row), slot))
            })
            .collect();
        events.sort_by_cached_key(|event| {
            let (time_ns, mut phase, place) = self.place(*event, object);
            let (part, row) = numbering.part(*event);
            if part == EventPart::Ended {
                let slot = handle_slot(sources.key.get(row).unwrap_or_default());
                if copied.contains(&(Some(time_ns), sources.process.get(row), slot)) {
                    phase = Phase::EndedAtOnce;
                }
            }
            (time_ns, phase, place)
        });
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
