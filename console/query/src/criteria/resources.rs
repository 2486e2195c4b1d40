//! How allocations are counted.

use handlescope_model::tables::ResourceKind;

use super::columns::{GroupColumn, KeyKind};
use super::objects::ObjectCriteria;

/// Name of a kind from a newer layout.
const UNKNOWN_KIND: &str = "unknown";

/// Returns the name of a kind.
pub fn kind_name(code: u32) -> &'static str {
    ResourceKind::from_code(code).map_or(UNKNOWN_KIND, ResourceKind::name)
}

/// Criteria of `.dump Resource`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceCriteria {
    /// Which allocations are counted, and how their stacks are compared and printed.
    pub choice: ObjectCriteria,
    /// `-GroupBy` and `-ShowTotal`: the columns, possibly none for a single sum; `None` for totals and leaks, which
    /// have their own columns.
    pub by: Option<Vec<GroupColumn>>,
    /// `-ShowTime`: number of parts the time is divided into.
    pub buckets: Option<usize>,
    /// Whether the allocations of groups are kept, for everything that depends on their times.
    pub keeps_members: bool,
    /// Whether both the totals and everything never freed are requested.
    pub with_totals_and_leaks: bool,
    /// Whether the allocations are compared: stacks are examined and the table is kept, whatever they are grouped by.
    pub is_compared: bool,
}

impl ResourceCriteria {
    /// Whether leaks are shown by the stacks that allocated them.
    pub fn shows_leaks(&self) -> bool {
        self.choice.is_of_leaks() && self.by.is_none()
    }

    /// Whether any groups of the answer share stacks.
    pub fn has_stacks(&self) -> bool {
        let has_leaks = self.with_totals_and_leaks && self.by.is_none();
        has_leaks || self.columns().iter().any(|column| column.kind() == KeyKind::Stack)
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        self.is_compared || self.has_stacks() || self.choice.tests_frames()
    }

    /// Returns the columns of the shown groups.
    pub fn columns(&self) -> &[GroupColumn] {
        match &self.by {
            Some(by) => by,
            None if self.choice.is_of_leaks() => &GroupColumn::LEAKS,
            None => &GroupColumn::TOTALS,
        }
    }
}
