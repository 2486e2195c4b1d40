//! Pages that were reserved, committed and released (MOF class PageFault_VirtualAlloc).

use handlescope_model::Table;

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const ALLOC: EventId = EventId::Hook(0x0262);
const FREE: EventId = EventId::Hook(0x0263);

#[derive(Default)]
pub struct VirtualMemory {
    pub rows: Vec<RangeRow>,
}

/// A call for a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeRow {
    pub base: u64,
    /// Bytes; 0 where a free means all from the base on.
    pub size: u64,
    /// Process whose memory it is; the header has the one that called.
    pub pid: u32,
    /// `MEM_COMMIT`, `MEM_RESERVE`, `MEM_DECOMMIT` and `MEM_RELEASE`, among others.
    pub flags: u32,
}

impl EventFamily for VirtualMemory {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(ALLOC, "VirtualAlloc"), (FREE, "VirtualFree")];
    const TABLES: &'static [Table] = &[Table::Allocators, Table::Resources, Table::ResourceMisses];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(2), Field::Bytes(8)]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (base, size) = (p.pointer()?, p.pointer()?);
        let (pid, flags) = (p.u32()?, p.u32()?);
        let kind = if event.id == ALLOC { RowKind::RangeAlloc } else { RowKind::RangeFree };
        shared.timeline.push(kind, self.rows.len(), event);
        self.rows.push(RangeRow { base, size, pid, flags });
        Some(())
    }
}
