//! Every stack of a trace, of any event.

use hashbrown::HashMap;

use super::fragments::{FragmentRef, Fragments};
use super::walk::{StackKeyFrames, StackKeyRef, StackWalk};
use crate::etl::Event;

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

    pub(super) fn walk(&mut self, walk: &StackWalk<'_>, event: &Event<'_>) {
        let part = self.fragments.intern(walk.frames, event.pointer_size, false);
        self.add(walk.event_time, walk.pid, walk.tid, event.processor, part);
    }

    pub(super) fn key_reference(&mut self, reference: &StackKeyRef, event: &Event<'_>) {
        let part = self.fragments.refer(reference.key, false);
        self.add(reference.event_time, reference.pid, reference.tid, event.processor, part);
    }

    pub(super) fn key_frames(&mut self, frames: &StackKeyFrames<'_>, event: &Event<'_>) {
        self.fragments.define(frames.key, frames.frames, event.pointer_size);
    }

    fn add(&mut self, event_time: i64, pid: u32, tid: u32, processor: u16, part: FragmentRef) {
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
