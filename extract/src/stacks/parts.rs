//! Stack parts in events. There are stack events (MOF class StackWalk_Event and the stack key events of Windows 8),
//! extended items with the stack of their event, and events that bring the user part of such a stack.

use uuid::uuid;

use crate::etl::{Event, EventId, Guid, StackPart};
use crate::metadata::extended_items;
use crate::payload::{Field, Payload};

pub const WALK: EventId = EventId::Hook(0x1820);
pub const KEY_DELETE: EventId = EventId::Hook(0x1823);
pub const KEY_RUNDOWN: EventId = EventId::Hook(0x1824);
pub const KEY_KERNEL: EventId = EventId::Hook(0x1825);
pub const KEY_USER: EventId = EventId::Hook(0x1826);

/// Stack part, and the event it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedPart {
    /// Raw time of the event.
    pub event_time: i64,
    /// Process id. It comes before the thread id here, unlike in event headers.
    pub pid: u32,
    pub tid: u32,
    pub processor: u16,
    /// Whether it begins in user mode.
    pub is_user: bool,
    /// Whether no user part is missing, because the last frame is in user mode. Keys are not known to be whole.
    pub is_whole: bool,
}

/// Addresses, innermost first, each as wide as a pointer of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBytes<'a> {
    pub bytes: &'a [u8],
    /// Number of these bytes if [`repeated_frames`] returns them for their event, as in [`Event::repeated`].
    pub number: Option<u32>,
}

impl FrameBytes<'_> {
    /// Whether the innermost frame is in user mode, with the address's top bit 0.
    pub fn begins_in_user_mode(&self, pointer_size: usize) -> bool {
        let first = self.bytes.get(..pointer_size).unwrap_or_default();
        // The address is little-endian, so its top bit is in the last byte.
        first.last().is_some_and(|byte| byte & 0x80 == 0)
    }

    /// Whether the outermost frame is in user mode. A cut last address is ignored.
    pub fn ends_in_user_mode(&self, pointer_size: usize) -> bool {
        let whole = self.bytes.len() - self.bytes.len() % pointer_size.max(1);
        self.bytes[..whole].last().is_some_and(|byte| byte & 0x80 == 0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartFrames<'a> {
    Here(FrameBytes<'a>),
    /// Written later, under this key.
    Key(u64),
}

impl LoggedPart {
    /// Creates a part that came with its event, logged on this processor.
    pub fn with_event(part: &StackPart<'_>, processor: u16) -> Self {
        let StackPart { event_time, pid, tid, is_user, frames, number, .. } = *part;
        let is_whole =
            FrameBytes { bytes: frames, number }.ends_in_user_mode(StackPart::POINTER_SIZE);
        Self { event_time, pid, tid, processor, is_user, is_whole }
    }

    /// Decodes a stack walk, or a reference to one.
    pub fn decode<'a>(event: &Event<'a>) -> Option<(Self, PartFrames<'a>)> {
        let mut p = Payload::from_event(event);
        let (event_time, pid, tid) = (p.i64()?, p.u32()?, p.u32()?);
        let (frames, is_user, is_whole) = if event.id == WALK {
            let frames = FrameBytes { bytes: p.rest(), number: event.repeated };
            let size = event.pointer_size;
            (
                PartFrames::Here(frames),
                frames.begins_in_user_mode(size),
                frames.ends_in_user_mode(size),
            )
        } else {
            (PartFrames::Key(p.pointer()?), event.id == KEY_USER, false)
        };
        Some((Self { event_time, pid, tid, processor: event.processor, is_user, is_whole }, frames))
    }
}

/// Returns a key and its frames, which are written after the references to the key.
pub fn key_frames<'a>(event: &Event<'a>) -> Option<(u64, FrameBytes<'a>)> {
    let mut p = Payload::from_event(event);
    let key = p.pointer()?;
    Some((key, FrameBytes { bytes: p.rest(), number: event.repeated }))
}

/// Returns an event's frames as [`Fragments`] interns them; `None` if the event has none, or its addresses have to be
/// widened.
///
/// [`Fragments`]: super::Fragments
pub fn repeated_frames<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    if event.pointer_size != 8 {
        return None;
    }
    let frames = match event.id {
        WALK => match LoggedPart::decode(event)? {
            (_, PartFrames::Here(frames)) => frames,
            (_, PartFrames::Key(_)) => return None,
        },
        KEY_DELETE | KEY_RUNDOWN => key_frames(event)?.1,
        _ => return None,
    };
    Some(frames.bytes.as_chunks::<8>().0.as_flattened())
}

/// Returns an event's stack part, with frames as in [`repeated_frames`]; `None` if the event is no stack part with
/// frames of this width.
pub fn stack_part<'a>(event: &Event<'a>) -> Option<StackPart<'a>> {
    if event.id != WALK || event.pointer_size != StackPart::POINTER_SIZE {
        return None;
    }
    let (LoggedPart { event_time, pid, tid, is_user, .. }, frames) = LoggedPart::decode(event)?;
    let PartFrames::Here(FrameBytes { bytes, .. }) = frames else { return None };
    let frames = bytes.as_chunks::<8>().0.as_flattened();
    let written = event.time;
    Some(StackPart { event_time, written, pid, tid, is_user, frames, number: None })
}

/// EVENT_HEADER_EXT_TYPE_STACK_TRACE32 and 64: a match id, then frames.
const STACK_32: u16 = 5;
const STACK_64: u16 = 6;
/// EVENT_HEADER_EXT_TYPE_STACK_KEY32 and 64: a match id, then the key of frames.
const KEY_32: u16 = 17;
const KEY_64: u16 = 18;

/// Microsoft-Windows-Kernel-EventTracing.
const EVENT_TRACING: Guid = Guid::from_uuid(uuid!("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"));

/// Carries the user part of the stack of an earlier event of its thread, with the same match id.
pub const USER_PART: EventId = EventId::Manifest { guid: EVENT_TRACING, id: 18 };

/// Stack, or part of one, in an extended item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarriedPart<'a> {
    /// Identifies a stack with its user part in a later event; 0 if no part is missing.
    pub match_id: u64,
    pub frames: PartFrames<'a>,
    /// Bytes per address.
    pub pointer_size: usize,
}

/// Returns the fields of an extended item of this kind if it is a stack, and its pointer size in bytes.
pub fn item_fields(kind: u16) -> (&'static [Field], usize) {
    let fields: &[Field] = match kind {
        STACK_32 | STACK_64 => &[Field::Bytes(8), Field::Addresses],
        KEY_32 | KEY_64 => &[Field::Bytes(8), Field::Pointers(1)],
        _ => &[],
    };
    (fields, if matches!(kind, STACK_32 | KEY_32) { 4 } else { 8 })
}

/// Returns the stacks an event carries, in their order. The innermost frame is first.
pub fn carried_parts<'a>(event: &Event<'a>) -> impl Iterator<Item = CarriedPart<'a>> {
    extended_items(event.extended).filter_map(|item| {
        let (_, pointer_size) = item_fields(item.kind);
        let mut p = Payload::new(item.data, pointer_size);
        let match_id = p.u64()?;
        let frames = match item.kind {
            STACK_32 | STACK_64 => PartFrames::Here(FrameBytes { bytes: p.rest(), number: None }),
            KEY_32 | KEY_64 => PartFrames::Key(p.pointer()?),
            _ => return None,
        };
        Some(CarriedPart { match_id, frames, pointer_size })
    })
}

/// Returns the keys of the stacks an event carries, and the match id if a user part is still to come.
pub fn carried_names(event: &Event<'_>) -> (impl Iterator<Item = u64>, Option<u64>) {
    let key = |part: CarriedPart<'_>| match part.frames {
        PartFrames::Key(key) => Some(key),
        PartFrames::Here(_) => None,
    };
    let match_id = carried_parts(event).next().map(|part| part.match_id);
    (carried_parts(event).filter_map(key), match_id.filter(|id| *id != 0))
}

/// What an event means for stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackUse {
    /// Part of the stack of the event at this raw time; with a key, the frames come later.
    Part { event_time: i64, key: Option<u64> },
    /// Frames of a key.
    Frames { key: u64 },
    /// User part of the stack of an earlier event of its thread.
    UserPart { match_id: u64 },
}

impl StackUse {
    /// Returns `None` for an event that is unrelated to stacks or too short.
    pub fn new(event: &Event<'_>) -> Option<Self> {
        match event.id {
            WALK | KEY_KERNEL | KEY_USER => LoggedPart::decode(event).map(|(part, frames)| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::encoded_item;

    #[test]
    fn stacks_and_keys_of_both_widths_are_decoded_and_cut_items_are_not() {
        let item = |kind, match_id: u64, rest: &[u8]| {
            encoded_item(kind, &[&match_id.to_le_bytes()[..], rest].concat(), true)
        };
        let extended = [
            item(STACK_64, 0, &[1; 16]),
            item(1, 0, &[]),
            item(STACK_32, 9, &[2; 4]),
            item(KEY_32, 0, &[3, 0, 0, 0, 7, 7, 7, 7]),
            item(KEY_64, 0, &[4, 0, 0, 0, 0, 0, 0, 1]),
            encoded_item(KEY_64, &[1; 12], true),
            encoded_item(STACK_64, &[1; 7], false),
        ]
        .concat();
        let event = Event { extended: &extended, ..Event::default() };
        let parts: Vec<_> = carried_parts(&event).collect();
        fn here(bytes: &[u8]) -> PartFrames<'_> {
            PartFrames::Here(FrameBytes { bytes, number: None })
        }
        let part = |match_id, frames, pointer_size| CarriedPart { match_id, frames, pointer_size };
        assert_eq!(
            parts,
            [
                part(0, here(&[1; 16]), 8),
                part(9, here(&[2; 4]), 4),
                part(0, PartFrames::Key(3), 4),
                part(0, PartFrames::Key(0x0100_0000_0000_0004), 8),
            ]
        );
    }
}
