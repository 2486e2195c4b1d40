//! Frames to Parquet, with an encoding for each column of each row group.
//!
//! The writer of polars makes a dictionary of every column of numbers, or writes it plain. Most numbers of a trace are rows
//! of other tables and close to the numbers before: as deltas (DELTA_BINARY_PACKED,
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>) they are small, and need no hash table of
//! values.

use std::io::Write;

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{
    ArrowDataType, CompatLevel, DataFrame, PlHashSet, PolarsError, PolarsResult, Schema, SchemaExt,
};
use polars_arrow::array::{Array, PrimitiveArray};
use polars_arrow::record_batch::RecordBatch;
use polars_arrow::types::NativeType;
use polars_core::runtime::RAYON;
use polars_parquet::write::{
    CompressedPage, CompressionOptions, Compressor, DynIter, DynStreamingIterator, Encoding,
    FileWriter, KeyValue, Page, ParquetType, StatisticsOptions, Version, WriteOptions,
    array_to_columns, fallible_streaming_iterator, get_dtype_encoding, schema_to_metadata_key,
};
use rayon::prelude::*;

use super::lists::Lists;

/// Rows per row group: large enough for good compression, small enough to build in parts.
pub const ROW_GROUP_ROWS: usize = 1 << 18;

/// Row groups that are encoded at once, so that one column of many rows has several threads, too.
const GROUPS_AT_ONCE: usize = 4;

/// Rows that are encoded at once at most.
pub(super) const ROWS_AT_ONCE: usize = GROUPS_AT_ONCE * ROW_GROUP_ROWS;

/// The zstd level: higher ones cost much more time for a few per cent of size.
const ZSTD_LEVEL: i32 = 1;

/// Bytes of a page before compression, about.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// A Parquet file that is being written.
pub struct ParquetFile<W: Write> {
    writer: FileWriter<W>,
    options: WriteOptions,
}

impl<W: Write> ParquetFile<W> {
    /// Starts a file with these columns; `is_nullable` says which may have nulls.
    ///
    /// # Errors
    /// When Parquet has no such type.
    pub fn new(schema: &Schema, is_nullable: impl Fn(&str) -> bool, out: W) -> PolarsResult<Self> {
        let options = WriteOptions {
            // Other readers skip row groups by them.
            statistics: StatisticsOptions::default(),
            version: Version::V1,
            compression: CompressionOptions::Zstd(ZstdLevel::try_new(ZSTD_LEVEL).ok()),
            data_page_size: Some(PAGE_BYTES),
        };
        let mut schema = schema.to_arrow(CompatLevel::newest());
        for field in schema.iter_values_mut() {
            field.is_nullable = is_nullable(&field.name);
        }
        Ok(Self { writer: FileWriter::try_new(out, schema, options)?, options })
    }

    /// Writes rows, which have the columns of the file in their order.
    ///
    /// # Errors
    /// When they cannot be encoded or written.
    pub fn write(&mut self, frame: &DataFrame) -> PolarsResult<()> {
        let starts: Vec<usize> = (0..frame.height()).step_by(ROW_GROUP_ROWS).collect();
        for starts in starts.chunks(GROUPS_AT_ONCE) {
            let slices = starts.iter().map(|start| frame.slice(*start as i64, ROW_GROUP_ROWS));
            let groups: Vec<RecordBatch> = slices
                .flat_map(|rows| rows.iter_chunks(CompatLevel::newest(), false).collect::<Vec<_>>())
                .collect();
            let (types, options) = (self.writer.parquet_schema().fields(), self.options);
            let encode =
                || groups.par_iter().map(|group| encode_group(group, types, options)).collect();
            // Uses the threads of polars instead of creating more.
            let encoded: PolarsResult<Vec<_>> = RAYON.install(encode);
            for (group, columns) in groups.iter().zip(encoded?) {
                self.write_group(group.len() as u64, &columns)?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self, rows: u64, columns: &[Vec<CompressedPage>]) -> PolarsResult<()> {
        let columns = columns.iter().map(|pages| {
            let pages = pages.iter().map(PolarsResult::Ok);
            Ok(DynStreamingIterator::new(fallible_streaming_iterator::convert(pages)))
        });
        self.writer.write(rows, DynIter::new(columns))
    }

    /// Writes the footer, with pairs of keys and values.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, pairs: Vec<(String, String)>) -> PolarsResult<()> {
        let pairs = pairs.into_iter().map(|(key, value)| KeyValue::new(key, Some(value)));
        let schema = schema_to_metadata_key(self.writer.schema());
        self.writer.end(Some([schema].into_iter().chain(pairs).collect()))?;
        self.writer.into_inner().flush()?;
        Ok(())
    }
}

/// The compressed pages of each column of a row group.
fn encode_group(
    group: &RecordBatch,
    types: &[ParquetType],
    options: WriteOptions,
) -> PolarsResult<Vec<Vec<CompressedPage>>> {
    let columns = group.columns().par_iter().zip(types);
    let columns: PolarsResult<Vec<_>> =
        columns.map(|(array, of_type)| encode(array.as_ref(), of_type, options)).collect();
    Ok(columns?.into_iter().flatten().collect())
}

/// The compressed pages of a column, or of each column that lies within it.
fn encode(
    array: &dyn Array,
    of_type: &ParquetType,
    options: WriteOptions,
) -> PolarsResult<Vec<Vec<CompressedPage>>> {
    let columns = match Lists::of(array) {
        Some(lists) => vec![lists.pages(of_type, PAGE_BYTES)?],
        None => pages(array, of_type, options)?,
    };
    let compressed = columns.into_iter().map(|pages| {
        let pages = pages.into_iter().map(Ok);
        let compressed = Compressor::new(pages, options.compression, Vec::new());
        compressed.map(|page| page.map_err(PolarsError::from)).collect()
    });
    compressed.collect()
}

/// The pages of a column, or of each column that lies within it, as polars makes them.
fn pages(
    array: &dyn Array,
    of_type: &ParquetType,
    options: WriteOptions,
) -> PolarsResult<Vec<Vec<Page>>> {
    let encodings = encodings(array);
    let columns = array_to_columns(array.to_boxed(), of_type.clone(), options, &encodings)?;
    columns.into_iter().map(|pages| pages.collect()).collect()
}

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

/// The encoding of a column, or of each column that lies within it.
fn encodings(array: &dyn Array) -> Vec<Encoding> {
    let is_of_nulls = array.null_count() == array.len();
    match array.dtype() {
        ArrowDataType::UInt32
        | ArrowDataType::UInt64
        | ArrowDataType::Int64
        | ArrowDataType::Timestamp(..)
            if is_of_nulls =>
        {
            vec![Encoding::Plain]
        }
        ArrowDataType::UInt32 => vec![encoding(array, |number: u32| i64::from(number))],
        ArrowDataType::UInt64 => vec![encoding(array, |number: u64| number as i64)],
        ArrowDataType::Int64 | ArrowDataType::Timestamp(..) => {
            vec![encoding(array, |number: i64| number)]
        }
        dtype => get_dtype_encoding(dtype),
    }
}

/// The encoding in which the numbers of a column take the fewest bytes, by a sample of them.
fn encoding<T: NativeType>(array: &dyn Array, number: impl Fn(T) -> i64) -> Encoding {
    let numbers = match array.as_any().downcast_ref::<PrimitiveArray<T>>() {
        Some(array) if array.len() - array.null_count() >= MIN_NUMBERS => {
            NumberColumn { array, number }
        }
        _ => return Encoding::RleDictionary,
    };
    if !numbers.have_deltas() {
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
struct NumberColumn<'a, T: NativeType, F> {
    array: &'a PrimitiveArray<T>,
    number: F,
}

impl<T: NativeType, F: Fn(T) -> i64> NumberColumn<'_, T, F> {
    /// Bits of a plain number.
    const BITS: f64 = (size_of::<T>() * 8) as f64;

    /// Whether deltas have room for the numbers: Parquet's 32-bit numbers are signed, and so are their deltas.
    fn have_deltas(&self) -> bool {
        let numbers = self.array.values().iter();
        size_of::<T>() > size_of::<u32>()
            || numbers.fold(0, |all, number| all | (self.number)(*number)) <= i32::MAX.into()
    }

    /// The numbers of some rows.
    fn at(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = i64> {
        let Self { array, number } = self;
        let values = array.values().as_slice();
        let is_valid = |row: &usize| array.validity().is_none_or(|validity| validity.get_bit(*row));
        rows.filter(is_valid).filter_map(|row| values.get(row)).map(|value| number(*value))
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
        let (mut distinct, mut sampled) = (PlHashSet::default(), 0.0);
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
pub(super) mod tests {
    use polars::prelude::{Column, IntoColumn, ParquetReader, SerReader, Series};

    use super::*;

    /// Rows of one row group.
    const ROWS: u64 = 1 << 17;

    /// Writes columns and checks that polars reads them as they were; returns the bytes.
    pub(in crate::archive) fn written(columns: Vec<Column>) -> Vec<u8> {
        let frame = DataFrame::new(columns[0].len(), columns).unwrap();
        let mut bytes = Vec::new();
        let mut file = ParquetFile::new(frame.schema(), |_| true, &mut bytes).unwrap();
        file.write(&frame).unwrap();
        file.finish(Vec::new()).unwrap();
        let read = ParquetReader::new(std::io::Cursor::new(&bytes)).finish().unwrap();
        assert!(read.equals_missing(&frame), "{read} {frame}");
        bytes
    }

    /// Numbers without any order.
    fn scattered(number: u64) -> u64 {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

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

    #[test]
    fn deltas_are_chosen_for_near_numbers_and_dictionaries_for_repeated_ones() {
        let near: Vec<i64> = (0..ROWS as i64).collect();
        let repeated: Vec<i64> =
            (0..ROWS).map(|row| (scattered(row) % 20) as i64 * 1_000_003).collect();
        let distinct: Vec<u32> = (0..ROWS).map(|row| (scattered(row) % 400_000) as u32).collect();
        let of_64 = |numbers| encoding(&PrimitiveArray::from_vec(numbers), |number: i64| number);
        assert_eq!(of_64(near), Encoding::DeltaBinaryPacked);
        assert_eq!(of_64(repeated), Encoding::RleDictionary);
        let of_32 =
            |numbers| encoding(&PrimitiveArray::from_vec(numbers), |number: u32| number.into());
        assert_eq!(of_32(distinct), Encoding::DeltaBinaryPacked);
        let wide = vec![u32::MAX; ROWS as usize];
        assert_eq!(of_32(wide), Encoding::RleDictionary, "Parquet has no such deltas");
    }

    #[test]
    fn nulls_between_numbers_do_not_change_what_is_chosen() {
        let encoding = |every: usize, number: fn(usize) -> i64| {
            let row = |row: usize| (row % every == 1).then(|| number(row / every));
            let rows = 0..(MIN_NUMBERS * every).max(ROWS as usize);
            encoding(&rows.map(row).collect::<PrimitiveArray<i64>>(), |number: i64| number)
        };
        for every in [2, 64, 256, 300] {
            let rising = encoding(every, |row| row as i64 * 1_000_003);
            assert_eq!(rising, Encoding::DeltaBinaryPacked, "{every}");
            let repeated = encoding(every, |row| (scattered(row as u64) % 5) as i64 * 1_000_003);
            assert_eq!(repeated, Encoding::RleDictionary, "{every}");
        }
    }
}
