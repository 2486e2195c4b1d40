//! Object manager events; all payloads are packed, without alignment gaps.

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Kind of handle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleEvent {
    /// Create (0x1120).
    Create,
    /// Close (0x1121).
    Close,
    /// Rundown at the start (0x1126), with the process id.
    RundownStart,
    /// Rundown at the end (0x1127), with the process id.
    RundownEnd,
}

/// Fields of a handle event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandleRecord {
    /// Object address.
    pub object: u64,
    /// Process id (only in rundowns).
    pub pid: u32,
    /// Handle value.
    pub handle: u32,
    pub type_id: u16,
    pub name: String,
}

impl HandleRecord {
    #[must_use]
    pub fn payload(&self, event: HandleEvent, ptr: PointerSize) -> KernelPayload {
        let (hook, with_pid) = match event {
            HandleEvent::Create => (0x1120, false),
            HandleEvent::Close => (0x1121, false),
            HandleEvent::RundownStart => (0x1126, true),
            HandleEvent::RundownEnd => (0x1127, true),
        };
        let object = ByteString::new().ptr(ptr, self.object);
        let object = if with_pid { object.u32(self.pid) } else { object };
        payload(hook, object.u32(self.handle).u16(self.type_id).utf16z(&self.name))
    }
}

/// Fields of a duplicate event (0x1122).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DuplicateRecord {
    /// Object address.
    pub object: u64,
    /// Handle that was duplicated.
    pub source_handle: u32,
    /// The new handle.
    pub target_handle: u32,
    /// Process that owns the new handle.
    pub target_pid: u32,
    pub type_id: u16,
    /// Process that owns the old handle; missing in the older schema.
    pub source_pid: Option<u32>,
}

impl DuplicateRecord {
    #[must_use]
    pub fn payload(&self, ptr: PointerSize) -> KernelPayload {
        let bytes = ByteString::new()
            .ptr(ptr, self.object)
            .u32(self.source_handle)
            .u32(self.target_handle)
            .u32(self.target_pid)
            .u16(self.type_id);
        let bytes = match self.source_pid {
            Some(pid) => bytes.u32(pid),
            None => bytes,
        };
        payload(0x1122, bytes)
    }
}

/// Kind of object event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectEvent {
    /// Create (0x1130).
    Create,
    /// Delete (0x1131).
    Delete,
}

impl ObjectEvent {
    #[must_use]
    pub fn payload(self, ptr: PointerSize, object: u64, type_id: u16) -> KernelPayload {
        let hook = if self == Self::Create { 0x1130 } else { 0x1131 };
        payload(hook, ByteString::new().ptr(ptr, object).u16(type_id))
    }
}

/// Kind of change of a reference count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceEvent {
    /// More references (0x1132).
    Reference,
    /// Fewer references (0x1133).
    Dereference,
}

/// Returns a change of the reference count by `count`, with a four-letter pool tag.
#[must_use]
pub fn reference(
    event: ReferenceEvent,
    ptr: PointerSize,
    object: u64,
    tag: [u8; 4],
    count: u32,
) -> KernelPayload {
    let hook = if event == ReferenceEvent::Reference { 0x1132 } else { 0x1133 };
    payload(hook, ByteString::new().ptr(ptr, object).raw(&tag).u32(count))
}

/// Returns the name of an object type, in the rundown at the end (0x1125) or at the start (0x1124).
#[must_use]
pub fn type_rundown(at_end: bool, type_id: u16, name: &str) -> KernelPayload {
    let hook = if at_end { 0x1125 } else { 0x1124 };
    payload(hook, ByteString::new().u16(type_id).u16(0).utf16z(name))
}

fn payload(hook: u16, bytes: ByteString) -> KernelPayload {
    KernelPayload { hook, version: 2, bytes: bytes.into_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: u64 = 0xffff_8100_0000_0010;
    const OBJECT_BYTES: [u8; 8] = [0x10, 0, 0, 0, 0, 0x81, 0xff, 0xff];

    fn record() -> HandleRecord {
        HandleRecord { object: OBJECT, pid: 7, handle: 0x24, type_id: 16, name: String::new() }
    }

    #[test]
    fn creates_and_closes_have_no_process() {
        let create = record().payload(HandleEvent::Create, PointerSize::Eight);
        assert_eq!((create.hook, create.version), (0x1120, 2));
        assert_eq!(create.bytes, [&OBJECT_BYTES[..], &[0x24, 0, 0, 0, 16, 0, 0, 0]].concat());
        let named = HandleRecord { name: "n".into(), ..record() };
        let close = named.payload(HandleEvent::Close, PointerSize::Four);
        assert_eq!(close.hook, 0x1121);
        assert_eq!(close.bytes, [0x10, 0, 0, 0, 0x24, 0, 0, 0, 16, 0, b'n', 0, 0, 0]);
    }

    #[test]
    fn handle_rundowns_have_the_process_before_the_handle() {
        let end = record().payload(HandleEvent::RundownEnd, PointerSize::Eight);
        assert_eq!(end.hook, 0x1127);
        let rest = [7, 0, 0, 0, 0x24, 0, 0, 0, 16, 0, 0, 0];
        assert_eq!(end.bytes, [&OBJECT_BYTES[..], &rest].concat());
        assert_eq!(record().payload(HandleEvent::RundownStart, PointerSize::Eight).hook, 0x1126);
    }

    #[test]
    fn the_older_duplicate_schema_lacks_the_source_process() {
        let mut duplicate = DuplicateRecord {
            object: OBJECT,
            source_handle: 1,
            target_handle: 2,
            target_pid: 3,
            type_id: 4,
            source_pid: Some(5),
        };
        let bytes = duplicate.payload(PointerSize::Eight).bytes;
        assert_eq!(bytes[8..], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5, 0, 0, 0]);
        duplicate.source_pid = None;
        assert_eq!(duplicate.payload(PointerSize::Eight).bytes, bytes[..22]);
    }

    #[test]
    fn object_reference_and_type_events_have_their_hooks() {
        let delete = ObjectEvent::Delete.payload(PointerSize::Eight, OBJECT, 9);
        assert_eq!(delete.hook, 0x1131);
        assert_eq!(delete.bytes, [&OBJECT_BYTES[..], &[9, 0]].concat());
        let add = reference(ReferenceEvent::Reference, PointerSize::Eight, OBJECT, *b"Dflt", 2);
        assert_eq!(add.hook, 0x1132);
        assert_eq!(add.bytes, [&OBJECT_BYTES[..], b"Dflt", &[2, 0, 0, 0]].concat());
        let name = type_rundown(true, 16, "E");
        assert_eq!((name.hook, &name.bytes[..]), (0x1125, &[16, 0, 0, 0, b'E', 0, 0, 0][..]));
    }
}
