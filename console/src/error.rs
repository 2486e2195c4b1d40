//! What can go wrong with a command.

use std::io;

use handlescope_model::ArchiveError;
use thiserror::Error;

use crate::command::ParseError;

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
    /// An archive that cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// `.unload` of something that is not loaded.
    #[error("'{name}' is not loaded; .list shows what is")]
    NotLoaded {
        /// What was to be unloaded.
        name: String,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {source}")]
    Output {
        /// Why.
        #[from]
        source: io::Error,
    },
}

impl CommandError {
    /// Whether the reader of the output has gone, which is no failure.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CommandError::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
