//! Stats of allocations.

use handlescope_model::rules::is_freed;
use handlescope_model::tables::ResourceEnd;

/// Sums over allocations, named as in documents; times are nanoseconds since session start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceStats {
    pub allocs: u64,
    pub alloc_bytes: i64,
    /// Calls that freed some of them.
    pub frees: u64,
    /// Bytes that these calls freed.
    pub freed_bytes: i64,
    /// Allocations that were replaced by another one in the same place, except pages.
    pub replaced: u64,
    /// Bytes of replaced allocations, including pages.
    pub replaced_bytes: i64,
    /// Blocks in a heap that was destroyed.
    pub destroyed: u64,
    pub destroyed_bytes: i64,
    /// Frees of something that was not allocated.
    pub orphan_frees: u64,
    /// Bytes that these frees name.
    pub orphan_bytes: i64,
    /// Events that failed or do not say what to follow.
    pub ignored: u64,
    /// Allocations that only process exit freed.
    pub at_exit: u64,
    pub at_exit_bytes: i64,
    /// Allocations that nothing freed.
    pub outstanding: u64,
    pub outstanding_bytes: i64,
    /// When the first was allocated.
    pub first_ns: Option<i64>,
    /// When the last was allocated.
    pub last_ns: Option<i64>,
}

impl ResourceStats {
    /// Returns the bytes of everything never freed.
    pub fn unreleased_bytes(&self) -> i64 {
        self.outstanding_bytes.saturating_add(self.at_exit_bytes)
    }

    /// Returns the number of allocations never freed.
    pub fn unreleased(&self) -> u64 {
        self.outstanding + self.at_exit
    }

    pub fn add_time(&mut self, time_ns: Option<i64>) {
        let Some(time_ns) = time_ns else { return };
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = Some(self.last_ns.map_or(time_ns, |last| last.max(time_ns)));
    }

    /// Adds bytes to those allocated and to those of their end.
    pub fn add_bytes(&mut self, size: i64, end: Option<ResourceEnd>) {
        self.alloc_bytes = self.alloc_bytes.saturating_add(size);
        let bytes = match end {
            Some(ResourceEnd::Open) => &mut self.outstanding_bytes,
            Some(ResourceEnd::AtExit) => &mut self.at_exit_bytes,
            Some(ResourceEnd::Replaced) => &mut self.replaced_bytes,
            Some(ResourceEnd::Destroyed) => &mut self.destroyed_bytes,
            Some(end) if is_freed(end) => &mut self.freed_bytes,
            _ => return,
        };
        *bytes = bytes.saturating_add(size);
    }

    /// Counts something once.
    pub fn count(&mut self, once: Once) {
        let count = match once {
            Once::Alloc => &mut self.allocs,
            Once::Free => &mut self.frees,
            Once::Replaced => &mut self.replaced,
            Once::Destroyed => &mut self.destroyed,
            Once::AtExit => &mut self.at_exit,
            Once::Outstanding => &mut self.outstanding,
        };
        *count += 1;
    }

    /// Adds the stats of other allocations.
    pub fn add_all(&mut self, other: &Self) {
        self.allocs += other.allocs;
        self.frees += other.frees;
        self.replaced += other.replaced;
        self.destroyed += other.destroyed;
        self.orphan_frees += other.orphan_frees;
        self.ignored += other.ignored;
        self.at_exit += other.at_exit;
        self.outstanding += other.outstanding;
        for (bytes, added) in [
            (&mut self.alloc_bytes, other.alloc_bytes),
            (&mut self.freed_bytes, other.freed_bytes),
            (&mut self.replaced_bytes, other.replaced_bytes),
            (&mut self.destroyed_bytes, other.destroyed_bytes),
            (&mut self.orphan_bytes, other.orphan_bytes),
            (&mut self.at_exit_bytes, other.at_exit_bytes),
            (&mut self.outstanding_bytes, other.outstanding_bytes),
        ] {
            *bytes = bytes.saturating_add(added);
        }
        self.add_time(other.first_ns);
        self.add_time(other.last_ns);
    }
}

/// A stat that counts once for an allocation or call, however many parts it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Once {
    Alloc,
    Free,
    Replaced,
    Destroyed,
    AtExit,
    Outstanding,
}

impl Once {
    /// Returns the stat that counts an allocation with this end, besides the allocation itself. A free counts for its
    /// call instead.
    pub fn from_end(end: Option<ResourceEnd>) -> Option<Self> {
        match end? {
            ResourceEnd::Open => Some(Self::Outstanding),
            ResourceEnd::AtExit => Some(Self::AtExit),
            ResourceEnd::Replaced => Some(Self::Replaced),
            ResourceEnd::Destroyed => Some(Self::Destroyed),
            _ => None,
        }
    }
}
