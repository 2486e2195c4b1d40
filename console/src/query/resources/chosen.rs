//! Which allocations pass: allocators, processes and stacks are judged once each.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use handlescope_model::rules::{is_freed, is_never_freed};
use handlescope_model::tables::{Allocator, ResourceEnd};
use handlescope_model::{AllocatorIdx, Numbers, ResourceIdx, ResourceMissIdx, StackIdx, Trace};
use rayon::prelude::*;

use super::tables::{AllocatorList, MissTable, ResourceTable, kind_name};
use crate::cancel::Cancel;
use crate::filter::Filter;
use crate::query::ResourceCriteria;
use crate::query::context::FileContext;
use crate::query::criterion::{Criteria, Criterion, Survivors};
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::no_match::{Candidates, NoMatch, Subject};
use crate::query::stacks::{StackSet, StackVerdicts};
use crate::query::suspect_rows::SuspectRows;
use crate::query::tables::{ChosenProcesses, ProcessList};

/// Rows that one thread takes at once.
pub(super) const PART: usize = 1 << 18;

/// Where allocations are read from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(in crate::query) trace: &'a Trace,
    pub(in crate::query) processes: &'a ProcessList,
    pub(in crate::query) frames: &'a Frames<'a>,
    /// The allocations of the suspect that is asked for.
    pub(in crate::query) suspect: Option<&'a SuspectRows>,
    pub(in crate::query) cancel: &'a Cancel,
}

impl<'a> Origin<'a> {
    /// A trace whose stacks are loaded.
    pub(in crate::query) fn of(file: &'a FileContext<'a>) -> Option<Self> {
        Some(Self {
            trace: file.trace,
            processes: &file.processes,
            frames: file.frames.as_ref()?,
            suspect: file.suspect_allocations.as_ref(),
            cancel: file.cancel,
        })
    }
}

/// What is filtered.
pub(super) struct Tables<'a> {
    pub(super) allocators: &'a AllocatorList,
    pub(super) resources: &'a ResourceTable,
    pub(super) misses: &'a MissTable,
    pub(super) processes: &'a ProcessList,
    pub(super) frames: &'a Frames<'a>,
    /// The allocations of the suspect that is asked for.
    pub(super) suspect: Option<&'a SuspectRows>,
    pub(super) cancel: &'a Cancel,
}

/// How many criteria of allocators there are: of kind, name and process.
const OF_ALLOCATORS: u8 = 3;

/// Numbers of rows.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    rows: usize,
    /// Those that are whole allocations, or the first part of one.
    whole: usize,
}

impl Counted {
    fn add(&mut self, counted: Self) {
        self.rows += counted.rows;
        self.whole += counted.whole;
    }

    fn remove(&mut self, counted: Self) {
        self.rows = self.rows.saturating_sub(counted.rows);
        self.whole = self.whole.saturating_sub(counted.whole);
    }

    /// How many allocations that are: further parts are none, but it may be that only these pass.
    fn survivors(self) -> usize {
        self.whole.max(self.rows.min(1))
    }
}

/// Verdicts on allocations.
pub(super) struct Chosen<'a> {
    tables: &'a Tables<'a>,
    suspect: Option<&'a SuspectRows>,
    criteria: &'a ResourceCriteria,
    /// How many of the criteria of allocators each passes, one after the other, by row.
    passed: Vec<u8>,
    time: Option<RangeInclusive<i64>>,
    /// Of allocations by row, where any ended in parts.
    whole_sizes: Option<Vec<i64>>,
    create: Option<StackVerdicts>,
    free: Option<StackVerdicts>,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(
        tables: &'a Tables<'a>,
        criteria: &'a ResourceCriteria,
    ) -> Result<Self, QueryError> {
        let processes = ChosenProcesses::new(tables.processes, criteria.process.as_ref());
        let passed = |allocator: &Allocator| {
            let Allocator { kind, name, process, pid, .. } = allocator;
            let passes = [
                criteria.kind.as_ref().is_none_or(|filter| filter.matches(kind_name(*kind))),
                criteria.allocator.as_ref().is_none_or(|filter| is_name(filter, name)),
                processes.has(*process, pid.unwrap_or_default()),
            ];
            (0..).zip(passes).find(|(_, passes)| !passes).map_or(OF_ALLOCATORS, |(place, _)| place)
        };
        let mut chosen = Self {
            tables,
            suspect: tables.suspect.filter(|_| criteria.suspect.is_some()),
            criteria,
            passed: tables.allocators.rows().iter().map(passed).collect(),
            time: criteria.time.map(|range| range.nanoseconds()),
            whole_sizes: criteria.size.and_then(|_| tables.resources.whole_sizes()),
            create: None,
            free: None,
        };
        let (resources, misses) = (tables.resources, tables.misses);
        if let Some(filter) = &criteria.create_stack {
            let stacks = chosen.stacks([(&resources.allocator, &resources.stack)]);
            chosen.create = Some(StackVerdicts::of(filter, &stacks, tables.frames)?);
        }
        if let Some(filter) = &criteria.free_stack {
            let frees =
                [(&resources.allocator, &resources.end_stack), (&misses.allocator, &misses.stack)];
            let stacks = chosen.stacks(frees);
            chosen.free = Some(StackVerdicts::of(filter, &stacks, tables.frames)?);
        }
        Ok(chosen)
    }

    /// The modules that lack symbols for the filters on stacks.
    pub(super) fn needs_symbols(&self) -> Vec<String> {
        let verdicts = self.create.iter().chain(&self.free);
        let mut modules: Vec<String> = Vec::new();
        for module in verdicts.flat_map(|verdicts| &verdicts.needs_symbols) {
            if !modules.contains(module) {
                modules.push(module.clone());
            }
        }
        modules
    }

    /// The stacks of what was allocated where it is meant.
    fn stacks<const N: usize>(
        &self,
        columns: [(&Numbers<AllocatorIdx>, &Numbers<StackIdx>); N],
    ) -> StackSet {
        let mut stacks = StackSet::new(self.tables.frames.stacks.len());
        for (allocator, stack) in columns {
            let rows = (0..allocator.len()).filter(|row| self.means(allocator.get(*row)));
            rows.for_each(|row| stacks.add(stack.get(row)));
        }
        stacks
    }

    fn means(&self, allocator: Option<AllocatorIdx>) -> bool {
        self.passed(allocator) == Some(OF_ALLOCATORS)
    }

    fn passed(&self, allocator: Option<AllocatorIdx>) -> Option<u8> {
        self.passed.get(allocator?.row()).copied()
    }

    /// The allocations that pass, ascending, of which all but those that are asked for by `-Leak` and `-LeakAtExit` are
    /// there, too, and how many each criterion leaves.
    pub(super) fn resources(&self) -> Result<(Vec<ResourceIdx>, Survivors), QueryError> {
        let given: Vec<Criterion> =
            self.criteria.given().iter().map(|given| given.criterion).collect();
        let height = self.tables.resources.len();
        let parts = (0..height.div_ceil(PART)).into_par_iter().map(|part| {
            self.tables.cancel.check()?;
            Ok(self.part(part * PART..((part + 1) * PART).min(height), &given))
        });
        let (mut resources, mut all) = (Vec::new(), Counted::default());
        let mut removed = vec![Counted::default(); given.len()];
        for (rows, of_all, of_part) in parts.collect::<Result<Vec<_>, QueryError>>()? {
            resources.extend(rows);
            all.add(of_all);
            removed.iter_mut().zip(of_part).for_each(|(removed, of_part)| removed.add(of_part));
        }
        let mut left = Survivors::of(all.survivors());
        for (criterion, removed) in given.into_iter().zip(removed) {
            all.remove(removed);
            left.note(criterion, all.survivors());
        }
        Ok((resources, left))
    }

    /// Those of some rows, the number of all, and of what each criterion removes: of most rows only one has to count.
    fn part(
        &self,
        rows: Range<usize>,
        given: &[Criterion],
    ) -> (Vec<ResourceIdx>, Counted, Vec<Counted>) {
        let table = self.tables.resources;
        let (mut all, mut removed) = (Counted::default(), vec![Counted::default(); given.len()]);
        let passes = |row: &ResourceIdx| {
            let Some(passed) = self.passed(table.allocator.get(row.row())) else { return false };
            let whole = usize::from(!table.is_further_part(*row));
            let counted = Counted { rows: 1, whole };
            all.add(counted);
            let mut is_asked = true;
            for (criterion, removed) in given.iter().zip(&mut removed) {
                if !self.passes(*criterion, passed, row.row()) {
                    if is_asked {
                        removed.add(counted);
                    }
                    return false;
                }
                if is_asked && criterion.is_of_leaks() && !is_lost(table, *row, self.criteria) {
                    removed.add(counted);
                    is_asked = false;
                }
            }
            true
        };
        let rows = rows.map(ResourceIdx::of).filter(passes).collect();
        (rows, all, removed)
    }

    /// Whether a row passes, whose allocator passes so many of its criteria.
    fn passes(&self, criterion: Criterion, passed: u8, row: usize) -> bool {
        let table = self.tables.resources;
        let size = || {
            let whole = self.whole_sizes.as_ref().and_then(|sizes| sizes.get(row).copied());
            whole.or_else(|| table.size.get(row))
        };
        match criterion {
            Criterion::Kind | Criterion::Type => passed >= 1,
            Criterion::Allocator => passed >= 2,
            Criterion::Process => passed >= 3,
            Criterion::Suspect => self.suspect.is_none_or(|rows| rows.has(row)),
            Criterion::MinMaxTime => self.is_time(table.time_ns.get(row)),
            Criterion::MinMaxSize => self.is_size(size),
            Criterion::CreateStack => {
                self.create.as_ref().is_none_or(|stacks| stacks.passes(table.stack.get(row)))
            }
            Criterion::FreeStack | Criterion::DestroyStack => {
                self.free.as_ref().is_none_or(|stacks| {
                    // What was not freed has no stack of a free, whatever its process did at the end.
                    is_end(table, row, is_freed) && stacks.passes(table.end_stack.get(row))
                })
            }
            _ => true,
        }
    }

    /// The frees without allocation and the ignored events that pass, ascending. They have no stack of an
    /// allocation, and are of no suspect.
    pub(super) fn misses(&self) -> Vec<ResourceMissIdx> {
        let table = self.tables.misses;
        let passes = |miss: &ResourceMissIdx| {
            let row = miss.row();
            self.suspect.is_none()
                && self.means(table.allocator.get(row))
                && self.is_time(table.time_ns.get(row))
                && self.is_size(|| table.size.get(row))
                && self.create.as_ref().is_none_or(|stacks| stacks.passes(None))
                && self.free.as_ref().is_none_or(|stacks| stacks.passes(table.stack.get(row)))
        };
        (0..table.len()).map(ResourceMissIdx::of).filter(passes).collect()
    }

    fn is_time(&self, time_ns: Option<i64>) -> bool {
        let contains = |time: &RangeInclusive<i64>| time_ns.is_some_and(|ns| time.contains(&ns));
        self.time.as_ref().is_none_or(contains)
    }

    fn is_size(&self, size: impl FnOnce() -> Option<i64>) -> bool {
        let Some(range) = self.criteria.size else { return true };
        let size = size().and_then(|size| u64::try_from(size).ok());
        size.is_some_and(|size| range.contains(size))
    }
}

/// Whether a name passes as a whole, whatever line ends it has.
fn is_name(filter: &Filter, name: &str) -> bool {
    filter.accepts(filter.line(name))
}

fn is_end(table: &ResourceTable, row: usize, is: fn(ResourceEnd) -> bool) -> bool {
    table.end.get(row).and_then(ResourceEnd::from_code).is_some_and(is)
}

/// Of some allocations those that were never freed, as `-Leak` and `-LeakAtExit` choose them; without either,
/// both.
pub(super) fn lost(
    table: &ResourceTable,
    rows: &[ResourceIdx],
    criteria: &ResourceCriteria,
) -> Vec<ResourceIdx> {
    rows.par_iter().copied().filter(|row| is_lost(table, *row, criteria)).collect()
}

fn is_lost(table: &ResourceTable, resource: ResourceIdx, criteria: &ResourceCriteria) -> bool {
    let both = !criteria.is_of_leaks();
    is_end(table, resource.row(), is_never_freed)
        && match is_end(table, resource.row(), |end| end == ResourceEnd::Open) {
            true => both || criteria.leak,
            false => both || criteria.leak_at_exit,
        }
}

/// Why no allocation passes; `None` when the trace has none, or some pass.
pub(super) fn no_match(
    tables: &Tables<'_>,
    criteria: &ResourceCriteria,
    left: &Survivors,
) -> Result<Option<NoMatch>, QueryError> {
    let names = |passed: &ResourceCriteria, (criterion, value): (Criterion, &str)| {
        let (rows, _) = Chosen::new(tables, passed)?.resources()?;
        let allocators = rows.iter().filter_map(|row| tables.resources.allocator.get(row.row()));
        let allocators: BTreeSet<AllocatorIdx> = allocators.collect();
        let allocators = allocators.iter().filter_map(|row| tables.allocators.get(*row));
        let name = |own: &Allocator| match criterion {
            Criterion::Kind | Criterion::Type => Some(kind_name(own.kind).to_owned()),
            Criterion::Allocator => Some(own.name.clone()),
            Criterion::Process => {
                let pid = own.pid.unwrap_or_default();
                let process = tables.processes.known_or_pid(own.process, pid);
                Some(process.shown_name(false).to_owned())
            }
            _ => None,
        };
        Ok(Candidates::of(value, allocators.filter_map(name).collect()))
    };
    let passes = |other: &_| Ok(!Chosen::new(tables, other)?.resources()?.1.are_none());
    NoMatch::of(Subject::Allocation, criteria, left, names, passes)
}

/// The allocations that pass, ascending, of tables that were loaded already, and why there are none.
///
/// # Errors
/// When the archive is damaged, or the query is cancelled.
pub(in crate::query) fn choose(
    origin: Origin<'_>,
    (allocators, resources): (&AllocatorList, &ResourceTable),
    criteria: &ResourceCriteria,
) -> Result<(Vec<ResourceIdx>, Option<NoMatch>), QueryError> {
    let Origin { trace, processes, frames, suspect, cancel } = origin;
    let misses = MissTable::load(trace)?;
    let tables =
        Tables { allocators, resources, misses: &misses, processes, frames, suspect, cancel };
    let (rows, left) = Chosen::new(&tables, criteria)?.resources()?;
    Ok((rows, no_match(&tables, criteria, &left)?))
}
