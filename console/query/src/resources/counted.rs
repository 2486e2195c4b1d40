//! Counts allocations in their groups, with parts of the table in parallel. It uses loops, because the parts of an
//! allocation count once.

use handlescope_model::rules::{is_freed, is_of_pages};
use handlescope_model::tables::{ResourceKind, ResourceMissKind};
use handlescope_model::{AcquisitionIdx, ResourceMissIdx, sentinel};
use rayon::prelude::*;

use super::keys::ResourceKeys;
use super::stats::{Once, ResourceStats};
use crate::allocations::{AllocationOrMiss, FilteredTables, PART};
use crate::groups::{GroupNodes, Path};
use crate::growth::{TimeParts, TimedChange};
use handlescope_session::cancel::Cancelled;

/// Tables and options for counting allocations.
pub struct Counter<'a> {
    pub keys: &'a ResourceKeys<'a>,
    pub tables: &'a FilteredTables<'a>,
    pub timeline: Option<&'a TimeParts>,
    /// Whether allocations are counted over time instead of bytes.
    pub by_count: bool,
    /// Whether each change over time is kept.
    pub keeps_changes: bool,
}

/// What is counted for a group.
#[derive(Default)]
pub struct GroupFigures {
    pub stats: ResourceStats,
    /// Changes in allocated bytes for each part of the time.
    pub changes: Vec<i64>,
}

/// Groups with their figures, in the order of their first rows.
#[derive(Default)]
pub struct CountedGroups {
    /// One level; each group has a code in each column.
    pub groups: GroupNodes<GroupFigures>,
    /// Items that count once: group, what, kind, and the first row of the allocation or the number of the call. A call
    /// counts once for each kind that it freed.
    once: Vec<(u32, Once, u32, u32)>,
    /// Changes in what is allocated by group, if kept; sorted once complete.
    pub moments: Vec<(u32, TimedChange)>,
}

impl GroupFigures {
    fn add_all(&mut self, other: &Self) {
        self.stats.add_all(&other.stats);
        for (part, bytes) in other.changes.iter().enumerate() {
            self.change(part, *bytes);
        }
    }

    fn change(&mut self, part: usize, bytes: i64) {
        if self.changes.len() <= part {
            self.changes.resize(part + 1, 0);
        }
        if let Some(change) = self.changes.get_mut(part) {
            *change = change.saturating_add(bytes);
        }
    }
}

impl CountedGroups {
    fn add_all(&mut self, counts: Self) {
        let places = self.groups.add_all(&counts.groups, GroupFigures::add_all);
        let place_of = |group: u32| places.get(group as usize).copied().unwrap_or_default();
        let once = counts.once.into_iter();
        self.once
            .extend(once.map(|(group, once, kind, number)| (place_of(group), once, kind, number)));
        let moments = counts.moments.into_iter();
        self.moments.extend(moments.map(|(group, change)| (place_of(group), change)));
    }

    /// Counts items that count once, without duplicates.
    fn count_once(&mut self) {
        let mut once = std::mem::take(&mut self.once);
        once.par_sort_unstable();
        once.dedup();
        for (group, once, ..) in once {
            if let Some(counted) = self.groups.stats_mut(group) {
                counted.stats.count(once);
            }
        }
    }
}

impl Counter<'_> {
    /// Counts allocations, and events without one.
    pub fn count(
        &self,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<CountedGroups, Cancelled> {
        let parts = rows.par_chunks(PART).map(|rows| {
            self.tables.origin.cancel.check()?;
            let codes = self.keys.codes(rows, AllocationOrMiss::Allocation);
            let (mut counts, mut path) = (CountedGroups::default(), Path::default());
            for (at, row) in rows.iter().enumerate() {
                if let Some(group) =
                    path.follow([codes.as_slice()].into_iter(), at, &mut counts.groups)
                {
                    self.add(*row, group, &mut counts);
                }
            }
            Ok(counts)
        });
        let mut counts = CountedGroups::default();
        for part in parts.collect::<Result<Vec<CountedGroups>, Cancelled>>()? {
            counts.add_all(part);
        }
        let codes = self.keys.codes(misses, AllocationOrMiss::Miss);
        let mut path = Path::default();
        for (at, row) in misses.iter().enumerate() {
            let group = path.follow([codes.as_slice()].into_iter(), at, &mut counts.groups);
            if let Some(counted) = group.and_then(|group| counts.groups.stats_mut(group)) {
                self.add_miss(*row, &mut counted.stats);
            }
        }
        counts.count_once();
        // Sorted in place, because there are two for each allocation.
        counts.moments.par_sort_unstable();
        Ok(counts)
    }

    fn add(&self, resource: AcquisitionIdx, group: u32, counts: &mut CountedGroups) {
        let (table, row) = (self.tables.resources, resource.row());
        let end = table.end_of_allocation(resource);
        let (size, time_ns) = (table.size.get(row).unwrap_or_default(), table.opened_ns.get(row));
        let first_part = table.first_part(resource);
        let call = table.free_call.get(row);
        let ended = Once::from_end(end).filter(|once| self.is_counted(*once, resource));
        let Some(counted) = counts.groups.stats_mut(group) else { return };
        let stats = &mut counted.stats;
        stats.add_bytes(size, end);
        stats.add_time(time_ns);
        if first_part.is_none() {
            stats.count(Once::Alloc);
            ended.into_iter().for_each(|once| stats.count(once));
        }
        let is_freed = end.is_some_and(is_freed);
        if is_freed && call.is_none() {
            stats.count(Once::Free);
        }
        if let Some(first) = first_part {
            counts.once.push((group, Once::Alloc, 0, first.0));
            counts.once.extend(ended.map(|once| (group, once, 0, first.0)));
        }
        if let Some(call) = call.filter(|_| is_freed) {
            counts.once.push((group, Once::Free, self.kind(resource), call));
        }
        if let Some((timeline, time_ns)) = self.timeline.zip(time_ns) {
            let begin = timeline.part_of(time_ns);
            // Kinds that are counted by number do not end in parts.
            let change =
                if self.by_count { i64::from(!table.is_further_part(resource)) } else { size };
            counted.change(begin, change);
            let end_ns = table.ended_ns.get(row);
            if let Some(end_ns) = end_ns {
                counted.change(timeline.part_of(end_ns).max(begin), change.saturating_neg());
            }
            if self.keeps_changes {
                let end = end_ns.map(|end_ns| (end_ns.max(time_ns), change.saturating_neg()));
                let changes = std::iter::once((time_ns, change)).chain(end);
                counts.moments.extend(changes.map(|change| (group, change)));
            }
        }
    }

    /// Whether the count of such an end applies here, not only its bytes.
    fn is_counted(&self, once: Once, resource: AcquisitionIdx) -> bool {
        let is_end_of_pages = matches!(once, Once::Replaced | Once::Destroyed);
        !is_end_of_pages || !ResourceKind::from_code(self.kind(resource)).is_some_and(is_of_pages)
    }

    fn kind(&self, resource: AcquisitionIdx) -> u32 {
        let allocator = self.tables.allocator(AllocationOrMiss::Allocation(resource));
        let allocator = allocator.and_then(|allocator| self.tables.allocators.get(allocator));
        allocator.map_or(sentinel(), |allocator| allocator.kind)
    }

    fn add_miss(&self, miss: ResourceMissIdx, stats: &mut ResourceStats) {
        let (misses, row) = (&self.tables.misses, miss.row());
        match misses.kind.get(row).and_then(ResourceMissKind::from_code) {
            Some(ResourceMissKind::OrphanFree) => {
                let size = misses.size.get(row).unwrap_or_default();
                stats.orphan_frees += 1;
                stats.orphan_bytes = stats.orphan_bytes.saturating_add(size);
            }
            Some(ResourceMissKind::Ignored) => stats.ignored += 1,
            None => {}
        }
    }
}
