//! Tables of allocations.

use std::sync::mpsc::SyncSender;
use std::thread;

use handlescope_model::history::allocation_origin;
use handlescope_model::tables::{
    AcquisitionKind, Acquisitions, Allocator, Allocators, End, ResourceEnd, ResourceMiss,
    ResourceMisses,
};
use handlescope_model::{
    AcquisitionIdx, AllocatorIdx, ArchiveWriter, Cancel, Cancelled, Poll, ProcessIdx,
    ROW_GROUP_ROWS, StackIdx, Table,
};
use polars::prelude::{DataFrame, PolarsResult};

use super::batches::{BatchesAhead, send_in_batches, write_in_batches};
use crate::collect::Collector;
use crate::error::ExtractError;
use crate::etl::Clock;
use crate::lifecycle::{AllocationColumns, AllocationOwner, AllocatorRow, Miss, known};
use crate::stacks::StackResolver;

/// Allocations without their stacks.
struct ResourceRows<'a> {
    rows: Acquisitions,
    /// Allocation of each row, as an index into the columns.
    allocations: &'a [u32],
}

/// Inputs for the tables of allocations.
pub struct ResourceTables<'a> {
    pub collected: &'a Collector,
    pub clock: &'a Clock,
    pub columns: &'a AllocationColumns,
}

impl ResourceTables<'_> {
    /// Returns the allocators with their stacks.
    pub fn allocators(&self, resolver: &mut StackResolver<'_>) -> Allocators {
        self.columns.allocators.iter().map(|row| self.allocator(row, resolver)).collect()
    }

    /// Sends the allocations; their rows begin at `first`. One thread makes rows, a second resolves their stacks, and
    /// another encodes.
    pub fn send_allocations(
        &self,
        first: u32,
        to: &SyncSender<PolarsResult<DataFrame>>,
        resolver: &mut StackResolver<'_>,
        cancel: &Cancel,
    ) -> Result<(), ExtractError> {
        let order = AllocationOrder::new(self);
        let mut batches = order.allocations.chunks(ROW_GROUP_ROWS);
        let next = || {
            cancel.check()?;
            Ok(batches.next().map(|allocations| ResourceRows {
                rows: self.rows(allocations, first, &order),
                allocations,
            }))
        };
        thread::scope(|scope| {
            let mut batches = BatchesAhead::start(scope, next);
            let with_stacks = || Ok(batches.next()?.map(|batch| self.with_stacks(batch, resolver)));
            send_in_batches(to, with_stacks, Acquisitions::into_frame, cancel)
        })
    }

    /// Returns the rows of a part with the stacks of allocation and free.
    fn with_stacks(
        &self,
        batch: ResourceRows<'_>,
        resolver: &mut StackResolver<'_>,
    ) -> Acquisitions {
        let ResourceRows { mut rows, allocations } = batch;
        let stacks = allocations.iter().map(|allocation| {
            let at = *allocation as usize;
            let stack = self.stack(self.columns.row[at], resolver);
            (stack, self.stack(self.columns.end_row[at], resolver))
        });
        (rows.opened_stack, rows.ended_stack) = stacks.unzip();
        rows
    }

    pub fn write_misses(
        &self,
        writer: &mut ArchiveWriter,
        resolver: &mut StackResolver<'_>,
        cancel: &Cancel,
    ) -> Result<(), ExtractError> {
        let (mut misses, mut poll) = (self.columns.misses.iter(), Poll::new(cancel));
        let next = || {
            let mut batch = ResourceMisses::default();
            while batch.len() < ROW_GROUP_ROWS
                && let Some(miss) = misses.next()
            {
                poll.round()?;
                batch.push(self.miss(miss, resolver));
            }
            Ok::<_, Cancelled>((!batch.is_empty()).then_some(batch))
        };
        write_in_batches(writer, Table::ResourceMisses, next, ResourceMisses::into_frame, cancel)
    }

    fn allocator(&self, row: &AllocatorRow, resolver: &mut StackResolver<'_>) -> Allocator {
        let AllocatorRow { kind, owner, created, destroyed, .. } = *row;
        Allocator {
            kind: kind.code(),
            name: row.name.clone(),
            provider: row.provider.clone(),
            process: owner.process().map(ProcessIdx),
            pid: self.pid(owner),
            created_ns: self.time(created),
            create_stack: self.stack(created, resolver),
            destroyed_ns: self.time(destroyed),
        }
    }

    fn pid(&self, owner: AllocationOwner) -> Option<u32> {
        match owner {
            AllocationOwner::Pid(pid) => known(pid),
            AllocationOwner::Process(row) => {
                let process = self.collected.processes.rows.get(row as usize)?;
                Some(process.process.pid)
            }
        }
    }

    /// Returns the rows of some allocations without their stacks. Columns without values stay empty.
    fn rows(&self, allocations: &[u32], first: u32, order: &AllocationOrder) -> Acquisitions {
        let columns = self.columns;
        let all = || allocations.iter().map(|allocation| *allocation as usize);
        let allocator = |at: usize| &columns.allocators[columns.allocator[at] as usize];
        let origins: Vec<_> = if columns.has_origins() {
            allocations.iter().map(|allocation| columns.origin(*allocation)).collect()
        } else {
            Vec::new()
        };
        let earlier = |allocation| order.row_of(allocation, first);
        let grown_from: Vec<_> = origins.iter().map(|it| earlier(it.grown_from)).collect();
        let origin = |row: usize| {
            let is_grown = grown_from.get(row).is_some_and(Option::is_some);
            allocation_origin(is_grown).code()
        };
        Acquisitions {
            kind: all().map(|at| AcquisitionKind::from(allocator(at).kind).code()).collect(),
            allocator: all().map(|at| Some(AllocatorIdx(columns.allocator[at]))).collect(),
            process: all().map(|at| allocator(at).owner.process().map(ProcessIdx)).collect(),
            key: all().map(|at| columns.key[at]).collect(),
            size: all().map(|at| Some(columns.size[at])).collect(),
            origin: (0..allocations.len()).map(origin).collect(),
            opened_ns: all()
                .map(|at| Some(self.time(columns.row[at]).unwrap_or_default()))
                .collect(),
            opened_tid: all().map(|at| self.tid(columns.row[at])).collect(),
            opened_by: origins.iter().map(|it| known(it.caller).map(ProcessIdx)).collect(),
            end: all().map(|at| End::from(columns.end[at]).code()).collect(),
            ended_ns: all()
                .map(|at| match columns.end[at] {
                    ResourceEnd::AtExit => self.exit_time(columns.allocator[at]),
                    _ => self.time(columns.end_row[at]),
                })
                .collect(),
            ended_tid: all().map(|at| self.tid(columns.end_row[at])).collect(),
            part_of: origins.iter().map(|it| earlier(it.part_of)).collect(),
            free_call: origins.iter().map(|it| known(it.free_call)).collect(),
            grown_from,
            ..Acquisitions::default()
        }
    }

    fn miss(&self, miss: &Miss, resolver: &mut StackResolver<'_>) -> ResourceMiss {
        ResourceMiss {
            allocator: AllocatorIdx(miss.allocator),
            what: miss.kind.code(),
            key: miss.key,
            size: miss.size,
            time_ns: self.time(miss.row).unwrap_or_default(),
            tid: self.tid(miss.row),
            stack: self.stack(miss.row, resolver),
        }
    }

    fn exit_time(&self, allocator: u32) -> Option<i64> {
        let process = self.columns.allocators.get(allocator as usize)?.owner.process()?;
        let end = self.collected.processes.rows.get(process as usize)?.end?;
        Some(self.clock.ns(end))
    }

    fn time(&self, row: u32) -> Option<i64> {
        let time = self.collected.shared.timeline.time.get(row as usize)?;
        Some(self.clock.ns(*time))
    }

    fn tid(&self, row: u32) -> Option<u32> {
        let tid = self.collected.shared.timeline.tid.get(row as usize)?;
        known(*tid)
    }

    fn stack(&self, row: u32, resolver: &mut StackResolver<'_>) -> Option<StackIdx> {
        let Collector { stacks, shared, .. } = self.collected;
        let row = known(row)? as usize;
        resolver.of_row(&stacks.events, &shared.timeline, row).map(StackIdx)
    }
}

/// Order of the allocations in their table: by allocator, then by time.
struct AllocationOrder {
    allocations: Vec<u32>,
    /// Row of each allocation; empty if no allocation refers to another.
    rows: Vec<u32>,
}

impl AllocationOrder {
    fn new(tables: &ResourceTables<'_>) -> Self {
        let (columns, times) = (tables.columns, &tables.collected.shared.timeline.time);
        let (mut allocations, ends) = by_allocator(columns);
        let time = |allocation: &u32| times[columns.row[*allocation as usize] as usize];
        let mut first = 0;
        for end in ends {
            let group = &mut allocations[first..end as usize];
            // Reallocations and damaged files are not in time order.
            if !group.is_sorted_by_key(time) {
                group.sort_by_key(time);
            }
            first = end as usize;
        }
        let mut rows = Vec::new();
        if columns.has_origins() {
            rows.resize(allocations.len(), 0);
            for (row, allocation) in (0..).zip(&allocations) {
                rows[*allocation as usize] = row;
            }
        }
        Self { allocations, rows }
    }

    /// Returns the table row of an allocation; `first` is the row of the first one.
    fn row_of(&self, allocation: u32, first: u32) -> Option<AcquisitionIdx> {
        let row = self.rows.get(known(allocation)? as usize)?;
        Some(AcquisitionIdx(first + row))
    }
}

/// Returns the allocations by allocator, otherwise in their order, and the end of each allocator's range.
fn by_allocator(columns: &AllocationColumns) -> (Vec<u32>, Vec<u32>) {
    let mut next = vec![0_u32; columns.allocators.len()];
    for allocator in &columns.allocator {
        next[*allocator as usize] += 1;
    }
    let mut sum = 0;
    for count in &mut next {
        sum += std::mem::replace(count, sum);
    }
    let mut allocations = vec![0; columns.len()];
    for (allocation, allocator) in (0..).zip(&columns.allocator) {
        let next = &mut next[*allocator as usize];
        allocations[*next as usize] = allocation;
        *next += 1;
    }
    // Each start has moved to the end of its allocator.
    (allocations, next)
}
