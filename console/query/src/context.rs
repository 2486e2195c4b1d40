//! The tables of a trace that every part of `.dump ObjectRef` needs.

use handlescope_session::filter::SystemModules;
use handlescope_session::trace::FrameNameCache;
use std::path::Path;

use handlescope_model::Trace;

use super::error::QueryError;
use super::frame_names::{FrameNames, Frames};
use super::objects::ObjectTable;
use super::suspect_rows::SuspectRows;
use super::tables::{ProcessList, TypeNames};
use super::volumes::Volumes;
use handlescope_session::cancel::Cancel;

/// The tables of a trace that every part of a query needs.
pub struct FileContext<'a> {
    pub trace: &'a Trace,
    pub objects: ObjectTable,
    pub types: TypeNames,
    pub processes: ProcessList,
    pub volumes: Volumes,
    pub path: &'a Path,
    pub index: usize,
    pub cancel: &'a Cancel,
    /// Stacks and their frames, if a filter or `-ShowStack` needs them.
    pub frames: Option<Frames<'a>>,
    /// The handles of the requested suspect, and for `.why` also its allocations.
    pub suspect: Option<SuspectRows>,
}

impl<'a> FileContext<'a> {
    pub fn load(
        source: &'a Source<'a>,
        objects: ObjectTable,
        needs_frames: bool,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        cancel.check()?;
        let trace = source.trace;
        let load = || Frames::load(trace, names, source.frames, source.system, cancel);
        Ok(Self {
            trace,
            objects,
            types: TypeNames::load(trace)?,
            processes: ProcessList::load(trace)?,
            volumes: Volumes::load(trace)?,
            path: source.path,
            index: source.index,
            cancel,
            frames: needs_frames.then(load).transpose()?,
            suspect: None,
        })
    }
}

/// A loaded trace.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file as it was named when it was loaded.
    pub path: &'a Path,
    /// Number of the trace in the session, whatever other files are queried with it.
    pub index: usize,
    /// Tables of the trace.
    pub trace: &'a Trace,
    /// The names of its frames found so far.
    pub frames: &'a FrameNameCache,
    /// Modules with frames that say little about a program.
    pub system: &'a SystemModules,
}
