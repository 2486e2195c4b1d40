//! Why a name stands for no file.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::filter::FilterError;

/// Why a name stands for no file.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// There is no such file.
    #[error("{}: file not found{hint}", .path.display())]
    Missing {
        path: PathBuf,
        /// The nearest name that exists, or nothing.
        hint: String,
    },
    /// A folder without traces.
    #[error("{}: no trace or extract lies in this folder{hint}", .folder.display())]
    NothingIn {
        folder: PathBuf,
        /// How to look below it, unless that was done.
        hint: &'static str,
    },
    /// The wildcards match nothing.
    #[error("{}: no trace or extract with such a name found", .pattern.display())]
    NothingMatches { pattern: PathBuf },
    /// A wildcard in the folder part.
    #[error("{}: wildcards stand only in the file name, not in the folder", .pattern.display())]
    WildcardInFolder { pattern: PathBuf },
    /// A folder that cannot be read.
    #[error("{}: cannot list the folder: {source}", .folder.display())]
    Unreadable { folder: PathBuf, source: io::Error },
    /// A pattern that cannot be used.
    #[error(transparent)]
    Pattern(#[from] FilterError),
}
