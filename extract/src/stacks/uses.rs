//! What an event has to do with stacks.

use super::carried::{USER_PART, carried_parts};
use super::walk::{
    KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, Part, PartFrames, WALK, key_frames,
};
use crate::etl::Event;

/// What an event has to do with stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackUse {
    /// It is a part of the stack of an event of this raw time; its frames follow under a key, if it has one.
    Part { event_time: i64, key: Option<u64> },
    /// It has the frames of a key.
    Frames { key: u64 },
    /// It carries the user part of the stack of an earlier event of its thread.
    UserPart { match_id: u64 },
}

impl StackUse {
    /// `None` for an event that has nothing to do with stacks, or is too short.
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        match event.id {
            WALK | KEY_KERNEL | KEY_USER => Part::decode(event).map(|(part, frames)| {
                let key = match frames {
                    PartFrames::Here(_) => None,
                    PartFrames::Key(key) => Some(key),
                };
                Self::Part { event_time: part.event_time, key }
            }),
            KEY_DELETE | KEY_RUNDOWN => key_frames(event).map(|(key, _)| Self::Frames { key }),
            USER_PART => {
                let part = carried_parts(event).next();
                part.map(|part| Self::UserPart { match_id: part.match_id })
            }
            _ => None,
        }
    }
}
