//! The groups of a trace that are compared with those of another one, of handles or of allocations.

use std::borrow::Cow;

use handlescope_model::rules::{has_bytes, has_lasting_names};
use handlescope_model::tables::ResourceKind;
use handlescope_model::{ProcessIdx, ResourceIdx, StackIdx, Trace};
use rayon::prelude::*;

use super::tally::Share;
use super::{groups, parts};
use crate::cancel::{Cancel, Cancelled};
use crate::query::amounts::Amount;
use crate::query::criteria::{DiffCriteria, ResourceCriteria};
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::groups::{Groups, NodeIdx, TimedGroups};
use crate::query::growth::{ProcessLives, Window};
use crate::query::object_ref::FileAnswer;
use crate::query::resources::{
    ChosenRows, Needed, ResourceTable, ResourcesAnswer, SiteLives, Sites, kind_name,
};
use crate::query::tables::{ChosenProcesses, ProcessInfo, ProcessList};

/// What one process acquired of one type, or kind and allocator, on one stack.
pub(super) struct Group<'t> {
    /// Its place in its trace.
    place: usize,
    pub(super) owner: Option<ProcessIdx>,
    pub(super) process: Cow<'t, ProcessInfo>,
    /// The name of its process as it is shown; `None` where not even its id is known.
    pub(super) shown: Option<String>,
    /// The type of the objects, or the kind of the allocations.
    pub(super) type_name: &'t str,
    /// The allocator, where it has the same name in every trace.
    pub(super) allocator: Option<&'t str>,
    /// Whether its bytes count, and not how many there are.
    pub(super) has_bytes: bool,
    pub(super) create_stack: Option<StackIdx>,
    /// Whether any of it leaks.
    pub(super) leaks: bool,
}

/// What there is of a group.
pub(super) struct Acquisitions {
    /// What leaks of it, and was acquired when the trace has all events.
    pub(super) leaked: Amount,
    pub(super) share: Share,
}

/// A trace that is compared.
pub(super) trait Acquired {
    /// Its groups.
    fn groups(&self) -> impl Iterator<Item = Group<'_>>;
    /// What there is of one of them.
    fn acquisitions(&self, group: &Group<'_>) -> Acquisitions;
    /// The text of the frame of a stack that says most.
    fn function(&self, stack: StackIdx) -> Option<String>;
    fn frames(&self) -> Option<&Frames<'_>>;
    fn processes(&self) -> &ProcessList;
    /// The time of the trace, if it has a clock.
    fn window(&self) -> Option<Window>;
    /// The times of all events, which are only an order in a trace without a clock.
    fn extent(&self) -> Window;
    fn cancel(&self) -> &Cancel;

    /// The time in which a process could acquire and release something, if the trace has a clock.
    fn window_of(&self, process: &ProcessInfo) -> Option<Window> {
        Some(self.window()?.between(process.start_ns, process.end_ns))
    }
}

/// The handles and views of a trace.
pub(super) struct Handles<'f, 'a> {
    file: &'f FileAnswer<'a>,
    groups: &'f Groups,
    timed: &'f TimedGroups,
    criteria: &'f DiffCriteria,
}

impl<'f, 'a> Handles<'f, 'a> {
    /// Those of an answer with groups and times.
    pub(super) fn of(file: &'f FileAnswer<'a>, criteria: &'f DiffCriteria) -> Option<Self> {
        let (groups, timed) = parts(file)?;
        Some(Self { file, groups, timed, criteria })
    }
}

impl Acquired for Handles<'_, '_> {
    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        groups(self.file, (self.groups, self.timed), self.criteria).map(|group| Group {
            place: group.node.row(),
            owner: group.owner,
            shown: Some(group.process.shown_name(self.criteria.with_identities).to_owned()),
            process: Cow::Borrowed(group.process),
            type_name: group.type_name,
            allocator: None,
            has_bytes: false,
            create_stack: group.create_stack,
            leaks: self.groups.lost_in_time(group.node) > 0,
        })
    }

    fn acquisitions(&self, group: &Group<'_>) -> Acquisitions {
        let node = NodeIdx::of(group.place);
        let lives = self.timed.program_times(&self.timed.handles(&self.groups.tree, node));
        let window = self.window_of(&group.process).unwrap_or(self.groups.extent);
        Acquisitions {
            leaked: Amount { count: self.groups.lost_in_time(node), bytes: 0 },
            share: Share { process: ProcessLives { lives, window }, sizes: Vec::new() },
        }
    }

    fn function(&self, stack: StackIdx) -> Option<String> {
        self.groups.function(&self.file.file, Some(stack))
    }

    fn frames(&self) -> Option<&Frames<'_>> {
        self.file.file.frames.as_ref()
    }

    fn processes(&self) -> &ProcessList {
        &self.file.file.processes
    }

    fn window(&self) -> Option<Window> {
        self.groups.window
    }

    fn extent(&self) -> Window {
        self.groups.extent
    }

    fn cancel(&self) -> &Cancel {
        self.file.file.cancel
    }
}

/// The allocations of a trace.
pub(super) struct Allocations<'f, 'a> {
    answer: &'f ResourcesAnswer<'a>,
    table: ResourceTable,
    sites: Sites,
    /// By place of the sites, what leaks of each.
    leaked: Vec<Amount>,
    cancel: &'f Cancel,
}

impl<'f, 'a> Allocations<'f, 'a> {
    /// Those of an answer that are asked for.
    ///
    /// # Errors
    /// When the archive is damaged, or the query is cancelled.
    pub(super) fn load(
        trace: &Trace,
        answer: &'f ResourcesAnswer<'a>,
        criteria: &ResourceCriteria,
        cancel: &'f Cancel,
    ) -> Result<Self, QueryError> {
        let needed = Needed { end_time: true, ..Needed::default() };
        let table = ResourceTable::load(trace, needed)?;
        let processes = ChosenProcesses::new(answer.processes(), criteria.process.as_ref());
        let is_meant = answer.allocators().rows().iter().map(|allocator| {
            let is_kind = criteria.kind.as_ref();
            is_kind.is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
                && processes.has(allocator.process, allocator.pid.unwrap_or_default())
        });
        let is_meant: Vec<bool> = is_meant.collect();
        let chosen = ChosenRows { is_meant: &is_meant, rows: None };
        let sites = Sites::all(&table, answer.allocators(), &chosen, &answer.frames)?;
        let mut acquired = Self { answer, table, sites, leaked: Vec::new(), cancel };
        let leaked = |place: usize| {
            cancel.check()?;
            Ok(acquired.lives(place).map(|lives| lives.leaked()).unwrap_or_default())
        };
        let places = 0..acquired.sites.sites.len();
        let leaked: Result<Vec<Amount>, Cancelled> = places.into_par_iter().map(leaked).collect();
        acquired.leaked = leaked?;
        Ok(acquired)
    }

    /// The allocations of a site, of a ring those of the time of which it has all.
    fn lives(&self, place: usize) -> Option<SiteLives> {
        let rows = self.sites.rows(self.sites.sites.get(place)?);
        let from_ns = self.extent().start_ns;
        if from_ns <= 0 {
            return SiteLives::of(&self.table, rows);
        }
        let is_recorded =
            |row: &ResourceIdx| self.table.time_ns.get(row.row()).is_some_and(|ns| ns >= from_ns);
        let rows: Vec<ResourceIdx> = rows.iter().copied().filter(is_recorded).collect();
        SiteLives::of(&self.table, &rows)
    }
}

impl Acquired for Allocations<'_, '_> {
    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let sites = self.sites.sites.iter().zip(&self.leaked).enumerate();
        sites.filter_map(|(place, (site, leaked))| {
            let allocator = self.answer.allocators().get(site.allocator)?;
            let kind = ResourceKind::from_code(site.kind);
            let process = self.answer.owner(allocator);
            let name = Some(allocator.name.as_str());
            Some(Group {
                place,
                owner: allocator.process,
                shown: process.as_ref().map(|process| process.name.clone()),
                process: Cow::Owned(process.unwrap_or_default()),
                type_name: kind_name(site.kind),
                allocator: name.filter(|_| kind.is_none_or(has_lasting_names)),
                has_bytes: kind.is_some_and(has_bytes),
                create_stack: site.stack,
                leaks: leaked.count > 0,
            })
        })
    }

    fn acquisitions(&self, group: &Group<'_>) -> Acquisitions {
        let lives = self.lives(group.place).unwrap_or_default();
        let window = self.window_of(&group.process).unwrap_or(self.extent());
        let leaked = lives.leaked();
        let sizes = if group.has_bytes { lives.sizes } else { Vec::new() };
        let process = ProcessLives { lives: lives.lives, window };
        Acquisitions { leaked, share: Share { process, sizes } }
    }

    fn function(&self, stack: StackIdx) -> Option<String> {
        self.answer.function(stack)
    }

    fn frames(&self) -> Option<&Frames<'_>> {
        Some(&self.answer.frames)
    }

    fn processes(&self) -> &ProcessList {
        self.answer.processes()
    }

    fn window(&self) -> Option<Window> {
        self.answer.window
    }

    fn extent(&self) -> Window {
        self.answer.window.unwrap_or(Window { start_ns: 0, end_ns: 0 })
    }

    fn cancel(&self) -> &Cancel {
        self.cancel
    }
}
