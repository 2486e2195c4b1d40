//! The groups that pictures draw.

use std::borrow::Cow;

use handlescope_model::StackIdx;
use handlescope_query::{
    Amount, FileAnswer, GroupColumn, GroupStats, Groups, NodeIdx, ResourceGroup, ResourcesAnswer,
};

/// Name of an unknown property of a handle or allocation.
pub const UNKNOWN: &str = "unknown";

/// A function that returns how many handles of a group count.
pub type Weight = fn(&GroupStats) -> u32;

/// A group with what it acquired, and what of that counts. In a comparison: what it had before, and what it has after.
pub type GroupAmounts<'g> = (PictureGroup<'g>, [Amount; 2]);

/// The handles or allocations of one process, type and stack.
pub struct PictureGroup<'g> {
    pub process: Cow<'g, str>,
    /// Type of the objects, or kind of the allocations.
    pub type_name: &'g str,
    /// The allocator; empty for handles.
    pub allocator: &'g str,
    pub stack: Option<StackIdx>,
}

impl<'g> PictureGroup<'g> {
    pub fn new(
        process: Option<impl Into<Cow<'g, str>>>,
        type_name: Option<&'g str>,
        allocator: Option<&'g str>,
        stack: Option<StackIdx>,
    ) -> Self {
        Self {
            process: process.map_or(UNKNOWN.into(), Into::into),
            type_name: type_name.unwrap_or(UNKNOWN),
            allocator: allocator.unwrap_or_default(),
            stack,
        }
    }

    /// Creates a group from an innermost group of handles by process, create stack and type.
    pub fn from_handles(groups: &'g Groups, leaf: NodeIdx) -> Self {
        let key = |column| groups.key_in(leaf, column);
        let (process, type_name) = (key(GroupColumn::Process), key(GroupColumn::Type));
        let stack = key(GroupColumn::CreateStack).stack();
        Self::new(process.text(), type_name.text(), None, stack)
    }
}

/// Returns the groups of a file that was asked for groups by process, create stack and type.
pub fn handle_groups<'g>(
    file: &'g FileAnswer<'_>,
    weight: Weight,
) -> impl Iterator<Item = GroupAmounts<'g>> {
    let leaves = file.groups.iter().flat_map(|groups| {
        groups
            .tree
            .leaves()
            .map(move |leaf| (PictureGroup::from_handles(groups, leaf), groups.tree.stats(leaf)))
    });
    leaves.map(move |(group, stats)| {
        let counts = [stats.opened(), weight(&stats)].map(u64::from);
        (group, counts.map(|count| Amount { count, bytes: 0 }))
    })
}

/// Returns groups by process, create stack, kind and allocator of an answer.
pub fn allocation_groups<'g>(
    answer: &'g ResourcesAnswer<'_>,
    groups: impl IntoIterator<Item = &'g ResourceGroup>,
) -> impl Iterator<Item = GroupAmounts<'g>> {
    groups.into_iter().map(|group| {
        let process = answer.process(group).map(|process| process.shown_label(false));
        let (kind, allocator) = (answer.kind(group), answer.allocator(group));
        let drawn = PictureGroup::new(process, kind, allocator, group.create_stack());
        (drawn, [group.stats.allocated, group.stats.unreleased()])
    })
}
