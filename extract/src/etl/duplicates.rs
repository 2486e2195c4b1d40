//! Buffers that a file holds more than once.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io;

use handlescope_model::Cancel;
use rustc_hash::FxHasher;

use super::buffer::{BUFFER_HEADER_SIZE, IndexedBuffer};
use super::file::{EtlFile, ScanError};

/// Takes the second and later copies of a buffer out of `buffers` and returns them. The first one, by its
/// place in the file, stays.
///
/// A copy has the header of the first one and its content. The number of a buffer alone says little: numbers
/// start again in some files, and others have none. Content is read only of buffers whose headers are equal,
/// which those of a sound file are not.
///
/// # Errors
/// When the file cannot be read, or `cancel` asks to stop.
pub(super) fn remove(
    file: &mut EtlFile,
    buffers: &mut Vec<IndexedBuffer>,
    cancel: &Cancel,
) -> Result<Vec<IndexedBuffer>, ScanError> {
    buffers.sort_unstable_by_key(|buffer| (header(buffer), buffer.offset));
    let (mut kept, mut copies) = (Vec::with_capacity(buffers.len()), Vec::new());
    let mut contents = Contents { file, bytes: Vec::new(), other: Vec::new() };
    for alike in buffers.chunk_by(|a, b| header(a) == header(b)) {
        match alike {
            [only] => kept.push(*only),
            [first, ..] if content(first) == 0 => kept.extend(alike),
            alike => contents.sort(alike, &mut kept, &mut copies, cancel)?,
        }
    }
    *buffers = kept;
    Ok(copies)
}

/// What the headers of two copies have in common.
fn header(buffer: &IndexedBuffer) -> impl Ord + use<> {
    let header = &buffer.header;
    let sizes = (header.size, header.filled, header.saved);
    (header.sequence, header.time, header.processor, header.kind, sizes)
}

/// Bytes of the file that a buffer has after its header, without the unused ones at its end.
fn content(buffer: &IndexedBuffer) -> usize {
    let end = if buffer.header.is_compressed() {
        buffer.stored
    } else {
        buffer.stored.min(buffer.header.filled)
    };
    (end as usize).saturating_sub(BUFFER_HEADER_SIZE)
}

/// Reads the content of buffers.
struct Contents<'a> {
    file: &'a mut EtlFile,
    bytes: Vec<u8>,
    other: Vec<u8>,
}

impl Contents<'_> {
    /// Divides buffers of equal headers, in the order of the file, into first ones and copies.
    fn sort(
        &mut self,
        alike: &[IndexedBuffer],
        kept: &mut Vec<IndexedBuffer>,
        copies: &mut Vec<IndexedBuffer>,
        cancel: &Cancel,
    ) -> Result<(), ScanError> {
        let mut firsts: HashMap<u64, IndexedBuffer> = HashMap::new();
        for buffer in alike {
            cancel.check()?;
            read(self.file, buffer, content(buffer), &mut self.bytes)?;
            let mut hasher = FxHasher::default();
            hasher.write(&self.bytes);
            let same_hash = firsts.get(&hasher.finish()).copied();
            let is_copy = match same_hash {
                Some(first) => self.starts_like(&first, content(&first))?,
                // Only the last buffer of a file can be cut.
                None if buffer.stored < buffer.header.size => self.starts_like_any(kept, buffer)?,
                None => false,
            };
            if is_copy {
                copies.push(*buffer);
            } else {
                firsts.entry(hasher.finish()).or_insert(*buffer);
                kept.push(*buffer);
            }
        }
        Ok(())
    }

    /// Whether one of the buffers that were kept last, those of the same header, starts as the one at hand.
    fn starts_like_any(&mut self, kept: &[IndexedBuffer], cut: &IndexedBuffer) -> io::Result<bool> {
        for buffer in kept.iter().rev().take_while(|buffer| header(buffer) == header(cut)) {
            if self.starts_like(buffer, content(cut))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether so many bytes of another buffer are those at hand.
    fn starts_like(&mut self, other: &IndexedBuffer, size: usize) -> io::Result<bool> {
        read(self.file, other, size, &mut self.other)?;
        Ok(self.other == self.bytes)
    }
}

fn read(
    file: &mut EtlFile,
    buffer: &IndexedBuffer,
    size: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    file.read_at(buffer.offset + BUFFER_HEADER_SIZE as u64, size, bytes)
}
