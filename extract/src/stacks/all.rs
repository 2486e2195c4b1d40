//! Every stack of a trace, of any event.

use hashbrown::HashMap;

use super::fragments::{FragmentRef, Fragments};
use super::walk::{Part, PartFrames};

/// A stack with its parts joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedStack {
    /// Raw time of the event it belongs to.
    pub event_time: i64,
    pub pid: u32,
    pub tid: u32,
    /// Processor that logged the first part.
    pub processor: u16,
    /// Parts in the order they were logged.
    parts: Vec<FragmentRef>,
}

impl JoinedStack {
    /// The first two parts, and those beyond.
    pub fn parts(&self) -> ([FragmentRef; 2], &[FragmentRef]) {
        let part = |at: usize| self.parts.get(at).copied().unwrap_or(FragmentRef::NONE);
        ([part(0), part(1)], self.parts.get(2..).unwrap_or_default())
    }
}

/// Joins and keeps every stack.
#[derive(Default)]
pub struct AllStacks {
    fragments: Fragments,
    stacks: Vec<JoinedStack>,
    /// Event time, thread and, for thread 0, processor → row of `stacks`.
    groups: HashMap<(i64, u32, u16), usize>,
}

impl AllStacks {
    /// The stacks in the order their first parts were logged.
    pub fn stacks(&self) -> &[JoinedStack] {
        &self.stacks
    }

    pub fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    /// The addresses of a stack, innermost first.
    pub fn addresses(&self, stack: &JoinedStack) -> Vec<u64> {
        stack.parts.iter().flat_map(|part| self.fragments.addresses(*part)).collect()
    }

    /// Forgets what stands for keys until now; see [`Fragments::forget_keys`].
    pub(super) fn forget_keys(&mut self) {
        self.fragments.forget_keys();
    }

    pub(super) fn define_key(&mut self, key: u64, frames: &[u8], pointer_size: usize) {
        self.fragments.define(key, frames, pointer_size);
    }

    pub(super) fn add(&mut self, part: Part, frames: PartFrames<'_>, pointer_size: usize) {
        let Part { event_time, pid, tid, processor, .. } = part;
        let part = self.fragments.add(frames, pointer_size, false);
        // Thread 0 is the idle thread, which runs on every processor at once.
        let group = (event_time, tid, if tid == 0 { processor } else { u16::MAX });
        let row = *self.groups.entry(group).or_insert(self.stacks.len());
        match self.stacks.get_mut(row) {
            Some(stack) => stack.parts.push(part),
            None => {
                let parts = vec![part];
                self.stacks.push(JoinedStack { event_time, pid, tid, processor, parts });
            }
        }
    }
}
