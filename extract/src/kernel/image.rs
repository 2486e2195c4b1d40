//! Image events (MOF class Image_Load).

use super::bytes::utf16_bytes;
use super::{Payload, hook};
use crate::etl::{Event, EventId};

/// What happened to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageAction {
    /// It was mapped.
    Load,
    /// It was unmapped.
    Unload,
    /// It is there, says a rundown.
    Rundown,
}

/// An image event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    /// What happened.
    pub action: ImageAction,
    /// First address.
    pub base: u64,
    /// Size of the mapping, bytes.
    pub size: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// PE checksum.
    pub checksum: u32,
    /// PE time stamp; 0 in most rundown records.
    pub timestamp: u32,
    /// Path, UTF-16 without terminator.
    pub path: &'a [u8],
}

impl<'a> Image<'a> {
    /// The action of a hook id, if it is one of an image event.
    pub fn action(hook: u16) -> Option<ImageAction> {
        match hook {
            hook::IMAGE_LOAD => Some(ImageAction::Load),
            hook::IMAGE_UNLOAD => Some(ImageAction::Unload),
            hook::IMAGE_DC_START | hook::IMAGE_DC_END => Some(ImageAction::Rundown),
            _ => None,
        }
    }

    /// Decodes the event: versions 2 and 3; version 1 lacks checksum to reserved fields, version 0
    /// also the process id (MOF classes Image_V0_Load, Image_V1_Load).
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let EventId::Hook(hook) = event.id else { return None };
        let mut p = Payload::new(event.payload, event.pointer_size);
        let action = Self::action(hook)?;
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
}
