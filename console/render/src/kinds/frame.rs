//! `.sql`

use crate::json::Meanings;
use std::io::{self, Write};

use polars::prelude::DataFrame;

use crate::{json::Document, table::Table};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

/// Maximum number of rows in text: more than anyone reads on a screen, and a text is in memory as a
/// whole to be aligned.
const MAX_ROWS: usize = 1000;

/// The answer to a query as it is.
pub fn frame<'a>(frame: DataFrame, command: &str) -> Table<'a> {
    let table = Table::of_frame("rows", frame);
    let names = table.frame.get_column_names_owned();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let head = Document::default().with("command", command.to_owned()).with("columns", names);
    let mut table = table.with_members(head, Document::default());
    table.max_rows = Some(MAX_ROWS);
    table
}

/// All rows of a frame.
///
/// # Errors
/// When `out` cannot be written, or `cancel` asks to stop.
pub fn write_frame(
    frame: DataFrame,
    format: Format,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> io::Result<()> {
    Table::of_frame("rows", frame).write_as(format, &Display::default(), cancel, out)
}

/// Meanings of the members of the document of `.sql`.
pub const QUERY_MEMBERS: Meanings = &[
    ("command", "the command as typed"),
    ("columns", "the names of the columns, in order"),
    ("rows", "one object per row, whose members are named and ordered like the columns"),
];
