//! `.dump Stats`: what a trace holds, and how far it can be trusted.

use std::path::Path;

use handlescope_model::rules::{OPENING_HANDLES, WITH_HANDLE};
use handlescope_model::tables::{EventCount, EventCounts, Events, TraceInfo, Warning, Warnings};
use handlescope_model::{ArchiveError, EventKind, Table, TableRows, Trace};

use polars::prelude::{DataFrame, IntoLazy, PolarsResult, col, lit};

use super::counts::is_one_of;
use super::error::QueryError;
use super::info::trace_info;
use super::source::Source;
use crate::cancel::Cancel;

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
    /// Creates and duplicates that only the end of their process closed; `None` when the extract does
    /// not say.
    pub closed_at_exit: Option<u64>,
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
        cancel.check()?;
        let columns = vec![trace.column_of(Events::kind)?, trace.column_of(Events::leaked)?];
        let is_map = col(Events::kind.name()).eq(lit(EventKind::Map.code()));
        let sums = DataFrame::new_infer_height(columns)?.lazy().select([
            is_one_of(WITH_HANDLE).sum().alias("handle_events"),
            col(Events::leaked.name()).and(is_map.not()).sum().alias("leaked_handles"),
        ]);
        let sums = sums.collect()?;
        let sum = |name| -> PolarsResult<usize> {
            Ok(sums.column(name)?.idx()?.get(0).unwrap_or_default() as usize)
        };
        Ok(Self {
            path: source.path,
            index: source.index,
            info: trace_info(trace)?,
            warnings: Warnings::read(trace)?.rows().collect(),
            events: EventCounts::read(trace)?.rows().collect(),
            stacks_distinct: trace.height(Table::Stacks)?,
            frames_distinct: trace.height(Table::Frames)?,
            objects: trace.height(Table::Objects)?,
            handle_events: sum("handle_events")?,
            leaked_handles: sum("leaked_handles")?,
            closed_at_exit: closed_at_exit(trace)?,
        })
    }
}

/// Creates and duplicates that only the end of their process closed.
fn closed_at_exit(trace: &Trace) -> Result<Option<u64>, ArchiveError> {
    let at_exit = trace.values(Events::closed_at_exit)?;
    let kind = trace.values(Events::kind)?;
    let is_unknown = !kind.is_empty() && at_exit.known(0).is_none();
    if !is_unknown && !at_exit.any() {
        return Ok(Some(0));
    }
    let is_opening =
        |&(at_exit, kind): &(bool, &u32)| at_exit && OPENING_HANDLES.contains_code(*kind);
    let opened = at_exit.iter().zip(kind.values()).filter(is_opening).count();
    Ok((!is_unknown).then_some(opened as u64))
}
