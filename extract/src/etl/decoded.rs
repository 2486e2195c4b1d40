//! Buffers on their way from a decoder through the merge and back to a decoder.

use std::num::NonZeroU32;

use super::gather::Spare;
use super::stack_parts::{BufferPart, PartPlaces};
use crate::intern::Fingerprint;
use crate::prefetch::prefetch;

/// Decoded buffer: its bytes, and where its selected events are.
#[derive(Debug, Default)]
pub struct DecodedBuffer {
    /// Offset of the buffer in the file.
    pub offset: u64,
    /// Sequence number in the session; ascending per processor, even in a circular file.
    pub sequence: u64,
    /// Processor of its events.
    pub processor: u16,
    /// Whether `data` was expanded, so its positions are not positions in the file.
    pub expanded: bool,
    /// The buffer, including its header.
    pub data: Vec<u8>,
    /// Valid bytes of `data`.
    pub valid: usize,
    /// Bytes it occupies in the file.
    pub stored: u32,
    /// Selected events, except stack parts that are handed out with their event.
    pub events: Vec<SelectedEvent>,
    /// Stack parts that are handed out with their events.
    pub parts: Vec<BufferPart>,
    /// Fingerprint of each part's bytes, which may repeat.
    pub part_fingerprints: Vec<Fingerprint>,
    /// Fingerprints of bytes that may repeat, with the position of their event in `events`.
    pub fingerprints: Vec<(u32, Fingerprint)>,
}

/// Selected event of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SelectedEvent {
    /// Raw time.
    pub time: i64,
    /// Position in the buffer.
    pub position: u32,
    /// Number of its repeated bytes, plus one.
    pub repeated: Option<NonZeroU32>,
    /// Parts of its stack in the buffer.
    pub parts: PartPlaces,
}

/// Bytes that hold the header and first fields of most events; less than a cache line.
const EVENT_BYTES: usize = 48;

impl DecodedBuffer {
    /// Returns the offset of an event in the file; if the buffer is compressed, the buffer's offset.
    pub fn offset_of(&self, event: &SelectedEvent) -> u64 {
        self.offset + if self.expanded { 0 } else { u64::from(event.position) }
    }

    /// Prefetches the bytes of an event that are read first.
    pub fn fetch(&self, event: &SelectedEvent) {
        let at = event.position as usize;
        for part in [at, at + EVENT_BYTES] {
            self.data.get(part..).into_iter().for_each(prefetch);
        }
    }
}

#[cfg(test)]
impl DecodedBuffer {
    /// Creates a buffer of events with these hooks and times.
    pub fn from_events(events: &[(u16, i64)]) -> Self {
        let mut buffer = Self::default();
        for (hook, time) in events {
            let position = buffer.data.len() as u32;
            buffer.events.push(SelectedEvent { time: *time, position, ..SelectedEvent::default() });
            // A 64-bit PERFINFO_TRACE_HEADER: version, type, marker, size, hook and time.
            buffer.data.extend([0, 0, 0x11, 0xC0, 16, 0]);
            buffer.data.extend(hook.to_le_bytes());
            buffer.data.extend(time.to_le_bytes());
        }
        buffer.valid = buffer.data.len();
        buffer
    }
}

impl Spare for DecodedBuffer {
    /// Removes the events; the other fields keep the values of the previous buffer.
    fn clear(&mut self) {
        self.events.clear();
        self.parts.clear();
        self.part_fingerprints.clear();
        self.fingerprints.clear();
    }
}
