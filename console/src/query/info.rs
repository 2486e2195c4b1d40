//! The one row about the trace itself.

use handlescope_model::tables::{TraceInfo, TraceInfos};
use handlescope_model::{ArchiveError, TableRows, Trace};

/// Reads the trace table.
pub(crate) fn trace_info(trace: &Trace) -> Result<TraceInfo, ArchiveError> {
    Ok(TraceInfos::read(trace)?.row(0).unwrap_or_default())
}
