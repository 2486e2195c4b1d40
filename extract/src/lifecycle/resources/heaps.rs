//! Blocks of heaps.
//!
//! A heap is known by its process and handle; its addresses are addresses of the process. According to TraceEvent's reader
//! of these events, a reallocation that moves its block may be accompanied by the events of an allocation
//! and a free, which then must not count twice.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocatorRow, AtRow, Owner, bytes};
use crate::collect::Collector;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::HeapChange;

/// The heaps of all processes with their live blocks.
pub(super) struct HeapBlocks {
    numbers: HashMap<(Owner, u64), u32>,
    heaps: Vec<Heap>,
    /// Numbers of heaps that were used last: millions of events are of a few heaps.
    last: [Option<(Owner, u64, u32)>; LAST],
    /// The last two events of blocks of each pid and tid, the older one first; kept where there are reallocations.
    recent: HashMap<(u32, u32), [Recent; 2]>,
}

/// Number of heaps in the cache of [`HeapBlocks::last`].
const LAST: usize = 64;

/// A heap of a process.
#[derive(Default)]
struct Heap {
    /// Row of the allocator; `None` before its first event.
    allocator: Option<u32>,
    is_destroyed: bool,
    /// Live blocks: numbers of allocations by address.
    blocks: HashMap<u64, u32>,
}

/// An event of a block, as reallocations look back at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Recent {
    #[default]
    Neither,
    /// Made a block; `None` for a call that failed.
    Alloc { heap: u64, address: u64, size: u64, allocation: Option<u32> },
    /// Freed an address; the allocation that ended, if there was one.
    Free { heap: u64, address: u64, allocation: Option<u32> },
}

impl Default for HeapBlocks {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            heaps: Vec::new(),
            last: [None; LAST],
            recent: HashMap::new(),
        }
    }
}

impl HeapBlocks {
    fn number(&mut self, owner: Owner, handle: u64) -> u32 {
        let of_owner = match owner {
            Owner::Process(row) => row,
            Owner::Pid(pid) => pid,
        };
        // Heaps begin at multiples of 64 KiB.
        let slot = (handle >> 16) as usize ^ (of_owner as usize).wrapping_mul(0x9E37);
        let Some(last) = self.last.get_mut(slot % LAST) else { return 0 };
        if let Some((last_owner, last_handle, number)) = *last
            && (last_owner, last_handle) == (owner, handle)
        {
            return number;
        }
        let heaps = &mut self.heaps;
        let number = *self.numbers.entry((owner, handle)).or_insert_with(|| {
            heaps.push(Heap::default());
            heaps.len() as u32 - 1
        });
        *last = Some((owner, handle, number));
        number
    }

    /// Takes an event of a heap of `owner`.
    pub(super) fn event(
        &mut self,
        collected: &Collector,
        change: HeapChange,
        owner: Owner,
        mut at: AtRow<'_>,
    ) {
        let timeline = &collected.shared.timeline;
        let heaps = &collected.heaps;
        let row = timeline.row[at.row] as usize;
        let (handle, address, size) = (heaps.heap[row], heaps.address[row], heaps.size[row]);
        let at = &mut at;
        let number = self.number(owner, handle) as usize;
        let Some(heap) = self.heaps.get_mut(number) else { return };
        let recent = match change {
            HeapChange::Create => return heap.create(owner, handle, at),
            HeapChange::Destroy => return heap.destroy(owner, handle, at),
            HeapChange::Alloc => {
                let allocator = heap.allocator_for_block(owner, handle, at.columns);
                let allocation = heap.alloc(allocator, address, size, at);
                Recent::Alloc { heap: handle, address, size, allocation }
            }
            HeapChange::Free => {
                let allocator = heap.known_allocator(owner, handle, at.columns);
                let allocation = heap.free(allocator, address, at);
                Recent::Free { heap: handle, address, allocation }
            }
            HeapChange::ReAlloc => {
                let allocator = heap.allocator_for_block(owner, handle, at.columns);
                let moved = heaps.moves[size as usize];
                let ids = (timeline.pid[at.row], timeline.tid[at.row]);
                let before = self.recent.get(&ids).copied().unwrap_or_default();
                let change = Reallocation {
                    heap: handle,
                    address,
                    old_address: moved.old_address,
                    size: moved.size,
                };
                heap.reallocate(allocator, &change, before, at);
                Recent::Neither
            }
        };
        if heaps.moves.is_empty() {
            return;
        }
        let ids = (timeline.pid[at.row], timeline.tid[at.row]);
        let last = self.recent.entry(ids).or_default();
        *last = [last[1], recent];
    }
}

/// Fields of a reallocation.
struct Reallocation {
    heap: u64,
    address: u64,
    old_address: u64,
    size: u64,
}

impl Heap {
    fn create(&mut self, owner: Owner, handle: u64, at: &mut AtRow<'_>) {
        // If the handle is still in use, its destruction was lost.
        self.end_all(at);
        let created = at.row as u32;
        let row = AllocatorRow { created, ..of(owner, handle) };
        self.allocator = Some(at.columns.add_allocator(row));
        self.is_destroyed = false;
    }

    fn destroy(&mut self, owner: Owner, handle: u64, at: &mut AtRow<'_>) {
        let allocator = self.known_allocator(owner, handle, at.columns);
        self.end_all(at);
        self.is_destroyed = true;
        if let Some(allocator) = at.columns.allocators.get_mut(allocator as usize) {
            allocator.destroyed = at.row as u32;
        }
    }

    fn end_all(&mut self, at: &mut AtRow<'_>) {
        // A new map, because a drained map keeps its capacity, and draining takes as long as the capacity is large.
        for (_, allocation) in std::mem::take(&mut self.blocks) {
            at.end(allocation, ResourceEnd::Destroyed);
        }
    }

    /// The allocator of a new block. If the heap was destroyed, the handle is of a new heap whose creation was lost.
    fn allocator_for_block(
        &mut self,
        owner: Owner,
        handle: u64,
        columns: &mut AllocationColumns,
    ) -> u32 {
        if self.is_destroyed {
            self.allocator = None;
            self.is_destroyed = false;
        }
        self.known_allocator(owner, handle, columns)
    }

    /// The allocator of an event that makes no block.
    fn known_allocator(
        &mut self,
        owner: Owner,
        handle: u64,
        columns: &mut AllocationColumns,
    ) -> u32 {
        *self.allocator.get_or_insert_with(|| columns.add_allocator(of(owner, handle)))
    }

    /// Makes a block and returns its allocation, `None` for a call that failed.
    fn alloc(
        &mut self,
        allocator: u32,
        address: u64,
        size: u64,
        at: &mut AtRow<'_>,
    ) -> Option<u32> {
        if address == 0 {
            at.miss(ResourceMissKind::Ignored, allocator, address, bytes(size));
            return None;
        }
        let allocation = at.open(allocator, address, bytes(size));
        if let Some(old) = self.blocks.insert(address, allocation) {
            at.end(old, ResourceEnd::Replaced);
        }
        Some(allocation)
    }

    /// Frees an address and returns the allocation that it ended, if there was one.
    fn free(&mut self, allocator: u32, address: u64, at: &mut AtRow<'_>) -> Option<u32> {
        if address == 0 {
            at.miss(ResourceMissKind::Ignored, allocator, address, 0);
            return None;
        }
        let Some(allocation) = self.blocks.remove(&address) else {
            at.miss(ResourceMissKind::OrphanFree, allocator, address, 0);
            return None;
        };
        at.end(allocation, ResourceEnd::Freed);
        Some(allocation)
    }

    fn reallocate(
        &mut self,
        allocator: u32,
        change: &Reallocation,
        before: [Recent; 2],
        at: &mut AtRow<'_>,
    ) {
        let Reallocation { heap, address, old_address, size } = *change;
        if address == 0 {
            at.miss(ResourceMissKind::Ignored, allocator, old_address, bytes(size));
            return;
        }
        let is_moved = address != old_address;
        let freed = before.iter().rev().find_map(|recent| match *recent {
            Recent::Free { heap: freed_heap, address, allocation }
                if is_moved && (freed_heap, address) == (heap, old_address) =>
            {
                Some(allocation)
            }
            _ => None,
        });
        let old = freed.unwrap_or_else(|| self.free(allocator, old_address, at));
        if let Some(old) = old {
            at.columns.end[old as usize] = ResourceEnd::Reallocated;
        }
        let made = before.iter().rev().find_map(|recent| match *recent {
            Recent::Alloc {
                heap: allocated_heap,
                address: made,
                size: made_size,
                allocation: Some(allocation),
            } if is_moved
                && (allocated_heap, made, made_size) == (heap, address, size)
                && self.blocks.get(&made) == Some(&allocation) =>
            {
                Some(allocation)
            }
            _ => None,
        });
        let allocation = match made {
            Some(allocation) => {
                at.columns.row[allocation as usize] = at.row as u32;
                Some(allocation)
            }
            None => self.alloc(allocator, address, size, at),
        };
        if let (Some(old), Some(allocation)) = (old, allocation) {
            at.columns.origin_mut(allocation).grown_from = old;
        }
    }
}

fn of(owner: Owner, handle: u64) -> AllocatorRow {
    AllocatorRow {
        kind: ResourceKind::Heap,
        name: format!("{handle:#x}"),
        provider: None,
        owner,
        created: NONE,
        destroyed: NONE,
    }
}
