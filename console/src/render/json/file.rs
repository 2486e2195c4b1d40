//! A trace in the document of `.dump ObjectRef`.

use handlescope_model::StackIdx;

use crate::query::FileAnswer;

/// One trace in the document.
pub(super) struct FileJson<'a> {
    pub(super) index: usize,
    pub(super) answer: &'a FileAnswer<'a>,
    /// Added to the rows of its stacks, so that stacks of several traces have different numbers.
    pub(super) first_stack: u64,
}

impl FileJson<'_> {
    /// The number of a stack in the document.
    pub(super) fn stack(&self, stack: StackIdx) -> u64 {
        self.first_stack + u64::from(stack.0)
    }
}
