//! Tables: the columns and rows of an answer, once for all formats.
//!
//! A kind of `.dump` makes a [`Table`] of its answer; [`Table::write`] sorts, cuts and writes it.

mod arrange;
mod columns;
mod csv;
mod document;
mod json;
mod parquet;
mod size;
#[cfg(test)]
mod tests;
mod text;
mod value;

use std::{
    io::{self, Write},
    ops::Range,
    path::Path,
};

use polars::prelude::DataFrame;

pub use self::columns::{ColumnSpec, Columns, Declared, Members};
use self::columns::{MemberTaker, RowDocument, RowText, Scope};
pub use self::document::{Around, Depth, MemberMeaning, PartOf, PartsOf, RowOf, RowsOf};
use self::parquet::Parquet;
use self::value::Member;
pub use self::value::{CellType, Show};
use super::output::{OutputError, OutputOptions};
use super::time::Clock;
use handlescope_model::tables::TraceInfo;
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::{Overwrite, shown};
use handlescope_session::settings::Display;
use handlescope_session::values::{Format, JsonMode};

/// Writes the JSON document of a kind whose elements are not its rows.
type OtherDocument<'a> = Box<dyn Fn(&[FileRows], JsonMode, &mut dyn Write) -> io::Result<()> + 'a>;

/// Columns and rows, by file.
pub struct Table<'a> {
    pub frame: DataFrame,
    /// Description of each column of the frame.
    pub specs: Vec<ColumnSpec>,
    /// The documents of rows, if their columns were declared.
    row_document: Option<RowDocument<'a>>,
    /// The members of the document around the rows.
    around: Box<dyn Fn(MemberTaker<'_>) + 'a>,
    pub files: Vec<FileRows>,
    /// The group of each row, as long as no column orders the rows: the value of the last column
    /// stands above the rows of a group as their heading.
    pub groups: Option<Vec<u32>>,
    /// The columns, by their headings, that the text leaves out where a screen is too narrow for all, in this order.
    pub spare: Vec<&'static str>,
    /// Maximum number of rows in the text, unless `-TopN` says so.
    pub max_rows: Option<usize>,
    document: Option<OtherDocument<'a>>,
    row_text: Option<RowText<'a>>,
}

/// The rows of one file.
#[derive(Clone, Default)]
pub struct FileRows {
    /// The file, which stands above its rows in the text.
    path: Option<String>,
    rows: Range<usize>,
    /// Some of the rows, or all in another order than that of the frame.
    order: Option<Vec<usize>>,
    /// The first of its rows in the frame.
    first: usize,
    /// Number of rows that `-TopN` has left out.
    left_out: usize,
    /// Noun for rows that are left out, as in "more suspect".
    noun: Option<&'static str>,
    /// Text between the path and the rows, lines ended.
    above: String,
    /// Text after the number of rows in the line that counts them; without it that line only counts
    /// those left out.
    counted: Option<String>,
    /// Lines of text below the rows.
    below: Vec<String>,
}

impl FileRows {
    /// The rows of a file that are left, in order, as rows of the frame.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let (rows, order) = match &self.order {
            None => (self.rows.clone(), &[][..]),
            Some(order) => (0..0, order.as_slice()),
        };
        rows.chain(order.iter().copied())
    }

    /// Like [`rows`](Self::rows), counted from the first row of the file.
    pub fn relative_rows(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows().map(|row| row - self.first)
    }

    fn height(&self) -> usize {
        self.order.as_ref().map_or(self.rows.len(), Vec::len)
    }

    /// Creates a number of rows without a path.
    pub fn rows_of(rows: usize) -> FileRows {
        FileRows { rows: 0..rows, ..FileRows::default() }
    }

    /// Creates a number of rows of a file.
    pub fn of(path: &Path, rows: usize) -> FileRows {
        FileRows {
            path: Some(shown(path).to_string_lossy().into_owned()),
            ..FileRows::rows_of(rows)
        }
    }

    /// Puts the start of the recording in front of the path, if times below it have no date.
    pub fn started(self, info: &TraceInfo, display: &Display) -> FileRows {
        let is_heading = display.clip && info.has_clock();
        let heading = |path: String| if is_heading { Clock::heading(info, &path) } else { path };
        FileRows { path: self.path.map(heading), ..self }
    }

    /// Keeps only some of its rows, counted from its first.
    pub fn only(self, rows: Vec<usize>) -> FileRows {
        FileRows { order: Some(rows), ..self }
    }

    /// Names rows that are left out, as in "more suspect".
    pub fn of_each(self, noun: &'static str) -> FileRows {
        FileRows { noun: Some(noun), ..self }
    }

    /// Adds text between the path and the rows, lines ended.
    pub fn above(self, above: String) -> FileRows {
        FileRows { above, ..self }
    }

    /// Adds text to the line about the number of rows.
    pub fn counted(self, counted: String) -> FileRows {
        FileRows { counted: Some(counted), ..self }
    }

    /// Adds a line below the rows.
    pub fn below(mut self, line: String) -> FileRows {
        self.below.push(line);
        self
    }
}

impl<'a> Table<'a> {
    /// Rows of several files, one after the other.
    pub fn new<R: 'a>(
        columns: Columns<'a, R>,
        rows: Vec<R>,
        files: impl IntoIterator<Item = FileRows>,
    ) -> io::Result<Table<'a>> {
        let (frame, specs) = columns.frame(&rows).map_err(io::Error::other)?;
        let (document, row_text) = columns.over(rows);
        let row_document = Some(document);
        let mut first = 0;
        let files = files.into_iter().map(|file| {
            let rows = first..first + file.rows.len();
            first = rows.end;
            let order = file.order.map(|order| order.iter().map(|row| rows.start + row).collect());
            FileRows { first: rows.start, rows, order, ..file }
        });
        let files = files.collect();
        Ok(Table { files, specs, row_document, row_text, ..Table::of_frame(frame) })
    }

    /// A frame as it is.
    pub fn of_frame(frame: DataFrame) -> Table<'a> {
        Table {
            row_document: None,
            around: Box::new(|take| take("rows", Member::Rows)),
            specs: frame.columns().iter().map(ColumnSpec::of).collect(),
            files: vec![FileRows::rows_of(frame.height())],
            frame,
            groups: None,
            spare: Vec::new(),
            max_rows: None,
            document: None,
            row_text: None,
        }
    }

    /// Sets the group of each row, whose headings are the values of the last column.
    pub fn grouped(self, groups: Vec<u32>) -> Table<'a> {
        Table { groups: Some(groups), ..self }
    }

    /// Sets the columns, by their headings, that the text leaves out where a screen is too narrow
    /// for all, in this order.
    pub fn with_spare(self, spare: impl IntoIterator<Item = &'static str>) -> Table<'a> {
        Table { spare: spare.into_iter().collect(), ..self }
    }

    /// Sets the document around the rows.
    pub fn within<H: 'a>(self, document: Columns<'a, H>, about: H) -> Table<'a> {
        let document = document.part(about);
        Table { around: Box::new(move |take| document.each(take)), ..self }
    }

    /// Sets a JSON document of its own.
    pub fn with_document(
        self,
        document: impl Fn(&[FileRows], JsonMode, &mut dyn Write) -> io::Result<()> + 'a,
    ) -> Table<'a> {
        Table { document: Some(Box::new(document)), ..self }
    }

    /// The rows that others have left, in their order.
    pub fn in_order_of(self, files: &[FileRows]) -> Table<'a> {
        Table { files: files.to_vec(), ..self }
    }

    /// Sorts and cuts the rows and chooses the columns as the options say, and writes them. Returns how many rows are left
    /// out because the text would be too long.
    ///
    /// # Errors
    /// When the options name a column that is not there, the output or the file cannot be written,
    /// or `cancel` asks to stop.
    pub fn write(
        mut self,
        options: &OutputOptions,
        display: &Display,
        overwrite: &Overwrite,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> Result<usize, OutputError> {
        self.arrange(options)?;
        self.choose(options)?;
        let format = options.format();
        let is_limited = format == Format::Text && options.top.is_none();
        let left_out = self.max_rows.filter(|_| is_limited).map(|max_rows| self.limit(max_rows));
        options
            .deliver(overwrite, cancel, out, |out| self.write_as(format, display, cancel, out))?;
        Ok(left_out.unwrap_or_default())
    }

    /// Writes the rows that are left.
    pub fn write_as(
        &self,
        format: Format,
        display: &Display,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            Format::Text => self.text(display, out),
            Format::Json(mode) => match &self.document {
                Some(document) => document(&self.files, mode, out),
                None => self.json(mode, cancel, out),
            },
            Format::Csv(text) => self.csv(text, cancel, out),
            Format::NdJson => self.ndjson(cancel, out),
            Format::Parquet => self.parquet(out),
        }
    }

    /// All rows that are left.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.files.iter().flat_map(FileRows::rows)
    }

    /// The columns that files and documents have.
    fn data_columns(&self) -> impl Iterator<Item = (usize, &ColumnSpec)> {
        self.specs.iter().enumerate().filter(|(_, spec)| spec.scope != Scope::Text)
    }

    fn name(&self, column: usize) -> &str {
        self.frame.columns().get(column).map_or("", |column| column.name().as_str())
    }
}

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
