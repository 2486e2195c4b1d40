//! An overview of the allocations of a trace for a page, by kind.

use super::answer::ResourcesAnswer;
use super::groups::ResourceGroup;
use super::stats::ResourceStats;
use crate::allocations::allocated_kinds;
use crate::context::Source;
use crate::criteria::{AcquisitionCriteria, GroupColumn, GroupCriteria};
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use handlescope_session::cancel::Cancel;

/// The allocations of a trace.
pub struct AllocationsOverview<'a> {
    /// Groups of one kind, allocator, process and stack.
    pub groups: ResourcesAnswer<'a>,
    /// Groups of one kind and process, with their times.
    pub over_time: ResourcesAnswer<'a>,
    /// The kinds that were allocated.
    pub kinds: Vec<AllocatedKind>,
}

#[derive(Debug, Clone, Copy)]
pub struct AllocatedKind {
    /// Name of the kind, such as `heap`.
    pub name: &'static str,
    /// Sums over all of its groups.
    pub stats: ResourceStats,
}

impl AllocatedKind {
    /// Whether any of it has a size: GDI and USER handles have none.
    pub fn has_bytes(&self) -> bool {
        self.stats.allocated.bytes != 0
    }
}

impl ResourcesAnswer<'_> {
    pub fn groups_of<'g>(&'g self, kind: &'g str) -> impl Iterator<Item = &'g ResourceGroup> {
        self.shown_groups().filter(move |group| self.kind(group) == Some(kind))
    }
}

/// Makes the overview; `None` if no allocation of the trace is selected.
///
/// # Errors
/// If the archive is damaged, a time is requested but the trace has no clock, or `cancel` asks to stop.
pub fn allocations_overview<'a>(
    source: &Source<'a>,
    criteria: &AcquisitionCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Option<AllocationsOverview<'a>>, QueryError> {
    let kinds_of_trace = allocated_kinds(source.trace)?;
    if kinds_of_trace.is_empty() {
        return Ok(None);
    }
    let answer = |by: &[GroupColumn], keeps_members: bool| {
        let groups = GroupCriteria { keeps_members, ..GroupCriteria::new(by) };
        // The requested suspect may be one of handles.
        ResourcesAnswer::new(source, &criteria.with_groups(groups), names, cancel)
    };
    let groups = answer(&GroupColumn::DRAWN, false)?;
    let kinds: Vec<AllocatedKind> = kinds_of_trace
        .iter()
        .map(|kind| {
            let mut stats = ResourceStats::default();
            groups.groups_of(kind.name()).for_each(|group| stats.add_all(&group.stats));
            AllocatedKind { name: kind.name(), stats }
        })
        .filter(|kind| kind.stats.allocated.count > 0)
        .collect();
    let over_time = answer(&[GroupColumn::Kind, GroupColumn::Process], true)?;
    Ok((!kinds.is_empty()).then_some(AllocationsOverview { groups, over_time, kinds }))
}
