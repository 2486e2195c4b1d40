//! Selects and orders the groups of a level for output.

use std::cmp::Reverse;

use super::stats::GroupStats;
use crate::criteria::GroupCriteria;
use handlescope_session::values::TopN;

/// How the groups of a level are selected and ordered.
#[derive(Clone, Copy)]
pub struct GroupCut<'a> {
    pub criteria: &'a GroupCriteria,
    pub top: Option<TopN>,
}

/// Groups that are not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupsLeftOut {
    /// Number of groups.
    pub groups: usize,
    /// Handles and views in them.
    pub handles: u64,
}

/// Default sort key of groups; the most important come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub unreleased: u32,
    pub open_at_end: u32,
    pub handles: u32,
}

impl Rank {
    pub fn new(stats: &GroupStats) -> Self {
        let GroupStats { open_at_end, handles, .. } = *stats;
        Self { unreleased: stats.unreleased(), open_at_end, handles }
    }
}

impl GroupCut<'_> {
    /// Splits groups into those shown, in the requested order, and what is left out.
    pub fn by_stats<T: Clone>(
        self,
        groups: &[T],
        stats: impl Fn(&T) -> (GroupStats, u32),
    ) -> (Vec<T>, GroupsLeftOut) {
        self.by_rank(groups, |group| {
            let (stats, number) = stats(group);
            let first = self.criteria.order.and_then(|stat| stats.get(stat));
            (first, Rank::new(&stats), number)
        })
    }

    /// Like [`Self::by_stats`], with what each group is ordered by first, its rank and its number. Groups of equal rank are
    /// ordered by number.
    pub fn by_rank<T: Clone>(
        self,
        groups: &[T],
        key: impl Fn(&T) -> (Option<i64>, Rank, u32),
    ) -> (Vec<T>, GroupsLeftOut) {
        let mut total = 0;
        let mut order = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let (first, rank, number) = key(group);
            total += u64::from(rank.handles);
            if self.criteria.min_count.is_none_or(|min| u64::from(rank.handles) >= min) {
                order.push((Reverse((first, rank)), number, index));
            }
        }
        let shown = self.top.map_or(0..order.len(), |top| top.range(order.len()));
        if shown.end < order.len() {
            // The others need not be sorted.
            order.select_nth_unstable(shown.end);
            order.truncate(shown.end);
        }
        order.sort_unstable();
        let shown = order.get(shown).unwrap_or_default();
        let handles: u64 = shown.iter().map(|(key, ..)| u64::from(key.0.1.handles)).sum();
        let shown: Vec<T> =
            shown.iter().filter_map(|(.., index)| groups.get(*index).cloned()).collect();
        let left_out =
            GroupsLeftOut { groups: groups.len() - shown.len(), handles: total - handles };
        (shown, left_out)
    }
}
