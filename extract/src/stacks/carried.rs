//! Stacks that events carry themselves, in their extended items, and the event that brings the rest of one.

use crate::etl::{Event, EventId, Guid};
use crate::metadata::extended_items;
use crate::payload::{Field, Payload};

use super::walk::PartFrames;

/// EVENT_HEADER_EXT_TYPE_STACK_TRACE32 and 64: a match id, then frames.
const STACK_32: u16 = 5;
const STACK_64: u16 = 6;
/// EVENT_HEADER_EXT_TYPE_STACK_KEY32 and 64: a match id, then the key of frames.
const KEY_32: u16 = 17;
const KEY_64: u16 = 18;

/// Microsoft-Windows-Kernel-EventTracing.
const EVENT_TRACING: Guid =
    Guid::new(0xb675_ec37, 0xbdb6, 0x4648, [0xbc, 0x92, 0xf3, 0xfd, 0xc7, 0x4d, 0x3c, 0xa2]);

/// Carries the user part of the stack of an earlier event of its thread, with the same match id.
pub(crate) const USER_PART: EventId = EventId::Manifest { guid: EVENT_TRACING, id: 18 };

/// A stack, or a part of one, in an extended item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CarriedPart<'a> {
    /// Names the stack where its user part comes in another event; 0 where nothing is missing.
    pub(super) match_id: u64,
    pub(super) frames: PartFrames<'a>,
    /// Bytes of an address.
    pub(super) pointer_size: usize,
}

/// What an item of this kind consists of if it is a stack, and how many bytes a pointer in it has.
pub(crate) fn item_fields(kind: u16) -> (&'static [Field], usize) {
    let fields: &[Field] = match kind {
        STACK_32 | STACK_64 => &[Field::Bytes(8), Field::Addresses],
        KEY_32 | KEY_64 => &[Field::Bytes(8), Field::Pointers(1)],
        _ => &[],
    };
    (fields, if matches!(kind, STACK_32 | KEY_32) { 4 } else { 8 })
}

/// The stacks that an event carries, in their order; the innermost frame is first.
pub(super) fn carried_parts<'a>(event: &Event<'a>) -> impl Iterator<Item = CarriedPart<'a>> {
    extended_items(event.extended).filter_map(|item| {
        let (_, pointer_size) = item_fields(item.kind);
        let mut p = Payload::new(item.data, pointer_size);
        let match_id = p.u64()?;
        let frames = match item.kind {
            STACK_32 | STACK_64 => PartFrames::Here(p.rest()),
            KEY_32 | KEY_64 => PartFrames::Key(p.pointer()?),
            _ => return None,
        };
        Some(CarriedPart { match_id, frames, pointer_size })
    })
}

/// The keys of the stacks that an event carries, and the match id of one whose user part is still to come.
pub(crate) fn carried_names(event: &Event<'_>) -> (impl Iterator<Item = u64>, Option<u64>) {
    let key = |part: CarriedPart<'_>| match part.frames {
        PartFrames::Key(key) => Some(key),
        PartFrames::Here(_) => None,
    };
    let match_id = carried_parts(event).next().map(|part| part.match_id);
    (carried_parts(event).filter_map(key), match_id.filter(|id| *id != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::encoded_item;

    #[test]
    fn stacks_and_keys_of_both_widths_are_found_and_cut_ones_are_none() {
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
        let found: Vec<_> = carried_parts(&event).collect();
        let part = |match_id, frames, pointer_size| CarriedPart { match_id, frames, pointer_size };
        assert_eq!(
            found,
            [
                part(0, PartFrames::Here(&[1; 16]), 8),
                part(9, PartFrames::Here(&[2; 4]), 4),
                part(0, PartFrames::Key(3), 4),
                part(0, PartFrames::Key(0x0100_0000_0000_0004), 8),
            ]
        );
    }
}
