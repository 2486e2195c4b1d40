//! Columns: their types, and how a vector of Rust values becomes one.

use std::fmt;

use polars::prelude::ListBuilderTrait;
use polars::prelude::{
    BooleanChunked, Column, DataType, Int32Chunked, Int64Chunked, IntoColumn,
    ListPrimitiveChunkedBuilder, NewChunkedArray, PolarsResult, Series, StringChunked,
    UInt32Chunked, UInt32Type, UInt64Chunked,
};

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// UTF-8 text.
    Text,
    /// A list of unsigned 32-bit integers.
    U32List,
}

impl ColumnType {
    /// The polars type.
    pub fn dtype(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::Text => DataType::String,
            Self::U32List => DataType::List(Box::new(DataType::UInt32)),
        }
    }
}

impl fmt::Display for ColumnType {
    /// As in the documentation: `bool`, `i64`, `text`, `list of u32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Text => "text",
            Self::U32List => "list of u32",
        })
    }
}

/// What a column holds, from the same declaration as the code that fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Column name, snake case; fields that are times end in `_ns`.
    pub name: &'static str,
    /// Type of the values.
    pub dtype: ColumnType,
    /// Whether a value may be absent, which means "unknown" or "does not apply".
    pub nullable: bool,
    /// Unit, or the table a row number points into; empty for plain values.
    pub unit: &'static str,
    /// What the value means.
    pub doc: &'static str,
}

/// A Rust type that can be the value of a column.
pub trait Cell: Sized {
    /// Type of the column.
    const TYPE: ColumnType;
    /// Whether the column may hold nulls.
    const NULLABLE: bool;
    /// Moves the values into a column.
    fn column(name: &str, values: Vec<Self>) -> Column;
    /// Copies the values out of a column.
    ///
    /// # Errors
    /// When the column has another type.
    fn read(column: &Column) -> PolarsResult<Vec<Self>>;
}

macro_rules! cell {
    ($($rust:ty => $variant:ident, $chunked:ty, $typed:ident;)+) => {$(
        impl Cell for $rust {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = false;
            fn column(name: &str, values: Vec<Self>) -> Column {
                Column::new(name.into(), values)
            }
            fn read(column: &Column) -> PolarsResult<Vec<Self>> {
                let value = |value: Option<_>| value.map(<$rust>::from).unwrap_or_default();
                Ok(column.$typed()?.iter().map(value).collect())
            }
        }
        impl Cell for Option<$rust> {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = true;
            fn column(name: &str, values: Vec<Self>) -> Column {
                <$chunked>::from_iter_options(name.into(), values.into_iter()).into_column()
            }
            fn read(column: &Column) -> PolarsResult<Vec<Self>> {
                Ok(column.$typed()?.iter().map(|value| value.map(<$rust>::from)).collect())
            }
        }
    )+};
}

cell! {
    i32 => I32, Int32Chunked, i32;
    i64 => I64, Int64Chunked, i64;
    u32 => U32, UInt32Chunked, u32;
    u64 => U64, UInt64Chunked, u64;
    String => Text, StringChunked, str;
}

impl Cell for bool {
    const TYPE: ColumnType = ColumnType::Bool;
    const NULLABLE: bool = false;
    fn column(name: &str, values: Vec<Self>) -> Column {
        BooleanChunked::from_slice(name.into(), &values).into_column()
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        Ok(column.bool()?.iter().map(Option::unwrap_or_default).collect())
    }
}

impl Cell for Vec<u32> {
    const TYPE: ColumnType = ColumnType::U32List;
    const NULLABLE: bool = false;
    fn column(name: &str, values: Vec<Self>) -> Column {
        let total = values.iter().map(Vec::len).sum();
        let mut builder = ListPrimitiveChunkedBuilder::<UInt32Type>::new(
            name.into(),
            values.len(),
            total,
            DataType::UInt32,
        );
        for list in &values {
            builder.append_slice(list);
        }
        builder.finish().into_column()
    }

    fn read(column: &Column) -> PolarsResult<Vec<Self>> {
        let lists = column.list()?;
        let list = |list: Option<Series>| -> PolarsResult<Vec<u32>> {
            let Some(list) = list else { return Ok(Vec::new()) };
            Ok(list.u32()?.iter().map(Option::unwrap_or_default).collect())
        };
        (0..lists.len()).map(|row| list(lists.get_as_series(row))).collect()
    }
}

/// A column of `height` nulls; costs nothing until it is written.
pub(crate) fn null_column(spec: &ColumnSpec, height: usize) -> Column {
    Series::full_null(spec.name.into(), height, &spec.dtype.dtype()).into()
}
