//! Rows that are more than memory should hold at once.

use std::io::{self, Write};

use super::{Table, parquet::Parquet};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

/// Writes rows that come in tables of the same columns, one table in memory at a time.
///
/// # Errors
/// When `out` cannot be written, or `cancel` asks to stop.
pub fn write_batches(
    format: Format,
    display: &Display,
    cancel: &Cancel,
    out: &mut dyn Write,
    for_each: impl FnOnce(&mut dyn FnMut(&Table<'_>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    match format {
        Format::Parquet => {
            let mut file = Parquet::new(out);
            for_each(&mut |rows| file.add(rows))?;
            file.finish()
        }
        Format::Text | Format::Json(_) | Format::Csv(_) | Format::NdJson => {
            for_each(&mut |rows| rows.write_as(format, display, cancel, out))
        }
    }
}
