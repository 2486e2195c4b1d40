//! Attaches stack parts to their event if both are in one buffer, so that two thirds of the events of a trace with
//! stacks skip the merge.

use std::num::NonZeroU32;

/// Part of an event's stack, as logged in a later event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackPart<'a> {
    /// Raw time of the event the stack belongs to.
    pub event_time: i64,
    /// Raw time at which this part was written.
    pub written: i64,
    pub pid: u32,
    pub tid: u32,
    pub is_user: bool,
    /// Addresses of [`Self::POINTER_SIZE`] bytes each, innermost first.
    pub frames: &'a [u8],
    /// As in [`Event::repeated`].
    ///
    /// [`Event::repeated`]: super::Event::repeated
    pub number: Option<u32>,
}

impl StackPart<'_> {
    /// Bytes per address, whatever the pointer size of the process.
    pub const POINTER_SIZE: usize = 8;
}

/// Stack part of an event in the same buffer.
///
/// The two ids are not adjacent. The compiler would read both at once right after they were written separately, which
/// stalls.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BufferPart {
    pid: u32,
    /// Position of its frames in the buffer.
    start: u32,
    tid: u32,
    /// Bytes of its frames.
    length: u32,
    /// Raw time from the event to the writing of this part.
    delay: u32,
    /// Number of its frames among the repeated ones, plus one.
    pub number: Option<NonZeroU32>,
}

/// Positions of an event's kernel part and user part among the parts of its buffer, each plus one.
pub type PartPlaces = [Option<NonZeroU32>; 2];

/// Stack parts handed out with an event: the kernel part, and possibly the user part.
#[derive(Debug, Clone, Copy)]
pub struct StackParts<'a> {
    /// Bytes of the buffer.
    data: &'a [u8],
    parts: [Option<&'a BufferPart>; 2],
}

impl<'a> StackParts<'a> {
    /// Returns the parts at these places; `None` if there are none.
    pub fn new(data: &'a [u8], parts: &'a [BufferPart], places: PartPlaces) -> Option<Self> {
        let part = |place: NonZeroU32| parts.get(place.get() as usize - 1);
        let parts = places.map(|place| place.and_then(part));
        parts[0].map(|_| Self { data, parts })
    }

    /// Returns the parts in the order they were logged; `event_time` is the event's raw time.
    pub fn iter(&self, event_time: i64) -> impl Iterator<Item = StackPart<'a>> {
        let Self { data, parts } = self;
        // Indexed by reference: an array iterator would be copied just after the processor has written it, which stalls
        // until all earlier writes are in the cache.
        (0..parts.len()).filter_map(move |at| {
            let BufferPart { start, length, pid, tid, delay, number } =
                *parts.get(at).copied().flatten()?;
            let frames = data.get(start as usize..).and_then(|rest| rest.get(..length as usize));
            Some(StackPart {
                event_time,
                written: event_time.saturating_add(delay.into()),
                pid,
                tid,
                is_user: at > 0,
                frames: frames.unwrap_or_default(),
                number: number.map(|number| number.get() - 1),
            })
        })
    }
}

/// Number of recent events searched for a part's event: few come between an event and its stack. A power of two.
const RECENT: usize = 8;

/// Most recent events of a buffer, which stacks may follow.
#[derive(Default)]
pub struct RecentEvents {
    events: [RecentEvent; RECENT],
    /// Number of events of the buffer.
    count: usize,
}

#[derive(Clone, Copy, Default)]
struct RecentEvent {
    /// Raw time.
    time: i64,
    /// Thread, from its header or the first part of its stack.
    tid: Option<u32>,
    /// Whether a part with its time surely belongs to it. That holds if it is the only event of its time in the buffer,
    /// and not the first one. The first one may share its time with the last event of the previous buffer.
    is_known: bool,
    /// Number of its stack parts so far.
    parts: u8,
}

impl RecentEvents {
    /// Forgets the events of the previous buffer.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds an event; `has_parts` is false for a stack part that is handed out by itself.
    pub fn add(&mut self, time: i64, tid: Option<u32>, has_parts: bool) {
        let mut is_known = has_parts && self.count > 0;
        if let Some(last) = self.count.checked_sub(1) {
            let last = &mut self.events[last % RECENT];
            let is_new_time = last.time != time;
            last.is_known &= is_new_time;
            is_known &= is_new_time;
        }
        self.events[self.count % RECENT] = RecentEvent { time, tid, is_known, parts: 0 };
        self.count += 1;
    }

    /// Returns the position in the buffer's list of the event a part surely belongs to. `None` leaves the part to the
    /// search among events of all processors.
    pub fn event_of(&mut self, part: &StackPart<'_>) -> Option<usize> {
        let StackPart { event_time, tid, is_user, .. } = *part;
        let first = self.count.saturating_sub(RECENT);
        let mut positions = (first..self.count).rev();
        let position = positions.find(|at| self.events[at % RECENT].time <= event_time)?;
        let event = &mut self.events[position % RECENT];
        // The kernel part is logged before the user part. For an event without ids, it determines the thread.
        let is_next = event.parts == u8::from(is_user);
        let is_of_thread = event.tid == Some(tid) || event.tid.is_none() && !is_user;
        if event.time != event_time {
            return None;
        }
        // If this is not the next part of the event, later parts with the same time may belong to an event that was not
        // selected.
        event.is_known &= is_next && is_of_thread;
        if !event.is_known {
            return None;
        }
        event.parts += 1;
        event.tid = Some(tid);
        Some(position)
    }
}

impl BufferPart {
    /// Creates a part with frames in this buffer; `None` if it was written too long after its event.
    pub fn new(part: &StackPart<'_>, data: &[u8]) -> Option<Self> {
        let StackPart { event_time, written, pid, tid, frames, .. } = *part;
        let start = frames.as_ptr().addr().checked_sub(data.as_ptr().addr())? as u32;
        let delay = u32::try_from(written.checked_sub(event_time)?).ok()?;
        Some(Self { start, length: frames.len() as u32, delay, pid, tid, number: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events with these times and threads, after a first one at time 0.
    fn events(events: &[(i64, Option<u32>)]) -> RecentEvents {
        let mut recent = RecentEvents::default();
        recent.add(0, Some(1), true);
        events.iter().for_each(|(time, tid)| recent.add(*time, *tid, true));
        recent
    }

    /// Returns the position of the event for a part with this time and thread.
    fn place(recent: &mut RecentEvents, event_time: i64, tid: u32, is_user: bool) -> Option<usize> {
        let written = event_time + 1;
        let part =
            StackPart { event_time, written, pid: 7, tid, is_user, frames: &[], number: None };
        recent.event_of(&part)
    }

    #[test]
    fn the_only_event_of_a_time_gets_its_kernel_part_and_then_its_user_part() {
        let recent = &mut events(&[(10, Some(5)), (12, Some(6))]);
        assert_eq!(place(recent, 10, 5, false), Some(1));
        assert_eq!(place(recent, 12, 6, false), Some(2));
        assert_eq!(place(recent, 10, 5, true), Some(1));
        assert_eq!(place(recent, 10, 5, true), None, "it has both");
        assert_eq!(place(recent, 11, 6, true), None, "no event of the time");
        assert_eq!(place(recent, 12, 6, true), Some(2));
    }

    #[test]
    fn an_event_without_ids_is_that_of_the_thread_of_its_kernel_part() {
        let recent = &mut events(&[(10, None)]);
        assert_eq!(place(recent, 10, 5, false), Some(1));
        assert_eq!(place(recent, 10, 5, true), Some(1));
        assert_eq!(place(&mut events(&[(10, None)]), 10, 5, true), None);
    }

    #[test]
    fn what_may_be_of_another_event_is_left_to_the_search() {
        let recent = &mut events(&[(10, Some(5)), (10, Some(6)), (12, Some(5))]);
        assert_eq!(place(recent, 10, 5, false), None, "one of two events of the time");
        assert_eq!(place(recent, 10, 6, false), None, "one of two events of the time");
        assert_eq!(place(recent, 0, 1, false), None, "the buffer before may end with this time");
        recent.add(14, Some(5), false);
        assert_eq!(place(recent, 14, 5, false), None, "a part of a stack");
        (0..RECENT as i64).for_each(|more| recent.add(20 + more, Some(9), true));
        assert_eq!(place(recent, 12, 5, false), None, "long ago");
        recent.clear();
        assert_eq!(place(recent, 20, 9, false), None, "in another buffer");
    }

    #[test]
    fn after_a_part_that_does_not_fit_all_of_the_time_are_left_to_the_search() {
        for (tid, is_user, reason) in
            [(5, true, "a user part without kernel part"), (6, false, "of another thread")]
        {
            let recent = &mut events(&[(10, Some(5))]);
            assert_eq!(place(recent, 10, tid, is_user), None, "{reason}");
            assert_eq!(place(recent, 10, 5, false), None, "{reason}");
        }
        let recent = &mut events(&[(10, Some(5))]);
        let parts = [false, false, true].map(|is_user| place(recent, 10, 5, is_user));
        assert_eq!(parts, [Some(1), None, None], "a second kernel part");
    }
}
