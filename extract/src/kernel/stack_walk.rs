//! Stack events (MOF class StackWalk_Event and the stack key events of Windows 8).

use super::Payload;
use crate::etl::Event;

/// Frames of an event: its whole stack, or its kernel or user part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackWalk<'a> {
    /// Raw time of the event the stack belongs to.
    pub event_time: i64,
    /// Process id. It comes before the thread id here, unlike in event headers.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Addresses, innermost first, as wide as the pointers of the system.
    pub frames: &'a [u8],
}

impl<'a> StackWalk<'a> {
    /// Decodes a stack walk.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self { event_time: p.i64()?, pid: p.u32()?, tid: p.u32()?, frames: p.rest() })
    }
}

/// A part of a stack whose frames are written elsewhere, under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackKeyRef {
    /// Raw time of the event the stack belongs to.
    pub event_time: i64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The key.
    pub key: u64,
}

impl StackKeyRef {
    /// Decodes a reference to a stack key.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self { event_time: p.i64()?, pid: p.u32()?, tid: p.u32()?, key: p.pointer()? })
    }
}

/// The frames of a key. They are written after the references to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackKeyFrames<'a> {
    /// The key.
    pub key: u64,
    /// Addresses, innermost first, as wide as the pointers of the system.
    pub frames: &'a [u8],
}

impl<'a> StackKeyFrames<'a> {
    /// Decodes the frames of a key.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let mut p = Payload::new(event.payload, event.pointer_size);
        Some(Self { key: p.pointer()?, frames: p.rest() })
    }
}
