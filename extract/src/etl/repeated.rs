//! Numbers of bytes that may repeat in events.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use handlescope_model::guard::lock;

use super::decoded::DecodedBuffer;
use crate::intern::FingerprintTable;

/// Different bytes that are numbered because they may repeat, by numbers below this: 140 MB. A trace may have millions of
/// stacks of events that nothing keeps.
pub const MAX_REPEATED: u32 = 1 << 22;

/// Numbers of the bytes that [`Selector::repeated`] returned. It does not matter which bytes get which number, so whichever
/// thread has less to do assigns them: the one that merges if it waits for buffers, else those that decode.
///
/// [`Selector::repeated`]: super::Selector::repeated
#[derive(Default)]
pub struct Repeated {
    numbers: Mutex<FingerprintTable>,
    /// Groups of decoded buffers that wait for the merge.
    waiting: AtomicUsize,
}

impl Repeated {
    /// Numbers the bytes of a group of decoded buffers that is about to wait for the merge, if others do.
    pub fn before_waiting(&self, group: &mut [DecodedBuffer]) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) > 0 {
            group.iter_mut().for_each(|buffer| self.number(buffer));
        }
    }

    /// Counts a group that waits no more.
    pub fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Numbers the bytes of a buffer, unless that was done, all at once: the entries of the table, which are in no cache, are
    /// fetched side by side then.
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
