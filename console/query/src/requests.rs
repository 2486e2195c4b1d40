//! When processes began to handle requests, as far as kept provider events tell.

use std::collections::{BTreeMap, HashMap};

use handlescope_model::tables::{EventCounts, ProviderEvents};
use handlescope_model::{EventCountIdx, ProcessIdx, Table, TableRows, Trace};

use super::error::QueryError;

/// Start times of requests by process. Only the most frequent start event of a process counts, because several layers
/// of a server may log the same request.
#[derive(Default)]
pub struct RequestStarts {
    by_process: HashMap<ProcessIdx, Vec<i64>>,
}

impl RequestStarts {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        if trace.height(Table::ProviderEvents)? == 0 {
            return Ok(Self::default());
        }
        let names = EventCounts::read(trace)?.name;
        let is_start: Vec<bool> =
            names.iter().map(|name| name.as_deref().is_some_and(is_request_start)).collect();
        let process = trace.values(ProviderEvents::process)?;
        let event = trace.values(ProviderEvents::event)?;
        let time_ns = trace.values(ProviderEvents::time_ns)?;
        let mut starts: HashMap<(ProcessIdx, EventCountIdx), Vec<i64>> = HashMap::new();
        for row in 0..trace.height(Table::ProviderEvents)? {
            let kind = event.get(row).filter(|kind| is_start.get(kind.row()) == Some(&true));
            if let (Some(process), Some(kind), Some(time)) =
                (process.get(row), kind, time_ns.get(row))
            {
                starts.entry((process, kind)).or_default().push(time);
            }
        }
        // Of equally frequent events, the first one counts.
        let starts: BTreeMap<_, _> = starts.into_iter().collect();
        let mut by_process: HashMap<ProcessIdx, Vec<i64>> = HashMap::new();
        for ((process, _), mut times) in starts {
            times.sort_unstable();
            let longest = by_process.entry(process).or_default();
            if times.len() > longest.len() {
                *longest = times;
            }
        }
        Ok(Self { by_process })
    }

    /// Counts the requests that a process began between two times, nanoseconds since session start.
    pub fn between(&self, process: ProcessIdx, from_ns: i64, to_ns: i64) -> usize {
        let Some(times) = self.by_process.get(&process) else { return 0 };
        let until = times.partition_point(|time| *time <= to_ns);
        until.saturating_sub(times.partition_point(|time| *time < from_ns))
    }
}

/// Whether an event marks the start of a request: `Request/Start`, `RequestStart`, `AspNetRequest/win:Start`.
fn is_request_start(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("request") && name.ends_with("start")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_requests_are_known_by_their_names() {
        for name in ["Request/Start", "RequestStart", "HttpRequest/win:Start"] {
            assert!(is_request_start(name), "{name}");
        }
        for name in ["Request/Stop", "Work/Start", "RequestStarted", "Request"] {
            assert!(!is_request_start(name), "{name}");
        }
    }

    #[test]
    fn requests_are_counted_in_a_time() {
        let requests =
            RequestStarts { by_process: HashMap::from([(ProcessIdx(1), vec![10, 20, 20, 30])]) };
        assert_eq!(requests.between(ProcessIdx(1), 10, 20), 3);
        assert_eq!(requests.between(ProcessIdx(1), 11, 19), 0);
        assert_eq!(requests.between(ProcessIdx(1), 40, 5), 0);
        assert_eq!(requests.between(ProcessIdx(2), 0, 99), 0);
    }
}
