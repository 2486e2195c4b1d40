//! Tables: the columns and rows of an answer, declared once for all formats.
//!
//! Each kind of `.dump` makes an [`AnswerTable`] of its answer; [`AnswerTable::write`] sorts, cuts and writes it.

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

pub use self::columns::{ColumnDeclaration, ColumnFormat, Columns, RowMembers};
use self::columns::{ColumnScope, MemberTaker, RowDocument, RowText};
pub use self::document::{Depth, DocumentWithRows, MemberMeaning, PartOf, PartsOf, RowOf};
pub use self::parquet::ParquetOutput;
use self::value::DocumentMember;
pub use self::value::{CellType, Show};
use super::output::{OutputError, OutputOptions};
use super::text::shown_path;
use super::time::TraceClock;
use handlescope_model::tables::TraceInfo;
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::Overwrite;
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

/// Passes on the members of a document, given the rows that were kept.
type AroundRows<'a> = Box<dyn Fn(&[FileRows], MemberTaker<'_>) + 'a>;

/// Columns and rows, by file.
pub struct AnswerTable<'a> {
    pub frame: DataFrame,
    /// Description of each column of the frame.
    pub specs: Vec<ColumnFormat>,
    /// The documents of rows, if their columns were declared.
    row_document: Option<RowDocument<'a>>,
    /// The members of the document around the rows.
    around: AroundRows<'a>,
    pub files: Vec<FileRows>,
    /// The group of each row, unless a column orders the rows. Text shows the value of the last column as a heading
    /// above the rows of a group.
    pub groups: Option<Vec<u32>>,
    /// Headings of the columns that the text drops, in this order, if the screen is too narrow for all.
    pub spare: Vec<&'static str>,
    /// Maximum number of rows in text, unless `-TopN` is given.
    pub max_rows: Option<usize>,
    row_text: Option<RowText<'a>>,
}

/// The rows of one file.
#[derive(Clone, Default)]
pub struct FileRows {
    /// Path of the file; text shows it above the rows.
    path: Option<String>,
    rows: Range<usize>,
    /// Some of the rows, or all of them in another order than the frame's.
    order: Option<Vec<usize>>,
    /// Index of its first row in the frame.
    first: usize,
    /// Number of rows that `-TopN` left out.
    left_out: usize,
    /// Noun for rows left out, as in "more suspect".
    noun: Option<&'static str>,
    /// Text between the path and the rows, including line ends.
    above: String,
    /// Text after the number of rows in the line that counts them. Without it, that line only counts rows left out.
    counted: Option<String>,
    /// Lines of text below the rows.
    below: Vec<String>,
}

impl FileRows {
    /// Returns the rows of a file that were kept, in order, as rows of the frame.
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

    /// Creates rows without a path.
    pub fn rows_of(rows: usize) -> FileRows {
        FileRows { rows: 0..rows, ..FileRows::default() }
    }

    /// Counts rows that the query has already left out because of `-TopN`.
    pub fn of(mut self, all: usize) -> FileRows {
        self.left_out = all.saturating_sub(self.height());
        self
    }

    /// Creates rows of a file.
    pub fn new(path: &Path, rows: usize) -> FileRows {
        FileRows { path: Some(shown_path(path)), ..FileRows::rows_of(rows) }
    }

    /// Puts the start of the recording before the path, if the times below have no date.
    pub fn started(self, info: &TraceInfo, display: &Display) -> FileRows {
        let is_heading = display.clip && info.has_clock();
        let heading =
            |path: String| if is_heading { TraceClock::heading(info, &path) } else { path };
        FileRows { path: self.path.map(heading), ..self }
    }

    /// Keeps only these rows, counted from the first row of the file.
    pub fn only(self, rows: Vec<usize>) -> FileRows {
        FileRows { order: Some(rows), ..self }
    }

    /// Sets the noun for rows left out, as in "more suspect".
    pub fn of_each(self, noun: &'static str) -> FileRows {
        FileRows { noun: Some(noun), ..self }
    }

    /// Adds text between the path and the rows, including line ends.
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

impl<'a> AnswerTable<'a> {
    /// Creates a table from the rows of several files, one after another.
    pub fn new<R: 'a>(
        columns: Columns<'a, R>,
        rows: Vec<R>,
        files: impl IntoIterator<Item = FileRows>,
    ) -> io::Result<AnswerTable<'a>> {
        let (frame, specs) = columns.frame(&rows).map_err(io::Error::other)?;
        let (document, row_text) = columns.over(rows, frame.clone());
        let row_document = Some(document);
        let mut first = 0;
        let files = files.into_iter().map(|file| {
            let rows = first..first + file.rows.len();
            first = rows.end;
            let order = file.order.map(|order| order.iter().map(|row| rows.start + row).collect());
            FileRows { first: rows.start, rows, order, ..file }
        });
        let files = files.collect();
        Ok(AnswerTable { files, specs, row_document, row_text, ..AnswerTable::from_frame(frame) })
    }

    /// Creates a table from a frame, unchanged.
    pub fn from_frame(frame: DataFrame) -> AnswerTable<'a> {
        AnswerTable {
            row_document: None,
            around: Box::new(|_, take| take("rows", DocumentMember::Rows)),
            specs: frame.columns().iter().map(ColumnFormat::new).collect(),
            files: vec![FileRows::rows_of(frame.height())],
            frame,
            groups: None,
            spare: Vec::new(),
            max_rows: None,
            row_text: None,
        }
    }

    /// Sets the group of each row; the values of the last column become headings.
    pub fn grouped(self, groups: Vec<u32>) -> AnswerTable<'a> {
        AnswerTable { groups: Some(groups), ..self }
    }

    /// Sets the headings of the columns that the text drops, in this order, if the screen is too narrow for all.
    pub fn with_spare(self, spare: impl IntoIterator<Item = &'static str>) -> AnswerTable<'a> {
        AnswerTable { spare: spare.into_iter().collect(), ..self }
    }

    /// Sets the document around the rows.
    pub fn within<H: 'a>(self, document: Columns<'a, H>, about: H) -> AnswerTable<'a> {
        let document = document.part(about);
        AnswerTable { around: Box::new(move |_, take| document.each(take)), ..self }
    }

    /// Sets a document that arranges the rows that were kept in its own way.
    pub fn arranged_in<H: 'a>(
        self,
        document: Columns<'a, H>,
        about: impl Fn(&[FileRows]) -> H + 'a,
    ) -> AnswerTable<'a> {
        let document = document.in_document();
        let around: AroundRows<'a> =
            Box::new(move |files, take| document.each(&about(files), None, take));
        AnswerTable { around, ..self }
    }

    /// Takes the document of another table with the same rows.
    pub fn with_document_of(self, other: AnswerTable<'a>) -> AnswerTable<'a> {
        let AnswerTable { row_document, around, .. } = other;
        AnswerTable { row_document, around, ..self }
    }

    /// Sorts and cuts the rows, chooses the columns as the options say, and writes them. Returns how many rows were
    /// left out because the text would be too long.
    ///
    /// # Errors
    /// If the options name an unknown column, the output or the file cannot be written, or `cancel` asks to stop.
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

    /// Writes the rows that were kept.
    pub fn write_as(
        &self,
        format: Format,
        display: &Display,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            Format::Text => self.text(display, out),
            Format::Json(mode) => self.json(mode, cancel, out),
            Format::Csv(text) => self.csv(text, cancel, out),
            Format::NdJson => self.ndjson(cancel, out),
            Format::Parquet => self.parquet(out),
        }
    }

    /// Returns all rows that were kept.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.files.iter().flat_map(FileRows::rows)
    }

    /// Returns the columns that files and documents have.
    fn data_columns(&self) -> impl Iterator<Item = (usize, &ColumnFormat)> {
        self.specs.iter().enumerate().filter(|(_, spec)| spec.scope != ColumnScope::Text)
    }

    fn name(&self, column: usize) -> &str {
        self.frame.columns().get(column).map_or("", |column| column.name().as_str())
    }
}
