//! Groups of allocations, worst leaks first.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use handlescope_model::tables::{End, ResourceEnd, TraceInfo};
use handlescope_model::{AcquisitionIdx, AllocatorIdx, ResourceMissIdx, StackIdx, sentinel};
use rayon::prelude::*;

use super::counted::{CountedGroups, Counter};
use super::keys::{ResourceKeys, bytes};
use super::stats::ResourceStats;
use crate::allocations::FilteredTables;
use crate::amounts::Amount;
use crate::criteria::{GroupColumn, GroupCriteria};
use crate::error::QueryError;
use crate::groups::{TimedGroup, TimedMembers, counting_sort};
use crate::growth::TimeWindow;
use crate::info::recorded;
use crate::trimmed_stacks::TrimmedStacks;
use handlescope_session::values::TopN;

/// Groups of allocations.
pub struct ResourceGroups {
    /// Columns in which the allocations of each group agree.
    pub by: Vec<GroupColumn>,
    /// The groups; those with the most bytes never freed come first.
    pub rows: Vec<ResourceGroup>,
    /// Number of groups not among the rows.
    pub left_out: usize,
    /// Trimmed stacks that the groups share.
    pub stacks: Option<Arc<TrimmedStacks>>,
    /// The allocations of all groups, if they are kept.
    timed: Option<TimedMembers>,
}

impl ResourceGroups {
    /// Keeps some of the rows in order and counts the others.
    pub fn cut(&mut self, top: TopN) {
        let before = self.rows.len();
        self.rows = self.rows.drain(top.range(before)).collect();
        self.left_out += before - self.rows.len();
    }

    /// Returns the allocations of a group, if they are kept.
    pub fn members(&self, group: &ResourceGroup) -> Option<TimedGroup<'_>> {
        Some(self.timed.as_ref()?.group(vec![group.members.clone()]))
    }
}

/// A group of allocations.
pub struct ResourceGroup {
    /// Stats of the group.
    pub stats: ResourceStats,
    /// Bytes allocated at the ends of parts of the trace, if requested.
    pub over_time: Option<Vec<i64>>,
    /// Where its allocations are among those of all groups.
    members: Range<usize>,
    /// The number that its allocations share in each column that is not about allocators.
    numbers: Box<[(GroupColumn, u32)]>,
    /// The first of its allocators, if they have anything in common.
    pub allocator: Option<AllocatorIdx>,
}

impl ResourceGroup {
    /// Returns the number shared in a column of rows, words or other 32-bit numbers.
    pub fn number(&self, column: GroupColumn) -> Option<u32> {
        self.halves(column).next().filter(|number| *number != sentinel())
    }

    /// Returns the bytes shared in a column of bytes.
    pub fn bytes(&self, column: GroupColumn) -> Option<i64> {
        let mut halves = self.halves(column);
        Some(bytes(halves.next()?, halves.next()?))
    }

    /// Returns the number shared in a column, or both halves of its bytes.
    fn halves(&self, column: GroupColumn) -> impl Iterator<Item = u32> {
        let numbers = self.numbers.iter();
        numbers.filter(move |(of, _)| *of == column).map(|(_, number)| *number)
    }

    /// Returns the stack shared in a column of stacks; one of several with the same functions.
    pub fn stack(&self, column: GroupColumn) -> Option<StackIdx> {
        self.number(column).map(StackIdx)
    }

    /// Returns the stack that allocated.
    pub fn create_stack(&self) -> Option<StackIdx> {
        self.stack(GroupColumn::CreateStack)
    }

    /// Returns the end that the allocations share.
    pub fn end(&self) -> Option<ResourceEnd> {
        End::from_code(self.number(GroupColumn::End)?)?.of_allocation()
    }
}

/// A request to one trace.
pub struct GroupingRequest<'a> {
    pub tables: &'a FilteredTables<'a>,
    pub criteria: &'a GroupCriteria,
    pub info: &'a TraceInfo,
}

impl GroupingRequest<'_> {
    /// Groups allocations, and events without one.
    pub fn groups(
        &self,
        by: &[GroupColumn],
        rows: &[AcquisitionIdx],
        misses: &[ResourceMissIdx],
    ) -> Result<ResourceGroups, QueryError> {
        let keys = ResourceKeys::load(self.tables, by, &self.criteria.trims, rows, misses)?;
        let parts = self.criteria.buckets.filter(|_| self.info.has_clock());
        let keeps_members = parts.is_some() || self.criteria.keeps_members;
        let counter = Counter { keys: &keys, tables: self.tables, keeps_members };
        let CountedGroups { groups, members, .. } = counter.count(rows, misses)?;
        let (nodes, codes) = groups.into_nodes();
        let width = keys.columns.len();
        let codes_of = |group: u32| {
            let start = group as usize * width;
            codes.get(start..start + width).unwrap_or_default()
        };
        let mut order: Vec<_> =
            (0..).zip(&nodes).map(|(at, node)| (rank(&node.stats), at)).collect();
        order.sort_unstable_by(|(one_rank, one), (other_rank, other)| {
            one_rank.cmp(other_rank).then_with(|| codes_of(*one).cmp(codes_of(*other)))
        });
        let members = members.iter().zip(rows).map(|(group, row)| (*group as usize, row.0));
        let (members, ends) = counting_sort(members, nodes.len());
        let end = |group: u32| ends.get(group as usize).map_or(0, |end| *end as usize);
        let groups = order.iter().filter_map(|(_, group)| {
            let node = nodes.get(*group as usize)?;
            let numbers = keys.columns.iter().zip(codes_of(*group));
            Some(ResourceGroup {
                stats: node.stats,
                over_time: None,
                members: group.checked_sub(1).map_or(0, end)..end(*group),
                numbers: numbers.filter_map(|(of, code)| Some(((*of)?, *code))).collect(),
                allocator: keys.first_allocators.get(node.code as usize).copied(),
            })
        });
        let mut groups: Vec<ResourceGroup> = groups.collect();
        let timed = keeps_members.then(|| TimedMembers {
            rows: members.into_iter().map(AcquisitionIdx).collect(),
            table: Arc::clone(self.tables.origin.table),
        });
        if let Some((timed, parts)) = timed.as_ref().zip(parts) {
            let window = self.window();
            groups.par_iter_mut().for_each(|group| {
                let members = timed.group(vec![group.members.clone()]);
                group.over_time = Some(members.outstanding(true, window, parts));
            });
        }
        Ok(ResourceGroups {
            by: by.to_vec(),
            rows: groups,
            left_out: 0,
            stacks: keys.stacks,
            timed,
        })
    }

    /// Returns the time range of the trace.
    pub fn window(&self) -> TimeWindow {
        recorded(self.info, self.tables.origin.table.last_opened_ns().unwrap_or_default())
    }
}

/// Returns the sort key of a group: those with the most bytes never freed come first.
fn rank(stats: &ResourceStats) -> impl Ord + use<> {
    let Amount { count, bytes } = stats.unreleased();
    (Reverse((bytes, count, stats.allocated.bytes)), stats.first_ns)
}
