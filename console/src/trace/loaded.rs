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
    /// Points in time that `.snapshot` has named.
    pub snapshots: Vec<Snapshot>,
    /// Where its tables are, when they are kept for this session only.
    pub(super) temporary: Option<TempDir>,
}

/// A point in time of a trace that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name, which is compared in any case.
    pub name: String,
    /// Nanoseconds since session start; `None` for the end of the trace.
    pub ns: Option<i64>,
}

impl LoadedTrace {
    /// A trace of which nothing was asked yet.
    pub fn new(path: PathBuf, trace: Trace) -> LoadedTrace {
        let trace = Arc::new(trace);
        let values = Arc::new(TraceValues::new(Arc::clone(&trace)));
        LoadedTrace {
            path,
            trace,
            frames: FrameNameCache::default(),
            values,
            snapshots: Vec::new(),
            temporary: None,
        }
    }

    /// The snapshot of this name, in any case.
    pub fn snapshot(&self, name: &str) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.name.eq_ignore_ascii_case(name))
    }
}
