//! File mapping events (MOF class FileIo_MapFile).

use super::Payload;
use crate::etl::Event;

/// A view of a file was mapped or unmapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMap {
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

impl FileMap {
    /// Decodes a map or unmap.
    ///
    /// Offset and process id are there in version 3 and whenever the payload is long enough.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        let (base, file) = (p.pointer()?, p.pointer()?);
        p.u64()?; // miscellaneous information: section type and protection
        let size = p.pointer()?;
        let byte_offset = p.u64();
        let pid = p.u32();
        Some(Self { base, file, size, byte_offset, pid })
    }
}
