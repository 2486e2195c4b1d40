//! Datasets of many traces, and the questions to them.
//!
//! A `Fleet` has the traces of a dataset that machines and days leave; folders of others are not opened. The questions
//! read their columns file by file, and keep sums only, so that a dataset may be larger than memory. `.sql` plans
//! over the same scans, which polars carries out in a stream.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod dataset;

mod caveats;
mod choice;
mod compare;
mod error;
mod groups;
mod growth;
mod no_match;
mod processes;
mod scan;
mod traces;
mod why;

pub use self::caveats::FleetCaveat;
pub use self::choice::FleetCriteria;
pub use self::compare::{BuildSide, BuildsDiff, ComparedStack, compare_builds};
pub use self::error::FleetError;
pub use self::groups::{Amounts, FleetColumn, FleetGroup, FleetGroups, LeaksOnly, fleet_groups};
pub use self::growth::{FleetGrowth, GrowthAxis, GrowthColumn, GrowthLine, fleet_growth};
pub use self::scan::{scan, table};
pub use self::traces::{Fleet, FleetTrace};
pub use self::why::{FleetSuspect, FleetWhy, WorstTrace, fleet_why};
