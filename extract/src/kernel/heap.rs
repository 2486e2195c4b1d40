//! Blocks of heaps (class HeapTraceProvider). Payloads are packed; newer systems pad them to 8 bytes.
//!
//! Layouts are those of `kerneltraceeventparser.mof` and TraceEvent's `HeapTraceProvider`.

use handlescope_model::Table;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const CREATE: EventId = EventId::Hook(0x1020);
const ALLOC: EventId = EventId::Hook(0x1021);
const REALLOC: EventId = EventId::Hook(0x1022);
const DESTROY: EventId = EventId::Hook(0x1023);
const FREE: EventId = EventId::Hook(0x1024);

/// Columns of all events of heaps. With its row of the timeline and its stack an event takes 56 bytes.
#[derive(Default)]
pub struct Heaps {
    /// Handle of the heap.
    pub heap: Vec<u64>,
    /// Address of the block, of a reallocation the new one; 0 for a call that failed and for events of the heap itself.
    pub address: Vec<u64>,
    /// Bytes; of a reallocation the row of [`Self::moves`], of a free 0.
    pub size: Vec<u64>,
    pub moves: Vec<HeapMove>,
}

/// What else a reallocation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapMove {
    /// Address of the block before.
    pub old_address: u64,
    /// Bytes from now on.
    pub size: u64,
}

impl EventFamily for Heaps {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (CREATE, "HeapCreate"),
        (ALLOC, "HeapAlloc"),
        (REALLOC, "HeapReAlloc"),
        (DESTROY, "HeapDestroy"),
        (FREE, "HeapFree"),
    ];
    const TABLES: &'static [Table] = &[Table::Allocators, Table::Resources, Table::ResourceMisses];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            DESTROY => &[Field::Pointers(1)],
            CREATE => &[Field::Pointers(1), Field::Bytes(4)],
            FREE => &[Field::Pointers(2), Field::Bytes(4)],
            ALLOC => &[Field::Pointers(3), Field::Bytes(4)],
            _ => &[Field::Pointers(5), Field::Bytes(4)],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let heap = p.pointer()?;
        let (kind, address, size) = match event.id {
            CREATE => (RowKind::HeapCreate, 0, 0),
            DESTROY => (RowKind::HeapDestroy, 0, 0),
            ALLOC => {
                let size = p.pointer()?;
                (RowKind::HeapAlloc, p.pointer()?, size)
            }
            FREE => (RowKind::HeapFree, p.pointer()?, 0),
            REALLOC => {
                let (address, old_address, size) = (p.pointer()?, p.pointer()?, p.pointer()?);
                self.moves.push(HeapMove { old_address, size });
                (RowKind::HeapReAlloc, address, self.moves.len() as u64 - 1)
            }
            _ => return None,
        };
        shared.timeline.push(kind, self.heap.len(), event);
        self.heap.push(heap);
        self.address.push(address);
        self.size.push(size);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(id: EventId, pointer_size: usize, words: &[u64]) -> Option<Heaps> {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()[..pointer_size].to_vec());
        let payload: Vec<u8> = bytes.chain([1, 0, 0, 0]).collect();
        let mut heaps = Heaps::default();
        let event = Event { id, payload: &payload, pointer_size, ..Event::default() };
        heaps.take(&event, &mut Shared::default())?;
        Some(heaps)
    }

    #[test]
    fn a_block_has_its_size_before_its_address() {
        for pointer_size in [4, 8] {
            let heaps = taken(ALLOC, pointer_size, &[0x10, 24, 0x5000]).unwrap();
            assert_eq!((heaps.heap[0], heaps.address[0], heaps.size[0]), (0x10, 0x5000, 24));
        }
        assert!(taken(ALLOC, 8, &[0x10, 24]).is_none());
    }

    #[test]
    fn a_reallocation_has_the_new_address_first() {
        let heaps = taken(REALLOC, 4, &[0x10, 0x6000, 0x5000, 48, 24]).unwrap();
        assert_eq!((heaps.address[0], heaps.moves[0].size), (0x6000, 48));
        assert_eq!(heaps.moves[0].old_address, 0x5000);
    }
}
