//! `.why`: the groups of handles that leak, ranked, each with how it grows and why.
//!
//! A suspect is a group of one program, one type and one create stack that loses handles and is not
//! balanced. [`score`] ranks them, [`causes`] says what the events prove; docs/why.md explains both.

mod allocations;
mod by_id;
mod causes;
mod columns;
mod id;
mod owners;
mod program_groups;
mod score;
mod suspect;
mod targets;

use handlescope_model::ProcessIdx;
use rayon::prelude::*;

pub(super) use self::by_id::{allocations_of_suspect, events_of_suspect};
pub use self::causes::{Cause, Diagnosis};
pub use self::suspect::{PRIVATE_HEAP, Suspect, SuspectProcess};

use self::allocations::Allocations;
use self::causes::Causes;
use self::columns::EventColumns;
use self::program_groups::ProgramGroup;
use self::suspect::Counts;
use self::targets::Targets;
use super::criteria::{GroupCriteria, ObjectCriteria, WhyCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::groups::{Groups, Opened, TimedGroups};
use super::growth::{Growth, ProcessLives};
use super::info::trace_info;
use super::no_owner::note_owners;
use super::object_ref::{FileAnswer, unchecked_object_ref};
use super::requests::Requests;
use super::source::Source;
use super::suspect_rows::check;
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
    /// Caveats that do not depend on which suspects are shown.
    caveats: usize,
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
    let mut files = unchecked_object_ref(sources, &asked, names, cancel)?.files;
    if let Some(id) = &criteria.handles.suspect {
        for FileAnswer { file, .. } in &mut files {
            file.suspect_allocations = Some(allocations_of_suspect(file, id)?);
        }
        let rows = files.iter().flat_map(|FileAnswer { file, .. }| {
            file.suspect_events.iter().chain(&file.suspect_allocations)
        });
        check(id, "handles or allocations", rows)?;
    }
    if let Some(filter) = &criteria.process {
        note_owners(&mut files, filter, criteria.is_plain());
    }
    files.into_iter().map(|file| WhyAnswer::new(file, criteria)).collect()
}

impl<'a> WhyAnswer<'a> {
    fn new(mut file: FileAnswer<'a>, criteria: &WhyCriteria) -> Result<Self, QueryError> {
        let mut suspects: Vec<Suspect> = Vec::new();
        if let Some(groups) = &file.groups
            && let Some(timed) = &groups.timed
        {
            let search = Search {
                file: &file,
                groups,
                timed,
                criteria,
                columns: EventColumns::load(file.file.trace)?,
                targets: Targets::load(file.file.trace)?,
                clock_step_ns: trace_info(file.file.trace)?.clock_step_ns(),
            };
            let all = ProgramGroup::all(&file.file, (groups, timed), criteria);
            let suspect = |group| match file.file.cancel.check() {
                Ok(()) => search.suspect(group).map(Ok),
                Err(cancelled) => Some(Err(cancelled)),
            };
            suspects = all.par_iter().filter_map(suspect).collect::<Result<_, Cancelled>>()?;
            suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        let allocations = Allocations::load(&file.file, criteria)?;
        let mut allocation_count = 0;
        if let Some(allocations) = &allocations {
            let found = allocations.suspects()?;
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
        let caveats = file.caveats.len();
        let mut answer = Self { file, suspects, allocations: allocation_count, caveats };
        let shown = criteria.shown.unwrap_or(usize::MAX);
        answer.show(|place| place < shown)?;
        Ok(answer)
    }

    /// Shows the stacks of the suspects at some places, counted from 0, and no others.
    ///
    /// # Errors
    /// When an archive is damaged, or it is asked to stop.
    pub fn show(&mut self, is_shown: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        let Self { file, suspects, caveats, .. } = self;
        let shown = suspects.iter().enumerate().filter(|(place, _)| is_shown(*place));
        let stacks = shown.flat_map(|(_, own)| {
            let closing = own.diagnoses.iter().flat_map(|own| own.stacks.iter().copied());
            own.create_stack.into_iter().chain(closing)
        });
        file.caveats.truncate(*caveats);
        file.show_stacks(stacks.collect())?;
        file.caveats.extend(Caveat::of_unknown_exits(file.file.trace)?);
        Ok(())
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
    /// How long the clock stands still at most: no shorter distance is known.
    clock_step_ns: Option<i64>,
}

impl Search<'_> {
    /// A group as a suspect, if it is one.
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
            id: group.id(&self.file.file, self.groups),
            rank: 0,
            process: group.owners.name(&self.file.file, &shares, is_plain)?,
            pid: group.owners.pid,
            type_name: type_name.to_owned(),
            allocator: None,
            process_start_ns: group.owners.sole().and(shares.first()?.start_ns),
            processes: SuspectProcess::ranked(shares),
            filter: group.owners.filter.clone(),
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
