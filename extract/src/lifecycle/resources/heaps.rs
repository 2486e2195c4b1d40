//! Blocks of heaps.
//!
//! A heap is a handle in a process; its handle and addresses mean nothing in another one. Of what TraceEvent's reader
//! of these events says of reallocations: one that moves its block may be accompanied by the events of an allocation
//! and a free, which then must not count twice.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocatorRow, bytes};
use super::owners::Owner;
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

/// Heaps that are remembered.
const LAST: usize = 64;

/// A heap of a process.
struct Heap {
    /// Its row among the allocators; [`NONE`] before its first event.
    allocator: u32,
    is_destroyed: bool,
    /// Live blocks: numbers of allocations by address.
    blocks: HashMap<u64, u32>,
}

impl Default for Heap {
    fn default() -> Self {
        Self { allocator: NONE, is_destroyed: false, blocks: HashMap::new() }
    }
}

/// An event of a block, as reallocations look back at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Recent {
    #[default]
    Other,
    /// Made a block; its allocation.
    Alloc { heap: u64, address: u64, size: u64, allocation: u32 },
    /// Freed an address; the allocation that ended, or [`NONE`].
    Free { heap: u64, address: u64, allocation: u32 },
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
        (row, change): (usize, HeapChange),
        owner: Owner,
        columns: &mut AllocationColumns,
    ) {
        let timeline = &collected.shared.timeline;
        let heaps = &collected.heaps;
        let at = timeline.row[row] as usize;
        let (handle, address, size) = (heaps.heap[at], heaps.address[at], heaps.size[at]);
        let number = self.number(owner, handle) as usize;
        let Some(heap) = self.heaps.get_mut(number) else { return };
        let recent = match change {
            HeapChange::Create => return heap.create(owner, handle, row, columns),
            HeapChange::Destroy => return heap.destroy(owner, handle, row, columns),
            HeapChange::Alloc => {
                let allocator = heap.allocator_for_block(owner, handle, columns);
                let allocation = heap.alloc(allocator, address, size, row, columns);
                Recent::Alloc { heap: handle, address, size, allocation }
            }
            HeapChange::Free => {
                let allocator = heap.known_allocator(owner, handle, columns);
                let allocation = heap.free(allocator, address, row, columns);
                Recent::Free { heap: handle, address, allocation }
            }
            HeapChange::ReAlloc => {
                let allocator = heap.allocator_for_block(owner, handle, columns);
                let moved = heaps.moves[size as usize];
                let ids = (timeline.pid[row], timeline.tid[row]);
                let before = self.recent.get(&ids).copied().unwrap_or_default();
                let change = Reallocation {
                    heap: handle,
                    address,
                    old_address: moved.old_address,
                    size: moved.size,
                };
                heap.reallocate(allocator, &change, before, row, columns);
                Recent::Other
            }
        };
        if heaps.moves.is_empty() {
            return;
        }
        let ids = (timeline.pid[row], timeline.tid[row]);
        let last = self.recent.entry(ids).or_default();
        *last = [last[1], recent];
    }
}

/// What a reallocation says.
struct Reallocation {
    heap: u64,
    address: u64,
    old_address: u64,
    size: u64,
}

impl Heap {
    fn create(&mut self, owner: Owner, handle: u64, row: usize, columns: &mut AllocationColumns) {
        // A handle that is still in use: its destruction was lost.
        self.end_all(row, columns);
        self.allocator =
            columns.add_allocator(AllocatorRow { created: row as u32, ..of(owner, handle) });
        self.is_destroyed = false;
    }

    fn destroy(&mut self, owner: Owner, handle: u64, row: usize, columns: &mut AllocationColumns) {
        let allocator = self.known_allocator(owner, handle, columns);
        self.end_all(row, columns);
        self.is_destroyed = true;
        if let Some(allocator) = columns.allocators.get_mut(allocator as usize) {
            allocator.destroyed = row as u32;
        }
    }

    fn end_all(&mut self, row: usize, columns: &mut AllocationColumns) {
        // A map that is drained keeps its size, and to drain it again would take as long, for however few blocks.
        for (_, allocation) in std::mem::take(&mut self.blocks) {
            columns.end(allocation, ResourceEnd::Destroyed, row);
        }
    }

    /// The allocator of a new block: a heap that was destroyed is another one then, whose creation was lost.
    fn allocator_for_block(
        &mut self,
        owner: Owner,
        handle: u64,
        columns: &mut AllocationColumns,
    ) -> u32 {
        if self.is_destroyed {
            self.allocator = NONE;
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
        if self.allocator == NONE {
            self.allocator = columns.add_allocator(of(owner, handle));
        }
        self.allocator
    }

    /// Makes a block and returns its allocation, [`NONE`] for a call that failed.
    fn alloc(
        &mut self,
        allocator: u32,
        address: u64,
        size: u64,
        row: usize,
        columns: &mut AllocationColumns,
    ) -> u32 {
        if address == 0 {
            columns.miss(ResourceMissKind::Ignored, allocator, address, bytes(size), row);
            return NONE;
        }
        let allocation = columns.open(allocator, address, bytes(size), row);
        if let Some(old) = self.blocks.insert(address, allocation) {
            columns.end(old, ResourceEnd::Replaced, row);
        }
        allocation
    }

    /// Frees an address and returns the allocation that it ended, [`NONE`] for none.
    fn free(
        &mut self,
        allocator: u32,
        address: u64,
        row: usize,
        columns: &mut AllocationColumns,
    ) -> u32 {
        if address == 0 {
            columns.miss(ResourceMissKind::Ignored, allocator, address, 0, row);
            return NONE;
        }
        let Some(allocation) = self.blocks.remove(&address) else {
            columns.miss(ResourceMissKind::OrphanFree, allocator, address, 0, row);
            return NONE;
        };
        columns.end(allocation, ResourceEnd::Freed, row);
        allocation
    }

    fn reallocate(
        &mut self,
        allocator: u32,
        change: &Reallocation,
        before: [Recent; 2],
        row: usize,
        columns: &mut AllocationColumns,
    ) {
        let Reallocation { heap, address, old_address, size } = *change;
        if address == 0 {
            columns.miss(ResourceMissKind::Ignored, allocator, old_address, bytes(size), row);
            return;
        }
        let is_moved = address != old_address;
        let freed = before.iter().rev().find_map(|recent| match *recent {
            Recent::Free { heap: own, address, allocation }
                if is_moved && (own, address) == (heap, old_address) =>
            {
                Some(allocation)
            }
            _ => None,
        });
        let old = freed.unwrap_or_else(|| self.free(allocator, old_address, row, columns));
        if old != NONE {
            columns.end[old as usize] = ResourceEnd::Reallocated;
        }
        let made = before.iter().rev().find_map(|recent| match *recent {
            Recent::Alloc { heap: own, address: made, size: made_size, allocation }
                if is_moved
                    && (own, made, made_size) == (heap, address, size)
                    && self.blocks.get(&made) == Some(&allocation) =>
            {
                Some(allocation)
            }
            _ => None,
        });
        let allocation = match made {
            Some(allocation) => {
                columns.row[allocation as usize] = row as u32;
                allocation
            }
            None => self.alloc(allocator, address, size, row, columns),
        };
        if old != NONE && allocation != NONE {
            columns.origin_mut(allocation).grown_from = old;
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
