//! `.dump Stats`: what a trace holds, and how far it can be trusted.

use std::path::Path;

use handlescope_model::rules::{OPENING, OPENING_HANDLES, VIEWS, WITH_HANDLE};
use handlescope_model::tables::{
    EventCount, EventCounts, Events, Loss, Losses, TraceInfo, Warning, Warnings,
};
use handlescope_model::{Table, TableRows};

use polars::prelude::{DataFrame, IntoLazy, PolarsResult, col};

use super::context::Source;
use super::counts::is_one_of;
use super::error::QueryError;
use super::info::trace_info;
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::{knows_losses, unseen_closes};

/// The figures of one trace.
pub struct StatsAnswer<'a> {
    /// The file as it was named.
    pub path: &'a Path,
    /// Number of the trace in the session.
    pub index: usize,
    /// Information that the trace has about itself.
    pub info: TraceInfo,
    /// Warnings about what was lost, damaged or left out.
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
    /// Views that nothing in the trace unmaps.
    pub leaked_views: usize,
    /// Creates, duplicates and maps that only the end of their process closed.
    pub closed_at_exit: u64,
    /// Creates, duplicates and maps whose close the trace lost; `None` when the extract does not say.
    pub closed_unseen: Option<u64>,
    /// Times when events may be missing.
    pub losses: Vec<Loss>,
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
        let columns = vec![
            trace.column_of(Events::kind)?,
            trace.column_of(Events::leaked)?,
            trace.column_of(Events::closed_at_exit)?,
        ];
        let opened = |opening, is: &str| is_one_of(opening).and(col(is)).sum();
        let sums = DataFrame::new_infer_height(columns)?.lazy().select([
            is_one_of(WITH_HANDLE).sum().alias("handle_events"),
            opened(OPENING_HANDLES, Events::leaked.name()).alias("leaked_handles"),
            opened(VIEWS, Events::leaked.name()).alias("leaked_views"),
            opened(OPENING, Events::closed_at_exit.name()).alias("closed_at_exit"),
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
            objects: trace.height(Table::ObjectSpans)?,
            handle_events: sum("handle_events")?,
            leaked_handles: sum("leaked_handles")?,
            leaked_views: sum("leaked_views")?,
            closed_unseen: knows_losses(trace)?.then(|| unseen_closes(trace)).transpose()?,
            losses: Losses::read(trace)?.rows().collect(),
            closed_at_exit: sum("closed_at_exit")? as u64,
        })
    }
}
