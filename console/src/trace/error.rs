//! Why a file was not loaded, or none is left to ask.

use std::{io, path::PathBuf};

use handlescope_extract::{ExtractError, ImportError};
use handlescope_model::ArchiveError;
use thiserror::Error;

use crate::paths::ExpandError;

/// A file that could not be loaded or extracted.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its name stands for no file.
    #[error(transparent)]
    Name(#[from] ExpandError),
    /// It is not a trace.
    #[error(
        "{}: neither an extract (.json7z) nor a trace (.etl, or a .zip or .7z with one)",
        .path.display()
    )]
    UnknownFormat { path: PathBuf },
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
    Foreign { path: PathBuf },
    /// The extract cannot be written.
    #[error("{}: cannot be written: {source}; choose a folder with --outdir", .path.display())]
    NoPlace { path: PathBuf, source: io::Error },
}

/// Why no loaded file is asked.
#[derive(Debug, Error)]
pub enum NoFile {
    #[error("no trace is loaded; load one with .load FILE")]
    NothingLoaded,
    /// `-fd` that leaves no file.
    #[error("-fd {filters} leaves no file; .list shows what is loaded")]
    NoFileLeft { filters: String },
}

/// What to do about a file that is not read, or not for its size.
fn remedy(is_about_size: bool) -> &'static str {
    match is_about_size {
        true => "; if you trust it, raise the limit with -MaxSize of .load or .extract",
        false => "",
    }
}
