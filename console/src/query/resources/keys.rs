//! What allocations are grouped by: few numbers for each, whose texts are looked up when they are shown.

use handlescope_model::tables::Allocator;
use handlescope_model::{ProcessIdx, StackIdx, sentinel};
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
    by: &'a [ResourceColumn],
    table: &'a ResourceTable,
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
        by: &'a [ResourceColumn],
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
        Self { by, table, stacks, base: bases, firsts }
    }

    /// The first allocator of each base.
    pub(super) fn into_firsts(self) -> Vec<u32> {
        self.firsts
    }

    fn has(&self, column: ResourceColumn) -> bool {
        self.by.contains(&column)
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
        use ResourceColumn::{Caller, CreateStack, End, FreeStack, Size, Thread};
        let table = self.table;
        let known = |number: Option<u32>| number.unwrap_or(sentinel());
        let only = |column, number: &dyn Fn() -> u32| {
            if self.has(column) { number() } else { sentinel() }
        };
        Key {
            base: self.base(table.allocator.get(row).map(|allocator| allocator.row())),
            caller: only(Caller, &|| known(table.caller.get(row).map(|caller| caller.0))),
            create: only(CreateStack, &|| self.stack(table.stack.get(row))),
            free: only(FreeStack, &|| self.stack(table.end_stack.get(row))),
            tid: only(Thread, &|| known(table.tid.get(row))),
            end: only(End, &|| known(table.end.get(row))),
            size: self.has(Size).then(|| table.size.get(row)).flatten(),
        }
    }

    /// The key of a free without allocation or of an ignored event.
    pub(super) fn of_miss(&self, misses: &MissTable, row: usize) -> Key {
        let free = self.has(ResourceColumn::FreeStack);
        let tid = misses.tid.get(row).filter(|_| self.has(ResourceColumn::Thread));
        let size = misses.size.get(row).filter(|_| self.has(ResourceColumn::Size));
        Key {
            base: self.base(misses.allocator.get(row).map(|allocator| allocator.row())),
            caller: sentinel(),
            create: sentinel(),
            free: if free { self.stack(misses.stack.get(row)) } else { sentinel() },
            tid: tid.unwrap_or(sentinel()),
            end: sentinel(),
            size,
        }
    }
}
