//! Stack events with frames, or with keys that get their frames later.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// The half of a stack that a key identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackHalf {
    /// Kernel mode (0x1825).
    Kernel,
    /// User mode (0x1826).
    User,
}

/// Kind of event of a stack key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKeyEvent {
    /// Created (0x1822).
    Created,
    /// Removed from the cache (0x1823).
    Deleted,
    /// Rundown at the end (0x1824).
    Rundown,
}

/// Returns the frames of the event at this raw time, innermost first (0x1820).
#[must_use]
pub fn stack_walk(
    ptr: PointerSize,
    event_time: i64,
    pid: u32,
    tid: u32,
    frames: &[u64],
) -> KernelPayload {
    stack(0x1820, ByteString::new().i64(event_time).u32(pid).u32(tid).ptrs(ptr, frames))
}

/// Returns a reference to the frames of a key (0x1825, 0x1826).
#[must_use]
pub fn stack_key_reference(
    part: StackHalf,
    ptr: PointerSize,
    event_time: i64,
    (pid, tid): (u32, u32),
    key: u64,
) -> KernelPayload {
    let hook = if part == StackHalf::Kernel { 0x1825 } else { 0x1826 };
    stack(hook, ByteString::new().i64(event_time).u32(pid).u32(tid).ptr(ptr, key))
}

/// Returns the frames of a key (0x1822 to 0x1824).
#[must_use]
pub fn stack_key_definition(
    event: StackKeyEvent,
    ptr: PointerSize,
    key: u64,
    frames: &[u64],
) -> KernelPayload {
    let hook = match event {
        StackKeyEvent::Created => 0x1822,
        StackKeyEvent::Deleted => 0x1823,
        StackKeyEvent::Rundown => 0x1824,
    };
    stack(hook, ByteString::new().ptr(ptr, key).ptrs(ptr, frames))
}

fn stack(hook: u16, bytes: ByteString) -> KernelPayload {
    KernelPayload { hook, version: 2, bytes: bytes.into_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_walk_has_the_process_before_the_thread() {
        let payload = stack_walk(PointerSize::Eight, 0x0102, 3, 4, &[0xffff_f801_0000_0005, 6]);
        assert_eq!(payload.hook, 0x1820);
        let expected = [
            2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 1, 0xf8, 0xff, 0xff, 6, 0,
            0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(payload.bytes, expected);
    }

    #[test]
    fn a_key_reference_has_24_bytes_and_a_definition_starts_with_the_key() {
        let user = stack_key_reference(StackHalf::User, PointerSize::Eight, 1, (2, 3), 0x99);
        assert_eq!((user.hook, user.bytes.len(), user.bytes[16]), (0x1826, 24, 0x99));
        let keys = stack_key_definition(StackKeyEvent::Deleted, PointerSize::Four, 7, &[8, 9]);
        assert_eq!(keys.hook, 0x1823);
        assert_eq!(keys.bytes, [7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0]);
    }
}
