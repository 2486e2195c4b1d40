//! Stacks: fragments with frames, or with keys that get their frames later.

use super::actors::Caller;
use super::builder::{Fragment, TraceBuilder};
use super::config::StackMode;
use crate::header::HeaderKind;
use crate::payload::{
    StackHalf, StackKeyEvent, stack_key_definition, stack_key_reference, stack_walk,
};

/// Ticks between an event and the kernel part of its stack.
pub const KERNEL_DELAY: i64 = 3;
/// Address of the first stack key.
const FIRST_KEY: u64 = 0xffff_c20e_4000_0000;

impl TraceBuilder {
    /// Adds the stack of the last event: kernel and user addresses, innermost first. An empty part is not written.
    ///
    /// # Panics
    /// If there was no event before.
    pub fn stack(&mut self, kernel: &[u64], user: &[u64]) -> &mut Self {
        let owner = self.owner.expect("a stack needs an event before it");
        let mode = self.config.stack_mode;
        let delay = self.options.raw(self.config.user_stack_delay) - self.options.base_raw();
        let mut add = |delay: i64, cpu: u16, key, frames: Vec<u64>| {
            if frames.is_empty() {
                return;
            }
            let (time, caller) = (owner.time + delay, owner.caller.on(cpu));
            self.fragments.push(Fragment { time, event_time: owner.time, caller, key, frames });
        };
        let cpu = owner.caller.cpu;
        if mode == StackMode::Single {
            add(KERNEL_DELAY, cpu, None, [kernel, user].concat());
            return self;
        }
        let (kernel_key, user_key) = match mode {
            StackMode::Keys => (Some(StackHalf::Kernel), Some(StackHalf::User)),
            StackMode::KernelKey => (Some(StackHalf::Kernel), None),
            _ => (None, None),
        };
        let user_cpu = if let StackMode::UserOn(other) = mode { other } else { cpu };
        add(KERNEL_DELAY, cpu, kernel_key, kernel.to_vec());
        add(delay.max(KERNEL_DELAY + 1), user_cpu, user_key, user.to_vec());
        self
    }

    /// Adds the user part of a stay in the kernel: a thread returns to user mode at `ns`, and logs the frames with the
    /// time of the first event that requested them. Later events of the stay have kernel frames only; see
    /// [`Self::stack`].
    pub fn user_part(
        &mut self,
        ns: i64,
        event_ns: i64,
        caller: impl Into<Caller>,
        user: &[u64],
    ) -> &mut Self {
        let (time, event_time) = (self.options.raw(ns), self.options.raw(event_ns));
        let key = (self.config.stack_mode == StackMode::Keys).then_some(StackHalf::User);
        let (caller, frames) = (caller.into(), user.to_vec());
        self.fragments.push(Fragment { time, event_time, caller, key, frames });
        self
    }

    /// Turns fragments into events. The definition of a key follows its references.
    pub fn add_stacks(&mut self) {
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.sort_by_key(|fragment| fragment.time);
        let mut keys = KeyCache::new(self.config.key_slots);
        let ptr = self.options.pointer;
        for fragment in fragments {
            let Caller { pid, tid, .. } = fragment.caller;
            let event = match fragment.key {
                None => stack_walk(ptr, fragment.event_time, pid, tid, &fragment.frames),
                Some(part) => {
                    let (key, evicted) = keys.key_of(&fragment.frames, fragment.time);
                    if let Some((time, frames)) = evicted {
                        let deleted = StackKeyEvent::Deleted;
                        let event = stack_key_definition(deleted, ptr, key, &frames);
                        self.add_kernel(HeaderKind::PerfInfo, time, fragment.caller, &event);
                    }
                    stack_key_reference(part, ptr, fragment.event_time, (pid, tid), key)
                }
            };
            self.add_kernel(HeaderKind::PerfInfo, fragment.time, fragment.caller, &event);
        }
        self.live_keys(&keys);
    }

    /// Writes the frames of the keys still in the cache, after the last event.
    fn live_keys(&mut self, keys: &KeyCache) {
        let last = self.entries.iter().map(|entry| entry.time).max().unwrap_or(0);
        for (index, slot) in keys.slots.iter().enumerate() {
            let rundown = StackKeyEvent::Rundown;
            let key = KeyCache::key(index);
            let event = stack_key_definition(rundown, self.options.pointer, key, &slot.frames);
            self.add_rundown(last + 1, &event);
        }
    }
}

/// The frames of a key.
#[derive(Debug)]
struct KeySlot {
    frames: Vec<u64>,
    /// Raw time of the last reference.
    used: i64,
}

/// Keys of distinct stacks. If all are taken, the least recently used one is reused.
#[derive(Debug)]
struct KeyCache {
    slots: Vec<KeySlot>,
    limit: usize,
}

impl KeyCache {
    fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), limit }
    }

    fn key(index: usize) -> u64 {
        FIRST_KEY + 0x40 * index as u64
    }

    /// Returns the key for a reference to these frames at `time`. If the key had other frames, it also returns the time
    /// and frames of their definition, which has to be written first.
    fn key_of(&mut self, frames: &[u64], time: i64) -> (u64, Option<(i64, Vec<u64>)>) {
        if let Some(index) = self.slots.iter().position(|slot| slot.frames == frames) {
            self.slots[index].used = time;
            return (Self::key(index), None);
        }
        let slot = KeySlot { frames: frames.to_vec(), used: time };
        // The definition must be no earlier than the last reference to the old frames, and earlier than the first
        // reference to the new ones.
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used);
        if let Some((index, old)) = oldest
            && self.slots.len() >= self.limit
            && old.used < time
        {
            let evicted = std::mem::replace(&mut self.slots[index], slot);
            return (Self::key(index), Some((time - 1, evicted.frames)));
        }
        self.slots.push(slot);
        (Self::key(self.slots.len() - 1), None)
    }
}
