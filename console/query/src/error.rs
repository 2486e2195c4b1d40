//! Reasons why a query has no answer.

use std::path::PathBuf;

use handlescope_model::{ArchiveError, Untrusted};
use polars::prelude::PolarsError;
use thiserror::Error;

use super::criterion::Criterion;
use super::polars_reason::{QueryNames, polars_reason};
use handlescope_session::cancel::Cancelled;
use handlescope_session::values::SuspectId;

/// Why a query has no answer.
#[derive(Debug, Error)]
pub enum QueryError {
    /// An archive is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The user no longer wants the answer.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Times are requested, but a trace has none.
    #[error("{}: has no clock, so nothing can be chosen by time", Untrusted(.path))]
    NoClock {
        path: PathBuf,
        /// The criterion that needs times.
        criterion: Criterion,
    },
    /// No suspect of the traces has the requested id.
    #[error("no suspect of {what} has the id {id}")]
    NoSuspect {
        id: SuspectId,
        /// Handles, allocations, or both, in words.
        what: &'static str,
    },
    /// The requested id is the beginning of several suspect ids.
    #[error("several suspect ids begin with {id}: {ids}; write more digits")]
    SeveralSuspects {
        id: SuspectId,
        /// The ids, separated by commas.
        ids: String,
    },
    /// No trace has that many suspects.
    #[error("there is no suspect {rank}; the last one is {count}")]
    NoRank {
        /// The requested rank.
        rank: usize,
        /// The largest rank.
        count: usize,
    },
    /// Polars cannot compute a sum.
    #[error("the tables cannot be aggregated: {}", polars_reason(.0, &QueryNames::default()))]
    Sums(#[from] PolarsError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_polars_is_in_the_words_of_the_tables() {
        let missing =
            "unable to find column \"typ\"; valid columns: [\"type\", \"pid\"]\n\nResolved plan: x";
        let error = QueryError::Sums(PolarsError::ColumnNotFound(missing.into()));
        assert_eq!(
            error.to_string(),
            "the tables cannot be aggregated: column 'typ' not found, did you mean type?"
        );
        let full = std::io::Error::from_raw_os_error(28);
        let error = QueryError::Sums(PolarsError::from(full));
        assert_eq!(error.to_string(), "the tables cannot be aggregated: the disk is full");
    }
}
