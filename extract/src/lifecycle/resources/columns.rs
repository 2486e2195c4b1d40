//! Columns of all allocations of a trace with their ends, and the owners of allocations.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::{HashMap, HashSet};

use crate::etl::Clock;
use crate::lifecycle::attribution::{NONE, ProcessIndex};
use crate::raw::UNKNOWN_ID;

/// Row of the allocators table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatorRow {
    pub kind: ResourceKind,
    pub name: String,
    /// Name or GUID of the provider of its events.
    pub provider: Option<String>,
    pub owner: AllocationOwner,
    /// Timeline row, or [`NONE`].
    pub created: u32,
    pub destroyed: u32,
}

/// Event that neither began nor ended an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Row of the allocators table.
    pub allocator: u32,
    pub kind: ResourceMissKind,
    pub key: u64,
    /// Bytes.
    pub size: i64,
    /// Row of the timeline.
    pub row: u32,
}

/// Rarely set columns of an allocation. Unset ones are [`NONE`], so that a row takes 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RareColumns {
    /// First part of the allocation this is a part of.
    pub part_of: u32,
    /// Allocation that a reallocation turned into this one.
    pub grown_from: u32,
    /// Process that allocated it, as a row of the processes table.
    pub caller: u32,
    /// Number of the call that freed it.
    pub free_call: u32,
}

impl RareColumns {
    /// Value for most allocations.
    pub const NONE: Self = Self { part_of: NONE, grown_from: NONE, caller: NONE, free_call: NONE };
}

/// Counts of allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocationStats {
    pub allocations: u64,
    /// Allocations never freed while their process lived on.
    pub never_freed: u64,
    /// Allocations freed only by process exit.
    pub freed_at_exit: u64,
}

/// Allocations in columns, ordered by the time of their first event. Rows are timeline rows.
#[derive(Default)]
pub struct AllocationColumns {
    pub allocators: Vec<AllocatorRow>,
    /// Row of each allocation's allocator.
    pub allocator: Vec<u32>,
    pub key: Vec<u64>,
    /// Bytes.
    pub size: Vec<i64>,
    /// Event that began it.
    pub row: Vec<u32>,
    pub end: Vec<ResourceEnd>,
    /// Event that ended it, or [`NONE`].
    pub end_row: Vec<u32>,
    origins: HashMap<u32, RareColumns>,
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

    /// Counts allocations and the never freed ones. Parts of one allocation that ended alike count as one.
    pub fn stats(&self) -> AllocationStats {
        let mut stats = AllocationStats::default();
        let mut counted: HashSet<(u32, ResourceEnd)> = HashSet::new();
        for (number, end) in (0..).zip(&self.end) {
            let first = self.origin(number).part_of;
            let is_whole = first == NONE;
            stats.allocations += u64::from(is_whole);
            let count = match end {
                ResourceEnd::Open => &mut stats.never_freed,
                ResourceEnd::AtExit => &mut stats.freed_at_exit,
                _ => continue,
            };
            let is_counted = self.end.get(first as usize) == Some(end);
            if is_whole || (!is_counted && counted.insert((first, *end))) {
                *count += 1;
            }
        }
        stats
    }

    /// Adds an allocator and returns its number.
    pub fn add_allocator(&mut self, allocator: AllocatorRow) -> u32 {
        self.allocators.push(allocator);
        self.allocators.len() as u32 - 1
    }

    /// Adds an open allocation and returns its number.
    pub fn open(&mut self, allocator: u32, key: u64, size: i64, row: usize) -> u32 {
        self.allocator.push(allocator);
        self.key.push(key);
        self.size.push(size);
        self.row.push(row as u32);
        self.end.push(ResourceEnd::Open);
        self.end_row.push(NONE);
        self.row.len() as u32 - 1
    }

    /// Ends an allocation by the event in this row.
    pub fn end(&mut self, allocation: u32, end: ResourceEnd, row: usize) {
        self.end[allocation as usize] = end;
        self.end_row[allocation as usize] = row as u32;
    }

    /// Moves an allocation to another allocator.
    pub fn move_to(&mut self, allocation: u32, allocator: u32) {
        self.allocator[allocation as usize] = allocator;
    }

    /// Returns the rarely set columns of an allocation.
    pub fn origin(&self, allocation: u32) -> RareColumns {
        if self.origins.is_empty() {
            return RareColumns::NONE;
        }
        self.origins.get(&allocation).copied().unwrap_or(RareColumns::NONE)
    }

    /// Whether any allocation has an origin.
    pub fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Returns the rarely set columns of an allocation for writing.
    pub fn origin_mut(&mut self, allocation: u32) -> &mut RareColumns {
        self.origins.entry(allocation).or_insert(RareColumns::NONE)
    }

    /// Ends what is still open in processes that ended. What was freed after its process ended counts the same, because
    /// only the kernel can have freed it. `end_of` and `time_of` return the times of process ends and of rows.
    pub fn end_at_exit(
        &mut self,
        end_of: impl Fn(u32) -> Option<i64>,
        time_of: impl Fn(usize) -> i64,
    ) {
        let ends: Vec<Option<i64>> =
            self.allocators.iter().map(|allocator| end_of(allocator.owner.process()?)).collect();
        for allocation in 0..self.len() {
            let Some(end) = ends[self.allocator[allocation] as usize] else { continue };
            let is_at_exit = match self.end[allocation] {
                ResourceEnd::Open => true,
                ResourceEnd::Freed | ResourceEnd::Destroyed => {
                    time_of(self.end_row[allocation] as usize) > end
                }
                _ => false,
            };
            if is_at_exit {
                (self.end[allocation], self.end_row[allocation]) = (ResourceEnd::AtExit, NONE);
                if let Some(origin) = self.origins.get_mut(&(allocation as u32)) {
                    origin.free_call = NONE;
                }
            }
        }
    }
}

/// Allocation columns, with the row of the event that changes them.
pub struct AtRow<'a> {
    pub columns: &'a mut AllocationColumns,
    pub row: usize,
}

impl AtRow<'_> {
    /// Adds an open allocation and returns its number.
    pub fn open(&mut self, allocator: u32, key: u64, size: i64) -> u32 {
        self.columns.open(allocator, key, size, self.row)
    }

    /// Ends an allocation.
    pub fn end(&mut self, allocation: u32, end: ResourceEnd) {
        self.columns.end(allocation, end, self.row);
    }

    /// Records an event that neither began nor ended an allocation.
    pub fn miss(&mut self, kind: ResourceMissKind, allocator: u32, key: u64, size: i64) {
        let row = self.row as u32;
        self.columns.misses.push(Miss { allocator, kind, key, size, row });
    }
}

/// Converts an event's unsigned size, limited to `i64::MAX`.
pub fn bytes(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A new process gets its first memory from its creator, up to this long before its start event.
const START_AHEAD_NS: i64 = 1_000_000_000;

/// Lifetime of a process, or just a pid if no lifetime is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationOwner {
    /// Row of the processes table.
    Process(u32),
    Pid(u32),
}

impl AllocationOwner {
    /// Returns the row of the processes table.
    pub fn process(self) -> Option<u32> {
        match self {
            Self::Process(row) => Some(row),
            Self::Pid(_) => None,
        }
    }
}

/// Finds owners by pid and raw time.
pub struct OwnerFinder<'a> {
    index: &'a ProcessIndex,
    /// [`START_AHEAD_NS`] in ticks.
    ahead: i64,
    /// Cache of lifetimes by pid: millions of events come from few processes.
    recent: [OnlyLifetime; RECENT],
}

/// Size of the cache [`OwnerFinder::recent`].
const RECENT: usize = 64;

/// The only lifetime of a pid.
#[derive(Debug, Clone, Copy)]
struct OnlyLifetime {
    pid: u32,
    start: i64,
    row: u32,
}

impl<'a> OwnerFinder<'a> {
    /// Creates a finder; `clock` is the clock of the processes' times.
    pub fn new(index: &'a ProcessIndex, clock: &Clock) -> Self {
        let none = OnlyLifetime { pid: UNKNOWN_ID, start: i64::MAX, row: 0 };
        Self { index, ahead: clock.ticks(START_AHEAD_NS), recent: [none; RECENT] }
    }

    /// Finds the process alive at a time, both ends included, or else the one that ended last under the pid.
    pub fn find(&mut self, pid: u32, time: i64) -> AllocationOwner {
        // Pids are multiples of four.
        let Some(recent) = self.recent.get_mut(pid as usize / 4 % RECENT) else {
            return AllocationOwner::Pid(pid);
        };
        if recent.pid == pid && recent.start <= time {
            return AllocationOwner::Process(recent.row);
        }
        if let Some((start, row)) = self.index.only_lifetime(pid) {
            *recent = OnlyLifetime { pid, start, row };
        }
        self.known(pid, self.index.find_or_ended(pid, time))
    }

    /// Finds the process that is alive at a time, starts within a second, or ended last under the pid.
    pub fn find_for_memory(&mut self, pid: u32, time: i64) -> AllocationOwner {
        let alive = self.index.find(pid, time);
        let process = alive.or_else(|| self.index.starts_within(pid, time, self.ahead));
        self.known(pid, process.or_else(|| self.index.find_or_ended(pid, time)))
    }

    fn known(&self, pid: u32, process: Option<u32>) -> AllocationOwner {
        match process {
            Some(row) if pid != UNKNOWN_ID => AllocationOwner::Process(row),
            _ => AllocationOwner::Pid(pid),
        }
    }
}
