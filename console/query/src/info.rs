//! The single row of information about the trace.

use std::ops::RangeInclusive;
use std::path::Path;

use handlescope_model::Trace;
use handlescope_model::tables::TraceInfo;

use super::criterion::{Criteria, Criterion};
use super::error::QueryError;
use super::growth::TimeWindow;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Microseconds from 1601 to 1970.
const FILETIME_EPOCH_US: i64 = 11_644_473_600_000_000;

/// Returns the session start in microseconds since 1970; `None` if the trace has no clock.
pub fn start_us(info: &TraceInfo) -> Option<i64> {
    session_start_us(info).filter(|_| info.has_clock())
}

/// Returns the session start, or for a dump without clock the time it was written; `None` if unknown.
pub fn session_start_us(info: &TraceInfo) -> Option<i64> {
    let start = info.session_start_filetime;
    let is_known = info.has_clock() || start > 0;
    is_known.then(|| (start / 10).saturating_sub(FILETIME_EPOCH_US))
}

/// Returns the time range the trace covers, extended to `last_ns`. Without a clock, these are event numbers.
pub fn recorded(info: &TraceInfo, last_ns: i64) -> TimeWindow {
    let (start_ns, end_ns) = info.recorded_ns().map_or((0, 0), RangeInclusive::into_inner);
    TimeWindow { start_ns, end_ns: end_ns.max(last_ns) }
}

/// Formats seconds with all significant digits, as `-MinMaxTime` accepts them.
pub fn seconds(ns: i64) -> String {
    let text = format!("{}.{:09}", ns / NANOSECONDS_PER_SECOND, ns % NANOSECONDS_PER_SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Rejects criteria on times for a trace without a clock.
pub fn check_clock(trace: &Trace, path: &Path, criteria: &impl Criteria) -> Result<(), QueryError> {
    let mut given = criteria.given().into_iter().map(|given| given.criterion);
    let times = [Criterion::MinMaxTime, Criterion::MinMaxDuration];
    match given.find(|criterion| times.contains(criterion)) {
        Some(criterion) if !trace.info()?.has_clock() => {
            Err(QueryError::NoClock { path: path.to_path_buf(), criterion })
        }
        _ => Ok(()),
    }
}
