//! Reasons why a question to a dataset has no answer.

use polars::prelude::PolarsError;
use thiserror::Error;

use crate::dataset::DatasetError;
use handlescope_query::{KnownNames, polars_reason};
use handlescope_session::cancel::Cancelled;

/// A question to a dataset without an answer.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The dataset cannot be opened or listed.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A table cannot be read.
    #[error("the tables of the dataset cannot be read: {}", polars_reason(.0, &KnownNames::default()))]
    Tables(#[from] PolarsError),
    /// No trace is left.
    #[error("no trace of the dataset passes {filters}")]
    NoTrace {
        /// Filters as typed.
        filters: String,
    },
    /// The dataset has no trace yet.
    #[error("the dataset has no trace; handlescope dataset add adds some")]
    Empty,
    /// A build that no trace has.
    #[error("no trace has a process of build {build}{known}")]
    NoBuild {
        build: String,
        /// Builds that there are, with a separator in front.
        known: String,
    },
    /// A filter that nothing passes.
    #[error("{0}")]
    NoMatch(String),
    /// The user does not want the answer any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}
