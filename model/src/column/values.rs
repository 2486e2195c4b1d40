//! Typed access to the values of a column: one contiguous chunk.

use std::ops::Range;

use polars::prelude::{
    BinaryChunked, BinaryType, BooleanChunked, BooleanType, ChunkedArray, Column, ListChunked,
    PolarsDataType, PolarsNumericType, PolarsPhysicalType, PolarsResult, StringChunked, StringType,
    UInt32Type,
};

use super::number::{Native, Number};

/// A column of numbers; a null is no number.
pub struct Numbers<T: Number> {
    column: ChunkedArray<T::Physical>,
    /// The whole column; `None` if it is empty or all null.
    chunk: Option<<T::Physical as PolarsDataType>::Array>,
}

/// A column that was not read: it has no rows.
impl<T: Number> Default for Numbers<T> {
    fn default() -> Self {
        Self { column: ChunkedArray::default(), chunk: None }
    }
}

impl<T: Number> Numbers<T> {
    pub fn from_column(column: &Column) -> PolarsResult<Self> {
        unpacked::<T::Physical>(column).map(Self::new)
    }

    fn new(column: ChunkedArray<T::Physical>) -> Self {
        let has_any = column.null_count() < column.len();
        let chunk = column.downcast_iter().next().filter(|_| has_any).cloned();
        Self { column, chunk }
    }

    /// Returns the native polars values; arbitrary where the column is null.
    fn natives(&self) -> &[Native<T>] {
        self.chunk.as_ref().map_or(&[], |chunk| chunk.values().as_slice())
    }

    /// Returns the number of a row; `None` if it is null or there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        let chunk = self.chunk.as_ref()?;
        let value = *chunk.values().as_slice().get(row)?;
        match chunk.validity() {
            Some(valid) if !valid.get_bit(row) => None,
            _ => Some(T::from_native(value)),
        }
    }

    /// Iterates over the numbers of all rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        self.column.iter().map(|number| number.map(T::from_native))
    }

    /// Iterates over the numbers of some rows of a column without nulls; empty if the rows do not exist.
    pub fn range(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = T> + '_ {
        self.natives().get(rows).unwrap_or_default().iter().map(|native| T::from_native(*native))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.column.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.column.is_empty()
    }

    /// Whether any row has a number.
    pub fn has_any(&self) -> bool {
        self.column.null_count() < self.column.len()
    }
}

impl<T: Number<Physical: PolarsNumericType<Native = T>>> Numbers<T> {
    /// Returns the plain numbers; arbitrary where the column is null.
    pub fn values(&self) -> &[T] {
        self.natives()
    }
}

/// A column of truth values.
pub struct Flags {
    column: BooleanChunked,
    /// The whole column; `None` if it is empty.
    chunk: Option<<BooleanType as PolarsDataType>::Array>,
}

impl Flags {
    pub fn new(column: &Column) -> PolarsResult<Self> {
        let column = unpacked::<BooleanType>(column)?;
        let chunk = column.downcast_iter().next().cloned();
        Ok(Self { column, chunk })
    }

    /// Returns the value of a row; false if it is null or there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        let Some(chunk) = &self.chunk else { return false };
        row < chunk.values().len()
            && chunk.values().get_bit(row)
            && chunk.validity().is_none_or(|valid| valid.get_bit(row))
    }

    /// Whether any row is true.
    pub fn any(&self) -> bool {
        self.column.any()
    }

    /// Iterates over the values of all rows.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        self.column.iter().map(Option::unwrap_or_default)
    }
}

/// A column of text.
pub struct Texts(StringChunked);

impl Texts {
    pub fn new(column: &Column) -> PolarsResult<Self> {
        unpacked::<StringType>(column).map(Self)
    }

    /// Returns the text of a row; `None` if it is null or there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        if row < self.len() { self.0.get(row) } else { None }
    }

    /// Returns the text of a row of a column without nulls.
    pub fn text(&self, row: usize) -> &str {
        self.get(row).unwrap_or_default()
    }

    /// Iterates over the texts of all rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.0.iter()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A column of byte strings.
pub struct Blobs(BinaryChunked);

impl Blobs {
    pub fn new(column: &Column) -> PolarsResult<Self> {
        unpacked::<BinaryType>(column).map(Self)
    }

    /// Returns the bytes of a row; `None` if it is null or there is no such row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        if row < self.0.len() { self.0.get(row) } else { None }
    }

    /// Iterates over the bytes of all rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.0.iter()
    }
}

/// A column of lists of numbers.
pub struct Lists<T: Number> {
    lists: ListChunked,
    values: Numbers<T>,
}

/// A column that was not read: it has no rows.
impl<T: Number> Default for Lists<T> {
    fn default() -> Self {
        Self { lists: ListChunked::default(), values: Numbers::default() }
    }
}

impl<T: Number<Physical = UInt32Type>> Lists<T> {
    pub fn new(column: &Column) -> PolarsResult<Self> {
        let lists = column.list()?.rechunk().into_owned();
        let values = lists.get_inner();
        Ok(Self { values: Numbers::new(values.unpack::<UInt32Type>()?.clone()), lists })
    }

    /// Returns the list of a row; empty if there is no such row.
    pub fn get(&self, row: usize) -> impl ExactSizeIterator<Item = T> + '_ {
        let chunk = self.lists.downcast_iter().next().filter(|_| row < self.len());
        let range = chunk.map_or(0..0, |chunk| {
            let (start, end) = chunk.offsets().start_end(row);
            start..end
        });
        self.values.range(range)
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
}

fn unpacked<T: PolarsPhysicalType>(column: &Column) -> PolarsResult<ChunkedArray<T>> {
    Ok(column.as_materialized_series().unpack::<T>()?.rechunk().into_owned())
}
