//! Copies a trace without names, command lines and SIDs, so that it can be reported if it is read wrongly.
//!
//! Buffers, events and their sizes stay as they are, so the copy is read, and misread, like the trace. The event
//! families know the fields of their payloads; all other payloads are overwritten.

mod buffer;
mod known;
mod names;

use std::io::{self, Read, Write};
use std::path::Path;

use handlescope_model::{Cancel, ContainerLimits, Reason};

use self::buffer::{Redaction, header};
use crate::error::ExtractError;
use crate::etl::{BUFFER_HEADER_SIZE, BufferHeader, IndexedBuffer, SkippedRange};
use crate::options::ExtractObserver;
use crate::recording::OpenRecording;

/// Why there is no redacted copy.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ExtractError),
    /// The copy cannot be written.
    #[error("cannot write: {}", Reason(.0))]
    Write(#[from] io::Error),
}

/// Buffer, or range of the file without events.
enum Region {
    Buffer(IndexedBuffer),
    Skipped(SkippedRange),
}

/// Writes a copy of the trace `input` without the machine's texts. Compressed buffers are written expanded.
///
/// # Errors
/// Fails if the trace cannot be read, `out` cannot be written, or `cancel` requests a stop.
pub fn redact(
    input: &Path,
    limits: &ContainerLimits,
    out: &mut dyn Write,
    observer: &dyn ExtractObserver,
    cancel: &Cancel,
) -> Result<(), RedactError> {
    let open = OpenRecording::open_cancellable(input, limits, cancel)?;
    // A damaged or hostile trace may claim to expand without end.
    let content = open.uncompressed_bytes();
    limits.check_content(input, open.len(), content).map_err(ExtractError::from)?;
    observer.on_started(open.len());
    let buffers = open
        .index
        .buffers
        .iter()
        .chain(&open.index.duplicates)
        .map(|buffer| (buffer.offset, Region::Buffer(*buffer)));
    let skipped = open.index.skipped.iter().map(|range| (range.offset, Region::Skipped(*range)));
    let mut regions: Vec<(u64, Region)> = buffers.chain(skipped).collect();
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
            Region::Skipped(range) => write_skipped(&open, range, &mut bytes, out, cancel)?,
        }
    }
    Ok(open.recording.check_unchanged()?)
}

/// Bytes of zeros written between two cancellation checks.
const ZEROS_PER_CHECK: u64 = 1 << 20;

/// Writes a range without events: its header if it is a buffer, otherwise bytes that are not a buffer.
fn write_skipped(
    open: &OpenRecording,
    range: SkippedRange,
    bytes: &mut Vec<u8>,
    out: &mut dyn Write,
    cancel: &Cancel,
) -> Result<(), RedactError> {
    let head = range.size.min(BUFFER_HEADER_SIZE as u64);
    open.read_at(range.offset, head as usize, bytes)?;
    if range.is_buffer {
        header(bytes);
    } else if bytes.iter().any(|byte| *byte != 0) {
        bytes.fill(0xFF);
    }
    out.write_all(bytes)?;
    let mut left = range.size - head;
    while left > 0 {
        cancel.check().map_err(ExtractError::from)?;
        left -= io::copy(&mut io::repeat(0).take(left.min(ZEROS_PER_CHECK)), out)?;
    }
    Ok(())
}
