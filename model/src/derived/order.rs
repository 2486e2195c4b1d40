//! The order of the events of all objects: openings and ends of acquisitions, object events and reference changes, merged by
//! time within each object.

use super::numbered::Part;
use crate::archive::{ArchiveError, Trace};
use crate::index::{AcquisitionIdx, EventIdx, ObjectIdx, sentinel};
use crate::table::Table;
use crate::tables::{Acquisitions, EventKind, Origin};

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

impl EventOrder {
    /// Merges the events of all objects.
    pub fn new(trace: &Trace) -> Result<Self, ArchiveError> {
        let times = trace.event_times()?;
        let table = &times.table;
        let in_start = trace.values(Acquisitions::in_start_rundown)?;
        let (allocations, objects) = (table.allocations, trace.height(Table::Objects)?);
        let mut order = Self {
            parts: Vec::with_capacity(2 * allocations),
            rows: Vec::with_capacity(2 * allocations),
            opened_at: vec![sentinel(); allocations],
            ended_at: vec![sentinel(); allocations],
            allocations,
            objects: table.objects,
            ..Self::default()
        };
        let mut events = Vec::new();
        for object in (0..objects).map(ObjectIdx::of) {
            order.first.push(order.rows.len() as u32);
            order.first_listed.push(order.listed.len() as u32);
            events.clear();
            times.in_order(trace, object, &mut events);
            let at = |event: Option<EventIdx>| {
                let place = event.and_then(|it| events.iter().position(|known| *known == it.row()));
                place.map_or(sentinel(), |place| (order.rows.len() + place) as u32)
            };
            let ends = (at(table.create_event(object)), at(times.destroy_event(object)));
            order.create.push(ends.0);
            order.destroy.push(ends.1);
            for event in &events {
                let at = order.rows.len() as u32;
                let (part, row) = table.numbering.part(*event);
                order.parts.push(part);
                order.rows.push(row as u32);
                match part {
                    Part::Opened => order.opened_at[row] = at,
                    Part::Ended => order.ended_at[row] = at,
                    Part::Created | Part::Deleted | Part::Changed => {}
                }
            }
            for row in table.acquisitions(object) {
                let last = table.ending(row).and_then(|ending| table.numbering.acquisition(ending));
                if let Some(last) = last.filter(|last| last.row() != row) {
                    order.ended_at[row] = order.ended_at[last.row()];
                }
                if table.state(row).is_listed() {
                    order.listed.push(row as u32);
                }
                if in_start.get(row) {
                    order.listed_at_start.push(row as u32);
                }
            }
        }
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
