//! GDI and USER handles beside kernel handles: traces record them as allocations, but users think of them as handles.

use handlescope_model::tables::ResourceKind;
use serde::Serialize;

use super::acquisition_table::AllocatorList;
use super::context::Source;
use super::criteria::{AcquisitionCriteria, GroupColumn, GroupCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::resources::ResourcesAnswer;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// The kinds of these handles.
const KINDS: [ResourceKind; 2] = [ResourceKind::Gdi, ResourceKind::User];

/// GDI or USER handles in one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GuiHandles {
    /// The number of the file in the session.
    pub file: usize,
    /// The kind: `gdi` or `user`.
    pub kind: &'static str,
    pub created: u64,
    pub closed: u64,
    /// Never closed.
    pub leaked: u64,
    /// Closed only by process exit.
    pub closed_at_exit: u64,
    /// Number of both by type, such as `Pen`, sorted by name.
    pub leaked_by_type: Vec<(String, u64)>,
}

/// Returns the GDI and USER handles of a trace, selected by those criteria that apply to them, too.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn gui_handles(
    source: &Source<'_>,
    criteria: &AcquisitionCriteria,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<GuiHandles>, QueryError> {
    // A suspect is one of kernel handles.
    if criteria.suspect.is_some() || !criteria.select_allocations() {
        return Ok(Vec::new());
    }
    // There are few allocators, and most traces have none of these kinds.
    let trace = source.trace;
    let allocators = AllocatorList::load(trace)?;
    let kinds: Vec<ResourceKind> = KINDS
        .iter()
        .filter(|kind| {
            allocators.rows().iter().any(|allocator| allocator.kind == kind.code())
                && criteria.kinds().is_none_or(|filter| filter.matches(kind.name()))
        })
        .copied()
        .collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let names_of_kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let kind = Filter::new(&names_of_kinds.join(";")).ok();
    let groups = GroupCriteria::new([GroupColumn::Kind, GroupColumn::Allocator]);
    let criteria = AcquisitionCriteria {
        kind,
        leak: false,
        leak_at_exit: false,
        ..criteria.with_groups(groups)
    };
    let answer = ResourcesAnswer::new(source, &criteria, names, cancel)?;
    let handles = kinds.into_iter().map(|kind| GuiHandles::new(source.index, kind.name(), &answer));
    Ok(handles.filter(|handles| handles.created > 0).collect())
}

impl GuiHandles {
    /// Sums the groups of a kind, which have one type each.
    fn new(file: usize, kind: &'static str, answer: &ResourcesAnswer<'_>) -> Self {
        let mut handles = Self { file, kind, ..Self::default() };
        for group in answer.groups_of(kind) {
            handles.created += group.stats.allocated.count;
            handles.closed += group.stats.freed.count;
            handles.leaked += group.stats.outstanding.count;
            handles.closed_at_exit += group.stats.at_exit.count;
            let type_name = answer.allocator(group).unwrap_or_default().to_owned();
            handles.leaked_by_type.push((type_name, group.stats.unreleased().count));
        }
        handles.leaked_by_type.retain(|(_, leaked)| *leaked > 0);
        handles.leaked_by_type.sort_unstable();
        handles
    }
}
