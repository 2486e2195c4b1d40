//! A loaded trace and what is kept with it.

use std::{path::PathBuf, sync::Arc};

use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, Trace};
use tempfile::TempDir;

use super::{frame_name_cache::FrameNameCache, values::TraceValues};

pub struct LoadedTrace {
    /// The file as it was named: an extract, or the trace that was extracted.
    pub path: PathBuf,
    pub trace: Arc<Trace>,
    /// The names of its frames that were found so far.
    pub frames: FrameNameCache,
    /// What it offers for completion.
    pub values: Arc<TraceValues>,
    /// Points in time that have names.
    pub snapshots: Vec<Snapshot>,
    /// Where its tables are, when they are kept for this session only.
    pub(super) temporary: Option<TempDir>,
}

/// A point in time of a trace that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name, which is compared in any case.
    pub name: String,
    /// Nanoseconds since session start; `None` for the end of the trace. Without a clock the number of the
    /// last event before it.
    pub ns: Option<i64>,
    /// Whether `!htrace -snapshot` took it, and not `.snapshot`.
    pub of_debugger: bool,
}

impl Snapshot {
    /// The snapshots that the debugger took, `snapshot1` and so on.
    pub(super) fn of_debugger(trace: &Trace) -> Result<Vec<Snapshot>, ArchiveError> {
        let lists = trace.values(TraceInfos::snapshots)?;
        let snapshot = |(number, before): (usize, u32)| Snapshot {
            name: format!("snapshot{number}"),
            ns: Some(i64::from(before) - 1),
            of_debugger: true,
        };
        Ok((1..).zip(lists.get(0)).map(snapshot).collect())
    }
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

    /// The last snapshot that the debugger took.
    pub fn last_of_debugger(&self) -> Option<&Snapshot> {
        self.snapshots.iter().rfind(|snapshot| snapshot.of_debugger)
    }
}
