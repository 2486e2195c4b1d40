//! Counts allocations by their keys, part by part of the table, side by side: in loops, as a key is made of several
//! columns and tables, and parts of an allocation count once.

use handlescope_model::rules::{is_freed, is_of_pages};
use handlescope_model::tables::{ResourceKind, ResourceMissKind};
use handlescope_model::{AcquisitionIdx, ResourceMissIdx, sentinel};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::keys::{Key, Keys};
use super::stats::{Once, ResourceStats};
use crate::acquisition_table::AcquisitionTable;
use crate::allocations::{AllocatorList, MissTable, PART};
use crate::growth::{Change, TimeParts};
use handlescope_session::cancel::{Cancel, Cancelled};

/// Tables and options for counting allocations.
pub struct Counter<'a> {
    pub keys: &'a Keys<'a>,
    pub table: &'a AcquisitionTable,
    pub misses: &'a MissTable,
    pub allocators: &'a AllocatorList,
    pub timeline: Option<&'a TimeParts>,
    /// Whether allocations, not their bytes, are counted over time.
    pub by_count: bool,
    /// Whether each change over time is kept.
    pub keeps_changes: bool,
    pub cancel: &'a Cancel,
}

/// Index of the groups by their keys.
enum GroupIndex {
    /// Groups by base, where keys are nothing but bases, [`sentinel`] for none yet; the last one is for rows without
    /// a base.
    ByBase(Vec<u32>),
    ByKey(HashMap<Key, u32>),
}

/// Groups with their figures, in the order of their first rows.
pub struct Counts {
    by_key: GroupIndex,
    pub groups: Vec<(Key, ResourceStats)>,
    /// Items that count once: group, what, and the first row of the allocation or the number of the call. A call
    /// counts for each kind that it freed something of.
    once: Vec<(u32, Once, u32, u32)>,
    /// Group and change of what is allocated, if these are kept; ascending, when all are there.
    pub moments: Vec<(u32, Change)>,
    /// Changes of the bytes that are allocated, for each group and part of time.
    pub changes: Vec<i64>,
    /// Parts of time, and one for later events.
    width: usize,
}

impl Counts {
    fn group(&mut self, key: Key) -> u32 {
        let next = self.groups.len() as u32;
        let group = match &mut self.by_key {
            GroupIndex::ByBase(groups) => {
                let (last, mut none) = (groups.len().saturating_sub(1), sentinel());
                let group = groups.get_mut((key.base() as usize).min(last)).unwrap_or(&mut none);
                if *group == sentinel() {
                    *group = next;
                }
                *group
            }
            GroupIndex::ByKey(groups) => *groups.entry(key).or_insert(next),
        };
        if group == next {
            self.groups.push((key, ResourceStats::default()));
            self.changes.resize(self.changes.len() + self.width, 0);
        }
        group
    }

    fn stats(&mut self, group: u32) -> Option<&mut ResourceStats> {
        self.groups.get_mut(group as usize).map(|(_, stats)| stats)
    }

    fn change(&mut self, group: u32, part: usize, bytes: i64) {
        if let Some(change) = self.changes.get_mut(group as usize * self.width + part) {
            *change = change.saturating_add(bytes);
        }
    }

    fn add_all(&mut self, counts: Self) {
        let width = self.width;
        let mut groups = Vec::with_capacity(counts.groups.len());
        for (index, (key, stats)) in counts.groups.iter().enumerate() {
            let group = self.group(*key);
            if let Some(sum) = self.stats(group) {
                sum.add_all(stats);
            }
            for (part, bytes) in counts.changes.iter().skip(index * width).take(width).enumerate() {
                self.change(group, part, *bytes);
            }
            groups.push(group);
        }
        let sum_of = |group: u32| groups.get(group as usize).copied().unwrap_or_default();
        let once = counts.once.into_iter();
        self.once
            .extend(once.map(|(group, once, kind, number)| (sum_of(group), once, kind, number)));
        let moments = counts.moments.into_iter();
        self.moments.extend(moments.map(|(group, change)| (sum_of(group), change)));
    }

    /// Counts what counts once, each once.
    fn count_once(&mut self) {
        let mut once = std::mem::take(&mut self.once);
        once.par_sort_unstable();
        once.dedup();
        for (group, once, ..) in once {
            if let Some(stats) = self.stats(group) {
                stats.count(once);
            }
        }
    }
}

impl Counter<'_> {
    /// Counts some allocations and events without any.
    pub fn count(
        &self,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<Counts, Cancelled> {
        let parts = rows.par_chunks(PART).map(|rows| {
            self.cancel.check()?;
            let mut counts = self.empty();
            rows.iter().for_each(|row| self.add(*row, &mut counts));
            Ok(counts)
        });
        let parts: Vec<Counts> = parts.collect::<Result<_, Cancelled>>()?;
        let mut counts = self.empty();
        for part in parts {
            counts.add_all(part);
        }
        misses.iter().for_each(|row| self.add_miss(*row, &mut counts));
        counts.count_once();
        // Sorted in place, because there are two for each allocation.
        counts.moments.par_sort_unstable();
        Ok(counts)
    }

    fn empty(&self) -> Counts {
        let by_key = match self.keys.bases_alone() {
            Some(bases) => GroupIndex::ByBase(vec![sentinel(); bases + 1]),
            None => GroupIndex::ByKey(HashMap::new()),
        };
        Counts {
            by_key,
            groups: Vec::new(),
            once: Vec::new(),
            moments: Vec::new(),
            changes: Vec::new(),
            width: self.timeline.map_or(0, TimeParts::width),
        }
    }

    fn add(&self, resource: AcquisitionIdx, counts: &mut Counts) {
        let (table, row) = (self.table, resource.row());
        let end = table.end_of_allocation(resource);
        let group = counts.group(self.keys.of(resource));
        let (size, time_ns) = (table.size.get(row).unwrap_or_default(), table.opened_ns.get(row));
        let first_part = table.first_part(resource);
        let call = table.free_call.get(row);
        let ended = Once::of_end(end).filter(|once| self.is_counted(*once, resource));
        let Some(stats) = counts.stats(group) else { return };
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
            // Allocations that are counted by number do not end in parts.
            let change = match self.by_count {
                true => i64::from(!table.is_further_part(resource)),
                false => size,
            };
            counts.change(group, begin, change);
            let end_ns = table.ended_ns.get(row);
            if let Some(end_ns) = end_ns {
                counts.change(group, timeline.part_of(end_ns).max(begin), change.saturating_neg());
            }
            if self.keeps_changes {
                let end = end_ns.map(|end_ns| (end_ns.max(time_ns), change.saturating_neg()));
                let changes = std::iter::once((time_ns, change)).chain(end);
                counts.moments.extend(changes.map(|change| (group, change)));
            }
        }
    }

    /// Whether such an end counts here, and not only its bytes.
    fn is_counted(&self, once: Once, resource: AcquisitionIdx) -> bool {
        let is_end_of_pages = matches!(once, Once::Replaced | Once::Destroyed);
        !is_end_of_pages || !ResourceKind::from_code(self.kind(resource)).is_some_and(is_of_pages)
    }

    fn kind(&self, resource: AcquisitionIdx) -> u32 {
        let allocator = self.table.allocator.get(resource.row());
        let allocator = allocator.and_then(|allocator| self.allocators.get(allocator));
        allocator.map_or(sentinel(), |allocator| allocator.kind)
    }

    fn add_miss(&self, miss: ResourceMissIdx, counts: &mut Counts) {
        let row = miss.row();
        let group = counts.group(self.keys.of_miss(miss));
        let kind = self.misses.kind.get(row).and_then(ResourceMissKind::from_code);
        let Some(stats) = counts.stats(group) else { return };
        match kind {
            Some(ResourceMissKind::OrphanFree) => {
                let size = self.misses.size.get(row).unwrap_or_default();
                stats.orphan_frees += 1;
                stats.orphan_bytes = stats.orphan_bytes.saturating_add(size);
            }
            Some(ResourceMissKind::Ignored) => stats.ignored += 1,
            None => {}
        }
    }
}
