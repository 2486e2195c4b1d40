//! Follows stays of threads in the kernel: one user part completes the stacks of all events of a stay.
//!
//! Windows requests the user part of a stack once, when the first event of a stay needs it, and writes it when the
//! thread returns to user mode. Later events of the same stay have only a kernel part. PerfView's reader joins them in
//! the same way.
//!
//! The first user part that a thread writes after a kernel part decides. If the user part belongs to an earlier event,
//! it completes that stack too. If it belongs to a later one, the stack is left with its kernel part only.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::fragments::FragmentRef;
use super::parts::LoggedPart;

/// Thread, by process and thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread(u64);

impl Thread {
    pub fn new(pid: u32, tid: u32) -> Self {
        Self(u64::from(pid) << 32 | u64::from(tid))
    }

    pub fn pid(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn tid(self) -> u32 {
        self.0 as u32
    }
}

/// User part, and when it was written.
#[derive(Debug, Clone, Copy)]
pub struct UserPart {
    /// Raw time of the event that requested it.
    pub event_time: i64,
    /// Raw time at which it was written.
    pub written: i64,
    pub fragment: FragmentRef,
}

/// Stack that so far has only its kernel part.
#[derive(Debug, Clone, Copy)]
pub struct KernelStack<T> {
    pub owner: T,
    /// Raw time of its event.
    pub event_time: i64,
    /// Raw time at which its kernel part was written.
    pub written: i64,
}

/// Stack completed by a user part of an earlier event.
#[derive(Debug, Clone, Copy)]
pub struct StackCompletion<T> {
    pub stack: KernelStack<T>,
    pub thread: Thread,
    pub part: UserPart,
}

/// Last part that came with an event, as far as other stacks of its thread need it.
#[derive(Debug, Clone, Copy)]
pub enum LastPart {
    /// Kernel part, written at this raw time; the user part is missing.
    Kernel { thread: Thread, written: i64 },
    /// User part, written at this raw time.
    User { thread: Thread, fragment: FragmentRef, written: i64 },
}

impl LastPart {
    /// Creates it; `None` for a kernel part that no user part follows.
    pub fn new(part: &LoggedPart, fragment: FragmentRef, written: i64) -> Option<Self> {
        let thread = Thread::new(part.pid, part.tid);
        match (part.is_user, part.is_whole) {
            (true, _) => Some(Self::User { thread, fragment, written }),
            (false, false) => Some(Self::Kernel { thread, written }),
            (false, true) => None,
        }
    }
}

/// Maximum number of stacks waiting for a user part, over all threads. Threads of System never return to user mode.
const MAX_WAITING: usize = 1 << 18;

/// Maximum number of threads followed at once.
const MAX_THREADS: usize = 1 << 16;

/// Maximum number of undecided user parts per thread.
const MAX_PARTS: usize = 64;

/// Maximum number of a thread's stacks examined to find the place of another one.
const MAX_OUT_OF_ORDER: usize = 32;

/// Stacks without user part of all threads; `T` says which event a stack belongs to.
///
/// A user part decides only once a later time is reached, so the order of parts with equal times does not matter. Parts
/// in the same buffer as their event come with the event.
pub struct Stays<T> {
    threads: FxHashMap<Thread, Stay<T>>,
    /// Number of waiting stacks in all threads.
    waiting: usize,
    /// Completed stacks that were not taken yet.
    completed: Vec<StackCompletion<T>>,
}

/// A thread's state since it entered the kernel.
struct Stay<T> {
    /// In the order their kernel parts were written.
    waiting: VecDeque<KernelStack<T>>,
    /// User parts that have not decided yet, by the time they were written, then by event time.
    parts: Vec<UserPart>,
}

impl<T> Default for Stays<T> {
    fn default() -> Self {
        Self { threads: FxHashMap::default(), waiting: 0, completed: Vec::new() }
    }
}

impl<T> Default for Stay<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), parts: Vec::new() }
    }
}

impl<T: Copy> Stays<T> {
    /// Adds a stack that has only its kernel part. Times before `now` have been reached.
    pub fn wait(&mut self, thread: Thread, stack: KernelStack<T>, now: i64) {
        // The idle thread runs on every processor at once, and never in user mode.
        if thread.tid() == 0 {
            return;
        }
        if self.waiting >= MAX_WAITING {
            self.forget_longest();
        }
        self.make_room(now);
        let stay = self.threads.entry(thread).or_default();
        self.waiting -= stay.settle(thread, now, &mut self.completed);
        stay.add(stack);
        self.waiting += 1;
    }

    /// Adds a user part that came with its event, ahead of the time it was written.
    pub fn foresee(&mut self, thread: Thread, part: UserPart) {
        let now = part.event_time;
        self.make_room(now);
        let stay = self.threads.entry(thread).or_default();
        self.waiting -= stay.settle(thread, now, &mut self.completed);
        self.waiting -= stay.take(thread, part, &mut self.completed);
    }

    /// Handles a user part at the time it is written. `intern` returns its fragment, and is called only if it completes
    /// a stack.
    pub fn leave(
        &mut self,
        thread: Thread,
        event_time: i64,
        written: i64,
        intern: impl FnOnce() -> FragmentRef,
    ) {
        let Some(stay) = self.threads.get_mut(&thread) else { return };
        self.waiting -= stay.settle(thread, written, &mut self.completed);
        let mut waiting =
            stay.waiting.iter().take_while(|stack| stack.written < written).peekable();
        if waiting.peek().is_none() {
            return;
        }
        let completes = waiting.any(|stack| event_time < stack.event_time);
        let fragment = if completes { intern() } else { FragmentRef::NONE };
        let part = UserPart { event_time, written, fragment };
        self.waiting -= stay.take(thread, part, &mut self.completed);
    }

    /// Forgets a thread that ends at this time or loses its id to another thread.
    pub fn end(&mut self, thread: Thread, time: i64) {
        if let Some(mut stay) = self.threads.remove(&thread) {
            self.waiting -= stay.settle(thread, time, &mut self.completed) + stay.waiting.len();
        }
    }

    /// Forgets all threads, because what follows may belong to other stays.
    pub fn forget(&mut self) {
        (self.threads, self.waiting) = (FxHashMap::default(), 0);
    }

    /// Lets all user parts decide, at the end of the trace.
    pub fn finish(&mut self) {
        let Self { threads, completed, .. } = self;
        for (thread, mut stay) in std::mem::take(threads) {
            stay.settle(thread, i64::MAX, completed);
        }
        self.waiting = 0;
        // Sorted by time, because the map has no order.
        completed.sort_by_key(|it| (it.part.written, it.stack.written, it.thread.0));
    }

    /// Whether there are completed stacks that [`Self::take_completed`] has not returned yet.
    pub fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Returns the stacks completed since the last call.
    pub fn take_completed(&mut self) -> Vec<StackCompletion<T>> {
        std::mem::take(&mut self.completed)
    }

    /// Gives back the memory of [`Self::take_completed`].
    pub fn reuse(&mut self, mut completed: Vec<StackCompletion<T>>) {
        completed.clear();
        self.completed = completed;
    }

    /// Forgets the threads with the most waiting stacks: they have not been in user mode for long, if ever.
    fn forget_longest(&mut self) {
        let mean = (self.waiting / self.threads.len().max(1)).max(1);
        for stay in self.threads.values_mut() {
            if stay.waiting.len() >= mean {
                self.waiting -= stay.waiting.len();
                stay.waiting = VecDeque::new();
            }
        }
    }

    /// If there are too many threads, forgets those with nothing left to expect.
    fn make_room(&mut self, now: i64) {
        if self.threads.len() < MAX_THREADS {
            return;
        }
        self.threads.retain(|_, stay| {
            let is_ahead = stay.parts.last().is_some_and(|part| part.written >= now);
            is_ahead || !stay.waiting.is_empty()
        });
        if self.threads.len() > MAX_THREADS / 2 {
            self.forget();
        }
    }
}

impl<T: Copy> Stay<T> {
    /// Lets the user parts written before a time decide. Returns how many stacks stopped waiting.
    fn settle(
        &mut self,
        thread: Thread,
        time: i64,
        completed: &mut Vec<StackCompletion<T>>,
    ) -> usize {
        if self.parts.first().is_none_or(|part| part.written >= time) {
            return 0;
        }
        let count = self.parts.partition_point(|part| part.written < time);
        let decided = if self.waiting.is_empty() {
            0
        } else {
            (0..count).map(|at| self.decide(thread, self.parts[at], completed)).sum()
        };
        self.parts.drain(..count);
        decided
    }

    /// Adds a user part that will decide later. If there are too many, the first one decides now. Returns how many
    /// stacks stopped waiting.
    fn take(
        &mut self,
        thread: Thread,
        part: UserPart,
        completed: &mut Vec<StackCompletion<T>>,
    ) -> usize {
        let mut decided = 0;
        if self.parts.len() >= MAX_PARTS {
            let first = self.parts.remove(0);
            decided = self.decide(thread, first, completed);
        }
        let order = |part: &UserPart| (part.written, part.event_time);
        let at = self.parts.partition_point(|known| order(known) <= order(&part));
        self.parts.insert(at, part);
        decided
    }

    /// Inserts a stack after those with earlier kernel parts.
    fn add(&mut self, stack: KernelStack<T>) {
        let is_later = |known: &&KernelStack<T>| known.written > stack.written;
        let later = self.waiting.iter().rev().take(MAX_OUT_OF_ORDER).take_while(is_later).count();
        self.waiting.insert(self.waiting.len() - later, stack);
    }

    /// Completes the stacks that waited for a user part, or leaves them with only their kernel part. Returns how many
    /// waited.
    fn decide(
        &mut self,
        thread: Thread,
        part: UserPart,
        completed: &mut Vec<StackCompletion<T>>,
    ) -> usize {
        let mut decided = 0;
        while let Some(stack) = self.waiting.front().copied() {
            if stack.written >= part.written {
                break;
            }
            self.waiting.pop_front();
            decided += 1;
            if part.event_time < stack.event_time {
                completed.push(StackCompletion { stack, thread, part });
            }
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Thread = Thread(7 << 32 | 5);
    const B: Thread = Thread(7 << 32 | 6);

    fn part(number: u32) -> FragmentRef {
        FragmentRef::numbered(number, true)
    }

    /// A stack with its kernel part written one tick after its event.
    fn stack(event_time: i64) -> KernelStack<i64> {
        KernelStack { owner: event_time, event_time, written: event_time + 1 }
    }

    /// Returns owner and user part of each stack completed before a time.
    fn completed(stays: &mut Stays<i64>, now: i64) -> Vec<(i64, FragmentRef)> {
        for (thread, stay) in &mut stays.threads {
            stays.waiting -= stay.settle(*thread, now, &mut stays.completed);
        }
        let completed = stays.take_completed();
        completed.iter().map(|it| (it.stack.owner, it.part.fragment)).collect()
    }

    fn wait(stays: &mut Stays<i64>, thread: Thread, event_time: i64) {
        stays.wait(thread, stack(event_time), event_time);
    }

    #[test]
    fn a_user_part_completes_all_later_stacks_of_its_stay() {
        let mut stays = Stays::default();
        [10, 20, 30].into_iter().for_each(|time| wait(&mut stays, A, time));
        wait(&mut stays, B, 20);
        stays.leave(A, 10, 40, || part(1));
        assert_eq!(completed(&mut stays, 41), [(20, part(1)), (30, part(1))]);
        wait(&mut stays, A, 50);
        stays.leave(A, 60, 70, || unreachable!("the stack is older than the event of the part"));
        stays.leave(A, 45, 80, || unreachable!("the first part has decided"));
        assert!(completed(&mut stays, 90).is_empty());
        assert_eq!(stays.waiting, 1, "the other thread waits");
    }

    #[test]
    fn a_user_part_known_ahead_counts_from_the_time_at_which_it_was_written() {
        let mut stays = Stays::default();
        wait(&mut stays, A, 5);
        stays.foresee(A, UserPart { event_time: 10, written: 100, fragment: part(1) });
        wait(&mut stays, A, 50);
        stays.leave(A, 3, 60, || part(2));
        assert_eq!(completed(&mut stays, 61), [(5, part(2)), (50, part(2))], "written before");
        wait(&mut stays, A, 70);
        wait(&mut stays, A, 101);
        assert_eq!(completed(&mut stays, 102), [(70, part(1))]);
        stays.leave(A, 90, 110, || part(3));
        assert_eq!(completed(&mut stays, 111), [(101, part(3))]);
        assert_eq!(stays.waiting, 0);
    }

    #[test]
    fn the_order_of_parts_of_one_time_does_not_matter() {
        for order in [[10, 15], [15, 10]] {
            let mut stays = Stays::default();
            wait(&mut stays, A, 12);
            for event_time in order {
                stays.leave(A, event_time, 20, || part(1));
            }
            stays.wait(A, KernelStack { owner: 19, event_time: 19, written: 20 }, 20);
            assert_eq!(completed(&mut stays, 21), [(12, part(1))], "written at the same time");
            assert_eq!(stays.waiting, 1);
        }
    }

    #[test]
    fn a_thread_that_ends_leaves_nothing_to_the_next_one_with_its_id() {
        let mut stays = Stays::default();
        stays.foresee(A, UserPart { event_time: 1, written: 15, fragment: part(1) });
        [10, 20].into_iter().for_each(|time| wait(&mut stays, A, time));
        stays.end(A, 30);
        assert_eq!(completed(&mut stays, 30), [(10, part(1))]);
        stays.leave(A, 5, 40, || unreachable!("of the next thread"));
        assert_eq!((completed(&mut stays, 50), stays.waiting), (vec![], 0));
    }

    #[test]
    fn parts_whose_time_has_not_come_count_at_the_end() {
        let mut stays = Stays::default();
        stays.foresee(A, UserPart { event_time: 1, written: 90, fragment: part(1) });
        wait(&mut stays, A, 10);
        stays.finish();
        assert_eq!(completed(&mut stays, 0), [(10, part(1))]);
    }

    #[test]
    fn threads_that_never_leave_the_kernel_are_forgotten_first() {
        let mut stays = Stays::default();
        wait(&mut stays, B, 1);
        for time in 0..MAX_WAITING as i64 {
            wait(&mut stays, A, 10 + time);
        }
        assert!(stays.waiting < 10, "{} wait", stays.waiting);
        stays.leave(B, 0, 1 << 40, || part(1));
        assert_eq!(completed(&mut stays, i64::MAX), [(1, part(1))]);
        for pid in 0..2 * MAX_THREADS as u32 {
            let part = UserPart { event_time: 1, written: 2, fragment: part(1) };
            stays.foresee(Thread::new(pid, 1), part);
        }
        assert!(stays.threads.len() <= MAX_THREADS);
    }
}
