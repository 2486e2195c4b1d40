//! Stack events (MOF class StackWalk_Event and the stack key events of Windows 8).

use crate::etl::{Event, EventId};
use crate::payload::Payload;

pub(super) const WALK: EventId = EventId::Hook(0x1820);
pub(super) const KEY_DELETE: EventId = EventId::Hook(0x1823);
pub(super) const KEY_RUNDOWN: EventId = EventId::Hook(0x1824);
pub(super) const KEY_KERNEL: EventId = EventId::Hook(0x1825);
pub(super) const KEY_USER: EventId = EventId::Hook(0x1826);

/// A part of a stack and the event it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Raw time of the event.
    pub(super) event_time: i64,
    /// Process id. It comes before the thread id here, unlike in event headers.
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) processor: u16,
    pub(super) is_user: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartFrames<'a> {
    /// Addresses, innermost first, as wide as the pointers of the system.
    Here(&'a [u8]),
    /// Written later, under this key.
    Key(u64),
}

impl Part {
    /// Decodes a stack walk, or a reference to one.
    pub(super) fn decode<'a>(event: &Event<'a>) -> Option<(Self, PartFrames<'a>)> {
        let mut p = Payload::of(event);
        let (event_time, pid, tid) = (p.i64()?, p.u32()?, p.u32()?);
        let (frames, is_user) = if event.id == WALK {
            let first = p.rest().get(..event.pointer_size).unwrap_or_default();
            // Little-endian: the top bit of the address is in its last byte.
            (PartFrames::Here(p.rest()), first.last().is_some_and(|byte| byte & 0x80 == 0))
        } else {
            (PartFrames::Key(p.pointer()?), event.id == KEY_USER)
        };
        Some((Self { event_time, pid, tid, processor: event.processor, is_user }, frames))
    }
}

/// A key and its frames, which are written after the references to it.
pub(super) fn key_frames<'a>(event: &Event<'a>) -> Option<(u64, &'a [u8])> {
    let mut p = Payload::of(event);
    Some((p.pointer()?, p.rest()))
}
