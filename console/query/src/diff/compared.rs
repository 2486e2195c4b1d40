//! The two kinds of answers to compare, handles and allocations, and how each is queried.

use handlescope_model::StackIdx;

use crate::acquired::{AcquisitionGroups, KeptSites, allocations_of_suspect, handles_of_suspect};
use crate::answer::TraceAnswer;
use crate::context::Source;
use crate::criteria::{AcquisitionCriteria, DiffCriteria, GroupCriteria, StackTrims};
use crate::error::QueryError;
use crate::frame_names::FrameNames;
use crate::groups::Groups;
use crate::growth::TimeWindow;
use crate::info::recorded;
use crate::no_match::NoMatch;
use crate::object_ref::{FileAnswer, note_owners, object_ref};
use crate::resources::{ResourcesAnswer, resources};
use crate::stacks::StackSet;
use crate::suspect_rows::{SuspectRows, check};
use handlescope_session::cancel::Cancel;
use handlescope_session::values::SuspectId;

const NS_PER_MINUTE: f64 = 60e9;

/// An answer that can be compared.
pub trait ComparableAnswer<'a>: TraceAnswer<'a> + Sized {
    /// Queries each source: everything, or with `leaking` only what nothing but process exit released.
    ///
    /// # Errors
    /// If an archive is damaged or `cancel` asks to stop.
    fn ask(
        sources: &'a [Source<'a>],
        criteria: &DiffCriteria,
        leaking: bool,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Vec<Self>, QueryError>;

    /// Returns the acquisitions to compare; `None` if the trace has none.
    fn acquired<'f>(
        &'f self,
        criteria: &'f DiffCriteria,
        kept: KeptSites,
    ) -> Result<Option<AcquisitionGroups<'f>>, QueryError>;

    /// Returns the rows of the suspects whose ids begin with `id`.
    fn rows_of_suspect(&self, id: &SuspectId) -> Result<SuspectRows, QueryError>;

    /// Shows only the given stacks, with a caveat if their representative functions have no names.
    fn show_stacks(&mut self, stacks: Vec<StackIdx>) -> Result<(), QueryError>;

    /// Whether the trace knows the requested kind or process, and it simply does not leak.
    fn knows_choice(&self, criteria: &DiffCriteria, no_match: &NoMatch) -> bool;
}

impl<'a> ComparableAnswer<'a> for FileAnswer<'a> {
    fn ask(
        sources: &'a [Source<'a>],
        criteria: &DiffCriteria,
        leaking: bool,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Vec<Self>, QueryError> {
        let infos =
            sources.iter().map(|source| source.trace.info()).collect::<Result<Vec<_>, _>>()?;
        let are_dumps = leaking && infos.iter().all(|info| info.is_of_one_moment());
        let handles = AcquisitionCriteria {
            object_type: criteria.object_type.clone(),
            stacks: criteria.stacks,
            with_identities: criteria.with_identities,
            groups: if are_dumps {
                GroupCriteria::for_dumps()
            } else {
                GroupCriteria::for_create_stacks()
            },
            ..AcquisitionCriteria::default()
        };
        let mut files = object_ref(sources, &handles, names, cancel)?.files;
        if !criteria.owners.is_empty() {
            note_owners(&mut files, &criteria.owners, criteria.with_identities);
        }
        Ok(files)
    }

    fn acquired<'f>(
        &'f self,
        criteria: &'f DiffCriteria,
        kept: KeptSites,
    ) -> Result<Option<AcquisitionGroups<'f>>, QueryError> {
        let (groups, is_plain) = (self.groups.as_ref(), criteria.with_identities);
        // Two dumps are compared by all that is open; within one dump, only what its operations opened counts.
        let at_end = kept == KeptSites::All && groups.is_some_and(Groups::has_name_patterns);
        Ok(AcquisitionGroups::from_handles(&self.file, groups, &criteria.owners, is_plain, at_end))
    }

    fn rows_of_suspect(&self, id: &SuspectId) -> Result<SuspectRows, QueryError> {
        handles_of_suspect(&self.file, id, &StackTrims::default())
    }

    fn show_stacks(&mut self, stacks: Vec<StackIdx>) -> Result<(), QueryError> {
        self.show_named_stacks(stacks)
    }

    /// Processes and types are known even if they have no handles.
    fn knows_choice(&self, criteria: &DiffCriteria, _: &NoMatch) -> bool {
        let mut processes = self.file.processes.rows().iter();
        let has_process = criteria.owners.is_empty()
            || processes.any(|process| criteria.owners.matches(process, criteria.with_identities));
        let mut types = self.file.types.names();
        let object_type = criteria.object_type.as_ref();
        has_process && object_type.is_none_or(|filter| types.any(|name| filter.matches(name)))
    }
}

impl<'a> ComparableAnswer<'a> for ResourcesAnswer<'a> {
    fn ask(
        sources: &'a [Source<'a>],
        criteria: &DiffCriteria,
        leaking: bool,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Vec<Self>, QueryError> {
        let (leak, leak_at_exit) = (leaking, leaking);
        let compared =
            AcquisitionCriteria { leak, leak_at_exit, is_compared: true, ..of(criteria) };
        resources(sources, &compared, names, cancel)
    }

    fn acquired<'f>(
        &'f self,
        criteria: &'f DiffCriteria,
        kept: KeptSites,
    ) -> Result<Option<AcquisitionGroups<'f>>, QueryError> {
        AcquisitionGroups::from_allocations(self.origin(), &of(criteria), false, kept)
    }

    fn rows_of_suspect(&self, id: &SuspectId) -> Result<SuspectRows, QueryError> {
        allocations_of_suspect(self.origin(), id, SuspectRows::default())
    }

    fn show_stacks(&mut self, stacks: Vec<StackIdx>) -> Result<(), QueryError> {
        let mut shown_stacks = StackSet::new(self.frames.stacks.len());
        stacks.into_iter().for_each(|stack| shown_stacks.add(Some(stack)));
        self.about_mut().shown_stacks = Some(shown_stacks);
        Ok(())
    }

    /// Whether the requested kinds exist and perhaps were not recorded.
    fn knows_choice(&self, _: &DiffCriteria, no_match: &NoMatch) -> bool {
        no_match.names_kinds()
    }
}

/// Returns criteria for the allocations to compare; types become kinds.
fn of(criteria: &DiffCriteria) -> AcquisitionCriteria {
    let DiffCriteria { owners: creator, object_type: kind, stacks, .. } = criteria.clone();
    AcquisitionCriteria { creator, kind, stacks, ..AcquisitionCriteria::default() }
}

/// Returns the rows of the requested suspect in each trace, if one is requested.
pub fn rows_of_suspect<'a, F: ComparableAnswer<'a>>(
    files: &[F],
    criteria: &DiffCriteria,
) -> Result<Vec<Option<SuspectRows>>, QueryError> {
    let Some(id) = &criteria.suspect else { return Ok(files.iter().map(|_| None).collect()) };
    let rows = files
        .iter()
        .map(|file| file.rows_of_suspect(id))
        .collect::<Result<Vec<_>, QueryError>>()?;
    check(id, F::DOMAIN.label(), rows.iter())?;
    Ok(rows.into_iter().map(Some).collect())
}

/// Returns the time range of what is compared, or of the trace if there is nothing.
pub fn extent<'a, F: ComparableAnswer<'a>>(
    file: &F,
    acquired: Option<&AcquisitionGroups<'_>>,
) -> TimeWindow {
    acquired.map_or_else(|| recorded(&file.about().info, 0), |it| it.extent)
}

/// Returns a length in minutes; `None` if the traces have no clock or the length is 0.
pub fn minutes(length_ns: i64, has_clock: bool) -> Option<f64> {
    let minutes = length_ns as f64 / NS_PER_MINUTE;
    (has_clock && minutes > 0.0).then_some(minutes)
}

/// Returns the number of handles per minute, rounded to three decimals.
pub fn per_minute(handles: u64, minutes: Option<f64>) -> Option<f64> {
    minutes.map(|minutes| (handles as f64 / minutes * 1e3).round() / 1e3)
}
