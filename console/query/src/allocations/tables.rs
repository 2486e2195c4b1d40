//! Where allocations and frees without an allocation are read from, and the kinds of allocations.

use std::sync::Arc;

use handlescope_model::tables::{Acquisitions, ResourceKind, ResourceMissKind, ResourceMisses};
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, Number, Numbers, ResourceMissIdx, StackIdx, Trace,
};

use crate::acquisition_table::{AcquisitionTable, AllocatorList};
use crate::context::FileContext;
use crate::error::QueryError;
use crate::frame_names::Frames;
use crate::suspect_rows::SuspectRows;
use crate::tables::ProcessList;
use handlescope_session::cancel::Cancel;

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

/// Where allocations are read from.
#[derive(Clone, Copy)]
pub struct AllocationSource<'a> {
    pub trace: &'a Trace,
    pub table: &'a Arc<AcquisitionTable>,
    pub processes: &'a ProcessList,
    pub frames: &'a Frames<'a>,
    /// The allocations of the requested suspect.
    pub suspect: Option<&'a SuspectRows>,
    pub cancel: &'a Cancel,
}

impl<'a> AllocationSource<'a> {
    /// Makes the origin of a trace with loaded stacks; `None` if they are not loaded.
    pub fn new(file: &'a FileContext<'a>, table: &'a Arc<AcquisitionTable>) -> Option<Self> {
        Some(Self {
            trace: file.trace,
            table,
            processes: &file.processes,
            frames: file.frames.as_ref()?,
            suspect: file.suspect.as_ref(),
            cancel: file.cancel,
        })
    }
}

/// The tables to filter.
pub struct FilteredTables<'a> {
    pub origin: AllocationSource<'a>,
    pub misses: MissTable,
}

/// An allocation, or else a free without one or an ignored event.
#[derive(Debug, Clone, Copy)]
pub enum AllocationOrMiss {
    Allocation(AcquisitionIdx),
    Miss(ResourceMissIdx),
}

impl AllocationOrMiss {
    pub fn allocation(self) -> Option<AcquisitionIdx> {
        match self {
            Self::Allocation(row) => Some(row),
            Self::Miss(_) => None,
        }
    }

    /// Returns its number from the column of allocations or of frees without one.
    pub fn number<T: Number>(self, rows: &Numbers<T>, misses: &Numbers<T>) -> Option<T> {
        match self {
            Self::Allocation(row) => rows.get(row.row()),
            Self::Miss(row) => misses.get(row.row()),
        }
    }
}

impl<'a> FilteredTables<'a> {
    pub fn load(origin: AllocationSource<'a>) -> Result<Self, QueryError> {
        Ok(Self { origin, misses: MissTable::load(origin.trace)? })
    }

    /// Returns the number of allocations and frees without one.
    pub fn height(&self) -> usize {
        self.origin.table.allocations().len() + self.misses.len()
    }

    /// Returns one of these; allocations come first.
    pub fn row(&self, index: usize) -> AllocationOrMiss {
        let allocations = self.origin.table.allocations();
        match index.checked_sub(allocations.len()) {
            Some(miss) => AllocationOrMiss::Miss(ResourceMissIdx::from_row(miss)),
            None => {
                AllocationOrMiss::Allocation(AcquisitionIdx::from_row(allocations.start + index))
            }
        }
    }

    pub fn allocator(&self, row: AllocationOrMiss) -> Option<AllocatorIdx> {
        row.number(&self.origin.table.allocator, &self.misses.allocator)
    }

    pub fn time_ns(&self, row: AllocationOrMiss) -> Option<i64> {
        row.number(&self.origin.table.opened_ns, &self.misses.time_ns)
    }

    pub fn size(&self, row: AllocationOrMiss) -> Option<i64> {
        row.number(&self.origin.table.size, &self.misses.size)
    }
}

/// Returns the kinds allocated in a trace, in the order of [`ResourceKind`].
///
/// # Errors
/// If the archive is damaged.
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
    Ok(ResourceKind::ALL
        .into_iter()
        .filter(|kind| {
            allocators
                .rows()
                .iter()
                .zip(&is_used)
                .filter(|(_, is_used)| **is_used)
                .any(|(allocator, _)| allocator.kind == kind.code())
        })
        .collect())
}
