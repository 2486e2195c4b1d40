//! The events of decoded buffers in time order, by a loser tree (Knuth, The Art of Computer Programming, volume 3, 5.4.1).

use std::num::NonZeroU32;

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
    /// The selected events, without the parts of stacks that are handed out with them.
    pub(super) events: Vec<SelectedEvent>,
    /// Parts of stacks that are handed out with their events.
    pub(super) parts: Vec<BufferPart>,
    /// The bytes of each part that may repeat.
    pub(super) part_fingerprints: Vec<Fingerprint>,
    /// The bytes of events that may repeat, with the positions of these among the selected ones.
    pub(super) fingerprints: Vec<(u32, Fingerprint)>,
}

impl DecodedBuffer {
    /// Removes the events.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.parts.clear();
        self.part_fingerprints.clear();
        self.fingerprints.clear();
    }

    /// Fetches the bytes of an event that are read first into the cache, without waiting for them.
    fn fetch(&self, event: &SelectedEvent) {
        let at = event.position as usize;
        for part in [at, at + EVENT_BYTES] {
            self.data.get(part..).into_iter().for_each(prefetch);
        }
    }
}

/// Bytes of the header and the first fields of most events, less than a line of the cache.
const EVENT_BYTES: usize = 48;

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

/// Sort key of the next event of a buffer among the events of all buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Raw time.
    time: i64,
    processor: u16,
    sequence: u64,
    offset: u64,
}

impl Key {
    /// Key of no buffer: after all others, of which none begins at the last byte.
    const NONE: Self =
        Self { time: i64::MAX, processor: u16::MAX, sequence: u64::MAX, offset: u64::MAX };
}

/// Events of a buffer that are fetched into the cache before they are handed out: what the thread that decoded the
/// buffer has read is in the cache of another processor.
const AHEAD: usize = 2;

/// Positions of events that are fetched before that.
const POSITIONS_AHEAD: usize = 8;

/// Buffers whose events are being merged.
///
/// They are ordered by [`Key`]: events of one processor with equal times keep their order in the file, and events of
/// several processors with equal times get an order that does not depend on how a merge or a copy numbers the buffers.
#[derive(Default)]
pub(super) struct Merge {
    /// A power of two, or none.
    slots: Vec<Slot>,
    /// The next event of each slot.
    keys: Vec<Key>,
    /// For each inner node of the tree over the slots the one that lost there: node 1 is the root, and the children of node n
    /// are 2n and 2n + 1.
    losers: Vec<u32>,
    /// The slot with the first event of all.
    winner: usize,
    free: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    buffer: DecodedBuffer,
    next: usize,
}

impl Merge {
    /// Number of buffers that still have events.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Time of the next event.
    pub(super) fn next_time(&self) -> Option<i64> {
        if self.len() == 0 { None } else { Some(self.keys[self.winner].time) }
    }

    /// Takes a buffer in; gives it back when it has no events.
    pub(super) fn add(&mut self, buffer: DecodedBuffer) -> Option<DecodedBuffer> {
        let Some(SelectedEvent { time, .. }) = buffer.events.first().copied() else {
            return Some(buffer);
        };
        let DecodedBuffer { processor, sequence, offset, .. } = buffer;
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop()?;
        buffer.events.iter().take(AHEAD).for_each(|event| buffer.fetch(event));
        self.slots[slot] = Slot { buffer, next: 0 };
        self.keys[slot] = Key { time, processor, sequence, offset };
        self.play();
        None
    }

    /// Hands out the next event; returns its buffer when that was its last event.
    pub(super) fn next(
        &mut self,
        take: impl FnOnce(&DecodedBuffer, SelectedEvent),
    ) -> Option<DecodedBuffer> {
        if self.len() == 0 {
            return None;
        }
        let winner = self.winner;
        let Slot { buffer, next } = &mut self.slots[winner];
        buffer.events.get(*next + POSITIONS_AHEAD..).into_iter().for_each(prefetch);
        buffer.events.get(*next + AHEAD).into_iter().for_each(|event| buffer.fetch(event));
        if let Some(event) = buffer.events.get(*next) {
            take(buffer, *event);
        }
        *next += 1;
        if let Some(event) = buffer.events.get(*next) {
            self.keys[winner].time = event.time;
            self.replay();
            return None;
        }
        let buffer = std::mem::take(buffer);
        self.keys[winner] = Key::NONE;
        self.free.push(winner);
        self.replay();
        Some(buffer)
    }

    /// Adds as many free slots as there are.
    fn grow(&mut self) {
        let (before, count) = (self.slots.len(), (2 * self.slots.len()).max(1));
        self.slots.resize_with(count, Slot::default);
        self.keys.resize(count, Key::NONE);
        self.losers = vec![0; count];
        self.free.extend((before..count).rev());
    }

    /// Plays the matches that the winner won with its key of now.
    ///
    /// Who wins cannot be foreseen, so that nothing here branches on it; times nearly always differ.
    fn replay(&mut self) {
        let Self { keys, losers, .. } = self;
        let mut winner = self.winner as u32;
        let mut time = keys[self.winner].time;
        let mut node = (losers.len() + self.winner) / 2;
        while node > 0 {
            let loser = losers[node];
            let loser_time = keys[loser as usize].time;
            let is_beaten = if loser_time == time {
                keys[loser as usize] < keys[winner as usize]
            } else {
                loser_time < time
            };
            losers[node] = if is_beaten { winner } else { loser };
            winner = if is_beaten { loser } else { winner };
            time = if is_beaten { loser_time } else { time };
            node /= 2;
        }
        self.winner = winner as usize;
    }

    /// Plays all matches.
    fn play(&mut self) {
        let Self { keys, losers, .. } = self;
        let count = keys.len();
        // Of each node; the slots are the leaves.
        let mut winners = vec![0; count];
        winners.extend(0..count);
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let is_right = keys[right] < keys[left];
            let (winner, loser) = if is_right { (right, left) } else { (left, right) };
            (winners[node], losers[node]) = (winner, loser as u32);
        }
        self.winner = winners[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(time: i64, position: u32) -> SelectedEvent {
        SelectedEvent { time, position, ..SelectedEvent::default() }
    }

    fn buffer(offset: u64, times: &[i64]) -> DecodedBuffer {
        DecodedBuffer {
            offset,
            events: times.iter().map(|time| selected(*time, offset as u32)).collect(),
            ..DecodedBuffer::default()
        }
    }

    fn drain(merge: &mut Merge) -> Vec<u64> {
        let mut order = Vec::new();
        while merge.len() > 0 {
            merge.next(|buffer, _| order.push(buffer.offset));
        }
        order
    }

    #[test]
    fn events_of_several_processors_come_in_time_order() {
        let mut merge = Merge::default();
        merge.add(buffer(0, &[1, 4, 5]));
        merge.add(buffer(1, &[2, 3, 6]));
        assert_eq!(drain(&mut merge), [0, 1, 1, 0, 0, 1]);
    }

    /// Every number of buffers, added at any time, gives the events in the order of their keys.
    #[test]
    fn many_buffers_come_in_the_order_of_their_keys() {
        for count in [1_u64, 2, 3, 5, 8, 17, 100] {
            let mut merge = Merge::default();
            let (mut seed, mut order) = (count, Vec::new());
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) % 7
            };
            let mut waiting: Vec<(i64, u64)> = Vec::new();
            for offset in 0..count {
                let mut times: Vec<i64> = (0..next()).map(|_| next() as i64).collect();
                times.sort_unstable();
                waiting.extend(times.iter().map(|time| (*time, offset)));
                merge.add(buffer(offset, &times));
            }
            waiting.sort_unstable();
            while let Some(time) = merge.next_time() {
                merge.next(|buffer, event| order.push((event.time, buffer.offset)));
                assert_eq!(order.last().map(|(last, _)| *last), Some(time));
            }
            assert_eq!(order, waiting, "{count} buffers");
            assert!(merge.next(|_, _| panic!("no event is left")).is_none());
        }
    }

    #[test]
    fn equal_times_keep_their_order_in_the_file() {
        let mut merge = Merge::default();
        merge.add(buffer(9, &[1, 1]));
        merge.add(buffer(3, &[1, 1]));
        assert_eq!(drain(&mut merge), [3, 3, 9, 9]);
    }

    #[test]
    fn equal_times_keep_the_order_of_buffers_where_the_file_was_overwritten() {
        let mut merge = Merge::default();
        merge.add(DecodedBuffer { sequence: 8, ..buffer(3, &[1]) });
        merge.add(DecodedBuffer { sequence: 7, ..buffer(9, &[1]) });
        assert_eq!(drain(&mut merge), [9, 3]);
    }

    #[test]
    fn a_buffer_comes_back_when_it_is_empty() {
        let mut merge = Merge::default();
        assert!(merge.add(buffer(0, &[])).is_some());
        merge.add(buffer(7, &[1, 2]));
        assert!(merge.next(|_, _| {}).is_none());
        assert_eq!(merge.next_time(), Some(2));
        assert_eq!(merge.next(|_, _| {}).map(|buffer| buffer.offset), Some(7));
        assert_eq!(merge.next_time(), None);
    }
}
