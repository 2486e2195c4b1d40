//! Joins parts of stacks, resolves keys, and turns addresses into frames.
//!
//! The kernel part of a stack is logged with its event, the user part when the thread returns to user mode, perhaps
//! much later. Both name their event by raw time and thread. Since Windows 8 a part may be a key. Its frames are
//! written when the key leaves a cache, after the references.
//!
//! Provider events carry their stacks themselves. If only the kernel part fits, a later event of the same thread with
//! the same match id carries the user part. The .NET runtime logs the stack of an event in the next event of its
//! thread.

mod events;
mod fragments;
mod frames;
mod gathered;
mod modules;
mod parts;
mod resolver;
mod runtime;
mod shard;
mod stays;

use hashbrown::HashMap;

pub use self::events::EventStacks;
use self::events::SharedPart;
pub use self::fragments::{FragmentRef, Fragments, KeyKind};
pub use self::frames::{FrameInterner, FrameKey, StackTable};
pub use self::gathered::{GatheredStacks, has_numbered_stack};
pub use self::modules::{AddressSpaces, Mapping, TimedLocation};
use self::parts::{
    FrameBytes, KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, LoggedPart, PartFrames, USER_PART,
    WALK, key_frames,
};
pub use self::parts::{StackUse, carried_names, item_fields, repeated_frames, stack_part};
pub use self::resolver::{KeptRows, LookedUp, StackLookUp, StackNumbering, StackResolver};
use self::runtime::{PRIVATE_WALK, RUNTIME_WALK};
pub use self::runtime::{RUNTIME, RuntimeThread, RuntimeUse};
use self::stays::{KernelStack, StackCompletion, Stays, Thread};
use crate::etl::{Event, EventId, EventLoss, WarningKind};
use crate::payload::Field;
use crate::raw::{EventFamily, PassState, Timeline};
use handlescope_model::Table;
use handlescope_model::rules::LossTimes;

/// Stacks of the timeline's rows and, on request, of all events.
#[derive(Default)]
pub struct KeptStacks {
    pub events: EventStacks,
    pub all: Option<AllStacks>,
}

impl KeptStacks {
    /// Events that carry a stack or a part of one.
    pub const PARTS: [EventId; 3] = [WALK, KEY_KERNEL, KEY_USER];

    pub fn all() -> Self {
        Self { all: Some(AllStacks::default()), ..Self::default() }
    }

    /// Forgets the frames of keys; see [`Fragments::forget_keys`].
    pub fn forget_keys(&mut self) {
        self.events.forget_keys();
        if let Some(all) = &mut self.all {
            all.forget_keys();
        }
    }

    /// Forgets a thread that starts or ends at this time.
    pub fn end_thread(&mut self, pid: u32, tid: u32, time: i64, timeline: &mut Timeline) {
        self.events.end_thread(pid, tid, time, timeline);
        if let Some(all) = &mut self.all {
            all.end_thread(pid, tid, time);
        }
    }

    /// Removes user parts of other events from stacks where events are missing between the parts.
    pub fn withdraw_across(&mut self, losses: &[EventLoss]) {
        let spans: Vec<_> = losses
            .iter()
            .filter(|loss| !loss.is_doubtful)
            .filter_map(|loss| Some(loss.span?.bounds()))
            .collect();
        if spans.is_empty() {
            return;
        }
        let missing = LossTimes::new(spans.into_iter().map(Some));
        self.events.withdraw_across(&missing);
        if let Some(all) = &mut self.all {
            all.withdraw_across(&missing);
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
        (RUNTIME_WALK, "CLRStackWalk"),
        (PRIVATE_WALK, "CLRStackWalkPrivate"),
    ];
    const TABLES: &'static [Table] = &[Table::Stacks, Table::Frames, Table::StackEvents];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            WALK => &[Field::Bytes(16), Field::Addresses],
            KEY_KERNEL | KEY_USER => &[Field::Bytes(16), Field::Pointers(1)],
            KEY_DELETE | KEY_RUNDOWN => &[Field::Pointers(1), Field::Addresses],
            RUNTIME_WALK | PRIVATE_WALK => &[Field::Bytes(8), Field::Addresses],
            // USER_PART carries its part in an extended item.
            _ => &[],
        }
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        match event.id {
            WALK | KEY_KERNEL | KEY_USER => {
                let (part, frames) = LoggedPart::decode(event)?;
                self.events.offer(part, frames, event, &mut shared.timeline);
                if let Some(all) = &mut self.all {
                    all.add(part, frames, event);
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                let (key, frames) = key_frames(event)?;
                self.events.define_key(key, frames, event.pointer_size);
                if let Some(all) = &mut self.all {
                    all.define_key(key, frames, event.pointer_size);
                }
            }
            USER_PART => self.events.finish_carried(event, &mut shared.timeline),
            RUNTIME_WALK | PRIVATE_WALK => self.events.take_runtime(event),
            _ => return None,
        }
        Some(())
    }

    fn finish(&mut self, shared: &mut PassState) {
        let (early, unresolved) = self.events.finish(&mut shared.timeline);
        if let Some(all) = &mut self.all {
            all.finish();
        }
        shared.diagnostics.add(WarningKind::StackFromFuture, early, None);
        shared.diagnostics.add(WarningKind::UnresolvedStackKey, unresolved, None);
    }
}

/// Stack with its parts joined.
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
    /// Returns the first two parts, and the remaining ones.
    pub fn parts(&self) -> ([FragmentRef; 2], &[FragmentRef]) {
        let part =
            |at: usize| self.parts.get(at).map_or(FragmentRef::NONE, |it| it.without_origin());
        ([part(0), part(1)], self.parts.get(2..).unwrap_or_default())
    }

    /// Adds a part. The event's own user part replaces that of another event.
    fn push(&mut self, part: FragmentRef) {
        if part.is_user() {
            self.parts.retain(|known| !known.is_shared());
        }
        self.parts.push(part);
    }
}

/// All stacks, joined.
#[derive(Default)]
pub struct AllStacks {
    fragments: Fragments,
    stacks: Vec<JoinedStack>,
    /// Event time, thread and, for thread 0, processor (otherwise 0) → row of `stacks`.
    groups: HashMap<(i64, u32, u16), u32>,
    /// Stacks that may get the user part of an earlier event.
    stays: Stays<u32>,
    /// Stacks that got such a user part.
    shared: Vec<SharedPart>,
}

impl AllStacks {
    /// Returns the stacks in the order their first parts were logged.
    pub fn stacks(&self) -> &[JoinedStack] {
        &self.stacks
    }

    pub fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    /// Returns the addresses of a stack, innermost first.
    pub fn addresses(&self, stack: &JoinedStack) -> Vec<u64> {
        stack.parts.iter().flat_map(|part| self.fragments.addresses(*part)).collect()
    }

    /// Forgets the frames of keys (see [`Fragments::forget_keys`]), and user parts that may belong to another stay in
    /// the kernel.
    pub fn forget_keys(&mut self) {
        self.fragments.forget_keys();
        self.stays.forget();
        self.withdraw(|_| true);
    }

    pub fn define_key(&mut self, key: u64, frames: FrameBytes<'_>, pointer_size: usize) {
        self.fragments.define(key, frames, pointer_size);
    }

    pub fn add(&mut self, part: LoggedPart, frames: PartFrames<'_>, event: &Event<'_>) {
        let LoggedPart { event_time, pid, tid, processor, is_user, is_whole } = part;
        let fragment = self.fragments.add(frames, event.pointer_size, is_user);
        // Thread 0 is the idle thread, which runs on every processor at once.
        let group = (event_time, tid, if tid == 0 { processor } else { 0 });
        let row = *self.groups.entry(group).or_insert(self.stacks.len() as u32);
        match self.stacks.get_mut(row as usize) {
            Some(stack) => stack.push(fragment),
            None => {
                let parts = vec![fragment];
                self.stacks.push(JoinedStack { event_time, pid, tid, processor, parts });
            }
        }
        let (thread, written) = (Thread::new(pid, tid), event.time);
        if is_user {
            self.stays.leave(thread, event_time, written, || fragment);
        } else if !is_whole {
            let stack = KernelStack { owner: row, event_time, written };
            self.stays.wait(thread, stack, event.time);
        }
        self.complete();
    }

    fn end_thread(&mut self, pid: u32, tid: u32, time: i64) {
        self.stays.end(Thread::new(pid, tid), time);
        self.complete();
    }

    /// Adds user parts of earlier events to the stacks they complete.
    fn complete(&mut self) {
        if !self.stays.has_completed() {
            return;
        }
        let completed = self.stays.take_completed();
        for StackCompletion { stack, part, .. } in &completed {
            let Some(joined) = self.stacks.get_mut(stack.owner as usize) else { continue };
            if !joined.parts.iter().any(|part| part.is_user()) {
                joined.parts.push(part.fragment.shared());
                let (row, from, to) = (stack.owner, stack.written, part.written);
                self.shared.push(SharedPart { row, from, to });
            }
        }
        self.stays.reuse(completed);
    }

    /// Completes the last stacks, and removes user parts after a kernel part that turned out to end in user mode.
    fn finish(&mut self) {
        self.stays.finish();
        self.complete();
        let Self { fragments, stacks, .. } = self;
        if fragments.has_whole_keys() {
            for JoinedStack { parts, .. } in stacks {
                if parts.iter().any(|part| fragments.is_whole_key(*part)) {
                    parts.retain(|part| !part.is_shared());
                }
            }
        }
    }

    fn withdraw_across(&mut self, missing: &LossTimes) {
        self.withdraw(|shared| missing.is_between(shared.from, shared.to));
    }

    fn withdraw(&mut self, is_doubtful: impl Fn(&SharedPart) -> bool) {
        let Self { shared, stacks, .. } = self;
        shared.retain(|shared| {
            let is_doubtful = is_doubtful(shared);
            if is_doubtful && let Some(stack) = stacks.get_mut(shared.row as usize) {
                stack.parts.retain(|part| !part.is_shared());
            }
            !is_doubtful
        });
    }
}
