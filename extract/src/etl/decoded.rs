//! A buffer on its way from a decoder through the merge, and back to a decoder.

use std::num::NonZeroU32;
use std::sync::Mutex;

use handlescope_model::guard::lock;

use super::stack_parts::{BufferPart, PartPlaces};
use crate::intern::Fingerprint;
use crate::prefetch::prefetch;

/// A decoded buffer: its bytes and where its selected events are.
#[derive(Debug, Default)]
pub(super) struct DecodedBuffer {
    /// Offset of the buffer in the file.
    pub(super) offset: u64,
    /// Sequence number in the session; ascending per processor, also in a circular file.
    pub(super) sequence: u64,
    /// Processor of its events.
    pub(super) processor: u16,
    /// Whether `data` was expanded, so that positions in it are not positions in the file.
    pub(super) expanded: bool,
    /// The buffer from its header on.
    pub(super) data: Vec<u8>,
    /// Valid bytes of `data`.
    pub(super) valid: usize,
    /// Bytes that it occupies in the file.
    pub(super) stored: u32,
    /// The selected events, without the parts of stacks that are handed out with them.
    pub(super) events: Vec<SelectedEvent>,
    /// Parts of stacks that are handed out with their events.
    pub(super) parts: Vec<BufferPart>,
    /// The bytes of each part that may repeat.
    pub(super) part_fingerprints: Vec<Fingerprint>,
    /// The bytes of events that may repeat, with the positions of these among the selected ones.
    pub(super) fingerprints: Vec<(u32, Fingerprint)>,
}

/// A selected event of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SelectedEvent {
    /// Raw time.
    pub(super) time: i64,
    /// Position in the buffer.
    pub(super) position: u32,
    /// The number of its bytes that repeat plus one.
    pub(super) repeated: Option<NonZeroU32>,
    /// The parts of its stack in the buffer.
    pub(super) parts: PartPlaces,
}

/// Bytes of the header and the first fields of most events, less than a line of the cache.
const EVENT_BYTES: usize = 48;

impl DecodedBuffer {
    /// Removes the events.
    fn clear(&mut self) {
        self.events.clear();
        self.parts.clear();
        self.part_fingerprints.clear();
        self.fingerprints.clear();
    }

    /// Fetches the bytes of an event that are read first into the cache, without waiting for them.
    pub(super) fn fetch(&self, event: &SelectedEvent) {
        let at = event.position as usize;
        for part in [at, at + EVENT_BYTES] {
            self.data.get(part..).into_iter().for_each(prefetch);
        }
    }
}

/// Buffers whose events were handed out: their memory is used again, the latest first, which may be in a cache.
#[derive(Default)]
pub(super) struct SpareBuffers(Mutex<Vec<DecodedBuffer>>);

impl SpareBuffers {
    /// A buffer without events, whose other fields are those of an earlier one.
    pub(super) fn take(&self) -> DecodedBuffer {
        let mut buffer = lock(&self.0).pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: DecodedBuffer) {
        lock(&self.0).push(buffer);
    }
}
