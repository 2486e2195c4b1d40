//! Groups allocations by process, kind and stack. It is a loop that keeps the rows of each group in order, because
//! their times are examined next.

use std::cmp::Reverse;
use std::ops::Range;

use handlescope_model::tables::{Allocator, ResourceKind};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, StackIdx, sentinel};
use hashbrown::HashSet;

use super::group::{AcquisitionOwner, says_more};
use crate::acquisition_table::AcquisitionTable;
use crate::amounts::Amount;
use crate::criteria::StackTrims;
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::groups::{GroupNodes, counting_sort};
use crate::program_frames::AcquiringFunctions;
use crate::stacks::StackSet;
use crate::trimmed_stacks::TrimmedStacks;

/// The allocations of processes by kind and stack.
pub struct Sites {
    pub sites: Vec<Site>,
    /// The rows of all sites, one site after the other.
    pub rows: Vec<AcquisitionIdx>,
    /// Number of selected rows, including sites that are not kept.
    pub selected_count: usize,
    pub stacks: TrimmedStacks,
    /// The allocating functions, if only leaking sites are kept.
    pub functions: Option<AcquiringFunctions>,
}

/// Which sites are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptSites {
    /// Sites with anything never freed, and others of the same function.
    Leaking,
    All,
    /// All, separately for each allocator.
    ByAllocator,
}

/// The allocations of one process and kind on one stack.
#[derive(Default)]
pub struct Site {
    /// The first of its allocators.
    pub allocator: Option<AllocatorIdx>,
    /// The stack; one of several with the same functions.
    pub stack: Option<StackIdx>,
    /// Whether any of it was never freed.
    pub leaks: bool,
    /// Where its rows are in [`Sites::rows`], in time order within each allocator.
    pub members: Range<usize>,
}

impl Sites {
    /// Groups the selected rows.
    pub fn new(
        table: &AcquisitionTable,
        is_selected: impl Fn(&usize) -> bool,
        kept: KeptSites,
        frames: &Frames<'_>,
    ) -> Result<Self, QueryError> {
        let by_allocator = kept == KeptSites::ByAllocator;
        let (owners, _) = table.allocators.codes_by(|allocator| owner(allocator, by_allocator));
        let mut stacks = StackSet::new(frames.stacks.len());
        table
            .allocations()
            .filter(&is_selected)
            .for_each(|row| stacks.add(table.opened_stack.get(row)));
        let allocators = table.allocators.rows().iter();
        allocators.for_each(|allocator| stacks.add(allocator.create_stack));
        let stacks = TrimmedStacks::compare(frames, &stacks, &StackTrims::default())?;
        let mut nodes: GroupNodes<Site> = GroupNodes::default();
        let (mut site_of, mut selected_count) = (vec![sentinel(); table.height()], 0);
        for row in table.allocations().filter(&is_selected) {
            selected_count += 1;
            let allocator = table.allocator.get(row).unwrap_or_default();
            let owner = owners.get(allocator.row()).copied().unwrap_or_default();
            let stack = table.opened_stack.get(row);
            let stack = stack.map_or(StackIdx::NONE, |stack| stacks.equal(stack));
            site_of[row] = nodes.of(sentinel(), &[owner, stack.0], 0);
            if let Some(site) = nodes.stats_mut(site_of[row]) {
                site.allocator.get_or_insert(allocator);
                site.stack = stack.known();
                site.leaks |= table.is_unreleased(AcquisitionIdx::from_row(row));
            }
        }
        let mut sites: Vec<Site> =
            nodes.into_nodes().0.into_iter().map(|node| node.stats).collect();
        let functions =
            (kept == KeptSites::Leaking).then(|| AcquiringFunctions::new(frames, &stacks));
        let function = |site: &Site| {
            let owner = *owners.get(site.allocator?.row())?;
            Some((owner, functions.as_ref()?.of_stack(site.stack?)?))
        };
        let of_leaks: HashSet<(u32, u32)> =
            sites.iter().filter(|site| site.leaks).filter_map(function).collect();
        let is_kept: Vec<bool> = sites
            .iter()
            .map(|site| {
                kept != KeptSites::Leaking
                    || site.leaks
                    || function(site).is_some_and(|it| of_leaks.contains(&it))
            })
            .collect();
        let kept_rows = site_of.iter().enumerate().filter_map(|(row, site)| {
            let site = *site as usize;
            is_kept.get(site)?.then_some((site, row as u32))
        });
        let (rows, ends) = counting_sort(kept_rows, sites.len());
        let mut first = 0;
        for (site, end) in sites.iter_mut().zip(ends) {
            let end = end as usize;
            site.members = first..end;
            first = end;
        }
        sites.retain(|site| !site.members.is_empty());
        let rows: Vec<AcquisitionIdx> = rows.into_iter().map(AcquisitionIdx).collect();
        if by_allocator {
            sites.sort_by_cached_key(|site| {
                rank(site, rows.get(site.members.clone()).unwrap_or_default(), table)
            });
        }
        Ok(Self { sites, rows, selected_count, stacks, functions })
    }
}

/// Returns the sort key of a site with these rows: worst leaks first, then by start.
fn rank(site: &Site, rows: &[AcquisitionIdx], table: &AcquisitionTable) -> impl Ord + use<> {
    let (mut leaked, mut bytes, mut first_ns) = (Amount::default(), 0_i64, None);
    for resource in rows {
        let size = table.size.get(resource.row()).unwrap_or_default();
        if table.is_unreleased(*resource) {
            leaked.add(Amount { count: 1, bytes: size });
        }
        bytes = bytes.saturating_add(size);
        first_ns = first_ns.into_iter().chain(table.opened_ns.get(resource.row())).min();
    }
    let most_first = Reverse((leaked.bytes, leaked.count, bytes));
    (most_first, first_ns, site.allocator, site.stack.unwrap_or(StackIdx::NONE))
}

/// Returns what tells allocators apart: process and kind, and the name if it says what is allocated or is requested.
fn owner(allocator: &Allocator, by_allocator: bool) -> (u32, AcquisitionOwner, Option<&str>) {
    let kind = ResourceKind::from_code(allocator.kind);
    let name = Some(allocator.name.as_str())
        .filter(|name| by_allocator || kind.is_some_and(|kind| says_more(kind, name)));
    (allocator.kind, (allocator.process, allocator.pid), name)
}
