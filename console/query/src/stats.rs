//! `.dump Stats`: what a trace contains and how far it can be trusted.

use handlescope_model::tables::{EventCount, EventCounts, Loss, Losses, Warning, Warnings};
use handlescope_model::{Table, TableRows, Trace};

use super::context::Source;
use super::error::QueryError;
use super::list_answer::ListAnswer;
use super::zombies::{KnownZombies, ZombieSummary};
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::{knows_losses, unseen_closes};

/// What `.dump Stats` says about one trace.
pub type StatsAnswer<'a> = ListAnswer<'a, TraceStats>;

/// The figures of one trace.
pub struct TraceStats {
    /// Warnings about what was lost, damaged or left out.
    pub warnings: Vec<Warning>,
    /// Events of the source by kind, kept or not.
    pub events: Vec<EventCount>,
    /// Number of distinct stacks kept.
    pub stacks_distinct: usize,
    /// Number of distinct frames in these stacks.
    pub frames_distinct: usize,
    /// Number of objects and mappings.
    pub objects: usize,
    /// Creates, duplicates and closes of handles that belong to an object.
    pub handle_events: usize,
    /// Creates and duplicates that nothing in the trace closes.
    pub leaked_handles: usize,
    /// Views that nothing in the trace unmaps.
    pub leaked_views: usize,
    /// Creates, duplicates and maps that only process exit closed.
    pub closed_at_exit: u64,
    /// Creates, duplicates and maps with a close that the trace lost; `None` if the extract does not say.
    pub closed_unseen: Option<u64>,
    /// Times when events may be missing.
    pub losses: Vec<Loss>,
    /// Processes that have ended but are still in memory.
    pub zombies: ZombieSummary,
}

/// Answers `.dump Stats`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn stats<'a>(
    sources: &[Source<'a>],
    cancel: &Cancel,
) -> Result<Vec<StatsAnswer<'a>>, QueryError> {
    sources
        .iter()
        .map(|source| ListAnswer::new(source, TraceStats::load(source.trace, cancel)?))
        .collect()
}

impl TraceStats {
    fn load(trace: &Trace, cancel: &Cancel) -> Result<Self, QueryError> {
        cancel.check()?;
        let table = trace.event_table()?;
        let (mut handle_events, mut closed_at_exit) = (0, 0);
        // Leaked handles and leaked views.
        let mut leaked = [0; 2];
        for row in 0..table.allocations {
            let state = table.state(row);
            if !state.is_view() {
                handle_events += usize::from(state.is_opened()) + usize::from(state.is_ended());
            }
            leaked[usize::from(state.is_view())] += usize::from(state.is_leaked());
            closed_at_exit += u64::from(state.is_closed_at_exit());
        }
        Ok(Self {
            warnings: Warnings::read(trace)?.rows().collect(),
            events: EventCounts::read(trace)?.rows().collect(),
            stacks_distinct: trace.height(Table::Stacks)?,
            frames_distinct: trace.height(Table::Frames)?,
            objects: table.objects,
            handle_events,
            leaked_handles: leaked[0],
            leaked_views: leaked[1],
            closed_unseen: knows_losses(trace)?.then(|| unseen_closes(trace)).transpose()?,
            losses: Losses::read(trace)?.rows().collect(),
            zombies: KnownZombies::load(trace)?.count(|_| true),
            closed_at_exit,
        })
    }
}
