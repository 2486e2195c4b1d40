//! Rows of the timeline grouped by object.

use std::num::NonZeroUsize;
use std::ops::Range;

use handlescope_model::{Cancelled, Poll, ROW_GROUP_ROWS};

use crate::lifecycle::{Lifetimes, NONE, Objects, event_kind};
use crate::raw::RowKind;
use crate::side_by_side::{chunk_length, side_by_side};

/// The events of each object, objects in their final order.
pub struct GroupedEvents {
    /// Events of the trace.
    events: Groups,
    /// Handles of the rundown at the end; `None` without one.
    existing: Option<Groups>,
    /// Row of each position among the tracked objects.
    objects: Vec<u32>,
}

impl GroupedEvents {
    /// Groups the events with so many threads, unless asked to stop. `object` has the object of each event; `order` gives
    /// the time order when it is not the order of the rows.
    pub fn new(
        lifetimes: &Lifetimes<'_>,
        tracked: &Objects,
        object: Vec<u32>,
        order: Option<&[u32]>,
        threads: NonZeroUsize,
    ) -> Result<Self, Cancelled> {
        let positions = tracked.positions();
        let mut objects = vec![0; positions.len()];
        for (object, position) in (0..).zip(&positions) {
            objects[*position as usize] = object;
        }
        // In its place: there is one for each event.
        let mut position = object;
        let length = chunk_length(position.len(), threads.get());
        side_by_side(position.chunks_mut(length), |rows| {
            let mut poll = Poll::new(lifetimes.cancel);
            rows.iter_mut().try_for_each(|row| {
                if *row != NONE {
                    *row = positions[*row as usize];
                }
                poll.round()
            })
        })?;
        drop(positions);
        let rows = PositionedRows { lifetimes, order, position: &position };
        let is_event = |kind| event_kind(kind).is_some();
        let events = Groups::new(rows, objects.len(), threads, is_event)?;
        // Few, so that they are looked for once.
        let mut existing = Vec::new();
        rows.try_for_each(|kind| !is_event(kind), 0..objects.len(), |row, _| existing.push(row))?;
        let existing = if existing.is_empty() {
            None
        } else {
            let rows = PositionedRows { order: Some(&existing), ..rows };
            Some(Groups::new(rows, objects.len(), threads, |_| true)?)
        };
        Ok(Self { events, existing, objects })
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Row of the object at a position among the tracked objects.
    pub fn object(&self, position: usize) -> usize {
        self.objects[position] as usize
    }

    /// Rows of the events table with the events of the objects at these positions.
    pub fn events(&self, positions: Range<usize>) -> Range<usize> {
        self.events.of(positions)
    }

    /// Raw rows of some rows of the events table, in time order within an object.
    pub fn raw_rows(&self, events: Range<usize>) -> &[u32] {
        &self.events.rows[events]
    }

    /// Positions from this one on that have as many events as a part of the table, or all that are left.
    pub fn part_from(&self, position: usize) -> Range<usize> {
        let first = &self.events.first[position..];
        let full = first[0] as usize + ROW_GROUP_ROWS;
        let after = first.partition_point(|first| (*first as usize) < full);
        position..(position + after).min(self.len())
    }

    /// Rows of the rundown at the end that belong to an object.
    pub fn existing_of(&self, position: usize) -> &[u32] {
        self.existing
            .as_ref()
            .map_or(&[], |existing| &existing.rows[existing.of(position..position + 1)])
    }

    /// Whether there is a rundown at the end.
    pub fn has_existing(&self) -> bool {
        self.existing.is_some()
    }
}

/// The rows of the timeline, with the positions of their objects.
#[derive(Clone, Copy)]
struct PositionedRows<'a> {
    lifetimes: &'a Lifetimes<'a>,
    order: Option<&'a [u32]>,
    /// [`NONE`] for a row without an object.
    position: &'a [u32],
}

impl PositionedRows<'_> {
    /// Calls `each` in time order with the rows of some kinds whose objects are at these positions: the row, and which
    /// of the positions it is.
    fn try_for_each(
        self,
        kinds: impl Fn(RowKind) -> bool,
        positions: Range<usize>,
        mut each: impl FnMut(u32, usize),
    ) -> Result<(), Cancelled> {
        let Self { lifetimes, order, position } = self;
        let kind = &lifetimes.collected.shared.timeline.kind;
        let mut poll = Poll::new(lifetimes.cancel);
        for row in lifetimes.rows(order) {
            poll.round()?;
            // `NONE` is above all positions.
            let at = position[row] as usize;
            if positions.contains(&at) && kinds(kind[row]) {
                each(row as u32, at - positions.start);
            }
        }
        Ok(())
    }
}

/// Rows by the positions of their objects, in time order at each.
struct Groups {
    rows: Vec<u32>,
    /// Index of the first row of each position; an extra entry is the end.
    first: Vec<u32>,
}

impl Groups {
    /// Groups the rows of some kinds by counting, which keeps the order of rows of one object. Each thread has a range of
    /// the positions: objects are ordered by completion, so most of its rows are near each other in time.
    fn new(
        rows: PositionedRows<'_>,
        objects: usize,
        threads: NonZeroUsize,
        kinds: impl Fn(RowKind) -> bool + Sync,
    ) -> Result<Self, Cancelled> {
        let length = chunk_length(objects, threads.get());
        let ranges = (0..objects).step_by(length).map(|start| start..(start + length).min(objects));
        let mut first = vec![0; objects + 1];
        side_by_side(ranges.clone().zip(first[1..].chunks_mut(length)), |(positions, counts)| {
            rows.try_for_each(&kinds, positions, |_, at| counts[at] += 1)
        })?;
        for position in 1..first.len() {
            first[position] += first[position - 1];
        }
        let mut grouped = Self { rows: vec![0; first[objects] as usize], first };
        let Self { rows: slots, first } = &mut grouped;
        let mut rest = &mut slots[..];
        let parts = ranges.map(|positions| {
            let count = first[positions.end] - first[positions.start];
            let (part, after) = std::mem::take(&mut rest).split_at_mut(count as usize);
            rest = after;
            (positions, part)
        });
        side_by_side(parts, |(positions, part)| {
            let start = first[positions.start];
            let mut next: Vec<u32> =
                first[positions.clone()].iter().map(|first| first - start).collect();
            rows.try_for_each(&kinds, positions, |row, at| {
                part[next[at] as usize] = row;
                next[at] += 1;
            })
        })?;
        Ok(grouped)
    }

    /// Indexes of the rows at these positions.
    fn of(&self, positions: Range<usize>) -> Range<usize> {
        self.first[positions.start] as usize..self.first[positions.end] as usize
    }
}
