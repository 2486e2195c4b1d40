//! Chooses an encoding for a column of numbers.
//!
//! Most numbers of a trace are rows of other tables and close to the numbers before. As deltas (DELTA_BINARY_PACKED,
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>) they are small and need no dictionary.

use polars::prelude::PlHashSet;
use polars_parquet::write::Encoding;

use super::numbers::{DeltaBlock, Number, signed};

/// With fewer numbers than this, deltas are not worth it.
pub const MIN_NUMBERS: usize = 1 << 10;

/// Up to this many bits per delta, deltas beat everything else.
const FEW_BITS: f64 = 4.0;

/// Number of blocks sampled to see how wide deltas are, if there are as many.
const BLOCKS: usize = 1 << 6;

/// Number of numbers sampled to see how often they repeat.
const SAMPLE: usize = 1 << 12;

/// 2⁶⁴ divided by the golden ratio. Its multiples have scattered upper bits (Knuth, The Art of Computer Programming,
/// volume 3, 6.4).
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Number of bisection steps; they narrow the estimate to within a hundred-thousandth.
const HALVINGS: usize = 20;

/// Chooses the encoding that stores the numbers of a column, nulls excluded, in the fewest bytes, judged by a sample.
/// If it chooses a dictionary, that may still turn out not to be worth it.
pub fn choose_encoding<T: Number>(numbers: &[T]) -> Encoding {
    if numbers.is_empty() {
        return Encoding::Plain;
    }
    let is_small = numbers.len() < MIN_NUMBERS || size_of::<T>() < size_of::<u32>();
    if is_small || !have_deltas(numbers) {
        return Encoding::RleDictionary;
    }
    let delta_bits = delta_bits(numbers);
    if delta_bits <= FEW_BITS || delta_bits < dictionary_bits(numbers) {
        Encoding::DeltaBinaryPacked
    } else {
        Encoding::RleDictionary
    }
}

/// Whether the numbers fit as deltas: Parquet's 32-bit numbers are signed, and so are their deltas.
fn have_deltas<T: Number>(numbers: &[T]) -> bool {
    size_of::<T>() > size_of::<u32>()
        || numbers.iter().fold(0, |all, number| all | signed(*number)) >= 0
}

/// Returns the bits per number when stored as deltas, for at least [`MIN_NUMBERS`] numbers.
fn delta_bits<T: Number>(numbers: &[T]) -> f64 {
    let every = (numbers.len() / DeltaBlock::LENGTH / BLOCKS).max(1);
    let (mut bits, mut count) = (0, 0);
    for numbers in numbers.chunks(DeltaBlock::LENGTH * every) {
        let Some((first, rest)) = numbers.split_first() else { continue };
        let rest = &rest[..rest.len().min(DeltaBlock::LENGTH)];
        let (block, _) = DeltaBlock::new(signed(*first), rest);
        bits += block.bits();
        count += rest.len();
    }
    bits as f64 / count as f64
}

/// Returns the bits per number when stored with a dictionary, the dictionary itself included; the plain size if a
/// dictionary is not worth it.
fn dictionary_bits<T: Number>(numbers: &[T]) -> f64 {
    let plain_bits = f64::from(u8::BITS) * size_of::<T>() as f64;
    let step = (numbers.len() / SAMPLE).max(1);
    let mut distinct = PlHashSet::with_capacity_and_hasher(SAMPLE, Default::default());
    let mut sampled = 0.0;
    // The sampled place varies from step to step, because columns may have a value in every second row.
    let places = (0..).map(|at: u64| (at.wrapping_mul(SCATTER) >> u32::BITS) as usize % step);
    for (numbers, place) in numbers.chunks(step).zip(places) {
        if let Some(number) = numbers.get(place) {
            distinct.insert(*number);
            sampled += 1.0;
        }
    }
    let seen = distinct.len() as f64;
    let count = numbers.len() as f64;
    // Expected number of distinct numbers in the sample if the column has `values` distinct ones.
    let expected = |values: f64| values * (1.0 - (-sampled / values).exp());
    let (mut least, mut most) = (seen, count);
    for _ in 0..HALVINGS {
        let middle = least.midpoint(most);
        if expected(middle) < seen { least = middle } else { most = middle }
    }
    let entry = plain_bits * most / count;
    (most.log2().ceil() + entry).min(plain_bits)
}

#[cfg(test)]
mod tests {
    use super::super::parquet::tests::{ROWS, scattered};
    use super::*;

    #[test]
    fn deltas_are_chosen_for_near_numbers_and_dictionaries_for_repeated_ones() {
        let near: Vec<i64> = (0..ROWS as i64).collect();
        let repeated: Vec<i64> =
            (0..ROWS).map(|row| (scattered(row) % 20) as i64 * 1_000_003).collect();
        let distinct: Vec<u32> = (0..ROWS).map(|row| (scattered(row) % 400_000) as u32).collect();
        assert_eq!(choose_encoding(&near), Encoding::DeltaBinaryPacked);
        assert_eq!(choose_encoding(&repeated), Encoding::RleDictionary);
        assert_eq!(choose_encoding(&distinct), Encoding::DeltaBinaryPacked);
        let wide = vec![u32::MAX; ROWS as usize];
        assert_eq!(choose_encoding(&wide), Encoding::RleDictionary, "Parquet has no such deltas");
    }
}
