//! The one row about the trace itself.

use std::ops::RangeInclusive;
use std::path::Path;

use handlescope_model::Trace;
use handlescope_model::tables::TraceInfo;

use super::criterion::Criterion;
use super::error::QueryError;
use super::growth::Window;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Microseconds from 1601 to 1970.
const FILETIME_EPOCH_US: i64 = 11_644_473_600_000_000;

/// Session start, microseconds since 1970; `None` where the trace has no clock.
pub fn start_us(info: &TraceInfo) -> Option<i64> {
    session_start_us(info).filter(|_| info.has_clock())
}

/// Session start, also of a dump, which has no clock and says when it was written; `None` where nothing says it.
pub fn session_start_us(info: &TraceInfo) -> Option<i64> {
    let start = info.session_start_filetime;
    let is_known = info.has_clock() || start > 0;
    is_known.then(|| (start / 10).saturating_sub(FILETIME_EPOCH_US))
}

/// The time of which a trace has the events, until its last event `last_ns` of what is asked for at least; of a trace
/// without a clock the numbers of these.
pub fn recorded(info: &TraceInfo, last_ns: i64) -> Window {
    let (start_ns, end_ns) = info.recorded_ns().map_or((0, 0), RangeInclusive::into_inner);
    Window { start_ns, end_ns: end_ns.max(last_ns) }
}

/// Seconds with all digits that are needed, as `-MinMaxTime` takes them.
pub fn seconds(ns: i64) -> String {
    let text = format!("{}.{:09}", ns / NANOSECONDS_PER_SECOND, ns % NANOSECONDS_PER_SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Refuses a criterion that chooses by time, of a trace without a clock.
pub fn check_clock(trace: &Trace, path: &Path, criterion: Criterion) -> Result<(), QueryError> {
    if trace.info()?.has_clock() {
        return Ok(());
    }
    Err(QueryError::NoClock { path: path.to_path_buf(), criterion })
}
