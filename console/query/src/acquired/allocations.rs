//! The allocations of a trace in groups of one process, kind and create stack, and heaps that are never destroyed.

use std::borrow::Cow;
use std::sync::Arc;

use handlescope_model::tables::{Allocator, ResourceKind};

use super::group::{AcquisitionGroup, AcquisitionOwner, PRIVATE_HEAP};
use super::heaps::CreatedHeaps;
use super::list::AcquisitionGroups;
use super::sites::{KeptSites, Sites};
use crate::allocations::{AllocationSource, FilteredTables, ResourceSelection};
use crate::answer::Domain;
use crate::criteria::{ResourceCriteria, kind_name};
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
        criteria: &ResourceCriteria,
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
        let mut acquired = Self {
            subject: Domain::Allocations,
            table: Arc::clone(table),
            groups: Vec::new(),
            members: Cow::default(),
            heaps: Vec::new(),
            selected_count: 0,
            frames: Some(frames),
            stacks: None,
            functions: None,
            processes,
            asked: criteria.owners.clone(),
            is_plain,
            is_of_one_moment: false,
            window,
            extent: window.unwrap_or(TimeWindow { start_ns: 0, end_ns: 0 }),
            cancel,
        };
        // Without criteria on times and stacks, allocators decide.
        let select = || ResourceSelection::new(&FilteredTables::load(origin)?, criteria);
        let selection = criteria.chooses_rows().then(select).transpose()?;
        let first = table.allocations().start;
        let is_requested: Vec<bool> = table
            .allocators
            .rows()
            .iter()
            .map(|allocator| {
                let kind = criteria.kind.as_ref();
                kind.is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
                    && acquired.matches_process(&process(processes, allocator))
            })
            .collect();
        let is_set = |flags: &[bool], index: usize| flags.get(index).copied().unwrap_or_default();
        let is_selected = |row: &usize| {
            let allocator = table.allocator.get(*row);
            allocator.is_some_and(|allocator| is_set(&is_requested, allocator.row()))
                && selection.as_ref().is_none_or(|selection| selection.has(*row - first))
        };
        let Sites { sites, rows: members, selected_count, stacks, functions } =
            Sites::new(table, is_selected, kept, frames)?;
        if kept == KeptSites::Leaking && selection.is_none() {
            acquired.heaps = CreatedHeaps::leaking(table, &is_requested, &stacks, processes);
        }
        acquired.groups.extend(sites.into_iter().filter_map(|site| {
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
        }));
        acquired.groups.extend(acquired.heaps.iter().enumerate().filter_map(|(index, heaps)| {
            Some(AcquisitionGroup {
                create_stack: heaps.stack,
                heaps: Some(index),
                ..of_allocator(processes, table.allocators.get(heaps.first)?)
            })
        }));
        acquired.members = Cow::Owned(members);
        acquired.selected_count = selected_count;
        acquired.stacks = Some(Arc::new(stacks));
        acquired.functions = functions.map(Arc::new);
        Ok(Some(acquired))
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
