//! `.dump Resource` as entered.

use crate::{
    commands::shared::{
        display::ShowsTimes,
        stack_display::{ShowsStacks, TrimsStacks},
    },
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

impl ShowsStacks for ResourceArgs {
    fn stacks(&mut self) -> &mut StackDisplayArgs {
        &mut self.criteria.stacks
    }
}

impl TrimsStacks for ResourceArgs {
    fn trims(&mut self) -> &mut StackTrims {
        &mut self.criteria.trims
    }
}

impl ShowsTimes for ResourceArgs {
    fn display(&mut self) -> &mut DisplayArgs {
        &mut self.display
    }
}
