//! Rows of all families with events that belong to a process and can have a stack.

use std::collections::HashMap;
use std::ops::Range;

use super::RowKind;
use crate::etl::Event;

/// Unknown process or thread id. A column of `Option`s would take twice the memory, for each event.
pub const UNKNOWN_ID: u32 = u32::MAX;

/// Number of last rows that are searched one by one.
const LAST_ROWS: usize = 16;

/// Source of the process and thread id of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum IdSource {
    Header,
    /// The event's stack, because its header has no ids.
    Stack,
    /// The payload of a rundown record, which has no stack.
    Rundown,
}

/// Rows in the order they were read, which is time order except in damaged files.
///
/// Columns instead of rows, because joining stacks touches only times and ids. With its family's columns, a handle
/// event takes 42 bytes, so 50 million events take about 2.1 GB.
#[derive(Default)]
pub struct Timeline {
    pub kind: Vec<RowKind>,
    /// Row in the columns of the family.
    pub row: Vec<u32>,
    /// Raw time.
    pub time: Vec<i64>,
    pub pid: Vec<u32>,
    pub tid: Vec<u32>,
    pub processor: Vec<u16>,
    pub ids: Vec<IdSource>,
    /// Rows older than a previous row, by time; only damaged files have such rows.
    late: HashMap<i64, Vec<u32>>,
}

impl Timeline {
    pub fn len(&self) -> usize {
        self.time.len()
    }

    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Adds an event; its other columns are in `row` of its family.
    pub fn push(&mut self, kind: RowKind, row: usize, event: &Event<'_>) {
        self.add(kind, row, event, event.pid.unwrap_or(UNKNOWN_ID), IdSource::Header);
    }

    /// Adds a rundown record about a process.
    pub fn push_rundown(&mut self, kind: RowKind, row: usize, event: &Event<'_>, pid: u32) {
        self.add(kind, row, event, pid, IdSource::Rundown);
    }

    /// Sets the kind of a row that was unknown when its event came.
    pub fn set(&mut self, at: usize, kind: RowKind, row: usize) {
        if let (Some(kind_slot), Some(row_slot)) = (self.kind.get_mut(at), self.row.get_mut(at)) {
            (*kind_slot, *row_slot) = (kind, row as u32);
        }
    }

    fn add(&mut self, kind: RowKind, row: usize, event: &Event<'_>, pid: u32, ids: IdSource) {
        // The time column must rise so that it can be searched; `restore_times` restores the true time of a late row.
        let time = self.time.last().map_or(event.time, |last| event.time.max(*last));
        if time != event.time {
            let index = self.len() as u32;
            self.late.entry(event.time).or_default().push(index);
        }
        self.kind.push(kind);
        self.row.push(row as u32);
        self.time.push(time);
        self.pid.push(pid);
        self.tid.push(event.tid.unwrap_or(UNKNOWN_ID));
        self.processor.push(event.processor);
        self.ids.push(ids);
    }

    /// Appends rows of a batch, which are in time order. `row_of` gets the kind of each and returns its row in the
    /// family's columns.
    pub fn append(&mut self, batch: &Self, rows: Range<usize>, row_of: impl FnMut(RowKind) -> u32) {
        let Self { kind, row, time, pid, tid, processor, ids, late: _ } = self;
        row.extend(batch.kind[rows.clone()].iter().copied().map(row_of));
        kind.extend_from_slice(&batch.kind[rows.clone()]);
        time.extend_from_slice(&batch.time[rows.clone()]);
        pid.extend_from_slice(&batch.pid[rows.clone()]);
        tid.extend_from_slice(&batch.tid[rows.clone()]);
        processor.extend_from_slice(&batch.processor[rows.clone()]);
        ids.extend_from_slice(&batch.ids[rows]);
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        let Self { kind, row, time, pid, tid, processor, ids, late } = self;
        kind.clear();
        row.clear();
        time.clear();
        pid.clear();
        tid.clear();
        processor.clear();
        ids.clear();
        late.clear();
    }

    /// Gives a row without process or thread the ids of its stack.
    pub fn take_ids(&mut self, row: usize, pid: u32, tid: u32) {
        if self.tid[row] == UNKNOWN_ID || self.pid[row] == UNKNOWN_ID {
            (self.tid[row], self.pid[row]) = (tid, pid);
            self.ids[row] = IdSource::Stack;
        }
    }

    /// Calls `each` with the rows at a raw time, until it returns true.
    pub fn rows_at(&self, time: i64, mut each: impl FnMut(usize) -> bool) {
        let mut row = self.first_at_or_after(time);
        while self.time.get(row) == Some(&time) {
            if each(row) {
                return;
            }
            row += 1;
        }
        if let Some(late) = self.late.get(&time) {
            for row in late {
                if each(*row as usize) {
                    return;
                }
            }
        }
    }

    /// Returns the first row at or after `time`. Searches from the end, because stacks look there.
    fn first_at_or_after(&self, time: i64) -> usize {
        let end = self.len();
        // Most stacks follow their event immediately: a loop to it is predicted better than a binary search.
        let last = &self.time[end.saturating_sub(LAST_ROWS)..];
        if let Some(before) = last.iter().rposition(|row_time| *row_time < time) {
            return end - last.len() + before + 1;
        }
        let mut step = 1;
        while step < end && self.time[end - step] >= time {
            step *= 2;
        }
        let low = end.saturating_sub(step);
        let high = end - step / 2;
        low + self.time[low..high].partition_point(|t| *t < time)
    }

    /// Restores the true times of late rows; after that, the columns are no longer in time order.
    ///
    /// Returns the rows in time order if that differs from the order of the columns.
    pub fn restore_times(&mut self) -> Option<Vec<u32>> {
        if self.late.is_empty() {
            return None;
        }
        for (time, rows) in std::mem::take(&mut self.late) {
            for row in rows {
                self.time[row as usize] = time;
            }
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|row| self.time[*row as usize]);
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(times: &[i64]) -> Timeline {
        let mut timeline = Timeline::default();
        for (row, time) in times.iter().enumerate() {
            let event = Event { time: *time, ..Event::default() };
            timeline.push(RowKind::HandleClose, row, &event);
        }
        timeline
    }

    fn rows_at(timeline: &Timeline, time: i64) -> Vec<usize> {
        let mut rows = Vec::new();
        timeline.rows_at(time, |row| {
            rows.push(row);
            false
        });
        rows
    }

    #[test]
    fn rows_are_looked_up_by_their_time() {
        let timeline = timeline(&[1, 3, 3, 5, 7, 7, 7, 9]);
        assert_eq!(rows_at(&timeline, 3), [1, 2]);
        assert_eq!(rows_at(&timeline, 7), [4, 5, 6]);
        assert_eq!(rows_at(&timeline, 1), [0]);
        assert_eq!(rows_at(&timeline, 9), [7]);
        assert!(rows_at(&timeline, 4).is_empty());
        assert!(rows_at(&timeline, 99).is_empty());
        assert!(rows_at(&Timeline::default(), 1).is_empty());
    }

    #[test]
    fn late_rows_are_looked_up_and_put_into_order_in_the_end() {
        let mut timeline = timeline(&[5, 9, 2, 9]);
        assert_eq!(rows_at(&timeline, 2), [2]);
        assert_eq!(timeline.restore_times(), Some(vec![2, 0, 1, 3]));
        assert_eq!(timeline.time, [5, 9, 2, 9]);
    }
}
