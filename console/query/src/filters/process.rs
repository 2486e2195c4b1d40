//! Filters on processes: who created an object, and who was involved with it.

use handlescope_model::rules::CREATING;
use handlescope_model::tables::Acquisitions;
use handlescope_model::{EventKind, ProcessIdx};

use crate::context::FileContext;
use crate::criteria::ProcessCriteria;
use crate::error::QueryError;
use crate::selection::Selection;
use crate::tables::PerProcess;
use handlescope_session::filter::ProcessFilter;

/// Returns the verdicts on processes, with `is_plain` by executable name alone; `None` if all pass.
pub fn creator_verdicts(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
) -> Option<PerProcess<bool>> {
    (!creator.is_empty()).then(|| file.processes.each(|info| creator.matches(info, is_plain)))
}

/// `-ProcessName`, `-CmdLine` and `-NewProcess`: one process must pass all of them. It is the creator, or any owner of
/// a rundown handle if there is no creation.
///
/// If the creation `may_change` because a stack filter will remove events, keeps all objects that may still pass. These
/// have an event of a matching process that may become the creation, or a matching owner.
pub fn keep_created(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
    may_change: bool,
) -> Result<(), QueryError> {
    // Each process is judged once, so that no event needs the text of its process.
    let Some(verdicts) = creator_verdicts(creator, is_plain, file) else { return Ok(()) };
    let table = &file.objects.table;
    let process = selection.columns(file.trace, &file.objects)?.processes()?;
    let owner = file.trace.values(Acquisitions::process)?;
    // If a thread uses a handle of another process, the process of the thread counts.
    let actor = |event: usize| match table.kind(event) {
        Some(kind) if kind != EventKind::HandleDuplicate => process.caller(event),
        _ => None,
    };
    let passes = |event: usize| {
        let process = actor(event).or_else(|| process.get(event));
        process.is_some_and(|row| *verdicts.get(Some(row)))
    };
    let may_create = |event: usize| {
        passes(event) && table.kind(event).is_some_and(|kind| CREATING.contains(kind))
    };
    selection.retain(file.cancel, |selected, _| {
        let object = selected.object();
        let create = selected.create(table);
        let mut owners = table.listed(object).map(|row| owner.get(row));
        create.is_some_and(|create| passes(create.row()))
            || may_change && file.objects.events(object).any(may_create)
            || (may_change || create.is_none()) && owners.any(|owner| *verdicts.get(owner))
    })?;
    Ok(())
}

/// `-RelatedProcess`: tests all processes involved. These are the processes of remaining events, of creation and end,
/// owners of rundown handles, sources and callers of duplicates, and children that inherited a handle.
///
/// A negative filter therefore asks for some other process.
pub fn keep_related(
    filter: &Option<ProcessFilter>,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let Some(filter) = filter else { return Ok(()) };
    let trace = file.trace;
    let verdicts = file.processes.each(|info| info.matches(filter, is_plain));
    let table = &file.objects.table;
    let times = trace.event_times()?;
    let columns = selection.columns(trace, &file.objects)?;
    let (process, source) =
        (columns.processes()?, columns.of_opened(Acquisitions::source_process)?);
    let owner = trace.values(Acquisitions::process)?;
    let passes =
        |process: Option<ProcessIdx>| process.is_some_and(|process| *verdicts.get(Some(process)));
    let event_passes = |event: usize| {
        passes(process.get(event))
            || passes(process.caller(event))
            || (table.kind(event) == Some(EventKind::HandleDuplicate)
                && (*verdicts.get(source.get(event)) || passes(process.inherited_by(event))))
    };
    selection.retain(file.cancel, |selected, mask| {
        let object = selected.object();
        [selected.create(table), selected.end(&times)]
            .into_iter()
            .flatten()
            .any(|event| event_passes(event.row()))
            || table.listed(object).any(|handle| passes(owner.get(handle)))
            || file.objects.events(object).any(|event| mask.contains(event) && event_passes(event))
    })?;
    Ok(())
}
