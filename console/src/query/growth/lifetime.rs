//! The lives of the handles of a group.

/// Times at which a handle was opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    pub opened_ns: i64,
    /// Time at which its program closed it; `None` when nothing did, or only the end of its process.
    pub closed_ns: Option<i64>,
}

/// The handles of a group that one process opened, and the time in which it could.
#[derive(Debug, Clone)]
pub struct ProcessLifetimes {
    pub lifetimes: Vec<Lifetime>,
    pub window: Window,
}

/// The time in which handles of the group could be opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The start of the trace, or of the process if that is later.
    pub start_ns: i64,
    /// The end of the trace, or of the process if that is earlier.
    pub end_ns: i64,
}

impl Window {
    /// The time from the start of the earlier to the end of the later one.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }

    /// Whether a time is at its start, the first 15 % of it: what is opened then is a warm-up more often than a leak.
    pub(super) fn is_start(self, ns: i64) -> bool {
        ns.saturating_sub(self.start_ns) <= self.length_ns() / 100 * 15
    }

    /// The part of it between the start and the end of a process, as far as these are known.
    pub(crate) fn between(self, start: Option<i64>, end: Option<i64>) -> Self {
        let Self { start_ns, end_ns } = self;
        Self {
            start_ns: start.map_or(start_ns, |start| start.max(start_ns)),
            end_ns: end.map_or(end_ns, |end| end.min(end_ns)),
        }
    }

    /// Length in nanoseconds; 0 when it ends before it starts.
    pub fn length_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}
