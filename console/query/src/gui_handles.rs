//! Handles of GDI and USER beside those of the kernel: in a trace they are allocations, to users they are handles.

use std::collections::BTreeMap;

use handlescope_model::tables::ResourceKind;
use serde::Serialize;

use super::allocations::AllocatorList;
use super::context::Source;
use super::criteria::ResourceColumn;
use super::criteria::{CountOrder, GroupCriteria, ObjectCriteria, ResourceCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::resources::ResourcesAnswer;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// The kinds of these handles.
const KINDS: [ResourceKind; 2] = [ResourceKind::Gdi, ResourceKind::User];

/// Handles of GDI or of USER in one trace.
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
    /// Closed only by the end of their process.
    pub closed_at_exit: u64,
    /// Number of both of each type, as in `Pen`, by name.
    pub leaked_by_type: Vec<(String, u64)>,
}

/// The handles of GDI and USER of a trace that has some, as far as the criteria choose by what these have, too.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn gui_handles(
    source: &Source<'_>,
    criteria: &ObjectCriteria,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<Vec<GuiHandles>, QueryError> {
    // Options for counting and printing objects do not select any.
    let handles = ObjectCriteria {
        show_total: None,
        top: None,
        order: CountOrder::default(),
        show_ref: false,
        groups: GroupCriteria::default(),
        ..criteria.clone()
    };
    let Some(allocations) = ResourceCriteria::of_handles(&handles) else { return Ok(Vec::new()) };
    if criteria.suspect.is_some() {
        // The suspect is one of handles of the kernel.
        return Ok(Vec::new());
    }
    // There are few allocators, and most traces have none of these kinds.
    let allocators = AllocatorList::load(source.trace)?;
    let kinds = KINDS.iter().filter(|kind| {
        allocators.rows().iter().any(|allocator| allocator.kind == kind.code())
            && allocations.kind.as_ref().is_none_or(|filter| filter.matches(kind.name()))
    });
    let kinds: Vec<&str> = kinds.map(|kind| kind.name()).collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let allocations_by_kind = ResourceCriteria {
        kind: Filter::new(&kinds.join(";")).ok(),
        by: Some(vec![ResourceColumn::Kind, ResourceColumn::Allocator]),
        leak: false,
        leak_at_exit: false,
        ..allocations
    };
    let answer = ResourcesAnswer::new(source, &allocations_by_kind, names, cancel)?;
    let of_kind = kinds.into_iter().map(|kind| GuiHandles::of(&answer, kind));
    Ok(of_kind.filter(|handles| handles.created > 0).collect())
}

impl GuiHandles {
    /// Sums up the groups of a kind, each of one type.
    fn of(answer: &ResourcesAnswer<'_>, kind: &'static str) -> Self {
        let mut handles = Self { file: answer.about.index, kind, ..Self::default() };
        let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
        for group in answer.groups_of(kind) {
            let stats = &group.stats;
            handles.created += stats.allocs;
            handles.closed += stats.frees;
            handles.leaked += stats.outstanding;
            handles.closed_at_exit += stats.at_exit;
            if stats.unreleased() > 0 {
                let name = answer.allocator(group).unwrap_or_default();
                *by_type.entry(name).or_default() += stats.unreleased();
            }
        }
        let by_type = by_type.into_iter().map(|(name, count)| (name.to_owned(), count));
        Self { leaked_by_type: by_type.collect(), ..handles }
    }
}
