//! Little-endian byte strings and GUIDs.

use std::fmt;

/// Width of pointers in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PointerSize {
    /// 4 bytes: written by a 32-bit system or process.
    Four,
    /// 8 bytes.
    #[default]
    Eight,
}

impl PointerSize {
    /// Returns the width in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// A GUID; its text form is lower case with dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guid(u128);

impl Guid {
    /// Creates a GUID from the digits of the text form: `Guid::new(0xb3e675d7_2554_4f18_830b_2762732560de)`.
    #[must_use]
    pub const fn new(digits: u128) -> Self {
        Self(digits)
    }

    /// Returns the 16 bytes as stored in a trace: the first three groups are little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = self.0.to_be_bytes();
        bytes[0..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        bytes
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        f.write_str(&groups.join("-"))
    }
}

/// A byte string built field by field; every method appends and returns the string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByteString(Vec<u8>);

impl ByteString {
    /// Creates an empty byte string.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    #[must_use]
    pub fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    #[must_use]
    pub fn i64(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends an address; 4-byte pointers drop its upper half.
    #[must_use]
    pub fn ptr(self, size: PointerSize, value: u64) -> Self {
        self.raw(&value.to_le_bytes()[..size.bytes()])
    }

    /// Appends addresses.
    #[must_use]
    pub fn ptrs(self, size: PointerSize, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.ptr(size, *value))
    }

    #[must_use]
    pub fn guid(self, guid: Guid) -> Self {
        self.raw(&guid.to_bytes())
    }

    /// Appends a UTF-16 string with its terminator.
    #[must_use]
    pub fn utf16z(self, text: &str) -> Self {
        text.encode_utf16().fold(self, Self::u16).u16(0)
    }

    /// Appends a UTF-16 string of exactly `units` units, cut or padded with zeros.
    #[must_use]
    pub fn utf16_fixed(self, text: &str, units: usize) -> Self {
        text.encode_utf16().chain(std::iter::repeat(0)).take(units).fold(self, Self::u16)
    }

    /// Appends a string of one byte per character, with its terminator.
    #[must_use]
    pub fn ansiz(self, text: &str) -> Self {
        self.raw(text.as_bytes()).u8(0)
    }

    /// Appends zeros.
    #[must_use]
    pub fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// Appends bytes as they are.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Returns the number of bytes appended so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was appended yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the finished bytes.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteString, Guid, PointerSize};

    #[test]
    fn a_guid_stores_its_first_three_groups_little_endian() {
        let guid = Guid::new(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let expected = [
            0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
            0xee, 0xff,
        ];
        assert_eq!(guid.to_bytes(), expected);
        assert_eq!(guid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn strings_and_pointers_are_appended_as_stored() {
        let bytes = ByteString::new().utf16z("aé").ansiz("b").ptr(PointerSize::Four, 0x1_0203_0405);
        assert_eq!(bytes.into_vec(), [b'a', 0, 0xe9, 0, 0, 0, b'b', 0, 5, 4, 3, 2]);
        assert_eq!(ByteString::new().utf16_fixed("abc", 2).into_vec(), [b'a', 0, b'b', 0]);
        assert_eq!(ByteString::new().utf16_fixed("a", 2).into_vec(), [b'a', 0, 0, 0]);
    }
}
