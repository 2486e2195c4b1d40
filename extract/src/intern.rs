//! Byte strings, each once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Numbers byte strings in the order they are first seen, from 0.
///
/// Strings are compared by content: the hash only finds candidates. They lie in one piece of
/// memory, and interning a known one copies nothing.
#[derive(Default)]
pub(crate) struct ByteInterner {
    bytes: Vec<u8>,
    /// Where each string ends, which is where the next one starts.
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl ByteInterner {
    /// The number of a string.
    pub(crate) fn intern(&mut self, string: &[u8]) -> u32 {
        let Self { bytes, ends, table, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(id) = table.find(hash, |id| slice(bytes, ends, *id) == string) {
            return *id;
        }
        let id = ends.len() as u32;
        bytes.extend_from_slice(string);
        ends.push(bytes.len());
        table.insert_unique(hash, id, |id| hasher.hash_one(slice(bytes, ends, *id)));
        id
    }

    /// The string with a number; empty for a number never given.
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = id.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(id).copied().unwrap_or(start);
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_number_and_the_empty_one_has_its_own() {
        let mut strings = ByteInterner::default();
        let ids = [&b"ab"[..], b"", b"c", b"ab", b""].map(|string| strings.intern(string));
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!([0, 1, 2, 9].map(|id| strings.get(id)), [&b"ab"[..], b"", b"c", b""]);
    }
}
