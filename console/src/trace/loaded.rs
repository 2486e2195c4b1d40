//! A loaded trace and what is kept with it.

use std::{path::PathBuf, sync::Arc};

use handlescope_model::Trace;
use tempfile::TempDir;

use super::{frame_name_cache::FrameNameCache, values::TraceValues};

/// A loaded trace.
pub struct LoadedTrace {
    /// The file as it was named: an extract, or the trace that was extracted.
    pub path: PathBuf,
    /// Its tables.
    pub trace: Arc<Trace>,
    /// The names of its frames that were found so far.
    pub frames: FrameNameCache,
    /// What it offers for completion.
    pub values: Arc<TraceValues>,
    /// Where its tables are, when they are kept for this session only.
    pub(super) temporary: Option<TempDir>,
}

impl LoadedTrace {
    /// A trace of which nothing was asked yet.
    pub fn new(path: PathBuf, trace: Trace) -> LoadedTrace {
        let trace = Arc::new(trace);
        let values = Arc::new(TraceValues::new(Arc::clone(&trace)));
        LoadedTrace { path, trace, frames: FrameNameCache::default(), values, temporary: None }
    }
}
