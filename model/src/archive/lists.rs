//! Pages of a Parquet column of lists of numbers.
//!
//! The writer of polars derives the levels of each number three times, from descriptions of arbitrarily nested columns.
//! That takes a twentieth of an extraction of millions of stacks. Lists of numbers without nulls need little: a number
//! repeats the list of the previous number unless it is the first of its list, and every number is defined
//! (<https://parquet.apache.org/docs/file-format/nestedencoding/>).

use std::ops::Range;
use std::{iter, mem};

use polars_arrow::array::{Array, ListArray, PrimitiveArray};
use polars_parquet::parquet::schema::Repetition;
use polars_parquet::write::{Encoding, Page, ParquetType, to_parquet_leaves};

use super::hybrid;
use super::numbers::{add_plain, data_page, min_max, statistics};

/// Lists of numbers without nulls.
pub struct NumberLists<'a> {
    /// Index of the number at which each list starts, and the end of the last list.
    offsets: &'a [i64],
    numbers: &'a [u32],
}

impl<'a> NumberLists<'a> {
    /// Returns the lists of a column; `None` for a column of another type or with nulls.
    pub fn new(array: &'a dyn Array) -> Option<Self> {
        let lists = array.as_any().downcast_ref::<ListArray<i64>>()?;
        let numbers = lists.values().as_any().downcast_ref::<PrimitiveArray<u32>>()?;
        let has_nulls = lists.null_count() + numbers.null_count() > 0;
        let (offsets, numbers) = (lists.offsets().as_slice(), numbers.values().as_slice());
        (!has_nulls).then_some(Self { offsets, numbers })
    }

    /// Returns the pages of the column. Each has at most `page_bytes` bytes of numbers, but at least one list.
    pub fn pages(&self, of_type: &ParquetType, page_bytes: usize) -> Vec<Page> {
        let mut leaves = to_parquet_leaves(of_type.clone());
        let Some(primitive_type) = leaves.pop() else { return Vec::new() };
        let levels = |of: Repetition| u32::from(of == Repetition::Optional);
        // Definition levels of an empty list and of a number.
        let of_empty = levels(of_type.get_field_info().repetition);
        let of_number = of_empty + 1 + levels(primitive_type.field_info.repetition);
        let page = |rows: Range<usize>| {
            let numbers = self.numbers(&rows);
            let statistics = statistics(&primitive_type, min_max(numbers), 0);
            let levels = self.lengths(&rows).map(|length| length.max(1)).sum();
            let buffer = self.page(&rows, levels, [of_empty, of_number]);
            data_page(buffer, Encoding::Plain, rows.len(), levels, statistics)
        };
        self.ranges(page_bytes).map(page).collect()
    }

    /// Rows of each page.
    fn ranges(&self, page_bytes: usize) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        iter::from_fn(move || {
            let rest = self.offsets.get(start..).filter(|rest| rest.len() > 1)?;
            let limit = rest.first()? + (page_bytes / size_of::<u32>()) as i64;
            let rows = rest.partition_point(|offset| *offset <= limit) - 1;
            let end = start + rows.max(1);
            Some(mem::replace(&mut start, end)..end)
        })
    }

    fn lengths(&self, rows: &Range<usize>) -> impl Iterator<Item = usize> {
        let offsets = self.offsets.get(rows.start..=rows.end).unwrap_or_default();
        offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize)
    }

    fn numbers(&self, rows: &Range<usize>) -> &[u32] {
        &self.numbers[self.offsets[rows.start] as usize..self.offsets[rows.end] as usize]
    }

    /// Encodes repetition levels, definition levels and numbers. There is one level of each kind per number and per
    /// empty list.
    fn page(&self, rows: &Range<usize>, levels: usize, [of_empty, of_number]: [u32; 2]) -> Vec<u8> {
        let numbers = self.numbers(rows);
        let size = levels.div_ceil(8) + size_of_val(numbers) + HEADERS;
        let mut page = Vec::with_capacity(size);
        hybrid::with_length(&mut page, |page| self.add_repetition_levels(rows, levels, page));
        hybrid::with_length(&mut page, |page| {
            let bits = u32::BITS - of_number.leading_zeros();
            if levels == numbers.len() {
                return hybrid::add_run(page, of_number, levels, bits);
            }
            let of_list = |length: usize| {
                let level = if length == 0 { of_empty } else { of_number };
                iter::repeat_n(level, length.max(1))
            };
            let levels: Vec<u32> = self.lengths(rows).flat_map(of_list).collect();
            hybrid::add_numbers(page, &levels, bits);
        });
        add_plain(&mut page, numbers);
        page
    }

    /// Adds one bit per level as a single packed run: 0 for the first level of a list, 1 otherwise.
    fn add_repetition_levels(&self, rows: &Range<usize>, levels: usize, page: &mut Vec<u8>) {
        let bytes = levels.div_ceil(8);
        hybrid::add_packed_header(page, bytes);
        let bits = page.len();
        page.resize(bits + bytes, u8::MAX);
        let mut level = 0;
        for length in self.lengths(rows) {
            page[bits + level / 8] &= !(1 << (level % 8));
            level += length.max(1);
        }
    }
}

/// Bytes reserved per page beside its numbers and repetition levels. Definition levels take more if some lists are
/// empty.
const HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use polars::prelude::{IntoColumn, NamedFrom, Series};

    use super::super::parquet::PAGE_BYTES;
    use super::super::parquet::tests::written;

    /// Writes a column of lists and reads it with polars.
    fn come_back(lists: impl Iterator<Item = Option<Vec<u32>>>) {
        let lists: Vec<_> =
            lists.map(|list| list.map(|list| Series::new("".into(), list))).collect();
        written(vec![Series::new("lists".into(), lists).into_column()]);
    }

    fn list(length: u32) -> Option<Vec<u32>> {
        Some((0..length).map(|number| number.wrapping_mul(0x9E37_79B9)).collect())
    }

    #[test]
    fn lists_of_any_length_come_back() {
        come_back((0..5000).map(|row| list(row % 37 + 1)));
        come_back((0..5000).map(|row| list(row % 3)));
        come_back((0..100).map(|_| list(0)));
        come_back([list(3)].into_iter());
        come_back([list(0), list(1)].into_iter());
    }

    #[test]
    fn lists_that_are_null_come_back() {
        come_back((0..5000).map(|row| list(row % 5).filter(|_| row % 7 > 0)));
    }

    #[test]
    fn lists_longer_than_a_page_have_a_page_of_their_own() {
        let numbers = 3 * (PAGE_BYTES / size_of::<u32>()) as u32;
        come_back(
            [list(1), list(numbers), list(2), list(numbers / 3), list(numbers / 3 - 1)].into_iter(),
        );
        come_back((0..300_000).map(|row| list(row % 9)));
    }
}
