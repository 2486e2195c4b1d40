//! Acquisitions of the suspect that is asked for by its id: groups are made as for all suspects, and those whose ids begin as
//! that one are chosen.

use std::sync::Arc;

use rayon::prelude::*;

use super::list::Acquired;
use super::program_groups::ProgramGroup;
use super::sites::Kept;
use crate::acquisition_table::AcquisitionTable;
use crate::allocations::{AllocatorList, Origin};
use crate::context::FileContext;
use crate::criteria::{
    GroupCriteria, ObjectCriteria, ProcessCriteria, ResourceCriteria, StackTrims,
};
use crate::error::QueryError;
use crate::filters;
use crate::groups::Groups;
use crate::suspect_rows::SuspectRows;
use handlescope_session::values::SuspectId;

/// Adds what the suspects acquired whose ids begin so, of programs and of single processes.
fn add_suspects(
    rows: &mut SuspectRows,
    acquired: &Acquired<'_>,
    id: &SuspectId,
) -> Result<(), QueryError> {
    for by_process in [false, true] {
        acquired.cancel.check()?;
        let groups = ProgramGroup::all(acquired, by_process);
        rows.note_groups(!groups.is_empty());
        let matches = groups.par_iter().filter_map(|group| {
            let group_id = group.id(acquired);
            id.begins(&group_id).then_some((group_id, group))
        });
        for (group_id, group) in matches.collect::<Vec<_>>() {
            rows.add(group_id, acquired.rows(&group.groups));
        }
    }
    Ok(())
}

/// Events that opened and closed the handles of these suspects, of programs and of single processes, with their stacks as
/// they are and as `trims` leave them.
///
/// # Errors
/// When the archive is damaged, or it is asked to stop.
pub fn events_of_suspect(
    file: &FileContext<'_>,
    id: &SuspectId,
    trims: &StackTrims,
) -> Result<SuspectRows, QueryError> {
    let mut rows = SuspectRows::new(file.objects.table.allocations);
    let untrimmed = StackTrims::default();
    let is_trimmed = *trims != untrimmed;
    for trims in [&untrimmed].into_iter().chain(is_trimmed.then_some(trims)) {
        let trims = trims.clone();
        let groups = GroupCriteria { trims, leaking: true, ..GroupCriteria::of_create_stacks() };
        let criteria = ObjectCriteria { groups, ..ObjectCriteria::default() };
        let selection = filters::select(file, &criteria)?.selection;
        let groups = Groups::of(file, &selection, None, &criteria)?;
        if let Some(handles) =
            Acquired::of_handles(file, Some(&groups), &ProcessCriteria::default(), false, false)
        {
            add_suspects(&mut rows, &handles, id)?;
        }
    }
    Ok(rows)
}

/// Allocations of these suspects, freed or not, of a trace whose stacks and columns of allocations are loaded.
///
/// # Errors
/// When the archive is damaged, or it is asked to stop.
pub fn allocations_of_suspect(
    origin: Origin<'_>,
    (allocators, table): (&AllocatorList, &Arc<AcquisitionTable>),
    id: &SuspectId,
) -> Result<SuspectRows, QueryError> {
    let (criteria, kept) = (ResourceCriteria::default(), Kept::Leaking);
    let allocations = Acquired::of_allocations(origin, allocators, table, &criteria, false, kept)?;
    let mut rows = SuspectRows::new(table.height());
    if let Some(allocations) = allocations {
        add_suspects(&mut rows, &allocations, id)?;
    }
    Ok(rows)
}
