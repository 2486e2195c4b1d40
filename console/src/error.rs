//! What can go wrong with a command.

use std::{io, path::PathBuf};

use handlescope_extract::{ExtractError, ImportError, SaveError, symbols::SymbolSourcesError};
use handlescope_model::ArchiveError;
use thiserror::Error;

use crate::{
    cancel::Cancelled, command::ParseError, expand::ExpandError, query::QueryError,
    render::OutputError, sql::SqlError,
};

/// A command that could not be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The line means nothing.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A query without anything to ask.
    #[error("no trace is loaded; load one with .load FILE")]
    NothingLoaded,
    /// Files that could not be loaded.
    #[error("{}", lines(.errors))]
    Load {
        /// What happened to each of them.
        errors: Vec<LoadError>,
    },
    /// Something about symbols that makes no symbol path.
    #[error(transparent)]
    Symbols(#[from] SymbolSourcesError),
    /// An archive that cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A query of `.sql` that has no answer.
    #[error(transparent)]
    Sql(SqlError),
    /// `-fd` that leaves no file.
    #[error("-fd {filters} leaves no file; .list shows what is loaded")]
    NoFileLeft {
        /// The filters as typed.
        filters: String,
    },
    /// The user pressed Ctrl-C.
    #[error("cancelled")]
    Cancelled,
    /// `.unload` of something that is not loaded.
    #[error("'{name}' is not loaded; .list shows what is")]
    NotLoaded {
        /// What was to be unloaded.
        name: String,
    },
    /// `.converttime` of something that is no time.
    #[error(
        "'{text}' is no time; write 2024-05-10 12:46:37.5, 12:46:37, an ISO time, or seconds like \
         13.123s"
    )]
    NoTime {
        /// What was typed.
        text: String,
    },
    /// Traces that could not be extracted; each was told by itself.
    #[error("{failed} of {files} traces could not be extracted")]
    NotExtracted {
        /// How many failed.
        failed: usize,
        /// Of how many.
        files: usize,
    },
    /// A folder that cannot become the current one.
    #[error("{}: cannot change to this folder: {source}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder that cannot be listed.
    #[error(transparent)]
    List(#[from] ExpandError),
    /// The terminal cannot be used for typing.
    #[error("cannot read from the terminal: {source}; use -c COMMAND, or pipe commands in")]
    Terminal {
        /// Why.
        source: io::Error,
    },
    /// An answer that cannot be written.
    #[error(transparent)]
    Answer(OutputError),
    /// A file of `.export` cannot be written.
    #[error("{}: cannot be written: {source}; choose another folder behind .export", .path.display())]
    Export {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `.save` that would have to write several traces into one archive.
    #[error("{files} traces are loaded and an archive holds one; choose it with -fd")]
    SaveSeveral {
        /// How many.
        files: usize,
    },
    /// `.save` to a name that no archive has.
    #[error("{}: an archive is found by its name; write one that ends with .json7z", .path.display())]
    SaveName {
        /// The name.
        path: PathBuf,
    },
    /// `.save` over a file that this program has not made.
    #[error(
        "{}: is another program's file, or a damaged one, and is not overwritten; choose another name \
         or delete it",
        .path.display()
    )]
    SaveForeign {
        /// The file.
        path: PathBuf,
    },
    /// `.save` into a folder that takes no file.
    #[error("{}: cannot be written: {source}; choose another folder", .path.display())]
    SavePlace {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An archive that cannot be written.
    #[error(transparent)]
    Save {
        /// Why.
        source: SaveError,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {source}")]
    Output {
        /// Why.
        #[from]
        source: io::Error,
    },
}

/// A file that could not be loaded or extracted.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its name stands for no file.
    #[error(transparent)]
    Name(#[from] ExpandError),
    /// It is no trace.
    #[error(
        "{}: neither an extract (.json7z) nor a trace (.etl, or a .zip or .7z with one)",
        .path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// It is an extract that cannot be read.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Archive(#[from] ArchiveError),
    /// It is a trace that cannot be extracted.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Extract(#[from] ExtractError),
    /// It is an extract of another program that cannot be read.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Import(#[from] ImportError),
    /// What an extract of another program is converted to cannot be written.
    #[error(
        "{}: cannot be written: {source}; extracts of ETWAnalyzer are converted into this folder",
        .path.display()
    )]
    NoCache {
        /// The converted extract.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Two traces have the same extract.
    #[error(
        "{}: would overwrite {}, the extract of {}; extract them into different folders",
        .path.display(), .output.display(), .other.display()
    )]
    SameExtract {
        /// The second trace.
        path: PathBuf,
        /// The first trace.
        other: PathBuf,
        /// The extract of both.
        output: PathBuf,
    },
    /// Another program's extract lies where this one would.
    #[error(
        "{}: is another program's extract and is not overwritten; choose a folder with --outdir",
        .path.display()
    )]
    Foreign {
        /// The extract.
        path: PathBuf,
    },
    /// The extract cannot be written.
    #[error("{}: cannot be written: {source}; choose a folder with --outdir", .path.display())]
    NoPlace {
        /// The extract.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<Cancelled> for CommandError {
    fn from(Cancelled: Cancelled) -> CommandError {
        CommandError::Cancelled
    }
}

impl From<QueryError> for CommandError {
    fn from(error: QueryError) -> CommandError {
        match error {
            QueryError::Archive(error) => error.into(),
            QueryError::Cancelled(cancelled) => cancelled.into(),
        }
    }
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> CommandError {
        match error {
            OutputError::Output(source) => source.into(),
            OutputError::Cancelled(cancelled) => cancelled.into(),
            error => CommandError::Answer(error),
        }
    }
}

impl From<SqlError> for CommandError {
    fn from(error: SqlError) -> CommandError {
        match error {
            SqlError::Archive(error) => error.into(),
            SqlError::Cancelled(cancelled) => cancelled.into(),
            error @ SqlError::Query { .. } => CommandError::Sql(error),
        }
    }
}

impl CommandError {
    /// Whether the reader of the output has gone, which is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CommandError::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What to do about a file that is not read, or not for its size.
fn remedy(is_about_size: bool) -> &'static str {
    match is_about_size {
        true => "; if you trust it, raise the limit with -MaxSize of .load or .extract",
        false => "",
    }
}

fn lines(errors: &[LoadError]) -> String {
    errors.iter().map(LoadError::to_string).collect::<Vec<_>>().join("\n")
}
