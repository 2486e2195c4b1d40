//! Typed access to the columns of a trace: one contiguous chunk each, cheap to clone.

use handlescope_model::{ArchiveError, Table, Trace};
use polars::prelude::{
    BooleanChunked, BooleanType, ChunkedArray, Int32Type, Int64Type, ListChunked, PolarsError,
    PolarsNumericType, PolarsPhysicalType, StringChunked, StringType, UInt32Type, UInt64Type,
};

/// Column of `u32`.
pub(crate) type U32s = Numbers<UInt32Type>;
/// Column of `u64`.
pub(crate) type U64s = Numbers<UInt64Type>;
/// Column of `i32`.
pub(crate) type I32s = Numbers<Int32Type>;
/// Column of `i64`.
pub(crate) type I64s = Numbers<Int64Type>;

/// A column of numbers.
#[derive(Clone)]
pub(crate) struct Numbers<T: PolarsNumericType>(ChunkedArray<T>);

impl<T: PolarsNumericType> Numbers<T> {
    pub(crate) fn load(trace: &Trace, table: Table, name: &str) -> Result<Self, ArchiveError> {
        typed::<T>(trace, table, name).map(Self)
    }

    /// The numbers; arbitrary where the column is null.
    pub(crate) fn values(&self) -> &[T::Native] {
        self.0.downcast_iter().next().map_or(&[], |chunk| chunk.values().as_slice())
    }

    /// The number of a row; `None` where the column is null or has no such row.
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        let chunk = self.0.downcast_iter().next()?;
        let value = *chunk.values().as_slice().get(row)?;
        match chunk.validity() {
            Some(valid) if !valid.get_bit(row) => None,
            _ => Some(value),
        }
    }
}

/// A column of truth values.
#[derive(Clone)]
pub(crate) struct Flags(BooleanChunked);

impl Flags {
    pub(crate) fn load(trace: &Trace, table: Table, name: &str) -> Result<Self, ArchiveError> {
        typed::<BooleanType>(trace, table, name).map(Self)
    }

    /// The value of a row; false where there is no such row.
    pub(crate) fn get(&self, row: usize) -> bool {
        let chunk = self.0.downcast_iter().next();
        chunk.is_some_and(|chunk| row < chunk.values().len() && chunk.values().get_bit(row))
    }
}

/// A column of text.
#[derive(Clone)]
pub(crate) struct Texts(StringChunked);

impl Texts {
    pub(crate) fn load(trace: &Trace, table: Table, name: &str) -> Result<Self, ArchiveError> {
        typed::<StringType>(trace, table, name).map(Self)
    }

    /// The text of a row; `None` where the column is null or has no such row.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        if row < self.len() { self.0.get(row) } else { None }
    }

    /// The text of a row of a column without nulls.
    pub(crate) fn text(&self, row: usize) -> &str {
        self.get(row).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A column of lists of `u32`.
#[derive(Clone)]
pub(crate) struct Lists {
    lists: ListChunked,
    values: U32s,
}

impl Lists {
    pub(crate) fn load(trace: &Trace, table: Table, name: &str) -> Result<Self, ArchiveError> {
        let column = trace.column(table, name)?;
        let lists = column.list().map_err(|e| mistyped(trace, table, &e))?.clone();
        let values = lists.get_inner();
        let values = values.unpack::<UInt32Type>().map_err(|e| mistyped(trace, table, &e))?;
        Ok(Self { values: Numbers(values.clone()), lists })
    }

    /// The list of a row; empty where there is no such row.
    pub(crate) fn get(&self, row: usize) -> &[u32] {
        let Some(chunk) = self.lists.downcast_iter().next() else { return &[] };
        if row >= self.len() {
            return &[];
        }
        let (start, end) = chunk.offsets().start_end(row);
        self.values.values().get(start..end).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }
}

fn typed<T: PolarsPhysicalType>(
    trace: &Trace,
    table: Table,
    name: &str,
) -> Result<ChunkedArray<T>, ArchiveError> {
    let column = trace.column(table, name)?;
    let series = column.as_materialized_series();
    series.unpack::<T>().cloned().map_err(|e| mistyped(trace, table, &e))
}

/// [`Trace::column`] has checked the type against the schema, so this tells of a newer schema.
fn mistyped(trace: &Trace, table: Table, error: &PolarsError) -> ArchiveError {
    ArchiveError::Member {
        path: trace.path().to_path_buf(),
        member: table.member(),
        reason: error.to_string(),
    }
}
