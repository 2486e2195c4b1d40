//! Encodes a table part by part, so that a large one is never in memory as a whole.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::mem;
use std::rc::Rc;

use polars::prelude::{Column, DataFrame, PolarsError, PolarsResult, Schema};

use super::parquet::{ParquetFile, ROWS_AT_ONCE};
use crate::column::ColumnType;
use crate::table::Table;

/// Source of the parts of a table; returns `None` after the last one.
type NextPart<'a> = &'a mut dyn FnMut() -> Option<PolarsResult<DataFrame>>;

/// A Parquet file written from the parts of a table.
struct TableFile<'a, W: Write> {
    table: Table,
    next: NextPart<'a>,
    /// The part whose rows are being written.
    part: DataFrame,
    /// `None` once the file is finished.
    file: Option<ParquetFile<W>>,
    /// Rows taken so far.
    rows: u64,
}

impl<'a, W: Write> TableFile<'a, W> {
    fn new(table: Table, next: NextPart<'a>, out: W) -> PolarsResult<Self> {
        let schema: Schema =
            table.columns().iter().map(|c| (c.name.into(), c.dtype.dtype())).collect();
        // A list is one column within another; making it non-nullable gains nothing.
        let is_nullable = |name: &str| {
            table.column(name).is_none_or(|spec| spec.nullable || spec.dtype == ColumnType::U32List)
        };
        let file = Some(ParquetFile::new(&schema, is_nullable, out)?);
        Ok(Self { table, next, part: DataFrame::default(), file, rows: 0 })
    }

    /// Writes the next rows, or the footer after the last ones; returns whether there was anything to write.
    fn write_next(&mut self) -> PolarsResult<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        if self.part.height() > 0 {
            let part = mem::take(&mut self.part);
            file.write(&part.head(Some(ROWS_AT_ONCE)))?;
            if part.height() > ROWS_AT_ONCE {
                self.part = part.slice(ROWS_AT_ONCE as i64, part.height());
            }
        } else if let Some(part) = (self.next)() {
            self.part = conform(self.table, &part?)?;
            self.rows += self.part.height() as u64;
        } else if let Some(file) = self.file.take() {
            file.finish(Vec::new())?;
        }
        Ok(true)
    }
}

/// Writes the parts of a table and returns the number of rows.
pub fn write_parts(table: Table, next: NextPart<'_>, out: impl Write) -> PolarsResult<u64> {
    let mut file = TableFile::new(table, next, out)?;
    while file.write_next()? {}
    Ok(file.rows)
}

/// Puts the columns of a part into the table's order and adds those it lacks.
fn conform(table: Table, part: &DataFrame) -> PolarsResult<DataFrame> {
    let columns: PolarsResult<Vec<Column>> = table
        .columns()
        .iter()
        .map(|spec| match part.column(spec.name) {
            Ok(column) => Ok(column.clone()),
            Err(_) if spec.nullable => Ok(spec.nulls(part.height())),
            Err(missing) => Err(missing),
        })
        .collect();
    DataFrame::new(part.height(), columns?)
}

/// A reader of a table's bytes that encodes each part once the bytes before it are taken.
pub struct EncodedParts<'a> {
    file: TableFile<'a, EncodedBytes>,
    /// Bytes of the last part; those before `taken` were handed out.
    encoded: EncodedBytes,
    taken: usize,
    /// Why reading ended early.
    failed: Option<PolarsError>,
}

/// Bytes that are encoded but not yet taken.
#[derive(Clone, Default)]
struct EncodedBytes(Rc<RefCell<Vec<u8>>>);

impl Write for EncodedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> EncodedParts<'a> {
    pub fn new(table: Table, next: NextPart<'a>) -> PolarsResult<Self> {
        let encoded = EncodedBytes::default();
        let file = TableFile::new(table, next, encoded.clone())?;
        Ok(Self { file, encoded, taken: 0, failed: None })
    }

    /// Returns the number of rows once everything was read, or the table error that ended reading.
    pub fn finish(self) -> PolarsResult<u64> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.file.rows),
        }
    }
}

impl Read for EncodedParts<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut encoded = self.encoded.0.borrow_mut();
            let left = encoded.get(self.taken..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(bytes.len());
                bytes[..count].copy_from_slice(&left[..count]);
                self.taken += count;
                return Ok(count);
            }
            encoded.clear();
            self.taken = 0;
            drop(encoded);
            match self.file.write_next() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::Error::other("a part of the table could not be encoded"));
                }
            }
        }
    }
}
