//! Counts allocations in their groups, with parts of the table in parallel. It uses loops, because the parts of an
//! allocation count once.

use handlescope_model::rules::{is_freed, is_of_pages};
use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use handlescope_model::{AcquisitionIdx, ResourceMissIdx, sentinel};
use rayon::prelude::*;

use super::keys::ResourceKeys;
use super::stats::ResourceStats;
use crate::allocations::{AllocationOrMiss, FilteredTables, PART};
use crate::amounts::Amount;
use crate::groups::{GroupNodes, Path};
use handlescope_session::cancel::Cancelled;

/// Tables and options for counting allocations.
pub struct Counter<'a> {
    pub keys: &'a ResourceKeys<'a>,
    pub tables: &'a FilteredTables<'a>,
    /// Whether the group of each allocation is kept.
    pub keeps_members: bool,
}

/// Groups with their figures, in the order of their first rows.
#[derive(Default)]
pub struct CountedGroups {
    /// One level; each group has a code in each column.
    pub groups: GroupNodes<ResourceStats>,
    /// Allocations in parts, and calls that freed, which count once: group, end (`None` for the allocation itself), kind,
    /// and the first row of the allocation or the number of the call. A call counts once for each kind that it freed.
    once: Vec<(u32, Option<ResourceEnd>, u32, u32)>,
    /// The group of each allocation, if kept.
    pub members: Vec<u32>,
}

impl CountedGroups {
    fn add_all(&mut self, counts: Self) {
        let places = self.groups.add_all(&counts.groups, ResourceStats::add_all);
        let place_of = |group: u32| places.get(group as usize).copied().unwrap_or_default();
        let once = counts.once.into_iter();
        self.once
            .extend(once.map(|(group, end, kind, number)| (place_of(group), end, kind, number)));
        self.members.extend(counts.members.into_iter().map(place_of));
    }

    /// Counts items that count once, without duplicates.
    fn count_once(&mut self) {
        let mut once = std::mem::take(&mut self.once);
        once.par_sort_unstable();
        once.dedup();
        for (group, end, ..) in once {
            let Some(stats) = self.groups.stats_mut(group) else { continue };
            let sum = match end {
                Some(end) => stats.ended(end),
                None => Some(&mut stats.allocated),
            };
            if let Some(sum) = sum {
                sum.count += 1;
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
            let codes = self.keys.codes(rows.iter().copied().map(AllocationOrMiss::Allocation));
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
        let codes = self.keys.codes(misses.iter().copied().map(AllocationOrMiss::Miss));
        let mut path = Path::default();
        for (at, row) in misses.iter().enumerate() {
            let group = path.follow([codes.as_slice()].into_iter(), at, &mut counts.groups);
            if let Some(stats) = group.and_then(|group| counts.groups.stats_mut(group)) {
                self.add_miss(*row, stats);
            }
        }
        counts.count_once();
        Ok(counts)
    }

    fn add(&self, resource: AcquisitionIdx, group: u32, counts: &mut CountedGroups) {
        let (table, row) = (self.tables.origin.table, resource.row());
        let end = table.end_of_allocation(resource);
        let (size, time_ns) = (table.size.get(row).unwrap_or_default(), table.opened_ns.get(row));
        let first_part = table.first_part(resource);
        let call = table.free_call.get(row);
        let (is_whole, is_freed) = (first_part.is_none(), end.is_some_and(is_freed));
        // A free counts for its call instead.
        let counted_end = end.filter(|end| !is_freed && self.is_counted(*end, resource));
        if self.keeps_members {
            counts.members.push(group);
        }
        let Some(stats) = counts.groups.stats_mut(group) else { return };
        stats.allocated.add(Amount { count: is_whole.into(), bytes: size });
        stats.add_time(time_ns);
        if let Some(sum) = end.and_then(|end| stats.ended(end)) {
            let is_one = if is_freed { call.is_none() } else { is_whole && counted_end.is_some() };
            sum.add(Amount { count: is_one.into(), bytes: size });
        }
        if let Some(first) = first_part {
            counts.once.push((group, None, 0, first.0));
            counts.once.extend(counted_end.map(|end| (group, Some(end), 0, first.0)));
        }
        if let Some(call) = call.filter(|_| is_freed) {
            counts.once.push((group, Some(ResourceEnd::Freed), self.kind(resource), call));
        }
    }

    /// Whether the count of such an end applies here, not only its bytes.
    fn is_counted(&self, end: ResourceEnd, resource: AcquisitionIdx) -> bool {
        let is_end_of_pages = matches!(end, ResourceEnd::Replaced | ResourceEnd::Destroyed);
        !is_end_of_pages || !ResourceKind::from_code(self.kind(resource)).is_some_and(is_of_pages)
    }

    fn kind(&self, resource: AcquisitionIdx) -> u32 {
        let allocator = self.tables.origin.table.allocator_of(resource);
        allocator.map_or(sentinel(), |allocator| allocator.kind)
    }

    fn add_miss(&self, miss: ResourceMissIdx, stats: &mut ResourceStats) {
        let (misses, row) = (&self.tables.misses, miss.row());
        match misses.kind.get(row).and_then(ResourceMissKind::from_code) {
            Some(ResourceMissKind::OrphanFree) => {
                let size = misses.size.get(row).unwrap_or_default();
                stats.orphan_frees.add(Amount { count: 1, bytes: size });
            }
            Some(ResourceMissKind::Ignored) => stats.ignored += 1,
            None => {}
        }
    }
}
