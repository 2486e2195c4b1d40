//! `.dump Resource`: allocations by where they were made, whose they are and what became of them.
//!
//! The groups are nodes of a tree, as those of handles, whose only level has all columns: [`keys`] numbers the values of the
//! columns, those of allocators together, [`counted`] counts the rows in parallel, and [`groups`] sorts what was counted. Stats
//! that count once for a call, or for an allocation in parts, are collected as numbers and counted at the end.
//! [`allocations`](super::allocations) has the rows and their filters.

mod answer;
mod counted;
mod groups;
mod keys;
mod overview;
mod stats;

pub use self::answer::{ResourcesAnswer, frames_for, resources};
pub use self::groups::{ResourceGroup, ResourceGroups};
pub use self::overview::{AllocatedKind, AllocationsOverview, allocations_overview};
pub use self::stats::ResourceStats;
