//! Follows heap blocks.
//!
//! A heap is identified by its process and handle; its addresses are addresses of the process. A reallocation that
//! moves its block may come with an allocation event and a free event, according to TraceEvent's reader. These must not
//! count twice. The same thread logs them before the reallocation, with any number of other events in between. So they
//! are recognized by what they did: a block of the new size is at the new address.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocationOwner, AllocatorRow, AtRow, bytes};
use crate::collect::Collector;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::HeapChange;
use crate::raw::{RowKind, Timeline};

/// Heaps of all processes with their live blocks.
pub struct HeapBlocks {
    numbers: HashMap<(AllocationOwner, u64), u32>,
    heaps: Vec<Heap>,
    /// Cache of heap numbers: millions of events come from few heaps.
    last: [Option<(AllocationOwner, u64, u32)>; LAST],
}

/// Size of the cache [`HeapBlocks::last`].
const LAST: usize = 64;

/// Heap of a process.
#[derive(Default)]
struct Heap {
    /// Allocator row; `None` before the first event.
    allocator: Option<u32>,
    is_destroyed: bool,
    /// Live blocks: allocation numbers by address.
    blocks: HashMap<u64, u32>,
    /// Block freed last at each address; kept only if the trace has reallocations.
    freed: HashMap<u64, u32>,
}

impl Default for HeapBlocks {
    fn default() -> Self {
        Self { numbers: HashMap::new(), heaps: Vec::new(), last: [None; LAST] }
    }
}

impl HeapBlocks {
    fn number(&mut self, owner: AllocationOwner, handle: u64) -> u32 {
        let of_owner = match owner {
            AllocationOwner::Process(row) => row,
            AllocationOwner::Pid(pid) => pid,
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

    /// Handles an event of a heap of `owner`.
    pub fn event(
        &mut self,
        collected: &Collector,
        change: HeapChange,
        owner: AllocationOwner,
        mut at: AtRow<'_>,
    ) {
        let timeline = &collected.shared.timeline;
        let heaps = &collected.heaps;
        let row = timeline.row[at.row] as usize;
        let (handle, address, size) = (heaps.heap[row], heaps.address[row], heaps.size[row]);
        let at = &mut at;
        let number = self.number(owner, handle) as usize;
        let Some(heap) = self.heaps.get_mut(number) else { return };
        match change {
            HeapChange::Create => heap.create(owner, handle, at),
            HeapChange::Destroy => heap.destroy(owner, handle, at),
            HeapChange::Alloc => {
                let allocator = heap.allocator_for_block(owner, handle, at.columns);
                heap.alloc(allocator, address, size, at);
            }
            HeapChange::Free => {
                let allocator = heap.known_allocator(owner, handle, at.columns);
                let freed = heap.free(allocator, address, at);
                if let Some(freed) = freed
                    && !heaps.moves.is_empty()
                {
                    heap.freed.insert(address, freed);
                }
            }
            HeapChange::ReAlloc => {
                let allocator = heap.allocator_for_block(owner, handle, at.columns);
                let moved = heaps.moves[size as usize];
                let change =
                    Reallocation { address, old_address: moved.old_address, size: moved.size };
                heap.reallocate(allocator, &change, timeline, at);
            }
        }
    }
}

/// Fields of a reallocation.
struct Reallocation {
    address: u64,
    old_address: u64,
    size: u64,
}

impl Heap {
    fn create(&mut self, owner: AllocationOwner, handle: u64, at: &mut AtRow<'_>) {
        // If the handle is still in use, the destroy event of the old heap was lost.
        self.end_all(at);
        let created = at.row as u32;
        let row = AllocatorRow { created, ..of(owner, handle) };
        self.allocator = Some(at.columns.add_allocator(row));
        self.is_destroyed = false;
    }

    fn destroy(&mut self, owner: AllocationOwner, handle: u64, at: &mut AtRow<'_>) {
        let allocator = self.known_allocator(owner, handle, at.columns);
        self.end_all(at);
        self.is_destroyed = true;
        if let Some(allocator) = at.columns.allocators.get_mut(allocator as usize) {
            allocator.destroyed = at.row as u32;
        }
    }

    fn end_all(&mut self, at: &mut AtRow<'_>) {
        // Takes a new map: a drained map keeps its capacity, and draining takes time proportional to that capacity.
        for (_, allocation) in std::mem::take(&mut self.blocks) {
            at.end(allocation, ResourceEnd::Destroyed);
        }
    }

    /// Returns the allocator of a new block. If the heap was destroyed, the handle belongs to a new heap whose creation
    /// was lost.
    fn allocator_for_block(
        &mut self,
        owner: AllocationOwner,
        handle: u64,
        columns: &mut AllocationColumns,
    ) -> u32 {
        if self.is_destroyed {
            self.allocator = None;
            self.is_destroyed = false;
        }
        self.known_allocator(owner, handle, columns)
    }

    /// Returns the allocator for an event that creates no block.
    fn known_allocator(
        &mut self,
        owner: AllocationOwner,
        handle: u64,
        columns: &mut AllocationColumns,
    ) -> u32 {
        *self.allocator.get_or_insert_with(|| columns.add_allocator(of(owner, handle)))
    }

    /// Creates a block and returns its allocation, or `None` if the call failed.
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

    /// Frees an address and returns the allocation this ended, if any.
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
        timeline: &Timeline,
        at: &mut AtRow<'_>,
    ) {
        let Reallocation { address, old_address, size } = *change;
        if address == 0 {
            at.miss(ResourceMissKind::Ignored, allocator, old_address, bytes(size));
            return;
        }
        let made = self.made_by_reallocation(change, timeline, at);
        let freed =
            made.and_then(|made| self.freed_by_reallocation(old_address, made, timeline, at));
        let old = freed.or_else(|| self.free(allocator, old_address, at));
        if let Some(old) = old {
            at.columns.end[old as usize] = ResourceEnd::Reallocated;
        }
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

    /// Returns the block at the new address, if the reallocating thread created it by a separate event.
    fn made_by_reallocation(
        &self,
        change: &Reallocation,
        timeline: &Timeline,
        at: &AtRow<'_>,
    ) -> Option<u32> {
        let made = *self.blocks.get(&change.address)?;
        let columns = &at.columns;
        let (row, made_size) = (columns.row[made as usize] as usize, columns.size[made as usize]);
        let is_made = change.address != change.old_address
            && made_size == bytes(change.size)
            && timeline.kind[row] == RowKind::HeapAlloc
            && timeline.tid[row] == timeline.tid[at.row];
        is_made.then_some(made)
    }

    /// Returns the block that was at the old address, if the reallocating thread freed it by a separate event. `made`
    /// is the new block. The address may be in use again.
    fn freed_by_reallocation(
        &self,
        old_address: u64,
        made: u32,
        timeline: &Timeline,
        at: &AtRow<'_>,
    ) -> Option<u32> {
        let freed = *self.freed.get(&old_address)?;
        let columns = &at.columns;
        let (made_row, row) =
            (columns.row[made as usize], columns.end_row[freed as usize] as usize);
        let is_free = row > made_row as usize || !self.blocks.contains_key(&old_address);
        (is_free && timeline.tid[row] == timeline.tid[at.row]).then_some(freed)
    }
}

fn of(owner: AllocationOwner, handle: u64) -> AllocatorRow {
    AllocatorRow {
        kind: ResourceKind::Heap,
        name: format!("{handle:#x}"),
        provider: None,
        owner,
        created: NONE,
        destroyed: NONE,
    }
}
