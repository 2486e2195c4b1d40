//! Stats of allocations.

use handlescope_model::tables::ResourceEnd;

use crate::amounts::Amount;

/// Sums over allocations; times are nanoseconds since session start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceStats {
    pub allocated: Amount,
    /// Calls that freed some of them, and the bytes that they freed.
    pub freed: Amount,
    /// Allocations that were replaced by another one in the same place. Pages count by bytes only.
    pub replaced: Amount,
    /// Blocks in a heap that was destroyed.
    pub destroyed: Amount,
    /// Frees of something that was not allocated, and the bytes that they name.
    pub orphan_frees: Amount,
    /// Events that failed or do not say what to follow.
    pub ignored: u64,
    /// Allocations that only process exit freed.
    pub at_exit: Amount,
    /// Allocations that nothing freed.
    pub outstanding: Amount,
    /// When the first was allocated.
    pub first_ns: Option<i64>,
    /// When the last was allocated.
    pub last_ns: Option<i64>,
}

impl ResourceStats {
    /// Returns everything never freed.
    pub fn unreleased(&self) -> Amount {
        let mut sum = self.outstanding;
        sum.add(self.at_exit);
        sum
    }

    pub fn add_time(&mut self, time_ns: Option<i64>) {
        self.first_ns = self.first_ns.into_iter().chain(time_ns).min();
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// Returns the sum over allocations with this end; `None` if nothing is counted for it.
    pub fn ended(&mut self, end: ResourceEnd) -> Option<&mut Amount> {
        match end {
            ResourceEnd::Open => Some(&mut self.outstanding),
            ResourceEnd::AtExit => Some(&mut self.at_exit),
            ResourceEnd::Replaced => Some(&mut self.replaced),
            ResourceEnd::Destroyed => Some(&mut self.destroyed),
            ResourceEnd::Freed | ResourceEnd::Reallocated => Some(&mut self.freed),
            ResourceEnd::Empty => None,
        }
    }

    /// Adds the stats of other allocations.
    pub fn add_all(&mut self, other: &Self) {
        self.allocated.add(other.allocated);
        self.freed.add(other.freed);
        self.replaced.add(other.replaced);
        self.destroyed.add(other.destroyed);
        self.orphan_frees.add(other.orphan_frees);
        self.ignored += other.ignored;
        self.at_exit.add(other.at_exit);
        self.outstanding.add(other.outstanding);
        self.add_time(other.first_ns);
        self.add_time(other.last_ns);
    }
}
