//! Names of allocators, each once.

use std::fmt::Write;

use crate::intern::ByteInterner;
use crate::metadata::Value;

/// Most names, and most bytes of them; hostile traces invent them without end.
const MAX_NAMES: u32 = 1 << 16;
const MAX_BYTES: usize = 64 << 20;

/// What the others are counted under.
const OTHERS: &str = "(other allocators)";

/// Numbers the names that events give.
#[derive(Default)]
pub struct AllocatorNames {
    /// Names as they stand in events, after a byte for the kind of text, so that a known one is not converted again.
    raw: ByteInterner,
    /// For each of those its number among the texts.
    numbers: Vec<u32>,
    texts: ByteInterner,
    bytes: usize,
    left_out: u64,
    scratch: Vec<u8>,
    written: String,
}

impl AllocatorNames {
    /// The number of a name, which is that of [`OTHERS`] when there are too many. A value that is not text is named as
    /// it is printed.
    pub(super) fn number(&mut self, value: Option<Value<'_>>) -> u32 {
        let (kind, bytes) = match value {
            None => (0, &[][..]),
            Some(Value::Utf16(bytes)) => (1, bytes),
            Some(Value::Ansi(bytes)) => (2, bytes),
            Some(other) => {
                self.written.clear();
                let _ = write!(self.written, "{other}");
                (0, self.written.as_bytes())
            }
        };
        self.scratch.clear();
        self.scratch.push(kind);
        self.scratch.extend_from_slice(bytes);
        if let Some(known) = self.raw.find(&self.scratch) {
            return self.numbers.get(known as usize).copied().unwrap_or_default();
        }
        if self.raw.len() >= MAX_NAMES || self.bytes + bytes.len() > MAX_BYTES {
            self.left_out += 1;
            return self.texts.intern(OTHERS.as_bytes());
        }
        self.bytes += bytes.len();
        self.raw.intern(&self.scratch);
        let text = match value.and_then(Value::text) {
            Some(text) => self.texts.intern(text.as_bytes()),
            None => self.texts.intern(self.scratch.get(1..).unwrap_or_default()),
        };
        self.numbers.push(text);
        text
    }

    /// Events whose names are too many.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn text(&self, number: u32) -> String {
        self.texts.text(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_in_two_encodings_is_one_name() {
        let mut names = AllocatorNames::default();
        let wide = names.number(Some(Value::Utf16(b"P\0o\0o\0l\0")));
        assert_eq!(names.number(Some(Value::Ansi(b"Pool"))), wide);
        assert_eq!(names.number(Some(Value::Ansi(b"Pool"))), wide);
        let number = names.number(Some(Value::Hex(0x10)));
        let none = names.number(None);
        assert_eq!(names.number(Some(Value::Utf16(b""))), none);
        assert_eq!([wide, number, none].map(|id| names.text(id)), ["Pool", "0x10", ""]);
    }

    #[test]
    fn names_without_end_are_one() {
        let mut names = AllocatorNames::default();
        for number in 0..u64::from(MAX_NAMES) {
            names.number(Some(Value::Unsigned(number)));
        }
        assert_eq!(names.left_out(), 0);
        let others = names.number(Some(Value::Unsigned(1 << 20)));
        assert_eq!(names.number(Some(Value::Unsigned(1 << 21))), others);
        assert_eq!(names.number(Some(Value::Unsigned(7))), 7);
        assert_eq!((names.left_out(), names.text(others).as_str()), (2, OTHERS));
        let mut large = AllocatorNames::default();
        let others = large.number(Some(Value::Ansi(&vec![b'a'; MAX_BYTES + 1])));
        assert_eq!(large.text(others), OTHERS);
    }
}
