//! Reserved and committed pages as address ranges, each with the allocation that owns it.
//!
//! Pages belong to the process the event names, not to the one that called. The flags are those of `VirtualAlloc2` and
//! `VirtualFree` (learn.microsoft.com). An allocation owns the pages it reserved or committed first. A part that ends
//! separately is counted separately.

use std::collections::BTreeMap;

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{
    AllocationColumns, AllocationOwner, AllocatorRow, AtRow, OwnerFinder, RareColumns, bytes,
};
use crate::collect::Collector;
use crate::kernel::RangeRow;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::PageChange;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;
/// Allocation flag: replaces a placeholder, which stays reserved.
const MEM_REPLACE_PLACEHOLDER: u32 = 0x4000;
/// Release flag: joins adjacent placeholders. Nothing is freed.
const MEM_COALESCE_PLACEHOLDERS: u32 = 0x1;
/// Release flag: turns the addresses into a separate placeholder, which stays reserved.
const MEM_PRESERVE_PLACEHOLDER: u32 = 0x2;

const PAGE: u64 = 4096;

/// Reservations begin at multiples of the allocation granularity.
const GRANULARITY: u64 = 64 << 10;

/// Name of the only allocator of pages.
const ALLOCATOR: &str = "VirtualAlloc";

/// Pages of all processes.
#[derive(Default)]
pub struct Pages {
    spaces: HashMap<AllocationOwner, PageSpace>,
    allocations: Vec<PageAllocation>,
    /// Ended parts of allocations, in time order.
    ended: Vec<EndedPart>,
    free_calls: u32,
}

/// Pages of a process.
#[derive(Default)]
struct PageSpace {
    reserved: Layer,
    committed: Layer,
    /// Regions that a release without a size frees, as end by start address. A region is a reservation or a
    /// placeholder, which may be part of a reservation or span several.
    regions: BTreeMap<u64, u64>,
}

#[derive(Default)]
struct Layer {
    ranges: AllocationRanges,
    /// Row of the allocator, once there is one.
    allocator: Option<u32>,
}

struct PageAllocation {
    allocator: u32,
    base: u64,
    row: u32,
    caller: u32,
    /// Bytes that had no owner before this call.
    size: u64,
}

struct EndedPart {
    allocation: u32,
    bytes: u64,
    end: ResourceEnd,
    row: u32,
    free_call: u32,
}

impl Pages {
    /// Handles the event of this row.
    pub fn event(
        &mut self,
        collected: &Collector,
        change: PageChange,
        finder: &mut OwnerFinder<'_>,
        mut at: AtRow<'_>,
    ) {
        let timeline = &collected.shared.timeline;
        let range = collected.virtual_memory.rows[timeline.row[at.row] as usize];
        let time = timeline.time[at.row];
        let owner = finder.find_for_memory(range.pid, time);
        match change {
            PageChange::Free => self.free(owner, range, &mut at),
            PageChange::Alloc => {
                let caller = finder.find(timeline.pid[at.row], time);
                let caller = caller.process().filter(|_| caller != owner).unwrap_or(NONE);
                let process = owner.process().map(|row| &collected.processes.rows[row as usize]);
                let knows_all = process.is_some_and(|process| process.start.is_some());
                self.alloc(owner, caller, range, knows_all, &mut at);
            }
        }
    }

    /// `knows_all` says that the trace has all of the owner's reservations, because it has the owner's start.
    fn alloc(
        &mut self,
        owner: AllocationOwner,
        caller: u32,
        range: RangeRow,
        knows_all: bool,
        at: &mut AtRow<'_>,
    ) {
        let (from, to) = pages(range.base, range.size);
        let Self { spaces, allocations, ended, .. } = self;
        let space = spaces.entry(owner).or_default();
        if range.flags & (MEM_COMMIT | MEM_RESERVE) == 0 {
            let allocator = space.committed.allocator(ResourceKind::Commit, owner, at.columns);
            at.miss(ResourceMissKind::Ignored, allocator, range.base, bytes(to - from));
            return;
        }
        let row = at.row;
        let mut take = |layer: &mut Layer, kind| {
            let allocator = layer.allocator(kind, owner, at.columns);
            let size = layer.ranges.fill(from, to, allocations.len() as u32);
            let base = range.base;
            allocations.push(PageAllocation { allocator, base, row: row as u32, caller, size });
        };
        let reserves = range.flags & MEM_RESERVE != 0
            || space.is_reserved_by_commit(from, to, range, knows_all);
        // What replaces a placeholder was already reserved by it, and only a release ends that reservation.
        let is_placeholder = range.flags & MEM_REPLACE_PLACEHOLDER != 0;
        if reserves {
            // If there are pages, their release was lost.
            let mut ends = Ends { how: ResourceEnd::Replaced, row, free_call: NONE, ended };
            let mut end = |layer: &mut Layer| {
                layer.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
            };
            if !is_placeholder {
                end(&mut space.reserved);
            }
            end(&mut space.committed);
            space.set_region(from, to);
        }
        if reserves && !is_placeholder {
            take(&mut space.reserved, ResourceKind::Reserve);
        }
        if range.flags & MEM_COMMIT != 0 {
            take(&mut space.committed, ResourceKind::Commit);
        }
    }

    fn free(&mut self, owner: AllocationOwner, range: RangeRow, at: &mut AtRow<'_>) {
        let row = at.row;
        let space = self.spaces.entry(owner).or_default();
        let (from, to) = match range.size {
            0 => {
                let from = range.base - range.base % PAGE;
                (from, space.end_of(from))
            }
            size => pages(range.base, size),
        };
        let is_release = range.flags & MEM_RELEASE != 0;
        let of_placeholders = MEM_COALESCE_PLACEHOLDERS | MEM_PRESERVE_PLACEHOLDER;
        let keeps_reserved = !is_release || range.flags & of_placeholders != 0;
        if is_release && keeps_reserved {
            space.set_region(from, to);
        } else if is_release {
            space.cut_regions(from, to);
        }
        if is_release && range.flags & MEM_COALESCE_PLACEHOLDERS != 0 {
            return;
        }
        let mut miss = |kind, committed: &mut Layer| {
            let allocator = committed.allocator(ResourceKind::Commit, owner, at.columns);
            at.miss(kind, allocator, range.base, bytes(to - from));
        };
        if range.flags & (MEM_DECOMMIT | MEM_RELEASE) == 0 {
            return miss(ResourceMissKind::Ignored, &mut space.committed);
        }
        let is_reserved = space.reserved.ranges.owner(from).is_some();
        let before = self.ended.len();
        let (free_call, ended) = (self.free_calls, &mut self.ended);
        let mut ends = Ends { how: ResourceEnd::Freed, row, free_call, ended };
        space.committed.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
        if !keeps_reserved {
            space.reserved.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
        }
        if self.ended.len() > before {
            self.free_calls += 1;
        } else if !keeps_reserved || !is_reserved {
            miss(ResourceMissKind::OrphanFree, &mut space.committed);
        }
    }

    /// Adds all allocations with their parts to the columns.
    pub fn finish(self, columns: &mut AllocationColumns) {
        let Self { allocations, mut ended, .. } = self;
        ended.sort_by_key(|part| part.allocation);
        // All pages of an allocation that one event ended form one part, even with other pages in between.
        ended.dedup_by(|later, part| {
            let is_same = (later.allocation, later.row) == (part.allocation, part.row);
            part.bytes += if is_same { later.bytes } else { 0 };
            is_same
        });
        let mut parts = ended.into_iter().peekable();
        for (number, allocation) in allocations.iter().enumerate() {
            let PageAllocation { allocator, base, row, caller, size } = *allocation;
            let mut first = None;
            let mut add = |size, end, end_row, free_call| {
                let part = columns.open(allocator, base, bytes(size), row as usize);
                (columns.end[part as usize], columns.end_row[part as usize]) = (end, end_row);
                let part_of = first.unwrap_or(NONE);
                first = first.or(Some(part));
                let origin = RareColumns { part_of, caller, free_call, ..RareColumns::NONE };
                if origin != RareColumns::NONE {
                    *columns.origin_mut(part) = origin;
                }
            };
            let mut left = size;
            while let Some(part) = parts.next_if(|part| part.allocation as usize == number) {
                left = left.saturating_sub(part.bytes);
                add(part.bytes, part.end, part.row, part.free_call);
            }
            match left {
                0 if size == 0 => add(0, ResourceEnd::Empty, NONE, NONE),
                0 => {}
                left => add(left, ResourceEnd::Open, NONE, NONE),
            }
        }
    }
}

impl PageSpace {
    /// Whether a call that only commits also reserves, as `VirtualAlloc` does if called without an address. The event
    /// does not record the requested address. If the process is older than the trace, there may be a reservation from
    /// before, so only whole multiples of the granularity count.
    fn is_reserved_by_commit(&self, from: u64, to: u64, range: RangeRow, knows_all: bool) -> bool {
        let unit = if knows_all { PAGE } else { GRANULARITY };
        let is_whole = range.base.is_multiple_of(GRANULARITY) && (to - from).is_multiple_of(unit);
        is_whole
            && self.reserved.ranges.is_free(from, to)
            && self.committed.ranges.is_free(from, to)
    }

    /// Turns a range into one region.
    fn set_region(&mut self, from: u64, to: u64) {
        if from < to {
            self.cut_regions(from, to);
            self.regions.insert(from, to);
        }
    }

    /// Cuts a range out of the regions it overlaps.
    fn cut_regions(&mut self, from: u64, to: u64) {
        while let Some((start, end)) = self.last_region(to).filter(|(_, end)| *end > from) {
            self.regions.remove(&start);
            if start < from {
                self.regions.insert(start, from);
            }
            if end > to {
                self.regions.insert(to, end);
            }
        }
    }

    /// Returns the last region that begins before an address.
    fn last_region(&self, address: u64) -> Option<(u64, u64)> {
        let (start, end) = self.regions.range(..address).next_back()?;
        Some((*start, *end))
    }

    /// Returns the end of the region that contains an address. If no region is known because it is older than the
    /// trace, but one may begin there, returns the end of what was committed there.
    fn end_of(&self, address: u64) -> u64 {
        let region = self.last_region(address.saturating_add(1)).map(|(_, end)| end);
        let end = region.filter(|end| *end > address);
        let may_begin = address.is_multiple_of(GRANULARITY);
        let committed = || self.committed.ranges.end_of(address).filter(|_| may_begin);
        end.or_else(committed).unwrap_or(address)
    }
}

impl Layer {
    fn allocator(
        &mut self,
        kind: ResourceKind,
        owner: AllocationOwner,
        columns: &mut AllocationColumns,
    ) -> u32 {
        *self.allocator.get_or_insert_with(|| {
            let (name, provider) = (ALLOCATOR.to_owned(), None);
            let row = AllocatorRow { kind, name, provider, owner, created: NONE, destroyed: NONE };
            columns.add_allocator(row)
        })
    }
}

/// Parts that one event ends.
struct Ends<'a> {
    how: ResourceEnd,
    row: usize,
    free_call: u32,
    ended: &'a mut Vec<EndedPart>,
}

impl Ends<'_> {
    fn add(&mut self, allocation: u32, bytes: u64) {
        let Self { how, row, free_call, ref mut ended } = *self;
        ended.push(EndedPart { allocation, bytes, end: how, row: row as u32, free_call });
    }
}

/// Extends a range to whole pages; returns its start and end address.
fn pages(base: u64, size: u64) -> (u64, u64) {
    let from = base - base % PAGE;
    let end = base.saturating_add(size);
    (from, end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX))
}

/// Ranges that do not overlap. The cost of a call depends only on what it changes, however many pieces there are.
#[derive(Default)]
pub struct AllocationRanges {
    /// Ranges by start address.
    pieces: BTreeMap<u64, OwnedRange>,
    /// Covered address ranges, merged, as end by start address.
    covered: BTreeMap<u64, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnedRange {
    /// Address after the range.
    end: u64,
    allocation: u32,
}

impl AllocationRanges {
    /// Returns the allocation that owns an address.
    pub fn owner(&self, address: u64) -> Option<u32> {
        let (_, owned) = self.pieces.range(..=address).next_back()?;
        (address < owned.end).then_some(owned.allocation)
    }

    /// Whether no address of a range has an owner.
    fn is_free(&self, from: u64, to: u64) -> bool {
        self.last_covered(to).is_none_or(|(_, end)| end <= from)
    }

    /// Returns the end of the allocation's range that contains an address, past all adjoining ranges of the same
    /// allocation.
    pub fn end_of(&self, address: u64) -> Option<u64> {
        let allocation = self.owner(address)?;
        let mut end = address;
        for (start, owned) in self.from(address) {
            if start > end || owned.allocation != allocation {
                break;
            }
            end = owned.end;
        }
        Some(end)
    }

    /// Returns the ranges starting with the one that contains an address, or the next one.
    fn from(&self, address: u64) -> impl Iterator<Item = (u64, OwnedRange)> + '_ {
        let first = self.pieces.range(..=address).next_back();
        let first = first.filter(|(_, owned)| owned.end > address);
        let first = first.map_or(address, |(start, _)| *start);
        self.pieces.range(first..).map(|(start, owned)| (*start, *owned))
    }

    fn first_from(&self, address: u64) -> Option<(u64, OwnedRange)> {
        self.from(address).next()
    }

    /// Removes a range from its owners, and calls `each` with each owner and the bytes it loses.
    pub fn remove(&mut self, from: u64, to: u64, mut each: impl FnMut(u32, u64)) {
        // An empty range inside a piece must not split it.
        if from >= to {
            return;
        }
        while let Some((start, owned)) = self.first_from(from).filter(|(start, _)| *start < to) {
            self.pieces.remove(&start);
            if start < from {
                self.pieces.insert(start, OwnedRange { end: from, ..owned });
            }
            if owned.end > to {
                self.pieces.insert(to, owned);
            }
            each(owned.allocation, owned.end.min(to) - start.max(from));
        }
        while let Some((start, end)) = self.last_covered(to).filter(|(_, end)| *end > from) {
            self.covered.remove(&start);
            if start < from {
                self.covered.insert(start, from);
            }
            if end > to {
                self.covered.insert(to, end);
            }
        }
    }

    /// Gives the bytes of a range that have no owner to an allocation, and returns how many there were.
    pub fn fill(&mut self, from: u64, to: u64, allocation: u32) -> u64 {
        let (mut all_from, mut all_to) = (from, to);
        let (mut at, mut bytes) = (to, 0);
        let mut give = |pieces: &mut BTreeMap<u64, OwnedRange>, start, end| {
            if start < end {
                pieces.insert(start, OwnedRange { end, allocation });
                bytes += end - start;
            }
        };
        // Goes from the last covered range to the first, and merges all into one.
        while let Some((start, end)) = self.last_covered(to).filter(|(_, end)| *end > from) {
            self.covered.remove(&start);
            give(&mut self.pieces, end, at);
            at = start.max(from);
            (all_from, all_to) = (all_from.min(start), all_to.max(end));
        }
        give(&mut self.pieces, from, at);
        if all_from < all_to {
            self.cover(all_from, all_to);
        }
        bytes
    }

    /// Returns the last covered range that begins before an address.
    fn last_covered(&self, address: u64) -> Option<(u64, u64)> {
        let (start, end) = self.covered.range(..address).next_back()?;
        Some((*start, *end))
    }

    /// Covers an uncovered range, and merges it with adjoining covered ranges.
    fn cover(&mut self, mut from: u64, mut to: u64) {
        if let Some((start, _)) = self.last_covered(from).filter(|(_, end)| *end == from) {
            self.covered.remove(&start);
            from = start;
        }
        if let Some(end) = self.covered.remove(&to) {
            to = end;
        }
        self.covered.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(ranges: &mut AllocationRanges, from: u64, to: u64) -> Vec<(u32, u64)> {
        let mut lost = Vec::new();
        ranges.remove(from, to, |allocation, bytes| lost.push((allocation, bytes)));
        lost
    }

    #[test]
    fn only_pages_without_owner_are_given() {
        let mut ranges = AllocationRanges::default();
        assert_eq!(ranges.fill(20, 30, 1), 10);
        assert_eq!(ranges.fill(40, 50, 2), 10);
        assert_eq!(ranges.fill(10, 60, 3), 30);
        assert_eq!(ranges.fill(10, 60, 4), 0);
        let owners: Vec<_> = [9, 10, 20, 30, 40, 59, 60].map(|at| ranges.owner(at)).into();
        assert_eq!(owners, [None, Some(3), Some(1), Some(3), Some(2), Some(3), None]);
    }

    #[test]
    fn ranges_filled_and_removed_agree_with_single_pages() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (mut ranges, mut pages) = (AllocationRanges::default(), [None; 40]);
        for allocation in 0..4000 {
            let from = random(40);
            let to = (from + random(12)).min(40);
            let range = &mut pages[from as usize..to as usize];
            if random(2) == 0 {
                let free = range.iter_mut().filter(|page| page.is_none());
                let count = free.map(|page| *page = Some(allocation)).count();
                assert_eq!(ranges.fill(from, to, allocation), count as u64);
            } else {
                let lost = range.iter_mut().filter_map(Option::take).count();
                let removed = removed(&mut ranges, from, to);
                assert_eq!(removed.iter().map(|(_, bytes)| bytes).sum::<u64>(), lost as u64);
            }
            assert!((0..40).all(|page| ranges.owner(page) == pages[page as usize]));
            let runs = pages.chunk_by(|a, b| a.is_some() == b.is_some());
            assert_eq!(ranges.covered.len(), runs.filter(|run| run[0].is_some()).count());
        }
    }

    #[test]
    fn a_hole_leaves_both_sides() {
        let mut ranges = AllocationRanges::default();
        ranges.fill(0, 100, 1);
        assert_eq!(removed(&mut ranges, 40, 60), [(1, 20)]);
        assert_eq!(
            (ranges.owner(39), ranges.owner(40), ranges.owner(60)),
            (Some(1), None, Some(1))
        );
        ranges.fill(45, 50, 2);
        assert_eq!(removed(&mut ranges, 30, 70), [(1, 10), (2, 5), (1, 10)]);
        assert_eq!(removed(&mut ranges, 0, u64::MAX), [(1, 30), (1, 30)]);
    }

    #[test]
    fn a_range_ends_where_its_allocation_does() {
        let mut ranges = AllocationRanges::default();
        ranges.fill(0, 10, 1);
        ranges.fill(0, 20, 2);
        assert_eq!(
            (ranges.end_of(5), ranges.end_of(12), ranges.end_of(20)),
            (Some(10), Some(20), None)
        );
    }
}
