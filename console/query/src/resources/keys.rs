//! Keys that allocations are grouped by: few numbers for each, whose texts are looked up when they are shown.

use std::hash::{Hash, Hasher};

use handlescope_model::tables::Allocator;
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, Numbers, ProcessIdx, ResourceMissIdx, StackIdx, Trace, sentinel,
};
use hashbrown::HashMap;

use crate::acquisition_table::AcquisitionTable;
use crate::allocations::{AllocatorList, MissTable};
use crate::criteria::{KeyKind, ResourceColumn};
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::trimmed_stacks::TrimmedStacks;

/// Values that the allocations of a group have in common: of their allocators, then of columns at their
/// [indexes](ResourceColumn::key_index); [`sentinel`] in columns that they are not grouped by, and where there is no
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u32; ResourceColumn::KEY_WIDTH]);

impl Hash for Key {
    // Single numbers are hashed in registers, a slice in memory.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|number| state.write_u32(*number));
    }
}

impl Key {
    /// Number of what their allocators have in common.
    pub fn base(&self) -> u32 {
        self.0[0]
    }

    /// The number in a column of these, if there is one.
    pub fn number(&self, column: ResourceColumn) -> Option<u32> {
        self.0.get(column.key_index()).copied().filter(|number| *number != sentinel())
    }

    /// The bytes in a column of these.
    pub fn bytes(&self, column: ResourceColumn) -> Option<i64> {
        let index = column.key_index();
        Some(of_halves([*self.0.get(index)?, *self.0.get(index + 1)?]))
    }

    fn set(&mut self, index: usize, number: u32) {
        if let Some(slot) = self.0.get_mut(index) {
            *slot = number;
        }
    }
}

/// The columns that are read of rows.
pub struct KeyColumns(Vec<KeyColumn>);

struct KeyColumn {
    /// Index of its first number in a key.
    index: usize,
    rows: Values,
    misses: Values,
}

/// The values of a column.
enum Values {
    Processes(Numbers<ProcessIdx>),
    Stacks(Numbers<StackIdx>),
    Numbers(Numbers<u32>),
    Bytes(Numbers<i64>),
}

/// Makes the keys.
pub struct Keys<'a> {
    table: &'a AcquisitionTable,
    misses: &'a MissTable,
    columns: &'a KeyColumns,
    stacks: Option<&'a TrimmedStacks>,
    /// Base of each allocator, by row.
    base: Vec<u32>,
    /// The first allocator of each base.
    firsts: Vec<AllocatorIdx>,
    /// Number of the process of each allocator, by row, if any stack is of one process.
    process: Vec<u32>,
}

/// Index of the process in keys whose stacks lead through unknown code.
const PROCESS: usize = ResourceColumn::KEY_WIDTH - 1;

/// Value of an allocator in a column.
#[derive(PartialEq, Eq, Hash)]
enum AllocatorValue<'a> {
    Text(Option<&'a str>),
    Process(Option<ProcessIdx>, Option<u32>),
}

impl KeyColumns {
    pub fn load(trace: &Trace, by: &[ResourceColumn]) -> Result<Self, QueryError> {
        let mut columns = Vec::new();
        for column in by {
            let [rows, misses] = match column.kind() {
                KeyKind::Allocator(_) | KeyKind::Owner => continue,
                KeyKind::Process(source) => source.load(trace)?.map(Values::Processes),
                KeyKind::Stack(source, _) => source.load(trace)?.map(Values::Stacks),
                KeyKind::Number(source) | KeyKind::Word(source, _) => {
                    source.load(trace)?.map(Values::Numbers)
                }
                KeyKind::Bytes(source) => source.load(trace)?.map(Values::Bytes),
            };
            columns.push(KeyColumn { index: column.key_index(), rows, misses });
        }
        Ok(Self(columns))
    }

    /// The stacks of allocations and of events without any, column by column.
    pub fn stacks(&self) -> impl Iterator<Item = [&Numbers<StackIdx>; 2]> {
        self.0.iter().filter_map(|column| match [&column.rows, &column.misses] {
            [Values::Stacks(rows), Values::Stacks(misses)] => Some([rows, misses]),
            _ => None,
        })
    }
}

impl<'a> Keys<'a> {
    pub fn new(
        by: &[ResourceColumn],
        allocators: &AllocatorList,
        table: &'a AcquisitionTable,
        misses: &'a MissTable,
        columns: &'a KeyColumns,
        stacks: Option<&'a TrimmedStacks>,
        frames: &Frames<'_>,
    ) -> Self {
        let mut base = vec![0; allocators.rows().len()];
        for column in by {
            let mut bases = HashMap::new();
            for (base, allocator) in base.iter_mut().zip(allocators.rows()) {
                let value = match column.kind() {
                    KeyKind::Allocator(text) => AllocatorValue::Text(text(allocator)),
                    KeyKind::Owner => AllocatorValue::Process(allocator.process, allocator.pid),
                    _ => break,
                };
                let next = bases.len() as u32;
                *base = *bases.entry((*base, value)).or_insert(next);
            }
        }
        let mut firsts = Vec::new();
        for (row, base) in (0..).map(AllocatorIdx).zip(&base) {
            if *base as usize == firsts.len() {
                firsts.push(row);
            }
        }
        let process = match stacks.is_some_and(TrimmedStacks::has_stacks_of_one_process) {
            true => numbers_of_processes(allocators, frames),
            false => Vec::new(),
        };
        Self { table, misses, columns, stacks, base, firsts, process }
    }

    /// The number of bases, where nothing but these is grouped by.
    pub fn bases_alone(&self) -> Option<usize> {
        self.columns.0.is_empty().then_some(self.firsts.len())
    }

    /// The first allocator of each base.
    pub fn into_firsts(self) -> Vec<AllocatorIdx> {
        self.firsts
    }

    /// The key of an allocation.
    pub fn of(&self, resource: AcquisitionIdx) -> Key {
        self.key(&self.table.allocator, resource.row(), |column| &column.rows)
    }

    /// The key of a free without allocation or of an ignored event.
    pub fn of_miss(&self, miss: ResourceMissIdx) -> Key {
        self.key(&self.misses.allocator, miss.row(), |column| &column.misses)
    }

    fn key(
        &self,
        allocator: &Numbers<AllocatorIdx>,
        row: usize,
        values: impl Fn(&KeyColumn) -> &Values,
    ) -> Key {
        let mut key = Key([sentinel(); ResourceColumn::KEY_WIDTH]);
        let allocator = allocator.get(row);
        let base = allocator.and_then(|allocator| self.base.get(allocator.row()));
        key.set(0, base.copied().unwrap_or(sentinel()));
        for column in &self.columns.0 {
            let index = column.index;
            let number = match values(column) {
                Values::Processes(rows) => rows.get(row).unwrap_or(ProcessIdx::NONE).0,
                Values::Stacks(rows) => {
                    let stack = rows.get(row);
                    if self.is_of_one_process(stack) {
                        let process = allocator.and_then(|it| self.process.get(it.row()));
                        key.set(PROCESS, process.copied().unwrap_or(sentinel()));
                    }
                    self.stack(stack).0
                }
                Values::Numbers(rows) => rows.get(row).unwrap_or(sentinel()),
                Values::Bytes(rows) => {
                    let [high, low] = halves(rows.get(row).unwrap_or_default());
                    key.set(index + 1, low);
                    high
                }
            };
            key.set(index, number);
        }
        key
    }

    fn is_of_one_process(&self, stack: Option<StackIdx>) -> bool {
        let stack = self.stacks.zip(stack);
        stack.is_some_and(|(stacks, stack)| stacks.is_of_one_process(stack))
    }

    fn stack(&self, stack: Option<StackIdx>) -> StackIdx {
        let Some(stack) = stack else { return StackIdx::NONE };
        self.stacks.map_or(stack, |stacks| stacks.equal(stack))
    }
}

/// Numbers the processes of allocators, by row; those without modules share their code.
fn numbers_of_processes(allocators: &AllocatorList, frames: &Frames<'_>) -> Vec<u32> {
    let process = |allocator: &Allocator| {
        allocator.process.filter(|process| frames.knows_modules(Some(*process)))
    };
    let rows = allocators.rows().iter();
    rows.map(|allocator| process(allocator).map_or(sentinel(), |process| process.0)).collect()
}

/// The halves of a number, in an order that is that of the number.
fn halves(number: i64) -> [u32; 2] {
    let number = (number ^ i64::MIN) as u64;
    [(number >> u32::BITS) as u32, number as u32]
}

fn of_halves([high, low]: [u32; 2]) -> i64 {
    (u64::from(high) << u32::BITS | u64::from(low)) as i64 ^ i64::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_bytes_are_in_the_order_of_the_bytes() {
        let numbers =
            [i64::MIN, i64::MIN + 1, -(1 << 32), -1, 0, 1, 1 << 32, i64::MAX - 1, i64::MAX];
        assert!(numbers.map(halves).is_sorted());
        assert_eq!(numbers.map(halves).map(of_halves), numbers);
    }

    #[test]
    fn each_number_of_a_key_is_of_one_column() {
        let columns = ResourceColumn::ALL.iter().filter(|column| !column.is_of_allocator());
        let mut indexes: Vec<usize> = columns.map(|column| column.key_index()).collect();
        indexes.sort_unstable();
        assert!(indexes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(indexes.first() == Some(&1) && indexes.last() < Some(&PROCESS));
    }
}
