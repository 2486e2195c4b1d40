//! Parts of stacks, each once, and the keys that stand for some of them.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

/// Names a part of a stack: its frames, or the key whose frames are still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentRef(u32);

const KEYED: u32 = 1 << 31;
const USER: u32 = 1 << 30;
const INDEX: u32 = USER - 1;

impl FragmentRef {
    /// No part of a stack.
    pub const NONE: Self = Self(u32::MAX);

    fn new(index: usize, is_keyed: bool, is_user: bool) -> Self {
        let keyed = if is_keyed { KEYED } else { 0 };
        let user = if is_user { USER } else { 0 };
        Self((index as u32 & INDEX) | keyed | user)
    }

    /// Whether it is the user part.
    pub fn is_user(self) -> bool {
        self != Self::NONE && self.0 & USER != 0
    }

    fn index(self) -> usize {
        (self.0 & INDEX) as usize
    }

    fn is_keyed(self) -> bool {
        self.0 & KEYED != 0
    }
}

/// Address lists, each once, compared by content: the hash only finds candidates.
#[derive(Default)]
pub struct Fragments {
    addresses: Vec<u64>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// For each key that was referred to: the fragment with its frames, once they came.
    keyed: Vec<Option<u32>>,
    /// Keys that were referred to and whose frames have not come yet.
    open_keys: HashMap<u64, u32>,
}

impl Fragments {
    /// The fragment with these addresses.
    pub fn intern(&mut self, addresses: &[u64], is_user: bool) -> FragmentRef {
        FragmentRef::new(self.intern_index(addresses) as usize, false, is_user)
    }

    /// The fragment that a key stands for from now until its frames come.
    ///
    /// Keys are reused, so a reference means the first frames written for the key after it.
    pub fn refer(&mut self, key: u64, is_user: bool) -> FragmentRef {
        let Self { keyed, open_keys, .. } = self;
        let index = *open_keys.entry(key).or_insert_with(|| {
            keyed.push(None);
            keyed.len() as u32 - 1
        });
        FragmentRef::new(index as usize, true, is_user)
    }

    /// Whether somebody waits for the frames of a key.
    pub fn is_awaited(&self, key: u64) -> bool {
        self.open_keys.contains_key(&key)
    }

    /// Takes the frames of a key.
    pub fn define(&mut self, key: u64, addresses: &[u64]) {
        if let Some(index) = self.open_keys.remove(&key) {
            let fragment = self.intern_index(addresses);
            if let Some(slot) = self.keyed.get_mut(index as usize) {
                *slot = Some(fragment);
            }
        }
    }

    /// Keys that were referred to and never defined.
    pub fn unresolved_keys(&self) -> usize {
        self.open_keys.len()
    }

    /// The addresses of a fragment; none for [`FragmentRef::NONE`] and keys without frames.
    pub fn addresses(&self, fragment: FragmentRef) -> &[u64] {
        if fragment == FragmentRef::NONE {
            return &[];
        }
        let index = if fragment.is_keyed() {
            self.keyed.get(fragment.index()).copied().flatten()
        } else {
            Some(fragment.index() as u32)
        };
        index.map_or(&[], |index| slice(&self.addresses, &self.ends, index))
    }

    fn intern_index(&mut self, list: &[u64]) -> u32 {
        let Self { addresses, ends, table, hasher, .. } = self;
        let hash = hasher.hash_one(list);
        if let Some(index) = table.find(hash, |index| slice(addresses, ends, *index) == list) {
            return *index;
        }
        let index = ends.len() as u32;
        addresses.extend_from_slice(list);
        ends.push(addresses.len());
        table.insert_unique(hash, index, |index| hasher.hash_one(slice(addresses, ends, *index)));
        index
    }
}

fn slice<'a>(addresses: &'a [u64], ends: &[usize], index: u32) -> &'a [u64] {
    let index = index as usize;
    let start = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(index).copied().unwrap_or(start);
    &addresses[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_kept_once() {
        let mut fragments = Fragments::default();
        let a = fragments.intern(&[1, 2], false);
        let b = fragments.intern(&[3], false);
        assert_eq!(fragments.intern(&[1, 2], false), a);
        assert_eq!((fragments.addresses(a), fragments.addresses(b)), (&[1, 2][..], &[3][..]));
        assert!(fragments.intern(&[1, 2], true).is_user());
    }

    #[test]
    fn a_reference_means_the_first_frames_after_it() {
        let mut fragments = Fragments::default();
        fragments.define(7, &[9]);
        let before = fragments.refer(7, false);
        fragments.define(7, &[1]);
        let after = fragments.refer(7, false);
        fragments.define(7, &[2]);
        fragments.define(7, &[3]);
        assert_eq!(fragments.addresses(before), [1]);
        assert_eq!(fragments.addresses(after), [2]);
    }

    #[test]
    fn a_key_without_frames_is_no_stack() {
        let mut fragments = Fragments::default();
        let lost = fragments.refer(7, true);
        assert!(fragments.addresses(lost).is_empty());
        assert_eq!(fragments.unresolved_keys(), 1);
    }
}
