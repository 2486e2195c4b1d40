//! Datasets of many traces, and questions about them.
//!
//! A `Fleet` has the traces of a dataset that match the chosen machines and days; folders of other days are not opened.
//! Questions read their columns file by file and only keep sums, so a dataset may be larger than memory. `.sql` builds
//! its plans over the same scans, and polars streams them.

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
pub use self::choice::{FleetChoice, FleetCriteria};
pub use self::compare::{BuildsDiff, ComparedStack, compare_builds};
pub use self::groups::{Amounts, FleetGroup, FleetGroups, LeaksOnly, fleet_groups};
pub use self::growth::{FleetGrowth, GrowthAxis, GrowthLine, fleet_growth};
pub use self::scan::{scan, table};
pub use self::traces::Fleet;
pub use self::why::{DayLeaks, FleetSuspect, FleetWhy, WorstTrace, fleet_why};
use crate::dataset::DatasetError;
use handlescope_query::{QueryNames, polars_reason};
use handlescope_session::cancel::Cancelled;

/// Why a question about a dataset has no answer.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The dataset cannot be opened or listed.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A table cannot be read.
    #[error("the tables of the dataset cannot be read: {}", polars_reason(.0, &QueryNames::default()))]
    Tables(#[from] PolarsError),
    /// No trace passes the filters.
    #[error("no trace of the dataset passes {filters}")]
    NoTrace {
        /// The filters as typed.
        filters: String,
    },
    /// The dataset has no trace yet.
    #[error("the dataset has no trace; handlescope dataset add adds some")]
    Empty,
    /// No trace has this build.
    #[error("no trace has a process of build {build}{known}")]
    NoBuild {
        build: String,
        /// The existing builds, after a separator.
        known: String,
    },
    /// Nothing passes a filter.
    #[error("{0}")]
    NoMatch(String),
    /// The user pressed Ctrl-C.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}
