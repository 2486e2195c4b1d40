//! Image identity records (MOF classes ImageID and DbgID_RSDS of KernelTraceControl).
//!
//! The merge of a trace inserts them after each image event, with that event's time stamp.

use crate::etl::{Event, EventId, Guid};
use crate::payload::Payload;

/// Image identity records, inserted by the merge of a trace.
pub const IDENTITY_GUID: Guid =
    Guid::new(0xb3e6_75d7, 0x2554, 0x4f18, [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde]);

pub(super) const IMAGE_ID: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 0 };
pub(super) const RSDS: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 36 };
pub(super) const FILE_VERSION: EventId = EventId::Classic { guid: IDENTITY_GUID, opcode: 64 };

/// Opcode 0: which file an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageId {
    pub(crate) base: u64,
    /// Size of the image according to the file, bytes.
    pub(crate) size: u64,
    /// Process id; 0 for kernel images.
    pub(crate) pid: u32,
    /// PE time stamp.
    pub(crate) timestamp: u32,
    /// Name in the version resource, often but not always a file name.
    pub(crate) original_name: String,
}

impl ImageId {
    /// Decodes the record.
    pub(crate) fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::of(event);
        Some(Self {
            base: p.pointer()?,
            size: p.pointer()?,
            pid: p.u32()?,
            timestamp: p.u32()?,
            original_name: p.utf16(),
        })
    }
}

/// Opcode 36: which PDB belongs to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rsds {
    /// First address of the image.
    pub(crate) base: u64,
    /// Process id; 0 for kernel images.
    pub(crate) pid: u32,
    pub(crate) guid: Guid,
    pub(crate) age: u32,
    /// Name of the PDB, sometimes a full path.
    pub(crate) pdb_name: String,
}

impl Rsds {
    /// Decodes the record.
    pub(crate) fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::of(event);
        Some(Self {
            base: p.pointer()?,
            pid: p.u32()?,
            guid: p.guid()?,
            age: p.u32()?,
            pdb_name: p.ansi().into_owned(),
        })
    }
}

/// Opcode 64: the version resource of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// Size of the image, bytes.
    pub(crate) size: u32,
    /// PE time stamp.
    pub(crate) timestamp: u32,
    /// What the file is.
    pub(crate) description: String,
    pub(crate) file_version: String,
    /// Product it belongs to.
    pub(crate) product_name: String,
    /// Who made it.
    pub(crate) company: String,
}

impl FileVersion {
    /// Decodes the record.
    pub(crate) fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::of(event);
        let (size, timestamp) = (p.u32()?, p.u32()?);
        let (_original_name, description, file_version) = (p.utf16(), p.utf16(), p.utf16());
        let (_binary_version, _language) = (p.utf16(), p.utf16());
        let (product_name, company) = (p.utf16(), p.utf16());
        Some(Self { size, timestamp, description, file_version, product_name, company })
    }
}
