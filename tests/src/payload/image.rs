//! Image events: modules mapped into a process or into the kernel.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Kind of image event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageEvent {
    /// Load (0x030a, in the process group).
    Load,
    /// Unload (0x1402).
    Unload,
    /// Rundown at the start (0x1403).
    RundownStart,
    /// Rundown at the end (0x1404).
    RundownEnd,
}

impl ImageEvent {
    /// Returns the hook id.
    #[must_use]
    pub fn hook(self) -> u16 {
        match self {
            Self::Load => 0x030a,
            Self::Unload => 0x1402,
            Self::RundownStart => 0x1403,
            Self::RundownEnd => 0x1404,
        }
    }
}

/// Fields of an image event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageRecord {
    pub base: u64,
    /// Mapped size, in bytes.
    pub size: u64,
    /// Process id; 0 for the kernel.
    pub pid: u32,
    pub checksum: u32,
    /// Time stamp; 0 for user-mode images in real rundowns.
    pub timestamp: u32,
    /// NT path.
    pub path: String,
}

impl ImageRecord {
    /// Returns the payload in version 2 or 3.
    #[must_use]
    pub fn payload(&self, event: ImageEvent, version: u8, ptr: PointerSize) -> KernelPayload {
        // Version 3 turned the reserved field into signature level and type.
        let signature = if version >= 3 { 0x070c } else { 0 };
        let bytes = ByteString::new()
            .ptr(ptr, self.base)
            .ptr(ptr, self.size)
            .u32(self.pid)
            .u32(self.checksum)
            .u32(self.timestamp)
            .u32(signature)
            .ptr(ptr, self.base)
            .zeros(16)
            .utf16z(&self.path)
            .into_vec();
        KernelPayload { hook: event.hook(), version, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_event_has_the_file_name_at_56() {
        let record = ImageRecord {
            base: 0x0700_0000_0001,
            size: 0x2000,
            pid: 3,
            checksum: 4,
            timestamp: 5,
            path: "p".into(),
        };
        let payload = record.payload(ImageEvent::Load, 3, PointerSize::Eight);
        assert_eq!((payload.hook, payload.version), (0x030a, 3));
        let bytes = payload.bytes;
        assert_eq!(bytes[..16], [1, 0, 0, 0, 0, 7, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..28], [3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(bytes[28..38], [0x0c, 7, 0, 0, 1, 0, 0, 0, 0, 7]);
        assert_eq!(bytes[56..], [b'p', 0, 0, 0]);
        let old = record.payload(ImageEvent::Unload, 2, PointerSize::Four).bytes;
        assert_eq!(old[20..24], [0; 4]);
        assert_eq!(old[44..], [b'p', 0, 0, 0]);
    }
}
