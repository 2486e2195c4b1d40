//! Heap and virtual memory events.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Flags of virtual memory calls. The first one commits pages.
pub const MEM_COMMIT: u32 = 0x1000;
/// Reserves addresses.
pub const MEM_RESERVE: u32 = 0x2000;
/// Gives the pages back.
pub const MEM_DECOMMIT: u32 = 0x4000;
/// Gives the addresses back, with their pages.
pub const MEM_RELEASE: u32 = 0x8000;

/// The source id of blocks from the main path of a heap.
const MAIN_PATH: u32 = 3;

/// A heap call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapCall {
    /// Create (0x1020).
    Create,
    /// Alloc (0x1021) of `size` bytes.
    Alloc { address: u64, size: u64 },
    /// ReAlloc (0x1022) to `size` bytes.
    ReAlloc { address: u64, old_address: u64, size: u64, old_size: u64 },
    /// Destroy (0x1023).
    Destroy,
    /// Free (0x1024).
    Free { address: u64 },
}

impl HeapCall {
    #[must_use]
    pub fn payload(self, heap: u64, ptr: PointerSize) -> KernelPayload {
        let bytes = ByteString::new().ptr(ptr, heap);
        let (hook, bytes) = match self {
            Self::Create => (0x1020, bytes.u32(2)),
            Self::Alloc { address, size } => {
                (0x1021, bytes.ptr(ptr, size).ptr(ptr, address).u32(MAIN_PATH))
            }
            Self::ReAlloc { address, old_address, size, old_size } => {
                let bytes = bytes.ptr(ptr, address).ptr(ptr, old_address);
                (0x1022, bytes.ptr(ptr, size).ptr(ptr, old_size).u32(MAIN_PATH))
            }
            Self::Destroy => (0x1023, bytes),
            Self::Free { address } => (0x1024, bytes.ptr(ptr, address).u32(MAIN_PATH)),
        };
        KernelPayload { hook, version: 0, bytes: bytes.into_vec() }
    }
}

/// A virtual memory call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeRecord {
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// The process that the memory belongs to.
    pub pid: u32,
    /// Flags such as [`MEM_COMMIT`].
    pub flags: u32,
}

impl RangeRecord {
    /// Returns the payload of VirtualAlloc (0x0262), or of VirtualFree (0x0263) if `is_free`.
    #[must_use]
    pub fn payload(&self, is_free: bool, ptr: PointerSize) -> KernelPayload {
        let bytes = ByteString::new().ptr(ptr, self.base).ptr(ptr, self.size);
        let hook = if is_free { 0x0263 } else { 0x0262 };
        KernelPayload { hook, version: 2, bytes: bytes.u32(self.pid).u32(self.flags).into_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_sizes_of_the_description() {
        let alloc = HeapCall::Alloc { address: 2, size: 3 };
        assert_eq!(alloc.payload(1, PointerSize::Eight).bytes.len(), 28);
        assert_eq!(alloc.payload(1, PointerSize::Four).bytes.len(), 16);
        let move_to = HeapCall::ReAlloc { address: 2, old_address: 3, size: 4, old_size: 5 };
        assert_eq!(move_to.payload(1, PointerSize::Eight).bytes.len(), 44);
        assert_eq!(RangeRecord::default().payload(true, PointerSize::Eight).bytes.len(), 24);
    }
}
