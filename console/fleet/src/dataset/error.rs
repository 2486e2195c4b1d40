//! Errors of datasets.

use std::io;
use std::path::{Path, PathBuf};

use handlescope_model::{ArchiveError, PolarsReason, Reason, Untrusted, is_full};
use polars::prelude::PolarsError;
use thiserror::Error;

use super::tables::SCHEMA_VERSION;
use handlescope_query::QueryError;
use handlescope_session::cancel::Cancelled;

/// A dataset that cannot be read or changed.
#[derive(Debug, Error)]
pub enum DatasetError {
    #[error("{}: no dataset; handlescope dataset add makes one", Untrusted(.0))]
    NoDataset(PathBuf),
    #[error(
        "{}: neither empty nor a dataset; name a new folder or a dataset",
        Untrusted(.0)
    )]
    OtherFolder(PathBuf),
    #[error(
        "{}: has tables of version {version}, but this program writes {SCHEMA_VERSION}; use a newer \
         handlescope, or name another folder", Untrusted(.path)
    )]
    Newer { path: PathBuf, version: i32 },
    #[error(
        "{}: has version {version}, but the dataset has {marked}; remove the trace and add it \
         again", Untrusted(.path)
    )]
    MarkedOlder { path: PathBuf, version: i32, marked: i32 },
    #[error("{}: damaged: {reason}", Untrusted(.path))]
    Damaged { path: PathBuf, reason: String },
    #[error("{}: missing; remove the trace and add it again", Untrusted(.0))]
    Missing(PathBuf),
    #[error("{}: changed since it was written; remove the trace and add it again", Untrusted(.0))]
    Changed(PathBuf),
    #[error("{}: not written by handlescope; remove it", Untrusted(.0))]
    Planted(PathBuf),
    #[error("{}: a link, not a folder of the dataset; remove it, or put the folder in its place", Untrusted(.0))]
    Link(PathBuf),
    #[error(
        "{}: rows of a trace that was only partly added; add it again, or dataset remove {trace}",
        Untrusted(.path)
    )]
    Orphan { path: PathBuf, trace: String },
    #[error("{}: left by a process that was interrupted; remove it", Untrusted(.0))]
    LeftBehind(PathBuf),
    #[error(
        "{}: a bucket has no locks, so traces added meanwhile would be lost; compact a copy in a folder",
        Untrusted(.0)
    )]
    NoLocks(PathBuf),
    /// A URL, in a program built without object stores.
    #[cfg(not(feature = "object-store"))]
    #[error(
        "{}: this program was built without object stores; build it with --features object-store",
        Untrusted(.0)
    )]
    NoObjectStores(String),
    /// An object store that cannot be used.
    #[cfg(feature = "object-store")]
    #[error("{}: {}", Untrusted(.url), Untrusted(.reason))]
    Url { url: String, reason: String },
    #[error("{}: {}", Untrusted(.path), Reason(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {}", Untrusted(.path), PolarsReason(.source))]
    Parquet { path: PathBuf, source: PolarsError },
    #[error("the dataset has no trace {0:?}; handlescope dataset list shows the ids")]
    NoTrace(String),
    #[error("\"\" is not an id; handlescope dataset list shows the ids")]
    NoId,
    #[error("several traces begin with {id:?}: {}; write more digits", .ids.join(", "))]
    Ambiguous { id: String, ids: Vec<String> },
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl DatasetError {
    /// Adds the file name to an error of the system.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }

    /// Adds the file name to an error of polars.
    pub fn parquet(path: impl Into<PathBuf>) -> impl FnOnce(PolarsError) -> Self {
        let path = path.into();
        |source| Self::Parquet { path, source }
    }

    /// If the disk is full, names the folder that the user named, because names of staging files would mean nothing.
    pub fn within(self, root: &Path) -> Self {
        match self {
            Self::Io { source, .. } if is_full(&source) => {
                Self::Io { path: root.to_path_buf(), source }
            }
            error => error,
        }
    }
}
