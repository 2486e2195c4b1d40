//! Which allocations pass: allocators, processes and stacks are judged once each.

use std::ops::RangeInclusive;

use handlescope_model::rules::{is_freed, is_never_freed};
use handlescope_model::tables::{Allocator, ResourceEnd};
use handlescope_model::{AllocatorIdx, Numbers, ResourceIdx, ResourceMissIdx, StackIdx};
use rayon::prelude::*;

use super::tables::{AllocatorList, MissTable, ResourceTable, kind_name};
use crate::cancel::Cancel;
use crate::filter::Filter;
use crate::query::ResourceCriteria;
use crate::query::context::FileContext;
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::stacks::{StackSet, StackVerdicts};
use crate::query::suspect_rows::SuspectRows;
use crate::query::tables::{ChosenProcesses, ProcessList};
use crate::values::CountRange;

/// Rows that one thread takes at once.
pub(super) const PART: usize = 1 << 18;

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

/// Verdicts on allocations, all but whether they leaked.
pub(super) struct Chosen<'a> {
    tables: &'a Tables<'a>,
    /// By row of the allocators.
    is_meant: Vec<bool>,
    suspect: Option<&'a SuspectRows>,
    time: Option<RangeInclusive<i64>>,
    size: Option<CountRange>,
    /// Of allocations by row, where any ended in parts.
    whole_sizes: Option<Vec<i64>>,
    create: Option<StackVerdicts>,
    free: Option<StackVerdicts>,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(
        tables: &'a Tables<'a>,
        criteria: &ResourceCriteria,
    ) -> Result<Self, QueryError> {
        let processes = ChosenProcesses::new(tables.processes, criteria.process.as_ref());
        let is_meant = |allocator: &Allocator| {
            let Allocator { kind, name, process, pid, .. } = allocator;
            criteria.kind.as_ref().is_none_or(|filter| filter.matches(kind_name(*kind)))
                && criteria.allocator.as_ref().is_none_or(|filter| is_name(filter, name))
                && processes.has(*process, pid.unwrap_or_default())
        };
        let is_meant: Vec<bool> = tables.allocators.rows().iter().map(is_meant).collect();
        let size = criteria.size;
        let mut chosen = Self {
            tables,
            is_meant,
            suspect: tables.suspect.filter(|_| criteria.suspect.is_some()),
            time: criteria.time.map(|range| range.nanoseconds()),
            size,
            whole_sizes: size.and_then(|_| tables.resources.whole_sizes()),
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
        let verdict = allocator.and_then(|row| self.is_meant.get(row.row()));
        verdict.copied().unwrap_or_default()
    }

    /// The allocations that pass, ascending.
    pub(super) fn resources(&self) -> Result<Vec<ResourceIdx>, QueryError> {
        let height = self.tables.resources.len();
        let parts = (0..height.div_ceil(PART)).into_par_iter().map(|part| {
            self.tables.cancel.check()?;
            let rows = part * PART..((part + 1) * PART).min(height);
            Ok(rows.map(ResourceIdx::of).filter(|row| self.passes(*row)).collect())
        });
        let parts: Vec<Vec<ResourceIdx>> = parts.collect::<Result<_, QueryError>>()?;
        Ok(parts.concat())
    }

    fn passes(&self, resource: ResourceIdx) -> bool {
        let (table, row) = (self.tables.resources, resource.row());
        let size = || {
            let whole = self.whole_sizes.as_ref().and_then(|sizes| sizes.get(row).copied());
            whole.or_else(|| table.size.get(row))
        };
        self.means(table.allocator.get(row))
            && self.suspect.is_none_or(|rows| rows.has(row))
            && self.is_time(table.time_ns.get(row))
            && self.is_size(size)
            && self.create.as_ref().is_none_or(|stacks| stacks.passes(table.stack.get(row)))
            && self.free.as_ref().is_none_or(|stacks| {
                // What was not freed has no stack of a free, whatever its process did at the end.
                is_end(table, row, is_freed) && stacks.passes(table.end_stack.get(row))
            })
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
        let Some(range) = self.size else { return true };
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
    let both = !criteria.is_of_leaks();
    let is_asked = |end: ResourceEnd| {
        is_never_freed(end)
            && match end {
                ResourceEnd::Open => both || criteria.leak,
                _ => both || criteria.leak_at_exit,
            }
    };
    let end = |row: ResourceIdx| table.end.get(row.row()).and_then(ResourceEnd::from_code);
    rows.par_iter().copied().filter(|row| end(*row).is_some_and(is_asked)).collect()
}

/// The allocations that pass, ascending: of tables that were loaded already.
///
/// # Errors
/// When the archive is damaged, or the query is cancelled.
pub(in crate::query) fn chosen_rows(
    file: &FileContext<'_>,
    frames: &Frames<'_>,
    (allocators, resources): (&AllocatorList, &ResourceTable),
    criteria: &ResourceCriteria,
) -> Result<Vec<ResourceIdx>, QueryError> {
    let misses = MissTable::load(file.trace)?;
    let (processes, cancel) = (&file.processes, file.cancel);
    let suspect = file.suspect_allocations.as_ref();
    let tables =
        Tables { allocators, resources, misses: &misses, processes, frames, suspect, cancel };
    Chosen::new(&tables, criteria)?.resources()
}
