//! Which process owns an allocation.

use crate::etl::Clock;
use crate::lifecycle::attribution::{EXIT_GRACE_NS, ProcessIndex};
use crate::raw::UNKNOWN_ID;

/// A new process gets its first memory from its creator, before its start event.
const START_AHEAD_NS: i64 = 1_000_000_000;

/// A lifetime of a process, or a pid of which none is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Row of the processes table.
    Process(u32),
    Pid(u32),
}

impl Owner {
    /// Row of the processes table.
    pub fn process(self) -> Option<u32> {
        match self {
            Self::Process(row) => Some(row),
            Self::Pid(_) => None,
        }
    }
}

/// Finds owners by pid and raw time.
pub(super) struct OwnerFinder<'a> {
    index: &'a ProcessIndex,
    /// [`EXIT_GRACE_NS`] and [`START_AHEAD_NS`] in ticks.
    grace: i64,
    ahead: i64,
}

impl<'a> OwnerFinder<'a> {
    /// A finder of these processes, whose times are of this clock.
    pub(super) fn new(index: &'a ProcessIndex, clock: &Clock) -> Self {
        Self { index, grace: clock.ticks(EXIT_GRACE_NS), ahead: clock.ticks(START_AHEAD_NS) }
    }

    /// The process alive at a time, ends included, or else the one that ended up to 2 ms before.
    pub(super) fn find(&self, pid: u32, time: i64) -> Owner {
        let alive = self.index.find(pid, time);
        self.known(pid, alive.or_else(|| self.ended(pid, time)))
    }

    /// The process alive at a time, the one that starts within a second, or the one that ended up to 2 ms before.
    pub(super) fn find_for_memory(&self, pid: u32, time: i64) -> Owner {
        let alive = self.index.find(pid, time);
        let soon = || self.index.starts_within(pid, time, self.ahead);
        self.known(pid, alive.or_else(soon).or_else(|| self.ended(pid, time)))
    }

    fn ended(&self, pid: u32, time: i64) -> Option<u32> {
        self.index.find(pid, time.saturating_sub(self.grace))
    }

    fn known(&self, pid: u32, process: Option<u32>) -> Owner {
        match process {
            Some(row) if pid != UNKNOWN_ID => Owner::Process(row),
            _ => Owner::Pid(pid),
        }
    }
}
