//! Writes frames to Parquet, choosing an encoding for each column of each row group.
//!
//! Pages of numbers and of lists of numbers are made here. Polars makes the pages of other columns and writes the file.

use std::io::Write;

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{CompatLevel, DataFrame, PolarsError, PolarsResult, Schema, SchemaExt};
use polars_arrow::array::{Array, PrimitiveArray};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_arrow::record_batch::RecordBatch;
use polars_core::runtime::RAYON;
use polars_parquet::write::{
    CompressedPage, CompressionOptions, Compressor, DynIter, DynStreamingIterator, FileWriter,
    KeyValue, Page, ParquetType, StatisticsOptions, Version, WriteOptions, array_to_columns,
    fallible_streaming_iterator, get_dtype_encoding, schema_to_metadata_key,
};
use rayon::prelude::*;

use super::encoding::choose_encoding;
use super::lists::NumberLists;
use super::numbers::{Number, NumberColumn};

/// Rows per row group: large enough for good compression, small enough to build in parts.
pub const ROW_GROUP_ROWS: usize = 1 << 18;

/// Row groups encoded in parallel, so that even a single column of many rows uses several threads.
const GROUPS_AT_ONCE: usize = 4;

/// Maximum rows encoded at once.
pub const ROWS_AT_ONCE: usize = GROUPS_AT_ONCE * ROW_GROUP_ROWS;

/// The zstd level: higher ones cost much more time for a few per cent of size.
const ZSTD_LEVEL: i32 = 1;

/// Approximate bytes of a page before compression.
pub const PAGE_BYTES: usize = 1 << 20;

/// A Parquet file that is being written.
pub struct ParquetFile<W: Write> {
    writer: FileWriter<W>,
    options: WriteOptions,
}

impl<W: Write> ParquetFile<W> {
    /// Starts a file with these columns; `is_nullable` says which may have nulls.
    ///
    /// # Errors
    /// If Parquet has no such type.
    pub fn new(schema: &Schema, is_nullable: impl Fn(&str) -> bool, out: W) -> PolarsResult<Self> {
        let options = WriteOptions {
            // Other readers use the statistics to skip row groups.
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

    /// Writes rows; the frame must have the columns of the file in the same order.
    ///
    /// # Errors
    /// If the rows cannot be encoded or written.
    pub fn write(&mut self, frame: &DataFrame) -> PolarsResult<()> {
        let mut frame = frame.clone();
        frame.align_chunks_par();
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

    /// Writes the footer, including key-value pairs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, pairs: Vec<(String, String)>) -> PolarsResult<()> {
        let pairs = pairs.into_iter().map(|(key, value)| KeyValue::new(key, Some(value)));
        let schema = schema_to_metadata_key(&with_plain_texts(self.writer.schema()));
        self.writer.end(Some([schema].into_iter().chain(pairs).collect()))?;
        self.writer.into_inner().flush()?;
        Ok(())
    }
}

/// Returns the schema for Arrow readers, with UTF-8 for texts instead of the views of polars, because pyarrow and
/// pandas cannot filter views.
fn with_plain_texts(schema: &ArrowSchema) -> ArrowSchema {
    let mut schema = schema.clone();
    schema.iter_values_mut().for_each(|field| field.dtype = with_plain_text(&field.dtype));
    schema
}

fn with_plain_text(dtype: &ArrowDataType) -> ArrowDataType {
    let within = |field: &Field| Field { dtype: with_plain_text(&field.dtype), ..field.clone() };
    match dtype {
        ArrowDataType::Utf8View => ArrowDataType::Utf8,
        ArrowDataType::BinaryView => ArrowDataType::Binary,
        ArrowDataType::LargeList(field) => ArrowDataType::LargeList(Box::new(within(field))),
        ArrowDataType::FixedSizeList(field, size) => {
            ArrowDataType::FixedSizeList(Box::new(within(field)), *size)
        }
        ArrowDataType::Struct(fields) => ArrowDataType::Struct(fields.iter().map(within).collect()),
        ArrowDataType::Dictionary(keys, values, is_sorted) => {
            ArrowDataType::Dictionary(*keys, Box::new(with_plain_text(values)), *is_sorted)
        }
        other => other.clone(),
    }
}

/// Returns the compressed pages of each column of a row group.
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

/// Returns the compressed pages of a column, or of each of its leaf columns.
fn encode(
    array: &dyn Array,
    of_type: &ParquetType,
    options: WriteOptions,
) -> PolarsResult<Vec<Vec<CompressedPage>>> {
    let columns = match pages(array, of_type) {
        Some(pages) => vec![pages],
        None => {
            let encodings = get_dtype_encoding(array.dtype());
            let columns = array_to_columns(array.to_boxed(), of_type.clone(), options, &encodings)?;
            columns.into_iter().map(|pages| pages.collect()).collect::<PolarsResult<_>>()?
        }
    };
    let compressed = columns.into_iter().map(|pages| {
        let pages = pages.into_iter().map(Ok);
        let compressed = Compressor::new(pages, options.compression, Vec::new());
        compressed.map(|page| page.map_err(PolarsError::from)).collect()
    });
    compressed.collect()
}

/// Returns the pages of a column if we encode it ourselves.
fn pages(array: &dyn Array, of_type: &ParquetType) -> Option<Vec<Page>> {
    number_pages::<u32>(array, of_type)
        .or_else(|| number_pages::<i64>(array, of_type))
        .or_else(|| number_pages::<u64>(array, of_type))
        .or_else(|| number_pages::<u16>(array, of_type))
        .or_else(|| number_pages::<u8>(array, of_type))
        .or_else(|| NumberLists::new(array).map(|lists| lists.pages(of_type, PAGE_BYTES)))
}

/// Returns the pages of a column of this number type.
fn number_pages<T: Number>(array: &dyn Array, of_type: &ParquetType) -> Option<Vec<Page>> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    let column = NumberColumn::new(array, of_type)?;
    Some(column.pages(choose_encoding(&column.numbers)))
}

#[cfg(test)]
pub mod tests {
    use polars::prelude::{Column, IntoColumn, ParquetReader, SerReader, Series};
    use polars_parquet::write::Encoding;

    use super::super::encoding::MIN_NUMBERS;

    use super::*;

    /// Rows of one row group.
    pub const ROWS: u64 = 1 << 17;

    /// Writes columns and checks that polars reads them as they were; returns the bytes.
    pub fn written(columns: Vec<Column>) -> Vec<u8> {
        let frame = DataFrame::new(columns[0].len(), columns).unwrap();
        let mut bytes = Vec::new();
        let mut file = ParquetFile::new(frame.schema(), |_| true, &mut bytes).unwrap();
        file.write(&frame).unwrap();
        file.finish(Vec::new()).unwrap();
        let read = ParquetReader::new(std::io::Cursor::new(&bytes)).finish().unwrap();
        assert!(read.equals_missing(&frame), "{read} {frame}");
        bytes
    }

    /// A hash that puts numbers in no particular order.
    pub fn scattered(number: u64) -> u64 {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

    /// Returns the encoding chosen for a nullable column.
    fn chosen(numbers: impl Iterator<Item = Option<i64>>) -> Encoding {
        let frame = DataFrame::new_infer_height(vec![
            Series::from_iter(numbers).with_name("number".into()).into_column(),
        ])
        .unwrap();
        let file = ParquetFile::new(frame.schema(), |_| true, Vec::new()).unwrap();
        let batch = frame.iter_chunks(CompatLevel::newest(), false).next().unwrap();
        let of_type = &file.writer.parquet_schema().fields()[0];
        let pages = pages(batch.columns()[0].as_ref(), of_type).unwrap();
        let Some(Page::Data(page)) = pages.last() else { panic!("a page of data") };
        page.encoding()
    }

    #[test]
    fn nulls_between_numbers_do_not_change_what_is_chosen() {
        let choice = |every: usize, number: fn(usize) -> i64| {
            let row = |row: usize| (row % every == 1).then(|| number(row / every));
            let rows = 0..(MIN_NUMBERS * every).max(ROWS as usize);
            chosen(rows.map(row))
        };
        for every in [2, 64, 256, 300] {
            let rising = choice(every, |row| row as i64 * 1_000_003);
            assert_eq!(rising, Encoding::DeltaBinaryPacked, "{every}");
            let repeated = choice(every, |row| (scattered(row as u64) % 5) as i64 * 1_000_003);
            assert_eq!(repeated, Encoding::RleDictionary, "{every}");
        }
    }
}
