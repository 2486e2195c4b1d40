//! Groups of allocations, worst leaks first.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use handlescope_model::tables::TraceInfo;
use handlescope_model::tables::{End, ResourceEnd};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx, StackIdx, sentinel};

use super::counted::Counter;
use super::keys::{ResourceKeys, bytes};
use super::stats::ResourceStats;
use crate::allocations::FilteredTables;
use crate::criteria::{ResourceColumn, ResourceCriteria};
use crate::error::QueryError;
use crate::growth::{TimeParts, TimeWindow, TimedChange};
use crate::info::recorded;
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::values::TopN;

/// Groups of allocations.
pub struct ResourceGroups {
    /// Columns in which the allocations of each group agree.
    pub by: Vec<ResourceColumn>,
    /// The groups; those with the most bytes never freed come first.
    pub rows: Vec<ResourceGroup>,
    /// Number of groups not among the rows.
    pub left_out: usize,
    /// Trimmed stacks that the groups share.
    pub stacks: Option<TrimmedStacks>,
    /// Changes by group number, those of each group in order of time.
    changes: Vec<(u32, TimedChange)>,
}

impl ResourceGroups {
    /// Keeps some of the rows in order and counts the others.
    pub fn cut(&mut self, TopN { take, skip }: TopN) {
        let before = self.rows.len();
        let end = skip.saturating_add(take);
        self.rows.truncate(end);
        self.rows.drain(..skip.min(self.rows.len()));
        self.left_out += before - self.rows.len();
    }

    /// Returns the changes in bytes or numbers of a group in order of time; empty unless requested.
    pub fn changes(&self, group: &ResourceGroup) -> impl Iterator<Item = TimedChange> {
        let changes = self.changes.get(group.changes.clone()).unwrap_or_default();
        changes.iter().map(|(_, change)| *change)
    }
}

/// What groups have in common: a code in each column. All columns about allocators share the first code.
struct GroupKeys {
    columns: Vec<Option<ResourceColumn>>,
    codes: Vec<u32>,
}

impl GroupKeys {
    fn of(&self, group: u32) -> &[u32] {
        let (group, width) = (group as usize, self.columns.len());
        self.codes.get(group * width..(group + 1) * width).unwrap_or_default()
    }
}

/// A group of allocations.
pub struct ResourceGroup {
    /// Stats of the group.
    pub stats: ResourceStats,
    /// Bytes or numbers allocated at the ends of parts of the trace, if requested.
    pub over_time: Option<Vec<i64>>,
    changes: Range<usize>,
    /// Its place among the keys.
    group: u32,
    keys: Arc<GroupKeys>,
    allocator: Option<AllocatorIdx>,
}

impl ResourceGroup {
    /// Returns the first of its allocators, if they have anything in common.
    pub fn allocator(&self) -> Option<AllocatorIdx> {
        self.allocator
    }

    fn codes(&self, column: ResourceColumn) -> impl Iterator<Item = u32> {
        self.keys
            .columns
            .iter()
            .zip(self.keys.of(self.group))
            .filter(move |(of, _)| **of == Some(column))
            .map(|(_, code)| *code)
    }

    /// Returns the number shared in a column of rows, words or other 32-bit numbers.
    pub fn number(&self, column: ResourceColumn) -> Option<u32> {
        self.codes(column).next().filter(|number| *number != sentinel())
    }

    /// Returns the bytes shared in a column of bytes.
    pub fn bytes(&self, column: ResourceColumn) -> Option<i64> {
        let mut halves = self.codes(column);
        Some(bytes(halves.next()?, halves.next()?))
    }

    /// Returns the stack shared in a column of stacks; one of several with the same functions.
    pub fn stack(&self, column: ResourceColumn) -> Option<StackIdx> {
        self.number(column).map(StackIdx)
    }

    /// Returns the stack that allocated.
    pub fn create_stack(&self) -> Option<StackIdx> {
        self.stack(ResourceColumn::CreateStack)
    }

    /// Returns the end that the allocations share.
    pub fn end(&self) -> Option<ResourceEnd> {
        End::from_code(self.number(ResourceColumn::End)?)?.of_allocation()
    }
}

/// A request to one trace.
pub struct GroupingRequest<'a> {
    pub tables: &'a FilteredTables<'a>,
    pub criteria: &'a ResourceCriteria,
    pub info: &'a TraceInfo,
}

impl GroupingRequest<'_> {
    /// Groups allocations, and events without one.
    pub fn groups(
        &self,
        by: &[ResourceColumn],
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<ResourceGroups, QueryError> {
        let keys =
            ResourceKeys::load(self.tables, by, &self.criteria.choice.groups.trims, rows, misses)?;
        let parts = self.criteria.buckets.filter(|_| self.info.has_clock());
        let timeline = parts.map(|parts| TimeParts::new(self.window(), parts));
        let counter = Counter {
            keys: &keys,
            tables: self.tables,
            timeline: timeline.as_ref(),
            by_count: self.criteria.by_count,
            keeps_changes: self.criteria.keeps_changes,
        };
        let counts = counter.count(rows, misses)?;
        let (nodes, codes) = counts.groups.into_nodes();
        let keys_of_groups = Arc::new(GroupKeys { columns: keys.columns(), codes });
        let mut order: Vec<_> =
            (0..).zip(&nodes).map(|(at, node)| (rank(&node.stats.stats), at)).collect();
        order.sort_unstable_by(|(one_rank, one), (other_rank, other)| {
            let of = |group: &u32| keys_of_groups.of(*group);
            one_rank.cmp(other_rank).then_with(|| of(one).cmp(of(other)))
        });
        let firsts = keys.first_allocators();
        // A group over all allocators has none.
        let has_allocator = by.iter().any(|column| column.is_of_allocator());
        let start = |group: u32| counts.moments.partition_point(|(number, _)| *number < group);
        let groups = order.iter().filter_map(|(_, group)| {
            let node = nodes.get(*group as usize)?;
            let allocator = firsts.get(node.code as usize).filter(|_| has_allocator);
            let counted = &node.stats;
            Some(ResourceGroup {
                stats: counted.stats,
                over_time: timeline.as_ref().map(|timeline| timeline.sums(&counted.changes)),
                changes: start(*group)..start(group + 1),
                group: *group,
                keys: Arc::clone(&keys_of_groups),
                allocator: allocator.copied(),
            })
        });
        let (rows, changes) = (groups.collect(), counts.moments);
        Ok(ResourceGroups { by: by.to_vec(), rows, left_out: 0, stacks: keys.stacks, changes })
    }

    /// Returns the time range of the trace.
    pub fn window(&self) -> TimeWindow {
        recorded(self.info, self.tables.resources.last_opened_ns().unwrap_or_default())
    }
}

/// Returns the sort key of a group: those with the most bytes never freed come first.
fn rank(stats: &ResourceStats) -> impl Ord + use<> {
    let unreleased = (Reverse(stats.unreleased_bytes()), Reverse(stats.unreleased()));
    (unreleased, Reverse(stats.alloc_bytes), stats.first_ns)
}
