//! Columns of the tables of a dataset, declared with their meanings and values.

use polars::prelude::{
    BooleanChunked, Column, DataType, Field, Float64Chunked, Int32Chunked, Int64Chunked,
    IntoColumn, NewChunkedArray, PlSmallStr, Schema, StringChunked, TimeUnit, TimeZone,
};

/// A column as readers see it.
pub struct DatasetColumn {
    pub name: &'static str,
    /// Meaning, with the unit.
    pub doc: &'static str,
    pub dtype: DataType,
}

/// The value of a column, or the values of several.
pub trait DatasetCell: Sized {
    /// Returns its column with this name and meaning. A value with several columns ignores them, because each of its
    /// columns has its own.
    fn specs(name: &'static str, doc: &'static str) -> Vec<DatasetColumn>;

    /// Converts values to columns.
    fn columns(name: &'static str, cells: impl Iterator<Item = Self> + Clone) -> Vec<Column>;
}

/// A time in microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc(pub i64);

const UTC: DataType = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));

/// Makes types usable as column values; `None` is unknown or does not apply. Only uses types that every engine has, so
/// no unsigned 64-bit numbers.
macro_rules! cells {
    ($( $ty:ty, $dtype:expr, $array:ty, |$cells:ident| $values:expr; )+) => { $(
        impl DatasetCell for $ty {
            fn specs(name: &'static str, doc: &'static str) -> Vec<DatasetColumn> {
                vec![DatasetColumn { name, doc, dtype: $dtype }]
            }

            fn columns(
                name: &'static str,
                $cells: impl Iterator<Item = Self> + Clone,
            ) -> Vec<Column> {
                let name = PlSmallStr::from_static(name);
                let values = <$array>::from_iter_options(name, $values).into_column();
                // Times are stored as numbers first.
                vec![values.cast(&$dtype).unwrap_or(values)]
            }
        }
    )+ };
}

cells! {
    &str, DataType::String, StringChunked, |cells| cells.map(Some);
    Option<&str>, DataType::String, StringChunked, |cells| cells;
    String, DataType::String, StringChunked, |cells| cells.map(Some);
    Option<String>, DataType::String, StringChunked, |cells| cells;
    i32, DataType::Int32, Int32Chunked, |cells| cells.map(Some);
    Option<i32>, DataType::Int32, Int32Chunked, |cells| cells;
    i64, DataType::Int64, Int64Chunked, |cells| cells.map(Some);
    Option<i64>, DataType::Int64, Int64Chunked, |cells| cells;
    f64, DataType::Float64, Float64Chunked, |cells| cells.map(Some);
    Option<f64>, DataType::Float64, Float64Chunked, |cells| cells;
    bool, DataType::Boolean, BooleanChunked, |cells| cells.map(Some);
    Option<Utc>, UTC, Int64Chunked, |cells| cells.map(|time| time.map(|Utc(us)| us));
}

/// Declares the columns of a row or value, in order, with their values. The doc comments are the meanings. A value that has
/// several columns contributes these.
macro_rules! columns {
    (
        $of:ty: $row:ident {
            $( $(#[doc = $doc:literal])* $column:ident: $ty:ty = $value:expr; )+
        }
    ) => {
        impl<'t> $crate::dataset::column::DatasetCell for $of {
            fn specs(
                _: &'static str,
                _: &'static str,
            ) -> Vec<$crate::dataset::column::DatasetColumn> {
                let mut specs = Vec::new();
                $(
                    let name = stringify!($column).trim_start_matches("r#");
                    specs.extend(<$ty>::specs(name, concat!($($doc),*).trim_start()));
                )+
                specs
            }

            // The value may be the same for all rows.
            #[allow(unused_variables)]
            fn columns(
                _: &'static str,
                rows: impl Iterator<Item = Self> + Clone,
            ) -> Vec<polars::prelude::Column> {
                let mut columns = Vec::new();
                $(
                    let name = stringify!($column).trim_start_matches("r#");
                    columns.extend(<$ty>::columns(name, rows.clone().map(|$row| -> $ty { $value })));
                )+
                columns
            }
        }
    };
}

pub(super) use columns;

/// Returns the names and types of columns.
pub fn schema(columns: &[DatasetColumn]) -> Schema {
    columns.iter().map(|column| Field::new(column.name.into(), column.dtype.clone())).collect()
}
