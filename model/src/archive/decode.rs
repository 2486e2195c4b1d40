//! Decodes Parquet columns. The row groups of a column are decoded in parallel, each directly into its place in the
//! column.
//!
//! The reader of polars decodes into chunks and then copies these into one, so a column briefly takes twice its memory.

use std::io::Cursor;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use polars::prelude::{
    ArrowField, ArrowSchema, ChunkedArray, Column, DataType, Float64Type, Int32Type, Int64Type,
    IntoColumn, PolarsNumericType, Series, UInt32Type, UInt64Type,
};
use polars_arrow::array::{Array, PrimitiveArray};
use polars_arrow::bitmap::{Bitmap, MutableBitmap};
use polars_io::parquet::metadata::FileMetadataRef;
use polars_parquet::read::{
    BasicDecompressor, ColumnChunkMetadata, Filter, PageReader, RowGroupMetadata,
    column_iter_to_arrays,
};
use rayon::prelude::*;

use super::claims::{TableProblem, check_pages};

/// A Parquet table whose bytes are read on demand.
pub struct ParquetTable<'a> {
    pub metadata: &'a FileMetadataRef,
    pub schema: &'a ArrowSchema,
    /// Maximum bytes that the pages of one column may unpack to.
    pub most: u64,
    /// Reads a range of the file.
    pub read: &'a (dyn Fn(Range<u64>) -> Result<Vec<u8>, TableProblem> + Sync),
}

/// A row group and the rows to decode from it.
struct RowGroupPart<'a> {
    group: &'a RowGroupMetadata,
    rows: Option<Bitmap>,
    /// Number of these rows.
    height: usize,
}

impl RowGroupPart<'_> {
    /// Returns the error for a column that has `rows` rows here instead.
    fn problem(&self, rows: usize) -> TableProblem {
        TableProblem::Values { actual: rows as i64, expected: self.height as i64 }
    }
}

impl ParquetTable<'_> {
    /// Decodes a column, or only the rows set in `rows`; returns `None` if the table lacks the column.
    pub fn column(
        &self,
        name: &str,
        rows: Option<&Bitmap>,
    ) -> Result<Option<Column>, TableProblem> {
        let Some(field) = self.schema.get(name) else { return Ok(None) };
        let left = AtomicU64::new(self.most);
        let decoder = ColumnDecoder { table: self, field, left: &left };
        let parts = self.parts(rows);
        match DataType::from_arrow_field(field) {
            DataType::Int32 => decoder.numbers::<Int32Type>(&parts),
            DataType::Int64 => decoder.numbers::<Int64Type>(&parts),
            DataType::UInt32 => decoder.numbers::<UInt32Type>(&parts),
            DataType::UInt64 => decoder.numbers::<UInt64Type>(&parts),
            DataType::Float64 => decoder.numbers::<Float64Type>(&parts),
            _ => decoder.others(&parts),
        }
        .map(Some)
    }

    /// Decodes a column of small numbers to one byte each, [`u8::MAX`] for larger ones; returns `None` if the table
    /// lacks the column.
    pub fn codes(&self, name: &str) -> Result<Option<Vec<u8>>, TableProblem> {
        let Some(field) = self.schema.get(name) else { return Ok(None) };
        if DataType::from_arrow_field(field) != DataType::UInt32 {
            return Err(TableProblem::ColumnType(name.to_owned()));
        }
        let decoder = ColumnDecoder { table: self, field, left: &AtomicU64::new(self.most) };
        let copy = |from: &[u32], to: &mut [u8]| {
            for (from, to) in from.iter().zip(to) {
                *to = u8::try_from(*from).unwrap_or(u8::MAX);
            }
        };
        let (codes, validity) = decoder.values::<UInt32Type, u8>(&self.parts(None), copy)?;
        match validity {
            None => Ok(Some(codes)),
            Some(_) => Err(TableProblem::Nulls(name.to_owned())),
        }
    }

    /// Returns the number of nulls in a column, if its statistics have it.
    pub fn null_count(&self, name: &str) -> Option<u64> {
        let groups = self.metadata.row_groups.iter();
        let mut chunks = groups.flat_map(|group| group.columns_under_root_iter(name)).flatten();
        chunks.try_fold(0_u64, |sum, chunk| {
            let statistics = chunk.statistics(&self.metadata.footer_buf)?.ok()?;
            sum.checked_add(u64::try_from(statistics.null_count()?).ok()?)
        })
    }

    fn parts(&self, rows: Option<&Bitmap>) -> Vec<RowGroupPart<'_>> {
        let mut first = 0;
        let parts = self.metadata.row_groups.iter().map(|group| {
            let rows = rows.map(|rows| {
                let start = first.min(rows.len());
                rows.clone().sliced(start, group.num_rows().min(rows.len() - start))
            });
            first += group.num_rows();
            let height = rows.as_ref().map_or(group.num_rows(), Bitmap::set_bits);
            RowGroupPart { group, rows, height }
        });
        parts.filter(|part| part.height > 0).collect()
    }
}

/// One column being decoded.
struct ColumnDecoder<'a> {
    table: &'a ParquetTable<'a>,
    field: &'a ArrowField,
    /// Bytes that its pages may still unpack to.
    left: &'a AtomicU64,
}

impl ColumnDecoder<'_> {
    /// Decodes a column of numbers.
    fn numbers<T: PolarsNumericType>(
        &self,
        parts: &[RowGroupPart<'_>],
    ) -> Result<Column, TableProblem>
    where
        ChunkedArray<T>: IntoColumn,
    {
        let copy = |from: &[T::Native], to: &mut [T::Native]| to.copy_from_slice(from);
        let (values, validity) = self.values::<T, T::Native>(parts, copy)?;
        let name = self.field.name.clone();
        Ok(ChunkedArray::<T>::from_vec_validity(name, values, validity).into_column())
    }

    /// Decodes a column of numbers through `copy`, with a validity bitmap if any are null. A column of nulls takes no
    /// memory, because zeroed pages that are never touched take none.
    fn values<T: PolarsNumericType, U: Clone + Default + Send>(
        &self,
        parts: &[RowGroupPart<'_>],
        copy: impl Fn(&[T::Native], &mut [U]) + Sync,
    ) -> Result<(Vec<U>, Option<Bitmap>), TableProblem> {
        let height = parts.iter().map(|part| part.height).sum();
        let mut values = vec![U::default(); height];
        let mut left = values.as_mut_slice();
        let slices: Vec<&mut [U]> =
            parts.iter().filter_map(|part| left.split_off_mut(..part.height)).collect();
        let targets: Vec<_> = parts.iter().zip(slices).collect();
        let validities = side_by_side(targets, |(part, slice)| {
            let mut filled = 0;
            let mut validity: Option<MutableBitmap> = None;
            for array in self.arrays(part)? {
                let array = array.as_any().downcast_ref::<PrimitiveArray<T::Native>>();
                let array =
                    array.ok_or_else(|| TableProblem::ColumnType(self.field.name.to_string()))?;
                let target = slice.get_mut(filled..filled + array.len());
                let target = target.ok_or_else(|| part.problem(filled + array.len()))?;
                // Nulls have nothing to copy.
                if array.null_count() < array.len() {
                    copy(array.values(), target);
                }
                if array.null_count() > 0 || validity.is_some() {
                    let validity =
                        validity.get_or_insert_with(|| MutableBitmap::from_len_set(filled));
                    match array.validity() {
                        Some(bits) => validity.extend_from_bitmap(bits),
                        None => validity.extend_constant(array.len(), true),
                    }
                }
                filled += array.len();
            }
            if filled == part.height {
                Ok(validity.map(Bitmap::from))
            } else {
                Err(part.problem(filled))
            }
        });
        let validities = validities?;
        let nulls: usize = validities.iter().flatten().map(Bitmap::unset_bits).sum();
        let validity = (nulls > 0).then(|| {
            let mut whole = MutableBitmap::with_capacity(height);
            for (part, validity) in parts.iter().zip(validities) {
                match validity {
                    Some(validity) => whole.extend_from_bitmap(&validity),
                    None => whole.extend_constant(part.height, true),
                }
            }
            Bitmap::from(whole)
        });
        Ok((values, validity))
    }

    /// Decodes a column of another type into one chunk.
    fn others(&self, parts: &[RowGroupPart<'_>]) -> Result<Column, TableProblem> {
        let arrays = side_by_side(parts.iter().collect(), |part| {
            let arrays = self.arrays(part)?;
            let height: usize = arrays.iter().map(|array| array.len()).sum();
            if height == part.height { Ok(arrays) } else { Err(part.problem(height)) }
        });
        let arrays: Vec<Box<dyn Array>> = arrays?.into_iter().flatten().collect();
        let series = if arrays.is_empty() {
            Series::new_empty(self.field.name.clone(), &DataType::from_arrow_field(self.field))
        } else {
            Series::try_from((self.field, arrays))?
        };
        Ok(series.rechunk().into_column())
    }

    /// Decodes the selected rows of a row group.
    fn arrays(&self, part: &RowGroupPart<'_>) -> Result<Vec<Box<dyn Array>>, TableProblem> {
        let chunks: Vec<&ColumnChunkMetadata> =
            part.group.columns_under_root_iter(&self.field.name).into_iter().flatten().collect();
        let mut columns = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let bytes = (self.table.read)(chunk.byte_range())?;
            check_pages(&bytes, chunk.num_values(), self.left, self.table.most)?;
            let pages = PageReader::new(Cursor::new(bytes.into()), chunk, Vec::new(), usize::MAX);
            columns.push(BasicDecompressor::new(pages, Vec::new()));
        }
        let types = chunks.iter().map(|chunk| &chunk.descriptor().descriptor.primitive_type);
        let rows = match &part.rows {
            Some(rows) => Filter::new_masked(rows.clone()),
            None => Filter::new_limited(part.height),
        };
        let types = types.collect();
        let (arrays, _) = column_iter_to_arrays(columns, types, self.field.clone(), Some(rows))?;
        Ok(arrays)
    }
}

/// Decodes the parts of a column, in parallel if there are several; most columns have only one.
///
/// This must not run on the threads of polars. A SQL query may block all of those on a thread that itself needs a
/// column, as with the texts of stacks.
fn side_by_side<P: Send, T: Send>(
    mut parts: Vec<P>,
    decode: impl Fn(P) -> Result<T, TableProblem> + Send + Sync,
) -> Result<Vec<T>, TableProblem> {
    if parts.len() > 1 {
        return parts.into_par_iter().map(decode).collect();
    }
    parts.pop().into_iter().map(decode).collect()
}
