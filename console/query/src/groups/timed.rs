//! When the members of groups were acquired and when they were gone.

use std::ops::Range;
use std::sync::Arc;

use handlescope_model::AcquisitionIdx;
use rayon::prelude::*;

use crate::acquisition_table::AcquisitionTable;
use crate::growth::{TimeParts, TimeWindow, TimedChange};

/// The handles or allocations of groups, for everything that depends on their times.
pub struct TimedMembers {
    /// Members of the innermost groups, one group after the other.
    pub rows: Vec<AcquisitionIdx>,
    pub table: Arc<AcquisitionTable>,
}

/// The members of one group.
pub struct TimedGroup<'a> {
    members: &'a TimedMembers,
    ranges: Vec<Range<usize>>,
}

impl TimedMembers {
    /// Returns the group with the members in these ranges.
    pub fn group(&self, ranges: Vec<Range<usize>>) -> TimedGroup<'_> {
        TimedGroup { members: self, ranges }
    }
}

impl TimedGroup<'_> {
    pub fn rows(&self) -> impl Iterator<Item = AcquisitionIdx> {
        self.ranges.iter().flat_map(|range| self.slice(range)).copied()
    }

    fn slice(&self, range: &Range<usize>) -> &[AcquisitionIdx] {
        self.members.rows.get(range.clone()).unwrap_or_default()
    }

    /// Returns what is open at the ends of equal parts of the window: bytes, or numbers.
    pub fn outstanding(&self, of_bytes: bool, window: TimeWindow, parts: usize) -> Vec<i64> {
        let parts = TimeParts::new(window, parts);
        let add = |sums: &mut Vec<i64>, part: usize, change: i64| {
            if let Some(sum) = sums.get_mut(part) {
                *sum = sum.saturating_add(change);
            }
        };
        let none = || vec![0; parts.width()];
        let changes = self.timed_changes(of_bytes).fold(none, |mut sums, (time_ns, change)| {
            add(&mut sums, parts.part_of(time_ns), change);
            sums
        });
        let changes = changes.reduce_with(|mut sums, more| {
            more.into_iter().enumerate().for_each(|(part, change)| add(&mut sums, part, change));
            sums
        });
        parts.sums(&changes.unwrap_or_default())
    }

    /// Returns the changes in bytes or in numbers, unordered.
    pub fn changes(&self, of_bytes: bool) -> Vec<TimedChange> {
        self.timed_changes(of_bytes).collect()
    }

    /// Returns the beginning and the end of each member. Further parts of an allocation do not count as another one.
    fn timed_changes(&self, of_bytes: bool) -> impl ParallelIterator<Item = TimedChange> {
        let (rows, table) =
            (self.ranges.par_iter().flat_map(|range| self.slice(range)), &self.members.table);
        rows.flat_map_iter(move |row| {
            let count = || i64::from(!table.is_further_part(*row));
            let amount = if of_bytes { table.bytes(*row) } else { count() };
            let time = table.open_time(*row);
            let opened = time.map(|time| (time.opened_ns, amount));
            let closed_ns = time.and_then(|time| Some(time.closed_ns?.max(time.opened_ns)));
            opened.into_iter().chain(closed_ns.map(|ns| (ns, amount.saturating_neg())))
        })
    }
}
