//! Kinds of allocations in a trace.

use handlescope_model::Trace;
use handlescope_model::tables::{ResourceKind, Resources};

use super::tables::AllocatorList;
use crate::error::QueryError;

/// The kinds that something was allocated of in a trace, in the order of [`ResourceKind`].
///
/// # Errors
/// When the archive is damaged.
pub fn allocated_kinds(trace: &Trace) -> Result<Vec<ResourceKind>, QueryError> {
    let allocators = AllocatorList::load(trace)?;
    let rows = trace.values(Resources::allocator)?;
    let mut is_used = vec![false; allocators.rows().len()];
    for row in 0..rows.len() {
        if let Some(is_used) = rows.get(row).and_then(|allocator| is_used.get_mut(allocator.row()))
        {
            *is_used = true;
        }
    }
    let kinds = ResourceKind::ALL.into_iter().filter(|kind| {
        let mut used = allocators.rows().iter().zip(&is_used).filter(|(_, is_used)| **is_used);
        used.any(|(allocator, _)| allocator.kind == kind.code())
    });
    Ok(kinds.collect())
}
