//! `.why`: the groups of handles that leak, ranked, each with how it grows and why.
//!
//! A suspect is a group of one program, one type and one create stack that loses handles and is not
//! balanced. [`score`] ranks them, [`causes`] says what the events prove; docs/why.md explains both.

mod allocations;
mod causes;
mod columns;
mod lost_handles;
mod lost_stacks;
mod owners;
mod program_groups;
mod same_pid;
mod score;
mod suspect;
mod targets;

use std::collections::HashSet;

use handlescope_model::ProcessIdx;
use rayon::prelude::*;

pub use self::causes::{Cause, Diagnosis};
pub use self::suspect::{PRIVATE_HEAP, Suspect, SuspectProcess};

use self::allocations::Allocations;
use self::causes::Causes;
use self::columns::EventColumns;
use self::lost_handles::LostHandles;
use self::program_groups::ProgramGroup;
use self::suspect::{Counts, SuspectFilters};
use self::targets::Targets;
use super::criteria::{GroupCriteria, ObjectCriteria, WhyCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::groups::{Groups, Opened, TimedGroups};
use super::growth::{Growth, ProcessLives};
use super::info::trace_info;
use super::no_owner::note_owners;
use super::object_ref::{FileAnswer, object_ref};
use super::programs::Programs;
use super::requests::Requests;
use super::source::Source;
use crate::cancel::{Cancel, Cancelled};
use crate::trace::Caveat;

/// How far apart the opens of a race are at most, unless it is said: 1 ms.
const RACE_WINDOW_NS: i64 = 1_000_000;

/// What leaks in one trace.
pub struct WhyAnswer<'a> {
    /// The trace, and all its groups.
    pub file: FileAnswer<'a>,
    /// Groups that leak: those of handles, the worst first, and then those of allocations.
    pub suspects: Vec<Suspect>,
    /// How many allocations the trace has.
    pub allocations: usize,
}

/// Finds what leaks, one answer for each trace.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub fn why<'a>(
    sources: &'a [Source<'a>],
    criteria: &WhyCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<WhyAnswer<'a>>, QueryError> {
    let trims = criteria.handles.groups.trims.clone();
    let groups = GroupCriteria { trims, ..GroupCriteria::of_create_stacks() };
    let asked = ObjectCriteria { groups, ..criteria.handles.clone() };
    let mut files = object_ref(sources, &asked, names, cancel)?.files;
    if let Some(filter) = &criteria.process {
        note_owners(&mut files, filter, criteria.is_plain());
    }
    let files = files.into_iter().enumerate();
    files.map(|(number, file)| WhyAnswer::new(number, file, criteria)).collect()
}

impl<'a> WhyAnswer<'a> {
    fn new(
        number: usize,
        mut file: FileAnswer<'a>,
        criteria: &WhyCriteria,
    ) -> Result<Self, QueryError> {
        let mut suspects: Vec<Suspect> = Vec::new();
        let shown = criteria.shown.unwrap_or(usize::MAX);
        let filtered = criteria.filtered.as_ref().map(|files| files.get(number));
        let filtered: Option<HashSet<usize>> =
            filtered.map(|rows| rows.into_iter().flatten().copied().collect());
        let has_filters =
            |place| filtered.as_ref().map_or(place < shown, |places| places.contains(&place));
        if let Some(groups) = &file.groups
            && let Some(timed) = &groups.timed
        {
            let programs = Programs::of(&file.file.processes);
            let program_groups = ProgramGroup::all(&programs, &file, (groups, timed), criteria);
            let search = Search {
                file: &file,
                groups,
                timed,
                criteria,
                columns: EventColumns::load(file.file.trace)?,
                targets: Targets::load(file.file.trace)?,
                lost: LostHandles::of(&file, (groups, timed), &programs, &program_groups),
                clock_step_ns: trace_info(file.file.trace)?.clock_step_ns(),
            };
            let meant = program_groups.par_iter().filter(|group| group.is_meant);
            let suspect = |group| match file.file.cancel.check() {
                Ok(()) => search.suspect(group).map(|suspect| Ok((group, suspect))),
                Err(cancelled) => Some(Err(cancelled)),
            };
            let found = meant.filter_map(suspect);
            let mut found: Vec<(&ProgramGroup, Suspect)> =
                found.collect::<Result<_, Cancelled>>()?;
            found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
            let ranked = found.par_iter_mut().enumerate();
            ranked.filter(|(place, _)| has_filters(*place)).try_for_each(
                |(_, (group, suspect))| {
                    file.file.cancel.check()?;
                    suspect.filters = search.filters(group, suspect);
                    Ok::<_, Cancelled>(())
                },
            )?;
            suspects = found.into_iter().map(|(_, suspect)| suspect).collect();
        }
        let allocations = Allocations::load(&file.file, criteria)?;
        let mut allocation_count = 0;
        if let Some(allocations) = &allocations {
            let before = suspects.len();
            let found = allocations.suspects(&|place| has_filters(before + place))?;
            suspects.extend(found.suspects);
            allocation_count = found.chosen;
            if found.chosen > 0 {
                // Something does match.
                file.no_match = None;
            } else if file.totals.handles_created + file.totals.handles_duplicated == 0 {
                let of_handles = file.no_match.take();
                file.no_match = match of_handles {
                    None => allocations.no_match()?,
                    of_handles => of_handles,
                };
            }
        }
        let requests = Requests::load(file.file.trace)?;
        for (rank, suspect) in (1..).zip(&mut suspects) {
            suspect.rank = rank;
            suspect.count_requests(&requests);
        }
        let stacks = || {
            let closing = |suspect: &Suspect| {
                suspect.diagnoses.iter().flat_map(|own| own.stacks.clone()).collect::<Vec<_>>()
            };
            let is_shown = |(place, _): &(usize, _)| *place < shown || has_filters(*place);
            let shown = suspects.iter().enumerate().filter(is_shown);
            shown.flat_map(move |(_, own)| own.create_stack.into_iter().chain(closing(own)))
        };
        file.show_stacks(stacks().collect())?;
        file.caveats.extend(Caveat::of_unknown_exits(file.file.trace)?);
        Ok(Self { file, suspects, allocations: allocation_count })
    }

    /// Handles and views that nothing but the end of a process closed, of all groups.
    pub fn lost(&self) -> u64 {
        let totals = self.file.totals;
        totals.leaked_handles.saturating_add(totals.closed_at_exit)
    }
}

/// The handles of one process.
type OwnedHandles = (Option<ProcessIdx>, Vec<Opened>);

/// What the search for suspects in a trace reads.
struct Search<'a> {
    file: &'a FileAnswer<'a>,
    groups: &'a Groups,
    timed: &'a TimedGroups,
    criteria: &'a WhyCriteria,
    columns: EventColumns,
    targets: Targets,
    lost: LostHandles,
    /// How long the clock stands still at most: no shorter distance is known.
    clock_step_ns: Option<i64>,
}

impl Search<'_> {
    /// What keeps the handles that a suspect lost: for those that are shown only, as the stacks of each are compared with
    /// those of all others.
    fn filters(&self, group: &ProgramGroup, suspect: &Suspect) -> SuspectFilters {
        let (type_name, _) = self.groups.type_and_stack(group.first);
        self.lost.filters(self.file, group, type_name, suspect.function.as_deref())
    }

    /// A group as a suspect, if it is one, without filters.
    fn suspect(&self, group: &ProgramGroup) -> Option<Suspect> {
        let processes = &self.file.file.processes;
        let is_plain = self.criteria.is_plain();
        let handles = self.timed.handles_of(&self.groups.tree, &group.leaves);
        let by_owner = self.timed.by_owner(&handles);
        let lives: Vec<ProcessLives> = by_owner.iter().map(|owned| self.lives(owned)).collect();
        let growth = match self.groups.window {
            Some(trace) => Growth::of_processes(&lives, trace),
            None => Growth::without_clock(&self.timed.program_times(&handles)),
        };
        let (type_name, create_stack) = self.groups.type_and_stack(group.first);
        let lost: Vec<Opened> =
            handles.iter().copied().filter(|handle| self.timed.is_lost(*handle)).collect();
        let diagnoses = self.causes().of(&handles, &lost);
        let races = diagnoses.iter().find(|own| own.cause == Cause::Race);
        let score = score::of(&growth, &lives, races.map_or(0, |own| own.count))?;
        let function = self.groups.function(&self.file.file, create_stack);
        let of_process = |(owner, handles): &OwnedHandles| {
            let process = processes.known_or_invalid(*owner);
            SuspectProcess {
                process: process.shown_label(is_plain),
                row: *owner,
                pid: owner.map(|_| process.pid),
                start_ns: process.start_ns,
                counts: Counts::of(self.timed, handles),
            }
        };
        let shares: Vec<SuspectProcess> = by_owner.iter().map(of_process).collect();
        Some(Suspect {
            rank: 0,
            process: group.owners.name(&self.file.file, &shares, is_plain)?,
            pid: group.owners.pid,
            type_name: type_name.to_owned(),
            allocator: None,
            process_start_ns: group.owners.sole().and(shares.first()?.start_ns),
            processes: SuspectProcess::ranked(shares),
            filters: SuspectFilters::default(),
            create_stack,
            counts: Counts::of(self.timed, &handles),
            bytes: None,
            growth,
            ended: "closed".to_owned(),
            diagnoses,
            function,
            score,
        })
    }

    /// What one process has of a group.
    fn lives(&self, (owner, handles): &OwnedHandles) -> ProcessLives {
        let process = self.file.file.processes.known_or_invalid(*owner);
        let window = self.groups.window_of(process).unwrap_or(self.groups.extent);
        ProcessLives { lives: self.timed.program_times(handles), window }
    }

    fn causes(&self) -> Causes<'_> {
        Causes {
            file: &self.file.file,
            columns: &self.columns,
            targets: &self.targets,
            race_window_ns: self
                .groups
                .window
                .map(|_| self.criteria.race_window_ns.unwrap_or(RACE_WINDOW_NS))
                .filter(|window| self.clock_step_ns.is_none_or(|step| step <= *window)),
        }
    }
}
