//! Filters over processes: who created an object, and who had to do with it.

use handlescope_model::rules::CREATING;
use handlescope_model::tables::Acquisitions;
use handlescope_model::{EventKind, ProcessIdx};

use crate::context::FileContext;
use crate::criteria::ProcessCriteria;
use crate::error::QueryError;
use crate::selection::Selection;
use crate::tables::PerProcess;
use handlescope_session::filter::ProcessFilter;

/// Verdicts on processes, with `is_plain` by the names of their executables alone; `None` where all pass.
pub fn creator_verdicts(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
) -> Option<PerProcess<bool>> {
    (!creator.is_empty()).then(|| file.processes.each(|info| creator.matches(info, is_plain)))
}

/// `-ProcessName`, `-CmdLine` and `-NewProcess`: one process has to pass all of them, that of the creation, or without
/// one any owner of a rundown handle.
pub fn keep_creators(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    keep_created(creator, is_plain, file, selection, false)
}

/// Keeps what may pass them where a filter on stacks removes events later: objects with an event of the right process
/// that may become the creation, and with such an owner, too.
pub fn keep_possible_creators(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    keep_created(creator, is_plain, file, selection, true)
}

fn keep_created(
    creator: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
    may_change: bool,
) -> Result<(), QueryError> {
    // Judged once per process, so that no event needs the text of its process.
    let Some(verdicts) = creator_verdicts(creator, is_plain, file) else { return Ok(()) };
    let table = &file.objects.table;
    let process = selection.columns(file.trace, &file.objects)?.processes()?;
    let owner = file.trace.values(Acquisitions::process)?;
    // Of what a thread does with the handle of another process, its own process is asked.
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

/// `-RelatedProcess`: any process of the events that are left, of creation and end, any owner of a
/// rundown handle, any process a handle was duplicated from or by, any child that inherited one.
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
