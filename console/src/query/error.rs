//! Why a query has no answer.

use handlescope_model::ArchiveError;
use polars::prelude::PolarsError;
use thiserror::Error;

use crate::cancel::Cancelled;

/// A query without an answer.
#[derive(Debug, Error)]
pub enum QueryError {
    /// An archive is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The user does not want the answer any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Polars cannot carry out a sum.
    #[error("the tables cannot be summed up: {0}")]
    Sums(#[from] PolarsError),
}
