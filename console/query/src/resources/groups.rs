//! Groups of allocations, the ones that leak most first.

use std::cmp::Reverse;
use std::ops::Range;

use handlescope_model::tables::TraceInfo;
use handlescope_model::tables::{End, ResourceEnd};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx, StackIdx, Trace};

use super::counted::Counter;
use super::keys::{Key, KeyColumns, Keys};
use super::stats::ResourceStats;
use crate::allocations::Tables;
use crate::criteria::{ResourceColumn, ResourceCriteria};
use crate::error::QueryError;
use crate::growth::{Change, TimeParts, Window};
use crate::info::recorded;
use crate::stacks::StackSet;
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::values::TopN;

/// Groups of allocations.
pub struct ResourceGroups {
    /// Columns in which the allocations of each group agree.
    pub by: Vec<ResourceColumn>,
    /// The groups: those with the most bytes that were never freed first.
    pub rows: Vec<ResourceGroup>,
    /// Number of groups that are not among the rows.
    pub left_out: usize,
    /// Stacks that they have in common, trimmed.
    pub stacks: Option<TrimmedStacks>,
    /// Groups by their numbers, each with its changes in the order of their times.
    changes: Vec<(u32, Change)>,
}

impl ResourceGroups {
    /// Keeps some of the rows, in their order, and counts the others.
    pub fn cut(&mut self, TopN { take, skip }: TopN) {
        let before = self.rows.len();
        let end = skip.saturating_add(take);
        self.rows.truncate(end);
        self.rows.drain(..skip.min(self.rows.len()));
        self.left_out += before - self.rows.len();
    }

    /// Changes in the bytes, or numbers, of a group, in the order of their times; empty unless requested.
    pub fn changes(&self, group: &ResourceGroup) -> impl Iterator<Item = Change> {
        let changes = self.changes.get(group.changes.clone()).unwrap_or_default();
        changes.iter().map(|(_, change)| *change)
    }
}

/// A group of allocations.
pub struct ResourceGroup {
    /// Stats of the group.
    pub stats: ResourceStats,
    /// Bytes, or numbers, that are allocated at the ends of parts of the trace, if that was asked for.
    pub over_time: Option<Vec<i64>>,
    changes: Range<usize>,
    key: Key,
    allocator: Option<AllocatorIdx>,
}

impl ResourceGroup {
    /// The first of their allocators, if they have anything of these in common.
    pub fn allocator(&self) -> Option<AllocatorIdx> {
        self.allocator
    }

    /// The number that they have in common in a column of rows, words or other numbers of 32 bits.
    pub fn number(&self, column: ResourceColumn) -> Option<u32> {
        self.key.number(column)
    }

    /// The bytes that they have in common in a column of these.
    pub fn bytes(&self, column: ResourceColumn) -> Option<i64> {
        self.key.bytes(column)
    }

    /// The stack that they have in common in a column of these: one of those of the same functions.
    pub fn stack(&self, column: ResourceColumn) -> Option<StackIdx> {
        self.number(column).map(StackIdx)
    }

    /// The stack that allocated.
    pub fn create_stack(&self) -> Option<StackIdx> {
        self.stack(ResourceColumn::CreateStack)
    }

    /// End that the allocations have in common.
    pub fn end(&self) -> Option<ResourceEnd> {
        End::from_code(self.number(ResourceColumn::End)?)?.of_allocation()
    }
}

/// Request to a trace.
pub struct Request<'a> {
    pub trace: &'a Trace,
    pub tables: &'a Tables<'a>,
    pub criteria: &'a ResourceCriteria,
    pub info: &'a TraceInfo,
}

impl Request<'_> {
    /// Groups some allocations, and events without any.
    pub fn groups(
        &self,
        by: &[ResourceColumn],
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<ResourceGroups, QueryError> {
        let Tables { allocators, resources, .. } = *self.tables;
        let columns = KeyColumns::load(self.trace, by)?;
        let stacks = self.equal_stacks(&columns, rows, misses)?;
        let misses_table = self.tables.misses;
        let frames = self.tables.frames;
        let keys =
            Keys::new(by, allocators, resources, misses_table, &columns, stacks.as_ref(), frames);
        let parts = self.criteria.buckets.filter(|_| self.info.has_clock());
        let timeline = parts.map(|parts| TimeParts::new(self.window(), parts));
        let counter = Counter {
            keys: &keys,
            table: resources,
            misses: self.tables.misses,
            allocators,
            timeline: timeline.as_ref(),
            by_count: self.criteria.by_count,
            keeps_changes: self.criteria.keeps_changes,
            cancel: self.tables.cancel,
        };
        let counts = counter.count(rows, misses)?;
        let firsts = keys.into_firsts();
        let over_time = |group: usize| {
            let timeline = timeline.as_ref()?;
            let start = group * timeline.width();
            let changes = counts.changes.get(start..start + timeline.width());
            Some(timeline.sums(changes.unwrap_or_default()))
        };
        let end =
            |group: usize| counts.moments.partition_point(|(number, _)| *number as usize <= group);
        // A group over all allocators has none.
        let has_base = by.iter().any(|column| column.is_of_allocator());
        let groups = counts.groups.iter().enumerate().map(|(index, (key, stats))| ResourceGroup {
            stats: *stats,
            over_time: over_time(index),
            changes: index.checked_sub(1).map_or(0, end)..end(index),
            key: *key,
            allocator: firsts.get(key.base() as usize).filter(|_| has_base).copied(),
        });
        let mut rows: Vec<ResourceGroup> = groups.collect();
        rows.sort_by_cached_key(|group| {
            let stats = &group.stats;
            let unreleased = (Reverse(stats.unreleased_bytes()), Reverse(stats.unreleased()));
            (unreleased, Reverse(stats.alloc_bytes), stats.first_ns, group.key)
        });
        let changes = counts.moments;
        Ok(ResourceGroups { by: by.to_vec(), rows, left_out: 0, stacks, changes })
    }

    /// The time of the trace.
    pub fn window(&self) -> Window {
        recorded(self.info, self.tables.resources.last_opened_ns().unwrap_or_default())
    }

    /// Compares the stacks that are grouped by.
    fn equal_stacks(
        &self,
        columns: &KeyColumns,
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<Option<TrimmedStacks>, QueryError> {
        let mut columns = columns.stacks().peekable();
        if columns.peek().is_none() {
            return Ok(None);
        }
        let frames = self.tables.frames;
        let mut stacks = StackSet::new(frames.stacks.len());
        for [of_rows, of_misses] in columns {
            rows.iter().for_each(|row| stacks.add(of_rows.get(row.row())));
            misses.iter().for_each(|row| stacks.add(of_misses.get(row.row())));
        }
        frames.resolve(stacks.iter())?;
        TrimmedStacks::compare(frames, &stacks, &self.criteria.trims).map(Some)
    }
}
