//! Filters over processes: who created an object, and who had to do with it.

use handlescope_model::rules::CREATING;
use handlescope_model::tables::{Events, ExistingHandles};
use handlescope_model::{ArchiveError, EventKind, Numbers, ProcessIdx};

use crate::cancel::Cancelled;
use crate::filter::ProcessFilter;
use crate::query::ObjectCriteria;
use crate::query::context::FileContext;
use crate::query::error::QueryError;
use crate::query::selection::{Selected, Selection};
use crate::query::tables::{PerProcess, ProcessInfo};

/// Which processes pass `-ProcessName`, `-CmdLine` and `-NewProcess`, all of them; `None` when none is
/// asked for.
pub(super) fn creator_verdicts(
    args: &ObjectCriteria,
    file: &FileContext<'_>,
) -> Option<PerProcess<bool>> {
    let passes = |info: &ProcessInfo| args.creator.mean(info, args.plain_process_names);
    (!args.creator.is_empty()).then(|| file.processes.each(passes))
}

/// `-ProcessName`, `-CmdLine` and `-NewProcess`: one process has to pass all of them, that of the
/// creation, or without one any owner of a rundown handle.
pub(super) struct CreatorFilter<'f, 'a> {
    file: &'f FileContext<'a>,
    /// Asked once, so that no event needs the text of its process.
    verdicts: PerProcess<bool>,
    process: Numbers<ProcessIdx>,
    owner: Numbers<ProcessIdx>,
    kind: Numbers<u32>,
}

impl<'f, 'a> CreatorFilter<'f, 'a> {
    /// The filter that these arguments ask for, if they ask for one.
    pub(super) fn of(
        args: &ObjectCriteria,
        file: &'f FileContext<'a>,
    ) -> Result<Option<Self>, ArchiveError> {
        let Some(verdicts) = creator_verdicts(args, file) else { return Ok(None) };
        Ok(Some(Self {
            verdicts,
            process: file.trace.values(Events::process)?,
            kind: file.trace.values(Events::kind)?,
            owner: file.trace.values(ExistingHandles::process)?,
            file,
        }))
    }

    pub(super) fn apply(&self, selection: &mut Selection) -> Result<(), Cancelled> {
        selection.retain(self.file.cancel, |selected, _| match selected.create() {
            Some(create) => self.event_passes(create.row()),
            None => self.any_owner_passes(*selected),
        })
    }

    /// Drops objects that cannot pass [`Self::apply`] later, whatever is removed from them in
    /// between: no event that may become the creation has the right process, and no owner.
    pub(super) fn prefilter(&self, selection: &mut Selection) -> Result<(), Cancelled> {
        let kinds = self.kind.values();
        selection.retain(self.file.cancel, |selected, _| {
            selected.create().is_some_and(|create| self.event_passes(create.row()))
                || self.file.objects.events(selected.object()).any(|event| {
                    kinds.get(event).is_some_and(|&kind| CREATING.contains_code(kind))
                        && self.event_passes(event)
                })
                || self.any_owner_passes(*selected)
        })
    }

    fn event_passes(&self, event: usize) -> bool {
        self.process.get(event).is_some_and(|process| *self.verdicts.get(Some(process)))
    }

    fn any_owner_passes(&self, selected: Selected) -> bool {
        let handles = self.file.objects.existing(selected.object());
        self.owner.range(handles).any(|owner| *self.verdicts.get(Some(owner)))
    }
}

/// `-RelatedProcess`: any process of the events that are left, of creation and end, any owner of a
/// rundown handle, any process a handle was duplicated from or by, any child that inherited one.
///
/// A negative filter therefore asks for some other process.
pub(super) fn keep_related(
    filter: &ProcessFilter,
    plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let trace = file.trace;
    let verdicts = file.processes.each(|info| info.is_meant_by(filter, plain));
    let (kind, process) = (trace.values(Events::kind)?, trace.values(Events::process)?);
    let source = trace.values(Events::source_process)?;
    let caller = trace.values(Events::caller_process)?;
    let inherited_by = trace.values(Events::inherited_by)?;
    let owner = trace.values(ExistingHandles::process)?;
    let passes =
        |process: Option<ProcessIdx>| process.is_some_and(|process| *verdicts.get(Some(process)));
    let event_passes = |event: usize| {
        passes(process.get(event))
            || (kind.get(event) == Some(EventKind::HandleDuplicate.code())
                && (*verdicts.get(source.get(event))
                    || passes(caller.get(event))
                    || passes(inherited_by.get(event))))
    };
    selection.retain(file.cancel, |selected, left| {
        let object = selected.object();
        [selected.create(), selected.end()]
            .into_iter()
            .flatten()
            .any(|event| event_passes(event.row()))
            || file.objects.existing(object).any(|handle| passes(owner.get(handle)))
            || file.objects.events(object).any(|event| left.contains(event) && event_passes(event))
    })?;
    Ok(())
}
