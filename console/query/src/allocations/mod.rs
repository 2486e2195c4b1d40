//! The allocations of a trace: their tables, allocators and kinds, and which of them pass.

mod selection;
mod tables;

pub use self::selection::{PART, ResourceSelection, unreleased};
pub use self::tables::{AllocationOrMiss, AllocationSource, FilteredTables, allocated_kinds};
