//! Reserved and committed pages.
//!
//! Pages belong to the process that the event names, whichever called. Flags are those of `VirtualAlloc` and
//! `VirtualFree` (learn.microsoft.com). An allocation owns what it reserved or committed first; a part that ends by
//! itself is counted by itself.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocatorRow, Origin, bytes};
use super::owners::{Owner, OwnerFinder};
use super::ranges::Ranges;
use crate::collect::Collector;
use crate::kernel::RangeRow;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::PageChange;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;

const PAGE: u64 = 4096;

/// The name of the one allocator of pages.
const ALLOCATOR: &str = "VirtualAlloc";

/// The pages of all processes.
#[derive(Default)]
pub(super) struct Pages {
    spaces: HashMap<Owner, Space>,
    allocations: Vec<PageAllocation>,
    /// Parts of allocations that ended, in time order.
    ended: Vec<EndedPart>,
    free_calls: u32,
}

/// The pages of a process.
#[derive(Default)]
struct Space {
    reserved: Layer,
    committed: Layer,
}

#[derive(Default)]
struct Layer {
    ranges: Ranges,
    /// Its row among the allocators, once it has one.
    allocator: Option<u32>,
}

struct PageAllocation {
    allocator: u32,
    base: u64,
    row: u32,
    caller: u32,
    /// Bytes that nothing owned before.
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
    /// Takes an event of this row.
    pub(super) fn event(
        &mut self,
        collected: &Collector,
        (row, change): (usize, PageChange),
        finder: &mut OwnerFinder<'_>,
        columns: &mut AllocationColumns,
    ) {
        let timeline = &collected.shared.timeline;
        let range = collected.virtual_memory.rows[timeline.row[row] as usize];
        let time = timeline.time[row];
        let owner = finder.find_for_memory(range.pid, time);
        match change {
            PageChange::Free => self.free(owner, range, row, columns),
            PageChange::Alloc => {
                let caller = finder.find(timeline.pid[row], time);
                let caller = caller.process().filter(|_| caller != owner).unwrap_or(NONE);
                self.alloc(owner, caller, range, row, columns);
            }
        }
    }

    fn alloc(
        &mut self,
        owner: Owner,
        caller: u32,
        range: RangeRow,
        row: usize,
        columns: &mut AllocationColumns,
    ) {
        let (from, to) = pages(range.base, range.size);
        let Self { spaces, allocations, ended, .. } = self;
        let space = spaces.entry(owner).or_default();
        if range.flags & (MEM_COMMIT | MEM_RESERVE) == 0 {
            let allocator = space.committed.allocator(ResourceKind::Commit, owner, columns);
            columns.miss(ResourceMissKind::Ignored, allocator, range.base, bytes(to - from), row);
            return;
        }
        let mut take = |layer: &mut Layer, kind| {
            let allocator = layer.allocator(kind, owner, columns);
            let size = layer.ranges.fill(from, to, allocations.len() as u32);
            let base = range.base;
            allocations.push(PageAllocation { allocator, base, row: row as u32, caller, size });
        };
        if range.flags & MEM_RESERVE != 0 {
            // Whatever is there was released, and that was lost.
            let mut ends = Ends { how: ResourceEnd::Replaced, row, free_call: NONE, ended };
            for layer in [&mut space.reserved, &mut space.committed] {
                layer.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
            }
            take(&mut space.reserved, ResourceKind::Reserve);
        }
        if range.flags & MEM_COMMIT != 0 {
            take(&mut space.committed, ResourceKind::Commit);
        }
    }

    fn free(&mut self, owner: Owner, range: RangeRow, row: usize, columns: &mut AllocationColumns) {
        let space = self.spaces.entry(owner).or_default();
        let (from, to) = match range.size {
            0 => {
                let from = range.base - range.base % PAGE;
                (from, space.reserved.ranges.end_of(from).unwrap_or(from))
            }
            size => pages(range.base, size),
        };
        let is_release = range.flags & MEM_RELEASE != 0;
        let mut miss = |what, committed: &mut Layer| {
            let allocator = committed.allocator(ResourceKind::Commit, owner, columns);
            columns.miss(what, allocator, range.base, bytes(to - from), row);
        };
        if range.flags & (MEM_DECOMMIT | MEM_RELEASE) == 0 {
            return miss(ResourceMissKind::Ignored, &mut space.committed);
        }
        let is_reserved = space.reserved.ranges.owner(from).is_some();
        let before = self.ended.len();
        let (free_call, ended) = (self.free_calls, &mut self.ended);
        let mut ends = Ends { how: ResourceEnd::Freed, row, free_call, ended };
        space.committed.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
        if is_release {
            space.reserved.ranges.remove(from, to, |allocation, bytes| ends.add(allocation, bytes));
        }
        if self.ended.len() > before {
            self.free_calls += 1;
        } else if is_release || !is_reserved {
            miss(ResourceMissKind::OrphanFree, &mut space.committed);
        }
    }

    /// Adds all allocations with their parts to the columns.
    pub(super) fn finish(self, columns: &mut AllocationColumns) {
        let Self { allocations, mut ended, .. } = self;
        ended.sort_by_key(|part| part.allocation);
        // What one event ended of an allocation is one part, though pages of others lay between.
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
                let origin = Origin { part_of, caller, free_call, ..Origin::NONE };
                if origin != Origin::NONE {
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

impl Layer {
    fn allocator(
        &mut self,
        kind: ResourceKind,
        owner: Owner,
        columns: &mut AllocationColumns,
    ) -> u32 {
        *self.allocator.get_or_insert_with(|| {
            let (name, provider) = (ALLOCATOR.to_owned(), None);
            let row = AllocatorRow { kind, name, provider, owner, created: NONE, destroyed: NONE };
            columns.add_allocator(row)
        })
    }
}

/// The parts that one event ends.
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

/// A range with the pages at its ends whole: its first address and the one after it.
fn pages(base: u64, size: u64) -> (u64, u64) {
    let from = base - base % PAGE;
    let end = base.saturating_add(size);
    (from, end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX))
}
