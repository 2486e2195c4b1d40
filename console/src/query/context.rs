//! The tables of a trace that every part of `.dump ObjectRef` needs.

use std::path::Path;

use handlescope_model::Trace;

use super::error::QueryError;
use super::frame_names::{FrameNames, Frames};
use super::objects::ObjectTable;
use super::source::Source;
use super::suspect_rows::SuspectRows;
use super::tables::{ProcessList, TypeNames};
use super::volumes::Volumes;
use crate::cancel::Cancel;

/// The tables of a trace that every part of a query needs.
pub(crate) struct FileContext<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) objects: ObjectTable,
    pub(crate) types: TypeNames,
    pub(crate) processes: ProcessList,
    pub(crate) volumes: Volumes,
    pub(crate) path: &'a Path,
    pub(super) index: usize,
    pub(crate) cancel: &'a Cancel,
    /// Stacks and their frames, if a filter or `-ShowStack` needs them.
    pub(crate) frames: Option<Frames<'a>>,
    /// Events of the suspect that is asked for.
    pub(super) suspect_events: Option<SuspectRows>,
    /// Allocations of the suspect that is asked for.
    pub(super) suspect_allocations: Option<SuspectRows>,
}

impl<'a> FileContext<'a> {
    pub(super) fn load(
        source: &'a Source<'a>,
        objects: ObjectTable,
        needs_frames: bool,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        cancel.check()?;
        let trace = source.trace;
        let load = || {
            let frames = Frames::load(trace, names, source.frames, cancel)?;
            Ok::<_, QueryError>(frames.with_system_modules(source.system))
        };
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
            suspect_events: None,
            suspect_allocations: None,
        })
    }
}
