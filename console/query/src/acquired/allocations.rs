//! The allocations of a trace in groups of one process, kind and create stack, and heaps that are never destroyed.

use std::borrow::Cow;
use std::sync::Arc;

use handlescope_model::rules::{has_bytes, has_lasting_names, is_named_by_allocator};
use handlescope_model::tables::{Allocator, ResourceKind};

use super::group::{AcquisitionGroup, AcquisitionOwner, PRIVATE_HEAP};
use super::heaps::CreatedHeaps;
use super::list::{AcquisitionGroups, Subject};
use super::sites::{KeptSites, Sites};
use crate::acquisition_table::AcquisitionTable;
use crate::allocations::{AllocationSource, AllocatorList, FilteredTables, ResourceSelection};
use crate::criteria::{ObjectCriteria, kind_name};
use crate::error::QueryError;
use crate::growth::TimeWindow;
use crate::info::recorded;
use crate::tables::{ProcessInfo, ProcessList};

impl<'a> AcquisitionGroups<'a> {
    /// Groups the selected allocations, given their loaded tables; `None` if the trace has none.
    ///
    /// # Errors
    /// If the archive is damaged or the query is cancelled.
    pub fn from_allocations(
        origin: AllocationSource<'a>,
        allocators: &'a AllocatorList,
        table: &Arc<AcquisitionTable>,
        criteria: &ObjectCriteria,
        is_plain: bool,
        kept: KeptSites,
    ) -> Result<Option<Self>, QueryError> {
        if allocators.rows().is_empty() {
            return Ok(None);
        }
        let AllocationSource { trace, frames, processes, cancel, .. } = origin;
        let info = trace.info()?;
        let extent = recorded(&info, table.last_ns().unwrap_or_default());
        let window = info.has_clock().then_some(extent);
        let mut acquired = Self {
            subject: Subject::Allocations,
            table: Arc::clone(table),
            groups: Vec::new(),
            members: Cow::default(),
            heaps: Vec::new(),
            selected_count: 0,
            frames: Some(frames),
            stacks: None,
            functions: None,
            processes,
            asked: criteria.creator.clone(),
            is_plain,
            is_of_one_moment: false,
            window,
            extent: window.unwrap_or(TimeWindow { start_ns: 0, end_ns: 0 }),
            cancel,
        };
        // Without criteria on times and stacks, allocators decide.
        let select =
            || ResourceSelection::new(&FilteredTables::load(origin, allocators, table)?, criteria);
        let selection = criteria.chooses_allocations().then(select).transpose()?;
        let first = table.allocations().start;
        let is_requested: Vec<bool> = allocators
            .rows()
            .iter()
            .map(|allocator| {
                criteria.kinds().is_none_or(|filter| filter.matches(kind_name(allocator.kind)))
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
            Sites::new(table, allocators, is_selected, kept, frames)?;
        if kept == KeptSites::Leaking && selection.is_none() {
            acquired.heaps =
                CreatedHeaps::leaking(table, allocators, &is_requested, &stacks, processes);
        }
        acquired.groups.extend(sites.into_iter().filter_map(|site| {
            let allocator = allocators.get(site.allocator?)?;
            let kind = ResourceKind::from_code(allocator.kind);
            Some(AcquisitionGroup {
                type_name: kind_name(allocator.kind),
                allocator: Some(allocator.name.as_str()),
                is_named_by_allocator: kind.is_some_and(is_named_by_allocator),
                has_lasting_name: kind.is_none_or(has_lasting_names),
                has_bytes: kind.is_some_and(has_bytes),
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
                ..of_allocator(processes, allocators.get(heaps.first)?)
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
        type_name: PRIVATE_HEAP,
        allocator: None,
        is_named_by_allocator: false,
        has_lasting_name: false,
        has_bytes: true,
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
