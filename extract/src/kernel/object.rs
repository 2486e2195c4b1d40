//! Object manager events (MOF classes ObHandleEvent, ObHandleDuplicateEvent, ObTypeEvent,
//! ObHandleRundownEvent, ObObjectEvent). All payloads are packed, without alignment gaps.

use super::Payload;
use super::bytes::utf16_bytes;
use crate::etl::Event;

/// A handle was created or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleEvent<'a> {
    /// Kernel address of the object.
    pub object: u64,
    /// Handle value.
    pub handle: u32,
    /// Type id.
    pub type_id: u16,
    /// Object name, UTF-16 without terminator; mostly empty in creates.
    pub name: &'a [u8],
}

impl<'a> HandleEvent<'a> {
    /// Decodes a create or close.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self {
            object: p.pointer()?,
            handle: p.u32()?,
            type_id: p.u16()?,
            name: utf16_bytes(p.rest()),
        })
    }
}

/// A handle was duplicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateHandle {
    /// Kernel address of the object.
    pub object: u64,
    /// Handle value in the source process.
    pub source_handle: u32,
    /// New handle value.
    pub target_handle: u32,
    /// Process that got the new handle. Public tools take it for a handle id; the MOF class
    /// ObHandleDuplicateEvent calls it TargetProcessId.
    pub target_pid: u32,
    /// Type id.
    pub type_id: u16,
    /// Process that owns the source handle; absent in the older schema.
    pub source_pid: Option<u32>,
}

impl DuplicateHandle {
    /// Decodes a duplicate.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self {
            object: p.pointer()?,
            source_handle: p.u32()?,
            target_handle: p.u32()?,
            target_pid: p.u32()?,
            type_id: p.u16()?,
            source_pid: p.u32(),
        })
    }
}

/// The name of an object type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// Type id.
    pub type_id: u16,
    /// Name.
    pub name: String,
}

impl TypeName {
    /// Decodes a type rundown record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        let type_id = p.u16()?;
        p.u16()?;
        Some(Self { type_id, name: p.utf16() })
    }
}

/// A handle that was open when the trace began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleRundown<'a> {
    /// Kernel address of the object.
    pub object: u64,
    /// Process that owns the handle.
    pub pid: u32,
    /// Handle value.
    pub handle: u32,
    /// Type id.
    pub type_id: u16,
    /// Object name, UTF-16 without terminator.
    pub name: &'a [u8],
}

impl<'a> HandleRundown<'a> {
    /// Decodes a handle rundown record.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self {
            object: p.pointer()?,
            pid: p.u32()?,
            handle: p.u32()?,
            type_id: p.u16()?,
            name: utf16_bytes(p.rest()),
        })
    }
}

/// An object was created, deleted, referenced or dereferenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectChange {
    /// Kernel address of the object.
    pub object: u64,
    /// Type id (create and delete), 0 otherwise.
    pub type_id: u16,
    /// Number of references (reference and dereference), 0 otherwise.
    pub count: u32,
}

impl ObjectChange {
    /// Decodes a create or delete.
    pub fn decode_lifetime(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self { object: p.pointer()?, type_id: p.u16()?, count: 0 })
    }

    /// Decodes a reference or dereference; the pool tag in between is not kept.
    pub fn decode_reference(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        let object = p.pointer()?;
        p.u32()?;
        Some(Self { object, type_id: 0, count: p.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_event;

    fn event(payload: &[u8], pointer_size: usize) -> Event<'_> {
        test_event(0, 2, payload, pointer_size)
    }

    #[test]
    fn the_target_of_a_duplicate_is_a_process() {
        let mut bytes = 0xFFFF_8000_0000_1000u64.to_le_bytes().to_vec();
        for field in [0x10u32, 0x20, 20_700] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(16u16.to_le_bytes());
        bytes.extend(20_648u32.to_le_bytes());
        let duplicate = DuplicateHandle::decode(&event(&bytes, 8)).unwrap();
        assert_eq!(duplicate.target_pid, 20_700);
        assert_eq!(duplicate.source_pid, Some(20_648));
        let older = DuplicateHandle::decode(&event(&bytes[..22], 8)).unwrap();
        assert_eq!((older.type_id, older.source_pid), (16, None));
    }

    #[test]
    fn a_close_may_carry_a_name() {
        let mut bytes = vec![0; 4];
        bytes.extend([0xC0, 0, 0, 0, 16, 0]);
        bytes.extend(b"\\\0X\0\0\0");
        let close = HandleEvent::decode(&event(&bytes, 4)).unwrap();
        assert_eq!((close.handle, close.name), (0xC0, &b"\\\0X\0"[..]));
    }
}
