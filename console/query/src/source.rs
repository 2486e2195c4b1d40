//! Source that a query reads.

use std::path::Path;

use handlescope_model::Trace;

use handlescope_session::filter::SystemModules;
use handlescope_session::trace::FrameNameCache;

/// A loaded trace.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file as it was named when it was loaded.
    pub path: &'a Path,
    /// Number of the trace in the session, whatever other files are queried with it.
    pub index: usize,
    /// Tables of the trace.
    pub trace: &'a Trace,
    /// The names of its frames that were found so far.
    pub frames: &'a FrameNameCache,
    /// Modules whose frames say little about a program.
    pub system: &'a SystemModules,
}
