//! Why a name stands for no file.

use std::{io, path::PathBuf};

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

use crate::filter::FilterError;

/// Why a name stands for no file.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// There is no such file.
    #[error("{}: file not found{hint}", Untrusted(.path))]
    Missing {
        path: PathBuf,
        /// The nearest name that exists, or nothing.
        hint: String,
    },
    /// A folder without traces.
    #[error("{}: no trace or extract lies in this folder{hint}", Untrusted(.folder))]
    NothingIn {
        folder: PathBuf,
        /// How to look below it, unless that was done.
        hint: &'static str,
    },
    /// The wildcards match nothing.
    #[error("{}: no trace or extract with such a name found", Untrusted(.pattern))]
    NothingMatches { pattern: PathBuf },
    /// A wildcard in the folder part.
    #[error("{}: wildcards are allowed only in the file name, not in the folder", Untrusted(.pattern))]
    WildcardInFolder { pattern: PathBuf },
    /// A folder that cannot be read.
    #[error("{}: cannot list the folder: {}", Untrusted(.folder), Reason(.source))]
    Unreadable { folder: PathBuf, source: io::Error },
    /// A pattern that cannot be used.
    #[error(transparent)]
    Pattern(#[from] FilterError),
}
