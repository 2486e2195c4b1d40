//! The one row about the trace itself.

use std::path::Path;

use handlescope_model::tables::{TraceInfo, TraceInfos};
use handlescope_model::{ArchiveError, TableRows, Trace};

use super::criterion::Criterion;
use super::error::QueryError;

/// Reads the trace table.
pub(crate) fn trace_info(trace: &Trace) -> Result<TraceInfo, ArchiveError> {
    Ok(TraceInfos::read(trace)?.row(0).unwrap_or_default())
}

/// Refuses a criterion that chooses by time, of a trace without a clock.
pub(super) fn check_clock(
    trace: &Trace,
    path: &Path,
    criterion: Criterion,
) -> Result<(), QueryError> {
    if trace_info(trace)?.has_clock() {
        return Ok(());
    }
    Err(QueryError::NoClock { path: path.to_path_buf(), criterion })
}
