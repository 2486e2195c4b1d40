//! Stack events (MOF class StackWalk_Event and the stack key events of Windows 8).

use crate::etl::{Event, EventId};
use crate::payload::Payload;

pub(super) const WALK: EventId = EventId::Hook(0x1820);
pub(super) const KEY_DELETE: EventId = EventId::Hook(0x1823);
pub(super) const KEY_RUNDOWN: EventId = EventId::Hook(0x1824);
pub(super) const KEY_KERNEL: EventId = EventId::Hook(0x1825);
pub(super) const KEY_USER: EventId = EventId::Hook(0x1826);

/// Frames of an event: its whole stack, or its kernel or user part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackWalk<'a> {
    /// Raw time of the event the stack belongs to.
    pub(crate) event_time: i64,
    /// Process id. It comes before the thread id here, unlike in event headers.
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Addresses, innermost first, as wide as the pointers of the system.
    pub(crate) frames: &'a [u8],
}

impl<'a> StackWalk<'a> {
    /// Decodes a stack walk.
    pub(crate) fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::of(event);
        Some(Self { event_time: p.i64()?, pid: p.u32()?, tid: p.u32()?, frames: p.rest() })
    }
}

/// A part of a stack whose frames are written elsewhere, under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackKeyRef {
    /// Raw time of the event the stack belongs to.
    pub(crate) event_time: i64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) key: u64,
    pub(crate) is_kernel: bool,
}

impl StackKeyRef {
    /// Decodes a reference to a stack key.
    pub(crate) fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::of(event);
        let (event_time, pid, tid, key) = (p.i64()?, p.u32()?, p.u32()?, p.pointer()?);
        Some(Self { event_time, pid, tid, key, is_kernel: event.id == KEY_KERNEL })
    }
}

/// The frames of a key. They are written after the references to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackKeyFrames<'a> {
    pub(crate) key: u64,
    /// Addresses, innermost first, as wide as the pointers of the system.
    pub(crate) frames: &'a [u8],
}

impl<'a> StackKeyFrames<'a> {
    /// Decodes the frames of a key.
    pub(crate) fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::of(event);
        Some(Self { key: p.pointer()?, frames: p.rest() })
    }
}
