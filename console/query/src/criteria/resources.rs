//! How allocations are counted.

use super::objects::ObjectCriteria;
use super::resource_columns::ResourceColumn;

/// Criteria of `.dump Resource`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceCriteria {
    /// Which allocations are counted, and how their stacks are compared and printed.
    pub choice: ObjectCriteria,
    /// `-GroupBy` and `-ShowTotal`: the columns, possibly none for a single sum; `None` for totals and leaks, which
    /// have their own columns.
    pub by: Option<Vec<ResourceColumn>>,
    /// `-ShowTime`: number of parts the time is divided into.
    pub buckets: Option<usize>,
    /// Whether allocations are counted over time instead of bytes.
    pub by_count: bool,
    /// Whether each change over time is kept, to find the most at once.
    pub keeps_changes: bool,
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
        let leaks = ResourceColumn::LEAKS.iter().filter(|_| has_leaks);
        self.columns().iter().chain(leaks).any(|column| column.stack_names().is_some())
    }

    /// Whether the frames of stacks are needed.
    pub fn needs_frames(&self) -> bool {
        self.is_compared || self.has_stacks() || self.choice.tests_frames()
    }

    /// Returns the columns of the shown groups.
    pub fn columns(&self) -> &[ResourceColumn] {
        match &self.by {
            Some(by) => by,
            None if self.choice.is_of_leaks() => &ResourceColumn::LEAKS,
            None => &ResourceColumn::TOTALS,
        }
    }
}
