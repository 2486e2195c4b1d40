//! What allocations are grouped by: few numbers for each, whose texts are looked up when they are shown.

use handlescope_model::tables::Allocator;
use handlescope_model::{AllocatorIdx, Number, Numbers, ProcessIdx, StackIdx, sentinel};
use hashbrown::HashMap;

use super::tables::{AllocatorList, MissTable, ResourceTable};
use crate::query::criteria::ResourceColumn;
use crate::query::groups::TrimmedStacks;

/// What the allocations of a group have in common; [`sentinel`] in columns that they are not grouped by, and where
/// there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    /// What they have in common of their allocators.
    pub(super) base: u32,
    pub(super) caller: u32,
    pub(super) create: u32,
    pub(super) free: u32,
    pub(super) tid: u32,
    pub(super) end: u32,
    pub(super) size: Option<i64>,
}

/// Makes the keys.
pub(super) struct Keys<'a> {
    allocator: &'a Numbers<AllocatorIdx>,
    /// The columns that are grouped by.
    caller: Option<&'a Numbers<ProcessIdx>>,
    create: Option<&'a Numbers<StackIdx>>,
    free: Option<&'a Numbers<StackIdx>>,
    tid: Option<&'a Numbers<u32>>,
    end: Option<&'a Numbers<u32>>,
    size: Option<&'a Numbers<i64>>,
    stacks: Option<&'a TrimmedStacks>,
    /// By row of the allocators.
    base: Vec<u32>,
    /// The first allocator of each base.
    firsts: Vec<u32>,
}

/// What an allocator has in the columns.
#[derive(PartialEq, Eq, Hash)]
struct Base<'a> {
    kind: Option<u32>,
    name: Option<&'a str>,
    process: Option<(Option<ProcessIdx>, Option<u32>)>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(
        by: &[ResourceColumn],
        allocators: &AllocatorList,
        table: &'a ResourceTable,
        stacks: Option<&'a TrimmedStacks>,
    ) -> Self {
        let has = |column| by.contains(&column);
        let base = |allocator: &'_ Allocator| -> (Option<u32>, bool, bool) {
            let kind = has(ResourceColumn::Kind).then_some(allocator.kind);
            (kind, has(ResourceColumn::Allocator), has(ResourceColumn::Process))
        };
        let (mut known, mut firsts) = (HashMap::new(), Vec::new());
        let mut bases = Vec::with_capacity(allocators.rows().len());
        for (row, allocator) in (0..).zip(allocators.rows()) {
            let (kind, has_name, has_process) = base(allocator);
            let base = Base {
                kind,
                name: has_name.then_some(allocator.name.as_str()),
                process: has_process.then_some((allocator.process, allocator.pid)),
            };
            let next = firsts.len() as u32;
            let number = *known.entry(base).or_insert(next);
            if number == next {
                firsts.push(row);
            }
            bases.push(number);
        }
        use ResourceColumn::{Caller, CreateStack, End, FreeStack, Size, Thread};
        Self {
            allocator: &table.allocator,
            caller: has(Caller).then_some(&table.caller),
            create: has(CreateStack).then_some(&table.stack),
            free: has(FreeStack).then_some(&table.end_stack),
            tid: has(Thread).then_some(&table.tid),
            end: has(End).then_some(&table.end),
            size: has(Size).then_some(&table.size),
            stacks,
            base: bases,
            firsts,
        }
    }

    /// The number of bases, where nothing but these is grouped by.
    pub(super) fn bases_alone(&self) -> Option<usize> {
        let has_more = self.caller.is_some()
            || self.create.is_some()
            || self.free.is_some()
            || self.tid.is_some()
            || self.end.is_some()
            || self.size.is_some();
        (!has_more).then_some(self.firsts.len())
    }

    /// The first allocator of each base.
    pub(super) fn into_firsts(self) -> Vec<u32> {
        self.firsts
    }

    fn base(&self, allocator: Option<usize>) -> u32 {
        let base = allocator.and_then(|row| self.base.get(row));
        base.copied().unwrap_or(sentinel())
    }

    fn stack(&self, stack: Option<StackIdx>) -> u32 {
        let Some(stack) = stack else { return sentinel() };
        self.stacks.map_or(stack.0, |stacks| stacks.equal(stack.0))
    }

    /// The key of an allocation.
    pub(super) fn of(&self, row: usize) -> Key {
        Key {
            base: self.base(self.allocator.get(row).map(AllocatorIdx::row)),
            caller: number(self.caller, row, |caller| caller.0),
            create: number(self.create, row, |stack| self.stack(Some(stack))),
            free: number(self.free, row, |stack| self.stack(Some(stack))),
            tid: number(self.tid, row, |tid| tid),
            end: number(self.end, row, |end| end),
            size: self.size.and_then(|size| size.get(row)),
        }
    }

    /// The key of a free without allocation or of an ignored event.
    pub(super) fn of_miss(&self, misses: &MissTable, row: usize) -> Key {
        let stack = self.free.and_then(|_| misses.stack.get(row));
        Key {
            base: self.base(misses.allocator.get(row).map(AllocatorIdx::row)),
            caller: sentinel(),
            create: sentinel(),
            free: self.stack(stack),
            tid: self.tid.and_then(|_| misses.tid.get(row)).unwrap_or(sentinel()),
            end: sentinel(),
            size: self.size.and_then(|_| misses.size.get(row)),
        }
    }
}

/// What a row has in a column, if that is grouped by; [`sentinel`] for nothing.
fn number<T: Number>(column: Option<&Numbers<T>>, row: usize, of: impl Fn(T) -> u32) -> u32 {
    column.and_then(|column| column.get(row)).map_or(sentinel(), of)
}
