//! Records about images as a merge by Windows writes them: classic events with the time of their image event.

use super::image_file::{ImageFile, Pdb};
use crate::etl::Event;
use crate::kernel::{IDENTITY_GUID, Image};

/// Bytes of the header of a classic event.
const HEADER: usize = 48;

const VERSION: u16 = 2;

const IMAGE_ID: u8 = 0;
const NO_DEBUG_DATA: u8 = 32;
const RSDS: u8 = 36;

/// Size and time stamp of the file. The name in its version resource is not read, and left empty.
pub(super) fn image_id(event: &Event<'_>, image: &Image<'_>, file: &ImageFile) -> Vec<u8> {
    let mut record = Record::new(event, IMAGE_ID);
    record.pointer(image.base);
    record.pointer(file.size.into());
    record.add(&image.pid.to_le_bytes());
    record.add(&file.timestamp.to_le_bytes());
    record.add(&[0, 0]);
    record.finish()
}

/// The PDB of an image.
pub(super) fn rsds(event: &Event<'_>, image: &Image<'_>, pdb: &Pdb) -> Vec<u8> {
    let mut record = Record::new(event, RSDS);
    record.pointer(image.base);
    record.add(&image.pid.to_le_bytes());
    record.add(&pdb.guid);
    record.add(&pdb.age.to_le_bytes());
    record.add(&pdb.name);
    record.add(&[0]);
    record.finish()
}

/// An image that says nothing of a PDB.
pub(super) fn no_debug_data(event: &Event<'_>, image: &Image<'_>) -> Vec<u8> {
    let mut record = Record::new(event, NO_DEBUG_DATA);
    record.pointer(image.base);
    record.add(&image.pid.to_le_bytes());
    record.finish()
}

/// A record while it is made.
struct Record {
    bytes: Vec<u8>,
    pointer_size: usize,
}

impl Record {
    /// A record of the process, thread, time and pointers of an event.
    fn new(event: &Event<'_>, opcode: u8) -> Self {
        let kind = if event.pointer_size == 8 { 20 } else { 10 };
        let id = |id: Option<u32>| id.unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(HEADER + 128);
        bytes.extend([0, 0, kind, 0xC0, opcode, 0]);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(id(event.tid));
        bytes.extend(id(event.pid));
        bytes.extend(event.time.to_le_bytes());
        bytes.extend(IDENTITY_GUID.0);
        bytes.extend([0; 8]);
        Self { bytes, pointer_size: event.pointer_size }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn pointer(&mut self, value: u64) {
        let bytes = value.to_le_bytes();
        self.add(bytes.get(..self.pointer_size).unwrap_or(&bytes));
    }

    /// The record with its size, which stands first.
    fn finish(mut self) -> Vec<u8> {
        let size = (self.bytes.len() as u16).to_le_bytes();
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = size;
        }
        self.bytes
    }
}
