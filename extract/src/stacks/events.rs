//! The stacks of handle events, and of events that are kept one by one.
//!
//! The events are in time order, so a part finds its event by searching the column of times, however late it comes:
//! no table of open stacks is needed.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::fragments::{FragmentRef, Fragments};
use super::gathered::GatheredStacks;
use super::parts::{
    FrameBytes, KEY_DELETE, KEY_RUNDOWN, Part, PartFrames, USER_PART, carried_parts, key_frames,
};
use crate::etl::{Event, StackPart};
use crate::raw::{IdSource, Timeline, UNKNOWN_ID};

/// Parts that may wait for an event that has not been read yet.
const MAX_WAITING: usize = 1 << 18;

/// Keeps the stacks of handle events. Events without process and thread take those of their stack.
#[derive(Default)]
pub struct EventStacks {
    fragments: Fragments,
    /// First and second part of each event's stack.
    parts: Vec<[FragmentRef; 2]>,
    /// Parts beyond the second; no known trace has any.
    more: HashMap<u32, Vec<FragmentRef>>,
    /// Parts whose event may still come, because its time is not before the time at which the part came.
    waiting: Vec<(Part, FragmentRef)>,
    /// A bound: no part waits for an earlier event. It spares looking at all of them for each part, because
    /// thousands may wait within one tick of a coarse clock. The largest number when none waits.
    first_waiting: i64,
    dropped: u64,
    /// Rows whose stacks get their user part from a later event.
    unfinished: Matches<u32>,
    /// Rows of events that carry their stacks themselves, ascending.
    carried: Vec<u32>,
}

impl EventStacks {
    /// The parts of an event's stack, in the order they were logged.
    pub fn parts(&self, row: usize) -> [FragmentRef; 2] {
        self.parts.get(row).copied().unwrap_or([FragmentRef::NONE; 2])
    }

    /// Parts of an event's stack beyond the second.
    pub fn more_parts(&self, row: usize) -> &[FragmentRef] {
        if self.more.is_empty() {
            return &[];
        }
        self.more.get(&(row as u32)).map_or(&[], Vec::as_slice)
    }

    /// Whether events carry their stacks themselves.
    pub fn has_carried(&self) -> bool {
        !self.carried.is_empty()
    }

    /// Rows of events that carry their stacks themselves.
    pub(super) fn carried(&self) -> &[u32] {
        &self.carried
    }

    pub fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    pub(super) fn define_key(&mut self, key: u64, frames: FrameBytes<'_>, pointer_size: usize) {
        self.fragments.define(key, frames, pointer_size);
    }

    /// Forgets the frames of keys; see [`Fragments::forget_keys`].
    pub(super) fn forget_keys(&mut self) {
        self.fragments.forget_keys();
    }

    /// Attaches the parts that still wait, at the end of the trace. Returns how many parts were dropped, and how many
    /// keys have no frames.
    pub(super) fn finish(&mut self, timeline: &mut Timeline) -> (u64, u64) {
        self.retry(i64::MAX, timeline);
        (self.dropped + self.waiting.len() as u64, self.fragments.unresolved_keys() as u64)
    }

    /// Attaches a part to its event, or lets it wait for it. Parts of events that are not kept are
    /// not interned.
    pub(super) fn offer(
        &mut self,
        part: Part,
        frames: PartFrames<'_>,
        event: &Event<'_>,
        timeline: &mut Timeline,
    ) {
        self.retry(event.time, timeline);
        if part.event_time < event.time {
            if let Some(row) = self.row_of(&part, timeline) {
                let fragment = self.fragments.add(frames, event.pointer_size, part.is_user);
                self.attach(row, &part, fragment, timeline);
            }
        } else if self.waiting.len() < MAX_WAITING {
            let fragment = self.fragments.add(frames, event.pointer_size, part.is_user);
            self.first_waiting = self.first_waiting.min(part.event_time);
            self.waiting.push((part, fragment));
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the parts of the stack of an event that come with it. If it has a row, it is this one.
    pub(crate) fn take_parts(&mut self, row: usize, event: &Event<'_>, timeline: &mut Timeline) {
        let Some(parts) = event.parts else { return };
        let has_row = timeline.ids.get(row).is_some_and(|ids| *ids != IdSource::Rundown);
        for part in parts.iter(event.time) {
            let StackPart { event_time, pid, tid, is_user, frames: bytes, number } = part;
            let part = Part { event_time, pid, tid, processor: event.processor, is_user };
            let row = if has_row { Some(row) } else { self.row_of(&part, timeline) };
            if let Some(row) = row {
                let frames = PartFrames::Here(FrameBytes { bytes, number });
                let fragment = self.fragments.add(frames, StackPart::POINTER_SIZE, is_user);
                self.attach(row, &part, fragment, timeline);
            }
        }
    }

    /// Adds the stacks of gathered rows, of which the first will be `row`.
    pub(crate) fn append(&mut self, row: usize, gathered: &mut GatheredStacks, rows: Range<usize>) {
        gathered.move_lists(&mut self.fragments);
        let stacks = gathered.parts_of(rows);
        if !stacks.is_empty() {
            self.parts.resize(row, [FragmentRef::NONE; 2]);
            self.parts.extend_from_slice(stacks);
        }
    }

    /// Takes the stacks that the event of a row carries itself.
    pub(crate) fn carry(&mut self, row: usize, event: &Event<'_>) {
        let mut missing = 0;
        for (at, part) in carried_parts(event).enumerate() {
            let fragment = self.fragments.add(part.frames, part.pointer_size, at > 0);
            self.put(row, fragment);
            missing = if at == 0 { part.match_id } else { 0 };
            if at == 0 {
                self.carried.push(row as u32);
            }
        }
        if missing != 0
            && let Some(tid) = event.tid
        {
            self.unfinished.wait(missing, tid, row as u32);
        }
    }

    /// Takes an event that carries the user part of the stack of an earlier one.
    pub(super) fn finish_carried(&mut self, event: &Event<'_>) {
        let (Some(part), Some(tid)) = (carried_parts(event).next(), event.tid) else { return };
        let rows = self.unfinished.take(part.match_id, tid);
        if !rows.is_empty() {
            let fragment = self.fragments.add(part.frames, part.pointer_size, true);
            rows.into_iter().for_each(|row| self.put(row as usize, fragment));
        }
    }

    /// Attaches the parts whose events must have been read by now.
    fn retry(&mut self, now: i64, timeline: &mut Timeline) {
        if self.first_waiting >= now {
            return;
        }
        self.first_waiting = i64::MAX;
        for (part, fragment) in std::mem::take(&mut self.waiting) {
            if part.event_time >= now {
                self.first_waiting = self.first_waiting.min(part.event_time);
                self.waiting.push((part, fragment));
            } else if let Some(row) = self.row_of(&part, timeline) {
                self.attach(row, &part, fragment, timeline);
            }
        }
    }

    /// Adds a part to the stack of a row.
    fn put(&mut self, row: usize, fragment: FragmentRef) {
        if self.parts.len() <= row {
            self.parts.resize(row + 1, [FragmentRef::NONE; 2]);
        }
        match self.parts[row].iter_mut().find(|slot| **slot == FragmentRef::NONE) {
            Some(slot) => *slot = fragment,
            None => self.more.entry(row as u32).or_default().push(fragment),
        }
    }

    fn attach(&mut self, row: usize, part: &Part, fragment: FragmentRef, timeline: &mut Timeline) {
        self.put(row, fragment);
        timeline.take_ids(row, part.pid, part.tid);
    }

    /// The row of the event with the part's time and thread.
    ///
    /// An event without thread is found by its processor, on which the kernel part is logged.
    /// When two events of one thread have the same time, the first kernel part and the first user part go to the
    /// first event.
    fn row_of(&self, part: &Part, timeline: &Timeline) -> Option<usize> {
        let (mut same_thread, mut free) = (None, None);
        let (mut same_processor, mut any_processor) = (None, None);
        timeline.rows_at(part.event_time, |row| {
            if timeline.ids[row] == IdSource::Rundown {
                return false;
            }
            if timeline.tid[row] == part.tid {
                same_thread = Some(row);
                if self.has_room(row, part.is_user) {
                    free = Some(row);
                    return true;
                }
            } else if timeline.tid[row] == UNKNOWN_ID {
                if timeline.processor[row] == part.processor {
                    same_processor = same_processor.or(Some(row));
                } else {
                    any_processor = any_processor.or(Some(row));
                }
            }
            false
        });
        free.or(same_processor).or(same_thread).or(any_processor)
    }

    /// Whether an event still lacks a kernel part, or a user part.
    fn has_room(&self, row: usize, is_user: bool) -> bool {
        let parts = self.parts(row);
        if is_user {
            !parts.iter().any(|part| part.is_user())
        } else {
            parts[0] == FragmentRef::NONE
        }
    }
}

/// Parts of stacks that events carry; an event is known by a number.
#[derive(Default)]
pub struct CarriedStacks {
    pub fragments: Fragments,
    waiting: Matches<u32>,
}

impl CarriedStacks {
    /// Forgets the frames of keys; see [`Fragments::forget_keys`].
    pub(crate) fn forget_keys(&mut self) {
        self.fragments.forget_keys();
    }

    /// Takes the first and the second part of the stack that an event carries. Where the user part is still to come,
    /// [`Self::follow`] hands it out with `number`.
    pub(crate) fn take(&mut self, event: &Event<'_>, number: u32) -> [FragmentRef; 2] {
        let mut parts = [FragmentRef::NONE; 2];
        if event.extended.is_empty() {
            return parts;
        }
        let mut missing = 0;
        for ((at, slot), part) in parts.iter_mut().enumerate().zip(carried_parts(event)) {
            *slot = self.fragments.add(part.frames, part.pointer_size, at > 0);
            missing = part.match_id;
        }
        if missing != 0
            && parts[1] == FragmentRef::NONE
            && let Some(tid) = event.tid
        {
            self.waiting.wait(missing, tid, number);
        }
        parts
    }

    /// Takes an event that is not kept itself but may have the rest of the stacks of earlier events: hands out their
    /// user parts, and keeps the frames of keys.
    pub(crate) fn follow(&mut self, event: &Event<'_>, mut second: impl FnMut(u32, FragmentRef)) {
        match event.id {
            USER_PART => {
                let (Some(part), Some(tid)) = (carried_parts(event).next(), event.tid) else {
                    return;
                };
                let events = self.waiting.take(part.match_id, tid);
                if !events.is_empty() {
                    let fragment = self.fragments.add(part.frames, part.pointer_size, true);
                    events.into_iter().for_each(|event| second(event, fragment));
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                if let Some((key, frames)) = key_frames(event) {
                    self.fragments.define(key, frames, event.pointer_size);
                }
            }
            _ => {}
        }
    }
}

/// Most stacks that wait for their user part, which comes when the thread returns to user mode.
const MAX_OPEN: usize = 4096;

/// Match id and thread.
type Key = (u64, u32);

/// Values waiting for the user part of their stack, by match id and thread.
pub(super) struct Matches<T> {
    open: FxHashMap<Key, Vec<T>>,
    /// The keys in the order in which they came: the oldest is removed when there are too many.
    order: VecDeque<Key>,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), order: VecDeque::new() }
    }
}

impl<T> Matches<T> {
    /// Lets an event wait. When too many wait, the oldest is removed.
    pub(super) fn wait(&mut self, match_id: u64, tid: u32, event: T) {
        self.order.push_back((match_id, tid));
        self.open.entry((match_id, tid)).or_default().push(event);
        while self.order.len() > MAX_OPEN {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    /// The events that waited for this part.
    pub(super) fn take(&mut self, match_id: u64, tid: u32) -> Vec<T> {
        if self.open.is_empty() {
            return Vec::new();
        }
        self.open.remove(&(match_id, tid)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RowKind;
    use crate::stacks::parts::WALK;

    const KERNEL: u64 = 0xFFFF_8000_0000_0000;

    fn push(timeline: &mut Timeline, time: i64, ids: Option<(u32, u32)>, processor: u16) {
        let (pid, tid) = ids.unzip();
        let event = Event { time, pid, tid, processor, ..Event::default() };
        timeline.push(RowKind::HandleCreate, 0, &event);
    }

    /// Feeds a stack walk of an event at time 10: its own time, its pid and tid, and addresses.
    fn walk(
        stacks: &mut EventStacks,
        timeline: &mut Timeline,
        time: i64,
        thread: (u32, u32),
        processor: u16,
        addresses: &[u64],
    ) {
        let frames: Vec<u8> = addresses.iter().flat_map(|a| a.to_le_bytes()).collect();
        let mut payload = 10_i64.to_le_bytes().to_vec();
        payload.extend(<[u32; 2]>::from(thread).iter().flat_map(|id| id.to_le_bytes()));
        payload.extend(frames);
        let event = Event { time, processor, id: WALK, payload: &payload, ..Event::default() };
        let (part, frames) = Part::decode(&event).unwrap();
        stacks.offer(part, frames, &event, timeline);
    }

    fn addresses(stacks: &EventStacks, row: usize) -> Vec<u64> {
        let parts = stacks.parts(row);
        parts.iter().flat_map(|part| stacks.fragments().addresses(*part)).collect()
    }

    #[test]
    fn kernel_and_user_part_of_an_event_are_joined() {
        let (mut stacks, mut timeline) = (EventStacks::default(), Timeline::default());
        push(&mut timeline, 10, Some((1, 5)), 0);
        walk(&mut stacks, &mut timeline, 11, (1, 5), 0, &[KERNEL]);
        walk(&mut stacks, &mut timeline, 99, (1, 5), 3, &[0x7000]);
        walk(&mut stacks, &mut timeline, 99, (1, 6), 3, &[0x8000]);
        assert_eq!(addresses(&stacks, 0), [KERNEL, 0x7000]);
    }

    #[test]
    fn an_event_without_thread_takes_it_from_the_stack_of_its_processor() {
        let (mut stacks, mut timeline) = (EventStacks::default(), Timeline::default());
        push(&mut timeline, 10, None, 0);
        push(&mut timeline, 10, None, 1);
        walk(&mut stacks, &mut timeline, 11, (2, 6), 1, &[KERNEL + 1]);
        walk(&mut stacks, &mut timeline, 11, (1, 5), 0, &[KERNEL]);
        walk(&mut stacks, &mut timeline, 12, (1, 5), 7, &[0x7000]);
        assert_eq!((timeline.pid.as_slice(), timeline.tid.as_slice()), (&[1, 2][..], &[5, 6][..]));
        assert_eq!(addresses(&stacks, 0), [KERNEL, 0x7000]);
        assert_eq!(addresses(&stacks, 1), [KERNEL + 1]);
    }

    #[test]
    fn two_events_of_a_thread_and_time_take_their_stacks_in_order() {
        let (mut stacks, mut timeline) = (EventStacks::default(), Timeline::default());
        push(&mut timeline, 10, Some((1, 5)), 0);
        push(&mut timeline, 10, Some((1, 5)), 0);
        for (now, address) in [(11, KERNEL), (12, KERNEL + 1), (13, 0x7000), (14, 0x7001)] {
            walk(&mut stacks, &mut timeline, now, (1, 5), 0, &[address]);
        }
        assert_eq!(addresses(&stacks, 0), [KERNEL, 0x7000]);
        assert_eq!(addresses(&stacks, 1), [KERNEL + 1, 0x7001]);
    }

    #[test]
    fn a_part_as_early_as_its_event_waits_for_it() {
        let (mut stacks, mut timeline) = (EventStacks::default(), Timeline::default());
        walk(&mut stacks, &mut timeline, 10, (1, 5), 0, &[KERNEL]);
        push(&mut timeline, 10, Some((1, 5)), 0);
        stacks.finish(&mut timeline);
        assert_eq!(addresses(&stacks, 0), [KERNEL]);
    }

    #[test]
    fn events_of_a_thread_are_matched_and_old_events_are_removed() {
        let mut matches = Matches::default();
        matches.wait(7, 1, "a");
        matches.wait(7, 1, "b");
        matches.wait(7, 2, "other thread");
        assert_eq!(matches.take(7, 1), ["a", "b"]);
        assert!(matches.take(7, 1).is_empty());
        for match_id in 100..100 + MAX_OPEN as u64 {
            matches.wait(match_id, 1, "later");
        }
        assert!(matches.take(7, 2).is_empty());
        assert!(matches.open.len() <= MAX_OPEN && matches.order.len() <= MAX_OPEN);
    }
}
