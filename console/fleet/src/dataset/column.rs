//! Columns of the tables of a dataset, declared with what they mean and where they come from, and rows as Parquet.

use std::io::Write;

use handlescope_model::ParquetFile;
use polars::prelude::{
    BooleanChunked, Column, DataFrame, DataType, Field, Float64Chunked, Int32Chunked, Int64Chunked,
    IntoColumn, NewChunkedArray, PlSmallStr, PolarsResult, Schema, StringChunked, TimeUnit,
    TimeZone,
};

/// Row of a table.
pub trait DatasetRow: Sized {
    /// The table, which is a folder of the dataset.
    const TABLE: &'static str;

    /// Rows that are in memory at once, and in a row group.
    const BATCH_ROWS: usize = 1 << 17;

    /// The columns in order.
    fn columns() -> Vec<RowColumn<Self>>;
}

/// A column of rows of type `R`.
pub struct RowColumn<R> {
    pub name: &'static str,
    /// Meaning, with the unit.
    pub doc: &'static str,
    value: Value<R>,
}

/// Value of a column in a row; `None` where it is unknown or does not apply.
///
/// These types exist in every engine. An unsigned number of 64 bits does not.
enum Value<R> {
    Text(fn(&R) -> Option<&str>),
    Int(fn(&R) -> Option<i32>),
    BigInt(fn(&R) -> Option<i64>),
    Double(fn(&R) -> Option<f64>),
    Boolean(fn(&R) -> Option<bool>),
    /// Microseconds since 1970, UTC.
    Timestamp(fn(&R) -> Option<i64>),
}

/// Constructors of columns, one for each type.
impl<R> RowColumn<R> {
    pub fn text(name: &'static str, doc: &'static str, value: fn(&R) -> Option<&str>) -> Self {
        Self { name, doc, value: Value::Text(value) }
    }

    pub fn int(name: &'static str, doc: &'static str, value: fn(&R) -> Option<i32>) -> Self {
        Self { name, doc, value: Value::Int(value) }
    }

    pub fn big_int(name: &'static str, doc: &'static str, value: fn(&R) -> Option<i64>) -> Self {
        Self { name, doc, value: Value::BigInt(value) }
    }

    pub fn double(name: &'static str, doc: &'static str, value: fn(&R) -> Option<f64>) -> Self {
        Self { name, doc, value: Value::Double(value) }
    }

    pub fn boolean(name: &'static str, doc: &'static str, value: fn(&R) -> Option<bool>) -> Self {
        Self { name, doc, value: Value::Boolean(value) }
    }

    pub fn timestamp(name: &'static str, doc: &'static str, value: fn(&R) -> Option<i64>) -> Self {
        Self { name, doc, value: Value::Timestamp(value) }
    }

    /// Type as polars has it.
    pub fn dtype(&self) -> DataType {
        match self.value {
            Value::Text(_) => DataType::String,
            Value::Int(_) => DataType::Int32,
            Value::BigInt(_) => DataType::Int64,
            Value::Double(_) => DataType::Float64,
            Value::Boolean(_) => DataType::Boolean,
            Value::Timestamp(_) => DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)),
        }
    }

    fn values(&self, rows: &[R]) -> Column {
        let name = PlSmallStr::from_static(self.name);
        match self.value {
            Value::Text(value) => {
                StringChunked::from_iter_options(name, rows.iter().map(value)).into_column()
            }
            Value::Int(value) => {
                Int32Chunked::from_iter_options(name, rows.iter().map(value)).into_column()
            }
            Value::BigInt(value) => {
                Int64Chunked::from_iter_options(name, rows.iter().map(value)).into_column()
            }
            Value::Double(value) => {
                Float64Chunked::from_iter_options(name, rows.iter().map(value)).into_column()
            }
            Value::Boolean(value) => {
                BooleanChunked::from_iter_options(name, rows.iter().map(value)).into_column()
            }
            Value::Timestamp(value) => {
                let times = Int64Chunked::from_iter_options(name, rows.iter().map(value));
                times.into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)).into_column()
            }
        }
    }
}

/// Names and types of the columns of a table.
pub fn schema<R: DatasetRow>() -> Schema {
    let columns = R::columns().into_iter();
    columns.map(|column| Field::new(column.name.into(), column.dtype())).collect()
}

/// A Parquet file of rows that come one by one.
pub struct RowFile<R, W: Write> {
    columns: Vec<RowColumn<R>>,
    file: ParquetFile<W>,
    batch: Vec<R>,
    rows: u64,
}

impl<R: DatasetRow, W: Write> RowFile<R, W> {
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: W) -> PolarsResult<Self> {
        let file = ParquetFile::new(&schema::<R>(), |_| true, out)?;
        Ok(Self { columns: R::columns(), file, batch: Vec::new(), rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, row: R) -> PolarsResult<()> {
        self.batch.push(row);
        if self.batch.len() >= R::BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> PolarsResult<()> {
        let columns = self.columns.iter().map(|column| column.values(&self.batch)).collect();
        self.file.write(&DataFrame::new(self.batch.len(), columns)?)?;
        self.rows += self.batch.len() as u64;
        self.batch.clear();
        Ok(())
    }

    /// Completes the file, with pairs of keys and values in its footer, and returns its number of rows.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, pairs: Vec<(String, String)>) -> PolarsResult<u64> {
        self.write()?;
        self.file.finish(pairs)?;
        Ok(self.rows)
    }
}
