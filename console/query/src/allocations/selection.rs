//! Selects the allocations that pass: each criterion narrows a mask over them. Allocators, processes and stacks are
//! judged once each.

use std::collections::BTreeSet;

use handlescope_model::tables::{Allocator, ResourceEnd};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx};
use rayon::prelude::*;

use super::tables::{AllocationOrMiss, FilteredTables};
use crate::acquisition_table::AcquisitionTable;
use crate::criteria::{
    AllocatorTest, ResourceCriteria, ResourceEffect, ResourceTest, StackTest, kind_name,
};
use crate::criterion::{Criteria, Criterion, Survivors};
use crate::error::QueryError;
use crate::no_match::{Candidates, ListSubject, NoMatch};
use crate::selection::retain_rows;
use crate::stacks::{StackSet, judge_noting};
use crate::tables::SelectedProcesses;

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
        criteria: &ResourceCriteria,
    ) -> Result<Self, QueryError> {
        let is_set = |flags: &[bool], row: AllocationOrMiss| {
            let flag = tables.allocator(row).and_then(|allocator| flags.get(allocator.row()));
            flag.copied().unwrap_or_default()
        };
        // Allocators that pass all criteria so far.
        let mut chosen = vec![true; tables.allocators.rows().len()];
        let mut is_left = vec![true; tables.height()];
        let mut leaks = None;
        let retain = |is_left: &mut [bool], passes: &(dyn Fn(AllocationOrMiss) -> bool + Sync)| {
            retain_rows(is_left, tables.origin.cancel, |index| passes(tables.row(index)))
        };
        retain(&mut is_left, &|row| is_set(&chosen, row))?;
        let mut survivors = Survivors::new(count(tables, &is_left, leaks));
        let mut needs_symbols = Vec::new();
        for given in criteria.given() {
            match given.effect {
                ResourceEffect::Allocators(test) => {
                    let passes = allocators(test, criteria, tables).into_iter();
                    chosen =
                        chosen.into_iter().zip(passes).map(|(one, other)| one && other).collect();
                    retain(&mut is_left, &|row| is_set(&chosen, row))?;
                }
                ResourceEffect::Rows(test) => {
                    retain(&mut is_left, &*row_test(test, criteria, tables))?;
                }
                ResourceEffect::Leaks => leaks = Some(criteria),
                ResourceEffect::Stacks(test) => {
                    let filter = match test {
                        StackTest::Create => &criteria.create_stack,
                        StackTest::Free => &criteria.free_stack,
                    };
                    let Some(filter) = filter else { continue };
                    // All stacks of the allocators, so that the verdicts serve the next query, too.
                    let mut stacks = StackSet::new(tables.origin.frames.stacks.len());
                    let rows = (0..tables.height()).map(|index| tables.row(index));
                    rows.filter(|row| is_set(&chosen, *row))
                        .for_each(|row| stacks.add(tables.stack(test, row)));
                    let frames = tables.origin.frames;
                    let verdicts = judge_noting(filter, &stacks, frames, &mut needs_symbols)?;
                    retain(&mut is_left, &|row| {
                        tables.has_stack(test, row) && verdicts.passes(tables.stack(test, row))
                    })?;
                }
            }
            survivors.note(given.criterion, count(tables, &is_left, leaks));
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
        let misses = self.is_left.iter().skip(tables.resources.allocations().len());
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
        criteria: &ResourceCriteria,
    ) -> Result<Option<NoMatch>, QueryError> {
        let names = |passed: &ResourceCriteria, criterion, value: &_| {
            let rows = Self::new(tables, passed)?.allocations(tables);
            let allocators: BTreeSet<AllocatorIdx> =
                rows.iter().filter_map(|row| tables.resources.allocator.get(row.row())).collect();
            let names = allocators.iter().filter_map(|row| {
                let allocator = tables.allocators.get(*row)?;
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
fn count(tables: &FilteredTables<'_>, is_left: &[bool], leaks: Option<&ResourceCriteria>) -> usize {
    let (table, first) = (tables.resources, tables.resources.allocations().start);
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

/// Returns which allocators pass a test, by row.
fn allocators(
    test: AllocatorTest,
    criteria: &ResourceCriteria,
    tables: &FilteredTables<'_>,
) -> Vec<bool> {
    let owners = match test {
        AllocatorTest::OwnerCommandLine => criteria.owners.by_name_and_command_line(),
        AllocatorTest::NewOwner => criteria.owners.clone(),
        _ => criteria.owners.by_name(),
    };
    let owners = SelectedProcesses::new(tables.origin.processes, owners);
    let passes = |allocator: &Allocator| match test {
        AllocatorTest::Kind => {
            let name = kind_name(allocator.kind);
            criteria.kind.as_ref().is_none_or(|filter| filter.matches(name))
        }
        // A name is tested as a whole, even with line ends in it.
        AllocatorTest::Name => criteria
            .allocator
            .as_ref()
            .is_none_or(|filter| filter.accepts(filter.line(&allocator.name))),
        AllocatorTest::Owner | AllocatorTest::OwnerCommandLine | AllocatorTest::NewOwner => {
            owners.has_owner(allocator.process, allocator.pid)
        }
    };
    tables.allocators.rows().iter().map(passes).collect()
}

/// Returns a test for allocations and frees without one.
fn row_test<'a>(
    test: ResourceTest,
    criteria: &ResourceCriteria,
    tables: &'a FilteredTables<'_>,
) -> Box<dyn Fn(AllocationOrMiss) -> bool + Sync + 'a> {
    match (test, tables.origin.suspect, criteria.time, criteria.size) {
        // A free without an allocation belongs to no suspect.
        (ResourceTest::Suspect, Some(rows), ..) => {
            Box::new(|row| row.allocation().is_some_and(|row| rows.has(row.row())))
        }
        (ResourceTest::Time, _, Some(range), _) => {
            let range = range.nanoseconds();
            Box::new(move |row| tables.time_ns(row).is_some_and(|ns| range.contains(&ns)))
        }
        (ResourceTest::Size, .., Some(range)) => {
            let whole_sizes = tables.resources.whole_sizes();
            Box::new(move |row| {
                let sizes = whole_sizes.as_ref().zip(row.allocation());
                let size = sizes.and_then(|(sizes, allocation)| sizes.get(allocation.row()));
                let size = size.copied().or_else(|| tables.size(row));
                size.and_then(|size| u64::try_from(size).ok()).is_some_and(|it| range.contains(it))
            })
        }
        _ => Box::new(|_| true),
    }
}

/// Keeps the allocations never freed, as `-Leak` and `-LeakAtExit` select them; without either, keeps both kinds.
pub fn unreleased(
    table: &AcquisitionTable,
    rows: &[AcquisitionIdx],
    criteria: &ResourceCriteria,
) -> Vec<AcquisitionIdx> {
    rows.par_iter().copied().filter(|row| is_unreleased(table, *row, criteria)).collect()
}

fn is_unreleased(
    table: &AcquisitionTable,
    resource: AcquisitionIdx,
    criteria: &ResourceCriteria,
) -> bool {
    let is_any = !criteria.is_of_leaks();
    table.is_unreleased(resource)
        && match table.end_of_allocation(resource) {
            Some(ResourceEnd::Open) => is_any || criteria.leak,
            _ => is_any || criteria.leak_at_exit,
        }
}
