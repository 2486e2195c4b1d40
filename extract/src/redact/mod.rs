//! A copy of a trace without names, command lines and SIDs, for a report of a trace that is read wrongly.
//!
//! Buffers, events and their sizes stay as they are, so that the copy is read, and misread, as the trace
//! is. What a payload holds is known from the families of events; all other payloads are overwritten.

mod buffer;
mod known;
mod names;

use std::io::{self, Read, Write};
use std::path::Path;

use handlescope_model::{Cancel, ContainerLimits, Reason};

use self::buffer::{Redaction, header};
use crate::error::ExtractError;
use crate::etl::{BUFFER_HEADER_SIZE, BufferHeader, IndexedBuffer, OtherPlace};
use crate::options::ExtractObserver;
use crate::recording::OpenRecording;

/// Reasons that there is no redacted copy.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ExtractError),
    /// The copy cannot be written.
    #[error("cannot write: {}", Reason(.0))]
    Write(#[from] io::Error),
}

/// A buffer, or a place without events.
enum Region {
    Buffer(IndexedBuffer),
    Other(OtherPlace),
}

/// Writes a copy of the trace `input` without texts of the machine. Compressed buffers are written
/// expanded.
///
/// # Errors
/// When the trace cannot be read, `out` cannot be written, or `cancel` asks to stop.
pub fn redact(
    input: &Path,
    limits: &ContainerLimits,
    out: &mut dyn Write,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<(), RedactError> {
    let mut open = OpenRecording::open_cancellable(input, limits, cancel)?;
    // A damaged or hostile trace may claim to expand without end.
    let content = open.uncompressed_bytes();
    limits.check_content(input, open.len(), content).map_err(ExtractError::from)?;
    observer.on_started(open.len());
    let buffers = open.index.buffers.iter().chain(&open.index.duplicates);
    let buffers = buffers.map(|buffer| (buffer.offset, Region::Buffer(*buffer)));
    let gaps = open.index.others.iter().map(|gap| (gap.offset, Region::Other(*gap)));
    let mut regions: Vec<(u64, Region)> = buffers.chain(gaps).collect();
    regions.sort_by_key(|(offset, _)| *offset);
    let mut redaction = Redaction::default();
    let (mut stored, mut bytes) = (Vec::new(), Vec::new());
    for (offset, region) in regions {
        cancel.check().map_err(ExtractError::from)?;
        observer.on_progress(offset);
        match region {
            Region::Buffer(buffer) => {
                open.expanded(&buffer, &mut stored, &mut bytes)?;
                if buffer.header.is_compressed() {
                    BufferHeader::make_plain(&mut bytes, &buffer.header);
                }
                let valid = buffer.header.filled as usize;
                redaction.buffer(&mut bytes, valid, buffer.first_time);
                out.write_all(&bytes)?;
            }
            Region::Other(gap) => write_other(&mut open, gap, &mut bytes, out, cancel)?,
        }
    }
    Ok(open.recording.check_unchanged()?)
}

/// Bytes of zeros that are written between two looks whether to stop.
const ZEROS_PER_LOOK: u64 = 1 << 20;

/// Writes a place without events: its header if it is a buffer, or bytes that are not a buffer either.
fn write_other(
    open: &mut OpenRecording,
    gap: OtherPlace,
    bytes: &mut Vec<u8>,
    out: &mut dyn Write,
    cancel: &Cancel,
) -> Result<(), RedactError> {
    let head = gap.size.min(BUFFER_HEADER_SIZE as u64);
    open.read_at(gap.offset, head as usize, bytes)?;
    if gap.is_buffer {
        header(bytes);
    } else if bytes.iter().any(|byte| *byte != 0) {
        bytes.fill(0xFF);
    }
    out.write_all(bytes)?;
    let mut left = gap.size - head;
    while left > 0 {
        cancel.check().map_err(ExtractError::from)?;
        left -= io::copy(&mut io::repeat(0).take(left.min(ZEROS_PER_LOOK)), out)?;
    }
    Ok(())
}
