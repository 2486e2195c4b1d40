//! Comma-separated values as in RFC 4180.

use std::io::{self, Write};

use super::{AnswerTable, value::cell};
use handlescope_session::cancel::{Cancel, Poll};
use handlescope_session::values::CsvText;

/// Separator of values.
const SEPARATOR: u8 = b',';

impl AnswerTable<'_> {
    /// Writes a header and the rows; an unknown value is empty, a list is written as JSON.
    pub fn csv(&self, csv: CsvText, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().delimiter(SEPARATOR).from_writer(out);
        for (index, _) in self.data_columns() {
            writer.write_field(csv.cell(self.name(index), SEPARATOR).as_bytes())?;
        }
        writer.write_record(None::<&[u8]>)?;
        let columns: Vec<_> = self.data().collect();
        let (mut poll, mut text) = (Poll::new(cancel), String::new());
        for row in self.rows() {
            poll.round().map_err(io::Error::other)?;
            for (column, spec) in &columns {
                text.clear();
                cell(&spec.value(column, row).map_err(io::Error::other)?, &mut text);
                writer.write_field(csv.cell(&text, SEPARATOR).as_bytes())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()
    }
}
