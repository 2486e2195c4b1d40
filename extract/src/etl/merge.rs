//! Orders the events of decoded buffers by time with a loser tree (Knuth, The Art of Computer Programming, volume 3,
//! 5.4.1).

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::buffer::IndexedBuffer;
use super::decoded::{DecodedBuffer, SelectedEvent};
use super::diagnostics::{Diagnostics, WarningKind};
use super::repeated::RepeatedBytes;
use crate::prefetch::prefetch;

/// Sort key of a buffer's next event among the events of all buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergeKey {
    /// Raw time.
    time: i64,
    processor: u16,
    sequence: u64,
    offset: u64,
}

impl MergeKey {
    /// Key of an empty slot. It sorts after all others, as no buffer begins at the last byte.
    const NONE: Self =
        Self { time: i64::MAX, processor: u16::MAX, sequence: u64::MAX, offset: u64::MAX };
}

/// Buffers with events still to be merged.
///
/// They are ordered by [`MergeKey`]. Events of one processor with equal times keep their order in the file. For several
/// processors, the order of equal times does not depend on how a merge or copy numbers the buffers.
#[derive(Default)]
pub struct Merge {
    /// The length is a power of two, or 0.
    slots: Vec<MergeSlot>,
    /// Key of each slot's next event.
    keys: Vec<MergeKey>,
    /// Slot that lost at each inner node of the tree over the slots. The root is node 1, and the children of node n are
    /// 2n and 2n + 1.
    losers: Vec<u32>,
    /// Slot with the first event of all.
    winner: usize,
    free: Vec<usize>,
}

#[derive(Default)]
struct MergeSlot {
    /// `None` if the slot is free.
    buffer: Option<Arc<DecodedBuffer>>,
    next: usize,
}

/// The next event.
pub struct Next {
    pub slot: usize,
    /// Position among the selected events of its buffer.
    at: usize,
    /// Raw time.
    time: i64,
    /// The buffer, if this was its last event.
    done: Option<Arc<DecodedBuffer>>,
}

/// Prefetch distance in events for their times. What the decoding thread has written is in another processor's cache.
const TIMES_AHEAD: usize = 8;

impl Merge {
    /// Returns the number of buffers that still have events.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<i64> {
        if self.len() == 0 { None } else { Some(self.keys[self.winner].time) }
    }

    /// Adds a buffer and returns its slot; `None` if the buffer has no events.
    pub fn add(&mut self, buffer: &Arc<DecodedBuffer>) -> Option<usize> {
        let SelectedEvent { time, .. } = *buffer.events.first()?;
        let DecodedBuffer { processor, sequence, offset, .. } = **buffer;
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop()?;
        self.slots[slot] = MergeSlot { buffer: Some(Arc::clone(buffer)), next: 0 };
        self.keys[slot] = MergeKey { time, processor, sequence, offset };
        self.play();
        Some(slot)
    }

    /// Returns the next event. After a buffer's last event, its slot is free and the merge drops the buffer.
    pub fn next(&mut self) -> Option<Next> {
        if self.len() == 0 {
            return None;
        }
        let winner = self.winner;
        let MergeSlot { buffer, next } = &mut self.slots[winner];
        let (at, time) = (*next, self.keys[winner].time);
        *next += 1;
        let events = buffer.as_ref().map_or(&[][..], |buffer| &buffer.events);
        events.get(*next + TIMES_AHEAD..).into_iter().for_each(prefetch);
        let mut done = None;
        if let Some(event) = events.get(*next) {
            self.keys[winner].time = event.time;
        } else {
            done = buffer.take();
            self.keys[winner] = MergeKey::NONE;
            self.free.push(winner);
        }
        self.replay();
        Some(Next { slot: winner, at, time, done })
    }

    /// Returns the buffers that still have events, with their slots.
    fn buffers(&self) -> impl Iterator<Item = (usize, &Arc<DecodedBuffer>)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, MergeSlot { buffer, .. })| Some((slot, buffer.as_ref()?)))
    }

    /// Doubles the number of slots.
    fn grow(&mut self) {
        let (before, count) = (self.slots.len(), (2 * self.slots.len()).max(1));
        self.slots.resize_with(count, MergeSlot::default);
        self.keys.resize(count, MergeKey::NONE);
        self.losers = vec![0; count];
        self.free.extend((before..count).rev());
    }

    /// Replays the winner's matches with its new key.
    ///
    /// Who wins cannot be predicted, so nothing here branches on it; times nearly always differ.
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
        // Winner of each node; the slots are the leaves.
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

/// Limits on the data merged at once.
#[derive(Debug, Clone, Copy)]
pub struct MergeLimits {
    pub buffers: usize,
    pub bytes: usize,
}

/// Number of events after which an order is sent on in any case, so that reading can be stopped.
const MAX_EVENTS: usize = 1 << 14;

/// Events of some buffers in merged order.
#[derive(Default)]
pub struct MergeOrder {
    pub events: Vec<EventPlace>,
    /// Buffers of the events, and possibly others.
    pub buffers: Vec<Arc<DecodedBuffer>>,
    /// Raw time of the latest event before the order. Before the first event it is the smallest number, so that no
    /// event is out of order.
    pub last_time: i64,
    /// Bytes of the file read for this order and all before it.
    pub read: u64,
}

/// Place of an event in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// Position of its buffer in the order's `buffers`.
    pub buffer: u32,
    /// Its position among the selected events of the buffer.
    pub event: u32,
}

/// Buffers of a file, and their groups.
#[derive(Clone, Copy, Default)]
pub struct IndexedGroups<'a> {
    pub buffers: &'a [IndexedBuffer],
    pub groups: &'a [Range<usize>],
}

/// The merging side: orders the events of all buffers.
pub struct Merger<'a> {
    /// Decoded groups of buffers, one from each decoder in turn.
    decoders: Vec<Receiver<Vec<DecodedBuffer>>>,
    indexed: IndexedGroups<'a>,
    merge: Merge,
    repeated: &'a RepeatedBytes,
    limits: MergeLimits,
    /// Bytes of the buffers being merged.
    bytes: usize,
    order: MergeOrder,
    /// For each slot, the position of its buffer in the order.
    places: Vec<u32>,
    /// Raw time of the latest event so far; the smallest number before the first event.
    last_time: i64,
    diagnostics: Diagnostics,
}

impl<'a> Merger<'a> {
    pub fn new(
        decoders: Vec<Receiver<Vec<DecodedBuffer>>>,
        repeated: &'a RepeatedBytes,
        limits: MergeLimits,
        indexed: IndexedGroups<'a>,
    ) -> Self {
        Self {
            decoders,
            indexed,
            merge: Merge::default(),
            repeated,
            limits,
            bytes: 0,
            order: MergeOrder { last_time: i64::MIN, ..MergeOrder::default() },
            places: Vec::new(),
            last_time: i64::MIN,
            diagnostics: Diagnostics::default(),
        }
    }

    /// Orders the events of decoded groups, and sends the order on group by group. Ends early if a decoder does or
    /// `take` says so. Returns the last decision about going on, and the diagnostics.
    pub fn run(
        mut self,
        mut take: impl FnMut(MergeOrder) -> ControlFlow<()>,
    ) -> (ControlFlow<()>, Diagnostics) {
        (self.order(&mut take), self.diagnostics)
    }

    fn order(&mut self, take: &mut impl FnMut(MergeOrder) -> ControlFlow<()>) -> ControlFlow<()> {
        let IndexedGroups { buffers, groups } = self.indexed;
        for (at, group) in groups.iter().enumerate() {
            let Ok(decoded) = self.decoders[at % self.decoders.len()].recv() else { break };
            self.repeated.taken();
            let indexed = buffers.get(group.clone()).unwrap_or_default();
            for (buffer, decoded) in indexed.iter().zip(decoded) {
                self.catch_up(buffer.first_time, take)?;
                self.add(decoded);
            }
            self.hand_on(take)?;
        }
        self.order_while(|merger| merger.merge.len() > 0, take)?;
        self.hand_on(take)
    }

    /// Sends on the order so far.
    fn hand_on(&mut self, take: &mut impl FnMut(MergeOrder) -> ControlFlow<()>) -> ControlFlow<()> {
        let Self { merge, order, places, last_time, .. } = self;
        let mut next = MergeOrder {
            events: Vec::with_capacity(order.events.len()),
            buffers: Vec::new(),
            last_time: *last_time,
            read: order.read,
        };
        for (slot, buffer) in merge.buffers() {
            places[slot] = next.buffers.len() as u32;
            next.buffers.push(Arc::clone(buffer));
        }
        take(std::mem::replace(order, next))
    }

    fn add(&mut self, mut buffer: DecodedBuffer) {
        self.repeated.number(&mut buffer);
        let Self { merge, order, places, .. } = self;
        order.read += u64::from(buffer.stored);
        let buffer = Arc::new(buffer);
        if let Some(slot) = merge.add(&buffer) {
            self.bytes += buffer.data.len();
            if places.len() <= slot {
                places.resize(slot + 1, 0);
            }
            places[slot] = order.buffers.len() as u32;
        }
        order.buffers.push(buffer);
    }

    /// Orders the events before `until`, the first time in the next buffer.
    fn catch_up(
        &mut self,
        until: i64,
        take: &mut impl FnMut(MergeOrder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let is_before = |merger: &Self| merger.merge.next_time().is_some_and(|time| time < until);
        self.order_while(is_before, take)?;
        let MergeLimits { buffers, bytes } = self.limits;
        if self.merge.len() > buffers || self.bytes > bytes {
            self.diagnostics.count(WarningKind::MergeOverflow, None);
            let is_much =
                |merger: &Self| merger.merge.len() > buffers / 2 || merger.bytes > bytes / 2;
            self.order_while(is_much, take)?;
        }
        ControlFlow::Continue(())
    }

    fn order_while(
        &mut self,
        is_ready: impl Fn(&Self) -> bool,
        take: &mut impl FnMut(MergeOrder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while is_ready(self) {
            let Some(Next { slot, at, time, done }) = self.merge.next() else { break };
            let place = EventPlace { buffer: self.places[slot], event: at as u32 };
            self.order.events.push(place);
            if time < self.last_time {
                self.count_out_of_order(place);
            } else {
                self.last_time = time;
            }
            if let Some(buffer) = done {
                self.bytes = self.bytes.saturating_sub(buffer.data.len());
            }
            if self.order.events.len() >= MAX_EVENTS {
                self.hand_on(take)?;
            }
        }
        ControlFlow::Continue(())
    }

    #[cold]
    fn count_out_of_order(&mut self, place: EventPlace) {
        let buffer = self.order.buffers.get(place.buffer as usize);
        let offset = buffer
            .and_then(|buffer| Some(buffer.offset_of(buffer.events.get(place.event as usize)?)));
        self.diagnostics.count(WarningKind::OutOfOrder, offset);
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

    /// A merge, with the offset of the buffer in each slot.
    #[derive(Default)]
    struct MergeFixture {
        merge: Merge,
        offsets: Vec<u64>,
    }

    impl MergeFixture {
        fn new(buffers: impl IntoIterator<Item = DecodedBuffer>) -> Self {
            let mut merged = Self::default();
            buffers.into_iter().for_each(|buffer| merged.add(buffer));
            merged
        }

        fn add(&mut self, buffer: DecodedBuffer) {
            if let Some(slot) = self.merge.add(&Arc::new(buffer)) {
                self.offsets.resize(self.offsets.len().max(slot + 1), 0);
            }
            let slots = self.merge.slots.iter().zip(&mut self.offsets);
            slots.for_each(|(slot, offset)| {
                slot.buffer.iter().for_each(|buffer| *offset = buffer.offset);
            });
        }

        /// Returns the offset of each event's buffer, in merged order.
        fn order(mut self) -> Vec<u64> {
            let slots = std::iter::from_fn(|| self.merge.next());
            slots.map(|next| self.offsets[next.slot]).collect()
        }
    }

    #[test]
    fn events_of_several_processors_come_in_time_order() {
        let merged = MergeFixture::new([buffer(0, &[1, 4, 5]), buffer(1, &[2, 3, 6])]);
        assert_eq!(merged.order(), [0, 1, 1, 0, 0, 1]);
    }

    /// Any number of buffers, added at any time, gives the events in the order of their keys.
    #[test]
    fn many_buffers_come_in_the_order_of_their_keys() {
        for count in [1_u64, 2, 3, 5, 8, 17, 100] {
            let mut merged = MergeFixture::default();
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
                merged.add(buffer(offset, &times));
            }
            waiting.sort_unstable();
            let MergeFixture { mut merge, offsets } = merged;
            while let Some(Next { slot, time, .. }) = merge.next() {
                order.push((time, offsets[slot]));
            }
            assert_eq!(order, waiting, "{count} buffers");
        }
    }

    #[test]
    fn equal_times_keep_their_order_in_the_file() {
        assert_eq!(
            MergeFixture::new([buffer(9, &[1, 1]), buffer(3, &[1, 1])]).order(),
            [3, 3, 9, 9]
        );
    }

    #[test]
    fn equal_times_keep_the_order_of_buffers_where_the_file_was_overwritten() {
        let later = DecodedBuffer { sequence: 8, ..buffer(3, &[1]) };
        let earlier = DecodedBuffer { sequence: 7, ..buffer(9, &[1]) };
        assert_eq!(MergeFixture::new([later, earlier]).order(), [9, 3]);
    }

    #[test]
    fn a_buffer_comes_back_with_its_last_event_and_one_without_events_has_no_slot() {
        let mut merge = Merge::default();
        assert_eq!(merge.add(&Arc::new(buffer(0, &[]))), None);
        let added = Arc::new(buffer(7, &[1, 2]));
        assert_eq!(merge.add(&added), Some(0));
        assert!(matches!(merge.next(), Some(Next { slot: 0, at: 0, done: None, .. })));
        assert_eq!(merge.next_time(), Some(2));
        let Next { at, done: last, .. } = merge.next().unwrap();
        assert_eq!(at, 1);
        assert!(last.is_some_and(|last| Arc::ptr_eq(&last, &added)));
        assert_eq!(Arc::strong_count(&added), 1, "the merge keeps no buffer without events");
        assert!(merge.next().is_none());
    }

    #[test]
    fn too_many_overlapping_buffers_are_merged_down_to_half_the_limit() {
        for (buffers, bytes) in [(4, usize::MAX), (usize::MAX, 400)] {
            let repeated = &RepeatedBytes::default();
            let mut merger = Merger::new(
                Vec::new(),
                repeated,
                MergeLimits { buffers, bytes },
                IndexedGroups::default(),
            );
            let mut left = Vec::new();
            for offset in 0..6 {
                merger.add(DecodedBuffer { data: vec![0; 100], ..buffer(offset, &[1]) });
                let flow = merger.catch_up(0, &mut |_| ControlFlow::Continue(()));
                assert!(flow.is_continue());
                left.push(merger.merge.len());
            }
            assert_eq!(left, [1, 2, 3, 4, 2, 3], "{buffers} buffers, {bytes} bytes");
            assert_eq!(merger.diagnostics.of(WarningKind::MergeOverflow), 1);
        }
    }
}
