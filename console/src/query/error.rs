//! Why a query has no answer.

use std::path::PathBuf;

use handlescope_model::{ArchiveError, Untrusted};
use polars::prelude::PolarsError;
use thiserror::Error;

use super::criteria::Criterion;
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
    /// Times are asked for, of which a trace has none.
    #[error("{}: has no clock, so nothing can be chosen by time", Untrusted(.path))]
    NoClock {
        path: PathBuf,
        /// What would choose.
        criterion: Criterion,
    },
    /// Polars cannot carry out a sum.
    #[error("the tables cannot be summed up: {0}")]
    Sums(#[from] PolarsError),
}
