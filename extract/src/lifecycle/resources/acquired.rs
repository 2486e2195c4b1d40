//! What events of providers acquire and release.
//!
//! A handle means something in its process, with its provider and its allocator only. It may be acquired several
//! times; a release then ends what was acquired last.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocatorRow};
use super::owners::Owner;
use crate::collect::Collector;
use crate::described::{DescribedProvider, ResourceRow};
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::AcquiredChange;

/// What is held.
#[derive(Default)]
pub(super) struct Acquired {
    /// Rows of the allocators by owner and the numbers of provider and name.
    allocators: HashMap<(Owner, u32, u32), u32>,
    /// The latest allocation by allocator and handle.
    latest: HashMap<(u32, u64), u32>,
    /// For an allocation of a handle that was held already, the one before.
    before: HashMap<u32, u32>,
}

impl Acquired {
    /// Takes an event of `owner` that acquires, releases, or says too little.
    pub(super) fn event(
        &mut self,
        collected: &Collector,
        (row, change): (usize, AcquiredChange),
        owner: Owner,
        columns: &mut AllocationColumns,
    ) {
        let timeline = &collected.shared.timeline;
        let Some(event) = collected.described.resources.get(timeline.row[row] as usize) else {
            return;
        };
        let ResourceRow { handle, size, .. } = *event;
        let allocator = self.allocator(collected, event, owner, columns);
        match change {
            AcquiredChange::Acquire => {
                let allocation = columns.open(allocator, handle, size, row);
                if let Some(before) = self.latest.insert((allocator, handle), allocation) {
                    self.before.insert(allocation, before);
                }
            }
            AcquiredChange::Release => self.release(allocator, event, row, columns),
            AcquiredChange::Ignored => {
                columns.miss(ResourceMissKind::Ignored, allocator, handle, size, row);
            }
        }
    }

    fn release(
        &mut self,
        allocator: u32,
        event: &ResourceRow,
        row: usize,
        columns: &mut AllocationColumns,
    ) {
        let key = (allocator, event.handle);
        let Some(allocation) = self.latest.remove(&key) else {
            columns.miss(ResourceMissKind::OrphanFree, allocator, event.handle, event.size, row);
            return;
        };
        if let Some(before) = self.before.remove(&allocation) {
            self.latest.insert(key, before);
        }
        columns.end(allocation, ResourceEnd::Freed, row);
    }

    fn allocator(
        &mut self,
        collected: &Collector,
        event: &ResourceRow,
        owner: Owner,
        columns: &mut AllocationColumns,
    ) -> u32 {
        let described = &collected.described;
        *self.allocators.entry((owner, event.provider, event.allocator)).or_insert_with(|| {
            let provider = described.providers.get(event.provider as usize);
            columns.add_allocator(AllocatorRow {
                kind: ResourceKind::Resource,
                name: described.allocators.text(event.allocator),
                provider: provider.map(DescribedProvider::title),
                owner,
                created: NONE,
                destroyed: NONE,
            })
        })
    }
}
