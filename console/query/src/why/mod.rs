//! `.why`: ranks the groups that leak, each with how it grows and why.
//!
//! A suspect is a group of one program, one type and one create stack that leaks handles or allocations and is not
//! balanced. [`score`] ranks suspects; [`causes`] and [`mod@allocations`] say what the events prove. docs/why.md
//! explains it.

mod allocations;
mod causes;
mod columns;
mod names;
mod not_counted;
mod owner_ends;
mod pairs;
mod score;
mod suspect;
mod target_groups;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use handlescope_model::{FILE_MAPPING_NAME, ObjectIdx, RowSet};
use rayon::prelude::*;

pub use self::allocations::causes_of_allocations;
pub use self::causes::{Diagnosis, causes_of_handles};
pub use self::names::{LeakedNames, ObjectNames};
pub use self::not_counted::NotCounted;
pub use self::suspect::NoSuspectReason;
pub use self::suspect::{Suspect, SuspectProcess};

use self::allocations::{SiteCauses, remove_backed};
use self::causes::{Causes, GroupFindings, proved};
use self::columns::HandleEvents;
use self::columns::OwnerEnds;
use self::names::NameTable;
use self::suspect::{LeakingGroup, NoSuspect};
use super::acquired::{AcquisitionGroups, KeptSites, ProgramGroup, allocations_of_suspect};
use super::acquisition_table::{AcquisitionTable, NeededColumns};
use super::allocations::{AllocationSource, FilteredTables, ResourceSelection};
use super::context::{FileContext, Source};
use super::criteria::{GroupCriteria, PickedSuspect, WhyCriteria};
use super::error::QueryError;
use super::filters::event::keep_owners;
use super::frame_names::FrameNames;
use super::handle_counts::HandleCounts;
use super::ignored::{IgnoreCandidate, ignored_by};
use super::object_ref::note_owners;
use super::object_ref::{FileAnswer, unchecked_object_ref};
use super::requests::RequestStarts;
use super::suspect_rows::{check, check_ids};
use super::targets::Targets;
use super::totals::Totals;
use super::unnamed_methods;
use super::zombies::ZombieSummary;
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::{IgnoreEntry, IgnoreList};
use handlescope_session::trace::{CaveatKind, has_handle_events};
use handlescope_session::values::SuspectId;

/// Default maximum time between the opens of a race: 1 ms.
const RACE_WINDOW_NS: i64 = 1_000_000;

/// Maximum number of handle values kept for a suspect.
const MAX_HANDLES: usize = 64;

/// The leaks of one trace.
pub struct WhyAnswer<'a> {
    /// The trace and its groups: only leaking ones, or all if requested.
    pub file: FileAnswer<'a>,
    /// Groups that leak: first those of handles, worst first, then those of allocations.
    pub suspects: Vec<Suspect>,
    /// The ignore entries that matched suspects, one for each match. Ignored suspects are shown only if asked for.
    pub ignored: Vec<Arc<IgnoreEntry>>,
    /// Number of allocations in the trace.
    pub allocations: usize,
    /// Number of handle groups that leak only a few young handles and so are no suspects.
    pub young_groups: usize,
    /// Leaked handles and allocations that belong to no suspect.
    pub not_counted: Vec<NotCounted>,
    /// Whether the trace has handle events.
    pub has_events: bool,
    /// The open handles, if the trace has no handle events.
    pub open: Option<HandleCounts>,
    /// Processes that have ended but are still in memory.
    pub zombies: ZombieSummary,
    /// Number of caveats that do not depend on which suspects are shown.
    caveats: usize,
}

/// Finds what leaks and returns one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn why<'a>(
    sources: &'a [Source<'a>],
    criteria: &WhyCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<WhyAnswer<'a>>, QueryError> {
    // The owners of other handles show which processes could have been meant.
    let leaking = !criteria.with_every_group && criteria.owners.is_empty();
    let groups = GroupCriteria { leaking, ..GroupCriteria::for_create_stacks() };
    let object_criteria = criteria.handles.with_groups(groups);
    let mut files = unchecked_object_ref(sources, &object_criteria, names, cancel)?.files;
    let is_read = criteria.handles.suspect.is_some() || criteria.allocations().is_some();
    // Causes of leaks name stacks that free.
    let load = |trace| AcquisitionTable::load(trace, NeededColumns::ALLOCATIONS);
    let tables = files
        .iter()
        .map(|answer| is_read.then(|| load(answer.file.trace)).transpose())
        .collect::<Result<Vec<Option<Arc<AcquisitionTable>>>, QueryError>>()?;
    if let Some(id) = &criteria.handles.suspect {
        for (FileAnswer { file, .. }, table) in files.iter_mut().zip(&tables) {
            let mut rows = file.suspect.take().unwrap_or_default();
            if let Some(table) = table
                && let Some(origin) = AllocationSource::new(file, table)
            {
                rows = allocations_of_suspect(origin, id, rows)?;
            }
            file.suspect = Some(rows);
        }
        let rows = files.iter().filter_map(|answer| answer.file.suspect.as_ref());
        check(id, "handles or allocations", rows)?;
    }
    if !criteria.owners.is_empty() {
        note_owners(&mut files, &criteria.owners, criteria.handles.is_plain());
        for FileAnswer { file, selection, totals, .. } in &mut files {
            keep_owners(&criteria.owners, criteria.handles.is_plain(), file, selection)?;
            *totals = Totals::new(file, selection)?;
        }
    }
    let mut answers = files
        .into_iter()
        .zip(tables)
        .map(|(file, table)| WhyAnswer::new(file, table.as_ref(), criteria, names))
        .collect::<Result<Vec<_>, QueryError>>()?;
    if let Some(picked) = &criteria.picked {
        pick(&mut answers, picked)?;
    }
    Ok(answers)
}

/// Keeps only the requested suspect in each trace that has it.
fn pick(answers: &mut [WhyAnswer<'_>], picked: &PickedSuspect) -> Result<(), QueryError> {
    let count = answers.iter().map(|answer| answer.suspects.len()).max().unwrap_or_default();
    let id_of_digits = id_of_digits(answers, picked, count).map(PickedSuspect::Id);
    let picked = id_of_digits.as_ref().unwrap_or(picked);
    let is_picked = |suspect: &Suspect| match picked {
        PickedSuspect::Rank(rank) => suspect.rank == *rank,
        PickedSuspect::Id(id) => id.begins(&suspect.id),
    };
    answers.iter_mut().for_each(|answer| answer.suspects.retain(is_picked));
    let ids: BTreeSet<&str> = answers
        .iter()
        .flat_map(|answer| &answer.suspects)
        .map(|suspect| suspect.id.text())
        .collect();
    match picked {
        _ if count == 0 => {}
        PickedSuspect::Rank(rank) if ids.is_empty() => {
            return Err(QueryError::NoRank { rank: *rank, count });
        }
        PickedSuspect::Rank(_) => {}
        PickedSuspect::Id(id) => check_ids(id, "handles or allocations", &ids, true)?,
    }
    answers.iter_mut().try_for_each(|answer| answer.show(|_| true))
}

/// Returns a number as an id, if it is too large for a rank and begins the id of a suspect.
fn id_of_digits(
    answers: &[WhyAnswer<'_>],
    picked: &PickedSuspect,
    count: usize,
) -> Option<SuspectId> {
    let PickedSuspect::Rank(rank) = picked else { return None };
    let id = SuspectId::new(&rank.to_string()).ok().filter(|_| *rank > count)?;
    let mut suspects = answers.iter().flat_map(|answer| &answer.suspects);
    suspects.any(|suspect| id.begins(&suspect.id)).then_some(id)
}

impl<'a> WhyAnswer<'a> {
    fn new(
        mut file: FileAnswer<'a>,
        table: Option<&Arc<AcquisitionTable>>,
        criteria: &WhyCriteria,
        names: &dyn FrameNames,
    ) -> Result<Self, QueryError> {
        let (mut suspects, young_groups, mut not_counted) =
            suspects_of_handles(&file, criteria, names)?;
        let has_events = has_handle_events(file.file.trace)?;
        let open = (!has_events)
            .then(|| HandleCounts::new(&file.file, &file.selection, &criteria.handles))
            .transpose()?;
        let mut allocation_count = 0;
        let origin = table.and_then(|table| AllocationSource::new(&file.file, table));
        if let Some((origin, chosen)) = origin.zip(criteria.allocations())
            && let (is_plain, kept) = (criteria.handles.is_plain(), KeptSites::Leaking)
            && let Some(allocations) =
                AcquisitionGroups::from_allocations(origin, &chosen, is_plain, kept)?
        {
            let causes = SiteCauses::load(origin.trace, origin.table)?;
            let (of_allocations, rest) = suspects_of_allocations(&allocations, &causes, criteria)?;
            suspects.extend(of_allocations);
            not_counted.extend(rest);
            allocation_count = allocations.selected_count;
            let caveats = &mut file.about.caveats;
            if !caveats.iter().any(|caveat| caveat.kind == CaveatKind::MethodsUnnamed) {
                let AllocationSource { trace, table, frames, processes, .. } = origin;
                let stacks = || Ok(table.stacks_of_processes());
                caveats.extend(unnamed_methods::caveat(trace, frames, processes, stacks)?);
            }
            if allocation_count > 0 {
                file.about.no_match = None;
            } else if file.totals.handles_created + file.totals.handles_duplicated == 0
                && file.about.no_match.is_none()
            {
                let tables = FilteredTables::load(origin)?;
                file.about.no_match =
                    ResourceSelection::new(&tables, &chosen)?.no_match(&tables, &chosen)?;
            }
        }
        let least = criteria.min_leaked.unwrap_or_default();
        let requests = RequestStarts::load(file.file.trace)?;
        let (ignored, mut suspects) = ignored_and_others(suspects, &file, &criteria.ignoring.list)?;
        // Ignored suspects rank last.
        suspects.extend(ignored);
        for (rank, suspect) in (1..).zip(&mut suspects) {
            suspect.rank = rank;
            suspect.count_requests(&requests);
        }
        suspects.retain(|suspect| suspect.counts.unreleased() >= least);
        let ignored = suspects.iter().filter_map(|suspect| suspect.ignored.clone()).collect();
        if !criteria.names_suspect() {
            suspects.retain(|suspect| criteria.ignoring.shows(suspect.ignored.as_ref()));
        }
        let caveats = file.about.caveats.len();
        let FileContext { trace, processes, .. } = &file.file;
        let zombies =
            ZombieSummary::load(trace, processes, &criteria.owners, criteria.handles.is_plain())?;
        let mut answer = Self {
            file,
            suspects,
            ignored,
            allocations: allocation_count,
            young_groups,
            not_counted,
            has_events,
            open,
            zombies,
            caveats,
        };
        // A suspect that was asked for by itself is not known yet; only that one will be shown.
        let is_shown = |index| criteria.shown.is_none_or(|count| index < count);
        answer.show(|index| criteria.picked.is_none() && is_shown(index))?;
        Ok(answer)
    }

    /// Shows the stacks of the selected suspects only; `is_shown` gets their index from 0.
    ///
    /// # Errors
    /// If an archive is damaged or the query is cancelled.
    pub fn show(&mut self, is_shown: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        let Self { file, suspects, zombies, caveats, .. } = self;
        let shown = suspects.iter().enumerate().filter(|(index, _)| is_shown(*index));
        let stacks = shown.flat_map(|(_, suspect)| {
            let closing =
                suspect.diagnoses.iter().flat_map(|diagnosis| diagnosis.stacks.iter().copied());
            let callers = suspect
                .function_of_stacks
                .iter()
                .flat_map(|it| &it.callers)
                .map(|caller| caller.stack);
            suspect.create_stack.into_iter().chain(closing).chain(callers)
        });
        let holding = zombies.holders.iter().filter_map(|holder| holder.create_stack);
        let stacks = stacks.chain(holding).collect();
        file.about.caveats.truncate(*caveats);
        file.show_named_stacks(stacks)?;
        Ok(())
    }
}

/// Splits suspects into those that an entry ignores and the others, both in order.
fn ignored_and_others(
    mut suspects: Vec<Suspect>,
    file: &FileAnswer<'_>,
    list: &IgnoreList,
) -> Result<(Vec<Suspect>, Vec<Suspect>), QueryError> {
    let leaks = suspects.iter().map(|suspect| IgnoreCandidate {
        program: suspect.program(),
        type_name: &suspect.type_name,
        function: suspect.function.as_deref(),
        stacks: suspect.equal_stacks.clone(),
    });
    let ignored = ignored_by(list, leaks, file.file.frames.as_ref())?;
    suspects.iter_mut().zip(ignored).for_each(|(suspect, by)| suspect.ignored = by);
    Ok(suspects.into_iter().partition(|suspect| suspect.ignored.is_some()))
}

/// Returns the suspects among handles, the number of groups that leak but are no suspects, and what those groups leak.
fn suspects_of_handles(
    file: &FileAnswer<'_>,
    criteria: &WhyCriteria,
    frame_names: &dyn FrameNames,
) -> Result<(Vec<Suspect>, usize, Vec<NotCounted>), QueryError> {
    let (groups, is_plain) = (file.groups.as_ref(), criteria.handles.is_plain());
    let owners = &criteria.owners;
    let Some(handles) =
        AcquisitionGroups::from_handles(&file.file, groups, owners, is_plain, false)
    else {
        return Ok((Vec::new(), 0, Vec::new()));
    };
    let trace = file.file.trace;
    // A trace shows no distances shorter than one step of its clock.
    let clock_step_ns = trace.info()?.clock_step_ns();
    let race_window_ns = handles
        .window
        .map(|_| criteria.race_window_ns.unwrap_or(RACE_WINDOW_NS))
        .filter(|window| clock_step_ns.is_none_or(|step| step <= *window));
    let leaking =
        handles.unreleased().filter_map(|handle| handles.table.object(handle)).map(ObjectIdx::row);
    let leaking = Arc::new(RowSet::new(file.file.objects.height(), leaking));
    let columns = HandleEvents::load(&file.file, &leaking)?;
    let mut targets = Targets::load(trace, &leaking, &file.file.types)?;
    targets.name_functions(trace, frame_names)?;
    let names = NameTable::load(trace, &leaking)?;
    let ends = OwnerEnds::load(trace, &file.file.processes)?;
    let (suspects, others) = suspects(&handles, criteria, |group, members| {
        let ended = match group.groups.first()?.type_name {
            FILE_MAPPING_NAME => "unmapped",
            _ => "closed",
        };
        let causes = Causes {
            group: members,
            file: &file.file,
            columns: &columns,
            targets: &targets,
            ends: &ends,
            is_plain,
            ended,
            race_window_ns,
        };
        let diagnoses = proved(&Causes::ALL, &causes);
        let mut objects: Vec<ObjectIdx> =
            members.leaked.iter().map(|handle| columns.object(*handle)).collect();
        objects.dedup();
        let mut names = names.names(objects.into_iter());
        if handles.window.is_none() {
            let values =
                members.leaked.iter().filter_map(|handle| columns.value(columns.opening(*handle)));
            names.handles = values.take(MAX_HANDLES).collect();
        }
        let stacks: HashSet<_> = members
            .rows
            .iter()
            .filter_map(|handle| columns.stack(columns.opening(*handle)))
            .collect();
        let (create_stacks, ended) = (Some(stacks.len()), ended.to_owned());
        Some(GroupFindings { diagnoses, names, create_stacks, grown: None, ended })
    })?;
    let of_suspects: u64 = suspects.iter().map(|suspect| suspect.counts.leaked).sum();
    let rest = file.totals.leaked_handles.saturating_sub(of_suspects);
    let not_counted = NotCounted::for_handles(&others, rest);
    Ok((suspects, others.len(), not_counted))
}

/// Returns the suspects among allocations, and the leaks that belong to none.
fn suspects_of_allocations(
    allocations: &AcquisitionGroups<'_>,
    causes: &SiteCauses<'_>,
    criteria: &WhyCriteria,
) -> Result<(Vec<Suspect>, Vec<NotCounted>), QueryError> {
    let (mut suspects, others) =
        suspects(allocations, criteria, |group, members| causes.findings(&group.groups, members))?;
    let backed = remove_backed(&mut suspects);
    let not_counted = NotCounted::for_allocations(&others, &backed);
    Ok((suspects, not_counted))
}

/// Returns the suspects, highest score first, and the groups that leak but are no suspects. `findings` says why a group
/// leaks, or returns `None` if it cannot tell.
fn suspects(
    acquired: &AcquisitionGroups<'_>,
    criteria: &WhyCriteria,
    findings: impl Fn(&ProgramGroup<'_>, &LeakingGroup) -> Option<GroupFindings> + Sync,
) -> Result<(Vec<Suspect>, Vec<NoSuspect>), QueryError> {
    let groups = ProgramGroup::all(acquired, criteria.scope);
    let cancel = acquired.cancel;
    let (others, mut suspects): (Vec<NoSuspect>, Vec<Suspect>) = groups
        .into_par_iter()
        .filter(|_| !cancel.is_cancelled())
        .partition_map(|group| Suspect::new(acquired, &group, &findings).into());
    cancel.check()?;
    suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok((suspects, others))
}
