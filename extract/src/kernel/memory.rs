//! Memory: heap blocks (class HeapTraceProvider), pages (MOF class PageFault_VirtualAlloc) and file views (MOF class
//! FileIo_MapFile).
//!
//! Heap payloads are packed; newer systems pad them to 8 bytes. The layouts are from `kerneltraceeventparser.mof` and
//! TraceEvent's `HeapTraceProvider`.

use std::ops::Range;

use handlescope_model::{EventKind, Table};
use rustc_hash::FxHashMap;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload, utf16_bytes};
use crate::raw::{EventFamily, GatheredFamily, NameInterner, PassState, RowKind, gathered_columns};

const CREATE: EventId = EventId::Hook(0x1020);
const ALLOC: EventId = EventId::Hook(0x1021);
const REALLOC: EventId = EventId::Hook(0x1022);
const DESTROY: EventId = EventId::Hook(0x1023);
const FREE: EventId = EventId::Hook(0x1024);

/// Columns of all heap events. With its timeline row and stack, an event takes 56 bytes.
#[derive(Default)]
pub struct Heaps {
    /// Handle of the heap.
    pub heap: Vec<u64>,
    /// Address of the block, for a reallocation the new one; 0 for failed calls and for events of the heap itself.
    pub address: Vec<u64>,
    /// Bytes; for a reallocation the row in [`Self::moves`], for a free 0.
    pub size: Vec<u64>,
    pub moves: Vec<HeapMove>,
}

/// Additional fields of a reallocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapMove {
    /// Previous address of the block.
    pub old_address: u64,
    /// New size, bytes.
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
    const TABLES: &'static [Table] =
        &[Table::Allocators, Table::Acquisitions, Table::ResourceMisses];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            DESTROY => &[Field::Pointers(1)],
            CREATE => &[Field::Pointers(1), Field::Bytes(4)],
            FREE => &[Field::Pointers(2), Field::Bytes(4)],
            ALLOC => &[Field::Pointers(3), Field::Bytes(4)],
            _ => &[Field::Pointers(5), Field::Bytes(4)],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
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

impl GatheredFamily for Heaps {
    /// Excludes reallocations, because their size is a row of [`Heaps::moves`].
    fn is_gathered(id: EventId) -> bool {
        id != REALLOC
    }

    fn rows(&self) -> usize {
        self.heap.len()
    }

    fn append(&mut self, batch: &Self, rows: Range<usize>) {
        let Self { heap, address, size, moves: _ } = self;
        heap.extend_from_slice(&batch.heap[rows.clone()]);
        address.extend_from_slice(&batch.address[rows.clone()]);
        size.extend_from_slice(&batch.size[rows]);
    }

    fn clear(&mut self) {
        let Self { heap, address, size, moves } = self;
        heap.clear();
        address.clear();
        size.clear();
        moves.clear();
    }
}

const VIRTUAL_ALLOC: EventId = EventId::Hook(0x0262);
const VIRTUAL_FREE: EventId = EventId::Hook(0x0263);

#[derive(Default)]
pub struct VirtualMemory {
    pub rows: Vec<RangeRow>,
}

/// Call for a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeRow {
    pub base: u64,
    /// Bytes; 0 to free everything from the base on.
    pub size: u64,
    /// Process that owns the memory; the header names the one that called.
    pub pid: u32,
    /// `MEM_COMMIT`, `MEM_RESERVE`, `MEM_DECOMMIT` and `MEM_RELEASE`, among others.
    pub flags: u32,
}

impl EventFamily for VirtualMemory {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(VIRTUAL_ALLOC, "VirtualAlloc"), (VIRTUAL_FREE, "VirtualFree")];
    const TABLES: &'static [Table] =
        &[Table::Allocators, Table::Acquisitions, Table::ResourceMisses];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(2), Field::Bytes(8)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        let (base, size) = (p.pointer()?, p.pointer()?);
        let (pid, flags) = (p.u32()?, p.u32()?);
        let kind = if event.id == VIRTUAL_ALLOC { RowKind::RangeAlloc } else { RowKind::RangeFree };
        shared.timeline.push(kind, self.rows.len(), event);
        self.rows.push(RangeRow { base, size, pid, flags });
        Some(())
    }
}

gathered_columns!(VirtualMemory { rows });

const MAP: EventId = EventId::Hook(0x0425);
const UNMAP: EventId = EventId::Hook(0x0426);
const VIEW_RUNDOWN: EventId = EventId::Hook(0x0428);
/// Events that name the key of a file (MOF class FileIo_Name).
const FILE_NAME: EventId = EventId::Hook(0x0400);
const FILE_CREATE: EventId = EventId::Hook(0x0420);
const FILE_DELETE: EventId = EventId::Hook(0x0423);
const FILE_RUNDOWN: EventId = EventId::Hook(0x0424);

#[derive(Default)]
pub struct Views {
    pub rows: Vec<ViewRow>,
    /// Views listed at the end.
    pub at_end: Vec<ViewAtEnd>,
    pub files: FileNames,
}

/// Names of files by kernel key. Keys are reused.
#[derive(Default)]
pub struct FileNames {
    /// Raw times and names of each key, in order of arrival.
    keys: FxHashMap<u64, Vec<(i64, u32)>>,
    pub names: NameInterner,
}

impl FileNames {
    /// Adds the name of a key, in UTF-16.
    fn add(&mut self, key: u64, time: i64, name: &[u8]) {
        let name = self.names.intern(name);
        let names = self.keys.entry(key).or_default();
        if names.last().is_none_or(|(_, last)| *last != name) {
            names.push((time, name));
        }
    }

    /// Returns the name of the file that a key meant at a time: the last name before it, or else the first after it,
    /// because the rundown names files opened before the trace.
    pub fn name(&self, key: u64, time: i64) -> Option<u32> {
        let names = self.keys.get(&key)?;
        let before =
            names.iter().filter(|(named, _)| *named <= time).max_by_key(|(named, _)| *named);
        let (_, name) = before.or_else(|| names.iter().min_by_key(|(named, _)| *named))?;
        Some(*name)
    }
}

/// View in the end rundown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewAtEnd {
    /// First address of the view.
    pub base: u64,
    /// Process that owns the address space.
    pub pid: u32,
    /// Time of the listing, raw.
    pub time: i64,
    /// Processor that listed it.
    pub processor: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewRow {
    /// First address of the view.
    pub base: u64,
    /// Kernel key of the file.
    pub file: u64,
    /// Size of the view, bytes.
    pub size: u64,
    /// Offset in the file, bytes; absent in older versions.
    pub byte_offset: Option<u64>,
    /// Process that owns the address space; absent in older versions.
    pub pid: Option<u32>,
}

impl EventFamily for Views {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (MAP, EventKind::Map.event_name()),
        (UNMAP, EventKind::Unmap.event_name()),
        (VIEW_RUNDOWN, "MapFileDCEnd"),
        (FILE_NAME, "FileName"),
        (FILE_CREATE, "FileCreate"),
        (FILE_DELETE, "FileDelete"),
        (FILE_RUNDOWN, "FileRundown"),
    ];
    const TABLES: &'static [Table] = &[Table::Acquisitions, Table::Names];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            MAP | UNMAP | VIEW_RUNDOWN => {
                &[Field::Pointers(2), Field::Bytes(8), Field::Pointers(1), Field::Bytes(12)]
            }
            _ => &[Field::Pointers(1), Field::Utf16],
        }
    }

    /// Offset and process id are present in version 3, and whenever the payload is long enough.
    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        let mut p = Payload::from_event(event);
        if matches!(event.id, FILE_NAME | FILE_CREATE | FILE_DELETE | FILE_RUNDOWN) {
            let key = p.pointer()?;
            let name = utf16_bytes(p.rest());
            if !name.is_empty() {
                self.files.add(key, event.time, name);
            }
            return Some(());
        }
        let (base, file) = (p.pointer()?, p.pointer()?);
        p.u64()?; // miscellaneous information: section type and protection
        let size = p.pointer()?;
        let (byte_offset, pid) = (p.u64(), p.u32());
        if event.id == VIEW_RUNDOWN {
            let Event { time, processor, .. } = *event;
            // Older versions lack the process.
            self.at_end.extend(pid.map(|pid| ViewAtEnd { base, pid, time, processor }));
            return Some(());
        }
        let kind = if event.id == MAP { RowKind::Map } else { RowKind::Unmap };
        shared.timeline.push(kind, self.rows.len(), event);
        self.rows.push(ViewRow { base, file, size, byte_offset, pid });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(id: EventId, pointer_size: usize, words: &[u64]) -> Option<Heaps> {
        let payload: Vec<u8> = words
            .iter()
            .flat_map(|word| word.to_le_bytes()[..pointer_size].to_vec())
            .chain([1, 0, 0, 0])
            .collect();
        let mut heaps = Heaps::default();
        let event = Event { id, payload: &payload, pointer_size, ..Event::default() };
        heaps.take(&event, &mut PassState::default())?;
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
