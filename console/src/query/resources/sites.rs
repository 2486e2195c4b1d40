//! Allocations grouped by what their process allocates of one kind on one stack: in a loop, which keeps the rows of
//! each group in order, because their times are looked at next.

use handlescope_model::rules::is_named_by_allocator;
use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AllocatorIdx, ProcessIdx, ResourceIdx, StackIdx, sentinel};
use hashbrown::HashMap;

use super::tables::{AllocatorList, ResourceTable};
use crate::query::criteria::StackTrims;
use crate::query::error::QueryError;
use crate::query::frame_names::Frames;
use crate::query::groups::{TrimmedStacks, counting_sort};
use crate::query::stacks::StackSet;

/// What processes allocate, by kind and stack.
pub(in crate::query) struct Sites {
    pub(in crate::query) sites: Vec<Site>,
    rows: Vec<ResourceIdx>,
    pub(in crate::query) stacks: TrimmedStacks,
}

/// Which allocations are meant.
pub(in crate::query) struct ChosenRows<'a> {
    /// By row of the allocators.
    pub(in crate::query) is_meant: &'a [bool],
    /// By row of the allocations, where not all of these allocators are.
    pub(in crate::query) rows: Option<&'a [bool]>,
}

impl ChosenRows<'_> {
    pub(in crate::query) fn has(&self, row: usize, allocator: Option<AllocatorIdx>) -> bool {
        let is = |list: &[bool], at: usize| list.get(at).copied().unwrap_or_default();
        allocator.is_some_and(|own| is(self.is_meant, own.row()))
            && self.rows.is_none_or(|rows| is(rows, row))
    }
}

/// What one process allocates of one kind on one stack.
pub(in crate::query) struct Site {
    pub(in crate::query) kind: u32,
    /// The first of its allocators.
    pub(in crate::query) allocator: AllocatorIdx,
    /// The stack: one of those of the same functions.
    pub(in crate::query) stack: Option<StackIdx>,
    /// Its place in [`Sites::rows`].
    first: u32,
    end: u32,
}

/// Owner and kind, and stack.
type Key = (u32, StackIdx);

impl Sites {
    /// The sites of the allocations that are meant, of which any was never freed.
    pub(in crate::query) fn leaking(
        table: &ResourceTable,
        allocators: &AllocatorList,
        chosen: &ChosenRows<'_>,
        frames: &Frames<'_>,
    ) -> Result<Self, QueryError> {
        Self::of(table, allocators, chosen, frames, false)
    }

    /// All sites of the allocations that are meant.
    pub(in crate::query) fn all(
        table: &ResourceTable,
        allocators: &AllocatorList,
        chosen: &ChosenRows<'_>,
        frames: &Frames<'_>,
    ) -> Result<Self, QueryError> {
        Self::of(table, allocators, chosen, frames, true)
    }

    fn of(
        table: &ResourceTable,
        allocators: &AllocatorList,
        chosen: &ChosenRows<'_>,
        frames: &Frames<'_>,
        all: bool,
    ) -> Result<Self, QueryError> {
        let owners = owners(allocators);
        let allocator = |row: usize| table.allocator.get(row);
        let is_chosen = |row: &usize| chosen.has(*row, allocator(*row));
        let mut stacks = StackSet::new(frames.stacks.len());
        (0..table.len()).filter(is_chosen).for_each(|row| stacks.add(table.stack.get(row)));
        allocators.rows().iter().for_each(|own| stacks.add(own.create_stack));
        frames.resolve(stacks.iter())?;
        let stacks = TrimmedStacks::compare(frames, &stacks, &StackTrims::default())?;
        let mut numbers: HashMap<Key, u32> = HashMap::new();
        let mut sites: Vec<Site> = Vec::new();
        let mut site_of = vec![sentinel(); table.len()];
        let mut leaks: Vec<bool> = Vec::new();
        for row in (0..table.len()).filter(is_chosen) {
            let allocator = allocator(row).unwrap_or_default();
            let owner = owners.get(allocator.row()).copied().unwrap_or_default();
            let stack = table.stack.get(row).map_or(StackIdx::NONE, |stack| stacks.equal(stack));
            let next = sites.len() as u32;
            let number = *numbers.entry((owner, stack)).or_insert(next);
            if number == next {
                let kind = allocators.get(allocator).map_or(sentinel(), |own| own.kind);
                let stack = stack.known();
                sites.push(Site { kind, allocator, stack, first: 0, end: 0 });
                leaks.push(all);
            }
            site_of[row] = number;
            leaks[number as usize] |= table.is_lost(ResourceIdx::of(row));
        }
        let of_leaking = site_of.iter().enumerate().filter_map(|(row, site)| {
            let site = *site as usize;
            leaks.get(site)?.then_some((site, row as u32))
        });
        let (rows, ends) = counting_sort(of_leaking, sites.len());
        let mut first = 0;
        for (site, end) in sites.iter_mut().zip(&ends) {
            (site.first, site.end) = (first, *end);
            first = *end;
        }
        sites.retain(|site| site.end > site.first);
        Ok(Self { sites, rows: rows.into_iter().map(ResourceIdx).collect(), stacks })
    }

    /// The allocations of a site, as rows of their table, in time order within each allocator.
    pub(in crate::query) fn rows(&self, site: &Site) -> &[ResourceIdx] {
        self.rows.get(site.first as usize..site.end as usize).unwrap_or_default()
    }
}

/// For each allocator the number of its process and kind, and of its name where that says what is allocated.
fn owners(allocators: &AllocatorList) -> Vec<u32> {
    let mut numbers: HashMap<Owner<'_>, u32> = HashMap::new();
    let mut owners = Vec::with_capacity(allocators.rows().len());
    for own in allocators.rows() {
        let next = numbers.len() as u32;
        let owner = (own.kind, own.process, own.pid, descriptive_name(own));
        owners.push(*numbers.entry(owner).or_insert(next));
    }
    owners
}

/// Kind, process and its id, and the name of the allocator.
type Owner<'a> = (u32, Option<ProcessIdx>, Option<u32>, Option<&'a str>);

/// The name of an allocator where it says what is allocated.
pub(in crate::query) fn descriptive_name(allocator: &Allocator) -> Option<&str> {
    let kind = ResourceKind::from_code(allocator.kind);
    let has_names = kind.is_some_and(is_named_by_allocator);
    has_names.then_some(allocator.name.as_str()).filter(|name| !name.is_empty())
}
