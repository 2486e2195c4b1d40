//! Columns: their types, conversion from vectors of Rust values, and typed access.

mod cell;
mod number;
mod sparse;
mod values;

use std::borrow::Cow;
use std::fmt;

use polars::prelude::{Column, DataType, Series};

pub use self::cell::{Bytes, Cell, flat_lists};
pub use self::number::Number;
pub use self::sparse::{RowSet, Sparse};
pub use self::values::{Blobs, Flags, Lists, Numbers, Texts};
use crate::table::Table;

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
    /// 64-bit floating point number.
    F64,
    /// UTF-8 text.
    Text,
    /// A string of bytes.
    Bytes,
    /// A list of unsigned 32-bit integers.
    U32List,
}

impl ColumnType {
    /// Returns the polars type.
    pub fn dtype(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::F64 => DataType::Float64,
            Self::Text => DataType::String,
            Self::Bytes => DataType::Binary,
            Self::U32List => DataType::List(Box::new(DataType::UInt32)),
        }
    }
}

impl fmt::Display for ColumnType {
    /// Formats the type as in the documentation: `bool`, `i64`, `text`, `bytes`, `list of u32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::U32List => "list of u32",
        })
    }
}

/// How the numbers of a column relate to another table. It follows from the type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// They are row numbers of the other table.
    Row(Table),
    /// They are values of the column that identifies the other table's rows.
    Key(Table, &'static str),
    /// They count rows of the other table, each of which belongs to at most one row of this table.
    Count(Table),
}

/// A column's specification, from the same declaration as the code that fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Column name in snake case; fields that are times end in `_ns`.
    pub name: &'static str,
    /// Type of the values.
    pub dtype: ColumnType,
    /// Whether a value may be absent, which means "unknown" or "does not apply".
    pub nullable: bool,
    /// Unit of plain values; [`Self::unit_text`] returns what is printed.
    pub unit: &'static str,
    /// The table that the values refer to.
    pub refers_to: Option<Reference>,
    /// Meaning of the value.
    pub doc: &'static str,
}

impl ColumnSpec {
    /// Returns the unit as printed; for row numbers it is the table, as in `row of objects`.
    pub fn unit_text(&self) -> Cow<'static, str> {
        match self.refers_to {
            Some(Reference::Row(table)) if self.dtype == ColumnType::U32List => {
                format!("rows of {}", table.name()).into()
            }
            Some(Reference::Row(table)) => format!("row of {}", table.name()).into(),
            Some(Reference::Key(table, column)) => format!("{}.{column}", table.name()).into(),
            Some(Reference::Count(_)) | None => self.unit.into(),
        }
    }

    /// Whether the values are addresses, kernel keys or handles, which are written in hex.
    pub fn is_hex(&self) -> bool {
        self.unit == "hex"
    }

    /// Returns the table whose row numbers the values are.
    pub const fn rows_of(&self) -> Option<Table> {
        match self.refers_to {
            Some(Reference::Row(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns a column of `height` nulls; it costs nothing until it is written.
    pub fn nulls(&self, height: usize) -> Column {
        Series::full_null(self.name.into(), height, &self.dtype.dtype()).into()
    }
}
