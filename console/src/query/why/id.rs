//! The id of a suspect: the same in every run, for each version of the program, and for each trace of the same leak.

use handlescope_model::StackIdx;

use super::owners::Owners;
use crate::query::context::FileContext;
use crate::query::groups::TrimmedStacks;
use crate::values::SuspectId;

/// Acquisitions of a suspect: whose they are, what, and where they are made.
pub(super) struct Acquired<'a> {
    pub(super) owners: &'a Owners,
    /// Type of the objects, or kind of the allocations.
    pub(super) what: &'a str,
    /// Whether these are handles.
    pub(super) is_of_handles: bool,
    /// The name of the allocator, where it says what is allocated.
    pub(super) allocator: Option<&'a str>,
    pub(super) stack: Option<StackIdx>,
}

impl Acquired<'_> {
    /// The id of its suspect: no numbers of rows are in it, which differ from one extract to the next, but the functions
    /// of the stack that are left of it, by their names.
    pub(super) fn id(&self, file: &FileContext<'_>, stacks: Option<&TrimmedStacks>) -> SuspectId {
        let mut parts = self.owners.identity(&file.processes);
        let domain = if self.is_of_handles { "handles" } else { "allocations" };
        parts.extend([domain, self.what, self.allocator.unwrap_or_default()].map(str::to_owned));
        if let Some(((frames, stacks), stack)) = file.frames.as_ref().zip(stacks).zip(self.stack) {
            parts.push("stack".to_owned());
            let named = frames.named();
            // A frame with inlined functions is one part, as it is one where stacks are compared.
            parts.extend(stacks.frames(frames, stack).map(|frame| {
                let views = named.frames_at(frame).map(|view| view.to_string());
                views.collect::<Vec<_>>().join("\n")
            }));
        }
        SuspectId::of_parts(parts.iter().map(String::as_bytes))
    }
}
