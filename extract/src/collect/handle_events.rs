//! Handle, object, reference, map and rundown events as raw columns.

use std::collections::HashMap;

use crate::etl::Event;

/// What a raw event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum RawKind {
    Create,
    Duplicate,
    Close,
    ObjectCreate,
    ObjectDelete,
    Reference,
    Dereference,
    Map,
    Unmap,
    /// A handle of the rundown at the end.
    Rundown,
}

/// A process or thread id that the event does not tell.
pub const UNKNOWN_ID: u32 = u32::MAX;

/// One raw event.
#[derive(Debug, Clone, Copy)]
pub struct RawRow {
    /// What it is.
    pub kind: RawKind,
    /// Raw time.
    pub time: i64,
    /// Kernel address of the object; first address of a view.
    pub object: u64,
    /// Handle value, or number of references.
    pub value: u32,
    /// Type id.
    pub type_id: u16,
    /// Name, 0 for none.
    pub name: u32,
    /// Process id of the header; of the payload for rundown handles.
    pub pid: u32,
    /// Thread id of the header.
    pub tid: u32,
    /// Processor.
    pub processor: u16,
    /// Whether pid and tid were taken from the event's stack.
    pub ids_from_stack: bool,
}

impl RawRow {
    /// A row with what every event tells.
    pub fn of(kind: RawKind, event: &Event<'_>) -> Self {
        Self {
            kind,
            time: event.time,
            object: 0,
            value: 0,
            type_id: 0,
            name: 0,
            pid: event.pid.unwrap_or(UNKNOWN_ID),
            tid: event.tid.unwrap_or(UNKNOWN_ID),
            processor: event.processor,
            ids_from_stack: false,
        }
    }
}

/// The further columns of a duplicate.
#[derive(Debug, Clone, Copy)]
pub struct DuplicateDetail {
    /// Handle value in the source process.
    pub source_handle: u32,
    /// Process that got the handle.
    pub target_pid: u32,
    /// Process that owns the source handle.
    pub source_pid: Option<u32>,
}

/// The further columns of a map or unmap.
#[derive(Debug, Clone, Copy)]
pub struct ViewDetail {
    /// Size, bytes.
    pub size: u64,
    /// Offset in the file, bytes.
    pub byte_offset: Option<u64>,
    /// Kernel key of the file.
    pub file: u64,
    /// Process whose address space it is.
    pub pid: Option<u32>,
}

/// Raw events in the order they were read, which is time order but for damaged files.
///
/// Columns rather than rows: the stack join touches only times and ids, and 50 million events
/// take about 2.5 GB.
#[derive(Default)]
pub struct HandleEvents {
    /// Column of [`RawRow::kind`].
    pub kind: Vec<RawKind>,
    /// Column of [`RawRow::time`].
    pub time: Vec<i64>,
    /// Column of [`RawRow::object`].
    pub object: Vec<u64>,
    /// Column of [`RawRow::value`].
    pub value: Vec<u32>,
    /// Column of [`RawRow::type_id`].
    pub type_id: Vec<u16>,
    /// Column of [`RawRow::name`].
    pub name: Vec<u32>,
    /// Column of [`RawRow::pid`].
    pub pid: Vec<u32>,
    /// Column of [`RawRow::tid`].
    pub tid: Vec<u32>,
    /// Column of [`RawRow::processor`].
    pub processor: Vec<u16>,
    /// Column of [`RawRow::ids_from_stack`].
    pub ids_from_stack: Vec<bool>,
    /// Row of the detail of a duplicate, map or unmap; 0 for others.
    pub detail: Vec<u32>,
    /// Details of duplicates.
    pub duplicates: Vec<DuplicateDetail>,
    /// Details of maps and unmaps.
    pub views: Vec<ViewDetail>,
    /// Rows older than a row before them, by time, and their times; only damaged files have some.
    late: HashMap<i64, Vec<u32>>,
}

impl HandleEvents {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Adds the detail of the duplicate that is pushed next.
    pub fn push_duplicate_detail(&mut self, detail: DuplicateDetail) {
        self.duplicates.push(detail);
    }

    /// Adds the detail of the map or unmap that is pushed next.
    pub fn push_view_detail(&mut self, detail: ViewDetail) {
        self.views.push(detail);
    }

    /// Adds a row.
    pub fn push(&mut self, row: RawRow) {
        // The column of times must rise so that it can be searched; the true time of a late row
        // is put back by `restore_times`.
        let place = self.time.last().map_or(row.time, |last| row.time.max(*last));
        if place != row.time {
            let index = self.len() as u32;
            self.late.entry(row.time).or_default().push(index);
        }
        self.kind.push(row.kind);
        self.time.push(place);
        self.object.push(row.object);
        self.value.push(row.value);
        self.type_id.push(row.type_id);
        self.name.push(row.name);
        self.pid.push(row.pid);
        self.tid.push(row.tid);
        self.processor.push(row.processor);
        self.ids_from_stack.push(row.ids_from_stack);
        let detail = match row.kind {
            RawKind::Duplicate => self.duplicates.len() - 1,
            RawKind::Map | RawKind::Unmap => self.views.len() - 1,
            _ => 0,
        };
        self.detail.push(detail as u32);
    }

    /// Calls `each` with the rows of a raw time, until it returns true.
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

    /// First row whose time is not below `time`; searched from the end, where stacks look.
    fn first_at_or_after(&self, time: i64) -> usize {
        let end = self.len();
        let mut step = 1;
        while step < end && self.time[end - step] >= time {
            step *= 2;
        }
        let low = end.saturating_sub(step);
        let high = end - step / 2;
        low + self.time[low..high].partition_point(|t| *t < time)
    }

    /// Gives late rows their true times; the columns are no longer in time order then.
    ///
    /// Returns the rows in time order if it is not the order of the columns.
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

    fn row(time: i64) -> RawRow {
        RawRow {
            kind: RawKind::Close,
            time,
            object: 0,
            value: 0,
            type_id: 0,
            name: 0,
            pid: 1,
            tid: 1,
            processor: 0,
            ids_from_stack: false,
        }
    }

    fn rows_at(events: &HandleEvents, time: i64) -> Vec<usize> {
        let mut rows = Vec::new();
        events.rows_at(time, |row| {
            rows.push(row);
            false
        });
        rows
    }

    #[test]
    fn rows_are_found_by_their_time() {
        let mut events = HandleEvents::default();
        for time in [1, 3, 3, 5, 7, 7, 7, 9] {
            events.push(row(time));
        }
        assert_eq!(rows_at(&events, 3), [1, 2]);
        assert_eq!(rows_at(&events, 7), [4, 5, 6]);
        assert_eq!(rows_at(&events, 1), [0]);
        assert_eq!(rows_at(&events, 9), [7]);
        assert!(rows_at(&events, 4).is_empty());
        assert!(rows_at(&events, 99).is_empty());
        assert!(rows_at(&HandleEvents::default(), 1).is_empty());
    }

    #[test]
    fn late_rows_are_found_and_put_into_order_in_the_end() {
        let mut events = HandleEvents::default();
        for time in [5, 9, 2, 9] {
            events.push(row(time));
        }
        assert_eq!(rows_at(&events, 2), [2]);
        assert_eq!(events.restore_times(), Some(vec![2, 0, 1, 3]));
        assert_eq!(events.time, [5, 9, 2, 9]);
    }
}
