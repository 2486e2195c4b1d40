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

/// Rows per row group: large enough for good compression, small enough to build in parts.
pub const ROW_GROUP_ROWS: usize = 1 << 18;

/// Row groups that are encoded at once, so that one column of many rows has several threads, too.
const GROUPS_AT_ONCE: usize = 4;

/// The zstd level: higher ones cost much more time for a few per cent of size.
const ZSTD_LEVEL: i32 = 1;

/// Bytes of a page before compression, about.
const PAGE_BYTES: usize = 1 << 20;

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
    let encodings = encodings(array);
    let columns = array_to_columns(array.to_boxed(), of_type.clone(), options, &encodings)?;
    let compressed = columns.into_iter().map(|pages| {
        let pages: Vec<Page> = pages.collect::<PolarsResult<_>>()?;
        let pages = pages.into_iter().map(Ok);
        let compressed = Compressor::new(pages, options.compression, Vec::new());
        compressed.map(|page| page.map_err(PolarsError::from)).collect()
    });
    compressed.collect()
}

/// Numbers that the encoder puts into one block, whose widest delta decides how wide all are.
const BLOCK: usize = 256;

/// Numbers below which a column stays as it is.
const MIN_NUMBERS: usize = 1 << 10;

/// Bits of a delta up to which deltas are better than anything else.
const FEW_BITS: u64 = 4;

/// Numbers that are looked at to see how often they repeat.
const SAMPLE: usize = 1 << 12;

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
        // Parquet has signed numbers of 32 bits, whose deltas have to fit, too.
        ArrowDataType::UInt32 => {
            let numbers = numbers(array, |number: u32| i64::from(number));
            let are_small = numbers.iter().all(|number| *number <= i32::MAX.into());
            vec![encoding(are_small.then_some(&numbers), u32::BITS)]
        }
        ArrowDataType::UInt64 => {
            vec![encoding(Some(&numbers(array, |number: u64| number as i64)), u64::BITS)]
        }
        ArrowDataType::Int64 | ArrowDataType::Timestamp(..) => {
            vec![encoding(Some(&numbers(array, |number: i64| number)), i64::BITS)]
        }
        dtype => get_dtype_encoding(dtype),
    }
}

/// The numbers of a column without its nulls.
fn numbers<T: NativeType>(array: &dyn Array, number: impl Fn(T) -> i64) -> Vec<i64> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>();
    match array {
        Some(array) if array.null_count() == 0 => {
            array.values().iter().map(|value| number(*value)).collect()
        }
        Some(array) => array.non_null_values_iter().map(number).collect(),
        None => Vec::new(),
    }
}

/// The encoding in which numbers of a size take the fewest bytes.
fn encoding(numbers: Option<&Vec<i64>>, bits: u32) -> Encoding {
    let is_better_as_deltas = |numbers: &&Vec<i64>| {
        let (count, delta_bits) = (numbers.len() as u64, delta_bits(numbers));
        delta_bits <= count * FEW_BITS || delta_bits < count * dictionary_bits(numbers, bits)
    };
    match numbers.filter(|numbers| numbers.len() >= MIN_NUMBERS).filter(is_better_as_deltas) {
        Some(_) => Encoding::DeltaBinaryPacked,
        None => Encoding::RleDictionary,
    }
}

/// Bits that numbers take as deltas.
fn delta_bits(numbers: &[i64]) -> u64 {
    let mut bits = 0;
    let mut last = numbers.first().copied().unwrap_or_default();
    for block in numbers.chunks(BLOCK) {
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for number in block {
            let delta = number.wrapping_sub(last);
            (least, greatest) = (least.min(delta), greatest.max(delta));
            last = *number;
        }
        let width = u64::BITS - greatest.abs_diff(least).leading_zeros();
        bits += block.len() as u64 * u64::from(width);
    }
    bits
}

/// Bits that each of the numbers takes in a dictionary, estimated from a sample; those of a plain one where a dictionary
/// is not worth it.
fn dictionary_bits(numbers: &[i64], bits: u32) -> u64 {
    let sample = numbers.iter().step_by((numbers.len() / SAMPLE).max(1));
    let sampled = sample.len() as f64;
    let seen = sample.collect::<PlHashSet<_>>().len() as f64;
    // So many of a sample are expected to be distinct when all numbers have so many values.
    let expected = |values: f64| values * (1.0 - (-sampled / values).exp());
    let (mut least, mut most) = (seen, numbers.len() as f64);
    for _ in 0..HALVINGS {
        let middle = least.midpoint(most);
        if expected(middle) < seen { least = middle } else { most = middle }
    }
    let entry = f64::from(bits) * most / numbers.len() as f64;
    (most.log2().ceil() + entry).min(f64::from(bits)) as u64
}

#[cfg(test)]
mod tests {
    use polars::prelude::{Column, IntoColumn, ParquetReader, SerReader, Series};

    use super::*;

    /// Rows of one row group.
    const ROWS: u64 = 1 << 17;

    fn written(columns: Vec<Column>) -> Vec<u8> {
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
        let distinct: Vec<i64> = (0..ROWS).map(|row| (scattered(row) % 400_000) as i64).collect();
        assert_eq!(encoding(Some(&near), 64), Encoding::DeltaBinaryPacked);
        assert_eq!(encoding(Some(&repeated), 64), Encoding::RleDictionary);
        assert_eq!(encoding(Some(&distinct), 32), Encoding::DeltaBinaryPacked);
    }
}
