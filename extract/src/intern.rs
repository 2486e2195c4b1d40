//! Distinct byte strings and other lists, by number.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Numbers lists in the order they are first seen, from 0.
///
/// Lists are compared by content: the hash only finds candidates. They lie in one piece of memory,
/// and interning a list that is known copies nothing.
#[derive(Default)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    /// End of each list, which is the start of the next.
    ends: Vec<usize>,
    /// The hash of each list, so that growing the table does not read the lists, which are not in the cache.
    hashes: Vec<u64>,
    /// Numbers only, so that the table, which is searched for every event, stays in the processor's cache.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Numbers byte strings.
pub(crate) type ByteInterner = Interner<u8>;

impl<T: Copy + Eq + Hash> Interner<T> {
    /// The number of a list.
    pub(crate) fn intern(&mut self, list: &[T]) -> u32 {
        let Self { items, ends, hashes, table, hasher } = self;
        let hash = hasher.hash_one(list);
        if let Some(id) = table.find(hash, |id| slice(items, ends, *id) == list) {
            return *id;
        }
        let id = ends.len() as u32;
        items.extend_from_slice(list);
        ends.push(items.len());
        hashes.push(hash);
        table.insert_unique(hash, id, |id| hashes.get(*id as usize).copied().unwrap_or_default());
        id
    }

    /// The number of a list that is known.
    pub(crate) fn find(&self, list: &[T]) -> Option<u32> {
        let Self { items, ends, table, hasher, .. } = self;
        table.find(hasher.hash_one(list), |id| slice(items, ends, *id) == list).copied()
    }

    /// The list with a number; empty for a number never given.
    pub(crate) fn get(&self, id: u32) -> &[T] {
        slice(&self.items, &self.ends, id)
    }

    /// Number of distinct lists.
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The lists by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.len()).map(|id| self.get(id))
    }
}

impl ByteInterner {
    /// The text with a number.
    pub(crate) fn text(&self, id: u32) -> String {
        String::from_utf8_lossy(self.get(id)).into_owned()
    }
}

fn slice<'a, T>(items: &'a [T], ends: &[usize], id: u32) -> &'a [T] {
    let id = id as usize;
    let start = id.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(id).copied().unwrap_or(start);
    &items[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_number_and_the_empty_string_has_a_number() {
        let mut strings = ByteInterner::default();
        let ids = [&b"ab"[..], b"", b"c", b"ab", b""].map(|string| strings.intern(string));
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!([0, 1, 2, 9].map(|id| strings.get(id)), [&b"ab"[..], b"", b"c", b""]);
    }
}
