//! `.dump Resource` as entered.

use crate::{
    commands::shared::fields,
    query::{ResourceColumn, ResourceCriteria, StackTrims},
    settings::{DisplayArgs, StackDisplayArgs},
};

/// What was typed after `.dump Resource`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResourceArgs {
    pub(crate) criteria: ResourceCriteria,
    /// `-GroupBy`
    pub(super) by: Vec<ResourceColumn>,
    /// `-ShowTotal`: what sums are of.
    pub(super) total: Option<&'static [ResourceColumn]>,
    /// `-ShowTime`
    pub(super) buckets: Option<u64>,
    pub(super) display: DisplayArgs,
    /// `-SortBy`: bytes, count, or a column.
    pub(super) sort_by: Option<String>,
}

fields!(ResourceArgs {
    criteria.stacks: StackDisplayArgs,
    criteria.trims: StackTrims,
    display: DisplayArgs,
});
