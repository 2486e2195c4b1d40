//! Redacts a buffer and its payloads: headers, numbers and sizes stay.

use super::names::Placeholders;
use crate::collect::FamilyIndex;
use crate::etl::{BUFFER_HEADER_SIZE, Event, EventFrame, EventId, buffer_offset, frame, is_end};
use crate::kernel::Sid;
use crate::payload::{Field, Payload, TraceHeader, utf16_bytes};
use crate::stacks::item_fields;

/// Byte that fills unused space.
const FILLER: u8 = 0xFF;

/// Overwrites text, and every byte not known to be free of text.
#[derive(Default)]
pub struct Redaction {
    names: Placeholders,
    families: FamilyIndex,
}

impl Redaction {
    /// Overwrites the texts of a buffer including its header; `valid` is where its events end, and `time` is that of
    /// the first one.
    pub fn buffer(&mut self, bytes: &mut [u8], valid: usize, time: i64) {
        header(bytes);
        let (events, unused) = bytes.split_at_mut(valid.min(bytes.len()));
        unused.fill(FILLER);
        let (mut at, mut time) = (BUFFER_HEADER_SIZE, time);
        while let Some(rest) = events.get_mut(at..) {
            if is_end(rest) {
                rest.fill(FILLER);
                return;
            }
            let Some(next) = self.event(rest, &mut time) else {
                // Zeros are not an event either, so the copy is as damaged as the trace.
                rest.fill(0);
                return;
            };
            at += next;
        }
    }

    /// Overwrites the texts of the event at the start; returns where the next one is, or `None` if it cannot be framed.
    fn event(&mut self, bytes: &mut [u8], time: &mut i64) -> Option<usize> {
        let EventFrame { event, header, size, stride } = frame(bytes, *time).ok()?;
        *time = event.time;
        let Event { pointer_size, .. } = event;
        let mut fields = match event.id {
            id if id == TraceHeader::EVENT => TraceHeader::FIELDS,
            id => self.families.family(id).map_or(&[][..], |family| family.fields(&event)),
        };
        let mut payload = size - event.payload.len();
        if matches!(event.id, EventId::Manifest { .. }) {
            items(&mut bytes[header..payload], &mut self.names);
        } else if payload > header {
            // These claim to be counters or an instance, which handle events do not have. So the header is damaged, and
            // names are where numbers should be.
            (fields, payload) = (&[], header);
        }
        redact(fields, &mut bytes[payload..size], pointer_size, &mut self.names);
        let padding = stride.min(bytes.len());
        bytes[size..padding].fill(0);
        Some(stride)
    }
}

/// Overwrites leftovers of the session's memory in a buffer header.
pub fn header(bytes: &mut [u8]) {
    for unread in [
        buffer_offset::CURRENT..buffer_offset::REFERENCES,
        buffer_offset::NEXT_BUFFER..buffer_offset::PROCESSOR,
        buffer_offset::LINKS..BUFFER_HEADER_SIZE,
    ] {
        if let Some(field) = bytes.get_mut(unread) {
            field.fill(0);
        }
    }
}

/// Overwrites extended items except stacks: they contain names of events and providers.
fn items(mut rest: &mut [u8], names: &mut Placeholders) {
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let size = usize::from(u16::from_le_bytes([head[0], head[1]])).clamp(8, rest.len());
        let kind = u16::from_le_bytes([head[2], head[3]]);
        let (item, behind) = rest.split_at_mut(size);
        let (fields, pointer_size) = item_fields(kind);
        redact(fields, &mut item[8..], pointer_size, names);
        rest = behind;
    }
}

/// Overwrites the texts of a payload. Bytes after its fields may contain text, so they are overwritten too.
pub fn redact(fields: &[Field], payload: &mut [u8], pointer_size: usize, names: &mut Placeholders) {
    let mut at = 0;
    for field in fields {
        let Some(rest) = payload.get_mut(at..) else { return };
        at += match *field {
            Field::Bytes(count) => count,
            Field::Pointers(count) => count * pointer_size,
            Field::Addresses => addresses(rest, pointer_size),
            Field::Unread(count) => {
                let end = count.min(rest.len());
                rest[..end].fill(0);
                count
            }
            Field::User => user(rest, pointer_size, names),
            Field::Public => utf16_bytes(rest).len() + 2,
            Field::Utf16 => {
                let end = utf16_bytes(rest).len();
                utf16(&mut rest[..end], names);
                end + 2
            }
            Field::Ansi => {
                let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
                ansi(&mut rest[..end], names);
                end + 1
            }
        };
    }
    if let Some(unknown) = payload.get_mut(at..) {
        unknown.fill(0);
    }
}

/// Returns the number of bytes before the first value that is not a code address. Event headers are not.
fn addresses(bytes: &[u8], pointer_size: usize) -> usize {
    let values = bytes.chunks_exact(pointer_size);
    values.take_while(|bytes| is_address(bytes)).count() * pointer_size
}

fn is_address(bytes: &[u8]) -> bool {
    match *bytes {
        // The memory manager has its page tables there.
        [_, _, middle, high] => high != 0xC0 || middle >= 0x80,
        // Canonical: 48 bits, sign-extended.
        [.., sign, 0, 0] => sign < 0x80,
        [.., sign, 0xFF, 0xFF] => sign >= 0x80,
        _ => false,
    }
}

fn utf16(bytes: &mut [u8], names: &mut Placeholders) {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let placeholder = names.of_text(units);
    for (pair, unit) in bytes.chunks_exact_mut(2).zip(placeholder) {
        pair.copy_from_slice(&unit.to_le_bytes());
    }
}

fn ansi(bytes: &mut [u8], names: &mut Placeholders) {
    let placeholder = names.of_text(bytes.iter().map(|byte| u16::from(*byte)));
    for (byte, unit) in bytes.iter_mut().zip(placeholder) {
        // Placeholders are ASCII, and so is what stays.
        *byte = u8::try_from(*unit).unwrap_or(b'x');
    }
}

/// Overwrites the SID of a user; returns the size of the SID and what precedes it.
fn user(bytes: &mut [u8], pointer_size: usize, names: &mut Placeholders) -> usize {
    let mut payload = Payload::new(bytes, pointer_size);
    let sid = Sid::decode(&mut payload).flatten();
    let values = sid.map_or(0, |sid| sid.values.len());
    let used = bytes.len() - payload.rest().len();
    names.sid(&mut bytes[used - values..used]);
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider's event with a payload of eight letters, an item with a name and one with a stack.
    fn manifest_event() -> Vec<u8> {
        let mut bytes = vec![0; 80];
        bytes[0..2].copy_from_slice(&120_u16.to_le_bytes());
        bytes[2..6].copy_from_slice(&[19, 0xC0, 1, 0]);
        bytes.extend([16, 0, 11, 0, 1, 0, 8, 0]);
        bytes.extend(b"provider");
        bytes.extend([16, 0, 6, 0, 0, 0, 8, 0]);
        bytes.extend(b"addresse");
        bytes.extend(b"password");
        bytes
    }

    #[test]
    fn of_an_unknown_event_only_header_and_stack_stay() {
        let mut buffer = vec![0; BUFFER_HEADER_SIZE];
        buffer.extend(manifest_event());
        let valid = buffer.len();
        buffer.extend(b"stale");
        Redaction::default().buffer(&mut buffer, valid, 0);
        let text = String::from_utf8_lossy(&buffer).into_owned();
        assert!(text.contains("addresse"), "{text}");
        for secret in ["provider", "password", "stale"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(buffer.ends_with(&[FILLER; 5]));
        assert_eq!(buffer[BUFFER_HEADER_SIZE..][..80], manifest_event()[..80]);
    }

    /// A kernel event with a 16-byte header.
    fn kernel_event(hook: u16, payload: &[u8]) -> Vec<u8> {
        let size = 16 + payload.len() as u16;
        let mut bytes = [0, 0, 0x11, 0xC0].to_vec();
        bytes.extend([size, hook].map(u16::to_le_bytes).concat());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    /// A close of a handle with this name.
    fn close(name: &str) -> Vec<u8> {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        kernel_event(0x1121, &[&[0; 14], &name[..], &[0; 2]].concat())
    }

    fn redacted(events: &[u8]) -> Vec<u8> {
        let mut buffer = [&[0; BUFFER_HEADER_SIZE], events].concat();
        let valid = buffer.len();
        Redaction::default().buffer(&mut buffer, valid, 0);
        buffer.split_off(BUFFER_HEADER_SIZE)
    }

    #[test]
    fn a_stack_of_a_damaged_size_keeps_its_addresses_and_nothing_of_the_events_in_it() {
        let addresses = [0xffff_f801_0000_1000, 0x7ff6_0000_1000_u64].map(u64::to_le_bytes);
        let mut events = kernel_event(0x1820, &[&[7; 16], &addresses.concat()[..]].concat());
        let stack = events.len();
        events.extend(close("password"));
        let size = events.len() as u16;
        events[4..6].copy_from_slice(&size.to_le_bytes());
        let copy = redacted(&events);
        assert_eq!(copy[..stack], events[..stack]);
        assert!(copy[stack..].iter().all(|byte| *byte == 0), "{copy:?}");
    }

    #[test]
    fn a_damaged_version_makes_no_counters_of_names() {
        let mut events = close("a password longer than counters");
        events[1] = 0x87;
        let copy = redacted(&events);
        assert_eq!(copy[..16], events[..16]);
        assert!(copy[16..].iter().all(|byte| *byte == 0), "{copy:?}");
    }

    #[test]
    fn bytes_that_are_no_event_are_overwritten_and_stay_no_event() {
        for (behind, filler) in [(&b"garbage without an event"[..], 0), (&[0xFF; 24], FILLER)] {
            let mut buffer = vec![0; BUFFER_HEADER_SIZE];
            buffer.extend(manifest_event());
            buffer.extend(behind);
            let valid = buffer.len();
            Redaction::default().buffer(&mut buffer, valid, 0);
            assert!(buffer[valid - 24..].iter().all(|byte| *byte == filler));
        }
        Redaction::default().buffer(&mut [1; 30], 72, 0);
    }

    #[test]
    fn numbers_stay_texts_get_placeholders_and_the_unknown_goes() {
        let mut payload = [1; 12].to_vec();
        payload.extend(b"ab.exe\0");
        payload.extend(b"a\0b\0\0\0");
        payload.extend(b"secret");
        let fields =
            [Field::Pointers(1), Field::Unread(2), Field::Bytes(2), Field::Ansi, Field::Utf16];
        redact(&fields, &mut payload, 8, &mut Placeholders::default());
        let mut expected = vec![1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1];
        expected.extend(b"bb.exe\0");
        expected.extend(b"b\0b\0\0\0");
        expected.extend([0; 6]);
        assert_eq!(payload, expected);
    }

    #[test]
    fn behind_the_last_address_nothing_stays() {
        let code = [0x7ff6_0000_1000_u64, 0xffff_f801_0000_1000, 0xffff_ffff_ffff_fffe, 0];
        for no_address in [*b"password", *b"j\0d\0o\0e\0", [0, 0, 0x11, 0xC0, 40, 0, 0x21, 0x11]] {
            let addresses = code.map(u64::to_le_bytes);
            let mut payload =
                [addresses.concat(), no_address.to_vec(), b"behind".to_vec()].concat();
            redact(&[Field::Addresses], &mut payload, 8, &mut Placeholders::default());
            assert_eq!(payload, [addresses.concat(), vec![0; 14]].concat());
        }
        let mut payload = [0x10, 0x20, 0x40, 0x00, 0xff, 0xff, 0x83, 0xC0].to_vec();
        payload.extend([0, 0, 0x10, 0xC0, 40, 0, 0x21, 0x11]);
        redact(&[Field::Addresses], &mut payload, 4, &mut Placeholders::default());
        assert_eq!(
            payload,
            [&[0x10, 0x20, 0x40, 0x00, 0xff, 0xff, 0x83, 0xC0][..], &[0; 8]].concat()
        );
    }

    #[test]
    fn a_payload_may_end_anywhere() {
        let fields = [
            Field::Pointers(1),
            Field::User,
            Field::Unread(3),
            Field::Ansi,
            Field::Utf16,
            Field::Addresses,
        ];
        for length in 0..64 {
            let mut payload = vec![0x41; length];
            redact(&fields, &mut payload, 8, &mut Placeholders::default());
            assert_eq!(payload.len(), length);
        }
    }
}
