//! All allocations of a trace with their ends, in columns.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::{HashMap, HashSet};

use super::owners::Owner;
use crate::lifecycle::attribution::NONE;

/// Where something is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatorRow {
    pub kind: ResourceKind,
    pub name: String,
    /// Name or GUID of the provider of its events.
    pub provider: Option<String>,
    pub owner: Owner,
    /// Rows of the timeline, or [`NONE`].
    pub created: u32,
    pub destroyed: u32,
}

/// An event that neither began nor ended an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Row of the allocators.
    pub allocator: u32,
    pub what: ResourceMissKind,
    pub key: u64,
    /// Bytes.
    pub size: i64,
    /// Row of the timeline.
    pub row: u32,
}

/// What only some allocations have; [`NONE`] for what this one has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The first part of the allocation that it is a part of.
    pub part_of: u32,
    /// The allocation that a reallocation made it of.
    pub grown_from: u32,
    /// The process that allocated it, a row of the processes table.
    pub caller: u32,
    /// Number of the call that freed it.
    pub free_call: u32,
}

impl Origin {
    /// What most allocations have.
    pub const NONE: Self = Self { part_of: NONE, grown_from: NONE, caller: NONE, free_call: NONE };
}

/// How many allocations there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocationFigures {
    pub allocations: u64,
    /// Those that nothing freed while their process lived on.
    pub never_freed: u64,
    /// Those that only the end of their process freed.
    pub freed_at_exit: u64,
}

/// The allocations, in columns, by the time of their first event; rows are those of the timeline.
#[derive(Default)]
pub struct AllocationColumns {
    pub allocators: Vec<AllocatorRow>,
    /// For each allocation the row of its allocator.
    pub allocator: Vec<u32>,
    pub key: Vec<u64>,
    /// Bytes.
    pub size: Vec<i64>,
    /// The event that began it.
    pub row: Vec<u32>,
    pub end: Vec<ResourceEnd>,
    /// The event that ended it, or [`NONE`].
    pub end_row: Vec<u32>,
    origins: HashMap<u32, Origin>,
    pub misses: Vec<Miss>,
}

impl AllocationColumns {
    /// Number of allocations.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// How many allocations there are, and how many of them nothing freed; parts that ended alike count as one.
    pub fn figures(&self) -> AllocationFigures {
        let mut figures = AllocationFigures::default();
        let mut counted: HashSet<(u32, ResourceEnd)> = HashSet::new();
        for (number, end) in (0..).zip(&self.end) {
            let first = self.origin(number).part_of;
            let is_whole = first == NONE;
            figures.allocations += u64::from(is_whole);
            let count = match end {
                ResourceEnd::Open => &mut figures.never_freed,
                ResourceEnd::AtExit => &mut figures.freed_at_exit,
                _ => continue,
            };
            let is_counted = || self.end.get(first as usize) == Some(end);
            if is_whole || (!is_counted() && counted.insert((first, *end))) {
                *count += 1;
            }
        }
        figures
    }

    /// Adds an allocator and returns its number.
    pub fn add_allocator(&mut self, allocator: AllocatorRow) -> u32 {
        self.allocators.push(allocator);
        self.allocators.len() as u32 - 1
    }

    /// Adds an allocation that is open and returns its number.
    pub fn open(&mut self, allocator: u32, key: u64, size: i64, row: usize) -> u32 {
        self.allocator.push(allocator);
        self.key.push(key);
        self.size.push(size);
        self.row.push(row as u32);
        self.end.push(ResourceEnd::Open);
        self.end_row.push(NONE);
        self.row.len() as u32 - 1
    }

    /// Ends an allocation by the event of this row.
    pub fn end(&mut self, allocation: u32, end: ResourceEnd, row: usize) {
        self.end[allocation as usize] = end;
        self.end_row[allocation as usize] = row as u32;
    }

    /// Gives an allocation to another allocator.
    pub fn move_to(&mut self, allocation: u32, allocator: u32) {
        self.allocator[allocation as usize] = allocator;
    }

    /// Counts an event that neither began nor ended an allocation.
    pub fn miss(
        &mut self,
        what: ResourceMissKind,
        allocator: u32,
        key: u64,
        size: i64,
        row: usize,
    ) {
        self.misses.push(Miss { allocator, what, key, size, row: row as u32 });
    }

    /// What only some allocations have.
    pub fn origin(&self, allocation: u32) -> Origin {
        if self.origins.is_empty() {
            return Origin::NONE;
        }
        self.origins.get(&allocation).copied().unwrap_or(Origin::NONE)
    }

    /// Whether some allocation has an origin.
    pub fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The same, to be changed.
    pub fn origin_mut(&mut self, allocation: u32) -> &mut Origin {
        self.origins.entry(allocation).or_insert(Origin::NONE)
    }

    /// Ends what is open in processes that ended.
    pub(super) fn end_at_exit(&mut self, has_ended: impl Fn(u32) -> bool) {
        let ended: Vec<bool> = self
            .allocators
            .iter()
            .map(|allocator| allocator.owner.process().is_some_and(&has_ended))
            .collect();
        for (end, allocator) in self.end.iter_mut().zip(&self.allocator) {
            if *end == ResourceEnd::Open && ended[*allocator as usize] {
                *end = ResourceEnd::AtExit;
            }
        }
    }
}

/// A size that an event gives without sign.
pub(super) fn bytes(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
