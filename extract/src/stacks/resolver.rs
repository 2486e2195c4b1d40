//! Parts of stacks → rows of the stacks table, whose frames are distinct code locations.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::ops::Range;
use std::thread;

use handlescope_model::tables::{Frame, Frames, Stacks};
use handlescope_model::{FrameIdx, MethodIdx, ModuleIdx};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxHasher;

use super::events::EventStacks;
use super::fragments::{FragmentRef, Fragments};
use super::modules::AddressSpaces;
use crate::intern::Interner;
use crate::raw::Timeline;

/// Turns the parts of stacks into frames and numbers the distinct stacks.
///
/// The same parts have the same frames as long as no module involved is loaded or unloaded, so
/// each answer is kept with the time range in which it holds. Kernel parts have the same frames in every
/// process.
///
/// The answers lie in shards, by the part of a stack that is most its own and its process, so that several threads
/// look up and resolve the stacks of many events at once. Shards number what they meet by themselves; the numbers of the
/// tables are given in the order of the events, and so are the same for every number of shards.
pub struct StackResolver<'a> {
    context: Context<'a>,
    table: &'a mut StackTable,
    shards: Vec<Shard>,
    rows: KeptRows,
    notes_rows: bool,
}

/// What addresses are resolved with.
#[derive(Clone, Copy)]
struct Context<'a> {
    fragments: &'a Fragments,
    spaces: &'a AddressSpaces,
    methods: &'a AddressSpaces,
}

/// A stack to be resolved: its parts, and the process and raw time that decide the modules.
#[derive(Clone, Copy)]
struct Query<'a> {
    parts: [FragmentRef; 2],
    /// Parts beyond the second.
    more: &'a [FragmentRef],
    pid: u32,
    time: i64,
}

/// Process whose address space the addresses of a part lie in, or the kernel's, which all processes share.
///
/// One number and no enum: it is hashed with each part, and no process has the number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PartSpace(u32);

impl PartSpace {
    const KERNEL: Self = Self(u32::MAX);
}

/// An answer and the raw times for which it holds.
#[derive(Debug, Clone, Copy)]
struct Answer {
    /// First time; the smallest number when nothing bounds it.
    from: i64,
    /// First time at which it no longer holds; the largest number when nothing bounds it.
    to: i64,
    /// The number of the part or stack; `None` when a stack has no frames.
    list: Option<u32>,
}

impl Answer {
    fn holds(&self, time: i64) -> bool {
        self.from <= time && time < self.to
    }
}

/// Answers by question; most questions have one answer for the whole trace.
///
/// There are hundreds of thousands of questions, and each event looks one up at random: the time ranges of answers, of
/// which there are few, are kept apart so that an answer takes eight bytes.
struct Memory<K> {
    first: HashMap<K, StoredAnswer>,
    more: HashMap<K, Vec<StoredAnswer>>,
    /// Distinct time ranges in which answers hold.
    spans: Vec<(i64, i64)>,
    span_numbers: HashMap<(i64, i64), u32>,
}

/// An [`Answer`] in eight bytes.
#[derive(Debug, Clone, Copy)]
struct StoredAnswer {
    /// The number of the list plus one.
    list: Option<NonZeroU32>,
    /// Index of the time range.
    span: u32,
}

impl StoredAnswer {
    fn new(list: Option<u32>, span: u32) -> Self {
        Self { list: list.and_then(|list| NonZeroU32::new(list + 1)), span }
    }

    fn list(self) -> Option<u32> {
        self.list.map(|list| list.get() - 1)
    }
}

impl<K> Default for Memory<K> {
    fn default() -> Self {
        Self {
            first: HashMap::new(),
            more: HashMap::new(),
            spans: Vec::new(),
            span_numbers: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash> Memory<K> {
    fn get(&self, key: K, time: i64) -> Option<Answer> {
        let first = self.answer(*self.first.get(&key)?)?;
        if first.holds(time) {
            return Some(first);
        }
        let mut more = self.more.get(&key)?.iter().filter_map(|stored| self.answer(*stored));
        more.find(|answer| answer.holds(time))
    }

    fn answer(&self, stored: StoredAnswer) -> Option<Answer> {
        let (from, to) = *self.spans.get(stored.span as usize)?;
        Some(Answer { from, to, list: stored.list() })
    }

    fn put(&mut self, key: K, answer: Answer) {
        let span = *self.span_numbers.entry((answer.from, answer.to)).or_insert_with_key(|span| {
            self.spans.push(*span);
            self.spans.len() as u32 - 1
        });
        let stored = StoredAnswer::new(answer.list, span);
        if self.first.contains_key(&key) {
            self.more.entry(key).or_default().push(stored);
        } else {
            self.first.insert(key, stored);
        }
    }
}

impl<'a> StackResolver<'a> {
    /// Creates a resolver of fragments, with the modules and the managed methods that addresses may
    /// lie in, which works on as many threads.
    pub fn new(
        fragments: &'a Fragments,
        spaces: &'a AddressSpaces,
        methods: &'a AddressSpaces,
        table: &'a mut StackTable,
        threads: usize,
    ) -> Self {
        Self {
            context: Context { fragments, spaces, methods },
            table,
            shards: (0..threads.max(1)).map(|_| Shard::default()).collect(),
            rows: KeptRows::default(),
            notes_rows: false,
        }
    }

    /// The stacks of rows of the timeline.
    ///
    /// `None` when the event has no stack, or there is no such row.
    pub fn of_rows(
        &mut self,
        stacks: &EventStacks,
        timeline: &Timeline,
        rows: &[u32],
    ) -> Vec<Option<u32>> {
        let query = |row: usize| {
            let (pid, time) = (*timeline.pid.get(row)?, *timeline.time.get(row)?);
            Some(Query { parts: stacks.parts(row), more: stacks.more_parts(row), pid, time })
        };
        let (context, count) = (self.context, self.shards.len());
        let resolve = |shard: &mut Shard, number: usize| {
            for (position, row) in (0..).zip(rows) {
                if let Some(query) =
                    query(*row as usize).filter(|query| query.shard(count) == number)
                {
                    shard.look_up(position, &query, &context);
                }
            }
        };
        thread::scope(|scope| {
            let mut shards = self.shards.iter_mut().enumerate();
            let first = shards.next();
            for (number, shard) in shards {
                scope.spawn(move || resolve(shard, number));
            }
            if let Some((number, shard)) = first {
                resolve(shard, number);
            }
        });
        let stacks = self.number(rows.len());
        if self.notes_rows {
            let with_stack = rows.iter().zip(&stacks).filter(|(_, stack)| stack.is_some());
            with_stack.for_each(|(row, _)| self.rows.add(*row as usize));
        }
        stacks
    }

    /// The stack of a row of the timeline.
    ///
    /// `None` when the event has no stack, or there is no such row.
    pub fn of_row(&mut self, stacks: &EventStacks, timeline: &Timeline, row: usize) -> Option<u32> {
        let (pid, time) = (*timeline.pid.get(row)?, *timeline.time.get(row)?);
        let parts = stacks.parts(row);
        let stack = self.resolve(&Query { parts, more: stacks.more_parts(row), pid, time })?;
        if self.notes_rows {
            self.rows.add(row);
        }
        Some(stack)
    }

    /// Starts or ends noting which rows have a stack.
    pub fn note_rows(&mut self, notes_rows: bool) {
        self.notes_rows = notes_rows;
    }

    /// The noted rows of the timeline that have a stack.
    pub fn rows(&self) -> &KeptRows {
        &self.rows
    }

    /// Returns the rows without the resolver.
    pub fn into_rows(self) -> KeptRows {
        self.rows
    }

    /// The stack of an event: its parts, and the process and raw time that decide the modules.
    ///
    /// `None` when no part has frames.
    pub fn stack(
        &mut self,
        parts: [FragmentRef; 2],
        more: &[FragmentRef],
        pid: u32,
        time: i64,
    ) -> Option<u32> {
        self.resolve(&Query { parts, more, pid, time })
    }

    fn resolve(&mut self, query: &Query<'_>) -> Option<u32> {
        let shard = query.shard(self.shards.len());
        self.shards.get_mut(shard)?.look_up(0, query, &self.context);
        self.number(1).into_iter().next().flatten()
    }

    /// Numbers the stacks that were looked up, and returns that of each position.
    fn number(&mut self, positions: usize) -> Vec<Option<u32>> {
        let Self { table, shards, .. } = self;
        // In the order of the events, whichever shard they are in.
        while let Some((_, shard)) = shards
            .iter_mut()
            .filter_map(|shard| Some((shard.next_position()?, shard)))
            .min_by_key(|(position, _)| *position)
        {
            shard.number_next(table);
        }
        let (mut stacks, mut methods) = (vec![None; positions], Vec::new());
        for shard in shards {
            for (position, stack) in shard.take_results(&mut methods) {
                stacks[position as usize] = Some(stack);
            }
        }
        methods.sort_by_key(|noted| noted.position);
        for NotedMethod { frame, method, .. } in methods {
            table.frames.note_method(frame, method);
        }
        stacks
    }
}

impl Query<'_> {
    /// The shard that has the answer.
    ///
    /// User parts differ most; the kernel parts of a call are the same everywhere.
    fn shard(&self, count: usize) -> usize {
        let [first, second] = self.parts;
        let part = if second == FragmentRef::NONE { first } else { second };
        let mut hasher = FxHasher::default();
        (part, self.pid).hash(&mut hasher);
        // The upper bits are the best mixed.
        ((hasher.finish() >> 32) as usize) % count
    }
}

/// Some of the answers, with numbers of their own for stacks and frames.
#[derive(Default)]
struct Shard {
    parts: Memory<(FragmentRef, PartSpace)>,
    stacks: Memory<(FragmentRef, FragmentRef, u32)>,
    /// Frames of parts.
    part_frames: Interner<u32>,
    frames: FrameInterner,
    /// Number of each frame in the table, once a stack with it has one.
    frame_numbers: Vec<Option<u32>>,
    /// Number of each stack in the table; those in `new` follow.
    stack_numbers: Vec<u32>,
    /// Stacks that have no number yet, in the order of their events.
    new: VecDeque<NewStack>,
    /// Their frames.
    new_frames: Vec<u32>,
    /// Position of each event that was looked up, and its stack.
    results: Vec<(u32, u32)>,
    methods: Vec<NotedMethod>,
    scratch: Vec<u32>,
}

/// A stack that the table may not have.
struct NewStack {
    /// Position of the event that has it.
    position: u32,
    /// Range of its frames.
    frames: Range<usize>,
}

/// A managed method at a location in a module.
#[derive(Clone, Copy)]
struct NotedMethod {
    /// Position of the event that has it in its stack.
    position: u32,
    frame: u32,
    method: u32,
}

impl Shard {
    /// Looks up the stack of the event at a position, and resolves it if it is new.
    fn look_up(&mut self, position: u32, query: &Query<'_>, context: &Context<'_>) {
        let Query { parts: [first, second], more, pid, time } = *query;
        if first == FragmentRef::NONE {
            return;
        }
        let key = (first, second, pid);
        let known = if more.is_empty() { self.stacks.get(key, time) } else { None };
        let answer = known.unwrap_or_else(|| {
            let answer = self.join(position, query, context);
            if more.is_empty() {
                self.stacks.put(key, answer);
            }
            answer
        });
        self.results.extend(answer.list.map(|stack| (position, stack)));
    }

    /// Joins the frames of the parts to a new stack.
    fn join(&mut self, position: u32, query: &Query<'_>, context: &Context<'_>) -> Answer {
        let Query { parts, more, pid, time } = *query;
        let mut joined = Answer { from: i64::MIN, to: i64::MAX, list: None };
        let start = self.new_frames.len();
        for part in parts.iter().chain(more) {
            let answer = self.part(position, *part, pid, time, context);
            joined.from = joined.from.max(answer.from);
            joined.to = joined.to.min(answer.to);
            let frames = answer.list.map_or(&[][..], |list| self.part_frames.get(list));
            self.new_frames.extend_from_slice(frames);
        }
        let end = self.new_frames.len();
        if end > start {
            joined.list = Some((self.stack_numbers.len() + self.new.len()) as u32);
            self.new.push_back(NewStack { position, frames: start..end });
        }
        joined
    }

    /// The frames of one part.
    fn part(
        &mut self,
        position: u32,
        part: FragmentRef,
        pid: u32,
        time: i64,
        context: &Context<'_>,
    ) -> Answer {
        let Context { fragments, spaces, methods } = *context;
        let addresses = fragments.addresses(part);
        let is_kernel = addresses.clone().all(|address| spaces.is_kernel(address));
        let key = (part, if is_kernel { PartSpace::KERNEL } else { PartSpace(pid) });
        if let Some(answer) = self.parts.get(key, time) {
            return answer;
        }
        let (mut from, mut to) = (i64::MIN, i64::MAX);
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        for address in addresses {
            let mut located = spaces.locate(pid, address, time);
            let mut managed = methods.locate(pid, address, time);
            from = from.max(located.from).max(managed.from);
            to = to.min(located.to).min(managed.to);
            // Stacks have return addresses: when the last instruction of a module or method is a call, its return
            // address lies outside.
            if let (None, None, Some(call)) =
                (located.location, managed.location, address.checked_sub(1))
            {
                located = spaces.locate(pid, call, time);
                located.location = located.location.map(|(module, rva)| (module, rva + 1));
                managed = methods.locate(pid, call, time);
                from = from.max(located.from).max(managed.from);
                to = to.min(located.to).min(managed.to);
            }
            // Code compiled at run time may lie in the address range of an image that was unloaded.
            let module = located.location.filter(|_| located.is_live || managed.location.is_none());
            let method = managed.location.map(|(method, _)| method);
            let frame = self.frames.intern(match (module, method) {
                (Some((module, rva)), _) => FrameKey::InModule(module, rva),
                (None, Some(method)) => FrameKey::InMethod(method, address),
                (None, None) => FrameKey::Address(address),
            });
            if let (Some(_), Some(method)) = (module, method) {
                self.methods.push(NotedMethod { position, frame, method });
            }
            frames.push(frame);
        }
        let answer = Answer { from, to, list: Some(self.part_frames.intern(&frames)) };
        self.scratch = frames;
        self.parts.put(key, answer);
        answer
    }

    /// Position of the first event whose stack has no number yet.
    fn next_position(&self) -> Option<u32> {
        self.new.front().map(|stack| stack.position)
    }

    /// Gives the next stack its number.
    fn number_next(&mut self, table: &mut StackTable) {
        let Some(NewStack { frames, .. }) = self.new.pop_front() else { return };
        self.frame_numbers.resize(self.frames.len(), None);
        self.scratch.clear();
        for frame in &self.new_frames[frames] {
            let number = &mut self.frame_numbers[*frame as usize];
            let number = number.get_or_insert_with(|| table.frames.intern(self.frames.key(*frame)));
            self.scratch.push(*number);
        }
        self.stack_numbers.push(table.stacks.intern(&self.scratch));
    }

    /// Returns the stack of each position that was looked up, and the noted methods with the frames of the table.
    fn take_results(
        &mut self,
        methods: &mut Vec<NotedMethod>,
    ) -> impl Iterator<Item = (u32, u32)> + '_ {
        let Self { frame_numbers, stack_numbers, .. } = self;
        methods.extend(self.methods.drain(..).filter_map(|noted| {
            Some(NotedMethod { frame: (*frame_numbers.get(noted.frame as usize)?)?, ..noted })
        }));
        self.new_frames.clear();
        self.results.drain(..).map(|(position, stack)| (position, stack_numbers[stack as usize]))
    }
}

/// The distinct stacks and their frames, of all resolvers.
#[derive(Default)]
pub struct StackTable {
    frames: FrameInterner,
    /// Frames of stacks; the number is the row of the stacks table.
    stacks: Interner<u32>,
}

impl StackTable {
    pub fn frames(&self) -> &FrameInterner {
        &self.frames
    }

    pub fn into_table(self) -> Stacks {
        let stack = |frames: &[u32]| frames.iter().copied().map(FrameIdx).collect();
        Stacks { frames: self.stacks.iter().map(stack).collect() }
    }
}

/// A code location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKey {
    /// Module row and offset from its base.
    InModule(u32, u64),
    /// Row of a method that was compiled at run time, and the address in its code.
    InMethod(u32, u64),
    /// An address outside of all modules.
    Address(u64),
}

/// Numbers code locations in the order they are first seen.
#[derive(Default)]
pub struct FrameInterner {
    /// Locations in modules, packed into one number: hashing it is much of the work of a stack.
    packed: HashMap<u64, u32>,
    /// Locations that [`pack`] cannot pack.
    unpacked: HashMap<FrameKey, u32>,
    keys: Vec<FrameKey>,
    /// Methods of managed code in modules, by the number of the location.
    methods: HashMap<u32, u32>,
}

impl FrameInterner {
    /// Notes the managed method at a location in a module.
    pub fn note_method(&mut self, id: u32, method: u32) {
        self.methods.entry(id).or_insert(method);
    }

    /// The number of a location.
    pub fn intern(&mut self, key: FrameKey) -> u32 {
        let Self { packed, unpacked, keys, .. } = self;
        let next = keys.len() as u32;
        let id = match pack(key) {
            Some(location) => *packed.entry(location).or_insert(next),
            None => *unpacked.entry(key).or_insert(next),
        };
        if id == next {
            keys.push(key);
        }
        id
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    /// The location with a number that was given.
    fn key(&self, id: u32) -> FrameKey {
        self.keys[id as usize]
    }

    /// Number of locations that lie in a module.
    pub fn in_modules(&self) -> u64 {
        self.keys.iter().filter(|key| matches!(key, FrameKey::InModule(..))).count() as u64
    }

    /// The methods that locations lie in, some of them several times.
    pub fn methods(&self) -> impl Iterator<Item = u32> + '_ {
        let at_run_time = self.keys.iter().filter_map(|key| match key {
            FrameKey::InMethod(method, _) => Some(*method),
            _ => None,
        });
        let mut in_modules: Vec<(u32, u32)> =
            self.methods.iter().map(|(id, method)| (*id, *method)).collect();
        in_modules.sort_unstable();
        at_run_time.chain(in_modules.into_iter().map(|(_, method)| method))
    }

    /// The frames table; `row_of` returns the row of a method in the methods table.
    pub fn table(&self, row_of: impl Fn(u32) -> Option<MethodIdx>) -> Frames {
        let mut table = Frames::default();
        for (id, key) in (0..).zip(&self.keys) {
            let method = self.methods.get(&id).and_then(|method| row_of(*method));
            table.push(match *key {
                FrameKey::InModule(module, rva) => {
                    Frame { module: Some(ModuleIdx(module)), rva: Some(rva), address: None, method }
                }
                FrameKey::InMethod(method, address) => Frame {
                    module: None,
                    rva: None,
                    address: Some(address),
                    method: row_of(method),
                },
                FrameKey::Address(address) => {
                    Frame { module: None, rva: None, address: Some(address), method: None }
                }
            });
        }
        table
    }
}

/// Module and offset in one number; `None` for locations outside of modules and offsets beyond 4 GiB, which no image
/// has (SizeOfImage has 32 bits).
fn pack(key: FrameKey) -> Option<u64> {
    match key {
        FrameKey::InModule(module, rva) => {
            let rva = u32::try_from(rva).ok()?;
            Some(u64::from(module) << 32 | u64::from(rva))
        }
        FrameKey::InMethod(..) | FrameKey::Address(_) => None,
    }
}

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// Rows of the timeline whose stacks are in some table, a bit for each.
#[derive(Default)]
pub struct KeptRows {
    words: Vec<u64>,
    count: u64,
}

impl KeptRows {
    pub(super) fn add(&mut self, row: usize) {
        let (word, bit) = (row / BITS, 1 << (row % BITS));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn has(&self, row: usize) -> bool {
        self.words.get(row / BITS).is_some_and(|word| word & (1 << (row % BITS)) != 0)
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rows whose events carry their stacks themselves.
    pub fn carried<'s>(&'s self, stacks: &'s EventStacks) -> impl Iterator<Item = usize> + 's {
        stacks.carried().iter().map(|row| *row as usize).filter(|row| self.has(*row))
    }

    /// Raw time and thread of the events that carry their stacks themselves.
    pub fn carried_events(&self, stacks: &EventStacks, timeline: &Timeline) -> HashSet<(i64, u32)> {
        let rows = self.carried(stacks);
        rows.filter_map(|row| Some((*timeline.time.get(row)?, *timeline.tid.get(row)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::fragments::tests::frames;
    use crate::stacks::modules::Mapping;

    const KERNEL: u64 = 0xFFFF_8000_0000_0000;

    fn spaces() -> AddressSpaces {
        let mapping = |base, module, from, to| Mapping {
            base,
            size: 0x1000,
            module,
            from,
            to,
            since: from,
            until: to,
        };
        AddressSpaces::new(
            [
                (0, mapping(KERNEL, 0, i64::MIN, i64::MAX)),
                (7, mapping(0x1000, 1, i64::MIN, 100)),
                (7, mapping(0x1000, 2, 100, i64::MAX)),
                (8, mapping(0x2000, 1, i64::MIN, i64::MAX)),
            ],
            8,
        )
    }

    fn no_methods() -> AddressSpaces {
        AddressSpaces::new([], 8)
    }

    #[test]
    fn equal_code_at_different_addresses_is_one_stack() {
        let (spaces, methods, mut fragments) = (spaces(), no_methods(), Fragments::default());
        let kernel = fragments.intern(&frames(&[KERNEL + 5]), 8, false);
        let in_7 = fragments.intern(&frames(&[0x1010]), 8, true);
        let in_8 = fragments.intern(&frames(&[0x2010]), 8, true);
        let mut table = StackTable::default();
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        let first = resolver.stack([kernel, in_7], &[], 7, 50);
        assert_eq!(resolver.stack([kernel, in_8], &[], 8, 50), first);
        assert_eq!(resolver.stack([kernel, in_7], &[], 7, 60), first);
        assert_eq!(table.into_table().frames, [[FrameIdx(0), FrameIdx(1)]]);
    }

    #[test]
    fn equal_addresses_are_different_stacks_once_a_module_was_replaced() {
        let (spaces, methods, mut fragments) = (spaces(), no_methods(), Fragments::default());
        let user = fragments.intern(&frames(&[0x1010]), 8, true);
        let mut table = StackTable::default();
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        let before = resolver.stack([user, FragmentRef::NONE], &[], 7, 50);
        let after = resolver.stack([user, FragmentRef::NONE], &[], 7, 150);
        assert_ne!(before, after);
        assert_eq!(resolver.stack([user, FragmentRef::NONE], &[], 7, 99), before);
        assert_eq!(resolver.stack([user, FragmentRef::NONE], &[], 7, 100), after);
    }

    #[test]
    fn a_stack_without_frames_is_none() {
        let (spaces, methods, mut fragments) = (spaces(), no_methods(), Fragments::default());
        let lost = fragments.refer(1, false);
        let mut table = StackTable::default();
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        assert_eq!(resolver.stack([lost, FragmentRef::NONE], &[], 7, 50), None);
        assert_eq!(resolver.stack([FragmentRef::NONE; 2], &[], 7, 50), None);
    }

    #[test]
    fn different_locations_have_different_numbers() {
        let mut frames = FrameInterner::default();
        let keys = [
            FrameKey::InModule(1, 2),
            FrameKey::InModule(2, 1),
            FrameKey::InModule(0, 1 << 33),
            FrameKey::Address(1 << 32 | 2),
        ];
        assert_eq!(keys.map(|key| frames.intern(key)), [0, 1, 2, 3]);
        assert_eq!(keys.map(|key| frames.intern(key)), [0, 1, 2, 3]);
        assert_eq!((frames.in_modules(), frames.table(|_| None).len()), (3, 4));
    }

    #[test]
    fn rows_count_once() {
        let mut rows = KeptRows::default();
        for row in [3, 64, 3, 1000, 64] {
            rows.add(row);
        }
        assert_eq!(rows.len(), 3);
        for row in [3, 64, 1000] {
            assert!(rows.has(row) && !rows.has(row + 1) && !rows.has(row + 64), "{row}");
        }
        assert!(!rows.has(5000));
    }
}
