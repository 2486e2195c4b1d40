//! Processes that had one id after another: the time in which each of them lost what it lost.

use std::collections::HashMap;

use handlescope_model::ProcessIdx;

use crate::query::info::seconds;
use crate::query::tables::ProcessInfo;

/// When processes opened or allocated what they lost.
#[derive(Default)]
pub(super) struct LossTimes {
    of_process: HashMap<ProcessIdx, Losses>,
    /// How many processes that lost anything had an id.
    of_pid: HashMap<u32, usize>,
}

/// The first and the last of them, nanoseconds since session start.
struct Losses {
    first_ns: i64,
    last_ns: i64,
}

impl LossTimes {
    /// Adds something that a process lost.
    pub(super) fn add(&mut self, process: ProcessIdx, pid: u32, time_ns: i64) {
        let losses = self.of_process.entry(process).or_insert_with(|| {
            *self.of_pid.entry(pid).or_default() += 1;
            Losses { first_ns: time_ns, last_ns: time_ns }
        });
        losses.first_ns = losses.first_ns.min(time_ns);
        losses.last_ns = losses.last_ns.max(time_ns);
    }

    /// The value of `-MinMaxTime` that leaves out other processes with the same id: from the start to the end of
    /// the process. `None` when no other lost anything, or neither is known.
    pub(super) fn filter(&self, process: ProcessIdx, info: &ProcessInfo) -> Option<String> {
        let losses = self.of_process.get(&process)?;
        self.of_pid.get(&info.pid).filter(|count| **count > 1)?;
        // What a parent opens for its child comes before the start of that.
        let start = info.start_ns.map(|ns| ns.min(losses.first_ns).max(0));
        let end = info.end_ns.map(|ns| ns.max(losses.last_ns));
        match (start, end) {
            (None, None) => None,
            (Some(start), None) => Some(seconds(start)),
            (start, Some(end)) => {
                Some(format!("{} {}", seconds(start.unwrap_or_default()), seconds(end)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(start_ns: Option<i64>, end_ns: Option<i64>) -> ProcessInfo {
        ProcessInfo { pid: 7, start_ns, end_ns, ..ProcessInfo::default() }
    }

    #[test]
    fn only_a_process_whose_id_another_one_had_needs_its_time() {
        let mut times = LossTimes::default();
        times.add(ProcessIdx(1), 7, 1_500_000_000);
        assert_eq!(times.filter(ProcessIdx(1), &info(None, Some(2_000_000_001))), None);
        times.add(ProcessIdx(2), 7, 3_000_000_000);
        times.add(ProcessIdx(2), 7, 9_000_000_000);
        let first = times.filter(ProcessIdx(1), &info(None, Some(2_000_000_001)));
        assert_eq!(first.as_deref(), Some("0 2.000000001"));
        let second = times.filter(ProcessIdx(2), &info(Some(3_000_000_010), None));
        assert_eq!(second.as_deref(), Some("3"), "before its start");
        let ended = times.filter(ProcessIdx(2), &info(Some(2_500_000_000), Some(8_000_000_000)));
        assert_eq!(ended.as_deref(), Some("2.5 9"));
        assert_eq!(times.filter(ProcessIdx(2), &info(None, None)), None);
    }
}
