//! Repeatable damage to the bytes of a file.

use std::ops::Range;

use crate::rng::Rng;

/// A change that [`damage`] made, for the message of a failing test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// Cut off at this length.
    Cut(usize),
    /// Zeros in this range.
    Zeroed(Range<usize>),
    /// Bits flipped at these offsets.
    Flipped(Vec<usize>),
}

/// Cuts the file off at a random place and returns the new length.
pub fn cut(bytes: &mut Vec<u8>, seed: u64) -> usize {
    let at = Rng::new(seed).index(bytes.len());
    bytes.truncate(at);
    at
}

/// Fills a random range of up to `longest` bytes with zeros and returns the range.
fn zero_range(bytes: &mut [u8], seed: u64, longest: usize) -> Range<usize> {
    let mut rng = Rng::new(seed);
    let start = rng.index(bytes.len());
    let longest = longest.min(bytes.len() - start);
    let range = start..start + (1 + rng.index(longest)).min(longest);
    bytes[range.clone()].fill(0);
    range
}

/// Flips `count` random bits and returns the offsets of their bytes.
fn flip_bits(bytes: &mut [u8], seed: u64, count: usize) -> Vec<usize> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut rng = Rng::new(seed);
    let mut flip = || {
        let at = rng.index(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        at
    };
    (0..count).map(|_| flip()).collect()
}

/// Returns the ranges of the buffers in a whole file; the first one has the trace header.
///
/// # Panics
/// If the file is not a sequence of buffers.
#[must_use]
pub fn buffers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let size = bytes[at..at + 4].try_into().expect("four bytes");
        places.push(at..at + u32::from_le_bytes(size) as usize);
        at = places.last().map_or(0, |place| place.end);
    }
    places
}

/// Returns the file without one of its [`buffers`].
#[must_use]
pub fn without(bytes: &[u8], buffer: Range<usize>) -> Vec<u8> {
    [&bytes[..buffer.start], &bytes[buffer.end..]].concat()
}

/// Damages the file in one of the three ways.
pub fn damage(bytes: &mut Vec<u8>, seed: u64) -> Damage {
    let mut rng = Rng::new(!seed);
    match rng.below(3) {
        0 => Damage::Cut(cut(bytes, seed)),
        1 => Damage::Zeroed(zero_range(bytes, seed, 4096)),
        _ => Damage::Flipped(flip_bits(bytes, seed, 1 + rng.index(64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_do_equal_damage_and_different_seeds_every_kind() {
        let mut kinds = [false; 3];
        for seed in 0..50 {
            let original: Vec<u8> = (1..=200).cycle().take(10_000).collect();
            let (mut once, mut twice) = (original.clone(), original.clone());
            let done = damage(&mut once, seed);
            assert_eq!(done, damage(&mut twice, seed));
            assert_eq!(once, twice);
            assert_ne!(once, original, "{done:?}");
            kinds[match done {
                Damage::Cut(_) => 0,
                Damage::Zeroed(_) => 1,
                Damage::Flipped(_) => 2,
            }] = true;
        }
        assert_eq!(kinds, [true; 3]);
    }

    #[test]
    fn an_empty_file_stays_empty() {
        let mut bytes = Vec::new();
        assert_eq!(cut(&mut bytes, 1), 0);
        assert_eq!(zero_range(&mut bytes, 1, 10), 0..0);
        assert!(flip_bits(&mut bytes, 1, 10).is_empty());
    }
}
