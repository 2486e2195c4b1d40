//! Image identity records (MOF classes ImageID and DbgID_RSDS of KernelTraceControl).
//!
//! The merge of a trace inserts them after each image event, with that event's time stamp.

use super::Payload;
use crate::etl::{Event, Guid};

/// Opcode 0: which file an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageId {
    /// First address.
    pub base: u64,
    /// Size of the image according to the file, bytes.
    pub size: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// PE time stamp.
    pub timestamp: u32,
    /// Name in the version resource, often but not always a file name.
    pub original_name: String,
}

impl ImageId {
    /// The opcode.
    pub const OPCODE: u8 = 0;

    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
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
pub struct Rsds {
    /// First address of the image.
    pub base: u64,
    /// Process id; 0 for kernel images.
    pub pid: u32,
    /// GUID of the PDB.
    pub guid: Guid,
    /// Age of the PDB.
    pub age: u32,
    /// Name of the PDB, sometimes a full path.
    pub pdb_name: String,
}

impl Rsds {
    /// The opcode; 37 is the same for managed code.
    pub const OPCODE: u8 = 36;

    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
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
    pub size: u32,
    /// PE time stamp.
    pub timestamp: u32,
    /// What the file is.
    pub description: String,
    /// File version.
    pub file_version: String,
    /// Product it belongs to.
    pub product_name: String,
    /// Who made it.
    pub company: String,
}

impl FileVersion {
    /// The opcode.
    pub const OPCODE: u8 = 64;

    /// Decodes the record.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        let (size, timestamp) = (p.u32()?, p.u32()?);
        let (_original_name, description, file_version) = (p.utf16(), p.utf16(), p.utf16());
        let (_binary_version, _language) = (p.utf16(), p.utf16());
        let (product_name, company) = (p.utf16(), p.utf16());
        Some(Self { size, timestamp, description, file_version, product_name, company })
    }
}
