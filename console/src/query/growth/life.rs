//! The lives of the handles of a group.

/// When a handle was opened and closed, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub opened_ns: i64,
    /// When its program closed it; `None` when nothing did, or only the end of its process.
    pub closed_ns: Option<i64>,
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
    /// Its length in nanoseconds; 0 when it ends before it starts.
    pub fn length_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(0)
    }
}
