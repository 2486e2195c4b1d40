//! The order of the events of all objects: openings and ends of acquisitions, object events and reference changes,
//! merged by time within each object.

use super::numbered::{EventPart, EventTable};
use crate::archive::{ArchiveError, Trace};
use crate::index::{EventIdx, ObjectIdx, sentinel};
use crate::table::Table;
use crate::tables::Acquisitions;

/// The events of all objects, one object after the other.
#[derive(Default)]
pub struct EventOrder {
    /// The number of each event.
    pub events: Vec<u32>,
    /// Index of the first event of each object; an extra entry is the end.
    pub first: Vec<u32>,
    /// Index of the event that ended each handle and view, or [`sentinel`], as for views that ended together with
    /// others.
    ended_at: Vec<u32>,
    /// Indexes of the events that created and ended each object, or [`sentinel`].
    pub create: Vec<u32>,
    pub destroy: Vec<u32>,
    /// Acquisitions that the rundown at the end lists, by object.
    pub listed: Vec<u32>,
    /// Index in `listed` of the first one of each object; an extra entry is the end.
    pub first_listed: Vec<u32>,
    /// Acquisitions that the rundown at the start lists.
    pub listed_at_start: Vec<u32>,
    /// Number of objects, not counting the last ones, which only the rundown at the start lists.
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
            events: Vec::with_capacity(2 * allocations),
            ended_at: vec![sentinel(); allocations],
            objects: table.objects,
            ..Self::default()
        };
        let mut events = Vec::new();
        for object in (0..objects).map(ObjectIdx::from_row) {
            let first = order.events.len();
            order.first.push(first as u32);
            order.first_listed.push(order.listed.len() as u32);
            events.clear();
            times.in_order(trace, object, &mut events);
            let at = |event: Option<EventIdx>| {
                let place = event.and_then(|it| events.iter().position(|known| *known == it.row()));
                place.map_or(sentinel(), |place| (first + place) as u32)
            };
            order.create.push(at(table.create_event(object)));
            order.destroy.push(at(times.destroy_event(object)));
            for (at, event) in (first as u32..).zip(&events) {
                order.events.push(*event as u32);
                if let (EventPart::Ended, row) = table.numbering.part(*event) {
                    order.ended_at[row] = at;
                }
            }
            order.listed.extend(table.listed(object).map(|row| row as u32));
            let at_start = table.acquisitions(object).filter(|row| in_start.get(*row));
            order.listed_at_start.extend(at_start.map(|row| row as u32));
        }
        order.first.push(order.events.len() as u32);
        order.first_listed.push(order.listed.len() as u32);
        Ok(order)
    }

    /// Returns the event that ended what the event with this number opened.
    pub fn closing(&self, table: &EventTable, number: usize) -> Option<EventIdx> {
        let (_, row) = table.numbering.part(table.closing(number)?);
        self.ended_at.get(row).copied().map(EventIdx).and_then(EventIdx::known)
    }
}
