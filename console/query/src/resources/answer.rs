//! The allocations of traces, as `.dump Resource` shows them.

use std::borrow::Cow;
use std::sync::Arc;

use handlescope_model::tables::{Allocator, End, ResourceKind};
use handlescope_model::{AcquisitionIdx, ProcessIdx, ResourceMissIdx, StackIdx};
use rayon::prelude::*;

use super::groups::{GroupingRequest, ResourceGroup, ResourceGroups};
use crate::acquired::allocations_of_suspect;
use crate::acquisition_table::{AcquisitionTable, NeededColumns, kind_name};
use crate::allocations::{AllocationSource, FilteredTables, PART, ResourceSelection, unreleased};
use crate::answer::{About, Domain, TraceAnswer};
use crate::context::Source;
use crate::criteria::{AcquisitionCriteria, GroupColumn, GroupKey, KeyKind};
use crate::error::QueryError;
use crate::frame_names::{FrameNames, Frames};
use crate::frame_view::ModuleBases;
use crate::growth::TimeWindow;
use crate::info::check_clock;
use crate::stacks::StackSet;
use crate::suspect_rows::{SuspectRows, check};
use crate::tables::{ProcessInfo, ProcessList};
use crate::trimmed_stacks::TrimmedStacks;
use crate::unnamed_methods;
use handlescope_session::cancel::Cancel;
use handlescope_session::trace::{Caveat, KindCounts, ResourceFacts};

/// The allocations of one trace.
pub struct ResourcesAnswer<'a> {
    pub about: About<'a>,
    /// The shown groups: those of `-GroupBy`, the leaks if only they were requested, or the totals. `None` if the
    /// allocations are compared.
    pub groups: Option<ResourceGroups>,
    /// If both totals and leaks were requested, those that are not in `groups`.
    pub beside: Option<ResourceGroups>,
    /// The time range of the trace, if it has a clock.
    pub window: Option<TimeWindow>,
    /// Whether nothing that would be shown passed.
    is_without_match: bool,
    pub frames: Frames<'a>,
    suspect: Option<SuspectRows>,
    table: Arc<AcquisitionTable>,
    processes: ProcessList,
}

/// Answers `.dump Resource`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged, a time is requested but a trace has no clock, the suspect id matches none or several, or
/// `cancel` asks to stop.
pub fn resources<'a>(
    sources: &[Source<'a>],
    criteria: &AcquisitionCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<ResourcesAnswer<'a>>, QueryError> {
    let answer = |source| ResourcesAnswer::new(source, criteria, names, cancel);
    let mut answers = sources.iter().map(answer).collect::<Result<Vec<_>, QueryError>>()?;
    if let Some(id) = &criteria.suspect {
        check(id, "allocations", answers.iter().filter_map(|answer| answer.suspect.as_ref()))?;
    }
    // A match in one trace is enough.
    if !answers.iter().all(|answer| answer.is_without_match) {
        answers.iter_mut().for_each(|answer| answer.about.no_match = None);
    }
    Ok(answers)
}

impl<'a> ResourcesAnswer<'a> {
    pub fn new(
        source: &Source<'a>,
        criteria: &AcquisitionCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<Self, QueryError> {
        cancel.check()?;
        let trace = source.trace;
        check_clock(trace, source.path, criteria)?;
        let info = trace.info()?;
        let processes = ProcessList::load(trace)?;
        let table = AcquisitionTable::load(trace, NeededColumns::for_criteria(criteria))?;
        let frames = if criteria.needs_frames_of_allocations() {
            Frames::load(trace, names, source.frames, source.system, cancel)?
        } else {
            Frames::none(trace, names, source.frames, cancel)?
        };
        let origin = AllocationSource {
            trace,
            table: &table,
            processes: &processes,
            frames: &frames,
            suspect: None,
            cancel,
        };
        let suspect = criteria.suspect.as_ref();
        let suspect = suspect
            .map(|id| allocations_of_suspect(origin, id, SuspectRows::default()))
            .transpose()?;
        let origin = AllocationSource { suspect: suspect.as_ref(), ..origin };
        let tables = FilteredTables::load(origin)?;
        let selection = ResourceSelection::new(&tables, criteria)?;
        let (rows, misses) = (selection.allocations(&tables), selection.misses(&tables));
        let request = GroupingRequest { tables: &tables, criteria: &criteria.groups, info: &info };
        let window = info.has_clock().then(|| request.window());
        let is_of_leaks = criteria.is_of_leaks();
        let has_both = criteria.with_totals_and_leaks && criteria.groups.by.is_none();
        let leaked =
            if is_of_leaks || has_both { unreleased(&table, &rows, criteria) } else { Vec::new() };
        let of_leaked = |by: &[GroupColumn]| request.groups(by, &leaked, &[]);
        let of_all = |by: &[GroupColumn]| request.groups(by, &rows, &misses);
        let (by, is_counted) = (criteria.columns_of_allocations(), !criteria.is_compared);
        let (groups, beside) = if is_of_leaks {
            (is_counted.then(|| of_leaked(by)), has_both.then(|| of_all(&GroupColumn::TOTALS)))
        } else {
            (is_counted.then(|| of_all(by)), has_both.then(|| of_leaked(&GroupColumn::LEAKS)))
        };
        let mut caveats = Caveat::for_losses(trace, "allocations, frees and leaks")?;
        let is_without_match = if is_of_leaks {
            leaked.is_empty()
        } else {
            rows.is_empty() && !misses.iter().any(|row| tables.misses.is_orphan_free(*row))
        };
        let no_match = is_without_match.then(|| selection.no_match(&tables, criteria));
        let no_match = no_match.transpose()?.flatten();
        let no_match = no_match.map(|no_match| no_match.with_recorded_time(trace)).transpose()?;
        let facts = facts(&tables, criteria, &rows, &misses);
        caveats.extend(Caveat::for_resources(trace, &facts)?);
        caveats.extend(Caveat::for_missing_symbols(&selection.needs_symbols));
        let stacks = || Ok(table.stacks_of_processes());
        caveats.extend(unnamed_methods::caveat(trace, &frames, &processes, stacks)?);
        let bases = ModuleBases::load(trace)?;
        Ok(Self {
            about: About { caveats, no_match, bases, ..About::new(source, cancel)? },
            groups: groups.transpose()?,
            beside: beside.transpose()?,
            window,
            is_without_match,
            suspect,
            table,
            processes,
            frames,
        })
    }

    /// Returns the shown groups, one by one.
    pub fn shown_groups(&self) -> impl Iterator<Item = &ResourceGroup> {
        self.groups.iter().flat_map(|groups| &groups.rows)
    }

    /// Returns the representative frame of a stack.
    pub fn function(&self, stack: StackIdx) -> Option<String> {
        Some(self.frames.named().representative(stack)?.to_string())
    }

    /// Returns the first allocator of a group, if its allocators have anything in common.
    pub fn allocator_of(&self, group: &ResourceGroup) -> Option<&Allocator> {
        self.table.allocators.get(group.allocator?)
    }

    /// Returns the kind that the allocations of a group share.
    pub fn kind(&self, group: &ResourceGroup) -> Option<&'static str> {
        Some(kind_name(self.allocator_of(group)?.kind))
    }

    /// Returns the name of their allocator.
    pub fn allocator(&self, group: &ResourceGroup) -> Option<&str> {
        Some(self.allocator_of(group)?.name.as_str())
    }

    /// Returns the process of the allocations. Only the id is set if the process is unknown; `None` if not even that is
    /// known.
    pub fn process(&self, group: &ResourceGroup) -> Option<ProcessInfo> {
        self.owner(self.allocator_of(group)?)
    }

    /// Returns the process of an allocator. Only the id is set if the process is unknown; `None` if not even that is
    /// known.
    pub fn owner(&self, allocator: &Allocator) -> Option<ProcessInfo> {
        let process = allocator.process.map(|row| self.processes.get(row).clone());
        process.or_else(|| Some(self.processes.owner(None, Some(allocator.pid?))))
    }

    /// Returns where the allocations are read from. For a comparison, it has all that groups of them need.
    pub fn origin(&self) -> AllocationSource<'_> {
        AllocationSource {
            trace: self.about.trace,
            table: &self.table,
            processes: &self.processes,
            frames: &self.frames,
            suspect: None,
            cancel: self.about.cancel,
        }
    }

    /// Returns the value that the allocations of a group share in a column.
    pub fn key(&self, group: &ResourceGroup, column: GroupColumn) -> GroupKey<Cow<'_, str>> {
        let key = match column.kind() {
            KeyKind::Text => self.text(group, column).map(GroupKey::Text),
            KeyKind::Stack => group.stack(column).map(GroupKey::Stack),
            KeyKind::Number => group.number(column).map(|number| GroupKey::Number(number.into())),
            KeyKind::Bytes => group.bytes(column).map(GroupKey::Number),
        };
        key.unwrap_or(GroupKey::None)
    }

    fn text(&self, group: &ResourceGroup, column: GroupColumn) -> Option<Cow<'_, str>> {
        Some(match column {
            GroupColumn::Kind => self.kind(group)?.into(),
            GroupColumn::Allocator => self.allocator(group)?.into(),
            GroupColumn::Process => self.process(group)?.shown_label(true).into(),
            GroupColumn::Caller => {
                self.processes.get(ProcessIdx(group.number(column)?)).shown_label(true).into()
            }
            GroupColumn::End => End::from_code(group.number(column)?)?.name().into(),
            _ => return None,
        })
    }

    /// Returns all groups of the answer.
    fn all_groups(&self) -> impl Iterator<Item = &ResourceGroups> {
        [&self.groups, &self.beside].into_iter().flatten()
    }
}

impl<'a> TraceAnswer<'a> for ResourcesAnswer<'a> {
    const DOMAIN: Domain = Domain::Allocations;

    fn about(&self) -> &About<'a> {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About<'a> {
        &mut self.about
    }

    fn frames(&self) -> Option<&Frames<'a>> {
        Some(&self.frames)
    }

    /// Returns the trimmed stacks of the only groups with stacks: totals have none, and no leaks are listed beside
    /// `-GroupBy`.
    fn trims(&self) -> Option<&TrimmedStacks> {
        self.all_groups().find_map(|groups| groups.stacks.as_deref())
    }

    /// Returns the stacks chosen for display, or else those that groups of the answer share.
    fn stacks(&self) -> Vec<StackIdx> {
        if let Some(shown_stacks) = &self.about.shown_stacks {
            return shown_stacks.iter().collect();
        }
        let mut stacks = StackSet::new(self.frames.stacks.len());
        for ResourceGroups { by, rows, .. } in self.all_groups() {
            for column in by.iter().filter(|column| column.kind() == KeyKind::Stack) {
                rows.iter().for_each(|group| stacks.add(group.stack(*column)));
            }
        }
        stacks.iter().collect()
    }
}

/// Collects the facts that caveats are based on.
fn facts(
    tables: &FilteredTables<'_>,
    criteria: &AcquisitionCriteria,
    rows: &[AcquisitionIdx],
    misses: &[ResourceMissIdx],
) -> ResourceFacts {
    let requested = ResourceKind::ALL
        .into_iter()
        .filter(|kind| criteria.kinds().is_none_or(|filter| filter.matches(kind.name())));
    let mut facts = ResourceFacts::new(requested.collect());
    for allocator in tables.origin.table.allocators.rows() {
        let process = allocator.process.map(|row| tables.origin.processes.get(row));
        facts.add_allocator(allocator, process.map(|process| process.start_ns));
    }
    facts.add_allocations(&allocations(tables, rows));
    let orphan_frees = misses.iter().filter(|row| tables.misses.is_orphan_free(**row));
    facts.orphan_frees = orphan_frees.count() as u64;
    facts
}

/// Counts the allocations of each kind, and those without a stack.
fn allocations(tables: &FilteredTables<'_>, rows: &[AcquisitionIdx]) -> KindCounts {
    let table = tables.origin.table;
    let kinds: Vec<usize> =
        table.allocators.rows().iter().map(|allocator| allocator.kind as usize).collect();
    let counts = rows.par_chunks(PART).map(|rows| {
        let mut counts = KindCounts::default();
        for row in rows.iter().map(|row| row.row()) {
            let kind = table.allocator.get(row).and_then(|allocator| kinds.get(allocator.row()));
            if let Some((count, without_stack)) = kind.and_then(|kind| counts.get_mut(*kind)) {
                *count += 1;
                *without_stack += u64::from(table.opened_stack.get(row).is_none());
            }
        }
        counts
    });
    counts.reduce(KindCounts::default, |mut sums, counts| {
        for (total, counts) in sums.iter_mut().zip(counts) {
            *total = (total.0 + counts.0, total.1 + counts.1);
        }
        sums
    })
}
