//! Numbers distinct byte strings and other lists.

use std::hash::{BuildHasher, Hash};
use std::sync::LazyLock;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::prefetch::prefetch;

/// Numbers lists in the order they are first seen, from 0.
///
/// Lists are compared by content: the hash only finds candidates. They are in one piece of memory, and interning a
/// known list copies nothing.
#[derive(Clone, Default)]
pub struct Interner<T> {
    items: Vec<T>,
    /// End of each list, where the next one starts.
    ends: Vec<usize>,
    /// Hash of each list, so that growing the table does not read the lists, which are not in the cache.
    hashes: Vec<u64>,
    /// Only numbers, so that the table, which is searched for every event, stays in the processor's cache.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Numbers byte strings.
pub type ByteInterner = Interner<u8>;

impl<T: Copy + Eq + Hash> Interner<T> {
    /// Returns the number of a list, after adding it if it is new.
    pub fn intern(&mut self, list: &[T]) -> u32 {
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

    /// Returns the number of a list if it is known.
    pub fn find(&self, list: &[T]) -> Option<u32> {
        let Self { items, ends, table, hasher, .. } = self;
        table.find(hasher.hash_one(list), |id| slice(items, ends, *id) == list).copied()
    }

    /// Returns the list with a number; empty for a number never given.
    pub fn get(&self, id: u32) -> &[T] {
        slice(&self.items, &self.ends, id)
    }

    /// Forgets all lists.
    pub fn clear(&mut self) {
        let Self { items, ends, hashes, table, hasher: _ } = self;
        items.clear();
        ends.clear();
        hashes.clear();
        table.clear();
    }

    /// Number of distinct lists.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns the lists by number.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.count()).map(|id| self.get(id))
    }
}

impl ByteInterner {
    /// Returns the text with a number.
    pub fn text(&self, id: u32) -> String {
        String::from_utf8_lossy(self.get(id)).into_owned()
    }
}

/// 96 bits of hashes with keys that are random in each process. Two different byte strings share them less often than
/// memory fails, and a file cannot bring that about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Hash that confirms a match.
    check: u64,
    /// Hash that finds an entry.
    hash: u32,
}

static KEYS: LazyLock<[DefaultHashBuilder; 2]> = LazyLock::new(Default::default);

impl Fingerprint {
    /// Returns the fingerprint of bytes or numbers.
    pub fn new<T: Hash>(list: &[T]) -> Self {
        let [hash, check] = KEYS.each_ref().map(|key| key.hash_one(list));
        Self { check, hash: upper(hash) }
    }
}

/// Returns the upper half of a hash, which a table keeps next to a number. So growing the table does not read the keys,
/// which may be anywhere in memory, and keys with other hashes are not compared.
pub fn upper(hash: u64) -> u32 {
    (hash >> u32::BITS) as u32
}

/// Makes a hash for a table from the kept half: tables take the position of an entry from the lower bits, and its tag
/// from the upper ones.
pub fn widened(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}

/// Numbers lists in the order they are first seen, from 0, by fingerprint only.
///
/// For a known list, only an entry of the table is read: the lists may be anywhere in hundreds of megabytes, or not
/// kept at all.
#[derive(Default)]
pub struct FingerprintTable {
    table: HashTable<FingerprintEntry>,
}

/// Fingerprint and number in 16 bytes: the number is in the fingerprint's padding.
struct FingerprintEntry {
    check: u64,
    hash: u32,
    number: u32,
}

impl FingerprintTable {
    /// Returns the number of the list with a fingerprint; `None` for a new one if `limit` lists are already known.
    pub fn number_below(&mut self, limit: u32, fingerprint: Fingerprint) -> Option<u32> {
        if self.count() < limit { Some(self.number(fingerprint)) } else { self.find(fingerprint) }
    }

    /// Returns the number of the list with a fingerprint, if it is known.
    pub fn find(&self, fingerprint: Fingerprint) -> Option<u32> {
        let Fingerprint { check, hash } = fingerprint;
        let is_known = |entry: &FingerprintEntry| entry.check == check && entry.hash == hash;
        self.table.find(widened(hash), is_known).map(|entry| entry.number)
    }

    /// Returns the number of the list with a fingerprint. A new one gets the number [`Self::count`].
    pub fn number(&mut self, fingerprint: Fingerprint) -> u32 {
        if let Some(number) = self.find(fingerprint) {
            return number;
        }
        let Fingerprint { check, hash } = fingerprint;
        let number = self.count();
        let entry = FingerprintEntry { check, hash, number };
        self.table.insert_unique(widened(hash), entry, |entry| widened(entry.hash));
        number
    }

    /// Returns the number of lists.
    pub fn count(&self) -> u32 {
        self.table.len() as u32
    }
}

/// Numbers byte strings by fingerprint, and keeps them.
#[derive(Default)]
pub struct FingerprintInterner {
    numbers: FingerprintTable,
    bytes: Vec<u8>,
    /// End of each string, where the next one starts.
    ends: Vec<usize>,
}

impl FingerprintInterner {
    /// Returns the number of a string, after adding it if it is new.
    pub fn intern(&mut self, string: &[u8]) -> u32 {
        let number = self.numbers.number(Fingerprint::new(string));
        if number as usize == self.ends.len() {
            self.bytes.extend_from_slice(string);
            self.ends.push(self.bytes.len());
        }
        number
    }

    /// Returns the string with a number; empty for a number never given.
    pub fn get(&self, number: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, number)
    }

    /// Prefetches the place of a string.
    pub fn fetch_place(&self, number: u32) {
        self.ends.get(number as usize..).into_iter().for_each(prefetch);
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
    fn lists_differ_by_either_hash_of_their_fingerprints() {
        let mut lists = FingerprintTable::default();
        let print = |hash: u8, check: u8| Fingerprint { hash: hash.into(), check: check.into() };
        let numbers =
            [(1, 1), (1, 2), (2, 1), (1, 1)].map(|(hash, check)| lists.number(print(hash, check)));
        assert_eq!((numbers, lists.count()), ([0, 1, 2, 0], 3));
        let below_3 =
            [(2, 1), (2, 2)].map(|(hash, check)| lists.number_below(3, print(hash, check)));
        assert_eq!(below_3, [Some(2), None]);
        let made: Vec<u32> =
            (0..1000_u32).map(|number| lists.number(Fingerprint::new(&[number]))).collect();
        assert_eq!(made, (3..1003).collect::<Vec<_>>());
    }

    #[test]
    fn strings_are_kept_once() {
        let mut strings = FingerprintInterner::default();
        assert_eq!([&b"ab"[..], b"", b"ab"].map(|string| strings.intern(string)), [0, 1, 0]);
        assert_eq!([0, 1, 9].map(|number| strings.get(number)), [&b"ab"[..], b"", b""]);
    }

    #[test]
    fn equal_strings_share_a_number_and_the_empty_string_has_a_number() {
        let mut strings = ByteInterner::default();
        let ids = [&b"ab"[..], b"", b"c", b"ab", b""].map(|string| strings.intern(string));
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!([0, 1, 2, 9].map(|id| strings.get(id)), [&b"ab"[..], b"", b"c", b""]);
    }
}
