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

impl ObjectCriteria {
    /// Whether leaked allocations are shown by the stacks that allocated them.
    pub fn lists_leaked_allocations(&self) -> bool {
        self.is_of_leaks() && self.groups.by.is_none()
    }

    /// Whether any groups of allocations share stacks.
    pub fn has_stacks_of_allocations(&self) -> bool {
        let has_leaks = self.with_totals_and_leaks && self.groups.by.is_none();
        has_leaks
            || self.columns_of_allocations().iter().any(|column| column.kind() == KeyKind::Stack)
    }

    /// Whether the frames of stacks of allocations are needed.
    pub fn needs_frames_of_allocations(&self) -> bool {
        self.is_compared || self.has_stacks_of_allocations() || self.tests_frames()
    }

    /// Returns the columns of the shown groups of allocations.
    pub fn columns_of_allocations(&self) -> &[GroupColumn] {
        match &self.groups.by {
            Some(by) => by,
            None if self.is_of_leaks() => &GroupColumn::LEAKS,
            None => &GroupColumn::TOTALS,
        }
    }
}
