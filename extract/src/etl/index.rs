//! Where the buffers are and in which order to read them.

use std::io;

use super::buffer::{BUFFER_HEADER_SIZE, BadHeader, BufferHeader};
use super::diagnostics::{Diagnostics, WarningKind};
use super::event::{LEADING_BYTES, leading_time};
use super::file::EtlFile;
use super::lz77::decompress;

/// What the trace header says that matters for finding buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Buffer size of the session, bytes.
    pub buffer_size: u32,
    pub log_file_mode: u32,
}

/// EVENT_TRACE_FILE_MODE_PREALLOCATE.
const MODE_PREALLOCATE: u32 = 0x20;
/// EVENT_TRACE_COMPRESSED_MODE.
const MODE_COMPRESSED: u32 = 0x0400_0000;

impl Session {
    /// Whether buffers may be compressed and so lie at any offset.
    pub fn is_compressed(&self) -> bool {
        self.log_file_mode & MODE_COMPRESSED != 0
    }
}

/// One buffer of the file.
#[derive(Debug, Clone, Copy)]
pub struct IndexedBuffer {
    /// Its place in the file, bytes.
    pub offset: u64,
    /// Bytes it occupies in the file; fewer than its header says when the file is cut.
    pub stored: u32,
    pub header: BufferHeader,
    /// Raw time of its first event.
    pub first_time: i64,
}

/// A place of the file without events.
#[derive(Debug, Clone, Copy)]
pub struct OtherPlace {
    /// Where it is, bytes.
    pub offset: u64,
    /// Bytes to the next buffer.
    pub size: u64,
    /// Whether it is a buffer, of a type that holds no events.
    pub is_buffer: bool,
}

/// All buffers that hold events, in the order of their first event.
///
/// The order does not depend on the order in the file, so circular files need no special care:
/// their newest buffers overwrite the oldest ones in place.
#[derive(Debug, Default)]
pub struct BufferIndex {
    pub buffers: Vec<IndexedBuffer>,
    /// The other places, in the order of the file.
    pub others: Vec<OtherPlace>,
    /// Buffers found, with those that hold no events.
    pub found: u64,
}

/// Compressed bytes that surely expand to the first event's header: 24 literals and flag words.
const LEADING_COMPRESSED: usize = 256;

impl BufferIndex {
    /// Walks over the buffer headers of a file.
    ///
    /// A header that makes no sense is counted; an uncompressed file is then continued at the next
    /// multiple of the session's buffer size, a compressed one is left there because nothing says
    /// where the next buffer starts.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn scan(
        file: &mut EtlFile,
        session: Session,
        diagnostics: &mut Diagnostics,
    ) -> io::Result<Self> {
        let mut index = Self::default();
        let mut bytes = Vec::new();
        let mut offset = 0;
        let mut last_time = i64::MIN;
        while offset < file.len() {
            file.read_at(offset, BUFFER_HEADER_SIZE + LEADING_COMPRESSED, &mut bytes)?;
            let header = match BufferHeader::parse(&bytes) {
                Ok(header) => header,
                Err(bad) => {
                    let next = skip_bad(bad, offset, file.len(), session, diagnostics);
                    let end = next.unwrap_or(u64::MAX).min(file.len());
                    let (size, is_buffer) = (end - offset, false);
                    index.others.push(OtherPlace { offset, size, is_buffer });
                    offset = end;
                    continue;
                }
            };
            index.found += 1;
            let left = file.len() - offset;
            let stored = u64::from(header.size).min(left) as u32;
            if stored < header.size {
                diagnostics.count(WarningKind::TruncatedBuffer, Some(offset));
            }
            if header.marks_loss() {
                diagnostics.count(WarningKind::LossFlag, Some(offset));
            }
            if header.holds_events() {
                let first_time = first_time(&header, &bytes).unwrap_or(last_time);
                last_time = first_time;
                index.buffers.push(IndexedBuffer { offset, stored, header, first_time });
            } else {
                diagnostics.count(WarningKind::UnknownBufferType, Some(offset));
                let (size, is_buffer) = (stored.into(), true);
                index.others.push(OtherPlace { offset, size, is_buffer });
            }
            offset += u64::from(header.size);
        }
        index.buffers.sort_by_key(|b| (b.first_time, b.offset));
        Ok(index)
    }
}

/// Counts a place that is not a buffer; returns where to go on, if anywhere.
fn skip_bad(
    bad: BadHeader,
    offset: u64,
    len: u64,
    session: Session,
    diagnostics: &mut Diagnostics,
) -> Option<u64> {
    let size = u64::from(session.buffer_size.max(BUFFER_HEADER_SIZE as u32));
    let kind = match bad {
        BadHeader::Empty if session.log_file_mode & MODE_PREALLOCATE != 0 => None,
        _ if session.is_compressed() => Some(WarningKind::UnreadableRest),
        _ if len - offset < BUFFER_HEADER_SIZE as u64 => Some(WarningKind::TruncatedBuffer),
        BadHeader::Empty => Some(WarningKind::EmptyBuffer),
        BadHeader::Implausible => Some(WarningKind::BadBuffer),
    };
    if let Some(kind) = kind {
        diagnostics.count(kind, Some(offset));
    }
    let next = (offset / size + 1) * size;
    (kind != Some(WarningKind::UnreadableRest)).then_some(next)
}

fn first_time(header: &BufferHeader, bytes: &[u8]) -> Option<i64> {
    let events = bytes.get(BUFFER_HEADER_SIZE..)?;
    if !header.is_compressed() {
        return leading_time(events);
    }
    let mut expanded = Vec::new();
    // A cut match behind the first bytes is expected: only the start of the stream is here.
    let _ = decompress(events, LEADING_BYTES, &mut expanded);
    leading_time(&expanded)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SESSION: Session = Session { buffer_size: 256, log_file_mode: 0 };

    /// A buffer of 256 bytes with one perfinfo event at `time`.
    fn buffer(time: i64) -> Vec<u8> {
        let mut bytes = vec![0u8; 256];
        bytes[0..4].copy_from_slice(&256u32.to_le_bytes());
        bytes[48..52].copy_from_slice(&88u32.to_le_bytes());
        bytes[72..80].copy_from_slice(&[2, 0, 0x11, 0xC0, 16, 0, 0, 0]);
        bytes[80..88].copy_from_slice(&time.to_le_bytes());
        bytes
    }

    fn scan(bytes: &[u8], session: Session) -> (BufferIndex, Diagnostics) {
        let mut temp = tempfile::NamedTempFile::new().unwrap();
        temp.write_all(bytes).unwrap();
        let mut file = EtlFile::new(temp.reopen().unwrap()).unwrap();
        let mut diagnostics = Diagnostics::default();
        let index = BufferIndex::scan(&mut file, session, &mut diagnostics).unwrap();
        (index, diagnostics)
    }

    #[test]
    fn buffers_come_in_the_order_of_their_first_event() {
        let (index, diagnostics) = scan(&[buffer(30), buffer(10), buffer(20)].concat(), SESSION);
        let offsets: Vec<_> = index.buffers.iter().map(|b| b.offset).collect();
        assert_eq!(offsets, [256, 512, 0]);
        assert!(diagnostics.warnings().is_empty());
    }

    #[test]
    fn after_a_bad_header_the_next_buffer_is_found() {
        let mut bytes = [buffer(1), buffer(2), buffer(3)].concat();
        bytes[256..260].fill(0xEE);
        let (index, diagnostics) = scan(&bytes, SESSION);
        assert_eq!(index.found, 2);
        assert_eq!(diagnostics.of(WarningKind::BadBuffer), 1);
    }

    #[test]
    fn unused_space_is_a_warning_only_in_a_file_that_was_not_preallocated() {
        let bytes = [buffer(1), vec![0; 512]].concat();
        assert_eq!(scan(&bytes, SESSION).1.of(WarningKind::EmptyBuffer), 2);
        let preallocated = Session { log_file_mode: MODE_PREALLOCATE, ..SESSION };
        assert!(scan(&bytes, preallocated).1.warnings().is_empty());
    }

    #[test]
    fn a_cut_last_buffer_is_kept_and_counted() {
        let bytes = [buffer(1), buffer(2)].concat();
        let (index, diagnostics) = scan(&bytes[..400], SESSION);
        assert_eq!(index.buffers[1].stored, 144);
        assert_eq!(diagnostics.of(WarningKind::TruncatedBuffer), 1);
    }

    #[test]
    fn a_compressed_file_ends_at_a_bad_header() {
        let mut bytes = [buffer(1), buffer(2), buffer(3)].concat();
        bytes[256..260].fill(0xEE);
        let compressed = Session { log_file_mode: MODE_COMPRESSED, ..SESSION };
        let (index, diagnostics) = scan(&bytes, compressed);
        assert_eq!(index.found, 1);
        assert_eq!(diagnostics.of(WarningKind::UnreadableRest), 1);
    }
}
