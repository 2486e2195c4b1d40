//! Lookup of suspects by id: groups are made as for all suspects, and those whose ids begin as the one that is asked for are
//! chosen.

use rayon::prelude::*;

use super::allocations::Allocations;
use super::program_groups::ProgramGroup;
use crate::query::context::FileContext;
use crate::query::criteria::{GroupCriteria, ObjectCriteria, StackTrims, WhyCriteria};
use crate::query::error::QueryError;
use crate::query::filters;
use crate::query::groups::{Groups, Opened};
use crate::query::suspect_rows::SuspectRows;
use crate::values::SuspectId;

/// Events that opened and closed the handles of these suspects, of programs and of single processes, with their stacks as
/// they are and as `trims` leave them.
///
/// # Errors
/// When the archive is damaged, or it is asked to stop.
pub(in crate::query) fn events_of_suspect(
    file: &FileContext<'_>,
    id: &SuspectId,
    trims: &StackTrims,
) -> Result<SuspectRows, QueryError> {
    let mut rows = SuspectRows::new(file.objects.event_count());
    let whole = StackTrims::default();
    let is_trimmed = *trims != whole;
    for trims in [&whole].into_iter().chain(is_trimmed.then_some(trims)) {
        let groups = GroupCriteria { trims: trims.clone(), ..GroupCriteria::of_create_stacks() };
        let criteria = ObjectCriteria { groups, ..ObjectCriteria::default() };
        let selection = filters::select(file, &criteria)?.selection;
        let groups = Groups::of(file, &selection, None, &criteria)?;
        let Some(timed) = &groups.timed else { continue };
        for by_process in [false, true] {
            file.cancel.check()?;
            let criteria = WhyCriteria { by_process, ..WhyCriteria::default() };
            let all = ProgramGroup::all(file, (&groups, timed), &criteria);
            rows.note_groups(!all.is_empty());
            let acquired = all.par_iter().filter_map(|group| {
                let whole_id = group.id(file, &groups);
                id.begins(&whole_id).then_some((whole_id, group))
            });
            for (whole_id, group) in acquired.collect::<Vec<_>>() {
                let handles = timed.handles_of(&groups.tree, &group.leaves);
                let events = |handle: &Opened| [Some(handle.opened), handle.closed()];
                let events = handles.iter().flat_map(events).flatten();
                rows.add(whole_id, events.map(|event| event.row()));
            }
        }
    }
    Ok(rows)
}

/// Allocations of these suspects, freed or not.
///
/// # Errors
/// When the archive is damaged, or it is asked to stop.
pub(in crate::query) fn allocations_of_suspect(
    file: &FileContext<'_>,
    id: &SuspectId,
) -> Result<SuspectRows, QueryError> {
    let criteria = WhyCriteria::default();
    let Some(mut all) = Allocations::load(file, &criteria)? else {
        return Ok(SuspectRows::new(0));
    };
    let mut rows = SuspectRows::new(all.height());
    all.add_acquired(id, &mut rows)?;
    Ok(rows)
}
