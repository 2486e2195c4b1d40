//! Why a query has no answer.

use handlescope_model::{ArchiveError, Cancelled, innermost};
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use polars::prelude::PolarsError;
use thiserror::Error;

use super::columns::RelationColumn;
use super::relations::Relation;
use super::tables::TOO_MANY_ROWS;
use super::view_file::ViewError;
use super::views::{View, Views};
use handlescope_query::{QueryError, QueryNames, polars_reason};

/// A query without an answer.
#[derive(Debug, Error)]
pub enum SqlError {
    /// The query is invalid or cannot be executed.
    #[error("{reason}")]
    Query { reason: String },
    /// The answer has more rows than a row number can count.
    #[error("{TOO_MANY_ROWS}")]
    TooManyRows,
    /// A join would take more memory than allowed.
    #[error(
        "a join of this query would have {} rows, more than the limit of {}; join on more \
         columns, or filter rows first with WHERE",
        HumanFloatCount(*.rows), HumanCount(*.most)
    )]
    JoinTooLarge { rows: f64, most: u64 },
    /// The query takes more memory than allowed.
    #[error(
        "the query needs more than {} of memory; filter rows and columns before joins and ORDER BY",
        HumanBytes(*.most)
    )]
    TooMuchMemory { most: u64 },
    /// A user's view cannot be read or planned.
    #[error(transparent)]
    View(#[from] ViewError),
    /// An archive is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file of a dataset is missing or damaged.
    #[error("{reason}")]
    Dataset { reason: String },
    /// The user cancelled the query.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl SqlError {
    pub fn failed(reason: String) -> SqlError {
        SqlError::Query { reason }
    }

    /// Converts an error of polars about a query that names these tables; their columns are suggested.
    pub fn in_query(
        error: &PolarsError,
        query: &str,
        tables: &[String],
        views: &Views,
    ) -> SqlError {
        if let PolarsError::ComputeError(reason) = innermost(error)
            && reason.as_ref() == TOO_MANY_ROWS
        {
            return SqlError::TooManyRows;
        }
        let columns: Vec<RelationColumn> = tables
            .iter()
            .filter_map(|table| views.relation(table))
            .flat_map(Relation::columns)
            .collect();
        let names = QueryNames {
            tables: views.relations().map(Relation::name).collect(),
            columns: columns.iter().map(|column| &*column.name).collect(),
            query,
        };
        SqlError::Query { reason: polars_reason(error, &names) }
    }

    /// Like [`in_query`](Self::in_query), but about a user's view, and with its file.
    pub fn in_view(error: &PolarsError, view: &View, views: &Views) -> SqlError {
        let names = QueryNames {
            tables: views.relations().map(Relation::name).collect(),
            columns: view.columns.iter().map(|column| &*column.name).collect(),
            query: &view.file.text,
        };
        view.file.wrong(error, &names).into()
    }
}

impl From<PolarsError> for SqlError {
    fn from(error: PolarsError) -> SqlError {
        SqlError::in_query(&error, "", &[], Views::built_in())
    }
}

impl From<QueryError> for SqlError {
    fn from(error: QueryError) -> SqlError {
        match error {
            QueryError::Archive(error) => error.into(),
            QueryError::Cancelled(cancelled) => cancelled.into(),
            QueryError::Sums(error) => error.into(),
            // SQL has no such options.
            error @ (QueryError::NoClock { .. }
            | QueryError::NoSuspect { .. }
            | QueryError::NoRank { .. }
            | QueryError::SeveralSuspects { .. }) => {
                PolarsError::ComputeError(error.to_string().into()).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_rows_are_known_wherever_polars_met_them() {
        let error = || PolarsError::ComputeError(TOO_MANY_ROWS.into());
        let inner = PolarsError::Context { error: Box::new(error()), msg: "in a scan".into() };
        for error in [error(), inner] {
            assert!(matches!(SqlError::from(error), SqlError::TooManyRows));
        }
    }
}
