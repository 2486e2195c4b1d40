//! The format of an answer and its destination: the same for every kind of `.dump` and for `.sql`.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use handlescope_model::{Reason, Untrusted, remedy};
use thiserror::Error;

use handlescope_session::cancel::{Cancel, Cancelled};
use handlescope_session::grammar;
use handlescope_session::paths::{Overwrite, OverwriteError, write_whole};
use handlescope_session::settings::Display;
use handlescope_session::suggest::{self, followed_by};
use handlescope_session::terminal::Screen;
use handlescope_session::values::{
    ColumnChoice, CsvText, Format, FormatSpec, RequestedFormat, TopN,
};

/// The option that chooses columns.
pub const COLUMNS: &str = "-Columns";

/// Columns of groups that the text drops, in this order, if the screen is too narrow for all.
pub const LEFT_OUT: [&str; 22] = [
    "Numbers",
    "First",
    "Last",
    "Ids",
    "Stack",
    "Free stack",
    "Objects",
    "Share",
    "Duplicated",
    "Unmapped",
    "Closed",
    "End",
    "Allocated by",
    "Orphan frees",
    "Frees",
    "Allocs",
    "Allocated",
    "Created",
    "Open",
    "At exit",
    "Bytes at exit",
    "Allocator",
];

/// Buffer size for an answer.
const BUFFER_BYTES: usize = 1 << 16;

/// The output options of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputOptions {
    /// The requested formats; more than one is a conflict.
    pub formats: Vec<RequestedFormat>,
    /// `> FILE` or `>> FILE`. Its extension chooses the format if no option does.
    pub redirect: Option<grammar::Target>,
    /// `-csvraw`
    pub csv_text: CsvText,
    /// `-TopN`: limits the rows of each file.
    pub top: Option<TopN>,
    /// `-SortBy`: the column that orders the rows.
    pub sort_by: Option<String>,
    /// `-Columns`
    pub columns: ColumnChoice,
    /// `-Force`: replaces a file that this program has not written.
    pub force: bool,
}

/// An answer that cannot be written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// `-SortBy` or `-Columns` with a column that the answer does not have.
    #[error(
        "{}",
        followed_by(format!("{option}: no column '{name}'{hint}"), &format!("the columns are {columns}"))
    )]
    UnknownColumn {
        option: &'static str,
        name: String,
        /// Suggests the nearest column; may be empty.
        hint: String,
        /// All columns, joined by commas.
        columns: String,
    },
    /// A file that cannot be written.
    #[error(
        "{}: cannot be written: {}; {}name another file with {option}",
        Untrusted(.path), Reason(.source), remedy(.source)
    )]
    File { path: PathBuf, option: &'static str, source: io::Error },
    /// A file that may not be replaced.
    #[error(transparent)]
    Overwrite(#[from] OverwriteError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The user pressed Ctrl-C.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// A file that receives the output.
pub struct Target<'a> {
    pub path: &'a Path,
    /// The option or command that names it.
    pub option: &'static str,
    pub format: &'static str,
}

impl OutputError {
    pub fn unknown_column<'a>(
        option: &'static str,
        name: &str,
        columns: impl Iterator<Item = &'a str>,
    ) -> Self {
        let columns: Vec<&str> = columns.collect();
        OutputError::UnknownColumn {
            option,
            name: name.to_owned(),
            hint: suggest::hint(name, columns.iter().copied()),
            columns: columns.join(", "),
        }
    }

    /// Adds the sort orders of an answer that are not columns.
    pub fn with_other_orders(mut self, orders: &[&str]) -> Self {
        if let OutputError::UnknownColumn { option: "-SortBy", name, hint, columns } = &mut self {
            if let Some(nearest) = suggest::nearest(name, orders.iter().copied()) {
                *hint = suggest::did_you_mean(nearest);
            }
            *columns = format!("{columns}; other orders are {}", orders.join(", "));
        }
        self
    }
}

impl OutputOptions {
    /// Returns the format of the answer.
    pub fn format(&self) -> Format {
        self.requested().map_or(Format::Text, |(spec, _)| spec.with_text(self.csv_text))
    }

    /// Returns the requested format, and the option or redirection that requested it; `None` for text.
    pub fn requested(&self) -> Option<(&'static FormatSpec, &'static str)> {
        let by_option = self.formats.first().map(|format| (format.spec, format.spec.option_name()));
        let of_file = || FormatSpec::from_extension(Path::new(&self.redirect.as_ref()?.file));
        by_option.or_else(|| of_file().map(|spec| (spec, spec.redirect)))
    }

    /// Whether the answer is a complete document, which identifies processes and modules.
    pub fn is_document(&self) -> bool {
        matches!(self.format(), Format::Json(_))
    }

    /// Whether the answer goes into a file.
    pub fn names_file(&self) -> bool {
        self.redirect.is_some() || self.file_option().is_some()
    }

    /// Returns the option or redirection that requested the format; `None` for text.
    pub fn format_option(&self) -> Option<&'static str> {
        self.requested().map(|(_, option)| option)
    }

    /// Returns two options that cannot be combined, if there are any.
    pub fn conflict(&self) -> Option<(&'static str, &'static str)> {
        match self.formats.as_slice() {
            [first, second, ..] => Some((first.spec.option_name(), second.spec.option_name())),
            _ => None,
        }
    }

    /// Returns the names of the options that are set: the format, and `-TopN`, `-SortBy` and `-Columns`.
    pub fn of_rows(&self) -> impl Iterator<Item = &'static str> {
        let rows = [
            (self.top.is_some(), "-TopN"),
            (self.sort_by.is_some(), "-SortBy"),
            (self.columns != ColumnChoice::Fitting, COLUMNS),
        ];
        let rows = rows.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name);
        self.format_option().into_iter().chain(rows)
    }

    /// Returns how the answer is displayed: as usual for people, but without colours and without fitting a screen for
    /// programs.
    pub fn display(&self, usual: Display) -> Display {
        if self.format() == Format::Text {
            usual
        } else {
            Display { screen: Screen::PLAIN, clip: false, ..usual }
        }
    }

    /// Returns the option that names a file for the answer, if there is one.
    pub fn file_option(&self) -> Option<&'static str> {
        self.named_file().map(|file| file.option)
    }

    /// Returns the file given after a format option.
    fn named_file(&self) -> Option<Target<'_>> {
        self.formats.iter().find_map(|RequestedFormat { spec, file }| {
            let (option, format) = (spec.option_name(), spec.name);
            file.as_ref().map(|path| Target { path, option, format })
        })
    }

    /// Checks before the work whether the named file may be written.
    ///
    /// # Errors
    /// If it may not.
    pub fn check_file(&self, overwrite: &Overwrite) -> Result<(), OverwriteError> {
        self.named_file().map_or(Ok(()), |file| overwrite.replacing(file.path).map(drop))
    }

    /// Lets `content` write to `out` or to the named file. The file gets its name when it is complete.
    ///
    /// # Errors
    /// If the output or the file cannot be written or may not be replaced, or `cancel` asks to stop.
    pub fn deliver(
        &self,
        overwrite: &Overwrite,
        cancel: &Cancel,
        out: &mut dyn Write,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        if let Some(target) = self.named_file() {
            return target.write(overwrite, cancel, out, content);
        }
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        content(&mut out)?;
        Ok(out.flush()?)
    }
}

impl Target<'_> {
    /// Lets `content` write the file, and reports it. The file gets its name when it is complete.
    ///
    /// # Errors
    /// If the file cannot be written or may not be replaced, or `cancel` asks to stop.
    pub fn write(
        self,
        overwrite: &Overwrite,
        cancel: &Cancel,
        out: &mut dyn Write,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let Target { path, option, format } = self;
        let file = overwrite.replacing(path)?;
        write_whole(&file, cancel, content).map_err(|source| match cancel.check() {
            Ok(()) => OutputError::File { path: path.to_owned(), option, source },
            Err(cancelled) => cancelled.into(),
        })?;
        writeln!(out, "{format} export was successful. File is: {}", Untrusted(file.path()))?;
        Ok(())
    }
}
