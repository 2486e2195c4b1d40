//! Views of files that were mapped and unmapped (MOF class FileIo_MapFile).

use handlescope_model::{EventKind, Table};

use crate::etl::{Event, EventId};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, RowKind, Shared};

const MAP: EventId = EventId::Hook(0x0425);
const UNMAP: EventId = EventId::Hook(0x0426);
const RUNDOWN_END: EventId = EventId::Hook(0x0428);

#[derive(Default)]
pub struct Views {
    pub rows: Vec<ViewRow>,
    /// Those that there were at the end.
    pub at_end: Vec<ViewAtEnd>,
}

/// A view in the rundown at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewAtEnd {
    /// First address of the view.
    pub base: u64,
    /// Process whose address space it is.
    pub pid: u32,
    /// When it was listed, raw.
    pub time: i64,
    /// The processor that listed it.
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
    /// Process whose address space it is; absent in older versions.
    pub pid: Option<u32>,
}

impl EventFamily for Views {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (MAP, EventKind::Map.event_name()),
        (UNMAP, EventKind::Unmap.event_name()),
        (RUNDOWN_END, "MapFileDCEnd"),
    ];
    const TABLES: &'static [Table] = &[Table::Events];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[Field::Pointers(2), Field::Bytes(8), Field::Pointers(1), Field::Bytes(12)]
    }

    /// Offset and process id are there in version 3 and whenever the payload is long enough.
    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        let mut p = Payload::of(event);
        let (base, file) = (p.pointer()?, p.pointer()?);
        p.u64()?; // miscellaneous information: section type and protection
        let size = p.pointer()?;
        let (byte_offset, pid) = (p.u64(), p.u32());
        if event.id == RUNDOWN_END {
            let Event { time, processor, .. } = *event;
            // Older versions do not say of which process it is.
            self.at_end.extend(pid.map(|pid| ViewAtEnd { base, pid, time, processor }));
            return Some(());
        }
        let kind = if event.id == MAP { RowKind::Map } else { RowKind::Unmap };
        shared.timeline.push(kind, self.rows.len(), event);
        self.rows.push(ViewRow { base, file, size, byte_offset, pid });
        Some(())
    }
}
