//! What allocations are grouped by: few numbers for each, whose texts are looked up when they are shown.

use handlescope_model::tables::Allocator;
use handlescope_model::{
    AllocatorIdx, Number, Numbers, ProcessIdx, ResourceIdx, ResourceMissIdx, StackIdx, sentinel,
};
use hashbrown::HashMap;

use super::tables::{AllocatorList, MissTable, ResourceTable};
use crate::query::criteria::ResourceColumn;
use crate::query::groups::TrimmedStacks;

/// What the allocations of a group have in common; [`sentinel`] or no row in columns that they are not grouped by, and where
/// there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    /// What they have in common of their allocators.
    pub(super) base: u32,
    pub(super) caller: ProcessIdx,
    pub(super) create: StackIdx,
    pub(super) free: StackIdx,
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
    firsts: Vec<AllocatorIdx>,
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
        for (row, allocator) in (0..).map(AllocatorIdx).zip(allocators.rows()) {
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
    pub(super) fn into_firsts(self) -> Vec<AllocatorIdx> {
        self.firsts
    }

    fn base(&self, allocator: Option<AllocatorIdx>) -> u32 {
        let base = allocator.and_then(|allocator| self.base.get(allocator.row()));
        base.copied().unwrap_or(sentinel())
    }

    fn stack(&self, stack: Option<StackIdx>) -> StackIdx {
        let Some(stack) = stack else { return StackIdx::NONE };
        self.stacks.map_or(stack, |stacks| stacks.equal(stack))
    }

    /// The key of an allocation.
    pub(super) fn of(&self, resource: ResourceIdx) -> Key {
        let row = resource.row();
        Key {
            base: self.base(self.allocator.get(row)),
            caller: value(self.caller, row).unwrap_or(ProcessIdx::NONE),
            create: self.stack(value(self.create, row)),
            free: self.stack(value(self.free, row)),
            tid: value(self.tid, row).unwrap_or(sentinel()),
            end: value(self.end, row).unwrap_or(sentinel()),
            size: value(self.size, row),
        }
    }

    /// The key of a free without allocation or of an ignored event.
    pub(super) fn of_miss(&self, misses: &MissTable, miss: ResourceMissIdx) -> Key {
        let row = miss.row();
        let stack = self.free.and_then(|_| misses.stack.get(row));
        Key {
            base: self.base(misses.allocator.get(row)),
            caller: ProcessIdx::NONE,
            create: StackIdx::NONE,
            free: self.stack(stack),
            tid: self.tid.and_then(|_| misses.tid.get(row)).unwrap_or(sentinel()),
            end: sentinel(),
            size: self.size.and_then(|_| misses.size.get(row)),
        }
    }
}

/// What a row has in a column, if that is grouped by.
fn value<T: Number>(column: Option<&Numbers<T>>, row: usize) -> Option<T> {
    column?.get(row)
}
