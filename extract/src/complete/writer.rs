//! Writes buffers of equal size, filled event by event, and the counts of the copy in the trace header event.

use std::io::{self, Seek, SeekFrom, Write};

use crate::etl::{BUFFER_HEADER_SIZE, FLAG_COMPRESSED, MODE_COMPRESSED, buffer_offset, frame};
use crate::payload::{TraceHeader, behind_pointers, header_offset};

/// Byte that fills the rest of a buffer.
const FILLER: u8 = 0xFF;

/// Writes buffers. Events that do not fit into a buffer continue in another one with the same header.
pub struct BufferWriter<W> {
    out: W,
    /// Size of every buffer in bytes.
    size: usize,
    /// Number of buffers written.
    written: u32,
    /// Buffer being filled, including its header; empty between two buffers.
    bytes: Vec<u8>,
}

impl<W: Write> BufferWriter<W> {
    /// Creates a writer of buffers of `size` bytes.
    pub fn new(out: W, size: usize) -> Self {
        Self { out, size, written: 0, bytes: Vec::with_capacity(size) }
    }

    /// Begins a buffer with the header at the start of `header`.
    pub fn begin(&mut self, header: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(header.get(..BUFFER_HEADER_SIZE).unwrap_or(header));
        self.bytes.resize(BUFFER_HEADER_SIZE, 0);
    }

    /// Adds an event. An event too large for any buffer is left out.
    pub fn push(&mut self, event: &[u8]) -> io::Result<()> {
        let room = event.len().next_multiple_of(8);
        if room > self.size.saturating_sub(BUFFER_HEADER_SIZE) {
            return Ok(());
        }
        if self.bytes.len() + room > self.size {
            self.write()?;
            self.bytes.truncate(BUFFER_HEADER_SIZE);
        }
        let end = self.bytes.len() + room;
        self.bytes.extend_from_slice(event);
        self.bytes.resize(end, 0);
        Ok(())
    }

    pub fn end(&mut self) -> io::Result<()> {
        self.write()?;
        self.bytes.clear();
        Ok(())
    }

    /// Returns the number of buffers written, and the writer.
    pub fn finish(self) -> (u32, W) {
        (self.written, self.out)
    }

    /// Writes the buffer without clearing it.
    fn write(&mut self) -> io::Result<()> {
        let filled = self.bytes.len();
        let flags = self.bytes.get(buffer_offset::FLAGS..).and_then(<[u8]>::first_chunk);
        let flags = flags.map_or(0, |flags| u16::from_le_bytes(*flags)) & !FLAG_COMPRESSED;
        let fields: [(usize, &[u8]); 6] = [
            (buffer_offset::SIZE, &(self.size as u32).to_le_bytes()),
            (buffer_offset::SAVED, &(filled as u32).to_le_bytes()),
            (buffer_offset::CURRENT, &(filled as u32).to_le_bytes()),
            (buffer_offset::SEQUENCE, &i64::from(self.written).to_le_bytes()),
            (buffer_offset::FILLED, &(filled as u32).to_le_bytes()),
            (buffer_offset::FLAGS, &flags.to_le_bytes()),
        ];
        for (at, field) in fields {
            if let Some(target) = self.bytes.get_mut(at..at + field.len()) {
                target.copy_from_slice(field);
            }
        }
        self.out.write_all(&self.bytes)?;
        io::copy(
            &mut io::Read::take(io::repeat(FILLER), (self.size - filled) as u64),
            &mut self.out,
        )?;
        self.written = self.written.saturating_add(1);
        Ok(())
    }
}

/// Losses that sessions counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedLosses {
    events: u32,
    buffers: u32,
}

impl CountedLosses {
    pub fn new(header: &TraceHeader) -> Self {
        Self { events: header.events_lost, buffers: header.buffers_lost }
    }

    /// Adds the losses of another session.
    pub fn add(&mut self, header: &TraceHeader) {
        self.events = self.events.saturating_add(header.events_lost);
        self.buffers = self.buffers.saturating_add(header.buffers_lost);
    }
}

/// Position of the trace header event's payload in the file, and its fields that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderEvent {
    payload: u64,
    pointer_size: usize,
    log_file_mode: u32,
}

impl HeaderEvent {
    /// Finds the trace header event, which is the first event in the first buffer of a file.
    pub fn in_buffer(bytes: &[u8]) -> Option<Self> {
        let events = bytes.get(BUFFER_HEADER_SIZE..)?;
        let framed =
            frame(events, 0).ok().filter(|framed| framed.event.id == TraceHeader::EVENT)?;
        let header = TraceHeader::decode(&framed.event)?;
        Some(Self {
            payload: (BUFFER_HEADER_SIZE + framed.size - framed.event.payload.len()) as u64,
            pointer_size: framed.event.pointer_size,
            log_file_mode: header.log_file_mode,
        })
    }

    /// Writes the copy's figures into the event: size and number of its buffers, and the losses.
    pub fn rewrite<W: Write + Seek>(
        self,
        out: &mut W,
        buffer_size: u32,
        buffers: u32,
        lost: CountedLosses,
    ) -> io::Result<()> {
        for (at, value) in [
            (header_offset::BUFFER_SIZE, buffer_size),
            (header_offset::LOG_FILE_MODE, self.log_file_mode & !MODE_COMPRESSED),
            (header_offset::BUFFERS_WRITTEN, buffers),
            (header_offset::EVENTS_LOST, lost.events),
            (behind_pointers(header_offset::BUFFERS_LOST, self.pointer_size), lost.buffers),
        ] {
            out.seek(SeekFrom::Start(self.payload + at as u64))?;
            out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::BufferHeader;

    /// Header of a compressed buffer of processor 3.
    fn header() -> Vec<u8> {
        let mut bytes = vec![0; 100];
        bytes[0..4].copy_from_slice(&100u32.to_le_bytes());
        bytes[40] = 3;
        bytes[48..52].copy_from_slice(&100u32.to_le_bytes());
        bytes[52] = 0x40;
        bytes
    }

    #[test]
    fn events_that_do_not_fit_go_on_in_a_buffer_of_the_same_processor() {
        let mut writer = BufferWriter::new(Vec::new(), 128);
        writer.begin(&header());
        for event in [[1; 20], [2; 20], [3; 20]] {
            writer.push(&event).unwrap();
        }
        writer.push(&[9; 60]).unwrap();
        writer.end().unwrap();
        let (written, bytes) = writer.finish();
        assert_eq!((written, bytes.len()), (2, 256));
        let buffers: Vec<_> = bytes.chunks(128).collect();
        let headers: Vec<_> =
            buffers.iter().map(|bytes| BufferHeader::parse(bytes).unwrap()).collect();
        let filled: Vec<_> = headers.iter().map(|header| (header.size, header.filled)).collect();
        assert_eq!(filled, [(128, 72 + 48), (128, 72 + 24)]);
        assert!(headers.iter().all(|header| header.processor == 3 && !header.is_compressed()));
        assert_eq!((buffers[0][24], buffers[1][24]), (0, 1));
        assert_eq!((&buffers[1][72..92], &buffers[1][96..98]), (&[3; 20][..], &[FILLER; 2][..]));
    }

    #[test]
    fn a_buffer_without_events_is_kept() {
        let mut writer = BufferWriter::new(Vec::new(), 128);
        writer.begin(&header());
        writer.end().unwrap();
        let (written, bytes) = writer.finish();
        assert_eq!((written, BufferHeader::parse(&bytes).unwrap().filled), (1, 72));
    }
}
