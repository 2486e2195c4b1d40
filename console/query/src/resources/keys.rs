//! What allocations are grouped by: a code in each column. Texts are looked up only for output.

use std::sync::Arc;

use handlescope_model::tables::Allocator;
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, Numbers, ProcessIdx, ResourceMissIdx, StackIdx, sentinel,
};

use crate::allocations::{AllocationOrMiss, FilteredTables};
use crate::criteria::{ResourceColumn, ResourceKeyKind, StackTrims};
use crate::error::QueryError;
use crate::groups::Coder;
use crate::stacks::StackSet;
use crate::trimmed_stacks::TrimmedStacks;

/// Makes the codes of allocations, and of frees without one.
pub struct ResourceKeys<'a> {
    tables: &'a FilteredTables<'a>,
    /// Codes of allocators by everything about them that groups share.
    allocators: Coder,
    /// The sources of codes, each with its column if it has one of its own; allocators come first. Groups with equal
    /// figures are ordered by these codes.
    columns: Vec<(Option<ResourceColumn>, CodeSource)>,
    /// Trimmed stacks that are grouped by.
    pub stacks: Option<TrimmedStacks>,
}

/// A source of codes: columns of allocations and of frees without one.
enum CodeSource {
    Allocators,
    Processes([Numbers<ProcessIdx>; 2]),
    Stacks([Numbers<StackIdx>; 2]),
    Numbers([Numbers<u32>; 2]),
    /// One half of a number of bytes.
    Bytes(Arc<[Numbers<i64>; 2]>, fn(i64) -> u32),
    /// The process of each allocator, for stacks with unknown code.
    ProcessOfStack(Vec<u32>),
}

impl<'a> ResourceKeys<'a> {
    /// Loads what the columns need, and compares the stacks of the given rows.
    pub fn load(
        tables: &'a FilteredTables<'a>,
        by: &[ResourceColumn],
        trims: &StackTrims,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<Self, QueryError> {
        let trace = tables.origin.trace;
        let mut allocators = Coder::default();
        for (row, allocator) in (0..).zip(tables.allocators.rows()) {
            allocators
                .learn(row, || by.iter().map(|column| identity(*column, allocator)).collect());
        }
        let mut columns = vec![(None, CodeSource::Allocators)];
        let mut by_rank = by.to_vec();
        by_rank.sort_by_key(|column| (column.kind().rank(), *column as usize));
        for column in by_rank {
            let values = match column.kind() {
                ResourceKeyKind::Allocator(_) | ResourceKeyKind::Owner => continue,
                ResourceKeyKind::Process(source) => CodeSource::Processes(source.load(trace)?),
                ResourceKeyKind::Stack(source, _) => CodeSource::Stacks(source.load(trace)?),
                ResourceKeyKind::Number(source) | ResourceKeyKind::Word(source, _) => {
                    CodeSource::Numbers(source.load(trace)?)
                }
                ResourceKeyKind::Bytes(source) => {
                    let bytes = Arc::new(source.load(trace)?);
                    columns.push((Some(column), CodeSource::Bytes(Arc::clone(&bytes), high)));
                    CodeSource::Bytes(bytes, low)
                }
            };
            columns.push((Some(column), values));
        }
        let mut keys = Self { tables, allocators, columns, stacks: None };
        keys.compare_stacks(trims, rows, misses)?;
        if keys.stacks.as_ref().is_some_and(TrimmedStacks::has_stacks_of_one_process) {
            // Processes without modules share their code.
            let knows_modules =
                |process: &ProcessIdx| tables.origin.frames.knows_modules(Some(*process));
            let process = |allocator: &Allocator| allocator.process.filter(knows_modules);
            let processes =
                tables.allocators.rows().iter().map(|it| process(it).unwrap_or(ProcessIdx::NONE).0);
            keys.columns.push((None, CodeSource::ProcessOfStack(processes.collect())));
        }
        Ok(keys)
    }

    /// Compares the stacks that are grouped by, if any.
    fn compare_stacks(
        &mut self,
        trims: &StackTrims,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<(), QueryError> {
        let frames = self.tables.origin.frames;
        let mut columns = self.stack_columns().peekable();
        if columns.peek().is_none() {
            return Ok(());
        }
        let mut stacks = StackSet::new(frames.stacks.len());
        for [of_rows, of_misses] in columns {
            rows.iter().for_each(|row| stacks.add(of_rows.get(row.row())));
            misses.iter().for_each(|row| stacks.add(of_misses.get(row.row())));
        }
        frames.resolve(stacks.iter())?;
        self.stacks = Some(TrimmedStacks::compare(frames, &stacks, trims)?);
        Ok(())
    }

    fn stack_columns(&self) -> impl Iterator<Item = &[Numbers<StackIdx>; 2]> {
        self.columns.iter().filter_map(|(_, values)| match values {
            CodeSource::Stacks(columns) => Some(columns),
            _ => None,
        })
    }

    /// Returns the columns of a group's codes in order.
    pub fn columns(&self) -> Vec<Option<ResourceColumn>> {
        self.columns.iter().map(|(column, _)| *column).collect()
    }

    /// Returns the first allocator for each allocator code.
    pub fn first_allocators(&self) -> Vec<AllocatorIdx> {
        let mut firsts = Vec::new();
        for row in (0..self.tables.allocators.rows().len()).map(AllocatorIdx::from_row) {
            if self.allocators.known(row.0) == Some(firsts.len() as u32) {
                firsts.push(row);
            }
        }
        firsts
    }

    /// Returns the codes of rows, column by column.
    pub fn codes<T: Copy>(&self, rows: &[T], row_of: fn(T) -> AllocationOrMiss) -> Vec<Vec<u32>> {
        self.columns
            .iter()
            .map(|(_, values)| rows.iter().map(|row| self.code(values, row_of(*row))).collect())
            .collect()
    }

    fn code(&self, values: &CodeSource, row: AllocationOrMiss) -> u32 {
        let allocator = || self.tables.allocator(row);
        let code = match values {
            CodeSource::Allocators => allocator().and_then(|it| self.allocators.known(it.0)),
            CodeSource::Processes(columns) => row.get(columns).map(|process| process.0),
            CodeSource::Stacks(columns) => row
                .get(columns)
                .map(|stack| self.stacks.as_ref().map_or(stack, |stacks| stacks.equal(stack)).0),
            CodeSource::Numbers(columns) => row.get(columns),
            CodeSource::Bytes(columns, half) => Some(half(row.get(columns).unwrap_or_default())),
            CodeSource::ProcessOfStack(processes) => {
                let is_of_one_process = |columns: &[_; 2]| {
                    let stack = self.stacks.as_ref().zip(row.get(columns));
                    stack.is_some_and(|(stacks, stack)| stacks.is_of_one_process(stack))
                };
                let allocator = allocator().filter(|_| self.stack_columns().any(is_of_one_process));
                allocator.and_then(|it| processes.get(it.row()).copied())
            }
        };
        code.unwrap_or(sentinel())
    }
}

/// Returns what identifies an allocator in a column; empty if the column is not about allocators.
fn identity(column: ResourceColumn, allocator: &Allocator) -> String {
    match column.kind() {
        ResourceKeyKind::Allocator(text) => format!("{:?}", text(allocator)),
        ResourceKeyKind::Owner => format!("{:?}", (allocator.process, allocator.pid)),
        _ => String::new(),
    }
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

    #[test]
    fn halves_of_bytes_are_in_the_order_of_the_bytes() {
        let numbers =
            [i64::MIN, i64::MIN + 1, -(1 << 32), -1, 0, 1, 1 << 32, i64::MAX - 1, i64::MAX];
        let halves = numbers.map(|number| (high(number), low(number)));
        assert!(halves.is_sorted());
        assert_eq!(halves.map(|(high, low)| bytes(high, low)), numbers);
    }
}
