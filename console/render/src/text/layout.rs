//! Columns of event lines, as wide as their values.

use crate::time::Clock;
use handlescope_query::EventRow;

/// Characters of the columns in front of the process, at least those of ETWAnalyzer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub time: usize,
    pub pid: usize,
    pub tid: usize,
    pub handle: usize,
}

impl Layout {
    /// Fits events with the ids of their processes.
    pub fn of(events: impl Iterator<Item = (EventRow, u32)>, clock: &Clock) -> Self {
        let (mut pid, mut tid, mut handle) = (0, 0, 0);
        let mut times: Option<(i64, i64)> = None;
        for (event, process) in events {
            pid = pid.max(process);
            tid = tid.max(event.tid.unwrap_or_default());
            handle = handle.max(event.handle.unwrap_or_default());
            let time = event.time_ns.unwrap_or_default();
            let (first, last) = times.unwrap_or((time, time));
            times = Some((first.min(time), last.max(time)));
        }
        let (first, last) = times.unwrap_or_default();
        let width = |time| clock.at(time).to_string().len();
        Self {
            time: width(first).max(width(last)),
            pid: pid.to_string().len().max(5),
            tid: tid.to_string().len().max(5),
            handle: format!("0x{handle:X}").len().max(7),
        }
    }
}
