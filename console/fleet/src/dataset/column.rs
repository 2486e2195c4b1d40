//! Columns of the tables of a dataset, declared with their meanings.

use polars::prelude::{
    BooleanChunked, Column, DataType, Field, Float64Chunked, Int32Chunked, Int64Chunked,
    IntoColumn, NewChunkedArray, PlSmallStr, Schema, StringChunked, TimeUnit, TimeZone,
};

/// A row of a table.
pub trait DatasetRow: DatasetCell {
    /// The table's name, which is a folder in the dataset.
    const TABLE: &'static str;

    /// Maximum number of rows in memory, and in a row group.
    const BATCH_ROWS: usize;

    /// Returns the columns of the table, without the partition columns.
    fn table_columns() -> Vec<DatasetColumn> {
        Self::specs("", "")
    }
}

/// A column as readers see it.
pub struct DatasetColumn {
    pub name: &'static str,
    /// Meaning, with the unit.
    pub doc: &'static str,
    pub dtype: DataType,
}

/// The value of a column, or the values of several.
pub trait DatasetCell {
    /// Returns its column with this name and meaning. A value with several columns ignores them, because each of its
    /// columns has its own.
    fn specs(name: &'static str, doc: &'static str) -> Vec<DatasetColumn>;

    /// Converts values to columns.
    fn columns<'c>(
        name: &'static str,
        cells: impl Iterator<Item = &'c Self> + Clone,
    ) -> Vec<Column>
    where
        Self: 'c;
}

/// A time in microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc(pub i64);

const UTC: DataType = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));

/// Makes types usable as column values; `None` is unknown or does not apply. Only uses types that every engine has, so
/// no unsigned 64-bit numbers.
macro_rules! cells {
    ($( $ty:ty, $dtype:expr, $array:ty, $value:expr; )+) => { $(
        impl DatasetCell for $ty {
            fn specs(name: &'static str, doc: &'static str) -> Vec<DatasetColumn> {
                vec![DatasetColumn { name, doc, dtype: $dtype }]
            }

            fn columns<'c>(
                name: &'static str,
                cells: impl Iterator<Item = &'c Self> + Clone,
            ) -> Vec<Column>
            where
                Self: 'c,
            {
                let name = PlSmallStr::from_static(name);
                let values = <$array>::from_iter_options(name, cells.map($value)).into_column();
                // Times are stored as numbers first.
                vec![values.cast(&$dtype).unwrap_or(values)]
            }
        }
    )+ };
}

cells! {
    &str, DataType::String, StringChunked, |text| Some(*text);
    Option<&str>, DataType::String, StringChunked, |text| *text;
    String, DataType::String, StringChunked, |text| Some(text.as_str());
    Option<String>, DataType::String, StringChunked, |text| text.as_deref();
    i32, DataType::Int32, Int32Chunked, |number| Some(*number);
    Option<i32>, DataType::Int32, Int32Chunked, |number| *number;
    i64, DataType::Int64, Int64Chunked, |number| Some(*number);
    Option<i64>, DataType::Int64, Int64Chunked, |number| *number;
    f64, DataType::Float64, Float64Chunked, |number| Some(*number);
    Option<f64>, DataType::Float64, Float64Chunked, |number| *number;
    bool, DataType::Boolean, BooleanChunked, |flag| Some(*flag);
    Option<Utc>, UTC, Int64Chunked, |time| time.map(|Utc(us)| us);
}

/// Declares a row. Its fields are the columns, in order, and their doc comments are the meanings. A field that is
/// itself such a row contributes its fields as columns.
macro_rules! columns {
    (
        $(#[$meta:meta])*
        pub struct $row:ident<$t:lifetime> {
            $( $(#[doc = $doc:literal])* pub $field:ident: $ty:ty, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $row<$t> { $( $(#[doc = $doc])* pub $field: $ty, )+ }

        impl<$t> $crate::dataset::column::DatasetCell for $row<$t> {
            fn specs(
                _: &'static str,
                _: &'static str,
            ) -> Vec<$crate::dataset::column::DatasetColumn> {
                let mut specs = Vec::new();
                $(
                    let name = stringify!($field).trim_start_matches("r#");
                    specs.extend(<$ty>::specs(name, concat!($($doc),*).trim_start()));
                )+
                specs
            }

            fn columns<'c>(
                _: &'static str,
                rows: impl Iterator<Item = &'c Self> + Clone,
            ) -> Vec<polars::prelude::Column>
            where
                Self: 'c,
            {
                let mut columns = Vec::new();
                $(
                    let name = stringify!($field).trim_start_matches("r#");
                    columns.extend(<$ty>::columns(name, rows.clone().map(|row| &row.$field)));
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
