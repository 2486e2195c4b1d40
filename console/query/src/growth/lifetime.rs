//! The lives of the handles of a group.

/// Times at which a handle was opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    pub opened_ns: i64,
    /// Time at which its program closed it; `None` when nothing did, or only the end of its process.
    pub closed_ns: Option<i64>,
}

impl Lifetime {
    /// The time from the open to the close, if its program closed it.
    pub fn length_ns(&self) -> Option<i64> {
        Some(self.closed_ns?.saturating_sub(self.opened_ns))
    }
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
    pub fn hull(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }

    /// Whether a time is at its start, the first 15 % of it: what is opened then is a warm-up more often than a leak.
    pub fn is_start(self, ns: i64) -> bool {
        ns.saturating_sub(self.start_ns) <= self.length_ns() / 100 * 15
    }

    /// The part of it between the start and the end of a process, as far as these are known.
    pub fn between(self, start: Option<i64>, end: Option<i64>) -> Self {
        let Self { start_ns, end_ns } = self;
        Self {
            start_ns: start.map_or(start_ns, |start| start.max(start_ns)),
            end_ns: end.map_or(end_ns, |end| end.min(end_ns)),
        }
    }

    /// Words for where it starts and ends, if it is that of processes in a trace; `several` of them have one together.
    pub fn bounds(self, trace: Self, several: bool) -> Bounds {
        Bounds {
            starts_in_trace: self.start_ns > trace.start_ns,
            ends_in_trace: self.end_ns < trace.end_ns,
            several,
        }
    }

    /// Length in nanoseconds; 0 when it ends before it starts.
    pub fn length_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

/// Start and end of a [`Window`]: those of the trace, or of the process if it starts or ends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    starts_in_trace: bool,
    ends_in_trace: bool,
    /// Whether several processes share the window: the start of the first and the end of the last bound it.
    several: bool,
}

impl Bounds {
    /// The start and the end of the trace.
    pub const TRACE: Self = Self { starts_in_trace: false, ends_in_trace: false, several: false };

    /// Words behind the time since the start.
    pub fn after_start(self) -> &'static str {
        match (self.starts_in_trace, self.several) {
            (false, _) => "into the trace",
            (true, false) => "after process start",
            (true, true) => "after the first process started",
        }
    }

    /// The start, as a place in time.
    pub fn at_start(self) -> &'static str {
        match (self.starts_in_trace, self.several) {
            (false, _) => "at the start of the trace",
            (true, false) => "at process start",
            (true, true) => "at the start of the first process",
        }
    }

    /// The end as a noun.
    pub fn end(self) -> &'static str {
        match (self.ends_in_trace, self.several) {
            (false, _) => "the end of the trace",
            (true, false) => "process exit",
            (true, true) => "the last process exit",
        }
    }
}
