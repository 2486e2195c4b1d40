//! Resolves stack parts to rows of the stacks table, with distinct code locations as frames.

use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use std::slice;

use handlescope_model::tables::StackRows;
use hashbrown::HashSet;
use rustc_hash::FxHasher;

use super::events::EventStacks;
use super::fragments::{FragmentRef, Fragments};
use super::frames::{FrameCode, FrameKey, StackTable};
use super::modules::AddressSpaces;
use super::shard::{
    AddressContext, Answers, NewStack, NotedMethod, Query, StackRequest, StackShard,
};
use crate::number_set::NumberSet;
use crate::raw::Timeline;
use crate::side_by_side::side_by_side;

/// New stacks numbered at once.
const NUMBERED_AT_ONCE: usize = 64;

/// Turns the parts of stacks into frames and numbers the distinct stacks.
///
/// The same parts have the same frames until a module involved is loaded or unloaded. So each answer is kept with the
/// time range in which it holds.
pub struct StackResolver<'a> {
    look_up: StackLookUp<'a>,
    numbers: StackNumbering<'a>,
}

/// First half of the work: looking up stack parts and their frames.
///
/// The answers are in shards, chosen by the process and the most distinctive stack part. So several threads can look up
/// and resolve the stacks of many events at once. Each shard numbers what it meets by itself.
pub struct StackLookUp<'a> {
    context: AddressContext<'a>,
    shards: Vec<StackShard>,
}

/// Second half of the work: numbering stacks and frames. Numbers are given in the order of the events, so they do not
/// depend on the number of shards.
pub struct StackNumbering<'a> {
    table: &'a mut StackTable,
    shards: Vec<NumberedShard>,
    group: StackGroup,
    rows: KeptRows,
    notes_rows: bool,
}

/// Reused memory for stacks that are numbered at once.
#[derive(Default)]
struct StackGroup {
    /// Their frames. Those in `unknown` are filled in last.
    rows: StackRows,
    /// Frames that were not looked up recently or are not packed.
    unknown: Vec<UnknownFrame>,
    /// Numbers of these that the table already has.
    known: Vec<Option<u32>>,
}

/// Frame that was not looked up recently or is not packed.
struct UnknownFrame {
    /// Position in the frames of the stacks.
    at: usize,
    shard: usize,
    code: FrameCode,
}

/// Numbers for what a shard met.
#[derive(Default)]
struct NumberedShard {
    /// Row of each stack in the table.
    stacks: Vec<u32>,
    /// Each unpacked location, with its number once a stack with it is numbered.
    unpacked: Vec<(FrameKey, Option<u32>)>,
}

/// Stacks that were looked up but not numbered yet.
pub struct LookedUp<'r> {
    /// Rows of the timeline.
    rows: &'r [u32],
    /// By shard.
    answers: Vec<Answers>,
}

impl<'a> StackResolver<'a> {
    /// Creates a resolver of fragments that uses `threads` threads. `spaces` and `methods` have the modules and managed
    /// methods that addresses may be in.
    pub fn new(
        fragments: &'a Fragments,
        spaces: &'a AddressSpaces,
        methods: &'a AddressSpaces,
        table: &'a mut StackTable,
        threads: usize,
    ) -> Self {
        let shards = threads.max(1);
        Self {
            look_up: StackLookUp {
                context: AddressContext { fragments, spaces, methods },
                shards: (0..shards).map(|_| StackShard::default()).collect(),
            },
            numbers: StackNumbering {
                table,
                shards: (0..shards).map(|_| NumberedShard::default()).collect(),
                group: StackGroup::default(),
                rows: KeptRows::default(),
                notes_rows: false,
            },
        }
    }

    /// Returns both halves, for one thread each.
    pub fn halves(&mut self) -> (&mut StackLookUp<'a>, &mut StackNumbering<'a>) {
        (&mut self.look_up, &mut self.numbers)
    }

    /// Returns the stack of a timeline row.
    ///
    /// `None` if the event has no stack, or the row does not exist.
    pub fn of_row(&mut self, stacks: &EventStacks, timeline: &Timeline, row: usize) -> Option<u32> {
        let (pid, time) = (*timeline.pid.get(row)?, *timeline.time.get(row)?);
        let parts = stacks.parts(row);
        let stack = self.resolve(&Query { parts, more: stacks.more_parts(row), pid, time })?;
        if self.numbers.notes_rows {
            self.numbers.rows.add(row);
        }
        Some(stack)
    }

    /// Starts or stops noting which rows have a stack.
    pub fn note_rows(&mut self, notes_rows: bool) {
        self.numbers.notes_rows = notes_rows;
    }

    /// Returns the noted timeline rows that have a stack.
    pub fn rows(&self) -> &KeptRows {
        &self.numbers.rows
    }

    /// Returns the noted rows and drops the resolver.
    pub fn into_rows(self) -> KeptRows {
        self.numbers.rows
    }

    /// Returns the stack of an event from its parts. Its process and raw time determine the modules.
    ///
    /// `None` if no part has frames.
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
        let Self { look_up: StackLookUp { context, shards }, numbers } = self;
        let number = shard_of(query.parts, query.pid, shards.len());
        let shard = shards.get_mut(number)?;
        shard.look_up(0, query, context);
        numbers.number(&[(number, &shard.answers)]);
        let stack = shard.answers.stacks.first().map(|(_, stack)| *stack as usize);
        shard.answers.clear();
        stack.map(|stack| numbers.shards[number].stacks[stack])
    }
}

impl StackLookUp<'_> {
    /// Looks up the stacks of timeline rows.
    pub fn rows<'r>(
        &mut self,
        stacks: &EventStacks,
        timeline: &Timeline,
        rows: &'r [u32],
    ) -> LookedUp<'r> {
        let Self { context, shards } = self;
        let (context, count) = (*context, shards.len());
        for (position, row) in (0..).zip(rows) {
            let at = *row as usize;
            let (Some(pid), Some(time)) = (timeline.pid.get(at), timeline.time.get(at)) else {
                continue;
            };
            let (parts, pid, time) = (stacks.parts(at), *pid, *time);
            if parts[0] != FragmentRef::NONE {
                let request = StackRequest { position, row: *row, parts, pid, time };
                shards[shard_of(parts, pid, count)].requests.push(request);
            }
        }
        let more = |row: u32| stacks.more_parts(row as usize);
        let requested = shards.iter_mut().filter(|shard| !shard.requests.is_empty());
        let Ok(_) = side_by_side(requested, |shard| {
            shard.answer(more, &context);
            Ok::<_, Infallible>(())
        });
        let answers = shards.iter_mut().map(|shard| shard.answers.take()).collect();
        LookedUp { rows, answers }
    }
}

impl StackNumbering<'_> {
    /// Appends the stack of each looked-up row, in order; `None` for an event without a stack.
    pub fn rows(&mut self, looked_up: &LookedUp<'_>, stacks: &mut Vec<Option<u32>>) {
        let LookedUp { rows, answers } = looked_up;
        self.number(&answers.iter().enumerate().collect::<Vec<_>>());
        let first = stacks.len();
        stacks.resize(first + rows.len(), None);
        let stacks = &mut stacks[first..];
        for (shard, answers) in self.shards.iter().zip(answers) {
            for (position, stack) in &answers.stacks {
                stacks[*position as usize] = Some(shard.stacks[*stack as usize]);
            }
        }
        if self.notes_rows {
            let with_stack = rows.iter().zip(stacks).filter(|(_, stack)| stack.is_some());
            with_stack.for_each(|(row, _)| self.rows.add(*row as usize));
        }
    }

    /// Numbers the new stacks of all shards in the order of their events, whichever shard they are in.
    fn number(&mut self, answers: &[(usize, &Answers)]) {
        for (shard, answers) in answers {
            let unpacked = answers.unpacked.iter().map(|frame| (*frame, None));
            self.shards[*shard].unpacked.extend(unpacked);
        }
        let mut queues: Vec<_> =
            answers.iter().map(|(shard, answers)| (*shard, *answers, answers.new.iter())).collect();
        let position =
            |new: &slice::Iter<'_, NewStack>| new.as_slice().first().map(|it| it.position);
        let next = || {
            let queue = queues
                .iter_mut()
                .filter(|(.., new)| position(new).is_some())
                .min_by_key(|(.., new)| position(new));
            let (shard, answers, new) = queue?;
            Some((*shard, &answers.frames[new.next()?.frames.clone()]))
        };
        let mut stacks = std::iter::from_fn(next);
        let mut batch = Vec::with_capacity(NUMBERED_AT_ONCE);
        loop {
            batch.clear();
            batch.extend(stacks.by_ref().take(NUMBERED_AT_ONCE));
            if batch.is_empty() {
                break;
            }
            self.number_stacks(&batch);
        }
        let mut methods: Vec<_> =
            answers.iter().flat_map(|(_, answers)| answers.methods.iter().copied()).collect();
        methods.sort_by_key(|noted| noted.position);
        for NotedMethod { frame, method, .. } in methods {
            let frame = self.table.frames.intern(frame);
            self.table.frames.note_method(frame, method);
        }
    }

    /// Numbers new stacks, given with their shards.
    fn number_stacks(&mut self, stacks: &[(usize, &[FrameCode])]) {
        let mut group = std::mem::take(&mut self.group);
        let StackGroup { rows, unknown, known } = &mut group;
        let frames = &mut self.table.frames;
        let mut at = 0;
        for (shard, codes) in stacks {
            rows.push_from(codes.iter().map(|code| {
                let recent = code.decode().ok().and_then(|frame| frames.recent(frame));
                at += 1;
                recent.unwrap_or_else(|| {
                    unknown.push(UnknownFrame { at: at - 1, shard: *shard, code: *code });
                    u32::MAX
                })
            }));
        }
        // Looked up all at once with nothing in between, so that the fetches of uncached table entries overlap.
        let packed = unknown.iter().map(|unknown| unknown.code.decode().ok());
        known.extend(packed.map(|frame| frames.find_packed(frame?)));
        for (UnknownFrame { at, shard, code }, known) in unknown.drain(..).zip(known.drain(..)) {
            let number = known.unwrap_or_else(|| self.frame(shard, code));
            rows.frames_mut()[at] = number;
        }
        for ((shard, _), row) in stacks.iter().zip(self.table.rows(rows)) {
            self.shards[*shard].stacks.push(row);
        }
        rows.clear();
        self.group = group;
    }

    /// Returns the number of a frame that a shard met.
    fn frame(&mut self, shard: usize, code: FrameCode) -> u32 {
        let Self { table, shards, .. } = self;
        match code.decode() {
            Ok(frame) => table.frames.intern_packed(frame),
            Err(number) => {
                let (frame, known) = &mut shards[shard].unpacked[number];
                *known.get_or_insert_with(|| table.frames.intern(*frame))
            }
        }
    }
}

/// Returns the shard responsible for these stack parts in a process.
///
/// User parts differ most; the kernel parts of a call are the same everywhere.
fn shard_of([first, second]: [FragmentRef; 2], pid: u32, count: usize) -> usize {
    let part = if second == FragmentRef::NONE { first } else { second };
    let mut hasher = FxHasher::default();
    (part, pid).hash(&mut hasher);
    // The upper bits are mixed best.
    ((hasher.finish() >> 32) as usize) % count
}

/// Timeline rows with a stack in some table.
#[derive(Default)]
pub struct KeptRows {
    rows: NumberSet,
    count: u64,
}

impl KeptRows {
    pub fn add(&mut self, row: usize) {
        self.count += u64::from(self.rows.insert(row));
    }

    fn has(&self, row: usize) -> bool {
        self.rows.has(row)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the rows of events that carry their stacks.
    pub fn carried<'s>(&'s self, stacks: &'s EventStacks) -> impl Iterator<Item = usize> + 's {
        stacks.carried().iter().map(|row| *row as usize).filter(|row| self.has(*row))
    }

    /// Returns raw time and thread of the events that carry their stacks.
    pub fn carried_events(&self, stacks: &EventStacks, timeline: &Timeline) -> HashSet<(i64, u32)> {
        let rows = self.carried(stacks);
        rows.filter_map(|row| Some((*timeline.time.get(row)?, *timeline.tid.get(row)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::stacks::fragments::KeyKind;
    use crate::stacks::fragments::tests::frames;
    use crate::stacks::frames::PackedFrame;
    use crate::stacks::modules::Mapping;
    use crate::stacks::parts::{FrameBytes, PartFrames};

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
        let (sender, batches) = sync_channel(1);
        let mut table = StackTable::new(sender);
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        let first = resolver.stack([kernel, in_7], &[], 7, 50);
        assert_eq!(resolver.stack([kernel, in_8], &[], 8, 50), first);
        assert_eq!(resolver.stack([kernel, in_7], &[], 7, 60), first);
        table.finish();
        assert!(batches.recv().unwrap().iter().eq([[0, 1]]));
    }

    #[test]
    fn equal_addresses_are_different_stacks_once_a_module_was_replaced() {
        let (spaces, methods, mut fragments) = (spaces(), no_methods(), Fragments::default());
        let user = fragments.intern(&frames(&[0x1010]), 8, true);
        let mut table = StackTable::new(sync_channel(1).0);
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
        let lost = fragments.refer(1, KeyKind::Kernel);
        let mut table = StackTable::new(sync_channel(1).0);
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        assert_eq!(resolver.stack([lost, FragmentRef::NONE], &[], 7, 50), None);
        assert_eq!(resolver.stack([FragmentRef::NONE; 2], &[], 7, 50), None);
    }

    #[test]
    fn rows_count_once() {
        let mut rows = KeptRows::default();
        [3, 64, 3, 1000, 64].into_iter().for_each(|row| rows.add(row));
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn a_part_has_one_stack_with_and_without_a_number() {
        let (spaces, methods, mut fragments) = (spaces(), no_methods(), Fragments::default());
        let bytes = frames(&[0x1010, 0x1020]);
        let mut add = |number| {
            let frames = FrameBytes { bytes: &bytes, number };
            [fragments.add(PartFrames::Here(frames), 8, true), FragmentRef::NONE]
        };
        let parts = [None, Some(5), Some(5)].map(&mut add);
        let (sender, batches) = sync_channel(1);
        let mut table = StackTable::new(sender);
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        assert_eq!(parts.map(|parts| resolver.stack(parts, &[], 7, 50)), [Some(0); 3]);
        table.finish();
        assert!(batches.recv().unwrap().iter().eq([[0, 1]]));
    }

    #[test]
    fn frames_are_numbered_in_the_order_in_which_stacks_have_them() {
        let (spaces, methods, fragments) = (spaces(), no_methods(), Fragments::default());
        let (sender, batches) = sync_channel(1);
        let mut table = StackTable::new(sender);
        let mut resolver = StackResolver::new(&fragments, &spaces, &methods, &mut table, 2);
        let packed =
            |rva| FrameCode::from_packed(PackedFrame::new(FrameKey::InModule(1, rva)).unwrap());
        let stack = |position, frames| NewStack { position, frames };
        let first = Answers {
            new: vec![stack(0, 0..3), stack(2, 3..5)],
            frames: vec![packed(7), FrameCode::from_number(0), packed(7), packed(9), packed(8)],
            unpacked: vec![FrameKey::Address(7)],
            ..Answers::default()
        };
        let second = Answers {
            new: vec![stack(1, 0..3)],
            frames: vec![packed(8), FrameCode::from_number(0), packed(7)],
            unpacked: vec![FrameKey::Address(8)],
            ..Answers::default()
        };
        resolver.numbers.number(&[(0, &first), (1, &second)]);
        let (frames, _) = table.finish();
        let stacks: Vec<Vec<u32>> = batches.recv().unwrap().iter().map(<[u32]>::to_vec).collect();
        assert_eq!(stacks, [vec![0, 1, 0], vec![2, 3, 0], vec![4, 2]]);
        assert_eq!((frames.len(), frames.in_modules()), (5, 3));
    }
}
