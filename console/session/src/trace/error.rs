//! Why a file was not loaded, or why no file is left to query.

use std::io;
use std::path::PathBuf;

use handlescope_extract::ExtractError;
use handlescope_model::{ArchiveError, Reason, Untrusted, remedy as first_remedy};
use handlescope_sources::{ImportError, SourceError};
use indicatif::HumanCount;
use thiserror::Error;

use crate::paths::{ExpandError, OverwriteError, RootError};

/// A file that could not be loaded or extracted.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The name matches no file.
    #[error(transparent)]
    Name(#[from] ExpandError),
    /// The file may not be read.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The file is not a trace.
    #[error(
        "{}: not an extract (.json7z), a trace (.etl, or a .zip, .7z, .cab or .diagsession with one), a \
         minidump (.dmp) or text that lists handles (!htrace, !handle, handle.exe, CSV of System Informer)",
        Untrusted(.path)
    )]
    UnknownFormat { path: PathBuf },
    /// The file is a text about something else.
    #[error(
        "{}: this text has neither output of !htrace, !handle or handle.exe nor a table of handles (CSV)",
        Untrusted(.path)
    )]
    NoHandlesInText { path: PathBuf },
    /// No trace was named, and the folder has several.
    #[error("several traces in this folder; name one, or . for all of them:\n{}", listed(.files))]
    NoneNamed { files: Vec<PathBuf> },
    /// Too many files of a folder to name each of them.
    #[error(
        "{} files cannot be loaded: {examples}; and {} more",
        HumanCount(*.shown + *.more), HumanCount(*.more)
    )]
    Several { shown: u64, more: u64, examples: String },
    /// An extract that cannot be read.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Archive(#[from] ArchiveError),
    /// A trace that cannot be extracted.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Extract(#[from] SourceError),
    /// An extract of another program that cannot be read.
    #[error("{}{}", .0, remedy(.0.is_about_size()))]
    Import(#[from] ImportError),
    /// Neither the cache nor a temporary folder can be written.
    #[error(
        "{}: cannot be written, and no temporary folder can be made: {}; free some space, or choose another \
         folder with the environment variable TMPDIR",
        Untrusted(.path), Reason(.source)
    )]
    NoCache {
        /// The extract in the cache.
        path: PathBuf,
        source: io::Error,
    },
    /// Loading it panicked.
    #[error(
        "{}: this is a bug in handlescope ({location}: {message}); please report it with the file, or with \
         the output of `handlescope redact`",
        Untrusted(.path)
    )]
    Panicked { path: PathBuf, message: String, location: String },
    /// Two traces have the same extract.
    #[error(
        "{}: would overwrite {}, the extract of {}; extract them into different folders",
        Untrusted(.path), Untrusted(.output), Untrusted(.first)
    )]
    SameExtract {
        /// The second trace.
        path: PathBuf,
        /// The first trace.
        first: PathBuf,
        /// The extract of both.
        output: PathBuf,
    },
    /// Another program's extract is where this one would be written.
    #[error(
        "{}: is another program's extract and is not overwritten; choose a folder with --outdir",
        Untrusted(.path)
    )]
    Foreign { path: PathBuf },
    /// Something other than an extract is where one would be written.
    #[error(transparent)]
    Overwrite(#[from] OverwriteError),
    /// The extract cannot be written.
    #[error(
        "{}: cannot be written: {}; {}choose a folder with --outdir",
        Untrusted(.path), Reason(.source), first_remedy(.source)
    )]
    NoPlace { path: PathBuf, source: io::Error },
}

/// Why there is no loaded file to query.
#[derive(Debug, Error)]
pub enum NoFile {
    #[error("no trace is loaded; load one with .load FILE")]
    NothingLoaded,
    /// A dataset is loaded where a trace is needed.
    #[error(
        "this works on traces, and a dataset is loaded; .load ID loads the extract of one of its \
         traces, and .dump ObjectRef -GroupBy trace lists the ids"
    )]
    Dataset,
    /// `-fd` over a dataset.
    #[error("-fd chooses among loaded traces; use -machine, -build or -day for a dataset")]
    FilterOverDataset,
    /// `-fd` that leaves no file.
    #[error("-fd {filters} matches no loaded file; .list shows what is loaded")]
    NoFileLeft { filters: String },
}

/// If more files of a folder fail, only this many are named.
const MAX_NAMED: usize = 3;

/// Number of a folder's files listed for the user to choose from.
const MAX_LISTED: usize = 20;

impl From<ExtractError> for LoadError {
    fn from(error: ExtractError) -> Self {
        SourceError::from(error).into()
    }
}

impl LoadError {
    /// Whether the file is neither a trace nor an extract. That is no failure for a file found in a folder, because
    /// folders contain all sorts of archives.
    fn is_about_something_else(&self) -> bool {
        matches!(
            self,
            LoadError::Extract(
                SourceError::NoHandleData { .. }
                    | SourceError::Extract(ExtractError::NoTraceIn { .. })
            ) | LoadError::Import(ImportError::NotAnExtract { .. })
        )
    }

    /// Sorts the errors about files found in a folder into failures and mere notes.
    pub fn from_found(mut errors: Vec<LoadError>) -> (Vec<LoadError>, Vec<LoadError>) {
        let more = errors.len().saturating_sub(MAX_NAMED) as u64;
        if more > 0 {
            errors.sort_by_key(LoadError::is_about_something_else);
            let is_note = errors.iter().all(LoadError::is_about_something_else);
            let examples = errors
                .iter()
                .take(MAX_NAMED)
                .map(|error| error.to_string().replace('\n', " "))
                .collect::<Vec<_>>()
                .join("; ");
            let several = LoadError::Several { shown: MAX_NAMED as u64, more, examples };
            return if is_note { (Vec::new(), vec![several]) } else { (vec![several], Vec::new()) };
        }
        let notes = errors.extract_if(.., |error| error.is_about_something_else()).collect();
        (errors, notes)
    }
}

/// Lists files, one per line; of many, only the first ones.
fn listed(files: &[PathBuf]) -> String {
    let names = files.iter().take(MAX_LISTED).map(|file| format!("  {}", Untrusted(file)));
    let more = files.len().saturating_sub(MAX_LISTED);
    let rest = (more > 0).then(|| format!("  and {} more", HumanCount(more as u64)));
    names.chain(rest).collect::<Vec<_>>().join("\n")
}

/// Returns how to raise the limit, if a file is refused because of its size.
fn remedy(is_about_size: bool) -> &'static str {
    if is_about_size {
        "; if you trust it, raise the limit with -MaxSize of .load or .extract"
    } else {
        ""
    }
}
