//! Heaps that a program creates and never destroys.

use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, StackIdx};
use hashbrown::HashMap;

use super::group::AcquisitionOwner;
use super::lifetimes::AcquiredSums;
use crate::acquisition_table::AcquisitionTable;
use crate::amounts::ByteAmounts;
use crate::growth::Lifetime;
use crate::tables::ProcessList;
use crate::trimmed_stacks::TrimmedStacks;

/// Minimum number of heaps for a leak: each process keeps the heap it starts with.
const MIN_HEAPS: u64 = 2;

/// The heaps that one process creates on one stack.
#[derive(Default)]
pub struct CreatedHeaps {
    /// The first of them.
    pub first: AllocatorIdx,
    pub stack: Option<StackIdx>,
    pub lifetimes: Vec<Lifetime>,
    /// Their counts, and the bytes left in those that were not destroyed.
    pub sums: AcquiredSums,
    /// Heaps that were not destroyed.
    pub left: Vec<AllocatorIdx>,
}

impl CreatedHeaps {
    /// Finds heaps that leak among the requested allocators.
    pub fn leaking(
        table: &AcquisitionTable,
        is_requested: &[bool],
        stacks: &TrimmedStacks,
        processes: &ProcessList,
    ) -> Vec<Self> {
        let bytes_left = bytes_left(table);
        // By owner and the first equal stack.
        let mut created: HashMap<(AcquisitionOwner, StackIdx), Self> = HashMap::new();
        let heaps = (0..).map(AllocatorIdx).zip(table.allocators.rows()).zip(is_requested).filter(
            |((_, heap), is_requested)| {
                **is_requested
                    && heap.kind == ResourceKind::Heap.code()
                    && heap.created_ns.is_some()
            },
        );
        for ((row, heap), _) in heaps {
            let stack = heap.create_stack.map_or(StackIdx::NONE, |stack| stacks.equal(stack));
            let heaps = created
                .entry(((heap.process, heap.pid), stack))
                .or_insert_with(|| Self { first: row, ..Self::default() });
            heaps.stack = heaps.stack.or(heap.create_stack.map(|_| stack));
            let has_ended = processes.known_or_invalid(heap.process).end_ns.is_some();
            heaps.add(row, heap, bytes_left.get(row.row()).copied().unwrap_or_default(), has_ended);
        }
        let mut leaking: Vec<Self> = created
            .into_values()
            .filter(|heaps| heaps.sums.counts.unreleased() >= MIN_HEAPS)
            .collect();
        leaking.sort_by_key(|heaps| heaps.first);
        leaking
    }

    fn add(&mut self, row: AllocatorIdx, heap: &Allocator, bytes_left: i64, has_ended: bool) {
        let Some(opened_ns) = heap.created_ns else { return };
        let AcquiredSums { counts, bytes, .. } = &mut self.sums;
        counts.opened += 1;
        if heap.destroyed_ns.is_none() {
            let (unreleased, allocated) = (bytes_left, bytes_left);
            bytes.add(ByteAmounts { unreleased, allocated, per_minute: None });
            self.left.push(row);
            *if has_ended { &mut counts.closed_at_exit } else { &mut counts.leaked } += 1;
        }
        self.lifetimes.push(Lifetime { opened_ns, closed_ns: heap.destroyed_ns });
    }
}

/// Returns the bytes of each allocator that nothing freed.
fn bytes_left(table: &AcquisitionTable) -> Vec<i64> {
    let mut bytes_left = vec![0_i64; table.allocators.rows().len()];
    for row in table.allocations() {
        let slot = table.allocator.get(row).and_then(|heap| bytes_left.get_mut(heap.row()));
        if let Some(slot) = slot.filter(|_| table.is_unreleased(AcquisitionIdx::from_row(row))) {
            *slot = slot.saturating_add(table.size.get(row).unwrap_or_default());
        }
    }
    bytes_left
}
