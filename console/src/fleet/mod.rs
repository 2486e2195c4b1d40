//! Questions to a dataset of many traces.
//!
//! A `Fleet` has the traces of a dataset that machines and days leave; folders of others are not opened. The questions
//! read their columns file by file, and keep sums only, so that a dataset may be larger than memory. `.sql` plans
//! over the same scans, which polars carries out in a stream.

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

pub(crate) use self::caveats::FleetCaveat;
pub(crate) use self::choice::FleetCriteria;
pub(crate) use self::compare::{BuildSide, BuildsDiff, ComparedStack, compare_builds};
pub use self::error::FleetError;
pub(crate) use self::groups::{
    Amounts, FleetColumn, FleetGroup, FleetGroups, LeaksOnly, fleet_groups,
};
pub(crate) use self::growth::{FleetGrowth, GrowthAxis, GrowthColumn, GrowthLine, fleet_growth};
pub(crate) use self::scan::{scan, table};
pub(crate) use self::traces::{Fleet, FleetTrace};
pub(crate) use self::why::{FleetSuspect, FleetWhy, WorstTrace, fleet_why};
