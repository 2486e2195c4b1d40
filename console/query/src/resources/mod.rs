//! `.dump Resource`: allocations by where they were made, whom they belong to and what became of them.
//!
//! As for handles, groups are nodes of a tree, but with a single level for all columns. [`keys`] makes codes for the
//! values of the columns, one code for all columns about allocators. [`counted`] counts the rows in parallel, and
//! [`groups`] sorts the result. Stats that count once per call, or per allocation in parts, are collected as numbers
//! and counted at the end. The rows and their filters are in [`allocations`](super::allocations).

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
