//! One shard of a stack resolver's answers, handled by one thread.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::ops::Range;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::fragments::{FragmentRef, Fragments};
use super::frames::{FrameCode, FrameKey, PackedFrame, spread};
use super::modules::AddressSpaces;
use crate::prefetch::prefetch;

/// Inputs for resolving addresses.
#[derive(Clone, Copy)]
pub struct AddressContext<'a> {
    pub fragments: &'a Fragments,
    /// Modules that addresses may be in.
    pub spaces: &'a AddressSpaces,
    /// Managed methods that addresses may be in.
    pub methods: &'a AddressSpaces,
}

/// Stack to resolve: its parts, and the process and raw time that determine the modules.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub parts: [FragmentRef; 2],
    /// Parts beyond the second.
    pub more: &'a [FragmentRef],
    pub pid: u32,
    pub time: i64,
}

/// Requests looked up before the first new one is resolved, so that the fetches of all new addresses overlap.
const LOOKED_UP_AT_ONCE: usize = 32;

/// Event of a batch with a stack to look up.
#[derive(Clone, Copy)]
pub struct StackRequest {
    /// Position of the event in its batch.
    pub position: u32,
    /// Row of the timeline.
    pub row: u32,
    pub parts: [FragmentRef; 2],
    pub pid: u32,
    pub time: i64,
}

/// Parts of a stack, and its process.
type StackKey = (FragmentRef, FragmentRef, u32);

impl StackRequest {
    fn key(&self) -> StackKey {
        key(self.parts, self.pid)
    }
}

fn key([first, second]: [FragmentRef; 2], pid: u32) -> StackKey {
    (first, second, pid)
}

/// Answer, with the raw times for which it holds.
#[derive(Debug, Clone, Copy)]
struct StackAnswer {
    /// First time; the smallest number if there is no bound.
    from: i64,
    /// First time at which it no longer holds; the largest number if there is no bound.
    to: i64,
    /// Number of the stack; `None` if it has no frames.
    stack: Option<u32>,
}

impl StackAnswer {
    fn holds(&self, time: i64) -> bool {
        self.from <= time && time < self.to
    }
}

/// Distinct time ranges in which answers hold, numbered from 1. There are few.
#[derive(Default)]
struct AnswerSpans {
    spans: Vec<(i64, i64)>,
    numbers: HashMap<(i64, i64), NonZeroU32>,
}

impl AnswerSpans {
    fn number(&mut self, from: i64, to: i64) -> Option<NonZeroU32> {
        let Self { spans, numbers } = self;
        if let Some(number) = numbers.get(&(from, to)) {
            return Some(*number);
        }
        spans.push((from, to));
        let number = NonZeroU32::new(spans.len() as u32)?;
        numbers.insert((from, to), number);
        Some(number)
    }

    fn get(&self, number: NonZeroU32) -> Option<(i64, i64)> {
        self.spans.get(number.get() as usize - 1).copied()
    }
}

/// Answers by question. Most questions have one answer for the whole trace.
///
/// There are hundreds of thousands of questions, and each event looks one up at random. The time ranges of answers are
/// kept separately, so that an answer takes eight bytes.
struct AnswerMemory<K> {
    first: HashMap<K, StoredAnswer>,
    more: HashMap<K, Vec<StoredAnswer>>,
    spans: AnswerSpans,
}

/// [`StackAnswer`] packed into eight bytes.
#[derive(Debug, Clone, Copy)]
struct StoredAnswer {
    /// Number of the stack, plus one.
    stack: Option<NonZeroU32>,
    span: NonZeroU32,
}

impl<K> Default for AnswerMemory<K> {
    fn default() -> Self {
        Self { first: HashMap::new(), more: HashMap::new(), spans: AnswerSpans::default() }
    }
}

impl<K: Copy + Eq + Hash> AnswerMemory<K> {
    fn get(&self, key: K, time: i64) -> Option<StackAnswer> {
        self.get_from(self.first(key)?, key, time)
    }

    /// Returns the first answer, which for most questions is the only one.
    fn first(&self, key: K) -> Option<StoredAnswer> {
        self.first.get(&key).copied()
    }

    /// Returns the answer for a time, which may be the first one.
    fn get_from(&self, first: StoredAnswer, key: K, time: i64) -> Option<StackAnswer> {
        let first = self.answer(first)?;
        if first.holds(time) {
            return Some(first);
        }
        let mut more = self.more.get(&key)?.iter().filter_map(|stored| self.answer(*stored));
        more.find(|answer| answer.holds(time))
    }

    fn answer(&self, stored: StoredAnswer) -> Option<StackAnswer> {
        let (from, to) = self.spans.get(stored.span)?;
        Some(StackAnswer { from, to, stack: stored.stack.map(|stack| stack.get() - 1) })
    }

    fn put(&mut self, key: K, answer: StackAnswer) {
        let Some(span) = self.spans.number(answer.from, answer.to) else { return };
        let stack = answer.stack.and_then(|stack| NonZeroU32::new(stack + 1));
        let stored = StoredAnswer { stack, span };
        match self.first.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(stored);
            }
            Entry::Occupied(_) => self.more.entry(key).or_default().push(stored),
        }
    }
}

/// Location of an address, with the raw times for which it holds, as in [`StackAnswer`].
#[derive(Debug, Clone, Copy)]
struct TimedFrame {
    frame: FrameCode,
    from: i64,
    to: i64,
}

/// Process id of the kernel's modules, which every process sees.
const KERNEL: u32 = 0;

/// Number of sets of recently located addresses: half a megabyte, which stays in a processor's cache.
const RECENT_SETS: usize = 1 << 13;

/// Addresses per set.
const WAYS: usize = 2;

/// Recently located addresses, each in the set that its hash with the process selects, latest first.
///
/// However many frames a trace has, few functions make up most of them. Their addresses need no search in the modules
/// of their process.
struct RecentAddresses {
    sets: Vec<RecentSet>,
    spans: AnswerSpans,
}

/// As large as a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct RecentSet([RecentFrame; WAYS]);

#[derive(Debug, Clone, Copy)]
struct RecentFrame {
    address: u64,
    frame: FrameCode,
    pid: u32,
    /// Number of the time range; `None` for an empty slot.
    span: Option<NonZeroU32>,
}

impl Default for RecentAddresses {
    fn default() -> Self {
        let empty =
            RecentFrame { address: 0, frame: FrameCode::from_number(0), pid: 0, span: None };
        Self { sets: vec![RecentSet([empty; WAYS]); RECENT_SETS], spans: AnswerSpans::default() }
    }
}

impl RecentAddresses {
    fn set(pid: u32, address: u64) -> usize {
        spread(address ^ u64::from(pid).rotate_left(40), RECENT_SETS)
    }

    fn find(&self, pid: u32, address: u64) -> Option<RecentFrame> {
        let RecentSet(ways) = &self.sets[Self::set(pid, address)];
        ways.iter().find(|recent| recent.address == address && recent.pid == pid).copied()
    }

    /// Returns the location if it holds at a time.
    fn located(
        &self,
        RecentFrame { frame, span, .. }: RecentFrame,
        time: i64,
    ) -> Option<TimedFrame> {
        let (from, to) = self.spans.get(span?)?;
        (from <= time && time < to).then_some(TimedFrame { frame, from, to })
    }

    /// Prefetches the set of an address that will be looked up soon.
    fn fetch(&self, pid: u32, address: u64) {
        prefetch(&self.sets[Self::set(pid, address)..]);
    }

    fn put(&mut self, pid: u32, address: u64, located: TimedFrame) {
        let TimedFrame { frame, from, to } = located;
        let RecentSet(ways) = &mut self.sets[Self::set(pid, address)];
        // An address has one place; its old answer no longer holds.
        if ways[0].address != address || ways[0].pid != pid {
            ways[1] = ways[0];
        }
        ways[0] = RecentFrame { address, frame, pid, span: self.spans.number(from, to) };
    }
}

/// Some of the answers, with the shard's own numbers for stacks.
#[derive(Default)]
pub struct StackShard {
    /// Events for [`Self::answer`] to look up, ordered by position.
    pub requests: Vec<StackRequest>,
    /// Answers not taken yet.
    pub answers: Answers,
    stacks: AnswerMemory<StackKey>,
    /// Number of stacks so far.
    count: u32,
    recent: RecentAddresses,
    /// Numbers of unpacked locations.
    unpacked: HashMap<FrameKey, u32>,
}

/// Answers of a shard for a batch of events.
#[derive(Default)]
pub struct Answers {
    /// Position of each event with a stack, with the stack's number in the shard.
    pub stacks: Vec<(u32, u32)>,
    /// Stacks new to the shard, in the order of their numbers and events.
    pub new: Vec<NewStack>,
    /// Their frames.
    pub frames: Vec<FrameCode>,
    /// Locations new to the shard, in the order of their numbers.
    pub unpacked: Vec<FrameKey>,
    /// Managed methods at locations in modules.
    pub methods: Vec<NotedMethod>,
}

impl Answers {
    /// Takes the answers, and reserves memory for as many: the next batch has about as many.
    pub fn take(&mut self) -> Self {
        let next = Self {
            stacks: Vec::with_capacity(self.stacks.len()),
            new: Vec::with_capacity(self.new.len()),
            frames: Vec::with_capacity(self.frames.len()),
            ..Self::default()
        };
        std::mem::replace(self, next)
    }

    /// Removes the answers, and keeps their memory.
    pub fn clear(&mut self) {
        let Self { stacks, new, frames, unpacked, methods } = self;
        stacks.clear();
        new.clear();
        frames.clear();
        unpacked.clear();
        methods.clear();
    }
}

/// Stack that the table may not have.
pub struct NewStack {
    /// Position of the event that has it.
    pub position: u32,
    /// Its frames, a range of [`Answers::frames`].
    pub frames: Range<usize>,
}

/// Managed method at a location in a module.
#[derive(Clone, Copy)]
pub struct NotedMethod {
    /// Position of the event with the method in its stack.
    pub position: u32,
    pub frame: FrameKey,
    pub method: u32,
}

impl StackShard {
    /// Looks up the stacks of all requested events. `more` returns the stack parts beyond the second for a row's event.
    pub fn answer<'q>(
        &mut self,
        more: impl Fn(u32) -> &'q [FragmentRef],
        context: &AddressContext<'_>,
    ) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut new = Vec::with_capacity(LOOKED_UP_AT_ONCE);
        let mut known = Vec::with_capacity(LOOKED_UP_AT_ONCE);
        for requests in requests.chunks(LOOKED_UP_AT_ONCE) {
            // Looked up all at once with nothing in between, so that the fetches of uncached entries overlap.
            known.extend(requests.iter().map(|request| self.stacks.first(request.key())));
            for (request, known) in requests.iter().zip(known.drain(..)) {
                let known = known.filter(|_| more(request.row).is_empty());
                let (key, time) = (request.key(), request.time);
                match known.and_then(|first| self.stacks.get_from(first, key, time)) {
                    Some(answer) => self.note(request.position, answer),
                    None => new.push(request),
                }
            }
            let parts = || new.iter().flat_map(|request| request.parts);
            parts().for_each(|part| context.fragments.fetch_place(part));
            parts().for_each(|part| context.fragments.fetch(part));
            for StackRequest { position, row, parts, pid, time } in new.drain(..).copied() {
                self.look_up(position, &Query { parts, more: more(row), pid, time }, context);
            }
        }
        requests.clear();
        self.requests = requests;
    }

    fn note(&mut self, position: u32, answer: StackAnswer) {
        self.answers.stacks.extend(answer.stack.map(|stack| (position, stack)));
    }

    /// Looks up the stack of the event at a position, and resolves it if new.
    pub fn look_up(&mut self, position: u32, query: &Query<'_>, context: &AddressContext<'_>) {
        let Query { parts, more, pid, time } = *query;
        if parts[0] == FragmentRef::NONE {
            return;
        }
        let key = key(parts, pid);
        let known = if more.is_empty() { self.stacks.get(key, time) } else { None };
        let answer = known.unwrap_or_else(|| {
            let answer = self.join(position, query, context);
            if more.is_empty() {
                self.stacks.put(key, answer);
            }
            answer
        });
        self.note(position, answer);
    }

    /// Joins the frames of the parts to a new stack.
    fn join(
        &mut self,
        position: u32,
        query: &Query<'_>,
        context: &AddressContext<'_>,
    ) -> StackAnswer {
        let Query { parts, more, pid, time } = *query;
        let mut joined = StackAnswer { from: i64::MIN, to: i64::MAX, stack: None };
        let start = self.answers.frames.len();
        let parts = || {
            parts.iter().chain(more).map(|part| {
                context.fragments.addresses(*part).map(|address| {
                    (address, if context.spaces.is_kernel(address) { KERNEL } else { pid })
                })
            })
        };
        // These fetches overlap; the loop below waits for one after the other.
        parts().flatten().for_each(|(address, space)| self.recent.fetch(space, address));
        // Number of a time range that already contains `joined`: that of the last address, if it was known. Most other
        // addresses have the same.
        let mut last_span = None;
        for addresses in parts() {
            for (address, space) in addresses {
                let recent = self.recent.find(space, address);
                if let Some(RecentFrame { frame, span: span @ Some(_), .. }) = recent
                    && span == last_span
                {
                    self.answers.frames.push(frame);
                    continue;
                }
                let known = recent.and_then(|recent| self.recent.located(recent, time));
                last_span = known.and(recent).and_then(|recent| recent.span);
                let located =
                    known.unwrap_or_else(|| self.locate(position, space, address, time, context));
                joined.from = joined.from.max(located.from);
                joined.to = joined.to.min(located.to);
                self.answers.frames.push(located.frame);
            }
        }
        let end = self.answers.frames.len();
        if end > start {
            joined.stack = Some(self.count);
            self.count += 1;
            self.answers.new.push(NewStack { position, frames: start..end });
        }
        joined
    }

    /// Locates an address and remembers the answer.
    fn locate(
        &mut self,
        position: u32,
        pid: u32,
        address: u64,
        time: i64,
        context: &AddressContext<'_>,
    ) -> TimedFrame {
        let AddressContext { spaces, methods, .. } = *context;
        let mut located = spaces.locate(pid, address, time);
        let mut managed = methods.locate(pid, address, time);
        let (mut from, mut to) = (located.from.max(managed.from), located.to.min(managed.to));
        // Stacks contain return addresses. If the last instruction of a module or method is a call, its return address
        // is outside.
        if let (None, None, Some(call)) =
            (located.location, managed.location, address.checked_sub(1))
        {
            located = spaces.locate(pid, call, time);
            located.location = located.location.map(|(module, rva)| (module, rva + 1));
            managed = methods.locate(pid, call, time);
            from = from.max(located.from).max(managed.from);
            to = to.min(located.to).min(managed.to);
        }
        // Code compiled at run time may be in the address range of an unloaded image.
        let module = located.location.filter(|_| located.is_live || managed.location.is_none());
        let method = managed.location.map(|(method, _)| method);
        let frame = match (module, method) {
            (Some((module, rva)), _) => FrameKey::InModule(module, rva),
            (None, Some(method)) => FrameKey::InMethod(method, address),
            (None, None) => FrameKey::Address(address),
        };
        if let (Some(_), Some(method)) = (module, method) {
            self.answers.methods.push(NotedMethod { position, frame, method });
        }
        let located = TimedFrame { frame: self.code(frame), from, to };
        self.recent.put(pid, address, located);
        located
    }

    fn code(&mut self, frame: FrameKey) -> FrameCode {
        if let Some(packed) = PackedFrame::new(frame) {
            return FrameCode::from_packed(packed);
        }
        let Self { unpacked, answers, .. } = self;
        let next = unpacked.len() as u32;
        let number = *unpacked.entry(frame).or_insert_with(|| {
            answers.unpacked.push(frame);
            next
        });
        FrameCode::from_number(number)
    }
}
