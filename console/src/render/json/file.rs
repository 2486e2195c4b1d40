//! A trace in the document of `.dump ObjectRef`.

use handlescope_model::StackIdx;

use crate::query::{FileAnswer, ObjectRefAnswer};

/// One trace in the document.
pub(super) struct FileJson<'a> {
    pub(super) index: usize,
    pub(super) answer: &'a FileAnswer<'a>,
    /// Added to the rows of its stacks, so that stacks of several traces have different numbers.
    pub(super) first_stack: u64,
}

impl<'a> FileJson<'a> {
    /// The traces of an answer.
    pub(super) fn of_all(answer: &'a ObjectRefAnswer<'a>) -> Vec<Self> {
        Self::of_files(answer.files.iter())
    }

    /// Some traces.
    pub(super) fn of_files(files: impl Iterator<Item = &'a FileAnswer<'a>>) -> Vec<Self> {
        let mut first_stack = 0;
        let number = |answer: &'a FileAnswer<'a>| {
            let file = Self { index: answer.index(), answer, first_stack };
            first_stack += answer.stack_count as u64;
            file
        };
        files.map(number).collect()
    }

    /// The number of a stack in the document.
    pub(super) fn stack(&self, stack: StackIdx) -> u64 {
        self.first_stack + u64::from(stack.0)
    }
}
