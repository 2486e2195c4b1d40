//! Reads the events of a further trace, processor by processor.

use std::collections::{BTreeMap, VecDeque};

use crate::error::ExtractError;
use crate::etl::{BUFFER_HEADER_SIZE, EventFrame, IndexedBuffer, frame, is_end};
use crate::payload::TraceHeader;
use crate::recording::OpenRecording;

/// Trace with events that go into the copy.
pub struct Further {
    open: OpenRecording,
    processors: BTreeMap<u16, Cursor>,
    stored: Vec<u8>,
}

/// Position in the events of a processor.
#[derive(Default)]
struct Cursor {
    buffers: VecDeque<IndexedBuffer>,
    /// Current buffer including its header; empty before the first and after the last buffer.
    bytes: Vec<u8>,
    /// End of the events in the buffer.
    valid: usize,
    /// Offset and size of the next event, and the distance to the one after it.
    at: usize,
    size: usize,
    stride: usize,
    time: i64,
}

impl Further {
    pub fn new(open: OpenRecording) -> Self {
        let mut processors = BTreeMap::<u16, Cursor>::new();
        for buffer in &open.index.buffers {
            processors.entry(buffer.header.processor).or_default().buffers.push_back(*buffer);
        }
        Self { open, processors, stored: Vec::new() }
    }

    /// Returns the processors it has events of.
    pub fn processors(&self) -> impl Iterator<Item = u16> {
        self.processors.keys().copied()
    }

    /// Returns the time of a processor's next event.
    ///
    /// # Errors
    /// Fails if the trace cannot be read.
    pub fn next_time(&mut self, processor: u16) -> Result<Option<i64>, ExtractError> {
        let Self { open, processors, stored } = self;
        let Some(cursor) = processors.get_mut(&processor) else { return Ok(None) };
        while cursor.size == 0 {
            let Some(buffer) = cursor.buffers.pop_front() else {
                processors.remove(&processor);
                return Ok(None);
            };
            open.expanded(&buffer, stored, &mut cursor.bytes)?;
            cursor.valid = cursor.bytes.len().min(buffer.header.filled as usize);
            (cursor.at, cursor.time) = (BUFFER_HEADER_SIZE, buffer.first_time);
            cursor.look();
        }
        Ok(Some(cursor.time))
    }

    /// Returns the header of the buffer that contains a processor's next event.
    pub fn header(&self, processor: u16) -> &[u8] {
        self.processors.get(&processor).map_or(&[], |cursor| &cursor.bytes)
    }

    /// Takes the next event of a processor.
    pub fn take(&mut self, processor: u16) -> &[u8] {
        let Some(cursor) = self.processors.get_mut(&processor) else { return &[] };
        let taken = cursor.at..cursor.at + cursor.size;
        cursor.at += cursor.stride;
        cursor.look();
        cursor.bytes.get(taken).unwrap_or_default()
    }
}

impl Cursor {
    /// Frames the event at the position, skipping the trace's header event. The size is 0 after the last event, and
    /// after damage.
    fn look(&mut self) {
        loop {
            self.size = 0;
            let rest = self.bytes.get(self.at..self.valid).filter(|rest| !is_end(rest));
            let Some(Ok(EventFrame { event, size, stride, .. })) =
                rest.map(|rest| frame(rest, self.time))
            else {
                return;
            };
            (self.time, self.stride) = (event.time, stride);
            if event.id != TraceHeader::EVENT {
                self.size = size;
                return;
            }
            self.at += stride;
        }
    }
}
