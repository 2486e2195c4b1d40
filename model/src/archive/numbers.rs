//! Pages of a Parquet column of integers: plain, as deltas, or as keys of a dictionary.
//!
//! The writer of polars makes levels and keys number by number, and looks up most values in a hash table, which is a tenth of
//! an extraction. The encodings are those of <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

use std::borrow::Cow;
use std::hash::Hash;
use std::ops::Range;

use polars::prelude::PlHashMap;
use polars_arrow::array::{Array, PrimitiveArray};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::types::NativeType;
use polars_parquet::parquet::CowBuffer;
use polars_parquet::parquet::encoding::{bitpacked, uleb128, zigzag_leb128};
use polars_parquet::parquet::page::{DataPage, DataPageHeader, DataPageHeaderV1, DictPage};
use polars_parquet::parquet::schema::Repetition;
use polars_parquet::parquet::schema::types::PrimitiveType;
use polars_parquet::parquet::statistics::PrimitiveStatistics;
use polars_parquet::parquet::types::NativeType as ParquetNumber;
use polars_parquet::write::{Descriptor, Encoding, Page, ParquetType, to_parquet_leaves};

use super::hybrid;

/// An integer of a column, which has at most as many bits as the signed one that Parquet has for it.
pub(super) trait Number: NativeType + Ord + Hash {
    type Parquet: ParquetNumber + Into<i64>;

    /// The same bits, as Parquet keeps them.
    fn parquet(self) -> Self::Parquet;

    /// The distance from a number that is not greater.
    fn above(self, least: Self) -> u64 {
        let bits = u64::MAX >> (u64::BITS - u8::BITS * size_of::<Self>() as u32);
        signed(self).wrapping_sub(signed(least)) as u64 & bits
    }

    /// The number that is so far above this one.
    fn plus(self, distance: u64) -> Self;
}

macro_rules! numbers {
    ($($number:ty => $parquet:ty),+) => {$(
        impl Number for $number {
            type Parquet = $parquet;

            fn parquet(self) -> $parquet {
                self as $parquet
            }

            fn plus(self, distance: u64) -> Self {
                self.wrapping_add(distance as Self)
            }
        }
    )+};
}

numbers!(u8 => i32, u16 => i32, u32 => i32, u64 => i64, i64 => i64);

/// A number as Parquet keeps it, with 64 bits.
pub(super) fn signed<T: Number>(number: T) -> i64 {
    number.parquet().into()
}

/// The pages of a column, each with so many bytes of plain numbers or keys at most. The encoding is plain, deltas, or a
/// dictionary, which is only made where it is worth it.
pub(super) fn pages<T: Number>(
    array: &PrimitiveArray<T>,
    of_type: &ParquetType,
    encoding: Encoding,
    page_bytes: usize,
) -> Vec<Page> {
    let mut leaves = to_parquet_leaves(of_type.clone());
    let Some(primitive_type) = leaves.pop() else { return Vec::new() };
    let is_optional = primitive_type.field_info.repetition == Repetition::Optional;
    let validity = array.validity().filter(|_| is_optional && array.null_count() > 0);
    let numbers = match validity {
        Some(_) => Cow::Owned(array.non_null_values_iter().collect()),
        None => Cow::Borrowed(array.values().as_slice()),
    };
    let values = match encoding {
        Encoding::RleDictionary => Dictionary::of(&numbers).map_or(Values::Plain, Values::Keys),
        Encoding::DeltaBinaryPacked => Values::Deltas,
        _ => Values::Plain,
    };
    let column = NumberPages { primitive_type, is_optional, validity, numbers, values };
    column.pages(array.len(), page_bytes)
}

/// A column as it lies in pages.
struct NumberPages<'a, T: Number> {
    primitive_type: PrimitiveType,
    is_optional: bool,
    /// `None` if no number is null.
    validity: Option<&'a Bitmap>,
    /// The numbers that are not null.
    numbers: Cow<'a, [T]>,
    values: Values<T>,
}

/// How numbers are kept.
enum Values<T> {
    Plain,
    Deltas,
    Keys(Dictionary<T>),
}

impl<T: Number> NumberPages<'_, T> {
    fn pages(&self, rows: usize, page_bytes: usize) -> Vec<Page> {
        let dictionary = match &self.values {
            Values::Keys(dictionary) => Some(dictionary.page()),
            _ => None,
        };
        let number_bytes = if dictionary.is_some() { size_of::<u32>() } else { size_of::<T>() };
        let page_rows = page_bytes / number_bytes;
        let mut start = 0;
        let data = (0..rows).step_by(page_rows).map(|row| {
            let rows = row..rows.min(row + page_rows);
            let nulls = self.nulls(rows.clone());
            let numbers = start..start + rows.len() - nulls.as_ref().map_or(0, Bitmap::unset_bits);
            start = numbers.end;
            self.page(rows.len(), nulls.as_ref(), numbers)
        });
        dictionary.into_iter().chain(data).collect()
    }

    /// The validity of some rows.
    fn nulls(&self, rows: Range<usize>) -> Option<Bitmap> {
        self.validity.map(|validity| validity.clone().sliced(rows.start, rows.len()))
    }

    /// A page of rows, and of those of their numbers that are not null.
    fn page(&self, rows: usize, validity: Option<&Bitmap>, range: Range<usize>) -> Page {
        let numbers = &self.numbers[range.clone()];
        let mut buffer = Vec::new();
        if self.is_optional {
            hybrid::with_length(&mut buffer, |buffer| match validity {
                Some(validity) => hybrid::add_bits(buffer, validity),
                None => hybrid::add_run(buffer, 1, rows, 1),
            });
        }
        let encoding = match &self.values {
            Values::Plain => {
                add_plain(&mut buffer, numbers);
                Encoding::Plain
            }
            Values::Deltas => {
                add_deltas(&mut buffer, numbers);
                Encoding::DeltaBinaryPacked
            }
            Values::Keys(dictionary) => {
                dictionary.add_keys(&mut buffer, range);
                Encoding::RleDictionary
            }
        };
        let statistics = statistics(&self.primitive_type, numbers, rows);
        data_page(buffer, encoding, rows, rows, statistics)
    }
}

/// A page with levels of rows, or of more values than rows.
pub(super) fn data_page<T: ParquetNumber>(
    buffer: Vec<u8>,
    encoding: Encoding,
    rows: usize,
    levels: usize,
    statistics: PrimitiveStatistics<T>,
) -> Page {
    let header = DataPageHeader::V1(DataPageHeaderV1 {
        num_values: levels as i32,
        encoding: encoding.into(),
        definition_level_encoding: Encoding::Rle.into(),
        repetition_level_encoding: Encoding::Rle.into(),
        statistics: Some(statistics.serialize()),
    });
    // The writer of the file does not look at the levels.
    let primitive_type = statistics.primitive_type;
    let descriptor = Descriptor { primitive_type, max_def_level: 0, max_rep_level: 0 };
    Page::Data(DataPage::new(header, CowBuffer::Owned(buffer), descriptor, rows))
}

/// The statistics of a page with these numbers, besides which the other values are null.
pub(super) fn statistics<T: Number>(
    primitive_type: &PrimitiveType,
    numbers: &[T],
    values: usize,
) -> PrimitiveStatistics<T::Parquet> {
    let ends = ends(numbers);
    PrimitiveStatistics {
        primitive_type: primitive_type.clone(),
        null_count: Some((values - numbers.len()) as i64),
        distinct_count: None,
        min_value: ends.map(|[least, _]| least.parquet()),
        max_value: ends.map(|[_, greatest]| greatest.parquet()),
    }
}

/// The least and the greatest of some numbers.
fn ends<T: Number>(numbers: &[T]) -> Option<[T; 2]> {
    let (first, rest) = numbers.split_first()?;
    // By value: with references, the processor compares one number at a time.
    let ends = |[least, greatest]: [T; 2], number: &T| [least.min(*number), greatest.max(*number)];
    Some(rest.iter().fold([*first; 2], ends))
}

fn add_plain<T: Number>(buffer: &mut Vec<u8>, numbers: &[T]) {
    buffer.reserve(numbers.len() * size_of::<T::Parquet>());
    for number in numbers {
        buffer.extend_from_slice(number.parquet().to_le_bytes().as_ref());
    }
}

/// Numbers of which a table by value is made, at least.
const MIN_TABLE: u64 = 1 << 16;

/// The distinct numbers of a column, and which of them each one is.
struct Dictionary<T> {
    values: Vec<T>,
    keys: Vec<u32>,
}

impl<T: Number> Dictionary<T> {
    /// `None` where most numbers are distinct, so that a dictionary is not worth it.
    fn of(numbers: &[T]) -> Option<Self> {
        let [least, greatest] = ends(numbers)?;
        let distance = greatest.above(least);
        let most = numbers.len() - numbers.len() / 4;
        if distance < MIN_TABLE.max(numbers.len() as u64) {
            Self::near(numbers, least, distance as usize, most)
        } else {
            Self::scattered(numbers, most)
        }
    }

    /// That of numbers which have at most this distance from the least one, by a table of all numbers between.
    fn near(numbers: &[T], least: T, distance: usize, most: usize) -> Option<Self> {
        const NONE: u32 = u32::MAX;
        let mut table = vec![NONE; distance + 1];
        for number in numbers {
            table[number.above(least) as usize] = 0;
        }
        let mut values = Vec::new();
        for (above, key) in table.iter_mut().enumerate().filter(|(_, key)| **key != NONE) {
            *key = values.len() as u32;
            values.push(least.plus(above as u64));
        }
        let keys = || numbers.iter().map(|number| table[number.above(least) as usize]).collect();
        (values.len() < most).then(|| Self { keys: keys(), values })
    }

    /// That of numbers of any distance, by a hash table.
    fn scattered(numbers: &[T], most: usize) -> Option<Self> {
        let mut table = PlHashMap::default();
        let (mut values, mut keys) = (Vec::new(), Vec::with_capacity(numbers.len()));
        for number in numbers {
            let key = *table.entry(*number).or_insert_with(|| {
                values.push(*number);
                values.len() as u32 - 1
            });
            if values.len() >= most {
                return None;
            }
            keys.push(key);
        }
        Some(Self { values, keys })
    }

    /// The page of its values.
    fn page(&self) -> Page {
        let mut buffer = Vec::new();
        add_plain(&mut buffer, &self.values);
        Page::Dict(DictPage::new(CowBuffer::Owned(buffer), self.values.len(), false))
    }

    /// Adds keys, after a byte with their width.
    fn add_keys(&self, buffer: &mut Vec<u8>, range: Range<usize>) {
        let bits = u32::BITS - (self.values.len() as u32).saturating_sub(1).leading_zeros();
        buffer.push(bits as u8);
        hybrid::add_numbers(buffer, &self.keys[range], bits);
    }
}

/// Deltas of a block.
const BLOCK: usize = 256;

/// Deltas of a block that have one width, and are packed at once.
const PART: usize = 64;

/// Adds the first number, and the differences of the others from those before them.
fn add_deltas<T: Number>(buffer: &mut Vec<u8>, numbers: &[T]) {
    for size in [BLOCK, BLOCK / PART, numbers.len()] {
        let mut bytes = [0; 10];
        let length = uleb128::encode(size as u64, &mut bytes);
        buffer.extend_from_slice(&bytes[..length]);
    }
    let mut last = numbers.first().map_or(0, |first| signed(*first));
    add_signed(buffer, last);
    for block in numbers.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut deltas = [0; BLOCK];
        let (mut least, mut before) = (i64::MAX, last);
        for (delta, after) in deltas.iter_mut().zip(block) {
            let after = signed(*after);
            *delta = after.wrapping_sub(before);
            least = least.min(*delta);
            before = after;
        }
        last = before;
        add_signed(buffer, least);
        let mut above = [0_u64; BLOCK];
        for (above, delta) in above.iter_mut().zip(&deltas[..block.len()]) {
            *above = delta.wrapping_sub(least) as u64;
        }
        let (parts, _) = above.as_chunks::<PART>();
        let bits = |part: &[u64; PART]| {
            u64::BITS - part.iter().fold(0, |all, delta| all | delta).leading_zeros()
        };
        buffer.extend(parts.iter().map(|part| bits(part) as u8));
        for part in &parts[..block.len().div_ceil(PART)] {
            let bits = bits(part) as usize;
            let mut bytes = [0; PART * size_of::<u64>()];
            bitpacked::encode_pack(part, bits, &mut bytes);
            buffer.extend_from_slice(&bytes[..PART / 8 * bits]);
        }
    }
}

/// Adds a number in zigzag order, as a variable number of bytes.
fn add_signed(buffer: &mut Vec<u8>, number: i64) {
    let (bytes, length) = zigzag_leb128::encode(number);
    buffer.extend_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests {
    use polars::prelude::{IntoColumn, Series};

    use super::super::parquet::tests::{ROWS, scattered, written};

    #[test]
    fn rising_numbers_take_next_to_nothing_and_come_back() {
        let rising = (0..ROWS).map(|row| (row / 3) as u32);
        let times = (0..ROWS).map(|row| row as i64 * 100 - 5_000);
        let bytes = written(vec![
            Series::from_iter(rising).with_name("row".into()).into_column(),
            Series::from_iter(times).with_name("time".into()).into_column(),
        ]);
        assert!(bytes.len() < ROWS as usize / 4, "{}", bytes.len());
    }

    #[test]
    fn numbers_of_any_order_size_and_with_nulls_come_back() {
        let rows = |number: fn(u64) -> u64| (0..ROWS).map(number);
        written(vec![
            Series::from_iter(rows(scattered)).with_name("scattered".into()).into_column(),
            Series::from_iter(rows(|row| u64::MAX - row)).with_name("high".into()).into_column(),
            Series::from_iter(rows(|row| if row % 2 == 0 { 0 } else { u64::MAX }))
                .with_name("extreme".into())
                .into_column(),
            Series::from_iter(rows(|row| scattered(row) % 7)).with_name("few".into()).into_column(),
            Series::from_iter((0..ROWS).map(|row| u32::MAX - (row % 9) as u32 * (1 << 28)))
                .with_name("wide".into())
                .into_column(),
            Series::from_iter((0..ROWS).map(|row| (row % 5 > 0).then_some(row as u32)))
                .with_name("holes".into())
                .into_column(),
            Series::from_iter((0..ROWS).map(|_| None::<u32>))
                .with_name("none".into())
                .into_column(),
            Series::from_iter((0..ROWS).map(|row| i64::MIN + row as i64))
                .with_name("low".into())
                .into_column(),
        ]);
    }
}
