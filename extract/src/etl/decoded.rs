//! A buffer on its way from a decoder through the merge, and back to a decoder.

use std::num::NonZeroU32;

use super::gather::Spare;
use super::stack_parts::{BufferPart, PartPlaces};
use crate::intern::Fingerprint;
use crate::prefetch::prefetch;

/// A decoded buffer: its bytes and where its selected events are.
#[derive(Debug, Default)]
pub struct DecodedBuffer {
    /// Offset of the buffer in the file.
    pub offset: u64,
    /// Sequence number in the session; ascending per processor, also in a circular file.
    pub sequence: u64,
    /// Processor of its events.
    pub processor: u16,
    /// Whether `data` was expanded, so that positions in it are not positions in the file.
    pub expanded: bool,
    /// The buffer from its header on.
    pub data: Vec<u8>,
    /// Valid bytes of `data`.
    pub valid: usize,
    /// Bytes that it occupies in the file.
    pub stored: u32,
    /// The selected events, without the parts of stacks that are handed out with them.
    pub events: Vec<SelectedEvent>,
    /// Parts of stacks that are handed out with their events.
    pub parts: Vec<BufferPart>,
    /// The bytes of each part that may repeat.
    pub part_fingerprints: Vec<Fingerprint>,
    /// The bytes of events that may repeat, with the positions of these among the selected ones.
    pub fingerprints: Vec<(u32, Fingerprint)>,
}

/// A selected event of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SelectedEvent {
    /// Raw time.
    pub time: i64,
    /// Position in the buffer.
    pub position: u32,
    /// The number of its bytes that repeat plus one.
    pub repeated: Option<NonZeroU32>,
    /// The parts of its stack in the buffer.
    pub parts: PartPlaces,
}

/// Bytes of the header and the first fields of most events, less than a line of the cache.
const EVENT_BYTES: usize = 48;

impl DecodedBuffer {
    /// Offset of an event in the file; that of the buffer if it is compressed.
    pub fn offset_of(&self, event: &SelectedEvent) -> u64 {
        self.offset + if self.expanded { 0 } else { u64::from(event.position) }
    }

    /// Fetches the bytes of an event that are read first into the cache, without waiting for them.
    pub fn fetch(&self, event: &SelectedEvent) {
        let at = event.position as usize;
        for part in [at, at + EVENT_BYTES] {
            self.data.get(part..).into_iter().for_each(prefetch);
        }
    }
}

#[cfg(test)]
impl DecodedBuffer {
    /// A buffer of events by their hooks and times.
    pub fn of_events(events: &[(u16, i64)]) -> Self {
        let mut buffer = Self::default();
        for (hook, time) in events {
            let position = buffer.data.len() as u32;
            buffer.events.push(SelectedEvent { time: *time, position, ..SelectedEvent::default() });
            // A PERFINFO_TRACE_HEADER of 64 bits: version, type, marker, size, hook and time.
            buffer.data.extend([0, 0, 0x11, 0xC0, 16, 0]);
            buffer.data.extend(hook.to_le_bytes());
            buffer.data.extend(time.to_le_bytes());
        }
        buffer.valid = buffer.data.len();
        buffer
    }
}

impl Spare for DecodedBuffer {
    /// Removes the events; the other fields stay those of the buffer before.
    fn clear(&mut self) {
        self.events.clear();
        self.parts.clear();
        self.part_fingerprints.clear();
        self.fingerprints.clear();
    }
}
