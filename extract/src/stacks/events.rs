//! Stacks of handle events, and of events that are kept individually.
//!
//! The events are in time order. So a part finds its event by a search in the time column, however late it comes, and
//! no table of open stacks is needed. Only stacks that may get the user part of an earlier event wait for it, in
//! [`Stays`].

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use handlescope_model::rules::LossTimes;
use rustc_hash::FxHashMap;

use super::fragments::{FragmentRef, Fragments};
use super::gathered::GatheredStacks;
use super::parts::{FrameBytes, LoggedPart, PartFrames, carried_parts};
use super::runtime::RuntimeStacks;
use super::stays::{KernelStack, LastPart, StackCompletion, Stays, Thread, UserPart};
use crate::etl::{Event, StackPart};
use crate::raw::{IdSource, Timeline, UNKNOWN_ID};

/// Maximum number of parts waiting for an event that has not been read yet.
const MAX_WAITING: usize = 1 << 18;

/// Stacks of handle events. Events without process and thread get the ids of their stack.
#[derive(Default)]
pub struct EventStacks {
    fragments: Fragments,
    /// First and second part of each event's stack.
    parts: Vec<[FragmentRef; 2]>,
    /// Parts beyond the second. No known trace has any.
    more: HashMap<u32, Vec<FragmentRef>>,
    /// Parts with an event that may still come, because the part is not later than its event.
    waiting: Vec<WaitingPart>,
    /// Lower bound: no part waits for an earlier event. It saves scanning them all for each part, because thousands may
    /// wait within one tick of a coarse clock. The largest number if none waits.
    first_waiting: i64,
    dropped: u64,
    /// Events that carry a kernel part and get their user part from a later event.
    unfinished: Matches<(StackOwner, i64)>,
    /// Rows of events that carry their stack or have it in the next event. Sorted at the end.
    carried: Vec<u32>,
    /// Stacks that may get the user part of an earlier event.
    stays: Stays<StackOwner>,
    /// Stacks that got such a user part.
    shared: Vec<SharedPart>,
    /// Parts for individually kept events that were not handed out yet.
    for_kept: Vec<(u32, FragmentRef)>,
    runtime: RuntimeStacks,
}

/// Which event a stack belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackOwner {
    /// Event in a row of the timeline.
    Row(u32),
    /// Event with the stack's time and thread, which may not have been read yet.
    AtTime,
    /// Individually kept event, by number.
    Kept(u32),
}

/// Part of an event that has not been read yet.
struct WaitingPart {
    part: LoggedPart,
    fragment: FragmentRef,
    /// Raw times at which the kernel part and the user part were written, if the user part belongs to another event.
    shared: Option<(i64, i64)>,
}

/// Stack with the user part of another event.
#[derive(Debug, Clone, Copy)]
pub struct SharedPart {
    /// Row of the stack.
    pub row: u32,
    /// Raw time at which its kernel part was written.
    pub from: i64,
    /// Raw time at which the user part was written.
    pub to: i64,
}

impl EventStacks {
    /// Returns the parts of an event's stack, in the order they were logged.
    pub fn parts(&self, row: usize) -> [FragmentRef; 2] {
        let parts = self.parts.get(row).copied().unwrap_or([FragmentRef::NONE; 2]);
        parts.map(FragmentRef::without_origin)
    }

    /// Returns the parts of an event's stack beyond the second.
    pub fn more_parts(&self, row: usize) -> &[FragmentRef] {
        if self.more.is_empty() {
            return &[];
        }
        self.more.get(&(row as u32)).map_or(&[], Vec::as_slice)
    }

    /// Whether any events carry their stacks.
    pub fn has_carried(&self) -> bool {
        !self.carried.is_empty()
    }

    /// Returns the rows of events that carry their stacks.
    pub fn carried(&self) -> &[u32] {
        &self.carried
    }

    pub fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    pub fn define_key(&mut self, key: u64, frames: FrameBytes<'_>, pointer_size: usize) {
        self.fragments.define(key, frames, pointer_size);
    }

    /// Forgets the frames of keys (see [`Fragments::forget_keys`]), and user parts that may belong to another stay in
    /// the kernel.
    pub fn forget_keys(&mut self) {
        self.fragments.forget_keys();
        self.stays.forget();
        self.withdraw(|_| true);
    }

    /// Attaches the parts that still wait, at the end of the trace. Returns how many parts were dropped, and how many
    /// keys have no frames.
    pub fn finish(&mut self, timeline: &mut Timeline) -> (u64, u64) {
        self.retry(i64::MAX, timeline);
        // .NET runtime stacks come after events of other threads, so rows may be out of order.
        self.carried.sort_unstable();
        self.stays.finish();
        self.complete(i64::MAX, timeline);
        if self.fragments.has_whole_keys() {
            let Self { parts, fragments, .. } = self;
            let whole = parts.iter_mut().filter(|[kernel, _]| fragments.is_whole_key(*kernel));
            whole.for_each(|[_, user]| *user = FragmentRef::NONE);
        }
        (self.dropped + self.waiting.len() as u64, self.fragments.unresolved_keys() as u64)
    }

    /// Forgets a thread when it starts or ends.
    pub fn end_thread(&mut self, pid: u32, tid: u32, time: i64, timeline: &mut Timeline) {
        self.stays.end(Thread::new(pid, tid), time);
        self.complete(time, timeline);
    }

    /// Removes user parts of other events from stacks where events are missing between kernel and user part.
    pub fn withdraw_across(&mut self, missing: &LossTimes) {
        self.withdraw(|shared| missing.is_between(shared.from, shared.to));
    }

    fn withdraw(&mut self, is_doubtful: impl Fn(&SharedPart) -> bool) {
        let Self { shared, parts, .. } = self;
        shared.retain(|shared| {
            let is_doubtful = is_doubtful(shared);
            if is_doubtful
                && let Some([_, user]) = parts.get_mut(shared.row as usize)
                && user.is_shared()
            {
                *user = FragmentRef::NONE;
            }
            !is_doubtful
        });
    }

    /// Notes a .NET runtime event, which gets the stack that follows. `row` is its row and `kept` its number among
    /// individually kept events, if it has them.
    pub fn note_runtime(&mut self, event: &Event<'_>, row: Option<usize>, kept: Option<usize>) {
        self.runtime.note(event, row.map(|row| row as u32), kept.map(|number| number as u32));
    }

    /// Handles a .NET runtime stack. An event that carries its stack keeps that one.
    pub fn take_runtime(&mut self, event: &Event<'_>) {
        let Some((row, kept, frames)) = self.runtime.stack(event) else { return };
        let fragment = self.fragments.add(frames, event.pointer_size, true);
        if let Some(row) = row.filter(|row| self.parts(*row as usize)[0] == FragmentRef::NONE) {
            self.put(row as usize, fragment);
            self.carried.push(row);
        }
        self.for_kept.extend(kept.map(|number| (number, fragment)));
    }

    /// Takes the parts for individually kept events, with the numbers of these.
    pub fn take_for_kept(&mut self) -> impl Iterator<Item = (u32, FragmentRef)> {
        self.for_kept.drain(..)
    }

    /// Attaches a part to its event, or lets it wait for the event. Parts of events that are not kept are not interned.
    pub fn offer(
        &mut self,
        part: LoggedPart,
        frames: PartFrames<'_>,
        event: &Event<'_>,
        timeline: &mut Timeline,
    ) {
        self.retry(event.time, timeline);
        let mut stack = None;
        if part.event_time < event.time {
            if let Some(row) = self.row_of(&part, timeline) {
                let fragment = self.fragments.add(frames, event.pointer_size, part.is_user);
                self.attach(row, &part, fragment, timeline);
                stack = Some((fragment, StackOwner::Row(row as u32)));
            }
        } else if self.waiting.len() < MAX_WAITING {
            let fragment = self.fragments.add(frames, event.pointer_size, part.is_user);
            self.let_wait(WaitingPart { part, fragment, shared: None });
            stack = Some((fragment, StackOwner::AtTime));
        } else {
            self.dropped += 1;
        }
        let LoggedPart { event_time, pid, tid, is_user, is_whole, .. } = part;
        let (thread, written) = (Thread::new(pid, tid), event.time);
        let Self { stays, fragments, .. } = self;
        match stack {
            _ if is_user => stays.leave(thread, event_time, written, || match stack {
                Some((fragment, _)) => fragment,
                None => fragments.add(frames, event.pointer_size, true),
            }),
            Some((_, owner)) if !is_whole => {
                stays.wait(thread, KernelStack { owner, event_time, written }, event.time);
            }
            _ => {}
        }
        self.complete(event.time, timeline);
    }

    /// Takes the stack parts that come with an event. `row` is the event's row, if it has one.
    pub fn take_parts(&mut self, row: usize, event: &Event<'_>, timeline: &mut Timeline) {
        let Some(parts) = event.parts else { return };
        let has_row = timeline.ids.get(row).is_some_and(|ids| *ids != IdSource::Rundown);
        let mut end = None;
        for part in parts.iter(event.time) {
            let StackPart { written, is_user, frames: bytes, number, .. } = part;
            let part = LoggedPart::with_event(&part, event.processor);
            let row = if has_row { Some(row) } else { self.row_of(&part, timeline) };
            // A later event of the same stay may need a user part even if the event it came with is not kept.
            if row.is_some() || is_user {
                let frames = PartFrames::Here(FrameBytes { bytes, number });
                let fragment = self.fragments.add(frames, StackPart::POINTER_SIZE, is_user);
                if let Some(row) = row {
                    self.attach(row, &part, fragment, timeline);
                }
                let owner = row.map_or(StackOwner::AtTime, |row| StackOwner::Row(row as u32));
                end = LastPart::new(&part, fragment, written).map(|last| (owner, last));
            }
        }
        if let Some((owner, last)) = end {
            self.take_last(owner, last, event.time);
            self.complete(event.time, timeline);
        }
    }

    /// Follows a thread through the last part that came with an event at this time.
    fn take_last(&mut self, owner: StackOwner, last: LastPart, event_time: i64) {
        match last {
            LastPart::User { thread, fragment, written } => {
                self.stays.foresee(thread, UserPart { event_time, written, fragment });
            }
            LastPart::Kernel { thread, written } => {
                self.stays.wait(thread, KernelStack { owner, event_time, written }, event_time);
            }
        }
    }

    /// Adds the stacks of gathered rows, which begin at `row` of the timeline.
    pub fn append(
        &mut self,
        row: usize,
        gathered: &mut GatheredStacks,
        rows: Range<usize>,
        timeline: &mut Timeline,
    ) {
        gathered.move_lists(&mut self.fragments);
        let (stacks, last) = gathered.of_rows(rows);
        if stacks.is_empty() {
            return;
        }
        self.parts.resize(row, [FragmentRef::NONE; 2]);
        self.parts.extend_from_slice(stacks);
        for (row, last) in (row..).zip(last) {
            if let Some(last) = *last {
                let time = timeline.time[row];
                self.take_last(StackOwner::Row(row as u32), last, time);
                if self.stays.has_completed() {
                    self.complete(time, timeline);
                }
            }
        }
    }

    /// Takes the stacks that the event of a row carries.
    pub fn carry(&mut self, row: usize, event: &Event<'_>, timeline: &mut Timeline) {
        let is_first = self.carried.last() != Some(&(row as u32));
        if is_first && carried_parts(event).next().is_some() {
            self.carried.push(row as u32);
        }
        let put = |stacks: &mut Self, _, fragment| stacks.put(row, fragment);
        self.add_carried(event, StackOwner::Row(row as u32), put);
        self.complete(event.time, timeline);
    }

    /// Takes the first two stack parts of an individually kept event. If the user part is still to come,
    /// [`Self::take_for_kept`] returns it with `number`.
    pub fn carry_kept(&mut self, event: &Event<'_>, number: u32) -> [FragmentRef; 2] {
        let mut parts = [FragmentRef::NONE; 2];
        if !event.extended.is_empty() {
            self.add_carried(event, StackOwner::Kept(number), |_, at, fragment| {
                parts.get_mut(at).into_iter().for_each(|slot| *slot = fragment);
            });
        }
        parts
    }

    /// Passes the parts an event carries to `put` with their positions, and lets the stack wait for its user part.
    fn add_carried(
        &mut self,
        event: &Event<'_>,
        owner: StackOwner,
        mut put: impl FnMut(&mut Self, usize, FragmentRef),
    ) {
        let mut missing = 0;
        for (at, part) in carried_parts(event).enumerate() {
            let fragment = self.fragments.add_carried(&part, at);
            put(self, at, fragment);
            missing = if at == 0 { part.match_id } else { 0 };
        }
        if missing != 0
            && let (Some(pid), Some(tid)) = (event.pid, event.tid)
        {
            let (event_time, written) = (event.time, event.time);
            self.unfinished.wait(missing, tid, (owner, event_time));
            let stack = KernelStack { owner, event_time, written };
            self.stays.wait(Thread::new(pid, tid), stack, event.time);
        }
    }

    /// Handles an event that carries the user part of an earlier event's stack.
    pub fn finish_carried(&mut self, event: &Event<'_>, timeline: &mut Timeline) {
        let (Some(part), Some(tid)) = (carried_parts(event).next(), event.tid) else { return };
        let owners = self.unfinished.take(part.match_id, tid);
        let Some(event_time) = owners.iter().map(|(_, time)| *time).min() else { return };
        let fragment = self.fragments.add(part.frames, part.pointer_size, true);
        for (owner, _) in owners {
            match owner {
                StackOwner::Row(row) if self.has_room(row as usize, true) => {
                    self.put(row as usize, fragment);
                }
                StackOwner::Kept(number) => self.for_kept.push((number, fragment)),
                StackOwner::Row(_) | StackOwner::AtTime => {}
            }
        }
        if let Some(pid) = event.pid {
            self.stays.leave(Thread::new(pid, tid), event_time, event.time, || fragment);
            self.complete(event.time, timeline);
        }
    }

    /// Adds user parts of earlier events to the stacks they complete.
    fn complete(&mut self, now: i64, timeline: &mut Timeline) {
        if !self.stays.has_completed() {
            return;
        }
        let completed = self.stays.take_completed();
        for StackCompletion { stack, thread, part } in &completed {
            let (written, fragment) = ((stack.written, part.written), part.fragment);
            match stack.owner {
                StackOwner::Row(row) => self.share(row as usize, fragment, written),
                StackOwner::Kept(number) => self.for_kept.push((number, fragment)),
                StackOwner::AtTime => {
                    let (pid, tid, event_time) = (thread.pid(), thread.tid(), stack.event_time);
                    let part = LoggedPart {
                        event_time,
                        pid,
                        tid,
                        processor: 0,
                        is_user: true,
                        is_whole: true,
                    };
                    let part = WaitingPart { part, fragment, shared: Some(written) };
                    if event_time < now {
                        self.attach_late(&part, timeline);
                    } else {
                        self.let_wait(part);
                    }
                }
            }
        }
        self.stays.reuse(completed);
    }

    /// Adds the user part of an earlier event to a stack that has only a kernel part. `from` and `to` are the times the
    /// two parts were written.
    fn share(&mut self, row: usize, fragment: FragmentRef, (from, to): (i64, i64)) {
        if let Some([kernel, user]) = self.parts.get_mut(row)
            && *kernel != FragmentRef::NONE
            && *user == FragmentRef::NONE
        {
            *user = fragment.shared();
            self.shared.push(SharedPart { row: row as u32, from, to });
        }
    }

    /// Lets a part wait for its event.
    fn let_wait(&mut self, waiting: WaitingPart) {
        self.first_waiting = self.first_waiting.min(waiting.part.event_time);
        self.waiting.push(waiting);
    }

    /// Attaches the parts with events that must have been read by now.
    fn retry(&mut self, now: i64, timeline: &mut Timeline) {
        if self.first_waiting >= now {
            return;
        }
        self.first_waiting = i64::MAX;
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.part.event_time < now {
                self.attach_late(&waiting, timeline);
            } else {
                self.let_wait(waiting);
            }
        }
    }

    /// Attaches a part to its event, which must have been read by now.
    fn attach_late(&mut self, waiting: &WaitingPart, timeline: &mut Timeline) {
        let WaitingPart { part, fragment, shared } = waiting;
        let Some(row) = self.row_of(part, timeline) else { return };
        match *shared {
            Some(written) => self.share(row, *fragment, written),
            None => self.attach(row, part, *fragment, timeline),
        }
    }

    /// Adds a part to the stack of a row. The event's own user part replaces that of another event.
    fn put(&mut self, row: usize, fragment: FragmentRef) {
        if self.parts.len() <= row {
            self.parts.resize(row + 1, [FragmentRef::NONE; 2]);
        }
        let is_free = |slot: &FragmentRef| {
            *slot == FragmentRef::NONE || slot.is_shared() && fragment.is_user()
        };
        match self.parts[row].iter_mut().find(|slot| is_free(slot)) {
            Some(slot) => *slot = fragment,
            None => self.more.entry(row as u32).or_default().push(fragment),
        }
    }

    fn attach(
        &mut self,
        row: usize,
        part: &LoggedPart,
        fragment: FragmentRef,
        timeline: &mut Timeline,
    ) {
        self.put(row, fragment);
        timeline.take_ids(row, part.pid, part.tid);
    }

    /// Returns the row of the event with the part's time and thread.
    ///
    /// An event without thread is found by its processor, where the kernel part is logged. If two events of one thread
    /// have the same time, the first kernel part and the first user part go to the first event.
    fn row_of(&self, part: &LoggedPart, timeline: &Timeline) -> Option<usize> {
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

    /// Whether an event still lacks this part, kernel or user.
    fn has_room(&self, row: usize, is_user: bool) -> bool {
        let Some(parts) = self.parts.get(row) else { return true };
        if is_user {
            !parts.iter().any(|part| part.is_user() && !part.is_shared())
        } else {
            parts[0] == FragmentRef::NONE
        }
    }
}

/// Maximum number of stacks waiting for their user part, which comes when the thread returns to user mode.
const MAX_OPEN: usize = 4096;

/// Match id and thread.
type MatchKey = (u64, u32);

/// Values waiting for the user part of their stack, by match id and thread.
pub struct Matches<T> {
    open: FxHashMap<MatchKey, Vec<T>>,
    /// Keys in order of arrival. If there are too many, the oldest is removed.
    order: VecDeque<MatchKey>,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), order: VecDeque::new() }
    }
}

impl<T> Matches<T> {
    /// Lets an event wait. If too many wait, the oldest is removed.
    pub fn wait(&mut self, match_id: u64, tid: u32, event: T) {
        self.order.push_back((match_id, tid));
        self.open.entry((match_id, tid)).or_default().push(event);
        while self.order.len() > MAX_OPEN {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    /// Takes the events that waited for this part.
    pub fn take(&mut self, match_id: u64, tid: u32) -> Vec<T> {
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

    /// Feeds a stack walk of an event at time 10, written at `time`.
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
        let (part, frames) = LoggedPart::decode(&event).unwrap();
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
