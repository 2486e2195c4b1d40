//! Choice of the allocations that pass: allocators, processes and stacks are judged once each.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use handlescope_model::tables::{Allocator, ResourceEnd};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx, Trace};
use rayon::prelude::*;

use super::tables::{AllocatorList, MissTable, ResourceRow, Tables};
use crate::acquisition_table::AcquisitionTable;
use crate::context::FileContext;
use crate::criteria::{
    AllocatorTest, ProcessCriteria, ResourceCriteria, ResourceEffect, ResourceTest, StackTest,
    kind_name,
};
use crate::criterion::{Criteria, Criterion, Survivors};
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::no_match::{Candidates, NoMatch, Subject};
use crate::stacks::{StackSet, StackVerdicts, judge};
use crate::suspect_rows::SuspectRows;
use crate::tables::{ProcessList, SelectedProcesses};
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// Rows that one thread processes at a time.
pub const PART: usize = 1 << 18;

/// Source from which allocations are read.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub trace: &'a Trace,
    pub processes: &'a ProcessList,
    pub frames: &'a Frames<'a>,
    /// The allocations of the suspect that is asked for.
    pub suspect: Option<&'a SuspectRows>,
    pub cancel: &'a Cancel,
}

impl<'a> Origin<'a> {
    /// A trace whose stacks are loaded.
    pub fn of(file: &'a FileContext<'a>) -> Option<Self> {
        Some(Self {
            trace: file.trace,
            processes: &file.processes,
            frames: file.frames.as_ref()?,
            suspect: file.suspect_allocations.as_ref(),
            cancel: file.cancel,
        })
    }
}

/// Numbers of rows.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    rows: usize,
    /// Rows that are whole allocations, or the first part of one.
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

    /// Number of allocations: further parts do not count, unless only they pass.
    fn survivors(self) -> usize {
        self.whole.max(self.rows.min(1))
    }
}

/// Verdicts on allocations.
pub struct ResourceSelection<'a> {
    tables: &'a Tables<'a>,
    criteria: &'a ResourceCriteria,
    /// The criteria that are given.
    tests: Vec<(Criterion, Test<'a>)>,
    /// Number of the criteria on allocators that each allocator passes, one after the other, by row.
    passed_by_allocator: Vec<usize>,
    /// Number of criteria on allocators.
    allocator_tests: usize,
    /// Modules whose symbols the filters on stacks need and do not have, each once.
    pub needs_symbols: Vec<String>,
}

/// A test of an allocation, or of a free without one.
type RowTest<'a> = Box<dyn Fn(ResourceRow) -> bool + Send + Sync + 'a>;

/// Test that decides whether a row passes a criterion.
enum Test<'a> {
    /// Tests its allocator, which has to pass more than this number of criteria.
    Allocator(usize),
    ResourceRow(RowTest<'a>),
    /// Whether it leaks, of which all others are there, too.
    Leaks,
}

impl<'a> ResourceSelection<'a> {
    pub fn new(tables: &'a Tables<'a>, criteria: &'a ResourceCriteria) -> Result<Self, QueryError> {
        let given = criteria.given();
        let allocator_tests = given.iter().filter_map(|given| match given.effect {
            ResourceEffect::Allocators(test) => Some(allocator_test(test, criteria, tables)),
            _ => None,
        });
        let allocator_tests: Vec<_> = allocator_tests.collect();
        let passed_by_allocator = tables.allocators.rows().iter().map(|allocator| {
            let failed = allocator_tests.iter().position(|test| !test(allocator));
            failed.unwrap_or(allocator_tests.len())
        });
        let mut selection = Self {
            tables,
            criteria,
            tests: Vec::new(),
            passed_by_allocator: passed_by_allocator.collect(),
            allocator_tests: allocator_tests.len(),
            needs_symbols: Vec::new(),
        };
        let mut allocator_indexes = 0..;
        for given in given {
            let test = match given.effect {
                ResourceEffect::Allocators(_) => {
                    Test::Allocator(allocator_indexes.next().unwrap_or_default())
                }
                ResourceEffect::Rows(test) => Test::ResourceRow(row_test(test, criteria, tables)),
                ResourceEffect::Leaks => Test::Leaks,
                ResourceEffect::Stacks(test) => {
                    let filter = match test {
                        StackTest::Create => &criteria.create_stack,
                        StackTest::Free => &criteria.free_stack,
                    };
                    let Some(filter) = filter else { continue };
                    let verdicts = selection.verdicts(filter, test)?;
                    Test::ResourceRow(Box::new(move |row| {
                        tables.has_stack(test, row) && verdicts.passes(tables.stack(test, row))
                    }))
                }
            };
            selection.tests.push((given.criterion, test));
        }
        Ok(selection)
    }

    /// Judges the stacks of rows that pass the criteria of allocators.
    fn verdicts(
        &mut self,
        filter: &Filter,
        test: StackTest,
    ) -> Result<Arc<StackVerdicts>, QueryError> {
        let mut stacks = StackSet::new(self.tables.frames.stacks.len());
        self.tables
            .rows()
            .filter(|row| self.passes_allocator(*row))
            .for_each(|row| stacks.add(self.tables.stack(test, row)));
        let verdicts = judge(filter, &stacks, self.tables.frames)?;
        for module in &verdicts.needs_symbols {
            if !self.needs_symbols.contains(module) {
                self.needs_symbols.push(module.clone());
            }
        }
        Ok(verdicts)
    }

    /// Whether a row passes all criteria of allocators.
    fn passes_allocator(&self, row: ResourceRow) -> bool {
        self.passed(row) == Some(self.allocator_tests)
    }

    fn passed(&self, row: ResourceRow) -> Option<usize> {
        self.passed_by_allocator.get(self.tables.allocator(row)?.row()).copied()
    }

    /// The allocations that pass, ascending, of which all but those that are asked for by `-Leak` and `-LeakAtExit` are
    /// there, too, and how many each criterion leaves.
    pub fn resources(&self) -> Result<(Vec<AcquisitionIdx>, Survivors), QueryError> {
        let rows = self.tables.resources.allocations();
        let parts = (0..rows.len().div_ceil(PART)).into_par_iter().map(|part| {
            self.tables.cancel.check()?;
            let first = rows.start + part * PART;
            Ok(self.part(first..(first + PART).min(rows.end)))
        });
        let (mut resources, mut total) = (Vec::new(), Counted::default());
        let mut removed = vec![Counted::default(); self.tests.len()];
        for (rows, counted, removals) in parts.collect::<Result<Vec<_>, QueryError>>()? {
            resources.extend(rows);
            total.add(counted);
            removed.iter_mut().zip(removals).for_each(|(sum, removal)| sum.add(removal));
        }
        let mut survivors = Survivors::of(total.survivors());
        for ((criterion, _), removed) in self.tests.iter().zip(removed) {
            total.remove(removed);
            survivors.note(*criterion, total.survivors());
        }
        Ok((resources, survivors))
    }

    /// Chooses from some rows, and counts all and those that each criterion removes: for most rows only one has to
    /// count.
    fn part(&self, rows: Range<usize>) -> (Vec<AcquisitionIdx>, Counted, Vec<Counted>) {
        let table = self.tables.resources;
        let (mut total, mut removed) =
            (Counted::default(), vec![Counted::default(); self.tests.len()]);
        let passes = |resource: &AcquisitionIdx| {
            let row = ResourceRow::Allocation(*resource);
            let Some(passed_tests) = self.passed(row) else { return false };
            let whole = usize::from(!table.is_further_part(*resource));
            let counted = Counted { rows: 1, whole };
            total.add(counted);
            let mut is_counted_leak = true;
            for ((_, test), removed) in self.tests.iter().zip(&mut removed) {
                let passes = match test {
                    Test::Allocator(index) => passed_tests > *index,
                    Test::ResourceRow(test) => test(row),
                    Test::Leaks => {
                        if is_counted_leak && !is_unreleased(table, *resource, self.criteria) {
                            removed.add(counted);
                            is_counted_leak = false;
                        }
                        true
                    }
                };
                if !passes {
                    if is_counted_leak {
                        removed.add(counted);
                    }
                    return false;
                }
            }
            true
        };
        let rows = rows.map(AcquisitionIdx::of).filter(passes).collect();
        (rows, total, removed)
    }

    /// The frees without allocation and the ignored events that pass, ascending.
    pub fn misses(&self) -> Vec<ResourceMissIdx> {
        let passes = |miss: &ResourceMissIdx| {
            let row = ResourceRow::Miss(*miss);
            self.passes_allocator(row)
                && self.tests.iter().all(|(_, test)| match test {
                    Test::Allocator(_) | Test::Leaks => true,
                    Test::ResourceRow(test) => test(row),
                })
        };
        (0..self.tables.misses.len()).map(ResourceMissIdx::of).filter(passes).collect()
    }
}

/// Returns a test of the allocators of allocations.
fn allocator_test<'a>(
    test: AllocatorTest,
    criteria: &'a ResourceCriteria,
    tables: &'a Tables<'_>,
) -> Box<dyn Fn(&Allocator) -> bool + 'a> {
    match test {
        AllocatorTest::Kind => {
            let filter = criteria.kind.as_ref();
            Box::new(move |allocator| {
                filter.is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
            })
        }
        AllocatorTest::Name => {
            let filter = criteria.allocator.as_ref();
            // A name passes as a whole, whatever line ends it has.
            Box::new(move |allocator| {
                filter.is_none_or(|filter| filter.accepts(filter.line(&allocator.name)))
            })
        }
        AllocatorTest::Owner => owner_test(criteria.owners.by_name(), tables),
        AllocatorTest::OwnerCommandLine => {
            owner_test(criteria.owners.by_name_and_command_line(), tables)
        }
        AllocatorTest::NewOwner => owner_test(criteria.owners.clone(), tables),
    }
}

fn owner_test<'a>(
    owners: ProcessCriteria,
    tables: &Tables<'_>,
) -> Box<dyn Fn(&Allocator) -> bool + 'a> {
    let processes = SelectedProcesses::new(tables.processes, owners);
    Box::new(move |allocator| processes.has_owner(allocator.process, allocator.pid))
}

/// Returns a test of allocations, and of frees without one.
fn row_test<'a>(
    test: ResourceTest,
    criteria: &'a ResourceCriteria,
    tables: &'a Tables<'_>,
) -> RowTest<'a> {
    match test {
        ResourceTest::Suspect => match tables.suspect {
            // A free without an allocation belongs to no suspect.
            Some(rows) => Box::new(|row| {
                row.allocation().is_some_and(|allocation| rows.has(allocation.row()))
            }),
            None => Box::new(|_| true),
        },
        ResourceTest::Time => {
            let range = criteria.time.map(|range| range.nanoseconds());
            Box::new(move |row| {
                let time_ns = tables.time_ns(row);
                range.as_ref().is_none_or(|range| time_ns.is_some_and(|ns| range.contains(&ns)))
            })
        }
        ResourceTest::Size => {
            let whole_sizes = tables.resources.whole_sizes();
            Box::new(move |row| {
                let sizes = whole_sizes.as_ref().zip(row.allocation());
                let size = sizes.and_then(|(sizes, allocation)| sizes.get(allocation.row()));
                let size = size.copied().or_else(|| tables.size(row));
                let size = size.and_then(|size| u64::try_from(size).ok());
                criteria.size.is_none_or(|range| size.is_some_and(|size| range.contains(size)))
            })
        }
    }
}

/// Keeps the allocations that were never freed, as `-Leak` and `-LeakAtExit` choose them; without either, both.
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

/// Reason why no allocation passes; `None` when the trace has none, or some pass.
pub fn no_match(
    tables: &Tables<'_>,
    criteria: &ResourceCriteria,
    survivors: &Survivors,
) -> Result<Option<NoMatch>, QueryError> {
    let names = |passed: &ResourceCriteria, criterion, value: &_| {
        let (rows, _) = ResourceSelection::new(tables, passed)?.resources()?;
        let allocators = rows.iter().filter_map(|row| tables.resources.allocator.get(row.row()));
        let allocators: BTreeSet<AllocatorIdx> = allocators.collect();
        let allocators = allocators.iter().filter_map(|row| tables.allocators.get(*row));
        let names = allocators.filter_map(|allocator| match criterion {
            Criterion::Kind | Criterion::Type => Some(kind_name(allocator.kind).to_owned()),
            Criterion::Allocator => Some(allocator.name.clone()),
            Criterion::Process => {
                let process = tables.processes.owner(allocator.process, allocator.pid);
                Some(process.shown_name(false).to_owned())
            }
            _ => None,
        });
        Ok(Candidates::of(value, names.collect()))
    };
    NoMatch::of(Subject::Allocation, criteria, survivors, names, |criteria| {
        Ok(!ResourceSelection::new(tables, criteria)?.resources()?.1.are_none())
    })
}

/// The allocations that pass, ascending, of tables that were loaded already, and why there are none.
///
/// # Errors
/// When the archive is damaged, or the query is cancelled.
pub fn choose(
    origin: Origin<'_>,
    allocators: &AllocatorList,
    resources: &AcquisitionTable,
    criteria: &ResourceCriteria,
) -> Result<(Vec<AcquisitionIdx>, Option<NoMatch>), QueryError> {
    let Origin { trace, processes, frames, suspect, cancel } = origin;
    let misses = MissTable::load(trace)?;
    let tables =
        Tables { allocators, resources, misses: &misses, processes, frames, suspect, cancel };
    let (rows, survivors) = ResourceSelection::new(&tables, criteria)?.resources()?;
    Ok((rows, no_match(&tables, criteria, &survivors)?))
}
