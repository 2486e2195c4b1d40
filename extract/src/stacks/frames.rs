//! Distinct code locations and distinct stacks of them, as rows of their tables.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::mpsc::SyncSender;

use handlescope_model::tables::{Frame, Frames, StackRows};
use handlescope_model::{MethodIdx, ModuleIdx, ROW_GROUP_ROWS};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::intern::{Fingerprint, FingerprintTable, upper, widened};

/// Number of stack rows handed on at once. A stack has dozens of frames, so this many rows have as many numbers as
/// other columns have in a row group, and the last part is encoded quickly.
const PART_ROWS: usize = ROW_GROUP_ROWS / 4;

/// Distinct stacks and their frames, from all resolvers.
///
/// Only a stack's fingerprint stays. Its frames go to the table's writer, so a table of millions of stacks is never in
/// memory as a whole.
pub struct StackTable {
    pub frames: FrameInterner,
    /// Row of each stack.
    numbers: FingerprintTable,
    /// Rows not handed on yet.
    rows: StackRows,
    batches: SyncSender<StackRows>,
}

impl StackTable {
    /// Creates an empty table, which hands on its rows in parts while stacks are resolved.
    pub fn new(batches: SyncSender<StackRows>) -> Self {
        let (frames, numbers) = (FrameInterner::default(), FingerprintTable::default());
        Self { frames, numbers, rows: StackRows::default(), batches }
    }

    /// Returns the rows of stacks; their frames are rows of the frames table.
    pub fn rows(&mut self, stacks: &StackRows) -> Vec<u32> {
        let fingerprints: Vec<_> = stacks.iter().map(Fingerprint::new).collect();
        // Looked up all at once, so that the fetches of uncached entries overlap.
        let known: Vec<_> = fingerprints.iter().map(|stack| self.numbers.find(*stack)).collect();
        stacks
            .iter()
            .zip(fingerprints)
            .zip(known)
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

    /// Hands the rows to the writer, which ends early only if it failed.
    fn hand_on(&mut self) {
        let next = self.rows.as_large();
        let rows = std::mem::replace(&mut self.rows, next);
        // The writer returns its error when asked for the table.
        let _ = self.batches.send(rows);
    }

    /// Sends the last rows to the writer. Returns the frames and the number of stacks.
    pub fn finish(self) -> (FrameInterner, u64) {
        if !self.rows.is_empty() {
            let _ = self.batches.send(self.rows);
        }
        (self.frames, self.numbers.count().into())
    }
}

/// Code location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKey {
    /// Module row and offset from its base.
    InModule(u32, u64),
    /// Row of a method compiled at run time, and the address in its code.
    InMethod(u32, u64),
    /// Address outside of all modules.
    Address(u64),
}

/// Location in a module (module and offset) packed into one number, because hashing locations is much of the work of a
/// stack. The top bit is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedFrame(u64);

impl PackedFrame {
    /// Packs a location. Returns `None` outside of modules, for offsets beyond 4 GiB, which no image has (SizeOfImage
    /// has 32 bits), and for more than two billion modules.
    pub fn new(key: FrameKey) -> Option<Self> {
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

/// Frame of a new stack, before numbering: a location in a module, or the number of another location in its shard.
#[derive(Debug, Clone, Copy)]
pub struct FrameCode(u64);

impl FrameCode {
    /// Bit of codes that are numbers.
    const NUMBER: u64 = 1 << 63;

    pub fn from_packed(frame: PackedFrame) -> Self {
        Self(frame.0)
    }

    pub fn from_number(number: u32) -> Self {
        Self(u64::from(number) | Self::NUMBER)
    }

    /// Returns the location, or its number as the error.
    pub fn decode(self) -> Result<PackedFrame, usize> {
        match self.0 & Self::NUMBER {
            0 => Ok(PackedFrame(self.0)),
            _ => Err((self.0 & !Self::NUMBER) as usize),
        }
    }
}

/// Number of slots for recently looked up locations: 128 KiB.
const RECENT: usize = 1 << 13;

/// Numbers code locations in the order they are first seen.
pub struct FrameInterner {
    keys: Vec<FrameKey>,
    /// Holds only numbers and half hashes. A table of millions of locations is searched at random, and the smaller it
    /// is, the more of it is cached.
    table: HashTable<FrameEntry>,
    hasher: DefaultHashBuilder,
    /// Recent locations in modules with their numbers, each in the slot its hash selects. Most frames of millions of
    /// stacks come from a few functions.
    recent: Vec<(PackedFrame, u32)>,
    /// Managed methods in modules, by location number.
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
            // A number no location can have.
            recent: vec![(PackedFrame(FrameCode::NUMBER), 0); RECENT],
            methods: HashMap::new(),
        }
    }
}

impl FrameInterner {
    /// Records the managed method at a location in a module.
    pub fn note_method(&mut self, id: u32, method: u32) {
        self.methods.entry(id).or_insert(method);
    }

    /// Returns the number of a location.
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
        upper(match PackedFrame::new(*key) {
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

    /// Returns the number of a location in a module if it was looked up recently.
    pub fn recent(&self, frame: PackedFrame) -> Option<u32> {
        let (recent, number) = self.recent[spread(frame.0, RECENT)];
        (recent == frame).then_some(number)
    }

    /// Returns the number of a location in a module, if it has one.
    pub fn find_packed(&mut self, frame: PackedFrame) -> Option<u32> {
        let key = frame.key();
        let number = self.find(&key, self.hash(&key))?;
        self.recent[spread(frame.0, RECENT)] = (frame, number);
        Some(number)
    }

    /// Returns the number of a location in a module, after adding it if it is new.
    pub fn intern_packed(&mut self, frame: PackedFrame) -> u32 {
        let number = self.intern(frame.key());
        self.recent[spread(frame.0, RECENT)] = (frame, number);
        number
    }

    /// Returns the number of locations that are in a module.
    pub fn in_modules(&self) -> u64 {
        self.keys.iter().filter(|key| matches!(key, FrameKey::InModule(..))).count() as u64
    }

    /// Returns the methods that locations are in; some come several times.
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

    /// Returns rows of the frames table; `row_of` returns the row of a method in the methods table.
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

/// Returns a slot for a number; `slots` is a power of two.
pub fn spread(number: u64, slots: usize) -> usize {
    // Multiplies by the factor of Fibonacci hashing; the upper bits are mixed best.
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
