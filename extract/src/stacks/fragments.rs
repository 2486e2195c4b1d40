//! Distinct stack parts, and the keys by which events refer to parts written later.

use std::ops::Range;

use hashbrown::HashMap;

use super::parts::{CarriedPart, FrameBytes, PartFrames};
use crate::etl::MAX_REPEATED;
use crate::intern::FingerprintInterner;
use crate::number_set::NumberSet;
use crate::prefetch::{prefetch, prefetch_all};

/// Number of a stack part: of its frames, or of the key while its frames are still to come.
///
/// Four bytes including [`Self::NONE`]: each event has two of them, and the pair is hashed for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentRef(u32);

const KEYED: u32 = 1 << 31;
const USER: u32 = 1 << 30;
const SHARED: u32 = 1 << 29;
const INDEX: u32 = SHARED - 1;

impl FragmentRef {
    /// No stack part.
    pub const NONE: Self = Self(u32::MAX);

    /// Returns the part with the address list of this number.
    pub fn numbered(number: u32, is_user: bool) -> Self {
        Self::new(number as usize, false, is_user)
    }

    fn new(index: usize, is_keyed: bool, is_user: bool) -> Self {
        let keyed = if is_keyed { KEYED } else { 0 };
        let user = if is_user { USER } else { 0 };
        Self((index as u32 & INDEX) | keyed | user)
    }

    /// Whether it is the user part.
    pub fn is_user(self) -> bool {
        self != Self::NONE && self.0 & USER != 0
    }

    /// Marks the part as coming from another event of the same stay in the kernel.
    pub fn shared(self) -> Self {
        if self == Self::NONE { self } else { Self(self.0 | SHARED) }
    }

    /// Whether it came from another event's stack.
    pub fn is_shared(self) -> bool {
        self != Self::NONE && self.0 & SHARED != 0
    }

    /// Removes the mark of [`Self::shared`], so that equal parts compare equal.
    pub fn without_origin(self) -> Self {
        if self == Self::NONE { self } else { Self(self.0 & !SHARED) }
    }

    fn index(self) -> usize {
        (self.0 & INDEX) as usize
    }

    fn is_keyed(self) -> bool {
        self.0 & KEYED != 0
    }
}

/// Half of a stack that a key refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Kernel,
    User,
    /// Either one: events that carry a single key do not say which.
    Any,
}

/// Distinct address lists. Those with a number from [`Event::repeated`] are told apart by it, others by content.
///
/// Lists are kept as in the file, eight bytes per address, so interning a known list copies nothing.
///
/// [`Event::repeated`]: crate::etl::Event::repeated
#[derive(Default)]
pub struct Fragments {
    /// Lists with a number, which is their index.
    numbered: NumberedLists,
    /// Lists without a number. Their indexes begin at [`MAX_REPEATED`].
    lists: FingerprintInterner,
    widened: Vec<u8>,
    /// Fragment with the frames of each referenced key, once they have come.
    keyed: Vec<Option<u32>>,
    /// Referenced keys without frames so far. One key may refer to a kernel part and a user part at once.
    open_keys: HashMap<(u64, KeyKind), u32>,
    /// Keys whose frames may have been overwritten.
    forgotten: usize,
    /// Whether any kernel part's key has frames that end in user mode.
    has_whole_keys: bool,
}

impl Fragments {
    /// Adds a stack part.
    pub fn add(
        &mut self,
        frames: PartFrames<'_>,
        pointer_size: usize,
        is_user: bool,
    ) -> FragmentRef {
        match frames {
            PartFrames::Here(frames) => {
                let index = self.intern_frames(frames, pointer_size);
                FragmentRef::new(index as usize, false, is_user)
            }
            PartFrames::Key(key) => {
                self.refer(key, if is_user { KeyKind::User } else { KeyKind::Kernel })
            }
        }
    }

    /// Adds a part that an event carries; `at` is its position in the event. If no user part is missing, the first part
    /// may be of either kind.
    pub fn add_carried(&mut self, part: &CarriedPart<'_>, at: usize) -> FragmentRef {
        match part.frames {
            PartFrames::Key(key) if at == 0 && part.match_id == 0 => self.refer(key, KeyKind::Any),
            frames => self.add(frames, part.pointer_size, at > 0),
        }
    }

    /// Keeps an address list under its number.
    pub fn keep(&mut self, number: u32, addresses: &[[u8; 8]]) {
        self.numbered.keep(number, addresses);
    }

    /// Returns the fragment for these addresses. `frames` has them as in a stack event of a system with
    /// `pointer_size`-byte pointers. A cut last address is left out.
    pub fn intern(&mut self, frames: &[u8], pointer_size: usize, is_user: bool) -> FragmentRef {
        let frames = FrameBytes { bytes: frames, number: None };
        self.add(PartFrames::Here(frames), pointer_size, is_user)
    }

    /// Returns the fragment that a key refers to from now until its frames come.
    ///
    /// Keys are reused, so a reference means the first frames written for the key after it.
    pub fn refer(&mut self, key: u64, kind: KeyKind) -> FragmentRef {
        let Self { keyed, open_keys, .. } = self;
        let index = *open_keys.entry((key, kind)).or_insert_with(|| {
            keyed.push(None);
            keyed.len() as u32 - 1
        });
        FragmentRef::new(index as usize, true, kind == KeyKind::User)
    }

    /// Defines the frames of a key, given as for [`Self::intern`].
    ///
    /// They are a user part if the last frame is in user mode. On ARM64, a kernel part may include the user frames.
    pub fn define(&mut self, key: u64, frames: FrameBytes<'_>, pointer_size: usize) {
        if self.open_keys.is_empty() {
            return;
        }
        let is_user = frames.ends_in_user_mode(pointer_size);
        let kind = if is_user { KeyKind::User } else { KeyKind::Kernel };
        let mut open = self.open_keys.remove(&(key, kind));
        if open.is_none() && is_user && !frames.begins_in_user_mode(pointer_size) {
            open = self.open_keys.remove(&(key, KeyKind::Kernel));
            self.has_whole_keys |= open.is_some();
        }
        let any = self.open_keys.remove(&(key, KeyKind::Any));
        if open.is_none() && any.is_none() {
            return;
        }
        let fragment = self.intern_frames(frames, pointer_size);
        for index in open.into_iter().chain(any) {
            if let Some(slot) = self.keyed.get_mut(index as usize) {
                *slot = Some(fragment);
            }
        }
    }

    /// Makes the frames of all keys referenced so far unknown. They may have been in buffers that a ring overwrote, so
    /// frames seen for these keys, before or later, may belong to the next use of the key.
    pub fn forget_keys(&mut self) {
        self.forgotten = self.keyed.len();
        self.keyed.fill(None);
        self.open_keys.clear();
    }

    /// Returns the number of keys that were referenced but never defined.
    pub fn unresolved_keys(&self) -> usize {
        self.forgotten + self.open_keys.len()
    }

    /// Whether a kernel part that came as a key has frames that end in user mode, so that no user part is missing.
    pub fn is_whole_key(&self, fragment: FragmentRef) -> bool {
        let is_kernel_key =
            fragment != FragmentRef::NONE && fragment.is_keyed() && !fragment.is_user();
        self.has_whole_keys
            && is_kernel_key
            && self.content(fragment).is_some_and(|index| {
                let frames = FrameBytes { bytes: self.list(index), number: None };
                frames.ends_in_user_mode(8)
            })
    }

    /// Whether [`Self::is_whole_key`] is true for any part.
    pub fn has_whole_keys(&self) -> bool {
        self.has_whole_keys
    }

    /// Returns the number of a fragment's addresses; `None` for [`FragmentRef::NONE`] and keys without frames. Equal
    /// addresses of stack events have equal numbers. Addresses that an event carries, and 32-bit ones, have other
    /// numbers.
    pub fn content(&self, fragment: FragmentRef) -> Option<u32> {
        if fragment == FragmentRef::NONE {
            None
        } else if fragment.is_keyed() {
            self.keyed.get(fragment.index()).copied().flatten()
        } else {
            Some(fragment.index() as u32)
        }
    }

    /// Returns the addresses of a fragment; none for [`FragmentRef::NONE`] and keys without frames.
    pub fn addresses(&self, fragment: FragmentRef) -> impl Iterator<Item = u64> + Clone + '_ {
        let list = self.content(fragment).map_or(&[][..], |index| self.list(index));
        list.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn list(&self, index: u32) -> &[u8] {
        match index.checked_sub(MAX_REPEATED) {
            Some(index) => self.lists.get(index),
            None => self.numbered.get(index),
        }
    }

    /// Prefetches what [`Self::fetch`] reads of a fragment.
    pub fn fetch_place(&self, fragment: FragmentRef) {
        let Some(index) = self.content(fragment) else { return };
        match index.checked_sub(MAX_REPEATED) {
            Some(index) => self.lists.fetch_place(index),
            None => self.numbered.fetch_place(index),
        }
    }

    /// Prefetches the addresses of a fragment, which may be anywhere in hundreds of megabytes.
    pub fn fetch(&self, fragment: FragmentRef) {
        self.content(fragment).into_iter().for_each(|index| prefetch_all(self.list(index)));
    }

    fn intern_frames(&mut self, frames: FrameBytes<'_>, pointer_size: usize) -> u32 {
        let FrameBytes { bytes, number } = frames;
        if pointer_size == 8 {
            let addresses = bytes.as_chunks().0;
            return match number {
                Some(number) if self.numbered.keep(number, addresses) => number,
                _ => self.intern_bytes(addresses.as_flattened()),
            };
        }
        let mut widened = std::mem::take(&mut self.widened);
        widened.clear();
        for address in bytes.as_chunks::<4>().0 {
            widened.extend_from_slice(address);
            widened.extend_from_slice(&[0; 4]);
        }
        let index = self.intern_bytes(&widened);
        self.widened = widened;
        index
    }

    fn intern_bytes(&mut self, addresses: &[u8]) -> u32 {
        MAX_REPEATED + self.lists.intern(addresses)
    }
}

/// Address lists with bytes that were numbered when their buffer was decoded. For a known list, only one bit is read.
#[derive(Default)]
struct NumberedLists {
    /// Numbers of the lists kept here.
    known: NumberSet,
    places: Vec<ListRange>,
    addresses: Vec<[u8; 8]>,
}

/// Range of a list in the addresses of all lists, packed into eight bytes. There may be millions of lists, and more
/// than 2³² addresses.
#[derive(Debug, Clone, Copy, Default)]
struct ListRange(u64);

/// Bits for the length of a list: an event has less than 64 KiB.
const LENGTH_BITS: u32 = 16;

impl ListRange {
    /// Packs a range; `None` if the list is too long, or too far from the first one.
    fn new(start: usize, length: usize) -> Option<Self> {
        let is_far = start as u64 >> (u64::BITS - LENGTH_BITS) != 0;
        let is_long = length as u64 >> LENGTH_BITS != 0;
        (!is_far && !is_long).then_some(Self((start as u64) << LENGTH_BITS | length as u64))
    }

    fn range(self) -> Range<usize> {
        let start = (self.0 >> LENGTH_BITS) as usize;
        start..start + (self.0 & ((1 << LENGTH_BITS) - 1)) as usize
    }
}

impl NumberedLists {
    /// Keeps a list under its number unless it is already here. Returns `false` if it cannot be kept.
    fn keep(&mut self, number: u32, list: &[[u8; 8]]) -> bool {
        let at = number as usize;
        if self.known.has(at) {
            return true;
        }
        let Self { known, places, addresses } = self;
        let Some(place) = ListRange::new(addresses.len(), list.len()) else { return false };
        if number >= MAX_REPEATED {
            return false;
        }
        known.insert(at);
        if places.len() <= at {
            places.resize(at + 1, ListRange::default());
        }
        places[at] = place;
        addresses.extend_from_slice(list);
        true
    }

    /// Returns the list with a number; empty if there is none.
    fn get(&self, number: u32) -> &[u8] {
        let place = self.places.get(number as usize).copied().unwrap_or_default();
        self.addresses.get(place.range()).unwrap_or_default().as_flattened()
    }

    /// Prefetches the place of a list.
    fn fetch_place(&self, number: u32) {
        self.places.get(number as usize..).into_iter().for_each(prefetch);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Encodes addresses as in a stack event of a 64-bit system.
    pub fn frames(addresses: &[u64]) -> Vec<u8> {
        addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
    }

    fn define(fragments: &mut Fragments, key: u64, addresses: &[u64]) {
        let frames = FrameBytes { bytes: &frames(addresses), number: None };
        fragments.define(key, frames, 8);
    }

    fn addresses(fragments: &Fragments, fragment: FragmentRef) -> Vec<u64> {
        fragments.addresses(fragment).collect()
    }

    #[test]
    fn equal_parts_are_kept_once() {
        let mut fragments = Fragments::default();
        let a = fragments.intern(&frames(&[1, 2]), 8, false);
        let b = fragments.intern(&frames(&[3]), 8, false);
        assert_eq!(fragments.intern(&frames(&[1, 2]), 8, false), a);
        assert_eq!(addresses(&fragments, a), [1, 2]);
        assert_eq!(addresses(&fragments, b), [3]);
        assert!(fragments.intern(&frames(&[1, 2]), 8, true).is_user());
    }

    #[test]
    fn a_part_with_a_number_is_kept_once_and_read_by_it() {
        let mut fragments = Fragments::default();
        let mut add = |addresses: &[u64], number| {
            let frames = FrameBytes { bytes: &frames(addresses), number: Some(number) };
            fragments.add(PartFrames::Here(frames), 8, false)
        };
        let [a, b, again] = [(&[1, 2][..], 70), (&[3], 0), (&[1, 2], 70)].map(|(a, n)| add(a, n));
        let [c, d] = [MAX_REPEATED, MAX_REPEATED + 1].map(|number| add(&[4], number));
        assert_eq!((again, d), (a, c), "the bytes of numbers that are too large are compared");
        let all = [a, b, c].map(|fragment| addresses(&fragments, fragment));
        assert_eq!(all, [vec![1, 2], vec![3], vec![4]]);
        let never_kept = FragmentRef::new(69, false, false);
        assert!(addresses(&fragments, never_kept).is_empty());
    }

    #[test]
    fn a_place_has_more_than_32_bits_and_a_list_that_is_longer_than_an_event_has_none() {
        let place = |start, length| ListRange::new(start, length).map(ListRange::range);
        let start = 5 << 32;
        assert_eq!(place(start, 8_190), Some(start..start + 8_190));
        assert_eq!((place(start, 1 << 16), place(1 << 48, 1)), (None, None));
        assert_eq!(ListRange::default().range(), 0..0);
    }

    #[test]
    fn narrow_addresses_are_widened_and_a_cut_address_is_left_out() {
        let mut fragments = Fragments::default();
        let narrow = fragments.intern(&[1, 0, 0, 0x80, 2, 0, 0, 0, 9], 4, false);
        assert_eq!(addresses(&fragments, narrow), [0x8000_0001, 2]);
        assert_eq!(fragments.intern(&frames(&[0x8000_0001, 2]), 8, false), narrow);
        let mut cut = frames(&[7]);
        cut.push(1);
        let wide = fragments.intern(&cut, 8, false);
        assert_eq!(addresses(&fragments, wide), [7]);
    }

    #[test]
    fn a_reference_means_the_first_frames_after_it() {
        let mut fragments = Fragments::default();
        define(&mut fragments, 7, &[9]);
        let before = fragments.refer(7, KeyKind::User);
        define(&mut fragments, 7, &[1]);
        let after = fragments.refer(7, KeyKind::User);
        define(&mut fragments, 7, &[2]);
        define(&mut fragments, 7, &[3]);
        assert_eq!(addresses(&fragments, before), [1]);
        assert_eq!(addresses(&fragments, after), [2]);
    }

    #[test]
    fn one_key_stands_for_a_kernel_part_and_a_user_part_at_once() {
        const KERNEL: u64 = 0xFFFF_8000_0000_0000;
        let mut fragments = Fragments::default();
        let kernel = fragments.refer(7, KeyKind::Kernel);
        let user = fragments.refer(7, KeyKind::User);
        let any = fragments.refer(7, KeyKind::Any);
        define(&mut fragments, 7, &[1, 2]);
        define(&mut fragments, 7, &[KERNEL]);
        assert_eq!(addresses(&fragments, kernel), [KERNEL]);
        assert_eq!(addresses(&fragments, user), [1, 2]);
        assert_eq!(addresses(&fragments, any), [1, 2], "the first frames");
        assert!(!fragments.has_whole_keys());
        let whole = fragments.refer(8, KeyKind::Kernel);
        define(&mut fragments, 8, &[KERNEL, 5]);
        assert_eq!(addresses(&fragments, whole), [KERNEL, 5]);
        assert!(fragments.is_whole_key(whole) && !fragments.is_whole_key(kernel));
    }

    #[test]
    fn frames_that_may_be_of_the_next_use_of_a_key_are_not_taken() {
        let mut fragments = Fragments::default();
        let [defined, open] = [7, 8].map(|key| fragments.refer(key, KeyKind::User));
        define(&mut fragments, 7, &[1]);
        fragments.forget_keys();
        let after = fragments.refer(8, KeyKind::User);
        define(&mut fragments, 8, &[2]);
        assert!([defined, open].iter().all(|key| addresses(&fragments, *key).is_empty()));
        assert_eq!((addresses(&fragments, after), fragments.unresolved_keys()), (vec![2], 2));
    }

    #[test]
    fn a_key_without_frames_is_no_stack() {
        let mut fragments = Fragments::default();
        let lost = fragments.refer(7, KeyKind::User);
        assert!(addresses(&fragments, lost).is_empty());
        assert_eq!(fragments.unresolved_keys(), 1);
    }
}
