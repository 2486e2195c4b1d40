//! Decoded buffers merged into time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A decoded buffer: its bytes and where its selected events are.
#[derive(Debug, Default)]
pub(super) struct DecodedBuffer {
    /// Offset of the buffer in the file.
    pub(super) offset: u64,
    /// Its number in the session; those of a processor rise, also where a file is overwritten in circles.
    pub(super) sequence: u64,
    /// Processor of its events.
    pub(super) processor: u16,
    /// Whether `data` was expanded, so that positions in it are not positions in the file.
    pub(super) expanded: bool,
    /// The buffer from its header on.
    pub(super) data: Vec<u8>,
    /// Valid bytes of `data`.
    pub(super) valid: usize,
    /// Raw time and position of each selected event.
    pub(super) events: Vec<(i64, u32)>,
}

/// The place of the next event of a buffer among those of all buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Raw time.
    time: i64,
    processor: u16,
    sequence: u64,
    offset: u64,
}

/// Buffers whose events are being merged.
///
/// They are ordered by [`Key`]: events of a processor with equal times keep their order, and those of several have one that
/// does not depend on how a merge or a copy numbers the buffers.
#[derive(Default)]
pub(super) struct Merge {
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    slots: Vec<Slot>,
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
        self.heap.len()
    }

    /// Time of the next event.
    pub(super) fn next_time(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((key, _))| key.time)
    }

    /// Takes a buffer in; gives it back when it has no events.
    pub(super) fn add(&mut self, buffer: DecodedBuffer) -> Option<DecodedBuffer> {
        let Some((time, _)) = buffer.events.first() else { return Some(buffer) };
        let DecodedBuffer { processor, sequence, offset, .. } = buffer;
        let key = Key { time: *time, processor, sequence, offset };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        self.slots[slot] = Slot { buffer, next: 0 };
        self.heap.push(Reverse((key, slot)));
        None
    }

    /// Hands out the next event; returns its buffer when that was the last of it.
    pub(super) fn next(
        &mut self,
        event: impl FnOnce(&DecodedBuffer, usize),
    ) -> Option<DecodedBuffer> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, index)) = *top;
        let Slot { buffer, next } = &mut self.slots[index];
        if let Some((_, position)) = buffer.events.get(*next) {
            event(buffer, *position as usize);
        }
        *next += 1;
        if let Some((time, _)) = buffer.events.get(*next) {
            top.0.0.time = *time;
            return None;
        }
        PeekMut::pop(top);
        self.free.push(index);
        Some(std::mem::take(&mut self.slots[index].buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(offset: u64, times: &[i64]) -> DecodedBuffer {
        DecodedBuffer {
            offset,
            events: times.iter().map(|t| (*t, offset as u32)).collect(),
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
