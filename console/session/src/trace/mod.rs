//! The loaded session: its traces, how they are found and opened, and typed access to their columns.

mod caveats;
mod error;
pub mod extraction;
mod frame_name_cache;
mod load;
mod losses;
mod resource_caveats;
mod session;
mod stack_verdicts;
mod values;

use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use tempfile::TempDir;

pub use self::caveats::{Caveat, CaveatKind, has_handle_events, warn_of};
pub use self::error::{LoadError, NoFile};
pub use self::extraction::MappingsError;
pub use self::frame_name_cache::{CachedFrameNames, FrameNameCache, StoredNames, is_still_loaded};
pub use self::load::{LoadArgs, Loading};
pub use self::losses::{
    has_end_rundown, knows_losses, lists_open_handles, loss_times, most_lost_events, unseen_closes,
};
pub use self::resource_caveats::{KindCounts, ResourceFacts};
pub use self::session::{Session, SymbolOffer};
pub use self::stack_verdicts::{StackSet, StackVerdicts};
pub use self::values::{NamedSuspect, TraceValues, programs};
use crate::filter::{Filter, LineMatch, word};
pub use crate::paths::Access;
use crate::paths::{shown, verdict};
use crate::terminal::Messages;
use handlescope_model::tables::TraceInfos;
use handlescope_model::{ArchiveError, Trace};

pub struct LoadedTrace {
    /// The file as named: an extract, or the trace that was extracted.
    pub path: PathBuf,
    pub trace: Arc<Trace>,
    /// The frame names found so far.
    pub frames: FrameNameCache,
    /// Values offered for completion.
    pub values: Arc<TraceValues>,
    /// Named points in time.
    pub snapshots: Vec<Snapshot>,
    /// Folder of its tables, if they are kept for this session only.
    pub temporary: Option<TempDir>,
}

/// A named point in time of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The name; case does not matter.
    pub name: String,
    /// Nanoseconds since session start; `None` for the end of the trace. Without a clock, the number of the last event
    /// before it.
    pub ns: Option<i64>,
    /// Whether it was taken by `!htrace -snapshot` rather than `.snapshot`.
    pub of_debugger: bool,
}

impl Snapshot {
    /// Returns the debugger's snapshots, named `snapshot1` and so on.
    pub fn from_debugger(trace: &Trace) -> Result<Vec<Snapshot>, ArchiveError> {
        let lists = trace.values(TraceInfos::snapshots)?;
        Ok((1..)
            .zip(lists.get(0))
            .map(|(number, before): (usize, u32)| Snapshot {
                name: format!("snapshot{number}"),
                ns: Some(i64::from(before) - 1),
                of_debugger: true,
            })
            .collect())
    }
}

impl LoadedTrace {
    /// Creates a trace that nothing has been asked about yet.
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

    /// Keeps the folder of the file until the trace is unloaded.
    pub fn keep(&mut self, folder: Option<TempDir>) {
        if folder.is_some() {
            self.temporary = folder;
        }
    }

    /// Whether its extract is kept for this session only.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Returns the snapshot of this name, ignoring case.
    pub fn snapshot(&self, name: &str) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.name.eq_ignore_ascii_case(name))
    }

    /// Returns the debugger's last snapshot.
    pub fn last_of_debugger(&self) -> Option<&Snapshot> {
        self.snapshots.iter().rfind(|snapshot| snapshot.of_debugger)
    }
}

/// Returns the loaded files that pass all filters, each with its number in the session.
///
/// # Errors
/// If none is loaded, or none passes.
pub fn choose<'a>(
    files: &'a [LoadedTrace],
    filters: &[Filter],
    messages: &mut Messages<'_>,
) -> Result<Vec<(usize, &'a LoadedTrace)>, NoFile> {
    if files.is_empty() {
        return Err(NoFile::NothingLoaded);
    }
    let mut selected: Vec<_> = files.iter().enumerate().collect();
    selected.retain(|(_, file)| filters.iter().all(|filter| passes(filter, &file.path)));
    if selected.is_empty() {
        return Err(NoFile::NoFileLeft { filters: typed(filters) });
    }
    if !filters.is_empty() && files.len() > 1 && selected.len() == files.len() {
        messages.note(format_args!("note: -fd {} did not leave out any file", typed(filters)));
    }
    Ok(selected)
}

/// Whether a file passes a filter: by its name and full path, as for `.load`, or by its path as listed.
pub fn passes(filter: &Filter, file: &Path) -> bool {
    let listed = [file, &shown(file)].map(|path| filter.line(&path.to_string_lossy()));
    filter.accepts(listed.into_iter().fold(verdict(filter, file), LineMatch::or))
}

/// Returns the `-fd` filter that selects one of the loaded files: its path as listed, or its full path if the first
/// matches another file, too. To a filter, paths that differ only in case are the same.
pub fn filter_of(files: &[LoadedTrace], index: usize) -> Option<String> {
    let path = &files.get(index)?.path;
    let listed = word(&shown(path).to_string_lossy());
    let matches = Filter::new(&listed)
        .map_or(0, |filter| files.iter().filter(|file| passes(&filter, &file.path)).count());
    if matches == 1 {
        return Some(listed);
    }
    let path = absolute(path).unwrap_or_else(|_| path.clone());
    Some(word(&path.to_string_lossy()))
}

fn typed(filters: &[Filter]) -> String {
    filters.iter().map(Filter::text).collect::<Vec<_>>().join(" -fd ")
}
