//! The columns of allocations, and their allocators and kinds.

use std::ops::Range;

use handlescope_model::rules::{is_freed, is_never_freed};
use handlescope_model::tables::{
    Acquisitions, Allocator, Allocators, End, ResourceEnd, ResourceKind, ResourceMissKind,
    ResourceMisses,
};
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, Key, Number, Numbers, ProcessIdx, ResourceMissIdx, StackIdx,
    TableRows, Trace,
};

use crate::criteria::{ResourceCriteria, StackTest};
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::suspect_rows::SuspectRows;
use crate::tables::ProcessList;
use handlescope_session::cancel::Cancel;

/// Allocators of a trace.
pub struct AllocatorList(Vec<Allocator>);

impl AllocatorList {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self(Allocators::read(trace)?.rows().collect()))
    }

    pub fn rows(&self) -> &[Allocator] {
        &self.0
    }

    pub fn get(&self, allocator: AllocatorIdx) -> Option<&Allocator> {
        self.0.get(allocator.row())
    }
}

/// Columns of allocations that only some questions need.
#[derive(Debug, Clone, Copy)]
pub struct Needed {
    pub end_time: bool,
    pub end_stack: bool,
}

/// The columns of allocations that are counted. What is not needed has no rows.
pub struct ResourceTable {
    pub allocator: Numbers<AllocatorIdx>,
    pub size: Numbers<i64>,
    part_of: Numbers<AcquisitionIdx>,
    pub time_ns: Numbers<i64>,
    pub stack: Numbers<StackIdx>,
    pub end: Numbers<u32>,
    /// The first allocation: handles and views stand before.
    first: usize,
    pub end_time_ns: Numbers<i64>,
    pub end_stack: Numbers<StackIdx>,
    pub free_call: Numbers<u32>,
    /// Whether the allocation ended in parts, by row; empty where none did.
    is_in_parts: Vec<bool>,
}

impl Needed {
    /// The columns that the answer to these criteria needs.
    pub fn for_criteria(criteria: &ResourceCriteria) -> Self {
        Self {
            end_time: criteria.buckets.is_some() || criteria.is_compared,
            end_stack: criteria.free_stack.is_some(),
        }
    }
}

impl ResourceTable {
    /// The stack of each allocation, with the process of its allocator.
    pub fn stacks_of_processes<'t>(
        &'t self,
        allocators: &'t AllocatorList,
    ) -> impl Iterator<Item = (Option<StackIdx>, Option<ProcessIdx>)> + 't {
        self.rows().map(|row| {
            let allocator = self.allocator.get(row).and_then(|row| allocators.get(row));
            (self.stack.get(row), allocator.and_then(|allocator| allocator.process))
        })
    }

    pub fn load(trace: &Trace, needed: Needed) -> Result<Self, QueryError> {
        let part_of = trace.values(Acquisitions::part_of)?;
        Ok(Self {
            allocator: trace.values(Acquisitions::allocator)?,
            size: trace.values(Acquisitions::size)?,
            time_ns: trace.values(Acquisitions::opened_ns)?,
            stack: trace.values(Acquisitions::opened_stack)?,
            end: trace.values(Acquisitions::end)?,
            first: trace.event_table()?.allocations,
            end_time_ns: read(trace, Acquisitions::ended_ns, needed.end_time)?,
            end_stack: read(trace, Acquisitions::ended_stack, needed.end_stack)?,
            free_call: trace.values(Acquisitions::free_call)?,
            is_in_parts: in_parts(&part_of),
            part_of,
        })
    }

    /// Rows of the allocations.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.height()
    }

    /// Number of rows of the table, including those of handles and views.
    pub fn height(&self) -> usize {
        self.end.len()
    }

    /// The latest time at which something was allocated.
    pub fn last_opened_ns(&self) -> Option<i64> {
        self.time_ns.iter().skip(self.first).flatten().max()
    }

    /// The latest time at which something was allocated or ended.
    pub fn last_ns(&self) -> Option<i64> {
        self.end_time_ns.iter().skip(self.first).flatten().chain(self.last_opened_ns()).max()
    }

    /// Whether it is a part of an allocation, and not the first.
    pub fn is_further_part(&self, resource: AcquisitionIdx) -> bool {
        self.part_of.get(resource.row()).is_some()
    }

    /// End of an allocation.
    pub fn end(&self, resource: AcquisitionIdx) -> Option<ResourceEnd> {
        End::from_code(self.end.get(resource.row())?)?.of_allocation()
    }

    /// Whether nothing freed an allocation.
    pub fn is_unreleased(&self, resource: AcquisitionIdx) -> bool {
        self.end(resource).is_some_and(is_never_freed)
    }

    /// Whether anything but the end of its process freed an allocation.
    pub fn is_freed(&self, resource: AcquisitionIdx) -> bool {
        self.end(resource).is_some_and(is_freed)
    }

    /// The first part of an allocation, where it ended in parts.
    pub fn first_part(&self, resource: AcquisitionIdx) -> Option<AcquisitionIdx> {
        let row = resource.row();
        let is_in_parts = self.is_in_parts.get(row).copied().unwrap_or_default();
        is_in_parts.then(|| self.part_of.get(row).unwrap_or(resource))
    }

    /// The bytes of whole allocations by row, where any ended in parts.
    pub fn whole_sizes(&self) -> Option<Vec<i64>> {
        if self.is_in_parts.is_empty() {
            return None;
        }
        let mut sizes: Vec<i64> = vec![0; self.height()];
        let first =
            |row: usize| self.first_part(AcquisitionIdx::of(row)).map_or(row, AcquisitionIdx::row);
        for row in self.rows() {
            if let Some(sum) = sizes.get_mut(first(row)) {
                *sum = sum.saturating_add(self.size.get(row).unwrap_or_default());
            }
        }
        let whole = (0..sizes.len()).map(|row| sizes.get(first(row)).copied().unwrap_or_default());
        Some(whole.collect())
    }
}

/// A column, if it is needed.
fn read<T: Number>(
    trace: &Trace,
    key: Key<Acquisitions, Option<T>>,
    is_needed: bool,
) -> Result<Numbers<T>, QueryError> {
    Ok(if is_needed { trace.values(key)? } else { Numbers::default() })
}

/// Whether each row is a part, or has parts.
fn in_parts(part_of: &Numbers<AcquisitionIdx>) -> Vec<bool> {
    let mut is_in_parts = Vec::new();
    if !part_of.has_any() {
        return is_in_parts;
    }
    for row in 0..part_of.len() {
        let Some(first) = part_of.get(row) else { continue };
        if is_in_parts.is_empty() {
            is_in_parts.resize(part_of.len(), false);
        }
        for index in [row, first.row()] {
            if let Some(is_in_parts) = is_in_parts.get_mut(index) {
                *is_in_parts = true;
            }
        }
    }
    is_in_parts
}

/// The columns of frees without allocation and of ignored events.
pub struct MissTable {
    pub allocator: Numbers<AllocatorIdx>,
    pub kind: Numbers<u32>,
    pub size: Numbers<i64>,
    pub time_ns: Numbers<i64>,
    pub stack: Numbers<StackIdx>,
}

impl MissTable {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self {
            allocator: trace.values(ResourceMisses::allocator)?,
            kind: trace.values(ResourceMisses::what)?,
            size: trace.values(ResourceMisses::size)?,
            time_ns: trace.values(ResourceMisses::time_ns)?,
            stack: trace.values(ResourceMisses::stack)?,
        })
    }

    pub fn len(&self) -> usize {
        self.allocator.len()
    }

    pub fn is_orphan_free(&self, miss: ResourceMissIdx) -> bool {
        self.kind.get(miss.row()) == Some(ResourceMissKind::OrphanFree.code())
    }
}

/// Tables that are filtered.
pub struct Tables<'a> {
    pub allocators: &'a AllocatorList,
    pub resources: &'a ResourceTable,
    pub misses: &'a MissTable,
    pub processes: &'a ProcessList,
    pub frames: &'a Frames<'a>,
    /// The allocations of the suspect that is asked for.
    pub suspect: Option<&'a SuspectRows>,
    pub cancel: &'a Cancel,
}

/// An allocation, or a free without one or an ignored event.
#[derive(Debug, Clone, Copy)]
pub enum ResourceRow {
    Allocation(AcquisitionIdx),
    Miss(ResourceMissIdx),
}

impl ResourceRow {
    pub fn allocation(self) -> Option<AcquisitionIdx> {
        match self {
            Self::Allocation(row) => Some(row),
            Self::Miss(_) => None,
        }
    }
}

impl Tables<'_> {
    /// Every row, allocations first.
    pub fn rows(&self) -> impl Iterator<Item = ResourceRow> {
        let allocations =
            self.resources.rows().map(AcquisitionIdx::of).map(ResourceRow::Allocation);
        allocations.chain((0..self.misses.len()).map(ResourceMissIdx::of).map(ResourceRow::Miss))
    }

    pub fn allocator(&self, row: ResourceRow) -> Option<AllocatorIdx> {
        match row {
            ResourceRow::Allocation(row) => self.resources.allocator.get(row.row()),
            ResourceRow::Miss(row) => self.misses.allocator.get(row.row()),
        }
    }

    pub fn time_ns(&self, row: ResourceRow) -> Option<i64> {
        match row {
            ResourceRow::Allocation(row) => self.resources.time_ns.get(row.row()),
            ResourceRow::Miss(row) => self.misses.time_ns.get(row.row()),
        }
    }

    pub fn size(&self, row: ResourceRow) -> Option<i64> {
        match row {
            ResourceRow::Allocation(row) => self.resources.size.get(row.row()),
            ResourceRow::Miss(row) => self.misses.size.get(row.row()),
        }
    }

    /// The stack that allocated or freed.
    pub fn stack(&self, test: StackTest, row: ResourceRow) -> Option<StackIdx> {
        match (test, row) {
            (StackTest::Create, ResourceRow::Allocation(row)) => {
                self.resources.stack.get(row.row())
            }
            (StackTest::Create, ResourceRow::Miss(_)) => None,
            (StackTest::Free, ResourceRow::Allocation(row)) => {
                self.resources.end_stack.get(row.row())
            }
            (StackTest::Free, ResourceRow::Miss(row)) => self.misses.stack.get(row.row()),
        }
    }

    /// Whether that stack, or its lack, counts: an allocation that was not freed has no stack of a free, however its
    /// process ended.
    pub fn has_stack(&self, test: StackTest, row: ResourceRow) -> bool {
        test == StackTest::Create || row.allocation().is_none_or(|row| self.resources.is_freed(row))
    }
}

/// The kinds that something was allocated of in a trace, in the order of [`ResourceKind`].
///
/// # Errors
/// When the archive is damaged.
pub fn allocated_kinds(trace: &Trace) -> Result<Vec<ResourceKind>, QueryError> {
    let allocators = AllocatorList::load(trace)?;
    let rows = trace.values(Acquisitions::allocator)?;
    let mut is_used = vec![false; allocators.rows().len()];
    for row in 0..rows.len() {
        if let Some(is_used) = rows.get(row).and_then(|allocator| is_used.get_mut(allocator.row()))
        {
            *is_used = true;
        }
    }
    let kinds = ResourceKind::ALL.into_iter().filter(|kind| {
        let mut used = allocators.rows().iter().zip(&is_used).filter(|(_, is_used)| **is_used);
        used.any(|(allocator, _)| allocator.kind == kind.code())
    });
    Ok(kinds.collect())
}
