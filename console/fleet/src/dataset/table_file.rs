//! Parquet files of the tables of a dataset.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use handlescope_model::{Noting, ParquetFile};
use polars::prelude::{DataFrame, Schema};

use super::error::DatasetError;
use super::manifest::TableSummary;
use super::tables::{DatasetRow, SCHEMA_VERSION};
use handlescope_session::cancel::Cancel;

/// Key in the footer of files for the version of the tables.
const VERSION_KEY: &str = "handlescope_schema_version";

/// A Parquet file that rows of a table are added to.
pub struct TableFile<'f> {
    path: &'f Path,
    /// Remembers its first failed write, because polars reports it in other words.
    file: ParquetFile<&'f mut Noting<BufWriter<File>>>,
    rows: u64,
}

impl TableFile<'_> {
    /// Writes a file with the rows that `fill` adds.
    ///
    /// # Errors
    /// If the file cannot be written, or `fill` fails.
    pub fn write(
        path: &Path,
        schema: &Schema,
        fill: impl FnOnce(&mut TableFile<'_>) -> Result<(), DatasetError>,
    ) -> Result<TableSummary, DatasetError> {
        let file = File::create(path).map_err(DatasetError::io(path))?;
        let mut out = Noting::new(BufWriter::new(file));
        let write = || {
            let file = ParquetFile::new(schema, |_| true, &mut out);
            let file = file.map_err(DatasetError::parquet(path))?;
            let mut file = TableFile { path, file, rows: 0 };
            fill(&mut file)?;
            let version = (VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string());
            file.file.finish(vec![version]).map_err(DatasetError::parquet(path))?;
            Ok(file.rows)
        };
        let rows = write().map_err(|error| match out.failed() {
            Some(source) => DatasetError::Io { path: path.to_path_buf(), source },
            None => error,
        })?;
        TableSummary::new(path, rows)
    }

    /// Adds rows, some at a time.
    ///
    /// # Errors
    /// If the file cannot be written, or `cancel` asks to stop.
    pub fn push_rows<R: DatasetRow>(
        &mut self,
        mut rows: impl Iterator<Item = R>,
        cancel: &Cancel,
    ) -> Result<(), DatasetError> {
        loop {
            cancel.check()?;
            let batch: Vec<R> = rows.by_ref().take(R::TABLE.batch_rows).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let frame = DataFrame::new(batch.len(), R::columns_of(&batch));
            self.push(&frame.map_err(DatasetError::parquet(self.path))?)?;
        }
    }

    /// Adds the rows of a frame as row groups of their own.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, rows: &DataFrame) -> Result<(), DatasetError> {
        self.rows += rows.height() as u64;
        self.file.write(rows).map_err(DatasetError::parquet(self.path))
    }
}
