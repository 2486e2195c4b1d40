//! Pages of a Parquet column of integers: plain, as deltas, or as dictionary keys.
//!
//! The writer of polars makes levels and keys number by number and looks up most values in a hash table, which takes a
//! tenth of an extraction. The encodings are described at
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

use std::borrow::Cow;
use std::hash::Hash;

use polars::prelude::PlHashMap;
use polars_arrow::array::{Array, PrimitiveArray};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::types::NativeType;
use polars_parquet::parquet::CowBuffer;
use polars_parquet::parquet::encoding::{bitpacked, zigzag_leb128};
use polars_parquet::parquet::page::{DataPage, DataPageHeader, DataPageHeaderV1, DictPage};
use polars_parquet::parquet::schema::Repetition;
use polars_parquet::parquet::schema::types::PrimitiveType;
use polars_parquet::parquet::statistics::PrimitiveStatistics;
use polars_parquet::parquet::types::NativeType as ParquetNumber;
use polars_parquet::write::{Descriptor, Encoding, Page, ParquetType, to_parquet_leaves};

use super::hybrid;

/// An integer of a column, with at most as many bits as the signed integer in which Parquet stores it.
pub trait Number: NativeType + Ord + Hash {
    type Parquet: ParquetNumber + Into<i64>;

    /// Returns the same bits as Parquet's type.
    fn parquet(self) -> Self::Parquet;

    /// Returns the number that is `distance` above this one.
    fn add_distance(self, distance: u64) -> Self;

    /// Returns the distance from `least`, which must not be greater.
    fn distance_from(self, least: Self) -> u64 {
        let bits = u64::MAX >> (u64::BITS - u8::BITS * size_of::<Self>() as u32);
        signed(self).wrapping_sub(signed(least)) as u64 & bits
    }
}

macro_rules! implement_number {
    ($($number:ty => $parquet:ty),+) => {$(
        impl Number for $number {
            type Parquet = $parquet;

            fn parquet(self) -> $parquet {
                self as $parquet
            }

            fn add_distance(self, distance: u64) -> Self {
                self.wrapping_add(distance as Self)
            }
        }
    )+};
}

implement_number!(u8 => i32, u16 => i32, u32 => i32, u64 => i64, i64 => i64);

/// Returns a number as Parquet stores it, widened to 64 bits.
pub fn signed<T: Number>(number: T) -> i64 {
    number.parquet().into()
}

/// One column of numbers in a row group.
pub struct NumberColumn<'a, T: Number> {
    primitive_type: PrimitiveType,
    is_optional: bool,
    rows: usize,
    /// `None` if no number is null.
    validity: Option<&'a Bitmap>,
    /// The numbers that are not null.
    pub numbers: Cow<'a, [T]>,
    /// The least and the greatest of the numbers.
    ends: Option<[T; 2]>,
}

impl<'a, T: Number> NumberColumn<'a, T> {
    /// Returns `None` if the column has nulls but is not nullable, which polars refuses.
    pub fn new(array: &'a PrimitiveArray<T>, of_type: &ParquetType) -> Option<Self> {
        let primitive_type = to_parquet_leaves(of_type.clone()).pop()?;
        let is_optional = primitive_type.field_info.repetition == Repetition::Optional;
        let validity = array.validity().filter(|_| array.null_count() > 0);
        let numbers = match validity {
            Some(_) if !is_optional => return None,
            Some(validity) => Cow::Owned(non_null(array.values(), validity)),
            None => Cow::Borrowed(array.values().as_slice()),
        };
        let (rows, ends) = (array.len(), min_max(&numbers));
        Some(Self { primitive_type, is_optional, rows, validity, numbers, ends })
    }

    /// Returns the pages of the column: a dictionary if one is worth it, and a single page of data. With several data
    /// pages, the writer of the file would compare their minima and maxima as signed numbers.
    pub fn pages(&self, encoding: Encoding) -> Vec<Page> {
        let dictionary = match encoding {
            Encoding::RleDictionary => {
                self.ends.and_then(|ends| Dictionary::new(&self.numbers, ends))
            }
            _ => None,
        };
        let mut buffer = Vec::new();
        if self.is_optional {
            hybrid::with_length(&mut buffer, |buffer| match self.validity {
                Some(validity) => hybrid::add_bits(buffer, validity),
                None => hybrid::add_run(buffer, 1, self.rows, 1),
            });
        }
        let encoding = if let Some(dictionary) = &dictionary {
            dictionary.add_keys(&mut buffer);
            Encoding::RleDictionary
        } else if encoding == Encoding::DeltaBinaryPacked {
            add_deltas(&mut buffer, &self.numbers);
            Encoding::DeltaBinaryPacked
        } else {
            add_plain(&mut buffer, &self.numbers);
            Encoding::Plain
        };
        let nulls = self.rows - self.numbers.len();
        let statistics = statistics(&self.primitive_type, self.ends, nulls);
        let data = data_page(buffer, encoding, self.rows, self.rows, statistics);
        dictionary.iter().map(Dictionary::page).chain([data]).collect()
    }
}

/// Returns the values that are not null. Most columns have long runs of either.
fn non_null<T: Number>(values: &[T], validity: &Bitmap) -> Vec<T> {
    let mut numbers = Vec::with_capacity(values.len() - validity.unset_bits());
    let words = validity.chunks::<u64>();
    let rest = words.remainder();
    for (values, word) in values.chunks(u64::BITS as usize).zip(words.chain([rest])) {
        if word == u64::MAX {
            numbers.extend_from_slice(values);
            continue;
        }
        let mut left = word;
        while let Some(value) = values.get(left.trailing_zeros() as usize) {
            numbers.push(*value);
            left &= left - 1;
        }
    }
    numbers
}

/// Builds a data page with this many rows and levels.
pub fn data_page<T: ParquetNumber>(
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
    // The writer of the file ignores the maximum levels.
    let primitive_type = statistics.primitive_type;
    let descriptor = Descriptor { primitive_type, max_def_level: 0, max_rep_level: 0 };
    Page::Data(DataPage::new(header, CowBuffer::Owned(buffer), descriptor, rows))
}

/// Returns the statistics of a page with `nulls` nulls; `ends` are its least and greatest numbers.
pub fn statistics<T: Number>(
    primitive_type: &PrimitiveType,
    ends: Option<[T; 2]>,
    nulls: usize,
) -> PrimitiveStatistics<T::Parquet> {
    PrimitiveStatistics {
        primitive_type: primitive_type.clone(),
        null_count: Some(nulls as i64),
        distinct_count: None,
        min_value: ends.map(|[least, _]| least.parquet()),
        max_value: ends.map(|[_, greatest]| greatest.parquet()),
    }
}

/// Returns the least and the greatest of the numbers.
pub fn min_max<T: Number>(numbers: &[T]) -> Option<[T; 2]> {
    let (first, rest) = numbers.split_first()?;
    // By value, because the loop is not vectorized with references.
    let ends = |[least, greatest]: [T; 2], number: &T| [least.min(*number), greatest.max(*number)];
    Some(rest.iter().fold([*first; 2], ends))
}

/// Adds numbers in plain encoding.
pub fn add_plain<T: Number>(buffer: &mut Vec<u8>, numbers: &[T]) {
    buffer.reserve(numbers.len() * size_of::<T::Parquet>());
    for number in numbers {
        buffer.extend_from_slice(number.parquet().to_le_bytes().as_ref());
    }
}

/// A lookup table replaces the hash table if it has fewer than this many entries per number of the column.
const TABLE_ENTRIES: usize = 4;

/// The distinct numbers of a column, and for each number its index among them.
struct Dictionary<T> {
    values: Vec<T>,
    keys: Vec<u32>,
}

impl<T: Number> Dictionary<T> {
    /// Builds the dictionary of numbers between `least` and `greatest`; returns `None` if most are distinct, so that it
    /// is not worth it.
    fn new(numbers: &[T], [least, greatest]: [T; 2]) -> Option<Self> {
        let distance = greatest.distance_from(least);
        let max_values = numbers.len() - numbers.len() / 4;
        if distance < (numbers.len() * TABLE_ENTRIES) as u64 {
            Self::by_table(numbers, least, distance as usize, max_values)
        } else {
            Self::by_hash(numbers, max_values)
        }
    }

    /// Builds the dictionary with a lookup table from the least to the greatest number.
    fn by_table(numbers: &[T], least: T, distance: usize, max_values: usize) -> Option<Self> {
        const NONE: u32 = u32::MAX;
        let mut table = vec![NONE; distance + 1];
        for number in numbers {
            table[number.distance_from(least) as usize] = 0;
        }
        let mut values = Vec::new();
        for (distance, key) in table.iter_mut().enumerate().filter(|(_, key)| **key != NONE) {
            *key = values.len() as u32;
            values.push(least.add_distance(distance as u64));
        }
        if values.len() >= max_values {
            return None;
        }
        let key = |number: &T| table[number.distance_from(least) as usize];
        let keys = numbers.iter().map(key).collect();
        Some(Self { values, keys })
    }

    /// Builds the dictionary with a hash table.
    fn by_hash(numbers: &[T], max_values: usize) -> Option<Self> {
        let mut table = PlHashMap::default();
        let (mut values, mut keys) = (Vec::new(), Vec::with_capacity(numbers.len()));
        for number in numbers {
            let key = *table.entry(*number).or_insert_with(|| {
                values.push(*number);
                values.len() as u32 - 1
            });
            if values.len() >= max_values {
                return None;
            }
            keys.push(key);
        }
        Some(Self { values, keys })
    }

    /// Returns the page of the values.
    fn page(&self) -> Page {
        let mut buffer = Vec::new();
        add_plain(&mut buffer, &self.values);
        Page::Dict(DictPage::new(CowBuffer::Owned(buffer), self.values.len(), false))
    }

    /// Adds the keys, preceded by a byte with their width.
    fn add_keys(&self, buffer: &mut Vec<u8>) {
        let bits = u32::BITS - (self.values.len() as u32).saturating_sub(1).leading_zeros();
        buffer.push(bits as u8);
        hybrid::add_numbers(buffer, &self.keys, bits);
    }
}

/// Adds the first number, then each number's difference from the one before.
fn add_deltas<T: Number>(buffer: &mut Vec<u8>, numbers: &[T]) {
    for size in [DeltaBlock::LENGTH, DeltaBlock::LENGTH / DeltaBlock::PART, numbers.len()] {
        hybrid::add_uleb128(buffer, size as u64);
    }
    let mut last = numbers.first().map_or(0, |first| signed(*first));
    add_signed(buffer, last);
    for numbers in numbers.get(1..).unwrap_or_default().chunks(DeltaBlock::LENGTH) {
        let (block, after) = DeltaBlock::new(last, numbers);
        last = after;
        block.add_to(buffer);
    }
}

/// Adds a signed number in zigzag encoding, with a variable number of bytes.
fn add_signed(buffer: &mut Vec<u8>, number: i64) {
    let (bytes, length) = zigzag_leb128::encode(number);
    buffer.extend_from_slice(&bytes[..length]);
}

/// A block of differences between consecutive numbers.
pub struct DeltaBlock {
    least: i64,
    /// Each difference minus the least one, padded with zeros.
    distances: [u64; Self::LENGTH],
    count: usize,
}

impl DeltaBlock {
    /// Differences per block.
    pub const LENGTH: usize = 256;

    /// Differences per part; a part has one bit width and is packed at once.
    const PART: usize = 64;

    /// Returns the differences of up to [`LENGTH`](Self::LENGTH) numbers, and the last of the numbers.
    pub fn new<T: Number>(before: i64, numbers: &[T]) -> (Self, i64) {
        let mut distances = [0; Self::LENGTH];
        let (mut least, mut last) = (i64::MAX, before);
        for (delta, number) in distances.iter_mut().zip(numbers) {
            let number = signed(*number);
            let difference = number.wrapping_sub(last);
            *delta = difference as u64;
            least = least.min(difference);
            last = number;
        }
        for delta in distances.iter_mut().take(numbers.len()) {
            *delta = delta.wrapping_sub(least as u64);
        }
        (Self { least, distances, count: numbers.len() }, last)
    }

    /// Returns the distances of each part and their bit width.
    fn parts(&self) -> impl Iterator<Item = (&[u64; Self::PART], u32)> {
        let (parts, _) = self.distances.as_chunks::<{ Self::PART }>();
        parts.iter().map(|part| {
            let all = part.iter().fold(0, |all, distance| all | distance);
            (part, u64::BITS - all.leading_zeros())
        })
    }

    /// Returns the packed bits of all parts that have differences.
    pub fn bits(&self) -> usize {
        let parts = self.parts().take(self.count.div_ceil(Self::PART));
        parts.map(|(_, bits)| bits as usize * Self::PART).sum()
    }

    /// Adds the least difference, the widths of all parts, and the parts that have differences.
    fn add_to(&self, buffer: &mut Vec<u8>) {
        add_signed(buffer, self.least);
        buffer.extend(self.parts().map(|(_, bits)| bits as u8));
        for (part, bits) in self.parts().take(self.count.div_ceil(Self::PART)) {
            let mut bytes = [0; Self::PART * size_of::<u64>()];
            bitpacked::encode_pack(part, bits as usize, &mut bytes);
            buffer.extend_from_slice(&bytes[..Self::PART / 8 * bits as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{DataFrame, IntoColumn, ParquetReader, SerReader, Series};
    use polars_parquet::parquet::statistics::Statistics;

    use super::super::parquet::tests::{ROWS, scattered, written};
    use super::super::parquet::{ParquetFile, ROW_GROUP_ROWS};
    use super::min_max;

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

    /// Writes numbers, without and with nulls between them, in whichever encoding is chosen, and reads them with
    /// polars.
    fn come_back(numbers: &[i64]) {
        let series = |name: &str, numbers: Series| numbers.with_name(name.into()).into_column();
        let is_valid = |row: usize| !scattered(row as u64).is_multiple_of(3);
        let holes = numbers.iter().enumerate().map(|(at, number)| is_valid(at).then_some(*number));
        written(vec![
            series("i64", Series::from_iter(numbers.iter().copied())),
            series("holes", Series::from_iter(holes)),
            series("u64", Series::from_iter(numbers.iter().map(|number| *number as u64))),
            series("u32", Series::from_iter(numbers.iter().map(|number| *number as u32))),
            series("i32", Series::from_iter(numbers.iter().map(|number| *number as i32))),
        ]);
    }

    #[test]
    fn numbers_around_the_lengths_of_blocks_come_back() {
        for length in [1, 2, 63, 64, 65, 66, 255, 256, 257, 258, 1023, 1024, 1025, 1300, 5000] {
            come_back(&(0..length).collect::<Vec<_>>());
            come_back(&(0..length).map(|row| scattered(row as u64) as i64).collect::<Vec<_>>());
            come_back(&(0..length).map(|row| row % 5 * 1_000_003).collect::<Vec<_>>());
        }
    }

    #[test]
    fn deltas_that_overflow_come_back_in_each_width() {
        for bits in 0..i64::BITS {
            let number =
                |row: u64| (scattered(row).wrapping_mul(0x9E37_79B9) << 32 ^ scattered(row)) as i64;
            let numbers: Vec<i64> = (0..700).map(|row| number(row) >> bits).collect();
            come_back(&numbers);
        }
        come_back(
            &(0..2000)
                .map(|row| if row % 2 == 0 { i64::MIN } else { i64::MAX })
                .collect::<Vec<_>>(),
        );
    }

    /// The minima and maxima of numbers above 2⁶³ are compared as unsigned numbers in each row group; other readers
    /// skip row groups by them.
    #[test]
    fn row_groups_know_their_ends() {
        let rows = ROW_GROUP_ROWS as u64;
        let numbers: Vec<u64> =
            (0..rows).map(|row| scattered(row) << (row * 2 / rows * 20)).collect();
        let ends = min_max(&numbers);
        assert!(ends.is_some_and(|[_, greatest]| greatest > i64::MAX as u64));
        let bytes =
            written(vec![Series::from_iter(numbers).with_name("number".into()).into_column()]);
        let mut reader = ParquetReader::new(std::io::Cursor::new(&bytes));
        let metadata = reader.get_metadata().unwrap();
        let [group] = &metadata.row_groups[..] else { panic!("one row group") };
        let statistics = group.parquet_columns()[0].statistics(&metadata.footer_buf);
        let Some(Ok(Statistics::Int64(statistics))) = statistics else { panic!("statistics") };
        let known = statistics.min_value.zip(statistics.max_value);
        assert_eq!(known.map(|(least, greatest)| [least as u64, greatest as u64]), ends);
    }

    #[test]
    fn a_null_where_none_may_be_is_refused() {
        let column =
            Series::from_iter([Some(1_u32), None]).with_name("number".into()).into_column();
        let frame = DataFrame::new(2, vec![column]).unwrap();
        let mut bytes = Vec::new();
        let mut file = ParquetFile::new(frame.schema(), |_| false, &mut bytes).unwrap();
        assert!(file.write(&frame).is_err());
    }
}
