//! Groups timeline rows by object.

use std::num::NonZeroUsize;
use std::ops::Range;

use handlescope_model::{Cancelled, Poll, ROW_GROUP_ROWS};

use crate::lifecycle::{Lifetimes, NONE, ObjectList, event_kind};
use crate::raw::RowKind;
use crate::side_by_side::{chunk_length, side_by_side};

/// Events of each object, with objects in their final order.
pub struct GroupedEvents {
    /// Events of the trace.
    events: Groups,
    /// Handles of the end rundown; `None` without one.
    existing: Option<Groups>,
    /// For each position, the row among the tracked objects.
    objects: Vec<u32>,
}

impl GroupedEvents {
    /// Groups the events on `threads` threads, unless cancelled. `object` is the object of each event; `order` gives
    /// the time order if it differs from the row order.
    pub fn new(
        lifetimes: &Lifetimes<'_>,
        tracked: &ObjectList,
        object: Vec<u32>,
        order: Option<&[u32]>,
        threads: NonZeroUsize,
    ) -> Result<Self, Cancelled> {
        let positions = tracked.positions();
        let mut objects = vec![0; positions.len()];
        for (object, position) in (0..).zip(&positions) {
            objects[*position as usize] = object;
        }
        // Reuses the memory, because there is one entry per event.
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
        // There are few, so they are collected once.
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

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the row among the tracked objects for a position.
    pub fn object(&self, position: usize) -> usize {
        self.objects[position] as usize
    }

    /// Returns the events table rows for the objects at these positions.
    pub fn events(&self, positions: Range<usize>) -> Range<usize> {
        self.events.of(positions)
    }

    /// Returns the raw rows of events table rows, in time order within each object.
    pub fn raw_rows(&self, events: Range<usize>) -> &[u32] {
        &self.events.rows[events]
    }

    /// Returns the positions from this one on that fill one part of the table, or all that are left.
    pub fn part_from(&self, position: usize) -> Range<usize> {
        let first = &self.events.first[position..];
        let full = first[0] as usize + ROW_GROUP_ROWS;
        let after = first.partition_point(|first| (*first as usize) < full);
        position..(position + after).min(self.len())
    }

    /// Returns the rows of the end rundown that belong to an object.
    pub fn existing_of(&self, position: usize) -> &[u32] {
        self.existing
            .as_ref()
            .map_or(&[], |existing| &existing.rows[existing.of(position..position + 1)])
    }

    /// Whether there is an end rundown.
    pub fn has_existing(&self) -> bool {
        self.existing.is_some()
    }
}

/// Timeline rows, with the positions of their objects.
#[derive(Clone, Copy)]
struct PositionedRows<'a> {
    lifetimes: &'a Lifetimes<'a>,
    order: Option<&'a [u32]>,
    /// [`NONE`] for a row without an object.
    position: &'a [u32],
}

impl PositionedRows<'_> {
    /// Calls `each` in time order for rows of certain kinds with objects in this range of positions. It gets the row,
    /// and the offset of the position in the range.
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
            // `NONE` is greater than all positions.
            let at = position[row] as usize;
            if positions.contains(&at) && kinds(kind[row]) {
                each(row as u32, at - positions.start);
            }
        }
        Ok(())
    }
}

/// Rows by the position of their object, in time order within each.
struct Groups {
    rows: Vec<u32>,
    /// Index of the first row of each position; an extra entry marks the end.
    first: Vec<u32>,
}

impl Groups {
    /// Groups rows of certain kinds by counting, which keeps their order within an object. Each thread has a range of
    /// positions: objects are ordered by completion, so most of their rows are close in time.
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

    /// Returns the indexes of the rows at these positions.
    fn of(&self, positions: Range<usize>) -> Range<usize> {
        self.first[positions.start] as usize..self.first[positions.end] as usize
    }
}
