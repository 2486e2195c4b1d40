//! One payload without texts.

use super::names::Placeholders;
use crate::kernel::Sid;
use crate::payload::{Field, Payload, utf16_bytes};

/// Overwrites the texts of a payload; bytes after its fields are not known to be without, and go.
pub(super) fn redact(
    fields: &[Field],
    payload: &mut [u8],
    pointer_size: usize,
    names: &mut Placeholders,
) {
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

/// Bytes up to the first value that is no address of code. Headers of events are none.
fn addresses(bytes: &[u8], pointer_size: usize) -> usize {
    let values = bytes.chunks_exact(pointer_size);
    values.take_while(|bytes| is_address(bytes)).count() * pointer_size
}

fn is_address(bytes: &[u8]) -> bool {
    match *bytes {
        // The memory manager has its page tables there.
        [_, _, middle, high] => high != 0xC0 || middle >= 0x80,
        // Canonical: of 48 bits, with the sign in front.
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

/// Overwrites the SID of a user; returns its bytes with what is in front.
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
