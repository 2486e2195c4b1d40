//! An overview of the allocations of a trace for a page, by kind.

use super::answer::ResourcesAnswer;
use super::groups::ResourceGroup;
use super::stats::ResourceStats;
use crate::allocations::allocated_kinds;
use crate::context::Source;
use crate::criteria::{ObjectCriteria, ResourceColumn, ResourceCriteria};
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use handlescope_session::cancel::Cancel;

/// The allocations of a trace.
pub struct AllocationsOverview<'a> {
    /// Groups of one kind, allocator, process and stack.
    pub groups: ResourcesAnswer<'a>,
    /// Groups of one kind and process, with allocated bytes over time.
    bytes: ResourcesAnswer<'a>,
    /// Groups of one kind and process, with the number of allocations over time, if a kind has no bytes.
    counts: Option<ResourcesAnswer<'a>>,
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
        self.stats.alloc_bytes != 0
    }
}

impl<'a> AllocationsOverview<'a> {
    /// Returns the answer that has a kind's allocations over time.
    pub fn over_time(&self, kind: &AllocatedKind) -> &ResourcesAnswer<'a> {
        self.counts.as_ref().filter(|_| !kind.has_bytes()).unwrap_or(&self.bytes)
    }
}

impl ResourcesAnswer<'_> {
    pub fn groups_of<'g>(&'g self, kind: &'g str) -> impl Iterator<Item = &'g ResourceGroup> {
        self.groups
            .iter()
            .flat_map(|groups| &groups.rows)
            .filter(move |group| self.kind(group) == Some(kind))
    }
}

/// Makes the overview with `parts` parts of time; `None` if no allocation of the trace is selected.
///
/// # Errors
/// If the archive is damaged, a time is requested but the trace has no clock, or `cancel` asks to stop.
pub fn allocations_overview<'a>(
    source: &Source<'a>,
    criteria: &ObjectCriteria,
    parts: usize,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Option<AllocationsOverview<'a>>, QueryError> {
    let kinds_of_trace = allocated_kinds(source.trace)?;
    if kinds_of_trace.is_empty() {
        return Ok(None);
    }
    let answer = |by: &[ResourceColumn], buckets: Option<usize>, by_count: bool| {
        let by = Some(by.to_vec());
        let (choice, keeps_changes) = (criteria.clone(), buckets.is_some());
        let totals = ResourceCriteria::default();
        let criteria = ResourceCriteria { choice, by, buckets, by_count, keeps_changes, ..totals };
        // The requested suspect may be one of handles.
        ResourcesAnswer::new(source, &criteria, names, cancel)
    };
    let groups = answer(&ResourceColumn::COMPARED, None, false)?;
    let kinds: Vec<AllocatedKind> = kinds_of_trace
        .iter()
        .map(|kind| {
            let mut stats = ResourceStats::default();
            groups.groups_of(kind.name()).for_each(|group| stats.add_all(&group.stats));
            AllocatedKind { name: kind.name(), stats }
        })
        .filter(|kind| kind.stats.allocs > 0)
        .collect();
    let by = [ResourceColumn::Kind, ResourceColumn::Process];
    let bytes = answer(&by, Some(parts), false)?;
    let is_counted = kinds.iter().any(|kind| !kind.has_bytes());
    let counts = is_counted.then(|| answer(&by, Some(parts), true)).transpose()?;
    Ok((!kinds.is_empty()).then_some(AllocationsOverview { groups, bytes, counts, kinds }))
}
