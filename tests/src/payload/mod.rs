//! Payloads: one builder per event family.
//!
//! A record holds the fields. Its `payload` method lays them out for a pointer width and event version and identifies
//! the event ([`KernelPayload`], [`ClassicPayload`]), which then gets a header.

mod filemap;
mod identity;
mod image;
mod managed;
mod memory;
mod metadata;
mod noise;
mod objects;
mod process;
mod stack;
mod system;
mod thread;
mod trace_header;

pub use self::filemap::{ViewEvent, ViewRecord, file_name};
pub use self::identity::{DebugId, IDENTITY_GUID, file_version, image_id, no_debug_data, rsds};
pub use self::image::{ImageEvent, ImageRecord};
pub use self::managed::{CLR_PROVIDER, ManagedModule, MethodEvent, MethodRecord};
pub use self::memory::{HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord};
pub use self::metadata::{EventInfo, manifest_chunks, trace_logging};
pub use self::noise::{classic_noise, context_switch, disk_read, manifest_noise, profile_sample};
pub use self::objects::{
    DuplicateRecord, HandleEvent, HandleRecord, ObjectEvent, ReferenceEvent, reference,
    type_rundown,
};
pub use self::process::{ProcessEvent, ProcessRecord, Sid};
pub use self::stack::{
    StackHalf, StackKeyEvent, stack_key_definition, stack_key_reference, stack_walk,
};
pub use self::system::{
    build_string, computer, end_of_rundown, group_masks, path_prefix, system_directories,
    volume_device,
};
pub use self::thread::{ThreadEvent, ThreadRecord};
pub use self::trace_header::{ClockChanges, TraceHeaderPayload};

use crate::bytes::{Guid, PointerSize};
use crate::header::{ClassicEvent, HeaderKind, KernelEvent, Stamp};

/// The payload of a kernel event, with the ids of the event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelPayload {
    pub hook: u16,
    pub version: u8,
    pub bytes: Vec<u8>,
}

impl KernelPayload {
    /// Returns the whole event with this header.
    #[must_use]
    pub fn event(&self, kind: HeaderKind, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        KernelEvent {
            kind,
            pointer,
            hook: self.hook,
            version: self.version,
            stamp,
            payload: self.bytes.clone(),
            ..KernelEvent::default()
        }
        .encode()
    }
}

/// The payload of a classic event, with the ids of the event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassicPayload {
    /// Event class.
    pub guid: Guid,
    /// Kind of event in the class.
    pub opcode: u8,
    pub version: u16,
    pub bytes: Vec<u8>,
}

impl ClassicPayload {
    /// Returns the whole event with a classic header.
    #[must_use]
    pub fn event(&self, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        ClassicEvent {
            pointer,
            guid: self.guid,
            opcode: self.opcode,
            version: self.version,
            stamp,
            payload: self.bytes.clone(),
            ..ClassicEvent::default()
        }
        .encode()
    }
}
