//! When the members of groups were acquired and when they were gone.

use std::ops::Range;
use std::sync::Arc;

use handlescope_model::AcquisitionIdx;

use crate::acquisition_table::AcquisitionTable;
use crate::growth::{Lifetime, TimeWindow, TimedChange, open_amounts};

/// The handles or allocations of groups, for everything that depends on their times.
pub struct TimedMembers {
    /// Members of the innermost groups, one group after the other.
    pub rows: Vec<AcquisitionIdx>,
    pub table: Arc<AcquisitionTable>,
}

impl TimedMembers {
    /// Returns the members in these ranges, which are those of a group.
    pub fn of(
        &self,
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) -> impl Iterator<Item = AcquisitionIdx> {
        ranges
            .into_iter()
            .flat_map(|range| self.rows.get(range).unwrap_or_default())
            .copied()
    }

    /// Returns the amounts that are open at the ends of equal parts of the window: bytes, or numbers.
    pub fn outstanding(
        &self,
        ranges: impl IntoIterator<Item = Range<usize>>,
        of_bytes: bool,
        window: TimeWindow,
        parts: usize,
    ) -> Vec<i64> {
        open_amounts(self.amounts(ranges, of_bytes), window, parts)
    }

    /// Returns the changes in bytes or in numbers, unordered.
    pub fn changes(
        &self,
        ranges: impl IntoIterator<Item = Range<usize>>,
        of_bytes: bool,
    ) -> Vec<TimedChange> {
        let mut changes = Vec::new();
        for (Lifetime { opened_ns, closed_ns }, amount) in self.amounts(ranges, of_bytes) {
            changes.push((opened_ns, amount));
            let closed_ns = closed_ns.map(|closed_ns| closed_ns.max(opened_ns));
            changes.extend(closed_ns.map(|closed_ns| (closed_ns, amount.saturating_neg())));
        }
        changes
    }

    /// Returns the time and the amount of each member. Further parts of an allocation do not count as another one.
    fn amounts(
        &self,
        ranges: impl IntoIterator<Item = Range<usize>>,
        of_bytes: bool,
    ) -> impl Iterator<Item = (Lifetime, i64)> {
        self.of(ranges).filter_map(move |row| {
            let count = || i64::from(!self.table.is_further_part(row));
            let amount = if of_bytes { self.table.bytes(row) } else { count() };
            Some((self.table.open_time(row)?, amount))
        })
    }
}
