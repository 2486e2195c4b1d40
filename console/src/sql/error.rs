//! Why a query has no answer.

use handlescope_model::{ArchiveError, Cancelled};
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use polars::prelude::PolarsError;
use thiserror::Error;

use super::relations::Relation;
use crate::{query::QueryError, suggest};

/// A query without an answer.
#[derive(Debug, Error)]
pub enum SqlError {
    /// It means nothing, or cannot be carried out.
    #[error("{reason}{hint}; .help sql lists the tables and has examples")]
    Query { reason: String, hint: String },
    /// A join would take more memory than there may be.
    #[error(
        "a join of this query would have {} rows, more than the {} that it may; join on more columns, or \
         leave rows out before with WHERE",
        HumanFloatCount(*.rows), HumanCount(*.most)
    )]
    JoinTooLarge { rows: f64, most: u64 },
    /// It takes more memory than it may.
    #[error(
        "the query takes more than {} of memory; leave rows and columns out before joins and ORDER BY, or \
         raise the limit with -MaxMemory",
        HumanBytes(*.most)
    )]
    TooMuchMemory { most: u64 },
    /// An archive is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The user does not want the answer any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl SqlError {
    pub(super) fn failed(reason: String) -> SqlError {
        SqlError::Query { reason, hint: String::new() }
    }
}

impl From<PolarsError> for SqlError {
    fn from(error: PolarsError) -> SqlError {
        let reason = error.to_string();
        // The plan that polars adds names nothing that the query names.
        let reason = reason.split("\n\nResolved plan").next().unwrap_or(&reason).to_owned();
        let hint = unknown_relation(&reason)
            .and_then(|name| suggest::nearest(name, Relation::all().map(Relation::name)))
            .map_or_else(String::new, suggest::did_you_mean);
        SqlError::Query { reason, hint }
    }
}

/// The name in polars' message about a table that is not there.
fn unknown_relation(reason: &str) -> Option<&str> {
    let (before, _) = reason.split_once("' was not found")?;
    before.rsplit_once('\'').map(|(_, name)| name)
}

impl From<QueryError> for SqlError {
    fn from(error: QueryError) -> SqlError {
        match error {
            QueryError::Archive(error) => error.into(),
            QueryError::Cancelled(cancelled) => cancelled.into(),
            QueryError::Sums(error) => error.into(),
            // SQL has no such option.
            error @ QueryError::NoClock { .. } => {
                PolarsError::ComputeError(error.to_string().into()).into()
            }
        }
    }
}
