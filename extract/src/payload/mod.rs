//! Payloads as sequences of fields, and the trace header, which is needed before any event.
//!
//! Decoders take an [`Event`] and return plain values borrowed from it. They accept payloads that are longer than
//! known, and return `None` for shorter ones; nothing panics.

mod trace_header;

use std::borrow::Cow;

pub use self::trace_header::{TimeZone, TraceHeader, behind_pointers, header_offset};
use crate::etl::{Event, Guid};

/// Reads fields in sequence; every read returns `None` if the payload is too short.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    rest: &'a [u8],
    pointer_size: usize,
}

impl<'a> Payload<'a> {
    pub fn from_event(event: &Event<'a>) -> Self {
        Self::new(event.payload, event.pointer_size)
    }

    /// Creates a payload with pointers of 4 or 8 bytes.
    pub fn new(bytes: &'a [u8], pointer_size: usize) -> Self {
        Self { rest: bytes, pointer_size }
    }

    /// Returns the bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the pointer size in bytes.
    pub fn pointer_size(&self) -> usize {
        self.pointer_size
    }

    /// Reads the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes(count).map(|_| ())
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a pointer, or another integer as wide as one.
    pub fn pointer(&mut self) -> Option<u64> {
        if self.pointer_size == 8 { self.u64() } else { self.u32().map(u64::from) }
    }

    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(Guid)
    }

    /// Reads UTF-16 text up to its terminator, or to the end of the payload if there is none.
    pub fn utf16(&mut self) -> String {
        let text: Vec<u16> = self
            .rest
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .take_while(|unit| *unit != 0)
            .collect();
        let used = (text.len() + 1) * 2;
        self.rest = self.rest.get(used..).unwrap_or_default();
        String::from_utf16_lossy(&text)
    }

    /// Reads 8-bit text up to its terminator, or to the end of the payload if there is none.
    ///
    /// The code page is not recorded. UTF-8 is tried first; otherwise every byte is taken as Latin-1, so that distinct
    /// names stay distinct.
    pub fn ansi(&mut self) -> Cow<'a, str> {
        let end = self.rest.iter().position(|b| *b == 0).unwrap_or(self.rest.len());
        let text = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        match std::str::from_utf8(text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(text.iter().map(|b| char::from(*b)).collect()),
        }
    }
}

/// Returns the bytes of UTF-16 text up to its terminator, for interning without decoding.
pub fn utf16_bytes(rest: &[u8]) -> &[u8] {
    // Checks four units at once, because every object name passes through here. In the subtraction, the lowest zero
    // unit borrows from its sign bit.
    const ONES: u64 = 0x0001_0001_0001_0001;
    let words = rest.as_chunks::<8>().0;
    let has_end = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        word.wrapping_sub(ONES) & !word & (ONES << 15) != 0
    };
    let start = words.iter().position(has_end).unwrap_or(words.len()) * 8;
    let units = rest[start..].as_chunks::<2>().0;
    let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
    &rest[..start + end * 2]
}

/// Decodes such bytes.
pub fn utf16_text(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Part of a payload, and whether it may contain text of the recording machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// This many bytes of numbers.
    Bytes(usize),
    /// This many pointers, or integers of that size.
    Pointers(usize),
    /// Addresses, up to a value that is not one: an event with a damaged size reaches into the next event.
    Addresses,
    /// This many bytes that the reader skips.
    Unread(usize),
    /// User of a process (TOKEN_USER).
    User,
    /// 8-bit text up to its terminator.
    Ansi,
    /// UTF-16 text up to its terminator.
    Utf16,
    /// UTF-16 text that is part of Windows and does not depend on the machine.
    Public,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_terminator_ends_with_the_payload() {
        assert_eq!(Payload::new(b"a\0b\0c", 8).utf16(), "ab");
        assert_eq!(Payload::new(b"abc", 8).ansi(), "abc");
    }

    #[test]
    fn a_terminator_ends_text_at_any_place_and_bytes_of_units_that_are_zero_do_not() {
        for length in 0..40 {
            // Units like 0x0100 and 0x8000 contain zero bytes.
            let bytes: Vec<u8> =
                (0..length).map(|at| [0x00, 0x01, 0x00, 0x80, 0xFF, 0x00][at % 6]).collect();
            assert_eq!(utf16_bytes(&bytes).len(), length / 2 * 2);
            for end in (0..length.saturating_sub(1)).step_by(2) {
                let mut ended = bytes.clone();
                ended[end..end + 2].fill(0);
                assert_eq!(utf16_bytes(&ended), &bytes[..end], "{length}");
            }
        }
    }

    #[test]
    fn text_ends_at_its_terminator_and_leaves_the_rest() {
        let mut payload = Payload::new(b"a\0\0\0xy\0z", 8);
        assert_eq!(payload.utf16(), "a");
        assert_eq!(payload.ansi(), "xy");
        assert_eq!(payload.rest(), b"z");
    }

    #[test]
    fn short_payloads_give_nothing_and_keep_their_bytes() {
        let mut payload = Payload::new(&[1, 2, 3], 8);
        assert_eq!(payload.u32(), None);
        assert_eq!(payload.u16(), Some(0x0201));
    }

    #[test]
    fn names_in_unknown_code_pages_stay_distinct() {
        assert_eq!(Payload::new(&[b'a', 0xE4, 0], 8).ansi(), "aä");
    }
}
