//! The allocations of a trace in groups of one process, kind and create stack, and heaps that are never destroyed.

use std::borrow::Cow;
use std::sync::Arc;

use handlescope_model::AllocatorIdx;
use handlescope_model::tables::{Allocator, ResourceKind};

use super::group::{AcquisitionGroup, AcquisitionOwner, PRIVATE_HEAP};
use super::heaps::CreatedHeaps;
use super::list::AcquisitionGroups;
use super::sites::{KeptSites, Sites};
use crate::acquisition_table::kind_name;
use crate::allocations::{AllocationSource, FilteredTables, ResourceSelection};
use crate::answer::Domain;
use crate::criteria::AcquisitionCriteria;
use crate::error::QueryError;
use crate::growth::TimeWindow;
use crate::info::recorded;
use crate::tables::{ProcessInfo, ProcessList};

impl<'a> AcquisitionGroups<'a> {
    /// Groups the selected allocations; `None` if the trace has none.
    ///
    /// # Errors
    /// If the archive is damaged or the query is cancelled.
    pub fn from_allocations(
        origin: AllocationSource<'a>,
        criteria: &AcquisitionCriteria,
        is_plain: bool,
        kept: KeptSites,
    ) -> Result<Option<Self>, QueryError> {
        let AllocationSource { trace, table, frames, processes, cancel, .. } = origin;
        if table.allocators.rows().is_empty() {
            return Ok(None);
        }
        let info = trace.info()?;
        let extent = recorded(&info, table.last_ns().unwrap_or_default());
        let window = info.has_clock().then_some(extent);
        // Without criteria on times and stacks, allocators decide.
        let select = || ResourceSelection::new(&FilteredTables::load(origin)?, criteria);
        let selection = criteria.chooses_allocations().then(select).transpose()?;
        let first = table.allocations().start;
        let is_requested: Vec<bool> = table
            .allocators
            .rows()
            .iter()
            .map(|allocator| {
                criteria.kinds().is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
                    && criteria.creator.matches(&process(processes, allocator), is_plain)
            })
            .collect();
        let is_selected = |row: &usize| {
            let is_requested = |allocator: AllocatorIdx| is_requested.get(allocator.row()).copied();
            table.allocator.get(*row).and_then(is_requested).unwrap_or_default()
                && selection.as_ref().is_none_or(|selection| selection.has(*row - first))
        };
        let Sites { sites, rows, selected_count, stacks, functions } =
            Sites::new(table, is_selected, kept, frames)?;
        let of_sites = sites.into_iter().filter_map(|site| {
            let allocator = table.allocators.get(site.allocator?)?;
            Some(AcquisitionGroup {
                kind: ResourceKind::from_code(allocator.kind),
                type_name: kind_name(allocator.kind),
                allocator: Some(allocator.name.as_str()),
                create_stack: site.stack,
                leaks: site.leaks,
                members: site.members,
                ..of_allocator(processes, allocator)
            })
        });
        // The requested stacks and times do not apply to heaps.
        let has_heaps = kept == KeptSites::Leaking && selection.is_none();
        let heaps = has_heaps
            .then(|| CreatedHeaps::leaking(table, &is_requested, &stacks, processes))
            .into_iter()
            .flatten();
        let of_heaps = heaps.filter_map(|heaps| {
            let allocator = table.allocators.get(heaps.first)?;
            let create_stack = heaps.stack;
            let heaps = Some(heaps);
            Some(AcquisitionGroup { create_stack, heaps, ..of_allocator(processes, allocator) })
        });
        Ok(Some(Self {
            subject: Domain::Allocations,
            table: Arc::clone(table),
            groups: of_sites.chain(of_heaps).collect(),
            members: Cow::Owned(rows),
            selected_count,
            frames: Some(frames),
            stacks: Some(Arc::new(stacks)),
            functions: functions.map(Arc::new),
            processes,
            asked: criteria.creator.clone(),
            is_plain,
            is_of_one_moment: false,
            window,
            extent: window.unwrap_or(TimeWindow { start_ns: 0, end_ns: 0 }),
            cancel,
        }))
    }
}

/// Makes a group of heaps that the process of an allocator keeps.
fn of_allocator<'a>(processes: &'a ProcessList, allocator: &Allocator) -> AcquisitionGroup<'a> {
    AcquisitionGroup {
        process: process(processes, allocator),
        kind: Some(ResourceKind::Heap),
        type_name: PRIVATE_HEAP,
        allocator: None,
        create_stack: None,
        leaks: true,
        members: 0..0,
        owner: owner(processes, allocator),
        open_at_end: 0,
        heaps: None,
    }
}

fn owner(processes: &ProcessList, allocator: &Allocator) -> AcquisitionOwner {
    let pid = || processes.known_or_invalid(allocator.process).known_pid();
    (allocator.process, allocator.pid.or_else(pid))
}

/// Returns the process of an allocator; only the id is set if the process is unknown.
fn process<'a>(processes: &'a ProcessList, allocator: &Allocator) -> Cow<'a, ProcessInfo> {
    match allocator.process {
        Some(row) => Cow::Borrowed(processes.get(row)),
        None => Cow::Owned(processes.owner(None, allocator.pid)),
    }
}
