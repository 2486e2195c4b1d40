//! File mapping events.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Kind of file mapping event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewEvent {
    /// Map (0x0425).
    Map,
    /// Unmap (0x0426).
    Unmap,
    /// Rundown at the start (0x0427).
    RundownStart,
    /// Rundown at the end (0x0428).
    RundownEnd,
}

impl ViewEvent {
    /// Returns the hook id.
    #[must_use]
    pub fn hook(self) -> u16 {
        match self {
            Self::Map => 0x0425,
            Self::Unmap => 0x0426,
            Self::RundownStart => 0x0427,
            Self::RundownEnd => 0x0428,
        }
    }
}

/// A mapped view of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewRecord {
    /// Base address of the view.
    pub base: u64,
    /// Size of the view, in bytes.
    pub size: u64,
    /// File object behind the view.
    pub file_key: u64,
    /// Section type and protection.
    pub misc: u64,
    /// Offset in the file at which the view starts, in bytes (version 3).
    pub offset: u64,
    /// Process of the view.
    pub pid: u32,
}

impl ViewRecord {
    /// Returns the payload; version 3 has the byte offset before the process id.
    #[must_use]
    pub fn payload(&self, event: ViewEvent, version: u8, ptr: PointerSize) -> KernelPayload {
        let bytes = ByteString::new()
            .ptr(ptr, self.base)
            .ptr(ptr, self.file_key)
            .u64(self.misc)
            .ptr(ptr, self.size);
        let bytes = if version >= 3 { bytes.u64(self.offset) } else { bytes };
        KernelPayload { hook: event.hook(), version, bytes: bytes.u32(self.pid).into_vec() }
    }
}

/// Returns the rundown event that gives the name for a file's kernel key.
#[must_use]
pub fn file_name(key: u64, name: &str, ptr: PointerSize) -> KernelPayload {
    KernelPayload {
        hook: 0x0424,
        version: 2,
        bytes: ByteString::new().ptr(ptr, key).utf16z(name).into_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_3_has_the_offset_at_32_and_the_process_at_40() {
        let view = ViewRecord { base: 1, size: 2, file_key: 3, misc: 4, offset: 5, pid: 6 };
        let new = view.payload(ViewEvent::Map, 3, PointerSize::Eight);
        let firsts: Vec<u8> = new.bytes.iter().step_by(8).copied().collect();
        assert_eq!((new.hook, new.bytes.len(), firsts), (0x0425, 44, vec![1, 3, 4, 2, 5, 6]));
        let old = view.payload(ViewEvent::Unmap, 2, PointerSize::Eight);
        assert_eq!((old.hook, old.bytes.len(), old.bytes[32]), (0x0426, 36, 6));
    }
}
