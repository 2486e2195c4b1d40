//! Finds a suspect by id prefix: builds the groups as for all suspects and keeps those whose id matches.

use rayon::prelude::*;

use super::list::AcquisitionGroups;
use super::program_groups::{ProgramGroup, SuspectScope};
use super::sites::KeptSites;
use crate::allocations::AllocationSource;
use crate::context::FileContext;
use crate::criteria::{AcquisitionCriteria, GroupCriteria, ProcessCriteria, StackTrims};
use crate::error::QueryError;
use crate::filters;
use crate::groups::Groups;
use crate::suspect_rows::SuspectRows;
use handlescope_session::values::SuspectId;

/// Adds the acquisitions of suspects with a matching id, whether of programs or single processes, functions or single
/// stacks. If there are none, tries the ids they have without symbols.
fn add_suspects(
    rows: &mut SuspectRows,
    acquired: &AcquisitionGroups<'_>,
    id: &SuspectId,
) -> Result<(), QueryError> {
    let scopes = [(false, false), (false, true), (true, false), (true, true)]
        .map(|(by_process, by_stack)| SuspectScope { by_process, by_stack })
        .map(|scope| ProgramGroup::all(acquired, scope));
    rows.note_groups(scopes.iter().any(|groups| !groups.is_empty()));
    let mut found = false;
    for without_symbols in [false, true] {
        if found {
            break;
        }
        for groups in &scopes {
            acquired.cancel.check()?;
            let matches: Vec<(SuspectId, &ProgramGroup<'_>)> = groups
                .par_iter()
                .filter_map(|group| {
                    let own = group.id(acquired);
                    let is_it = id.begins(&own)
                        || (without_symbols && group.has_id_without_symbols(acquired, id));
                    is_it.then_some((own, group))
                })
                .collect();
            // The largest of the suspects that share a stack gets it.
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

/// Returns the handles of matching suspects, of programs and single processes. Stacks are compared both in full and
/// with `trims` applied.
///
/// # Errors
/// If the archive is damaged or the query is cancelled.
pub fn handles_of_suspect(
    file: &FileContext<'_>,
    id: &SuspectId,
    trims: &StackTrims,
) -> Result<SuspectRows, QueryError> {
    let mut rows = SuspectRows::default();
    let untrimmed = StackTrims::default();
    let is_trimmed = *trims != untrimmed;
    for trims in [&untrimmed].into_iter().chain(is_trimmed.then_some(trims)) {
        let trims = trims.clone();
        let groups = GroupCriteria { trims, leaking: true, ..GroupCriteria::for_create_stacks() };
        let criteria = AcquisitionCriteria { groups, ..AcquisitionCriteria::default() };
        let selection = filters::select(file, &criteria)?.selection;
        let groups = Groups::new(file, &selection, None, &criteria)?;
        if let Some(handles) = AcquisitionGroups::from_handles(
            file,
            Some(&groups),
            &ProcessCriteria::default(),
            false,
            false,
        ) {
            add_suspects(&mut rows, &handles, id)?;
        }
    }
    Ok(rows)
}

/// Adds the allocations of matching suspects, freed or not.
///
/// # Errors
/// If the archive is damaged or the query is cancelled.
pub fn allocations_of_suspect(
    origin: AllocationSource<'_>,
    id: &SuspectId,
    mut rows: SuspectRows,
) -> Result<SuspectRows, QueryError> {
    let (criteria, kept) = (AcquisitionCriteria::default(), KeptSites::Leaking);
    let allocations = AcquisitionGroups::from_allocations(origin, &criteria, false, kept)?;
    if let Some(allocations) = allocations {
        add_suspects(&mut rows, &allocations, id)?;
    }
    Ok(rows)
}
