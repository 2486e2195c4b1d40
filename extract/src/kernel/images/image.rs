//! Image events (MOF class Image_Load).

use crate::etl::{Event, EventId};
use crate::payload::{Payload, utf16_bytes, utf16_text};
use crate::raw::Action;

pub(super) const LOAD: EventId = EventId::Hook(0x030a);
pub(super) const UNLOAD: EventId = EventId::Hook(0x1402);
pub(super) const RUNDOWN_START: EventId = EventId::Hook(0x1403);
pub(super) const RUNDOWN_END: EventId = EventId::Hook(0x1404);

/// An image event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    pub(crate) action: Action,
    pub(crate) base: u64,
    /// Size of the mapping, bytes.
    pub(crate) size: u64,
    /// Process id; 0 for kernel images.
    pub(crate) pid: u32,
    /// PE checksum.
    pub(crate) checksum: u32,
    /// PE time stamp; 0 in most rundown records.
    pub(crate) timestamp: u32,
    /// Path, UTF-16 without terminator.
    pub(crate) path: &'a [u8],
}

impl<'a> Image<'a> {
    /// Decodes the event: versions 2 and 3; version 1 lacks checksum to reserved fields, version 0
    /// also the process id (MOF classes Image_V0_Load, Image_V1_Load).
    pub(crate) fn decode(event: &Event<'a>) -> Option<Self> {
        let action = match event.id {
            LOAD => Action::Begin,
            UNLOAD => Action::End,
            RUNDOWN_START | RUNDOWN_END => Action::Rundown,
            _ => return None,
        };
        let mut p = Payload::of(event);
        let (base, size) = (p.pointer()?, p.pointer()?);
        let pid = if event.version >= 1 { p.u32()? } else { event.pid? };
        let (mut checksum, mut timestamp) = (0, 0);
        if event.version >= 2 {
            checksum = p.u32()?;
            timestamp = p.u32()?;
            p.u32()?;
            p.pointer()?;
            p.skip(16)?;
        }
        let path = utf16_bytes(p.rest());
        Some(Self { action, base, size, pid, checksum, timestamp, path })
    }

    /// Path as the kernel writes it.
    pub(crate) fn path(&self) -> String {
        utf16_text(self.path)
    }
}
