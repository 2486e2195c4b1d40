//! Events that a reader has to skip, or to learn the running thread from.

use super::{ClassicPayload, KernelPayload};
use crate::bytes::{ByteString, Guid, PointerSize};
use crate::header::{ExtendedItem, ManifestEvent, Stamp};

/// Returns a context switch (0x0524), 24 bytes.
#[must_use]
pub fn context_switch(new_tid: u32, old_tid: u32) -> KernelPayload {
    let bytes = ByteString::new().u32(new_tid).u32(old_tid).zeros(16).into_vec();
    KernelPayload { hook: 0x0524, version: 4, bytes }
}

/// Returns a profile sample (0x0f2e).
#[must_use]
pub fn profile_sample(ptr: PointerSize, address: u64, tid: u32) -> KernelPayload {
    let bytes = ByteString::new().ptr(ptr, address).u32(tid).u16(1).u16(0).into_vec();
    KernelPayload { hook: 0x0f2e, version: 2, bytes }
}

/// Returns a disk read (0x010a, DiskIo_TypeGroup1).
#[must_use]
pub fn disk_read(ptr: PointerSize, size: u32, offset: u64, tid: u32) -> KernelPayload {
    let bytes = ByteString::new().u32(0).u32(0x0006_0043).u32(size).u32(0).u64(offset);
    let bytes = bytes.ptr(ptr, 0xFFFF_A000_0000_1000).ptr(ptr, 0xFFFF_A000_0000_2000);
    KernelPayload { hook: 0x010a, version: 3, bytes: bytes.u64(1_000).u32(tid).into_vec() }
}

/// Returns a classic event of an unknown provider.
#[must_use]
pub fn classic_noise(opcode: u8, bytes: Vec<u8>) -> ClassicPayload {
    let guid = Guid::new(0x5a3c_11d2_7e49_4b60_9d1a_3f2c_8e77_a005);
    ClassicPayload { guid, opcode, version: 0, bytes }
}

/// Returns a manifest event of an unknown provider; a stack goes into an extended item.
#[must_use]
pub fn manifest_noise(id: u16, stamp: Stamp, stack: &[u64], payload: Vec<u8>) -> ManifestEvent {
    let items = if stack.is_empty() { Vec::new() } else { vec![ExtendedItem::stack64(stack)] };
    ManifestEvent {
        provider: Guid::new(0x331c_3b3a_2005_44c2_ac5e_7722_0c37_d6b4),
        id,
        level: 4,
        keyword: 0x40,
        stamp,
        items,
        payload,
        ..ManifestEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_switch_has_the_new_thread_first() {
        let payload = context_switch(1, 2);
        assert_eq!((payload.hook, payload.bytes.len()), (0x0524, 24));
        assert_eq!(payload.bytes[..8], [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(profile_sample(PointerSize::Eight, 1, 2).bytes.len(), 16);
    }
}
