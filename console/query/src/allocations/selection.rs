//! Selects the allocations that pass: each criterion narrows a mask over them. Allocators, processes and stacks are
//! judged once each.

use std::collections::BTreeSet;

use handlescope_model::tables::{Allocator, ResourceEnd};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, Numbers, ResourceMissIdx};
use rayon::prelude::*;

use super::tables::{AllocationOrMiss, FilteredTables};
use crate::acquisition_table::{AcquisitionTable, kind_name};
use crate::criteria::AcquisitionCriteria;
use crate::criterion::{Criteria, Criterion, Survivors};
use crate::error::QueryError;
use crate::no_match::{Candidates, ListSubject, NoMatch};
use crate::selection::retain_rows;
use crate::stacks::{StackSet, judge_noting};
use crate::tables::SelectedProcesses;
use handlescope_session::filter::Filter;

/// Number of rows that one thread processes at a time.
pub const PART: usize = 1 << 18;

/// The allocations that pass, before `-Leak` and `-LeakAtExit` are applied.
pub struct ResourceSelection {
    /// Whether each allocation passes, followed by frees without allocation and ignored events.
    is_left: Vec<bool>,
    /// Number of allocations that each criterion leaves.
    survivors: Survivors,
    /// Modules without the symbols that stack filters need, each once.
    pub needs_symbols: Vec<String>,
}

impl ResourceSelection {
    pub fn new(
        tables: &FilteredTables<'_>,
        criteria: &AcquisitionCriteria,
    ) -> Result<Self, QueryError> {
        let is_set = |flags: &[bool], row: AllocationOrMiss| {
            let flag = tables.allocator(row).and_then(|allocator| flags.get(allocator.row()));
            flag.copied().unwrap_or_default()
        };
        // Allocators that pass all criteria so far.
        let mut chosen = vec![true; tables.origin.table.allocators.rows().len()];
        let mut is_left = vec![true; tables.height()];
        let mut leaks = None;
        let retain = |is_left: &mut [bool], passes: &(dyn Fn(AllocationOrMiss) -> bool + Sync)| {
            retain_rows(is_left, tables.origin.cancel, |index| passes(tables.row(index)))
        };
        retain(&mut is_left, &|row| is_set(&chosen, row))?;
        let mut survivors = Survivors::new(count(tables, &is_left, leaks));
        let mut needs_symbols = Vec::new();
        let given = criteria.given().into_iter().map(|given| given.criterion);
        let mut steps: Vec<_> =
            given.filter(|criterion| criterion.rank_for_allocations().is_some()).collect();
        steps.sort_by_key(|criterion| criterion.rank_for_allocations());
        for criterion in steps {
            match criterion {
                _ if criterion.is_of_leaks() => leaks = Some(criteria),
                Criterion::Suspect => {
                    // A free without an allocation belongs to no suspect.
                    let rows = tables.origin.suspect;
                    retain(&mut is_left, &|row| {
                        rows.is_none_or(|rows| {
                            row.allocation().is_some_and(|it| rows.has(it.row()))
                        })
                    })?;
                }
                Criterion::MinMaxTime => {
                    let time = criteria.time.map(|range| range.nanoseconds());
                    retain(&mut is_left, &|row| {
                        time.as_ref().is_none_or(|time| {
                            tables.time_ns(row).is_some_and(|ns| time.contains(&ns))
                        })
                    })?;
                }
                Criterion::MinMaxSize => retain(&mut is_left, &size_test(criteria, tables))?,
                Criterion::CreateStack | Criterion::DestroyStack | Criterion::FreeStack => {
                    let is_create = criterion == Criterion::CreateStack;
                    let filter = match criterion {
                        Criterion::CreateStack => &criteria.create_stack,
                        Criterion::DestroyStack => &criteria.destroy_stack,
                        _ => &criteria.free_stack,
                    };
                    let Some(filter) = filter else { continue };
                    let (table, no_stacks) = (tables.origin.table, Numbers::default());
                    let (rows, misses) = if is_create {
                        (&table.opened_stack, &no_stacks)
                    } else {
                        (&table.ended_stack, &tables.misses.stack)
                    };
                    let stack = |row: AllocationOrMiss| row.number(rows, misses);
                    // An allocation that was not freed has no stack of a free, however its process ended.
                    let has_stack = |row: AllocationOrMiss| {
                        is_create || row.allocation().is_none_or(|row| table.is_freed(row))
                    };
                    // All stacks of the allocators, so that the verdicts serve the next query, too.
                    let mut stacks = StackSet::new(tables.origin.frames.stacks.len());
                    let rows = (0..tables.height()).map(|index| tables.row(index));
                    rows.filter(|row| is_set(&chosen, *row)).for_each(|row| stacks.add(stack(row)));
                    let frames = tables.origin.frames;
                    let verdicts = judge_noting(filter, &stacks, frames, &mut needs_symbols)?;
                    retain(&mut is_left, &|row| has_stack(row) && verdicts.passes(stack(row)))?;
                }
                _ => {
                    let passes = allocators(criterion, criteria, tables).into_iter();
                    chosen =
                        chosen.into_iter().zip(passes).map(|(one, other)| one && other).collect();
                    retain(&mut is_left, &|row| is_set(&chosen, row))?;
                }
            }
            survivors.note(criterion, count(tables, &is_left, leaks));
        }
        Ok(Self { is_left, survivors, needs_symbols })
    }

    /// Whether an allocation passes, by its index among the allocations.
    pub fn has(&self, index: usize) -> bool {
        self.is_left.get(index).copied().unwrap_or_default()
    }

    /// Returns the allocations that pass, ascending.
    pub fn allocations(&self, tables: &FilteredTables<'_>) -> Vec<AcquisitionIdx> {
        self.is_left
            .par_iter()
            .enumerate()
            .filter(|(_, is_left)| **is_left)
            .filter_map(|(index, _)| tables.row(index).allocation())
            .collect()
    }

    /// Returns the frees without allocation and the ignored events that pass, ascending.
    pub fn misses(&self, tables: &FilteredTables<'_>) -> Vec<ResourceMissIdx> {
        let misses = self.is_left.iter().skip(tables.origin.table.allocations().len());
        (0..)
            .map(ResourceMissIdx)
            .zip(misses)
            .filter(|(_, is_left)| **is_left)
            .map(|(row, _)| row)
            .collect()
    }

    /// Explains why no allocation passes; `None` if the trace has none or some pass.
    pub fn no_match(
        &self,
        tables: &FilteredTables<'_>,
        criteria: &AcquisitionCriteria,
    ) -> Result<Option<NoMatch>, QueryError> {
        let table = tables.origin.table;
        let names = |passed: &AcquisitionCriteria, criterion, value: &_| {
            let rows = Self::new(tables, passed)?.allocations(tables);
            let allocators: BTreeSet<AllocatorIdx> =
                rows.iter().filter_map(|row| table.allocator.get(row.row())).collect();
            let names = allocators.iter().filter_map(|row| {
                let allocator = table.allocators.get(*row)?;
                match criterion {
                    Criterion::Kind | Criterion::Type => Some(kind_name(allocator.kind).to_owned()),
                    Criterion::Allocator => Some(allocator.name.clone()),
                    Criterion::Process => {
                        let process =
                            tables.origin.processes.owner(allocator.process, allocator.pid);
                        Some(process.shown_name(false).to_owned())
                    }
                    _ => None,
                }
            });
            Ok(Candidates::new(value, names.collect()))
        };
        NoMatch::new(ListSubject::Allocation, criteria, &self.survivors, names, |criteria| {
            Ok(!Self::new(tables, criteria)?.survivors.are_none())
        })
    }
}

/// Counts the remaining allocations, and with leak criteria only those that leak. Further parts do not count, unless
/// nothing else remains.
fn count(
    tables: &FilteredTables<'_>,
    is_left: &[bool],
    leaks: Option<&AcquisitionCriteria>,
) -> usize {
    let table = tables.origin.table;
    let first = table.allocations().start;
    let is_left = is_left.get(..table.allocations().len()).unwrap_or_default();
    let parts = is_left.par_chunks(PART).enumerate().map(|(part, is_left)| {
        let rows = (first + part * PART..).map(AcquisitionIdx::from_row).zip(is_left);
        rows.filter(|(row, is_left)| {
            **is_left && leaks.is_none_or(|criteria| is_unreleased(table, *row, criteria))
        })
        .fold((0, 0), |(rows, whole), (row, _)| {
            (rows + 1, whole + usize::from(!table.is_further_part(row)))
        })
    });
    let (rows, whole) = parts.reduce(|| (0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    whole.max(rows.min(1))
}

/// Returns which allocators pass a criterion on their kinds, names or owners, by row.
fn allocators(
    criterion: Criterion,
    criteria: &AcquisitionCriteria,
    tables: &FilteredTables<'_>,
) -> Vec<bool> {
    let owners = SelectedProcesses::new(tables.origin.processes, criteria.creator.up_to(criterion));
    let is_of_kind = |filter: &Option<Filter>, allocator: &Allocator| {
        filter.as_ref().is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
    };
    let passes = |allocator: &Allocator| match criterion {
        Criterion::Type => is_of_kind(&criteria.object_type, allocator),
        Criterion::Kind => is_of_kind(&criteria.kind, allocator),
        // A name is tested as a whole, even with line ends in it.
        Criterion::Allocator => criteria
            .allocator
            .as_ref()
            .is_none_or(|filter| filter.accepts(filter.line(&allocator.name))),
        _ => owners.has_owner(allocator.process, allocator.pid),
    };
    tables.origin.table.allocators.rows().iter().map(passes).collect()
}

/// Returns a test of the whole size of an allocation, or of what a free without one freed.
fn size_test(
    criteria: &AcquisitionCriteria,
    tables: &FilteredTables<'_>,
) -> impl Fn(AllocationOrMiss) -> bool + Sync {
    let (sizes, whole_sizes) = (criteria.size, tables.origin.table.whole_sizes());
    move |row| {
        let whole_sizes = whole_sizes.as_ref().zip(row.allocation());
        let size = whole_sizes.and_then(|(sizes, allocation)| sizes.get(allocation.row()));
        let size = size.copied().or_else(|| tables.size(row));
        let size = size.and_then(|size| u64::try_from(size).ok());
        sizes.is_none_or(|sizes| size.is_some_and(|size| sizes.contains(size)))
    }
}

/// Keeps the allocations never freed, as `-Leak` and `-LeakAtExit` select them; without either, keeps both kinds.
pub fn unreleased(
    table: &AcquisitionTable,
    rows: &[AcquisitionIdx],
    criteria: &AcquisitionCriteria,
) -> Vec<AcquisitionIdx> {
    rows.par_iter().copied().filter(|row| is_unreleased(table, *row, criteria)).collect()
}

fn is_unreleased(
    table: &AcquisitionTable,
    resource: AcquisitionIdx,
    criteria: &AcquisitionCriteria,
) -> bool {
    let is_any = !criteria.is_of_leaks();
    table.is_unreleased(resource)
        && match table.end_of_allocation(resource) {
            Some(ResourceEnd::Open) => is_any || criteria.leak,
            _ => is_any || criteria.leak_at_exit,
        }
}
