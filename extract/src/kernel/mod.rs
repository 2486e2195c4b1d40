//! Payloads of kernel events: one decoder per event family.
//!
//! Decoders take an [`Event`](crate::etl::Event) and return plain values borrowed from it. They
//! accept longer payloads than they know and say `None` to shorter ones; nothing panics.

mod bytes;
mod file_map;
mod identity;
mod image;
mod names;
mod object;
mod process;
mod stack_walk;
mod system;
mod thread;
mod time_zone;
mod trace_header;

pub use bytes::Payload;
pub(crate) use bytes::{utf16_bytes, utf16_text};
pub use file_map::FileMap;
pub use identity::{FileVersion, ImageId, Rsds};
pub use image::{Image, ImageAction};
pub use names::event_name;
pub use object::{DuplicateHandle, HandleEvent, HandleRundown, ObjectChange, TypeName};
pub use process::{Process, ProcessAction};
pub use stack_walk::{StackKeyFrames, StackKeyRef, StackWalk};
pub use system::{SystemBuild, computer_name, memory_size};
pub use thread::Thread;
pub use time_zone::TimeZone;
pub use trace_header::TraceHeader;

use crate::etl::Guid;

/// Hook ids of the kernel events this program decodes.
pub mod hook {
    #![allow(missing_docs)]
    pub const TRACE_HEADER: u16 = 0x0000;
    pub const PROCESS_START: u16 = 0x0301;
    pub const PROCESS_END: u16 = 0x0302;
    pub const PROCESS_DC_START: u16 = 0x0303;
    pub const PROCESS_DC_END: u16 = 0x0304;
    /// Image load lies in the process group.
    pub const IMAGE_LOAD: u16 = 0x030a;
    pub const FILE_MAP: u16 = 0x0425;
    pub const FILE_UNMAP: u16 = 0x0426;
    pub const THREAD_START: u16 = 0x0501;
    pub const THREAD_END: u16 = 0x0502;
    pub const THREAD_DC_START: u16 = 0x0503;
    pub const THREAD_DC_END: u16 = 0x0504;
    pub const SYSTEM_CPU: u16 = 0x0b0a;
    pub const CREATE_HANDLE: u16 = 0x1120;
    pub const CLOSE_HANDLE: u16 = 0x1121;
    pub const DUPLICATE_HANDLE: u16 = 0x1122;
    pub const TYPE_DC_START: u16 = 0x1124;
    pub const TYPE_DC_END: u16 = 0x1125;
    pub const HANDLE_DC_START: u16 = 0x1126;
    pub const HANDLE_DC_END: u16 = 0x1127;
    pub const CREATE_OBJECT: u16 = 0x1130;
    pub const DELETE_OBJECT: u16 = 0x1131;
    pub const REFERENCE_OBJECT: u16 = 0x1132;
    pub const DEREFERENCE_OBJECT: u16 = 0x1133;
    pub const IMAGE_UNLOAD: u16 = 0x1402;
    pub const IMAGE_DC_START: u16 = 0x1403;
    pub const IMAGE_DC_END: u16 = 0x1404;
    pub const STACK_WALK: u16 = 0x1820;
    pub const STACK_KEY_CREATE: u16 = 0x1822;
    pub const STACK_KEY_DELETE: u16 = 0x1823;
    pub const STACK_KEY_RUNDOWN: u16 = 0x1824;
    pub const STACK_KEY_KERNEL: u16 = 0x1825;
    pub const STACK_KEY_USER: u16 = 0x1826;
}

/// Image identity records, inserted by the merge of a trace.
pub const IMAGE_ID_GUID: Guid =
    Guid::new(0xb3e6_75d7, 0x2554, 0x4f18, [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde]);
/// System facts, inserted by the merge of a trace.
pub const SYSTEM_FACTS_GUID: Guid =
    Guid::new(0x9b79_ee91, 0xb5fd, 0x41c0, [0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0]);
/// Records of lost events (RT_LostEvent).
pub const LOST_EVENT_GUID: Guid =
    Guid::new(0x6a39_9ae0, 0x4bc6, 0x4de9, [0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e]);

/// A kernel event of an unknown thread, for tests of payloads.
#[cfg(test)]
pub(crate) fn test_event(
    hook: u16,
    version: u8,
    payload: &[u8],
    pointer_size: usize,
) -> crate::etl::Event<'_> {
    crate::etl::Event {
        id: crate::etl::EventId::Hook(hook),
        version,
        time: 0,
        pid: None,
        tid: None,
        processor: 0,
        pointer_size,
        payload,
        extended: &[],
        offset: 0,
    }
}
