//! Datasets of many traces, and the questions to them.
//!
//! A `Fleet` has the traces of a dataset that machines and days leave; folders of others are not opened. The questions
//! read their columns file by file, and keep sums only, so that a dataset may be larger than memory. `.sql` plans
//! over the same scans, which polars carries out in a stream.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod call_site;
mod caveats;
mod choice;
mod compare;
pub mod dataset;
mod groups;
mod growth;
mod no_match;
mod scan;
mod traces;
mod why;

use polars::prelude::PolarsError;
use thiserror::Error;

pub use self::call_site::CallSite;
pub use self::caveats::FleetCaveat;
pub use self::choice::FleetCriteria;
pub use self::compare::{BuildSide, BuildsDiff, ComparedStack, compare_builds};
pub use self::groups::{Amounts, FleetColumn, FleetGroup, FleetGroups, LeaksOnly, fleet_groups};
pub use self::growth::{FleetGrowth, GrowthAxis, GrowthLine, fleet_growth};
pub use self::scan::{scan, table};
pub use self::traces::Fleet;
pub use self::why::{DayLeaks, FleetSuspect, FleetWhy, WorstTrace, fleet_why};
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
