//! What the records of events are made with.

use handlescope_model::tables::Event;

use super::stacks_part::StackTexts;

#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) stacks: &'a StackTexts,
    /// Process ids by row.
    pub(super) pids: &'a [u32],
}

impl Context<'_> {
    /// The process id that the number of the source process means.
    pub(super) fn source_pid(&self, event: &Event) -> Option<u32> {
        self.pids.get(event.source_process?.row()).copied()
    }
}
