//! Parts of stacks that lie behind their events in one buffer, and so are handed out with them: two thirds of the events of
//! a trace with stacks need not be merged then.

use std::num::NonZeroU32;

/// A part of the stack of an event, as a later event has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackPart<'a> {
    /// Raw time of the event whose stack it is.
    pub event_time: i64,
    /// Raw time at which the part itself was written.
    pub written: i64,
    pub pid: u32,
    pub tid: u32,
    pub is_user: bool,
    /// Addresses of [`Self::POINTER_SIZE`], innermost first.
    pub frames: &'a [u8],
    /// As in [`Event::repeated`].
    ///
    /// [`Event::repeated`]: super::Event::repeated
    pub number: Option<u32>,
}

impl StackPart<'_> {
    /// Bytes of an address, whatever the pointers of the process are.
    pub const POINTER_SIZE: usize = 8;
}

/// A part of the stack of an event of its buffer.
///
/// Its ids are apart, because both at once would be read where each was just written, which stalls.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BufferPart {
    pid: u32,
    /// Position of its frames in the buffer.
    start: u32,
    tid: u32,
    /// Bytes of its frames.
    length: u32,
    /// Raw time from its event to the moment when it was written.
    delay: u32,
    /// The number of its frames among those that repeat plus one.
    pub number: Option<NonZeroU32>,
}

/// Places of the kernel part and of the user part of the stack of an event among the parts of its buffer, each plus one.
pub type PartPlaces = [Option<NonZeroU32>; 2];

/// The parts of the stack of an event that are handed out with it: the kernel part, and perhaps the user part.
#[derive(Debug, Clone, Copy)]
pub struct StackParts<'a> {
    /// Bytes of its buffer.
    data: &'a [u8],
    parts: [Option<&'a BufferPart>; 2],
}

impl<'a> StackParts<'a> {
    /// The parts at these places; `None` where there are none.
    pub fn of(data: &'a [u8], parts: &'a [BufferPart], places: PartPlaces) -> Option<Self> {
        let part = |place: NonZeroU32| parts.get(place.get() as usize - 1);
        let parts = places.map(|place| place.and_then(part));
        parts[0].map(|_| Self { data, parts })
    }

    /// The parts in the order in which they were logged, of an event of this raw time.
    pub fn iter(&self, event_time: i64) -> impl Iterator<Item = StackPart<'a>> {
        let Self { data, parts } = self;
        // By reference: iterators of arrays are copied where the processor has just written them, which stalls until all earlier
        // writes are in the cache.
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

/// Events among which that of a part is looked for: few come between an event and its stack. A power of two.
const RECENT: usize = 8;

/// The last events of a buffer, whose stacks may follow.
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
    /// Thread, by its header or the first part of its stack.
    tid: Option<u32>,
    /// Whether a part with its time is of its stack for sure: it is the only event of its time in the buffer, and not the first
    /// one, which may have the time of the last one of the buffer before.
    is_known: bool,
    /// Number of parts of its stack.
    parts: u8,
}

impl RecentEvents {
    /// Forgets the events of the last buffer.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds an event; `has_parts` is false for a part of a stack that is handed out by itself.
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

    /// Position in the buffer's list of the event to which a part belongs for sure. `None` leaves it to the search among the
    /// events of all processors.
    pub fn event_of(&mut self, part: &StackPart<'_>) -> Option<usize> {
        let StackPart { event_time, tid, is_user, .. } = *part;
        let first = self.count.saturating_sub(RECENT);
        let mut positions = (first..self.count).rev();
        let position = positions.find(|at| self.events[at % RECENT].time <= event_time)?;
        let event = &mut self.events[position % RECENT];
        // The kernel part is logged before the user part, and by it an event without ids is known.
        let is_next = event.parts == u8::from(is_user);
        let is_of_thread = event.tid == Some(tid) || event.tid.is_none() && !is_user;
        if event.time != event_time {
            return None;
        }
        // What follows a part of the same time that is not the next one of this event may be that of an event that was not
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
    /// A part whose frames lie in this buffer; `None` if it was written too long after its event.
    pub fn of(part: &StackPart<'_>, data: &[u8]) -> Option<Self> {
        let StackPart { event_time, written, pid, tid, frames, .. } = *part;
        let start = frames.as_ptr().addr().checked_sub(data.as_ptr().addr())? as u32;
        let delay = u32::try_from(written.checked_sub(event_time)?).ok()?;
        Some(Self { start, length: frames.len() as u32, delay, pid, tid, number: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events by their times and threads, after a first one at time 0.
    fn events(events: &[(i64, Option<u32>)]) -> RecentEvents {
        let mut recent = RecentEvents::default();
        recent.add(0, Some(1), true);
        events.iter().for_each(|(time, tid)| recent.add(*time, *tid, true));
        recent
    }

    /// Position of the event of a part of this time and thread.
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
