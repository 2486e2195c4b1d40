//! Events of heaps and of virtual memory; all payloads are packed.

use super::KernelPayload;
use crate::bytes::{Bytes, PointerSize};

/// An event of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapEvent {
    /// A heap was created.
    Create,
    /// A block of so many bytes at an address.
    Alloc(u64, u64),
    /// A block of so many bytes at an address, which was at the second one before.
    ReAlloc(u64, u64, u64),
    /// The heap was destroyed.
    Destroy,
    /// The block at an address.
    Free(u64),
}

impl HeapEvent {
    /// The payload of the event of this heap; newer systems have `padding` bytes behind it.
    #[must_use]
    pub fn payload(self, heap: u64, ptr: PointerSize, padding: usize) -> KernelPayload {
        let own = Bytes::new().ptr(ptr, heap);
        let (hook, bytes) = match self {
            Self::Create => (0x1020, own.u32(2)),
            Self::Alloc(size, address) => (0x1021, own.ptr(ptr, size).ptr(ptr, address).u32(3)),
            Self::ReAlloc(size, address, old) => {
                let own = own.ptr(ptr, address).ptr(ptr, old).ptr(ptr, size);
                (0x1022, own.ptr(ptr, 0).u32(3))
            }
            Self::Destroy => (0x1023, own),
            Self::Free(address) => (0x1024, own.ptr(ptr, address).u32(3)),
        };
        let mut bytes = bytes.into_vec();
        bytes.resize(bytes.len() + padding, 0);
        KernelPayload { hook, version: 0, bytes }
    }
}

/// `MEM_COMMIT`, `MEM_RESERVE`, `MEM_DECOMMIT`, `MEM_RELEASE`.
pub const COMMIT: u32 = 0x1000;
/// See [`COMMIT`].
pub const RESERVE: u32 = 0x2000;
/// See [`COMMIT`].
pub const DECOMMIT: u32 = 0x4000;
/// See [`COMMIT`].
pub const RELEASE: u32 = 0x8000;

/// A call of `VirtualAlloc` or, with [`DECOMMIT`] or [`RELEASE`], of `VirtualFree`, for memory of this process.
#[must_use]
pub fn virtual_memory(
    base: u64,
    size: u64,
    pid: u32,
    flags: u32,
    ptr: PointerSize,
) -> KernelPayload {
    let hook = if flags & (DECOMMIT | RELEASE) == 0 { 0x0262 } else { 0x0263 };
    let bytes = Bytes::new().ptr(ptr, base).ptr(ptr, size).u32(pid).u32(flags).into_vec();
    KernelPayload { hook, version: 2, bytes }
}
