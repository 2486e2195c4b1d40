//! `.dump Resource`: allocations by where they were made, whose they are and what became of them.
//!
//! [`keys`] makes keys of the values of the columns, [`counted`] counts rows by key, and [`groups`] sorts what was counted:
//! loops over columns that run in parallel. Stats that count once for a call, or for an allocation in parts, are collected
//! as numbers and counted at the end. [`allocations`](super::allocations) has the rows and their filters.

mod answer;
mod counted;
mod groups;
mod keys;
mod overview;
mod stats;

pub use self::answer::{ResourcesAnswer, resources};
pub use self::groups::{ResourceGroup, ResourceGroups};
pub use self::overview::{AllocatedKind, AllocationsOverview, allocations_overview};
pub use self::stats::ResourceStats;
