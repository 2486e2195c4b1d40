//! The groups that pictures draw.

use std::borrow::Cow;

use handlescope_model::StackIdx;
use handlescope_query::{GroupColumn, Groups, NodeIdx, ResourceGroup, ResourcesAnswer};

/// Name of an unknown property of a handle or allocation.
pub const UNKNOWN: &str = "unknown";

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

    /// Creates a group from one of allocations by process, create stack, kind and allocator.
    pub fn from_allocations(answer: &'g ResourcesAnswer<'_>, group: &ResourceGroup) -> Self {
        let process = answer.process(group).map(|process| process.shown_label(false));
        Self::new(process, answer.kind(group), answer.allocator(group), group.create_stack())
    }
}
