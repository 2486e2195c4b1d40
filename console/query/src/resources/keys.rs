//! What allocations are grouped by: a code in each column. Texts are looked up only for output.

use std::sync::Arc;

use handlescope_model::tables::{Acquisitions, ResourceMisses};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx, StackIdx, sentinel};

use crate::acquisition_table::{AllocatorList, kind_name};
use crate::allocations::{AllocationOrMiss, FilteredTables};
use crate::criteria::{GroupColumn, KeyKind, StackTrims};
use crate::error::QueryError;
use crate::stacks::StackSet;
use crate::trimmed_stacks::TrimmedStacks;

/// The columns that are not about allocators, in the order of their codes. Groups with equal figures are ordered by
/// codes.
const OTHER_COLUMNS: [GroupColumn; 6] = [
    GroupColumn::Caller,
    GroupColumn::CreateStack,
    GroupColumn::FreeStack,
    GroupColumn::Thread,
    GroupColumn::End,
    GroupColumn::Size,
];

/// Makes the codes of allocations, and of frees without one. All columns about allocators share the first code.
pub struct ResourceKeys<'a> {
    /// The column of each code, unless several columns share it.
    pub columns: Vec<Option<GroupColumn>>,
    codes: Vec<CodesOf<'a>>,
    /// The first allocator for each code of allocators; empty if no column is about them.
    pub first_allocators: Vec<AllocatorIdx>,
    /// Trimmed stacks that are grouped by.
    pub stacks: Option<Arc<TrimmedStacks>>,
}

/// Returns the codes of allocations, or of frees without one. Works on many at once, so that the loop is compiled for the
/// column.
type CodesOf<'a> = Box<dyn Fn(&[AllocationOrMiss]) -> Vec<u32> + Sync + 'a>;

impl<'a> ResourceKeys<'a> {
    /// Loads what the columns need, and compares the stacks of the given rows.
    pub fn load(
        tables: &'a FilteredTables<'a>,
        by: &[GroupColumn],
        trims: &StackTrims,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<Self, QueryError> {
        let trace = tables.origin.trace;
        let (codes, first_allocators) = allocator_codes(&tables.origin.table.allocators, by);
        let stacks = compared_stacks(tables, by, trims, rows, misses)?.map(Arc::new);
        let mut keys = Self {
            columns: Vec::new(),
            codes: Vec::new(),
            first_allocators,
            stacks: stacks.clone(),
        };
        keys.add(None, move |row| codes.get(tables.allocator(row)?.row()).copied());
        for column in OTHER_COLUMNS.into_iter().filter(|column| by.contains(column)) {
            let of = Some(column);
            match column {
                GroupColumn::Caller => {
                    let callers = trace.values(Acquisitions::opened_by)?;
                    keys.add(of, move |row| Some(callers.get(row.allocation()?.row())?.0));
                }
                GroupColumn::Thread => {
                    let tids = trace.values(Acquisitions::opened_tid)?;
                    let misses = trace.values(ResourceMisses::tid)?;
                    keys.add(of, move |row| row.number(&tids, &misses));
                }
                GroupColumn::End => {
                    let ends = trace.values(Acquisitions::end)?;
                    keys.add(of, move |row| ends.get(row.allocation()?.row()));
                }
                GroupColumn::Size => {
                    let bytes = |row| tables.size(row).unwrap_or_default();
                    keys.add(of, move |row| Some(high(bytes(row))));
                    keys.add(of, move |row| Some(low(bytes(row))));
                }
                _ => {
                    let Some(stacks) = stacks.clone() else { continue };
                    keys.add(of, move |row| Some(stacks.equal(stack_in(tables, column, row)?).0));
                }
            }
        }
        if let Some(stacks) = stacks.filter(|stacks| stacks.has_stacks_of_one_process()) {
            let stack_columns = stack_columns(by);
            let is_of_one_process = move |row| {
                let mut stacks_of_row =
                    stack_columns.iter().filter_map(|column| stack_in(tables, *column, row));
                stacks_of_row.any(|stack| stacks.is_of_one_process(stack))
            };
            keys.add(None, move |row| {
                let allocator = tables.allocator(row).filter(|_| is_of_one_process(row))?;
                let process = tables.origin.table.allocators.get(allocator)?.process;
                Some(tables.origin.frames.owner_of_code(process)?.0)
            });
        }
        Ok(keys)
    }

    fn add(
        &mut self,
        column: Option<GroupColumn>,
        code: impl Fn(AllocationOrMiss) -> Option<u32> + Sync + 'a,
    ) {
        self.columns.push(column);
        self.codes.push(Box::new(move |rows| {
            rows.iter().map(|row| code(*row).unwrap_or(sentinel())).collect()
        }));
    }

    /// Returns the codes of rows, column by column.
    pub fn codes(&self, rows: impl Iterator<Item = AllocationOrMiss>) -> Vec<Vec<u32>> {
        let rows: Vec<AllocationOrMiss> = rows.collect();
        self.codes.iter().map(|codes| codes(&rows)).collect()
    }
}

/// Compares the stacks that rows are grouped by, if they are grouped by any.
fn compared_stacks(
    tables: &FilteredTables<'_>,
    by: &[GroupColumn],
    trims: &StackTrims,
    rows: &[AcquisitionIdx],
    misses: &[ResourceMissIdx],
) -> Result<Option<TrimmedStacks>, QueryError> {
    let frames = tables.origin.frames;
    let columns = stack_columns(by);
    if columns.is_empty() {
        return Ok(None);
    }
    let mut stacks = StackSet::new(frames.stacks.len());
    for column in columns {
        let all = rows.iter().map(|row| AllocationOrMiss::Allocation(*row));
        let all = all.chain(misses.iter().map(|row| AllocationOrMiss::Miss(*row)));
        all.for_each(|row| stacks.add(stack_in(tables, column, row)));
    }
    TrimmedStacks::compare(frames, &stacks, trims).map(Some)
}

fn stack_columns(by: &[GroupColumn]) -> Vec<GroupColumn> {
    by.iter().copied().filter(|column| column.kind() == KeyKind::Stack).collect()
}

/// Returns the stack of a row in a column of stacks.
fn stack_in(
    tables: &FilteredTables<'_>,
    column: GroupColumn,
    row: AllocationOrMiss,
) -> Option<StackIdx> {
    let (table, misses) = (tables.origin.table, &tables.misses);
    match (column, row) {
        (GroupColumn::CreateStack, AllocationOrMiss::Allocation(row)) => {
            table.opened_stack.get(row.row())
        }
        (_, AllocationOrMiss::Allocation(row)) => table.ended_stack.get(row.row()),
        (GroupColumn::CreateStack, AllocationOrMiss::Miss(_)) => None,
        (_, AllocationOrMiss::Miss(row)) => misses.stack.get(row.row()),
    }
}

/// Returns a code for each allocator by everything about it that groups share, and the first allocator for each code.
fn allocator_codes(
    allocators: &AllocatorList,
    by: &[GroupColumn],
) -> (Vec<u32>, Vec<AllocatorIdx>) {
    let has = |column| by.contains(&column);
    let (codes, mut firsts) = allocators.codes_by(|allocator| {
        (
            has(GroupColumn::Kind).then(|| kind_name(allocator.kind)),
            has(GroupColumn::Allocator).then_some(&allocator.name),
            has(GroupColumn::Process).then_some((allocator.process, allocator.pid)),
        )
    });
    if by.iter().all(|column| OTHER_COLUMNS.contains(column)) {
        // A group over all allocators has none.
        firsts.clear();
    }
    (codes, firsts)
}

/// Returns the upper half of a number of bytes; the halves sort like the numbers.
fn high(bytes: i64) -> u32 {
    ((bytes ^ i64::MIN) as u64 >> u32::BITS) as u32
}

fn low(bytes: i64) -> u32 {
    bytes as u32
}

/// Joins the halves of a number of bytes.
pub fn bytes(high: u32, low: u32) -> i64 {
    (u64::from(high) << u32::BITS | u64::from(low)) as i64 ^ i64::MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Domain;

    #[test]
    fn every_column_of_allocations_is_about_allocators_or_has_a_code() {
        for column in GroupColumn::of(Domain::Allocations) {
            let is_of_allocators =
                [GroupColumn::Kind, GroupColumn::Allocator, GroupColumn::Process].contains(&column);
            assert_ne!(is_of_allocators, OTHER_COLUMNS.contains(&column), "{column:?}");
        }
    }

    #[test]
    fn halves_of_bytes_are_in_the_order_of_the_bytes() {
        let numbers =
            [i64::MIN, i64::MIN + 1, -(1 << 32), -1, 0, 1, 1 << 32, i64::MAX - 1, i64::MAX];
        let halves = numbers.map(|number| (high(number), low(number)));
        assert!(halves.is_sorted());
        assert_eq!(halves.map(|(high, low)| bytes(high, low)), numbers);
    }
}
