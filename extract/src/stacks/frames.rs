//! Distinct code locations and distinct stacks of them, as the rows of their tables.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::mpsc::SyncSender;

use handlescope_model::tables::{Frame, Frames, StackRows};
use handlescope_model::{MethodIdx, ModuleIdx, ROW_GROUP_ROWS};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::intern::{Fingerprint, FingerprintTable, upper, widened};

/// Rows of the stacks table that are handed on at once. A stack has dozens of frames, so that these are as many numbers as
/// other columns have in a row group, and the last part is soon encoded.
const PART_ROWS: usize = ROW_GROUP_ROWS / 4;

/// The distinct stacks and their frames, of all resolvers.
///
/// Of a stack only its fingerprint stays: its frames go to the writer of the table, so that a table of millions of stacks is
/// never in memory as a whole.
pub struct StackTable {
    pub frames: FrameInterner,
    /// The row of each stack.
    numbers: FingerprintTable,
    /// The rows that were not handed on yet.
    rows: StackRows,
    batches: SyncSender<StackRows>,
}

impl StackTable {
    /// An empty table, which hands its rows on in parts while stacks are resolved.
    pub fn new(batches: SyncSender<StackRows>) -> Self {
        let (frames, numbers) = (FrameInterner::default(), FingerprintTable::default());
        Self { frames, numbers, rows: StackRows::default(), batches }
    }

    /// The rows of stacks, whose frames are rows of the frames table.
    pub fn rows(&mut self, stacks: &StackRows) -> Vec<u32> {
        let fingerprints: Vec<_> = stacks.iter().map(Fingerprint::of).collect();
        // All at once: the entries, which are in no cache, are fetched side by side then.
        let known: Vec<_> = fingerprints.iter().map(|stack| self.numbers.find(*stack)).collect();
        let stacks = stacks.iter().zip(fingerprints).zip(known);
        stacks
            .map(|((frames, fingerprint), known)| {
                known.unwrap_or_else(|| self.row(frames, fingerprint))
            })
            .collect()
    }

    fn row(&mut self, frames: &[u32], fingerprint: Fingerprint) -> u32 {
        let Self { numbers, rows, .. } = self;
        let before = numbers.count();
        let row = numbers.number(fingerprint);
        if row == before {
            rows.push(frames);
            if rows.len() == PART_ROWS {
                self.hand_on();
            }
        }
        row
    }

    /// Hands the rows to the writer, which ends early only when it failed.
    fn hand_on(&mut self) {
        let next = self.rows.as_large();
        let rows = std::mem::replace(&mut self.rows, next);
        // The writer returns its error when it is asked for the table.
        let _ = self.batches.send(rows);
    }

    /// The frames and the number of stacks; all stacks are with the writer then.
    pub fn finish(self) -> (FrameInterner, u64) {
        if !self.rows.is_empty() {
            let _ = self.batches.send(self.rows);
        }
        (self.frames, self.numbers.count().into())
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

/// A location in a module as one number, module and offset: hashing locations is much of the work of a stack. The
/// top bit is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedFrame(u64);

impl PackedFrame {
    /// `None` for locations outside of modules, offsets beyond 4 GiB, which no image has (SizeOfImage has 32 bits), and
    /// modules beyond two thousand million.
    pub fn of(key: FrameKey) -> Option<Self> {
        match key {
            FrameKey::InModule(module, rva) => {
                let (module, rva) = (i32::try_from(module).ok()?, u32::try_from(rva).ok()?);
                Some(Self(u64::from(module as u32) << 32 | u64::from(rva)))
            }
            FrameKey::InMethod(..) | FrameKey::Address(_) => None,
        }
    }

    fn key(self) -> FrameKey {
        FrameKey::InModule((self.0 >> 32) as u32, self.0 & u64::from(u32::MAX))
    }
}

/// A frame of a new stack, for its numbering: a location in a module, or the number of another location in its shard.
#[derive(Debug, Clone, Copy)]
pub struct FrameCode(u64);

impl FrameCode {
    /// Bit of codes that are numbers.
    const NUMBER: u64 = 1 << 63;

    pub fn of_packed(frame: PackedFrame) -> Self {
        Self(frame.0)
    }

    pub fn of_number(number: u32) -> Self {
        Self(u64::from(number) | Self::NUMBER)
    }

    /// The location, or the number of it.
    pub fn decode(self) -> Result<PackedFrame, usize> {
        match self.0 & Self::NUMBER {
            0 => Ok(PackedFrame(self.0)),
            _ => Err((self.0 & !Self::NUMBER) as usize),
        }
    }
}

/// Slots for locations that were looked up last: 128 KiB.
const RECENT: usize = 1 << 13;

/// Numbers code locations in the order they are first seen.
pub struct FrameInterner {
    keys: Vec<FrameKey>,
    /// Numbers and halves of hashes only: a table of millions of locations is searched at random, and the smaller it is, the
    /// more of it is in a cache.
    table: HashTable<FrameEntry>,
    hasher: DefaultHashBuilder,
    /// Locations in modules and their numbers, each in the slot that it names: most frames of millions of stacks are of a few
    /// functions.
    recent: Vec<(PackedFrame, u32)>,
    /// Methods of managed code in modules, by the number of the location.
    methods: HashMap<u32, u32>,
}

struct FrameEntry {
    hash: u32,
    number: u32,
}

impl Default for FrameInterner {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            // A number that no location can have.
            recent: vec![(PackedFrame(FrameCode::NUMBER), 0); RECENT],
            methods: HashMap::new(),
        }
    }
}

impl FrameInterner {
    /// Notes the managed method at a location in a module.
    pub fn note_method(&mut self, id: u32, method: u32) {
        self.methods.entry(id).or_insert(method);
    }

    /// The number of a location.
    pub fn intern(&mut self, key: FrameKey) -> u32 {
        let hash = self.hash(&key);
        if let Some(number) = self.find(&key, hash) {
            return number;
        }
        let Self { keys, table, .. } = self;
        let number = keys.len() as u32;
        keys.push(key);
        let entry = FrameEntry { hash, number };
        table.insert_unique(widened(hash), entry, |entry| widened(entry.hash));
        number
    }

    fn hash(&self, key: &FrameKey) -> u32 {
        upper(match PackedFrame::of(*key) {
            Some(frame) => self.hasher.hash_one(frame),
            None => self.hasher.hash_one(key),
        })
    }

    fn find(&self, key: &FrameKey, hash: u32) -> Option<u32> {
        let is_known = |entry: &FrameEntry| {
            entry.hash == hash && self.keys.get(entry.number as usize) == Some(key)
        };
        self.table.find(widened(hash), is_known).map(|entry| entry.number)
    }

    /// The number of a location in a module that was looked up lately.
    pub fn recent(&self, frame: PackedFrame) -> Option<u32> {
        let (recent, number) = self.recent[spread(frame.0, RECENT)];
        (recent == frame).then_some(number)
    }

    /// The number of a location in a module, if it has one.
    pub fn find_packed(&mut self, frame: PackedFrame) -> Option<u32> {
        let key = frame.key();
        let number = self.find(&key, self.hash(&key))?;
        self.recent[spread(frame.0, RECENT)] = (frame, number);
        Some(number)
    }

    /// The number of a location in a module.
    pub fn intern_packed(&mut self, frame: PackedFrame) -> u32 {
        let number = self.intern(frame.key());
        self.recent[spread(frame.0, RECENT)] = (frame, number);
        number
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

    /// Rows of the frames table; `row_of` returns the row of a method in the methods table.
    pub fn rows(&self, rows: Range<usize>, row_of: impl Fn(u32) -> Option<MethodIdx>) -> Frames {
        let mut table = Frames::default();
        for (id, key) in (rows.start as u32..).zip(&self.keys[rows]) {
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

    /// Number of locations.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// A slot for a number, of a power of two slots.
pub fn spread(number: u64, slots: usize) -> usize {
    // The factor of Fibonacci hashing, whose upper bits are the best mixed.
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - slots.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

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
        assert_eq!((frames.in_modules(), frames.rows(0..4, |_| None).len()), (3, 4));
    }

    #[test]
    fn a_stack_has_one_row_and_full_parts_go_to_the_writer_at_once() {
        let (sender, batches) = sync_channel(1);
        let mut table = StackTable::new(sender);
        let last = PART_ROWS as u32;
        let mut rows = |stacks: &[[u32; 2]]| {
            let mut frames = StackRows::default();
            stacks.iter().for_each(|stack| frames.push(stack));
            table.rows(&frames)
        };
        let stacks: Vec<_> = (0..=last).map(|frame| [7, frame]).collect();
        assert!(rows(&stacks).into_iter().eq(0..=last));
        assert_eq!(rows(&[[7, 0], [8, 8], [7, last], [8, 8]]), [0, last + 1, last, last + 1]);
        let first = batches.try_recv().unwrap();
        assert_eq!((first.len(), first.iter().nth(5)), (PART_ROWS, Some(&[7, 5][..])));
        assert!(batches.try_recv().is_err());
        assert_eq!(table.finish().1, u64::from(last) + 2);
        assert!(batches.recv().unwrap().iter().eq([[7, last], [8, 8]]));
    }
}
