//! Tables as Parquet.

use std::io::{self, Write};

use handlescope_model::ParquetFile;
use polars::prelude::{Column, DataFrame, IdxCa, IdxSize, PolarsResult};

use super::{AnswerTable, ColumnFormat, value::hex};

/// A file that receives tables with the same columns one after another.
pub struct ParquetOutput<W: Write> {
    out: Option<W>,
    file: Option<ParquetFile<W>>,
}

impl<W: Write> ParquetOutput<W> {
    pub fn new(out: W) -> ParquetOutput<W> {
        ParquetOutput { out: Some(out), file: None }
    }

    /// Adds the rows of a table that were kept.
    pub fn add(&mut self, table: &AnswerTable<'_>) -> io::Result<()> {
        let frame = table.data_frame().map_err(io::Error::other)?;
        if let Some(out) = self.out.take() {
            let file = ParquetFile::new(frame.schema(), |_| true, out);
            self.file = Some(file.map_err(io::Error::other)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write(&frame).map_err(io::Error::other)
    }

    /// Completes the file.
    pub fn finish(self) -> io::Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        file.finish(Vec::new()).map_err(io::Error::other)
    }
}

impl AnswerTable<'_> {
    pub fn parquet(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut file = ParquetOutput::new(out);
        file.add(self)?;
        file.finish()
    }

    /// Returns the columns of files, with the rows that were kept.
    fn data_frame(&self) -> PolarsResult<DataFrame> {
        let columns = self.data().map(|(column, spec)| data_column(column, spec));
        let frame =
            DataFrame::new(self.frame.height(), columns.collect::<PolarsResult<Vec<_>>>()?)?;
        let rows: Vec<IdxSize> =
            self.rows().map(|row| IdxSize::try_from(row).unwrap_or(IdxSize::MAX)).collect();
        frame.take(&IdxCa::from_vec("row".into(), rows))
    }
}

/// Converts a column to the values that JSON has.
fn data_column(column: &Column, spec: &ColumnFormat) -> PolarsResult<Column> {
    if !spec.is_hex() {
        return Ok(column.clone());
    }
    let texts = (0..column.len()).map(|row| {
        let value = column.get(row)?;
        Ok((!value.is_null()).then(|| hex(&value)))
    });
    let texts = texts.collect::<PolarsResult<Vec<Option<String>>>>()?;
    Ok(Column::new(column.name().clone(), texts))
}
