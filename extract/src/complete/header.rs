//! The trace header event of the copy: what it counts is that of the copy.

use std::io::{self, Seek, SeekFrom, Write};

use crate::etl::{BUFFER_HEADER_SIZE, frame};
use crate::payload::TraceHeader;

/// Bit of the log file mode: buffers are compressed.
const COMPRESSED: u32 = 0x0400_0000;

/// What sessions lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedLosses {
    events: u32,
    buffers: u32,
}

impl CountedLosses {
    pub(super) fn of(header: &TraceHeader) -> Self {
        Self { events: header.events_lost, buffers: header.buffers_lost }
    }

    /// Adds what another session lost.
    pub(super) fn add(&mut self, header: &TraceHeader) {
        self.events = self.events.saturating_add(header.events_lost);
        self.buffers = self.buffers.saturating_add(header.buffers_lost);
    }
}

/// Where the payload of the trace header event stands in the file, and what of it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderEvent {
    payload: u64,
    pointer_size: usize,
    log_file_mode: u32,
}

impl HeaderEvent {
    /// That of the first buffer of a file, in which it is the first event.
    pub(super) fn in_buffer(bytes: &[u8]) -> Option<Self> {
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

    /// Writes the figures of the copy into it: size and number of its buffers, and what was lost.
    pub(super) fn rewrite<W: Write + Seek>(
        self,
        out: &mut W,
        buffer_size: u32,
        buffers: u32,
        lost: CountedLosses,
    ) -> io::Result<()> {
        let pointers = 2 * self.pointer_size as u64;
        for (at, value) in [
            (0, buffer_size),
            (32, self.log_file_mode & !COMPRESSED),
            (36, buffers),
            (48, lost.events),
            // After two pointers, the time zone, three times and the type of the clock.
            (56 + pointers + 204, lost.buffers),
        ] {
            out.seek(SeekFrom::Start(self.payload + at))?;
            out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }
}
