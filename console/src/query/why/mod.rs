//! `.why`: the groups of handles that leak, ranked, each with how it grows and why.
//!
//! A suspect is a group of one process, one type and one create stack that loses handles and is not
//! balanced. [`score`] ranks them, [`causes`] says what the events prove; docs/why.md explains both.

mod allocations;
mod causes;
mod columns;
mod lost_handles;
mod lost_stacks;
mod same_pid;
mod score;
mod suspect;
mod targets;

use std::collections::HashSet;

use rayon::prelude::*;

pub use self::causes::{Cause, Diagnosis};
pub use self::suspect::{Bytes, Counts, PRIVATE_HEAP, Suspect};

use self::allocations::Allocations;
use self::causes::Causes;
use self::columns::EventColumns;
use self::lost_handles::LostHandles;
use self::suspect::SuspectFilters;
use self::targets::Targets;
use super::criteria::{GroupCriteria, ObjectCriteria, WhyCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::groups::{Groups, NodeIdx, Opened, TimedGroups};
use super::growth::Growth;
use super::info::trace_info;
use super::no_owner::note_owners;
use super::object_ref::{FileAnswer, object_ref};
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
            let search = Search {
                file: &file,
                groups,
                timed,
                criteria,
                columns: EventColumns::load(file.file.trace)?,
                targets: Targets::load(file.file.trace)?,
                lost: LostHandles::of(&file, groups, timed),
                clock_step_ns: trace_info(file.file.trace)?.clock_step_ns(),
            };
            let leaves: Vec<NodeIdx> = groups.tree.leaves().collect();
            let suspect = |leaf: &NodeIdx| match file.file.cancel.check() {
                Ok(()) => search.suspect(*leaf).map(Ok),
                Err(cancelled) => Some(Err(cancelled)),
            };
            let found = leaves.par_iter().filter_map(suspect);
            let mut found: Vec<(NodeIdx, Suspect)> = found.collect::<Result<_, Cancelled>>()?;
            found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
            let ranked = found.par_iter_mut().enumerate();
            ranked.filter(|(place, _)| has_filters(*place)).try_for_each(
                |(_, (leaf, suspect))| {
                    file.file.cancel.check()?;
                    suspect.filters = search.filters(*leaf, suspect);
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
        (1..).zip(&mut suspects).for_each(|(rank, suspect)| suspect.rank = rank);
        let stacks = || {
            let closing = |suspect: &Suspect| {
                suspect.diagnoses.iter().flat_map(|own| own.stacks.clone()).collect::<Vec<_>>()
            };
            let shown = suspects.iter().take(shown);
            shown.flat_map(move |own| own.create_stack.into_iter().chain(closing(own)))
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
    fn filters(&self, leaf: NodeIdx, suspect: &Suspect) -> SuspectFilters {
        let handles = self.timed.handles(&self.groups.tree, leaf);
        let process = self.file.file.processes.known_or_invalid(self.timed.owner(&handles));
        let sole_owner = self.timed.sole_owner(&handles);
        let (type_name, _) = self.groups.type_and_stack(leaf);
        let what = (suspect.pid, type_name);
        self.lost.filters(leaf, (sole_owner, process), what, suspect.function.as_deref())
    }

    /// A group as a suspect, if it is one, without filters.
    fn suspect(&self, leaf: NodeIdx) -> Option<(NodeIdx, Suspect)> {
        let figures = self.groups.tree.figures(leaf);
        if figures.lost() == 0 {
            return None;
        }
        let handles = self.timed.handles(&self.groups.tree, leaf);
        let owner = self.timed.owner(&handles);
        let processes = &self.file.file.processes;
        let process = processes.known_or_invalid(owner);
        let is_plain = self.criteria.is_plain();
        let is_meant = |filter| process.is_meant_by(filter, is_plain);
        if !self.criteria.process.as_ref().is_none_or(is_meant) {
            return None;
        }
        let lives = self.timed.program_times(&handles);
        let windows = self.groups.window_of(process).zip(self.groups.window);
        let growth = windows.map_or_else(
            || Growth::without_clock(&lives),
            |(window, trace)| Growth::within(&lives, window, trace),
        );
        let (type_name, create_stack) = self.groups.type_and_stack(leaf);
        let lost: Vec<Opened> = handles.iter().copied().filter(|own| self.is_lost(*own)).collect();
        let diagnoses = self.causes().of(&handles, &lost);
        let races = diagnoses.iter().find(|own| own.cause == Cause::Race);
        let score = score::of(&growth, &lives, races.map_or(0, |own| own.count))?;
        let function = self.groups.function(&self.file.file, create_stack);
        let pid = owner.map(|_| process.pid);
        let sole_owner = self.timed.sole_owner(&handles);
        let suspect = Suspect {
            rank: 0,
            process: process.shown_label(is_plain),
            pid,
            type_name: type_name.to_owned(),
            allocator: None,
            process_start_ns: sole_owner.and(process.start_ns),
            filters: SuspectFilters::default(),
            create_stack,
            counts: Counts::of(&figures),
            bytes: None,
            growth,
            ended: "closed".to_owned(),
            diagnoses,
            function,
            score,
        };
        Some((leaf, suspect))
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

    /// Whether nothing closed a handle, or only the end of its process.
    fn is_lost(&self, handle: Opened) -> bool {
        handle.closed().is_none() || self.timed.is_closed_at_exit(handle)
    }
}
