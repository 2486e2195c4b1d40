//! The stacks of events that are kept one by one: what they carry, and what comes for them later.

use super::carried::{USER_PART, carried_parts};
use super::fragments::{FragmentRef, Fragments};
use super::matches::Matches;
use super::walk::{KEY_DELETE, KEY_RUNDOWN, key_frames};
use crate::etl::Event;

/// Parts of stacks that events carry; an event is known by a number.
#[derive(Default)]
pub struct CarriedStacks {
    pub fragments: Fragments,
    waiting: Matches<u32>,
}

impl CarriedStacks {
    /// The first and the second part of what an event carries. Where the user part is still to come, [`Self::follow`]
    /// hands it out for this number.
    pub(crate) fn take(&mut self, event: &Event<'_>, number: u32) -> [FragmentRef; 2] {
        let mut parts = [FragmentRef::NONE; 2];
        if event.extended.is_empty() {
            return parts;
        }
        let mut missing = 0;
        for ((at, slot), part) in parts.iter_mut().enumerate().zip(carried_parts(event)) {
            *slot = self.fragments.add(part.frames, part.pointer_size, at > 0);
            missing = part.match_id;
        }
        if missing != 0
            && parts[1] == FragmentRef::NONE
            && let Some(tid) = event.tid
        {
            self.waiting.wait(missing, tid, number);
        }
        parts
    }

    /// Takes an event that is not kept itself but may say more of stacks of those before; hands out the second parts
    /// of events.
    pub(crate) fn follow(&mut self, event: &Event<'_>, mut second: impl FnMut(u32, FragmentRef)) {
        match event.id {
            USER_PART => {
                let (Some(part), Some(tid)) = (carried_parts(event).next(), event.tid) else {
                    return;
                };
                let events = self.waiting.take(part.match_id, tid);
                if !events.is_empty() {
                    let fragment = self.fragments.add(part.frames, part.pointer_size, true);
                    events.into_iter().for_each(|event| second(event, fragment));
                }
            }
            KEY_DELETE | KEY_RUNDOWN => {
                if let Some((key, frames)) = key_frames(event) {
                    self.fragments.define(key, frames, event.pointer_size);
                }
            }
            _ => {}
        }
    }
}
