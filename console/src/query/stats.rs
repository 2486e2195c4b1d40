//! `.dump Stats`: what a trace holds, and how far it can be trusted.

use std::path::Path;

use handlescope_model::rules::WITH_HANDLE;
use handlescope_model::tables::{EventCount, EventCounts, Events, TraceInfo, Warning, Warnings};
use handlescope_model::{EventKind, Table, TableRows};

use super::error::QueryError;
use super::info::trace_info;
use super::source::Source;
use crate::cancel::Cancel;
use crate::cancel::Poll;

/// The figures of one trace.
pub struct StatsAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Its number in the session.
    pub index: usize,
    /// What it says of itself.
    pub info: TraceInfo,
    /// What was lost, damaged or left out.
    pub warnings: Vec<Warning>,
    /// Events of the source by kind, kept or not.
    pub events: Vec<EventCount>,
    /// Distinct stacks that are kept.
    pub stacks_distinct: usize,
    /// Distinct frames of these stacks.
    pub frames_distinct: usize,
    /// Objects and mappings.
    pub objects: usize,
    /// Creates, duplicates and closes of handles that belong to an object.
    pub handle_events: usize,
    /// Creates and duplicates that nothing in the trace closes.
    pub leaked_handles: usize,
}

/// Answers `.dump Stats`, one answer for each trace.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn stats<'a>(
    sources: &[Source<'a>],
    cancel: &Cancel,
) -> Result<Vec<StatsAnswer<'a>>, QueryError> {
    sources.iter().map(|source| StatsAnswer::new(source, cancel)).collect()
}

impl<'a> StatsAnswer<'a> {
    fn new(source: &Source<'a>, cancel: &Cancel) -> Result<Self, QueryError> {
        let trace = source.trace;
        let (kind, leaked) = (trace.values(Events::kind)?, trace.values(Events::leaked)?);
        let (mut handle_events, mut leaked_handles) = (0, 0);
        let mut poll = Poll::new(cancel);
        for (row, &kind) in kind.values().iter().enumerate() {
            poll.round()?;
            handle_events += usize::from(WITH_HANDLE.contains_code(kind));
            let is_handle = kind != EventKind::Map.code();
            leaked_handles += usize::from(is_handle && leaked.get(row));
        }
        Ok(Self {
            path: source.path,
            index: source.index,
            info: trace_info(trace)?,
            warnings: Warnings::read(trace)?.rows().collect(),
            events: EventCounts::read(trace)?.rows().collect(),
            stacks_distinct: trace.height(Table::Stacks)?,
            frames_distinct: trace.height(Table::Frames)?,
            objects: trace.height(Table::Objects)?,
            handle_events,
            leaked_handles,
        })
    }
}
