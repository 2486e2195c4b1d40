//! Acquisitions of the suspect that is asked for by its id: groups are made as for all suspects, and those whose ids begin as
//! that one are chosen.

use std::sync::Arc;

use rayon::prelude::*;

use super::list::Acquired;
use super::program_groups::{ProgramGroup, SuspectScope};
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

/// Adds what the suspects acquired whose ids begin so: of programs and of single processes, of functions and of single
/// stacks. Without any, those that have such an id where there are no symbols.
fn add_suspects(
    rows: &mut SuspectRows,
    acquired: &Acquired<'_>,
    id: &SuspectId,
) -> Result<(), QueryError> {
    let flags = [false, true].into_iter();
    let scopes = flags.clone().flat_map(|by_process| {
        flags.clone().map(move |by_stack| SuspectScope { by_process, by_stack })
    });
    let scopes: Vec<Vec<ProgramGroup<'_>>> =
        scopes.map(|scope| ProgramGroup::all(acquired, scope)).collect();
    rows.note_groups(scopes.iter().any(|groups| !groups.is_empty()));
    let mut found = false;
    for without_symbols in [false, true] {
        if found {
            break;
        }
        for groups in &scopes {
            acquired.cancel.check()?;
            let matches = groups.par_iter().filter_map(|group| {
                let own = group.id(acquired);
                let is_it = id.begins(&own)
                    || (without_symbols && group.has_id_without_symbols(acquired, id));
                is_it.then_some((own, group))
            });
            let matches: Vec<(SuspectId, &ProgramGroup<'_>)> = matches.collect();
            // Of the suspects that share a stack, the largest has it.
            let is_last = without_symbols && !matches.is_empty();
            found |= !matches.is_empty();
            for (own, group) in matches {
                rows.add(&own, acquired.rows(&group.groups));
            }
            if is_last {
                break;
            }
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
