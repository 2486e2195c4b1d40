//! The event family of stacks: the stacks of the rows of the timeline and, on request, of all events.

use handlescope_model::Table;
use hashbrown::HashMap;

use super::events::EventStacks;
use super::fragments::{FragmentRef, Fragments};
use super::parts::{
    FrameBytes, KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, Part, PartFrames, USER_PART, WALK,
    key_frames,
};
use crate::etl::{Event, EventId, WarningKind};
use crate::payload::Field;
use crate::raw::{EventFamily, Shared};

/// The stacks of the timeline's rows and, on request, of all events.
#[derive(Default)]
pub struct KeptStacks {
    pub events: EventStacks,
    pub all: Option<AllStacks>,
}

impl KeptStacks {
    /// The events that carry a stack or a part of one.
    pub const PARTS: [EventId; 3] = [WALK, KEY_KERNEL, KEY_USER];

    pub fn all() -> Self {
        Self { all: Some(AllStacks::default()), ..Self::default() }
    }

    /// Forgets the frames of keys; see [`Fragments::forget_keys`].
    pub(crate) fn forget_keys(&mut self) {
        self.events.forget_keys();
        if let Some(all) = &mut self.all {
            all.forget_keys();
        }
    }
}

impl EventFamily for KeptStacks {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (WALK, "StackWalk"),
        (KEY_DELETE, "StackKeyDelete"),
        (KEY_RUNDOWN, "StackKeyRundown"),
        (KEY_KERNEL, "StackKeyKernel"),
        (KEY_USER, "StackKeyUser"),
        (USER_PART, "StackUserPart"),
    ];
    const TABLES: &'static [Table] = &[Table::Stacks, Table::Frames, Table::StackEvents];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            WALK => &[Field::Bytes(16), Field::Addresses],
            KEY_KERNEL | KEY_USER => &[Field::Bytes(16), Field::Pointers(1)],
            KEY_DELETE | KEY_RUNDOWN => &[Field::Pointers(1), Field::Addresses],
            // USER_PART carries its part in an extended item.
            _ => &[],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut Shared) -> Option<()> {
        match event.id {
            WALK | KEY_KERNEL | KEY_USER => {
                let (part, frames) = Part::decode(event)?;
                self.events.offer(part, frames, event, &mut shared.timeline);
                if let Some(all) = &mut self.all {
                    all.add(part, frames, event.pointer_size);
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                let (key, frames) = key_frames(event)?;
                self.events.define_key(key, frames, event.pointer_size);
                if let Some(all) = &mut self.all {
                    all.define_key(key, frames, event.pointer_size);
                }
            }
            USER_PART => self.events.finish_carried(event),
            _ => return None,
        }
        Some(())
    }

    fn finish(&mut self, shared: &mut Shared) {
        let (early, unresolved) = self.events.finish(&mut shared.timeline);
        shared.diagnostics.add(WarningKind::StackFromFuture, early, None);
        shared.diagnostics.add(WarningKind::UnresolvedStackKey, unresolved, None);
    }
}

/// A stack with its parts joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedStack {
    /// Raw time of its event.
    pub event_time: i64,
    pub pid: u32,
    pub tid: u32,
    /// Processor that logged the first part.
    pub processor: u16,
    /// Parts in the order they were logged.
    parts: Vec<FragmentRef>,
}

impl JoinedStack {
    /// The first two parts, and the remaining parts.
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
    /// Event time, thread and, for thread 0, processor (otherwise 0) → row of `stacks`.
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

    /// Forgets the frames of keys; see [`Fragments::forget_keys`].
    pub(super) fn forget_keys(&mut self) {
        self.fragments.forget_keys();
    }

    pub(super) fn define_key(&mut self, key: u64, frames: FrameBytes<'_>, pointer_size: usize) {
        self.fragments.define(key, frames, pointer_size);
    }

    pub(super) fn add(&mut self, part: Part, frames: PartFrames<'_>, pointer_size: usize) {
        let Part { event_time, pid, tid, processor, .. } = part;
        let part = self.fragments.add(frames, pointer_size, false);
        // Thread 0 is the idle thread, which runs on every processor at once.
        let group = (event_time, tid, if tid == 0 { processor } else { 0 });
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
