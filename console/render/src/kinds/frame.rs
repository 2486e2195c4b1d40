//! `.sql`

use std::io::{self, Write};

use polars::prelude::DataFrame;

use crate::table::{AnswerTable, Columns};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

/// Maximum number of rows in text. Nobody reads more on a screen, and aligning the text needs all of it in memory.
const MAX_ROWS: usize = 1000;

/// Returns the result of a query unchanged.
pub fn frame<'a>(frame: DataFrame, command: &str) -> AnswerTable<'a> {
    let names = frame.get_column_names_owned().iter().map(ToString::to_string).collect();
    let about = (command.to_owned(), names);
    let mut table = AnswerTable::from_frame(frame).within(query_document(), about);
    table.max_rows = Some(MAX_ROWS);
    table
}

/// Writes all rows of a frame.
///
/// # Errors
/// If `out` cannot be written, or `cancel` asks to stop.
pub fn write_frame(
    frame: DataFrame,
    format: Format,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> io::Result<()> {
    AnswerTable::from_frame(frame).write_as(format, &Display::default(), cancel, out)
}

/// Declares the document of a query: its command and the names of its columns.
pub fn query_document<'a>() -> Columns<'a, (String, Vec<String>)> {
    let mut document = Columns::<(String, Vec<String>)>::default();
    document
        .member("command", "the command as typed", |(command, _)| command.clone())
        .for_programs();
    document.member("columns", "the names of the columns, in order", |(_, names)| names.clone());
    document.rows("rows", "one object per row, with members named and ordered like the columns");
    document
}
