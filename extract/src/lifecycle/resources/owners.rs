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
    /// Lifetimes that were found last, by their pids: millions of events are of a few processes.
    recent: [Recent; RECENT],
}

/// Lifetimes that are remembered.
const RECENT: usize = 64;

/// The only lifetime of a pid.
#[derive(Debug, Clone, Copy)]
struct Recent {
    pid: u32,
    start: i64,
    end: i64,
    row: u32,
}

impl<'a> OwnerFinder<'a> {
    /// A finder of these processes, whose times are of this clock.
    pub(super) fn new(index: &'a ProcessIndex, clock: &Clock) -> Self {
        let none = Recent { pid: UNKNOWN_ID, start: i64::MAX, end: i64::MIN, row: 0 };
        let (grace, ahead) = (clock.ticks_apart(EXIT_GRACE_NS), clock.ticks(START_AHEAD_NS));
        Self { index, grace, ahead, recent: [none; RECENT] }
    }

    /// The process alive at a time, ends included, or else the one that ended up to 2 ms before.
    pub(super) fn find(&mut self, pid: u32, time: i64) -> Owner {
        // Pids are multiples of four.
        let Some(recent) = self.recent.get_mut(pid as usize / 4 % RECENT) else {
            return Owner::Pid(pid);
        };
        if recent.pid == pid && recent.start <= time && time <= recent.end {
            return Owner::Process(recent.row);
        }
        if let Some((start, end, row)) = self.index.only_lifetime(pid) {
            *recent = Recent { pid, start, end, row };
        }
        let alive = self.index.find(pid, time);
        self.known(pid, alive.or_else(|| self.ended(pid, time)))
    }

    /// The process alive at a time, the one that starts within a second, or the one that ended up to 2 ms before.
    pub(super) fn find_for_memory(&mut self, pid: u32, time: i64) -> Owner {
        let alive = self.index.find(pid, time);
        let soon = || self.index.starts_within(pid, time, self.ahead);
        self.known(pid, alive.or_else(soon).or_else(|| self.ended(pid, time)))
    }

    fn ended(&self, pid: u32, time: i64) -> Option<u32> {
        self.index.find_ended(pid, time, self.grace)
    }

    fn known(&self, pid: u32, process: Option<u32>) -> Owner {
        match process {
            Some(row) if pid != UNKNOWN_ID => Owner::Process(row),
            _ => Owner::Pid(pid),
        }
    }
}
