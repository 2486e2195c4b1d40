//! Numbers bytes that may repeat in events.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use handlescope_model::guard::lock;

use super::decoded::DecodedBuffer;
use crate::intern::FingerprintTable;

/// Maximum number of distinct repeated bytes that are numbered, for a table of 140 MB. A trace may have millions of
/// stacks of events that nothing keeps.
pub const MAX_REPEATED: u32 = 1 << 22;

/// Numbers of the bytes that [`Selector::repeated`] returned. Which bytes get which number does not matter, so the
/// thread with less to do assigns them: the merging one if it waits for buffers, else the decoding ones.
///
/// [`Selector::repeated`]: super::Selector::repeated
#[derive(Default)]
pub struct RepeatedBytes {
    numbers: Mutex<FingerprintTable>,
    /// Groups of decoded buffers waiting for the merge.
    waiting: AtomicUsize,
}

impl RepeatedBytes {
    /// Numbers the bytes of a decoded group about to wait for the merge, if other groups are already waiting.
    pub fn before_waiting(&self, group: &mut [DecodedBuffer]) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) > 0 {
            group.iter_mut().for_each(|buffer| self.number(buffer));
        }
    }

    /// Counts one waiting group less.
    pub fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Numbers the bytes of a buffer unless that was done. They are numbered all at once, so that the fetches of
    /// uncached table entries overlap.
    pub fn number(&self, buffer: &mut DecodedBuffer) {
        let DecodedBuffer { events, parts, fingerprints, part_fingerprints, .. } = buffer;
        if fingerprints.is_empty() && part_fingerprints.is_empty() {
            return;
        }
        let mut numbers = lock(&self.numbers);
        let mut number = |fingerprint| {
            let number = numbers.number_below(MAX_REPEATED, fingerprint);
            number.and_then(|number| NonZeroU32::new(number + 1))
        };
        for (part, fingerprint) in parts.iter_mut().zip(part_fingerprints.drain(..)) {
            part.number = number(fingerprint);
        }
        for (at, fingerprint) in fingerprints.drain(..) {
            if let Some(event) = events.get_mut(at as usize) {
                event.repeated = number(fingerprint);
            }
        }
    }
}
