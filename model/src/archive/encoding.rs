//! The choice of an encoding for a column of numbers.
//!
//! Most numbers of a trace are rows of other tables and close to the numbers before: as deltas (DELTA_BINARY_PACKED,
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>) they are small, and need no table of values.

use polars::prelude::PlHashSet;
use polars_arrow::array::{Array, PrimitiveArray};
use polars_parquet::write::Encoding;

use super::numbers::{Number, signed};

/// Numbers that the encoder puts into one block, whose widest delta decides how wide all are.
const BLOCK: usize = 256;

/// Numbers below which a column stays as it is.
const MIN_NUMBERS: usize = 1 << 10;

/// Bits of a delta up to which deltas are better than anything else.
const FEW_BITS: f64 = 4.0;

/// Blocks that are looked at to see how wide deltas are, at least where there are as many.
const BLOCKS: usize = 1 << 6;

/// Numbers that are looked at to see how often they repeat.
const SAMPLE: usize = 1 << 12;

/// 2⁶⁴ over the golden ratio, whose multiples have scattered upper bits (Knuth, The Art of Computer Programming, volume 3, 6.4).
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Halvings of the range in which an estimate lies, until it is within a hundred-thousandth.
const HALVINGS: usize = 20;

/// The encoding in which the numbers of a column take the fewest bytes, by a sample of them. A dictionary need not be worth
/// it where its encoding is chosen.
pub(super) fn encoding<T: Number>(array: &PrimitiveArray<T>) -> Encoding {
    let count = array.len() - array.null_count();
    if count == 0 {
        return Encoding::Plain;
    }
    let numbers = NumberColumn { array };
    if count < MIN_NUMBERS || size_of::<T>() < size_of::<u32>() || !numbers.have_deltas() {
        return Encoding::RleDictionary;
    }
    let delta_bits = numbers.delta_bits();
    if delta_bits <= FEW_BITS || delta_bits < numbers.dictionary_bits() {
        Encoding::DeltaBinaryPacked
    } else {
        Encoding::RleDictionary
    }
}

/// A column of numbers of which an encoding is chosen.
struct NumberColumn<'a, T: Number> {
    array: &'a PrimitiveArray<T>,
}

impl<T: Number> NumberColumn<'_, T> {
    /// Bits of a plain number.
    const BITS: f64 = (size_of::<T>() * 8) as f64;

    /// Whether deltas have room for the numbers: Parquet's 32-bit numbers are signed, and so are their deltas.
    fn have_deltas(&self) -> bool {
        let numbers = self.array.values().iter();
        size_of::<T>() > size_of::<u32>()
            || numbers.fold(0, |all, number| all | signed(*number)) >= 0
    }

    /// The numbers of some rows.
    fn at(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = i64> {
        let values = self.array.values().as_slice();
        let validity = self.array.validity();
        let is_valid = move |row: &usize| validity.is_none_or(|validity| validity.get_bit(*row));
        rows.filter(is_valid).filter_map(|row| values.get(row)).map(|value| signed(*value))
    }

    /// Bits that a number takes as a delta.
    fn delta_bits(&self) -> f64 {
        let rows = self.array.len();
        let every = (rows / BLOCK / BLOCKS).max(1);
        let (mut bits, mut count) = (0, 0);
        for start in (0..rows).step_by(BLOCK * every) {
            let mut numbers = self.at(start..rows.min(start + BLOCK * every)).take(BLOCK);
            let Some(mut last) = numbers.next() else { continue };
            let (mut least, mut greatest, mut in_block) = (i64::MAX, i64::MIN, 0);
            for number in numbers {
                let delta = number.wrapping_sub(last);
                (least, greatest) = (least.min(delta), greatest.max(delta));
                last = number;
                in_block += 1;
            }
            if in_block > 0 {
                bits += in_block * u64::from(u64::BITS - greatest.abs_diff(least).leading_zeros());
                count += in_block;
            }
        }
        if count == 0 { Self::BITS } else { bits as f64 / count as f64 }
    }

    /// Bits that a number takes in a dictionary, those of the dictionary included; those of a plain one where a dictionary
    /// is not worth it.
    fn dictionary_bits(&self) -> f64 {
        let rows = self.array.len();
        let (mut distinct, mut sampled) =
            (PlHashSet::with_capacity_and_hasher(SAMPLE, Default::default()), 0.0);
        let step = (rows / SAMPLE).max(1);
        // Not one row of each step at the same place, because columns may have a value in every second row.
        let places = (0..).map(|at: u64| (at.wrapping_mul(SCATTER) >> u32::BITS) as usize % step);
        let sample = (0..rows).step_by(step).zip(places).map(|(start, place)| start + place);
        for number in self.at(sample.filter(|row| *row < rows)) {
            distinct.insert(number);
            sampled += 1.0;
        }
        if distinct.is_empty() {
            return Self::BITS;
        }
        let seen = distinct.len() as f64;
        let numbers = (rows - self.array.null_count()) as f64;
        // So many of a sample are expected to be distinct when all numbers have so many values.
        let expected = |values: f64| values * (1.0 - (-sampled / values).exp());
        let (mut least, mut most) = (seen, numbers);
        for _ in 0..HALVINGS {
            let middle = least.midpoint(most);
            if expected(middle) < seen { least = middle } else { most = middle }
        }
        let entry = Self::BITS * most / numbers;
        (most.log2().ceil() + entry).min(Self::BITS)
    }
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
        let of_64 = |numbers: Vec<i64>| encoding(&PrimitiveArray::from_vec(numbers));
        assert_eq!(of_64(near), Encoding::DeltaBinaryPacked);
        assert_eq!(of_64(repeated), Encoding::RleDictionary);
        let of_32 = |numbers: Vec<u32>| encoding(&PrimitiveArray::from_vec(numbers));
        assert_eq!(of_32(distinct), Encoding::DeltaBinaryPacked);
        let wide = vec![u32::MAX; ROWS as usize];
        assert_eq!(of_32(wide), Encoding::RleDictionary, "Parquet has no such deltas");
    }

    #[test]
    fn nulls_between_numbers_do_not_change_what_is_chosen() {
        let choice = |every: usize, number: fn(usize) -> i64| {
            let row = |row: usize| (row % every == 1).then(|| number(row / every));
            let rows = 0..(MIN_NUMBERS * every).max(ROWS as usize);
            encoding(&rows.map(row).collect::<PrimitiveArray<i64>>())
        };
        for every in [2, 64, 256, 300] {
            let rising = choice(every, |row| row as i64 * 1_000_003);
            assert_eq!(rising, Encoding::DeltaBinaryPacked, "{every}");
            let repeated = choice(every, |row| (scattered(row as u64) % 5) as i64 * 1_000_003);
            assert_eq!(repeated, Encoding::RleDictionary, "{every}");
        }
    }
}
