//! Lifetimes of the handles of a group.

/// When a handle was opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    pub opened_ns: i64,
    /// When its program closed it; `None` if nothing did, or only process exit.
    pub closed_ns: Option<i64>,
}

impl Lifetime {
    /// Returns the time from open to close, if the program closed it.
    pub fn length_ns(&self) -> Option<i64> {
        Some(self.closed_ns?.saturating_sub(self.opened_ns))
    }
}

/// Returns when the leaked handles among some were opened, at the end of their window at the latest.
pub fn leaked_opens(lifetimes: &[Lifetime], window: TimeWindow) -> impl Iterator<Item = i64> {
    let leaked = lifetimes.iter().filter(|lifetime| lifetime.closed_ns.is_none());
    leaked.map(move |lifetime| lifetime.opened_ns.min(window.end_ns))
}

/// The handles of a group that one process opened, and when it could open them.
#[derive(Debug, Clone)]
pub struct ProcessLifetimes {
    pub lifetimes: Vec<Lifetime>,
    pub window: TimeWindow,
}

/// The time range in which handles of the group could be opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The start of the trace, or of the process if that is later.
    pub start_ns: i64,
    /// The end of the trace, or of the process if that is earlier.
    pub end_ns: i64,
}

impl TimeWindow {
    /// Returns the time from the start of the earlier to the end of the later window.
    pub fn hull(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }

    /// Whether a time is within the first 15 % of the window: what opens then is more often a warm-up than a leak.
    pub fn is_start(self, ns: i64) -> bool {
        ns.saturating_sub(self.start_ns) <= self.length_ns() / 100 * 15
    }

    /// Returns the part between the start and the end of a process, as far as known.
    pub fn between(self, start: Option<i64>, end: Option<i64>) -> Self {
        let Self { start_ns, end_ns } = self;
        Self {
            start_ns: start.map_or(start_ns, |start| start.max(start_ns)),
            end_ns: end.map_or(end_ns, |end| end.min(end_ns)),
        }
    }

    /// Returns how to name its start and end in a trace; `several` if processes share the window.
    pub fn bounds(self, trace: Self, several: bool) -> Bounds {
        Bounds {
            starts_in_trace: self.start_ns > trace.start_ns,
            ends_in_trace: self.end_ns < trace.end_ns,
            several,
        }
    }

    /// Returns the length in nanoseconds; 0 if it ends before it starts.
    pub fn length_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}

/// What a [`TimeWindow`] starts and ends with: the trace, or the process if it starts or ends in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    starts_in_trace: bool,
    ends_in_trace: bool,
    /// Whether several processes share the window, from the start of the first to the end of the last.
    several: bool,
}

impl Bounds {
    /// The start and the end of the trace.
    pub const TRACE: Self = Self { starts_in_trace: false, ends_in_trace: false, several: false };

    /// Returns the words that follow the time since the start.
    pub fn after_start(self) -> &'static str {
        match (self.starts_in_trace, self.several) {
            (false, _) => "into the trace",
            (true, false) => "after process start",
            (true, true) => "after the first process started",
        }
    }

    /// Returns the start as a point in time.
    pub fn at_start(self) -> &'static str {
        match (self.starts_in_trace, self.several) {
            (false, _) => "at the start of the trace",
            (true, false) => "at process start",
            (true, true) => "at the start of the first process",
        }
    }

    /// Returns the end as a noun.
    pub fn end(self) -> &'static str {
        match (self.ends_in_trace, self.several) {
            (false, _) => "the end of the trace",
            (true, false) => "process exit",
            (true, true) => "the last process exit",
        }
    }
}
