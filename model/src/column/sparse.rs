//! Sets of rows of a table, and columns that keep only such rows in memory.

use std::sync::Arc;

use polars_arrow::bitmap::Bitmap;

use super::number::Number;
use super::values::{Flags, Numbers};

/// Rows per word of a set.
const WORD: usize = u64::BITS as usize;

/// A set of rows of a table.
#[derive(Debug, Clone)]
pub struct RowSet {
    words: Vec<u64>,
    /// For each word, the number of rows in the words before it.
    before: Vec<u32>,
    /// Number of rows.
    count: usize,
    /// Number of rows of the whole table.
    height: usize,
}

impl RowSet {
    /// Creates a set of rows of a table of `height`; ignores rows beyond it.
    pub fn new(height: usize, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut words = vec![0; height.div_ceil(WORD)];
        for row in rows.into_iter().filter(|row| *row < height) {
            if let Some(word) = words.get_mut(row / WORD) {
                *word |= 1_u64 << (row % WORD);
            }
        }
        Self::from_words(words, height)
    }

    /// Returns the set of all rows of a table of `height`.
    pub fn all(height: usize) -> Self {
        let mut words = vec![u64::MAX; height.div_ceil(WORD)];
        if let Some(last) = words.last_mut() {
            *last >>= height.wrapping_neg() % WORD;
        }
        Self::from_words(words, height)
    }

    fn from_words(words: Vec<u64>, height: usize) -> Self {
        let mut count = 0;
        let before = words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before = before.collect();
        Self { words, before, count: count as usize, height }
    }

    /// Iterates over the rows in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(index * WORD + bit)
            })
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of rows of the whole table.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Whether this set contains every row of another set over the same table.
    pub fn has_all(&self, rows: &Self) -> bool {
        let words = self.words.iter().zip(&rows.words);
        self.height == rows.height && words.into_iter().all(|(has, needs)| needs & !has == 0)
    }

    /// Returns the index of a row within the set; `None` if the set lacks it.
    #[inline]
    pub fn place(&self, row: usize) -> Option<usize> {
        let (word, bit) = (*self.words.get(row / WORD)?, 1_u64 << (row % WORD));
        let before = *self.before.get(row / WORD)? as usize;
        (word & bit != 0).then(|| before + (word & (bit - 1)).count_ones() as usize)
    }

    /// Returns a bitmap with one bit per row of the table.
    pub fn bits(&self) -> Bitmap {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Bitmap::from_u8_vec(bytes, self.height)
    }
}

/// Values of some rows of a column, or of all rows if that costs no more.
pub struct Sparse<V> {
    values: V,
    /// The rows that have values; `None` for all.
    rows: Option<Arc<RowSet>>,
}

/// A column that was not read: it has no rows.
impl<V: Default> Default for Sparse<V> {
    fn default() -> Self {
        Self { values: V::default(), rows: None }
    }
}

impl<V> Sparse<V> {
    pub fn new(values: V, rows: Option<Arc<RowSet>>) -> Self {
        Self { values, rows }
    }

    #[inline]
    fn place(&self, row: usize) -> Option<usize> {
        match &self.rows {
            Some(rows) => rows.place(row),
            None => Some(row),
        }
    }
}

impl<T: Number> Sparse<Numbers<T>> {
    /// Returns the number of a row; `None` if it is null or was not read.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        self.values.get(self.place(row)?)
    }
}

impl Sparse<Flags> {
    /// Returns the value of a row; false if it is null or was not read.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.place(row).is_some_and(|place| self.values.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_places_and_others_have_none() {
        let rows = [0, 63, 64, 65, 200];
        let set = RowSet::new(201, rows.into_iter().rev().chain([64, 201, 999]));
        assert_eq!((set.len(), set.height(), set.is_empty()), (5, 201, false));
        let places = (0..300).filter_map(|row| Some((row, set.place(row)?)));
        let expected: Vec<_> = rows.into_iter().zip(0..).collect();
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(set.iter().collect::<Vec<_>>(), rows);
        for height in [0, 1, 64, 130] {
            assert_eq!(RowSet::all(height).iter().collect::<Vec<_>>(), Vec::from_iter(0..height));
        }
        assert!(RowSet::all(201).has_all(&set) && set.has_all(&RowSet::new(201, [64])));
        assert!(!set.has_all(&RowSet::all(201)) && !RowSet::all(300).has_all(&set));
        let bits = set.bits();
        let set_rows: Vec<_> = (0..bits.len()).filter(|row| bits.get_bit(*row)).collect();
        assert_eq!((bits.len(), set_rows), (201, rows.to_vec()));
        assert!(RowSet::new(0, [0]).is_empty());
    }
}
